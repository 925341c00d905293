/* A hardware-level module as a design folder. */
#ifndef STC_WRITE_DESIGN_H
#define STC_WRITE_DESIGN_H
#include "driver/pack.h"

struct platform;

/* hls/, host/ and design.mlir, the module itself, which `stc simulate` reads.  name: the design's. */
bool write_code(struct output *output, struct module *module, const struct platform *platform, const char *name);
/* manifest.json; the last file, since it lists all others. */
bool write_manifest(struct output *output, struct module *module, const char *name, bool packed);
/* What a path calls the design in it: the last part, without an extension. */
const char *design_name(struct arena *arena, const char *path);

#endif
