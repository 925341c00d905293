/* Weights of few bits, made offline from a weight of the model: runs of `group` numbers that
 * share a scale, in the order in which the kernels use them (attribute `stream.derived_from` of
 * an argument, docs/ir.md).  Pure functions: used by the packer, by the runtime's loader and by
 * tests. */
#ifndef STC_QUANTIZED_H
#define STC_QUANTIZED_H
#include "ir/ir.h"
#include "image/image.h"
#include <signal.h>

/* No part of the weight, but what a contraction of x + v adds to that of x, and the bias behind
 * it: bias[n] + Σ_k w[n, k] v[k], with w as it is rounded, f32. */
struct folded_bias {
	const char *bias, *vector; /* NULL: not this */
	const struct type *bias_type, *vector_type;
};

struct quantized {
	const char *source;      /* name of the model's weight */
	const struct type *type; /* its type */
	bool scales;             /* the f16 scales rather than the integers */
	bool cast;               /* neither: the numbers themselves in another float type */
	int bits;
	int axis;      /* dim of the weight along which runs go; -1: along none alone */
	int64_t group; /* numbers of a run */
	/* runs come as [outer][shared][block], and those of one outer and block index share a
	 * scale; 1 and 1: each has its own */
	int64_t shared, block;
	struct segment from; /* number n of all runs in the weight, 0 where it is padding */
	struct folded_bias folded_bias;
};

/* NULL: `from` is not such an attribute. */
const struct quantized *quantized_read(struct arena *arena, const struct attr *from);
const struct attr *quantized_attr(struct module *module, const struct quantized *quantized);
/* of the same weight, with as many bits */
bool quantized_same_runs(const struct quantized *left, const struct quantized *right);
int64_t quantized_runs(const struct quantized *quantized);
int64_t quantized_scales(const struct quantized *quantized);

/* Rounds an f32 weight to nearest: scale = largest / (2^(bits - 1) - 1) as f16, 1 for zeros.
 * values: [runs * group], scales: one for each that there is; either may be NULL.  False: a
 * number is infinite or not a number, or *stop was set (NULL: nobody does). */
bool quantized_round(const struct quantized *quantized, const void *weight, int8_t *values,
        uint16_t *scales, const volatile sig_atomic_t *stop);

/* The same of a weight that was rounded elsewhere: integers in the shape of the weight; f16
 * scales in that shape with groups in place of dim `axis`. */
void quantized_import(const struct quantized *quantized, const void *integers,
        const void *source_scales, int8_t *values, uint16_t *scales);
/* The moved bias, of runs in rows as trips [outputs][groups][group] say: bias + Σ_k.  `weight`:
 * f32; NULL: `integers` and `given`.  room: of one row, its numbers and its scales. False: as
 * quantized_round. */
struct folded_bias_sources {
	const void *weight, *integers, *source_scales, *bias, *vector;
	int8_t *values;
	uint16_t *scales;
};
bool quantized_folded_bias(const struct quantized *quantized,
        const struct folded_bias_sources *sources, float *to, const volatile sig_atomic_t *stop);
/* Extent of the scales' dim `axis`. */
int64_t quantized_groups(const struct quantized *quantized);
#endif
