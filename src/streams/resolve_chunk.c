/* Satisfies a demand for a part of a stream that is in the stream's own order: the other words are
 * dropped by stream.chunk, and nothing is buffered.
 *
 * The stream's loops are split into digits. A wanted loop walks a range of one digit, and a digit
 * without a wanted loop stays where the offset says; of a replay loop the first iterations are
 * taken. */
#include "itensor/box.h"
#include "streams/stream_builder.h"

#define DIGITS_MOST 16

/* A split of one of the stream's loops, and the range of it that is kept. */
struct chunk_digit {
	int loop;
	int64_t trip, stride, low, high;
};

struct chunk {
	int digits;
	struct chunk_digit digit[DIGITS_MOST];
};

static const struct run_time_trip *run_time_of(struct sequence sequence, int loop)
{
	return sequence.run_time ? sequence.run_time[loop] : NULL;
}

/* Adds a digit of which `wanted` iterations are kept; they begin where the rest of the offset says,
 * which they reduce. */
static bool add_digit(struct chunk *chunk, struct chunk_digit digit, int64_t wanted, int64_t *rest)
{
	/* a part of the rest may be a wider step of a loop further inside */
	digit.low = *rest / digit.stride % digit.trip;
	digit.high = digit.low + wanted;
	*rest -= digit.low * digit.stride;
	if (chunk->digits == DIGITS_MOST || digit.high > digit.trip)
		return false;
	chunk->digit[chunk->digits++] = digit;
	return true;
}

/* Splits a wanted loop that runs over one of the stream's loops and everything inside it into two:
 * the part along that loop, and the rest. */
static void split_wanted(struct arena *arena, struct sequence *want, int w, int64_t stride)
{
	if (w == want->dims || run_time_of(*want, w) || want->stride[w] >= stride ||
	        want->stride[w] <= 0 || stride % want->stride[w] ||
	        want->stride[w] * want->trip[w] % stride)
		return;
	int64_t trip = want->stride[w] * want->trip[w] / stride;
	int64_t *trips = ARENA_ARRAY(arena, int64_t, want->dims + 1);
	int64_t *strides = ARENA_ARRAY(arena, int64_t, want->dims + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, want->dims + 1);
	for (int i = 0; i <= want->dims; i++) {
		int from = i > w ? i - 1 : i;
		trips[i] = i == w ? trip : want->trip[from];

		strides[i] = i == w ? stride : want->stride[from];
		run_time[i] = run_time_of(*want, from);
	}
	trips[w + 1] = want->trip[w] / trip;
	want->trip = trips;
	want->stride = strides;
	want->run_time = run_time;
	want->dims++;
}

/* false: `want` is no part of `have` in its order. */
static bool find_chunk(
        struct arena *arena, struct sequence have, struct sequence want, struct chunk *chunk)
{
	int64_t rest = want.offset - have.offset;
	int w = 0;
	chunk->digits = 0;
	if (have.conditions || want.conditions || have.lanes != want.lanes ||
	        have.lane_stride != want.lane_stride || rest < 0)
		return false;
	for (int l = 0; l < have.dims; l++) {
		int64_t stride = have.stride[l];
		int64_t above = stride * have.trip[l];
		if (stride < 0 || chunk->digits == DIGITS_MOST || (!stride && run_time_of(have, l)))
			return false;
		if (!stride) { /* of repeated words the first repetitions */
			bool is_replay = w < want.dims && !want.stride[w];
			if (is_replay && (run_time_of(want, w) || want.trip[w] > have.trip[l]))
				return false;
			chunk->digit[chunk->digits++] = (struct chunk_digit){ l, have.trip[l], 0, 0,
				is_replay ? want.trip[w] : 1 };
			w += is_replay;
			continue;
		}
		if (!run_time_of(have, l))
			split_wanted(arena, &want, w, stride);
		for (; w < want.dims && want.stride[w] >= stride && want.stride[w] < above &&
		        want.stride[w] % stride == 0;
		        w++) {
			bool whole = want.stride[w] == stride && above == stride * have.trip[l] &&
			        want.trip[w] == have.trip[l];
			if (!run_time_same(run_time_of(have, l), run_time_of(want, w)) ||
			        (run_time_of(have, l) && !whole))
				/* a run-time trip count cannot be split */
				return false;
			const struct chunk_digit digit = {
				.loop = l, .trip = above / want.stride[w], .stride = want.stride[w]
			};
			if (above % want.stride[w] || !add_digit(chunk, digit, want.trip[w], &rest))
				return false;
			above = want.stride[w];
		}
		const struct chunk_digit digit = {
			.loop = l, .trip = above / stride, .stride = stride
		};
		if (above > stride && (run_time_of(have, l) || !add_digit(chunk, digit, 1, &rest)))
			return false;
	}
	return w == want.dims && !rest;
}

/* The same words with the loops split into the chunk's digits. */
static const struct type *split_type(struct module *module, const struct type *stream,
        struct sequence have, const struct chunk *chunk)
{
	const struct itensor *order = stream->itensor;
	int results = order->map.results;
	int dims = chunk->digits;
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, dims + 1);
	int64_t *step = ARENA_ARRAY(module->arena, int64_t, dims + 1);
	int64_t *rows = affine_rows(module->arena, dims, results);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(module->arena, const struct run_time_trip *, dims + 1);
	for (int i = 0; i < dims; i++) {
		const struct chunk_digit *digit = &chunk->digit[i];
		trip[i] = digit->trip;
		run_time[i] = run_time_of(have, digit->loop);
		step[i] = order->step[digit->loop] *
		        (digit->stride ? digit->stride / have.stride[digit->loop] : 1);
		for (int r = 0; r < results; r++)
			rows[r * (dims + 1) + i] = affine_at(order->map, r, digit->loop);
	}
	for (int r = 0; r < results; r++)
		rows[r * (dims + 1) + dims] = affine_constant(order->map, r);
	const struct itensor split = { .dims = dims,
		.trip = trip,
		.step = step,
		.run_time = run_time,
		.map = { .dims = dims, .results = results, .coefficient = rows } };
	return type_itensor(module, stream->element, &split);
}

struct op *insert_stream_op(
        const struct insertion *at, enum op_code code, struct value *from, const struct type *type)
{
	struct op *op = op_new(at->module, code, at->before->location, 1, &from, 1, &type);
	set_stream_tensor(at->module, op, at->tensor);
	op_insert_before(at->before, op);
	return op;
}

struct part {
	const struct type *words, *type; /* before and after the chunk, in words of one width */
	struct chunk chunk;
};

static bool find_in_words(struct module *module, const struct type *tensor,
        const struct type *words, const struct type *type, struct part *part)
{
	part->words = words;
	part->type = type;
	return find_chunk(module->arena, sequence_of_type(module->arena, tensor, words),
	        sequence_of_type(module->arena, tensor, type), &part->chunk);
}

static bool find_part(struct module *module, const struct type *tensor, const struct type *from,
        const struct type *type, struct part *part)
{
	int64_t lanes = stream_lanes(type);
	int64_t most = stream_lanes(from);
	/* words that are dropped need not be made narrow first */
	const struct type *wide = most > lanes ? type_regroup(module, type, most) : NULL;
	if (wide && find_in_words(module, tensor, from, wide, part))
		return true;
	const struct type *words = most == lanes ? from : type_regroup(module, from, lanes);
	return words && find_in_words(module, tensor, words, type, part);
}

bool is_chunk(struct module *module, const struct type *tensor, const struct type *from,
        const struct type *type)
{
	struct part part;
	return find_part(module, tensor, from, type, &part);
}

struct value *chunk_to(const struct insertion *at, struct value *from, const struct type *type)
{
	struct module *module = at->module;
	struct part part;
	if (!find_part(module, at->tensor, from->type, type, &part))
		return NULL;
	const struct chunk *chunk = &part.chunk;
	int64_t low[DIGITS_MOST];
	int64_t high[DIGITS_MOST];
	for (int i = 0; i < chunk->digits; i++) {
		low[i] = chunk->digit[i].low;
		high[i] = chunk->digit[i].high;
	}
	const struct type *split = split_type(
	        module, part.words, sequence_of_type(module->arena, at->tensor, part.words), chunk);
	struct value *value = from;
	if (part.words != from->type)
		value = insert_stream_op(at, OP_CAST, value, part.words)->result[0];
	if (split != part.words)
		value = insert_stream_op(at, OP_REASSOCIATE, value, split)->result[0];
	value = insert_stream_op(at, OP_CHUNK, value, part.type)->result[0];
	attr_set(module, value->def, KEY_LOW, attr_integers(module, chunk->digits, low));
	attr_set(module, value->def, KEY_HIGH, attr_integers(module, chunk->digits, high));
	return part.type == type ? value : insert_stream_op(at, OP_CAST, value, type)->result[0];
}

/* Distance in addresses from the first element of the loops from `loop` on to the last one. */
static int64_t reach_from(struct sequence sequence, int loop)
{
	int64_t reach = (sequence.lanes - 1) * sequence.lane_stride;
	for (int l = loop; l < sequence.dims; l++)
		reach += sequence.stride[l] * (sequence.trip[l] - 1);
	return reach;
}

static bool goes_forward(struct sequence sequence)
{
	bool forward = !sequence.conditions && sequence.lane_stride >= 0;
	for (int l = 0; l < sequence.dims; l++)
		forward = forward && sequence.stride[l] >= 0;
	return forward;
}

/* The stream's outermost loop from iteration `first` on, `count` iterations. */
static const struct type *iterations_type(
        struct module *module, const struct type *stream, int64_t first, int64_t count)
{
	const struct itensor *order = stream->itensor;
	int results = order->map.results;
	int dims = order->dims;
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, dims);
	int64_t *step = ARENA_ARRAY(module->arena, int64_t, dims);
	int64_t *rows = affine_rows(module->arena, dims, results);
	for (int l = 0; l < dims; l++) {
		trip[l] = l ? order->trip[l] : count;
		step[l] = order->step[l];
	}
	for (int r = 0; r < results; r++) {
		for (int l = 0; l < dims; l++)
			rows[r * (dims + 1) + l] = affine_at(order->map, r, l);
		rows[r * (dims + 1) + dims] = affine_constant(order->map, r) +
		        affine_at(order->map, r, 0) * order->step[0] * first;
	}
	return type_canonical(module, stream->element,
	        &(struct itensor){ .dims = dims,
	                .trip = trip,
	                .step = step,
	                .run_time = order->run_time,
	                .map = { dims, results, rows } });
}

static int64_t box_holds(struct module *module, const struct type *tensor, const struct type *from,
        const struct type *type)
{
	struct box box = box_between(module->arena, tensor, from, type, BOX_LEAST);
	return box.why ? INT64_MAX : box.elements * box.halves;
}

struct value *chunk_wanted(const struct insertion *at, struct value *from, const struct type *type)
{
	struct module *module = at->module;
	const struct type *tensor = at->tensor;
	struct sequence have = sequence_of_type(module->arena, tensor, from->type);
	struct sequence want = sequence_of_type(module->arena, tensor, type);
	if (!have.dims || run_time_of(have, 0) || !goes_forward(have) || !goes_forward(want) ||
	        have.stride[0] <= reach_from(have, 1) || want.offset < have.offset)
		return NULL;
	int64_t first = (want.offset - have.offset) / have.stride[0];
	int64_t last = (want.offset - have.offset + reach_from(want, 0)) / have.stride[0];
	if (last >= have.trip[0] || last - first + 1 == have.trip[0])
		return NULL;
	const struct type *part = iterations_type(module, from->type, first, last - first + 1);
	return box_holds(module, tensor, part, type) < box_holds(module, tensor, from->type, type)
	        ? chunk_to(at, from, part)
	        : NULL;
}
