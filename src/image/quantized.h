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
	/* the f16 scales, the zero points or the numbers in another float type; none of these: the
	 * integers */
	bool scales, zeros, cast;
	/* numbers that share a scale have a zero point too: (integer - zero point) * scale */
	bool has_zeros;
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

/* A weight that was rounded elsewhere: integers in its shape, f16 scales and int8 zero points in
 * that shape with groups in place of dim `axis`. zeros: NULL: all are 0. */
struct rounded_weight {
	const void *integers, *scales, *zeros;
};

/* What is derived from a weight: values: [runs * group]; scales, zeros: [quantized_scales]. Those
 * that are NULL are not wanted. */
struct quantized_parts {
	int8_t *values;
	uint16_t *scales;
	int8_t *zeros;
};

/* The same as quantized_round for a weight that was rounded elsewhere. */
void quantized_import(const struct quantized *quantized, const struct rounded_weight *from,
        struct quantized_parts to);
/* The folded bias to[n] = bias[n] + Σ_k, for runs in rows as the trips [outputs][groups][group]
 * say. weight: f32, or NULL: `rounded` holds it. row: scratch for one row. false: as
 * quantized_round. */
struct folded_bias_sources {
	const void *weight, *bias, *vector;
	struct rounded_weight rounded;
	struct quantized_parts row;
};
bool quantized_folded_bias(const struct quantized *quantized,
        const struct folded_bias_sources *sources, float *to, const volatile sig_atomic_t *stop);
/* Extent of dim `axis` of the scales. */
int64_t quantized_groups(const struct quantized *quantized);
#endif
