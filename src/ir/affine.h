/* Affine maps without symbols, as index expressions of itensor types and MLIR attributes: result r
 * at point d is Σ c[r][i] d[i] + c[r][dims]. */
#ifndef STC_AFFINE_H
#define STC_AFFINE_H
#include "base/text.h"
#include <stdint.h>

struct affine_map {
	int dims, results;
	/* [results][dims + 1], the last of a row is the constant */
	const int64_t *coefficient;
};

/* coefficients of a new map, all 0, for the caller to fill */
int64_t *affine_rows(struct arena *arena, int dims, int results);
int64_t affine_apply(struct affine_map map, int result, const int64_t *dim);
static inline int64_t affine_at(struct affine_map map, int result, int dim)
{
	return map.coefficient[result * (map.dims + 1) + dim];
}
static inline int64_t affine_constant(struct affine_map map, int result)
{
	return affine_at(map, result, map.dims);
}
/* as MLIR prints it: (d0, d1) -> (d0 * 4 + d1 + 5) */
void affine_print(struct affine_map map, struct text *out);
/* greatest common divisor */
int64_t common_divisor(int64_t left, int64_t right);
bool affine_same(struct affine_map left, struct affine_map right);

#endif
