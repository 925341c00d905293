/* A weight of few bits and what it is made from: a tensor of the weights file that is rounded to
 * nearest, or one that was rounded elsewhere (NAME.q with NAME.scale). */
#ifndef STC_QUANTIZED_WEIGHT_H
#define STC_QUANTIZED_WEIGHT_H
#include "import/weights.h"
#include "image/quantized.h"

struct quantized_weight {
	const struct quantized *from;
	const void *weight; /* f32; NULL: the two below */
	const void *integers, *scales;
	struct folded_bias_sources folded_bias; /* of a moved bias */
};

/* from: the attribute stream.derived_from.  NULL after a diagnostic. */
const struct quantized_weight *quantized_weight_find(
        struct arena *arena, struct diag *diag, struct weights *weights, const struct attr *from);
/* Two parts of the same runs: integers and scales. */
bool quantized_weight_pairs(
        const struct quantized_weight *left, const struct quantized_weight *right);
/* As main's argument has it: integers a byte each, or f16 scales, or bf16, or f32 of a moved
 * bias.  scales: beside integers, the scales of their runs; NULL: nobody wants them. False: the
 * weight holds a number that is infinite or not a number, or *stop was set. */
bool quantized_weight_fill(const struct quantized_weight *weight, void *data, uint16_t *scales,
        const volatile sig_atomic_t *stop);
size_t quantized_weight_bytes(const struct quantized_weight *weight);
/* as weights_release */
void quantized_weight_release(const struct quantized_weight *weight);
#endif
