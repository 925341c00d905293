/* Reads weights from memory-mapped safetensors files: one file, a folder, or an index of
 * several. */
#ifndef STC_WEIGHTS_H
#define STC_WEIGHTS_H
#include "ir/ir.h"

struct weight {
	const char *name, *file;
	const char *dtype; /* spelling of the file: F32, I64, … */
	int rank;
	const int64_t *shape; /* [rank] */
	const void *data;     /* row-major, little endian */
	size_t bytes;
};

struct weights;

/* path: FILE.safetensors, FILE.safetensors.index.json, or a folder with model.safetensors or its
 * index.  NULL after diagnostics. */
struct weights *weights_open(struct arena *arena, struct diag *diag, const char *path);
/* unmaps; NULL is accepted */
void weights_close(struct weights *weights);
/* The tensor of this name, checked against a tensor type.  NULL after a diagnostic. */
const struct weight *weights_find(
        struct weights *weights, const char *name, const struct type *type);
/* Lets the operating system drop a tensor's pages from memory; they are read from the file when
 * next accessed. */
void weights_release(const void *data, size_t bytes);
bool weights_has(const struct weights *weights, const char *name);
int weights_count(const struct weights *weights);

#endif
