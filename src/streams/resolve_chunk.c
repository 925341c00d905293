/* A wish for part of a stream in the stream's own order: the words outside the part are dropped
 * on the way (stream.chunk), and nothing is held. The stream's loops are split into digits; a
 * wanted loop walks a range of one digit, and a digit without a wanted loop stays where the
 * offset says; of a loop that sends the same again the first turns are taken. */
#include "itensor/box.h"
#include "streams/stream_builder.h"

#define DIGITS_MOST 16

struct chunk {
	int digits;
	struct digit {
		int loop; /* of the stream */
		int64_t trip, stride, low, high;
	} digit[DIGITS_MOST];
};

static const struct run_time_trip *run_time_of(struct sequence sequence, int loop)
{
	return sequence.run_time ? sequence.run_time[loop] : NULL;
}

static bool add_digit(
        struct chunk *chunk, int loop, int64_t trip, int64_t stride, int64_t wanted, int64_t *rest)
{
	/* of what is left some is a wider step of a loop that runs inside */
	int64_t low = *rest / stride % trip;
	*rest -= low * stride;
	if (chunk->digits == DIGITS_MOST || low + wanted > trip)
		return false;
	chunk->digit[chunk->digits++] = (struct digit){ loop, trip, stride, low, low + wanted };
	return true;
}

/* A wanted loop that walks points of one of the stream's loops with all that is inside it
 * becomes two: those, and the rest. */
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
		trips[i] = i == w ? trip : i == w + 1 ? want->trip[w] / trip : want->trip[from];
		strides[i] = i == w ? stride : want->stride[from];
		run_time[i] = run_time_of(*want, from);
	}
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
		if (!stride) { /* of what is sent again, the first times */
			bool again = w < want.dims && !want.stride[w];
			if (again && (run_time_of(want, w) || want.trip[w] > have.trip[l]))
				return false;
			chunk->digit[chunk->digits++] =
			        (struct digit){ l, have.trip[l], 0, 0, again ? want.trip[w] : 1 };
			w += again;
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
				/* a run-time trip count is no digit of another */
				return false;
			if (above % want.stride[w] ||
			        !add_digit(chunk, l, above / want.stride[w], want.stride[w],
			                want.trip[w], &rest))
				return false;
			above = want.stride[w];
		}
		if (above > stride &&
		        (run_time_of(have, l) ||
		                !add_digit(chunk, l, above / stride, stride, 1, &rest)))
			return false;
	}
	return w == want.dims && !rest;
}

/* The same words, counted by the chunk's digits. */
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
		const struct digit *digit = &chunk->digit[i];
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

static struct value *insert(struct module *module, struct op *before, enum op_code code,
        struct value *from, const struct type *tensor, const struct type *type)
{
	struct op *op = op_new(module, code, before->location, 1, &from, 1, &type);
	set_stream_tensor(module, op, tensor);
	op_insert_before(before, op);
	return op->result[0];
}

struct part {
	const struct type *words, *type; /* what is cut, what is left: in words of one width */
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
	/* what is dropped need not be made narrow first */
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

struct value *chunk_to(struct module *module, struct op *before, struct value *from,
        const struct type *tensor, const struct type *type)
{
	struct part part;
	if (!find_part(module, tensor, from->type, type, &part))
		return NULL;
	const struct chunk *chunk = &part.chunk;
	int64_t low[DIGITS_MOST];
	int64_t high[DIGITS_MOST];
	for (int i = 0; i < chunk->digits; i++) {
		low[i] = chunk->digit[i].low;
		high[i] = chunk->digit[i].high;
	}
	const struct type *split = split_type(
	        module, part.words, sequence_of_type(module->arena, tensor, part.words), chunk);
	struct value *value = part.words == from->type
	        ? from
	        : insert(module, before, OP_CAST, from, tensor, part.words);
	value = split == part.words ? value
	                            : insert(module, before, OP_REASSOCIATE, value, tensor, split);
	value = insert(module, before, OP_CHUNK, value, tensor, part.type);
	attr_set(module, value->def, KEY_LOW, attr_integers(module, chunk->digits, low));
	attr_set(module, value->def, KEY_HIGH, attr_integers(module, chunk->digits, high));
	return part.type == type ? value : insert(module, before, OP_CAST, value, tensor, type);
}

/* Addresses from the first element of all loops from `loop` on to the last. */
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

/* The stream's outermost loop without its first turns, and only so many. */
static const struct type *iterations_type(
        struct module *module, const struct type *stream, int64_t first, int64_t turns)
{
	const struct itensor *order = stream->itensor;
	int results = order->map.results;
	int dims = order->dims;
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, dims);
	int64_t *step = ARENA_ARRAY(module->arena, int64_t, dims);
	int64_t *rows = affine_rows(module->arena, dims, results);
	for (int l = 0; l < dims; l++) {
		trip[l] = l ? order->trip[l] : turns;
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

struct value *chunk_wanted(struct module *module, struct op *before, struct value *from,
        const struct type *tensor, const struct type *type)
{
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
	        ? chunk_to(module, before, from, tensor, part)
	        : NULL;
}
