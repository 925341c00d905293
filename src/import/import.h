/* MLIR text to our IR, through the MLIR C API: the outside world's linalg-on-tensors and our own
 * dumps of any level alike. */
#ifndef STC_IMPORT_H
#define STC_IMPORT_H
#include "ir/ir.h"

/* Parses text (file: for locations); text[size] must be 0.  Refuses by a scan, before parsing,
 * text nested deeper than 256 brackets. Linalg input is normalised by MLIR's own passes
 * (generalise named ops, canonicalise, CSE); a dump of ours (module attribute stream.level) is
 * read as it is. NULL: diagnostics say why. */
struct module *import_mlir(struct arena *arena, struct guard *guard, struct diag *diag,
        const char *file, const char *text, size_t size);

/* One itensor type: `!stream.itensor<TILE, [trips], [steps], MAP>`, the name before `<` may be
 * left out.  It is not checked beyond what its parts are. `name` is what messages call it.
 * NULL: diagnostics say why. */
const struct type *import_itensor(
        struct module *module, struct diag *diag, const char *name, const char *text);

#endif
