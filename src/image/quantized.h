/* Quantized weights, derived offline from a weight of the model: runs of `group` numbers that share
 * a scale, in the order in which kernels read them (attribute `stream.derived_from` of an argument,
 * docs/ir.md). Pure functions, used by the packer, the runtime's loader and tests. */
#ifndef STC_QUANTIZED_H
#define STC_QUANTIZED_H
#include "ir/ir.h"
#include "image/image.h"
#include <signal.h>

/* A bias instead of a part of the weight: a contraction of x + v equals that of x plus the f32
 * bias[n] + Σ_k w[n, k] v[k], with w as rounded. */
struct folded_bias {
	const char *bias, *vector; /* names of the tensors; NULL: this is no folded bias */
	const struct type *bias_type, *vector_type;
};

struct quantized {
	const char *source;      /* name of the weight in the model */
	const struct type *type; /* its type */
	bool scales;             /* the f16 scales, not the integers */
	bool cast;               /* neither: the numbers converted to another float type */
	int bits;
	int axis;      /* dim of the weight along which runs lie; -1: not along a single dim */
	int64_t group; /* numbers per run */
	/* runs are ordered [outer][shared][block]; those with the same outer and block index share
	 * a scale; 1 and 1: each run has its own */
	int64_t shared, block;
	struct segment from; /* address in the weight of number n of all runs; padding is 0 */
	struct folded_bias folded_bias;
};

/* NULL: `from` is no such attribute. */
const struct quantized *quantized_read(struct arena *arena, const struct attr *from);
const struct attr *quantized_attr(struct module *module, const struct quantized *quantized);
/* do both have the same runs of the same weight, with the same bits? */
bool quantized_same_runs(const struct quantized *left, const struct quantized *right);
int64_t quantized_runs(const struct quantized *quantized);
int64_t quantized_scales(const struct quantized *quantized);

/* Rounds an f32 weight to nearest: scale = maximum / (2^(bits - 1) - 1) as f16, 1 for zeros.
 * values: [runs * group]; scales: [quantized_scales]; either may be NULL. false: a number is
 * infinite or NaN, or *stop was set (stop may be NULL). */
bool quantized_round(const struct quantized *quantized, const void *weight, int8_t *values,
        uint16_t *scales, const volatile sig_atomic_t *stop);

/* The same for a weight that was rounded elsewhere: integers in the shape of the weight, f16 scales
 * in that shape with groups in place of dim `axis`. */
void quantized_import(const struct quantized *quantized, const void *integers,
        const void *source_scales, int8_t *values, uint16_t *scales);
/* The folded bias to[n] = bias[n] + Σ_k, for runs in rows as the trips [outputs][groups][group]
 * say. weight: f32, or NULL: integers and source_scales hold the rounded weight. values, scales:
 * scratch for the numbers and scales of one row. false: as quantized_round. */
struct folded_bias_sources {
	const void *weight, *integers, *source_scales, *bias, *vector;
	int8_t *values;
	uint16_t *scales;
};
bool quantized_folded_bias(const struct quantized *quantized,
        const struct folded_bias_sources *sources, float *to, const volatile sig_atomic_t *stop);
/* Extent of dim `axis` of the scales. */
int64_t quantized_groups(const struct quantized *quantized);
#endif
