/* Imports MLIR text through the MLIR C API: linalg-on-tensors models as well as dumps of any level
 * of the compiler. */
#ifndef STC_IMPORT_H
#define STC_IMPORT_H
#include "ir/ir.h"

/* Parses text (file: for locations); text[size] must be 0. A scan before parsing rejects text
 * nested deeper than 256 brackets. Models are normalized by MLIR's own passes (generalize named
 * ops, canonicalize, CSE); a dump (module attribute stream.level) is read as it is. NULL after
 * diagnostics. */
struct module *import_mlir(struct arena *arena, struct guard *guard, struct diag *diag,
        const char *file, const char *text, size_t size);

/* One itensor type: `!stream.itensor<TILE, [trips], [steps], MAP>`, where the name before `<` may
 * be omitted. Only its parts are checked, not the whole. `name` is its name in messages. NULL after
 * diagnostics. */
const struct type *import_itensor(
        struct module *module, struct diag *diag, const char *name, const char *text);

#endif
