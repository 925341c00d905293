/* Segments of buffers: how the words of a load or store lie in memory, as attributes. */
#include "base/number.h"
#include "ports/memory_image.h"

struct image image_of(struct arena *arena, struct sequence order)
{
	struct image image = {
		.order = order, .pitch = ARENA_ARRAY(arena, int64_t, order.dims + 1), .words = 1
	};
	for (int i = order.dims - 1; i >= 0; i--) {
		if (!order.stride[i])
			continue;
		image.pitch[i] = image.words;
		image.words *= order.trip[i];
	}
	return image;
}

int64_t memory_lanes(int64_t lanes)
{
	return power_of_two_from(lanes);
}

struct value *word_of_lanes(struct process *p, struct value *word, const struct type *wanted)
{
	int64_t lanes = type_lanes(wanted);
	int64_t own = type_lanes(word->type);
	const struct type *scalar = type_scalar(wanted);
	if (own == lanes)
		return word;
	struct value **lane = ARENA_ARRAY(p->module->arena, struct value *, lanes);
	for (int64_t i = 0; i < lanes; i++)
		lane[i] = i < own ? make_op(p, OP_LANE, scalar, 2,
		                            (struct value *[2]){ word, make_index(p, i) })
		                  : make_number(p, 0, scalar);
	return make_op(p, OP_JOIN_LANES, wanted, (int)lanes, lane);
}

const char *signature_name(struct design *design, bool output, int index)
{
	return attr_item(signature_of(design, output, index), KEY_NAME)->text;
}

bool is_state(struct design *design, int input)
{
	return text_same(attr_item(signature_of(design, false, input), KEY_ROLE)->text, "state");
}

const struct attr *walk_segment(
        struct design *design, const struct segment_place *place, const struct segment_walk *walk)
{
	struct module *module = design->module;
	const struct attr *entry = signature_of(design, place->output, place->index);
	struct named items[] = {
		{ key_name(KEY_NAME), attr_item(entry, KEY_NAME) },
		{ key_name(KEY_ROLE), attr_item(entry, KEY_ROLE) },
		{ key_name(KEY_OFFSET), attr_integer(module, place->offset) },
		{ key_name(KEY_BASE), attr_integer(module, walk->base) },
		{ key_name(KEY_TRIPS), attr_integers(module, walk->dims, walk->trip) },
		{ key_name(KEY_STRIDES), attr_integers(module, walk->dims, walk->stride) },
		{ key_name(KEY_CONDITIONS), attr_array(module, walk->conditions, walk->condition) },
		{ key_name(KEY_RUN), attr_integer(module, walk->run) },
		{ key_name(KEY_PITCH), attr_integer(module, walk->run_pitch) },
	};
	return attr_dictionary(module, walk->run ? 9 : 7, items);
}

/* Where a part of each word begins, [row_dims + 1], and how far it goes along the loops over rows
 * and, at last, along the lanes. */
struct word_part {
	int64_t *first, *trip;
};

/* Lanes `from` … `from + lanes - 1` of a word: of one row, or whole rows. */
static struct word_part part_of_word(
        struct design *design, const struct image *image, int64_t from, int64_t lanes)
{
	const struct sequence *order = &image->order;
	int rows = order->row_dims;
	int64_t row_lanes = sequence_row_lanes(order);
	struct word_part part = { ARENA_ARRAY(design->module->arena, int64_t, rows + 1),
		ARENA_ARRAY(design->module->arena, int64_t, rows + 1) };
	int64_t first = from / row_lanes;
	int64_t rest = lanes > row_lanes ? lanes / row_lanes : 1;
	part.first[rows] = from % row_lanes;
	part.trip[rows] = lanes / rest;
	bool whole = lanes % rest == 0 && part.first[rows] + part.trip[rows] <= row_lanes &&
	        (rest == 1 || !image->padding);
	for (int i = rows - 1; i >= 0; i--) {
		part.trip[i] = rest < order->row_trip[i] ? rest : order->row_trip[i];
		part.first[i] = first % order->row_trip[i];
		whole = whole && rest % part.trip[i] == 0 &&
		        part.first[i] + part.trip[i] <= order->row_trip[i];
		first /= order->row_trip[i];
		rest /= part.trip[i];
	}
	INVARIANT(design->module->guard, !rows || (whole && rest == 1),
	        "a word of several rows is cut within one");
	return part;
}

/* A condition on padding for a segment: without replays, for a part of each word. */
static const struct attr *segment_condition(struct design *design, const struct sequence *order,
        const int64_t *row, const struct word_part *part)
{
	int unrolled = order->row_dims + 1;
	int64_t *condition =
	        ARENA_ARRAY(design->module->arena, int64_t, order->dims + unrolled + 1);
	int at = 0;
	for (int i = 0; i < order->dims; i++)
		if (order->stride[i])
			condition[at++] = row[i];
	int64_t bound = row[order->dims + unrolled];
	for (int i = 0; i < unrolled; i++) {
		condition[at++] = row[order->dims + i];
		bound -= row[order->dims + i] * part->first[i];
	}
	condition[at++] = bound;
	return attr_integers(design->module, at, condition);
}

const struct attr *image_segment(struct design *design, const struct segment_place *place,
        const struct image *image, int64_t from, int64_t lanes)
{
	struct arena *arena = design->module->arena;
	const struct sequence *order = &image->order;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, order->dims + order->row_dims + 1);
	int64_t *stride = ARENA_ARRAY(arena, int64_t, order->dims + order->row_dims + 1);
	const struct word_part part = part_of_word(design, image, from, lanes);
	int64_t base = order->offset + part.first[order->row_dims] * order->lane_stride;
	int dims = 0;
	for (int i = 0; i < order->dims; i++) {
		if (!order->stride[i])
			continue;
		trip[dims] = order->trip[i];
		stride[dims++] = order->stride[i];
	}
	for (int i = 0; i < order->row_dims; i++) {
		base += part.first[i] * order->row_stride[i];
		trip[dims] = part.trip[i];
		stride[dims++] = order->row_stride[i];
	}
	trip[dims] = part.trip[order->row_dims] + image->padding;
	stride[dims++] = order->lane_stride;
	int count = order->conditions;
	const struct attr **conditions = ARENA_ARRAY(arena, const struct attr *, count + 2);
	for (int c = 0; c < order->conditions; c++)
		conditions[c] = segment_condition(design, order,
		        order->condition + c * (order->dims + order->row_dims + 2), &part);
	if (image->padding) {
		int64_t *lane_row = ARENA_ARRAY(arena, int64_t, dims + 1);
		lane_row[dims - 1] = 1;
		lane_row[dims] = part.trip[order->row_dims];
		conditions[count++] = attr_integers(design->module, dims + 1, lane_row);
	}
	return walk_segment(design, place,
	        &(struct segment_walk){ .base = base,
	                .dims = dims,
	                .trip = trip,
	                .stride = stride,
	                .conditions = count,
	                .condition = conditions,
	                .run = image->run,
	                .run_pitch = image->run_pitch });
}

const struct attr *plain_segment(
        struct design *design, const struct segment_place *place, int64_t base, int64_t elements)
{
	const int64_t one = 1;
	return walk_segment(design, place,
	        &(struct segment_walk){
	                .base = base, .dims = 1, .trip = &elements, .stride = &one });
}
