/* A quantized argument and its source: an f32 tensor of the weights file that is rounded to
 * nearest, or a tensor that was quantized elsewhere (NAME.q, NAME.scale and maybe NAME.zero). */
#ifndef STC_QUANTIZED_WEIGHT_H
#define STC_QUANTIZED_WEIGHT_H
#include "import/weights.h"
#include "image/quantized.h"

struct quantized_weight {
	const struct quantized *from;
	const void *weight;                     /* f32; NULL: integers and scales */
	struct rounded_weight rounded;          /* quantized elsewhere */
	struct folded_bias_sources folded_bias; /* of a folded bias */
};

/* Finds the source of an argument; from: the attribute stream.derived_from.  NULL after a
 * diagnostic. */
const struct quantized_weight *quantized_weight_find(
        struct arena *arena, struct diag *diag, struct weights *weights, const struct attr *from);
/* Are they the integers and the scales of the same weight? */
bool quantized_weight_pairs(
        const struct quantized_weight *left, const struct quantized_weight *right);
/* Fills `data` in the format of main's argument: integers or zero points of a byte each, f16
 * scales, bf16, or the f32 of a folded bias.  If it is integers and `scales` is not NULL, also
 * fills their scales.  false: the weight holds an infinity or a NaN, or *stop was set. */
bool quantized_weight_fill(const struct quantized_weight *weight, void *data, uint16_t *scales,
        const volatile sig_atomic_t *stop);
size_t quantized_weight_bytes(const struct quantized_weight *weight);
/* Releases the memory of the source, as weights_release. */
void quantized_weight_release(const struct quantized_weight *weight);
#endif
