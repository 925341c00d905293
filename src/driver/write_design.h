/* A hardware-level module as a design folder. */
#ifndef STC_WRITE_DESIGN_H
#define STC_WRITE_DESIGN_H
#include "driver/pack.h"
#include "emit/emit.h"

struct platform;

/* hls/, host/ and design.mlir, the module itself, which `stc simulate` reads.  name: the design's. */
bool write_code(struct output *output, const struct phases *phases, const struct platform *platform, const char *name);
/* Where a file that each phase has is: the first phase's in the design's folder (phase NULL), the others' in one of their own. */
const char *phase_file(struct arena *arena, const char *phase, const char *file);
/* manifest.json; the last file, since it lists all others.  text: its beginning, from emit_manifest. */
bool write_manifest(struct output *output, struct text *text);
/* What a path calls the design in it: the last part, without an extension. */
const char *design_name(struct arena *arena, const char *path);

#endif
