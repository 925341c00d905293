/* Writes hardware-level modules as a design folder. */
#ifndef STC_WRITE_DESIGN_H
#define STC_WRITE_DESIGN_H
#include "driver/pack.h"
#include "emit/emit.h"

struct platform;

/* Writes hls/, host/ and design.mlir, the module itself, which `stc simulate` reads; `name` is the
 * design's.  false: a diagnostic. */
bool write_code(struct output *output, const struct phases *phases, const struct platform *platform,
        const char *name);
/* Writes manifest.json, the last file, since it lists all others; `text` is its beginning, from
 * emit_manifest.  It ends with the hash of what stands before. */
bool write_manifest(struct output *output, struct text *text);

#endif
