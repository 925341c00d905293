/* Finds the tensors of the weights file that a quantized argument is derived from, and computes its
 * integers, scales or folded biases. */
#include "driver/quantized_weight.h"
#include "st_math.h"
#include <string.h>

/* A tensor type outside any module, for comparing with those of the weights file. */
static struct type tensor_like(
        struct arena *arena, const struct type *like, const struct type *scalar)
{
	struct type type = *like;
	type.element = scalar;
	type.shape = arena_copy(arena, like->shape, sizeof *like->shape * (size_t)like->rank);
	struct text text = text_new(arena);
	for (int d = 0; d < like->rank; d++)
		text_add(&text, "%s%lld", d ? "x" : "", (long long)like->shape[d]);
	type.text = text_format(arena, "tensor<%sx%s>", text.data ? text.data : "", scalar->text);
	return type;
}

/* Finds the further sources of a folded bias.  NULL after a diagnostic. */
static const struct quantized_weight *find_bias_sources(
        struct arena *arena, struct weights *weights, struct quantized_weight *weight)
{
	const struct quantized *from = weight->from;
	if (!from->folded_bias.bias)
		return weight;
	const struct weight *bias =
	        weights_find(weights, from->folded_bias.bias, from->folded_bias.bias_type);
	const struct weight *vector = NULL;
	if (bias)
		vector = weights_find(
		        weights, from->folded_bias.vector, from->folded_bias.vector_type);
	if (!vector)
		return NULL;
	int64_t groups = from->from.trip[1];
	weight->folded_bias = (struct folded_bias_sources){
		weight->weight, bias->data, vector->data, weight->rounded,
		{ arena_alloc(arena, (size_t)(groups * from->group)),
		        ARENA_ARRAY(arena, uint16_t, groups), arena_alloc(arena, (size_t)groups) }
	};
	return weight;
}

/* The zero points of a weight that was quantized elsewhere, where it has any.  false: after a
 * diagnostic. */
static bool find_zeros(struct arena *arena, struct diag *diag, struct weights *weights,
        const struct type *type, struct quantized_weight *weight)
{
	const char *source = weight->from->source;
	const char *name = text_format(arena, "%s.zero", source);
	if (!weights_has(weights, name))
		return true;
	if (!weight->from->has_zeros) {
		diag_error(diag, NOWHERE,
		        "\"%s\" is in the weights file, but the design has no zero points", name);
		return diag_note(diag, "--quant w4a8,zero=group or w8a8,zero=group has them");
	}
	const struct weight *zeros = weights_find(weights, name, type);
	weight->rounded.zeros = zeros ? zeros->data : NULL;
	return zeros;
}

/* A weight that was quantized elsewhere: NAME.q with NAME.scale. */
static const struct quantized_weight *find_prequantized(struct arena *arena, struct diag *diag,
        struct weights *weights, const struct quantized *from)
{
	static const struct type byte = { .kind = TYPE_INTEGER, .width = 8, .text = "i8" };
	static const struct type half = { .kind = TYPE_FLOAT, .width = 16, .text = "f16" };
	const char *q = text_format(arena, "%s.q", from->source);
	const char *scale = text_format(arena, "%s.scale", from->source);
	if (from->axis < 0) {
		diag_error(diag, NOWHERE,
		        "\"%s\" is in the weights file, but the reduction is not along one "
		        "dimension of \"%s\"",
		        q, from->source);
		diag_note(
		        diag, "provide \"%s\" in f32, which the compiler quantizes", from->source);
		return NULL;
	}
	struct type integers = tensor_like(arena, from->type, &byte);
	struct type scales = tensor_like(arena, from->type, &half);
	((int64_t *)(uintptr_t)scales.shape)[from->axis] = quantized_groups(from);
	scales = tensor_like(arena, &scales, &half);
	const struct weight *found = weights_find(weights, q, &integers);
	const struct weight *scaled = found ? weights_find(weights, scale, &scales) : NULL;
	struct quantized_weight *weight = ARENA_NEW(arena, struct quantized_weight);
	if (!scaled)
		return NULL;
	*weight = (struct quantized_weight){ .from = from,
		.rounded = { .integers = found->data, .scales = scaled->data } };
	struct type zeros = tensor_like(arena, &scales, &byte);
	if (!find_zeros(arena, diag, weights, &zeros, weight))
		return NULL;
	return find_bias_sources(arena, weights, weight);
}

const struct quantized_weight *quantized_weight_find(
        struct arena *arena, struct diag *diag, struct weights *weights, const struct attr *attr)
{
	const struct quantized *from = quantized_read(arena, attr);
	if (!from) {
		diag_error(diag, NOWHERE,
		        "stream.derived_from of an argument is no description of a quantised "
		        "weight");
		diag_note(diag,
		        "name, type, part, bits, axis, group, base, trips, strides, conditions");
		return NULL;
	}
	if (!from->cast && weights_has(weights, text_format(arena, "%s.q", from->source)) &&
	        (from->group != from->type->shape[from->type->rank - 1] ||
	                !weights_has(weights, from->source)))
		return find_prequantized(arena, diag, weights, from);
	const struct weight *found = weights_find(weights, from->source, from->type);
	struct quantized_weight *weight = ARENA_NEW(arena, struct quantized_weight);
	if (!found)
		return NULL;
	*weight = (struct quantized_weight){ .from = from, .weight = found->data };
	return find_bias_sources(arena, weights, weight);
}

size_t quantized_weight_bytes(const struct quantized_weight *weight)
{
	const struct quantized *from = weight->from;
	if (from->folded_bias.bias)
		return sizeof(float) * (size_t)from->from.trip[0];
	if (from->cast)
		return (size_t)(2 * type_elements(from->type));
	if (from->zeros)
		return (size_t)quantized_scales(from);
	if (from->scales)
		return (size_t)(2 * quantized_scales(from));
	return (size_t)segment_elements(&from->from);
}

/* Rounds to bf16; tensors of a file may be unaligned. */
static bool cast(const struct quantized_weight *weight, uint16_t *to)
{
	int64_t elements = type_elements(weight->from->type);
	for (int64_t i = 0; i < elements; i++) {
		float number;
		memcpy(&number, (const char *)weight->weight + i * (int64_t)sizeof number,
		        sizeof number);
		to[i] = st_bf16_bits(number);
	}
	return true;
}

bool quantized_weight_pairs(
        const struct quantized_weight *left, const struct quantized_weight *right)
{
	const struct quantized *a = left->from;
	const struct quantized *b = right->from;
	return !a->cast && !b->cast && !a->folded_bias.bias && !b->folded_bias.bias && !a->zeros &&
	        !b->zeros && a->scales != b->scales && left->weight == right->weight &&
	        left->rounded.integers == right->rounded.integers && quantized_same_runs(a, b);
}

bool quantized_weight_fill(const struct quantized_weight *weight, void *data, uint16_t *scales,
        const volatile sig_atomic_t *stop)
{
	const struct quantized *from = weight->from;
	if (from->cast)
		return cast(weight, data);
	if (from->folded_bias.bias)
		return quantized_folded_bias(from, &weight->folded_bias, data, stop);
	if (from->zeros && weight->weight) {
		memset(data, 0, quantized_weight_bytes(weight));
		return true;
	}
	struct quantized_parts to = { .scales = scales };
	if (from->scales)
		to.scales = data;
	else
		*(from->zeros ? &to.zeros : &to.values) = data;
	if (weight->weight)
		return quantized_round(from, weight->weight, to.values, to.scales, stop);
	quantized_import(from, &weight->rounded, to);
	return true;
}

void quantized_weight_release(const struct quantized_weight *weight)
{
	size_t elements = (size_t)type_elements(weight->from->type);
	if (weight->weight)
		weights_release(weight->weight, elements * sizeof(float));
	else
		weights_release(weight->rounded.integers, elements);
}
