/* MLIR text to our IR, through the MLIR C API: the outside world's linalg-on-tensors and our own dumps of any level alike. */
#ifndef STC_IMPORT_H
#define STC_IMPORT_H
#include "ir/ir.h"

/* Parses text (file: for locations); text[size] must be 0.  Refuses by a scan, before parsing, text nested deeper than 256 brackets.
 * Linalg input is normalised by MLIR's own passes (generalise named ops, canonicalise, CSE); a dump of ours (module attribute stream.level) is read as it is.
 * NULL: diagnostics say why. */
struct module *import_mlir(struct arena *arena, struct guard *guard, struct diag *diag, const char *file, const char *text, size_t size);

#endif
