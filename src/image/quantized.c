/* Rounds, imports and describes quantized weights. */
#include "image/quantized.h"
#include "image/segment.h"
#include "st_math.h"
#include <string.h>

#define PART 1024 /* numbers processed at a time */
#define F16_MOST 65504.0f

const struct quantized *quantized_read(struct arena *arena, const struct attr *from)
{
	const struct attr *name = attr_item(from, KEY_NAME);
	const struct attr *type = attr_item(from, KEY_TYPE);
	const struct attr *part = attr_item(from, KEY_PART);
	const struct attr *bits = attr_item(from, KEY_BITS);
	const struct attr *axis = attr_item(from, KEY_AXIS);
	const struct attr *group = attr_item(from, KEY_GROUP);
	struct segment segment;
	if (!from || segment_read(arena, from, &segment) || !attr_item(from, KEY_BASE) ||
	        !attr_item(from, KEY_CONDITIONS) || !name || !type || !part || !bits || !axis ||
	        !group || group->integer < 1 || segment_elements(&segment) % group->integer)
		return NULL;
	segment.host_bytes = segment.image_bytes = 4;
	struct quantized *quantized = ARENA_NEW(arena, struct quantized);
	*quantized = (struct quantized){ .source = name->text,
		.type = type->type,
		.scales = text_same(part->text, "scale"),
		.zeros = text_same(part->text, "zero"),
		.has_zeros = attr_item(from, KEY_ZERO_POINTS) != NULL,
		.cast = text_same(part->text, "cast"),
		.bits = (int)bits->integer,
		.axis = (int)axis->integer,
		.group = group->integer,
		.shared = attr_item_integer(from, KEY_RUNS_PER_SCALE, 1),
		.block = attr_item_integer(from, KEY_BLOCK, 1),
		.from = segment };
	const struct attr *bias = attr_item(from, KEY_BIAS);
	const struct attr *vector = attr_item(from, KEY_VECTOR);
	const struct attr *bias_type = attr_item(bias, KEY_TYPE);
	const struct attr *vector_type = attr_item(vector, KEY_TYPE);
	if (text_same(part->text, "bias") && (!bias_type || !vector_type || segment.dims != 3))
		return NULL;
	if (bias_type && vector_type)
		quantized->folded_bias = (struct folded_bias){ attr_item_text(bias, KEY_NAME),
			attr_item_text(vector, KEY_NAME), bias_type->type, vector_type->type };
	int64_t block_runs = quantized->shared * quantized->block;
	return quantized->shared > 0 && quantized->block > 0 &&
	                quantized_runs(quantized) % block_runs == 0
	        ? quantized
	        : NULL;
}

static const struct attr *tensor_attr(
        struct module *module, const char *name, const struct type *type)
{
	struct named items[] = { { key_name(KEY_NAME), attr_string(module, name) },
		{ key_name(KEY_TYPE), attr_type(module, type) } };
	return attr_dictionary(module, 2, items);
}

/* The value of the attribute `part`. */
static const char *part_name(const struct quantized *quantized)
{
	if (quantized->folded_bias.bias)
		return "bias";
	if (quantized->cast)
		return "cast";
	if (quantized->zeros)
		return "zero";
	return quantized->scales ? "scale" : "q";
}

const struct attr *quantized_attr(struct module *module, const struct quantized *quantized)
{
	const struct segment *from = &quantized->from;
	const struct attr **limits =
	        ARENA_ARRAY(module->arena, const struct attr *, from->conditions + 1);
	for (int c = 0; c < from->conditions; c++)
		limits[c] = attr_integers(
		        module, from->dims + 1, from->condition + c * (from->dims + 1));
	const struct folded_bias *folded_bias = &quantized->folded_bias;
	struct named items[15] = {
		{ key_name(KEY_NAME), attr_string(module, quantized->source) },
		{ key_name(KEY_TYPE), attr_type(module, quantized->type) },
		{ key_name(KEY_PART), attr_string(module, part_name(quantized)) },
		{ key_name(KEY_BITS), attr_integer(module, quantized->bits) },
		{ key_name(KEY_AXIS), attr_integer(module, quantized->axis) },
		{ key_name(KEY_GROUP), attr_integer(module, quantized->group) },
		{ key_name(KEY_RUNS_PER_SCALE), attr_integer(module, quantized->shared) },
		{ key_name(KEY_BLOCK), attr_integer(module, quantized->block) },
		{ key_name(KEY_BASE), attr_integer(module, from->base) },
		{ key_name(KEY_TRIPS), attr_integers(module, from->dims, from->trip) },
		{ key_name(KEY_STRIDES), attr_integers(module, from->dims, from->stride) },
		{ key_name(KEY_CONDITIONS), attr_array(module, from->conditions, limits) },
	};
	int count = 12;
	if (quantized->has_zeros)
		items[count++] = (struct named){ key_name(KEY_ZERO_POINTS), attr_unit(module) };
	if (!folded_bias->bias)
		return attr_dictionary(module, count, items);
	items[count++] = (struct named){ key_name(KEY_BIAS),
		tensor_attr(module, folded_bias->bias, folded_bias->bias_type) };
	items[count++] = (struct named){ key_name(KEY_VECTOR),
		tensor_attr(module, folded_bias->vector, folded_bias->vector_type) };
	return attr_dictionary(module, count, items);
}

static bool same_numbers(const int64_t *left, const int64_t *right, int count)
{
	return !count || !memcmp(left, right, sizeof *left * (size_t)count);
}

static bool same_segment(const struct segment *left, const struct segment *right)
{
	return left->base == right->base && left->dims == right->dims &&
	        left->conditions == right->conditions &&
	        same_numbers(left->trip, right->trip, left->dims) &&
	        same_numbers(left->stride, right->stride, left->dims) &&
	        same_numbers(
	                left->condition, right->condition, left->conditions * (left->dims + 1));
}

bool quantized_same_runs(const struct quantized *left, const struct quantized *right)
{
	return text_same(left->source, right->source) && left->bits == right->bits &&
	        left->axis == right->axis && left->group == right->group &&
	        left->shared == right->shared && left->block == right->block &&
	        same_segment(&left->from, &right->from);
}

int64_t quantized_runs(const struct quantized *quantized)
{
	return segment_elements(&quantized->from) / quantized->group;
}

int64_t quantized_scales(const struct quantized *quantized)
{
	return quantized_runs(quantized) / quantized->shared;
}

/* The largest magnitude, as bits: infinities and NaN compare above all numbers. */
static uint32_t largest_of(const float *x, int64_t count, uint32_t most)
{
	for (int64_t i = 0; i < count; i++) {
		uint32_t size = st_bits(x[i]) & ~ST_SIGN_BIT;
		most = size > most ? size : most;
	}
	return most;
}

static uint16_t scale_bits(float largest, int bits)
{
	float scale = largest / (float)((1 << (bits - 1)) - 1);
	uint16_t half = st_f16_bits(scale < F16_MOST ? scale : F16_MOST);
	return half ? half : st_f16_bits(1.0f);
}

/* Clipped numbers are rounded by adding and subtracting a number so large that its fraction has no
 * bits. */
static void round_run(const float *x, int64_t count, float scale, int bits, int8_t *to)
{
	const float most = (float)((1 << (bits - 1)) - 1);
	const float whole = 12582912.0f;
	for (int64_t i = 0; i < count; i++) {
		float near = x[i] / scale;
		near = near > most ? most : near;
		near = near < -most ? -most : near;
		to[i] = (int8_t)(int32_t)(near + whole - whole);
	}
}

/* The run `member` among those that share scale number `scale`. */
static int64_t run_of(const struct quantized *quantized, int64_t scale, int64_t member)
{
	return (scale / quantized->block * quantized->shared + member) * quantized->block +
	        scale % quantized->block;
}

/* Linear address in the weight of a run's first number. */
static int64_t run_address(const struct quantized *quantized, int64_t run)
{
	const struct segment *from = &quantized->from;
	int64_t left = run * quantized->group;
	int64_t at = from->base;
	for (int d = from->dims - 1; d >= 0; d--) {
		at += left % from->trip[d] * from->stride[d];
		left /= from->trip[d];
	}
	return at;
}

struct rounding {
	const struct quantized *quantized;
	const void *weight;
	float part[PART]; /* numbers of a run */
};

/* Reads the numbers of a run from number `at` on, `some` of them. */
static void read_part(struct rounding *r, int64_t run, int64_t at, int64_t some)
{
	const struct segment *from = &r->quantized->from;
	int last = from->dims - 1;
	int64_t first = run * r->quantized->group + at;
	int64_t address = run_address(r->quantized, run) + at;
	if (from->conditions || last < 0 || from->stride[last] != 1 ||
	        from->trip[last] % r->quantized->group)
		segment_pack(from, r->weight, r->part, first, first, some);
	else
		memcpy(r->part, (const char *)r->weight + address * (int64_t)sizeof *r->part,
		        (size_t)some * sizeof *r->part);
}

static int64_t part_of(int64_t left)
{
	return left < PART ? left : PART;
}

/* The largest number of the runs that share scale number `scale`, as largest_of. */
static uint32_t runs_largest(struct rounding *r, int64_t scale)
{
	int64_t group = r->quantized->group;
	uint32_t largest = 0;
	for (int64_t member = 0; member < r->quantized->shared; member++)
		for (int64_t at = 0; at < group; at += PART) {
			int64_t some = part_of(group - at);
			read_part(r, run_of(r->quantized, scale, member), at, some);
			largest = largest_of(r->part, some, largest);
		}
	return largest;
}

/* Rounds these runs; where they fit in `part`, runs_largest has left them in it. */
static void runs_values(struct rounding *r, int64_t scale, float value, int8_t *values)
{
	int64_t group = r->quantized->group;
	bool whole = r->quantized->shared == 1 && group <= PART;
	for (int64_t member = 0; member < r->quantized->shared; member++)
		for (int64_t at = 0; at < group; at += PART) {
			int64_t run = run_of(r->quantized, scale, member);
			int64_t some = part_of(group - at);
			if (!whole)
				read_part(r, run, at, some);
			round_run(r->part, some, value, r->quantized->bits,
			        values + run * group + at);
		}
}

bool quantized_round(const struct quantized *quantized, const void *weight, int8_t *values,
        uint16_t *scales, const volatile sig_atomic_t *stop)
{
	struct rounding r = { .quantized = quantized, .weight = weight };
	for (int64_t s = 0, count = quantized_scales(quantized); s < count; s++) {
		uint32_t largest = runs_largest(&r, s);
		if (largest >= ST_INF_BITS || (stop && *stop))
			return false;
		uint16_t scale = scale_bits(st_float(largest), quantized->bits);
		if (scales)
			scales[s] = scale;
		if (values)
			runs_values(&r, s, st_f16_value(scale), values);
	}
	return true;
}

int64_t quantized_groups(const struct quantized *quantized)
{
	return quantized->shared > 1
	        ? 1
	        : (quantized->type->shape[quantized->axis] + quantized->group - 1) /
	                quantized->group;
}

static int64_t scale_index(const struct quantized *quantized, int64_t address)
{
	const struct type *type = quantized->type;
	int64_t index = 0;
	int64_t pitch = 1;
	for (int d = type->rank - 1; d >= 0; d--) {
		int64_t at = address % type->shape[d];
		int64_t extent = type->shape[d];
		address /= type->shape[d];
		if (d == quantized->axis) {
			at = quantized->shared > 1 ? 0 : at / quantized->group;
			extent = quantized_groups(quantized);
		}
		index += at * pitch;
		pitch *= extent;
	}
	return index;
}

void quantized_import(const struct quantized *quantized, const struct rounded_weight *from,
        struct quantized_parts to)
{
	struct segment order = quantized->from;
	order.host_bytes = order.image_bytes = 1;
	if (to.values)
		segment_pack(&order, from->integers, to.values, 0, 0, segment_elements(&order));
	int64_t count = to.scales || to.zeros ? quantized_scales(quantized) : 0;
	for (int64_t s = 0; s < count; s++) {
		int64_t address = run_address(quantized, run_of(quantized, s, 0));
		int64_t at = scale_index(quantized, address);
		if (to.scales)
			memcpy(&to.scales[s], (const char *)from->scales + 2 * at,
			        sizeof *to.scales);
		if (to.zeros)
			to.zeros[s] = from->zeros ? ((const int8_t *)from->zeros)[at] : 0;
	}
}

static float number_at(const void *numbers, int64_t at)
{
	float number;
	/* tensors of a file need not be aligned */
	memcpy(&number, (const char *)numbers + at * (int64_t)sizeof number, sizeof number);
	return number;
}

bool quantized_folded_bias(const struct quantized *quantized,
        const struct folded_bias_sources *sources, float *to, const volatile sig_atomic_t *stop)
{
	const int64_t *trip = quantized->from.trip;
	const int64_t one[3] = { 1, trip[1], trip[2] };
	const int64_t count = type_elements(quantized->folded_bias.vector_type);
	const struct quantized_parts part = sources->row;
	struct quantized row = *quantized;
	row.from.trip = one;
	for (int64_t n = 0; n < trip[0]; n++) {
		row.from.base = quantized->from.base + n * quantized->from.stride[0];
		if (!sources->weight)
			quantized_import(&row, &sources->rounded, part);
		else if (!quantized_round(&row, sources->weight, part.values, part.scales, stop))
			return false;
		double sum = (double)number_at(sources->bias, n);
		for (int64_t k = 0; k < count; k++) {
			int64_t s = k / quantized->group / quantized->shared;
			int integer = part.values[k] - (sources->weight ? 0 : part.zeros[s]);
			sum += (double)st_f16_value(part.scales[s]) * integer *
			        (double)number_at(sources->vector, k);
		}
		to[n] = (float)sum;
	}
	return true;
}
