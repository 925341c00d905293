/* NumPy's .npy files: versions 1 to 3, C order, numbers and bool. */
#ifndef STC_NPY_H
#define STC_NPY_H
#include "base/diag.h"
#include <stdint.h>

#define NPY_RANK_MOST 32 /* as NumPy's */

struct npy {
	const char *dtype; /* f4 f8 f2 i8 i4 i2 i1 u1 b1 */
	int rank;
	int64_t shape[NPY_RANK_MOST];
	const void *data;
	size_t bytes;
	bool big_endian; /* the data, of npy_parse; npy_read makes it little endian */
};

int npy_element_bytes(const char *dtype); /* 0: not one of the above */
/* Reads a file that is already in memory; npy->data points into it.  `path` is for messages. */
bool npy_parse(struct diag *diag, const char *path, const char *file, size_t size, struct npy *npy);
bool npy_read(struct arena *arena, struct diag *diag, const char *path, struct npy *npy);
/* the header before the data */
void npy_header(struct text *out, const char *dtype, int rank, const int64_t *shape);
/* prints a shape as Python prints a tuple */
void npy_shape_text(struct text *out, int rank, const int64_t *shape);

#endif
