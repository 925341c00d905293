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

const char *signature_name(struct design *design, bool output, int index)
{
	return attr_item(signature_of(design, output, index), KEY_NAME)->text;
}

bool is_state(struct design *design, int input)
{
	return text_same(attr_item(signature_of(design, false, input), KEY_ROLE)->text, "state");
}

static const struct attr *segment(struct design *design, bool output, int index, int64_t offset,
        int64_t base, int dims, const int64_t *trip, const int64_t *stride, int conditions,
        const struct attr *const *condition, int64_t run, int64_t pitch)
{
	struct module *module = design->module;
	const struct attr *entry = signature_of(design, output, index);
	struct named items[] = {
		{ key_name(KEY_NAME), attr_item(entry, KEY_NAME) },
		{ key_name(KEY_ROLE), attr_item(entry, KEY_ROLE) },
		{ key_name(KEY_OFFSET), attr_integer(module, offset) },
		{ key_name(KEY_BASE), attr_integer(module, base) },
		{ key_name(KEY_TRIPS), attr_integers(module, dims, trip) },
		{ key_name(KEY_STRIDES), attr_integers(module, dims, stride) },
		{ key_name(KEY_CONDITIONS), attr_array(module, conditions, condition) },
		{ key_name(KEY_RUN), attr_integer(module, run) },
		{ key_name(KEY_PITCH), attr_integer(module, pitch) },
	};
	return attr_dictionary(module, run ? 9 : 7, items);
}

const struct attr *image_segment(struct design *design, bool output, int index,
        const struct image *image, int64_t from, int64_t lanes, int64_t offset)
{
	struct arena *arena = design->module->arena;
	const struct sequence *order = &image->order;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, order->dims + 1);
	int64_t *stride = ARENA_ARRAY(arena, int64_t, order->dims + 1);
	int dims = 0;
	for (int i = 0; i < order->dims; i++) {
		if (!order->stride[i])
			continue;
		trip[dims] = order->trip[i];
		stride[dims++] = order->stride[i];
	}
	trip[dims] = lanes;
	stride[dims++] = order->lane_stride;
	const struct attr **conditions =
	        ARENA_ARRAY(arena, const struct attr *, order->conditions + 1);
	for (int c = 0; c < order->conditions; c++) {
		const int64_t *row = order->condition + c * (order->dims + 2);
		int64_t *condition_row = ARENA_ARRAY(arena, int64_t, dims + 1);
		int at = 0;
		for (int i = 0; i < order->dims; i++)
			if (order->stride[i])
				condition_row[at++] = row[i];
		condition_row[at++] = row[order->dims];
		condition_row[at] = row[order->dims + 1] - from * row[order->dims];
		conditions[c] = attr_integers(design->module, dims + 1, condition_row);
	}
	return segment(design, output, index, offset, order->offset + from * order->lane_stride,
	        dims, trip, stride, order->conditions, conditions, image->run, image->run_pitch);
}

const struct attr *plain_segment(struct design *design, bool output, int index, int64_t base,
        int64_t elements, int64_t offset)
{
	const int64_t one = 1;
	return segment(design, output, index, offset, base, 1, &elements, &one, 0, NULL, 0, 0);
}

const struct attr *strided_segment(struct design *design, int input, int64_t base, int dims,
        const int64_t *trip, const int64_t *stride, int64_t offset)
{
	return segment(design, false, input, offset, base, dims, trip, stride, 0, NULL, 0, 0);
}
