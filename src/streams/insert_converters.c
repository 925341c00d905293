/* Resolves each demand (a stream wanted in some type) into the cheapest op:
 *     nothing      if both types denote the same words (a cast, where a loop carries them),
 *     a cast       if the elements come in the same order in words of another width,
 *     a chunk      if it is a part of the stream in the stream's order,
 *     a converter  otherwise, shared by all readers that want the same type.
 * Streams may still have several readers (share_buffers.c).
 * Needs: demands. Guarantees: none is left. Exact. Ends: one walk over the streams. */
#include "itensor/line_buffer.h"
#include "converter/causal_buffer.h"
#include "converter/replay_buffer.h"
#include "ir/affine.h"
#include "streams/choose_drain_order.h"
#include "streams/stream_builder.h"
#include "streams/streams_passes.h"

#define SHARED_LEAST (8 * 4096) /* least bits of a converter that is worth sharing */

static bool is_demand(const struct op *op)
{
	return op->code == OP_CONVERT && attr_get(op, KEY_DEMAND);
}

static void collect_demands(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			collect_demands(module, op->region[0]);
		if (!is_demand(op))
			continue;
		struct demand_list *readers = op->operand[0]->data
		        ? op->operand[0]->data
		        : ARENA_NEW(module->arena, struct demand_list);
		op->operand[0]->data = readers;
		VEC_PUSH(module->arena, readers, op);
	}
}

static struct value *cast_to(
        const struct insertion *at, struct value *from, const struct type *type)
{
	return from->type == type ? from : insert_stream_op(at, OP_CAST, from, type)->result[0];
}

/* A demand, and where the ops that satisfy it are inserted. */
struct request {
	struct op *demand;
	struct insertion at;
	const struct type *type;
	const struct attr *causal; /* NULL: it is not */
};

static struct request request_of(struct module *module, struct op *demand, struct op *before)
{
	return (struct request){ .demand = demand,
		.at = { module, before, attr_get(demand, KEY_TENSOR)->type },
		.type = demand->result[0]->type,
		.causal = attr_get(demand, KEY_CAUSAL) };
}

static struct block *home(const struct value *value)
{
	return value->def ? value->def->parent : value->block;
}

/* The same order in the widest words whose lanes divide `wanted`; NULL: its words are at least as
 * wide. */
static const struct type *grown(struct module *module, const struct type *type, int64_t wanted)
{
	const struct type *wider = NULL;
	for (int64_t parts = 1; !wider && wanted / parts > stream_lanes(type); parts++)
		wider = wanted % parts ? NULL : type_regroup(module, type, wanted / parts);
	return wider;
}

/* Is the tile of each data dim that of the other type, or one element? */
static bool is_part(const struct type *words, const struct type *type)
{
	bool part = words->itensor->map.results == type->itensor->map.results;
	for (int r = 0; part && r < type->itensor->map.results; r++)
		part = stream_tile(words, r) == 1 || stream_tile(words, r) == stream_tile(type, r);
	return part;
}

/* The same order in words of so many lanes, by way of whole numbers of words of both widths where
 * neither divides the other; NULL: it has no such words. */
static const struct type *in_words(struct module *module, const struct type *type, int64_t lanes)
{
	int64_t have = stream_lanes(type);
	int64_t all = have / common_divisor(have, lanes) * lanes;
	if (have != all && lanes != all)
		type = type_regroup(module, type, all);
	return !type || stream_lanes(type) == lanes ? type : type_regroup(module, type, lanes);
}

/* The stream in the widest words of which the demanded tiles have several, as taps of a window: a
 * line buffer takes such words; NULL: it takes none. */
static const struct type *words_of_taps(
        struct module *module, const struct type *from, const struct type *type)
{
	const struct type *widest = NULL;
	for (int r = 0; r < type->itensor->map.results; r++) {
		int64_t lanes = stream_tile(type, r);
		const struct type *words = in_words(module, from, lanes);
		if (words && is_part(words, type) && (!widest || lanes > stream_lanes(widest)))
			widest = words;
	}
	if (!widest || widest->element == type->element)
		return NULL;
	struct line_buffer line_buffer = line_buffer_between(module->arena, widest, type);
	return line_buffer.why || !line_buffer.streams ? NULL : widest;
}

/* Makes a converter a line buffer. */
static void set_line_buffer(
        struct module *module, struct op *convert, const struct line_buffer *line_buffer)
{
	attr_set(module, convert, KEY_BUFFER_ELEMENTS, attr_integer(module, line_buffer->elements));
	attr_set(module, convert, KEY_SHARED_LOOPS, attr_integer(module, 0));
	attr_set(module, convert, KEY_HALVES, attr_integer(module, 1));
	attr_set(module, convert, KEY_LINE_BUFFER, attr_unit(module));
}

/* Does the converter hold words for a register tile in a replay buffer, which need not wait for a
 * whole turn of them? */
static bool replays(struct arena *arena, const struct op *convert)
{
	struct replay_buffer replay_buffer;
	return attr_get(convert, KEY_HELD) && replay_buffer_of(arena, convert, &replay_buffer);
}

/* Inserts a converter from `from` to the demanded type, with words of equal width on both sides if
 * the order allows it. A causal one gets words as wide as possible, because it reads a tile and
 * then sends all of it. */
static struct value *convert_to(const struct request *request, struct value *from, bool into_layers)
{
	struct module *module = request->at.module;
	const struct type *tensor = request->at.tensor;
	const struct type *type = request->type;
	const struct attr *causal = request->causal;
	int64_t wide = stream_lanes(from->type);
	int64_t wanted = stream_lanes(type);
	const struct type *in = from->type;
	const struct type *out = type;
	const struct type *wider = NULL;
	const struct type *taps = causal ? NULL : words_of_taps(module, from->type, type);
	if (wide < wanted && !taps)
		wider = causal ? grown(module, in, wanted) : in_words(module, in, wanted);
	if (taps)
		in = taps;
	else if (wide > wanted && in_words(module, type, wide))
		out = in_words(module, type, wide);
	else if (wider)
		in = wider;
	/* a stream from outside a rolled layer is cast outside */
	struct insertion outside = request->at;
	while (outside.before->parent != home(from))
		outside.before = outside.before->parent->parent;
	struct value *words = cast_to(&outside, from, in);
	struct op *convert = insert_stream_op(&request->at, OP_CONVERT, words, out);
	struct line_buffer line_buffer = line_buffer_between(module->arena, in, out);
	struct box box = box_between(module->arena, tensor, in, out, into_layers ? 0 : BOX_LEAST);
	INVARIANT(module->guard, !box.why, "no converter from %s to %s: %s", in->text, out->text,
	        box.why);
	attr_set(module, convert, KEY_BUFFER_ELEMENTS, attr_integer(module, box.elements));
	attr_set(module, convert, KEY_SHARED_LOOPS, attr_integer(module, box.shared));
	attr_set(module, convert, KEY_HALVES, attr_integer(module, box.halves));
	attr_set(module, convert, KEY_HELD, attr_get(request->demand, KEY_HELD));
	if (!into_layers && line_buffer_is_better(&line_buffer, &box) &&
	        !replays(module->arena, convert))
		set_line_buffer(module, convert, &line_buffer);
	if (causal && !into_layers && !attr_get(convert, KEY_LINE_BUFFER) &&
	        !causal_buffer_between(module->arena, tensor, in, out, causal).why) {
		attr_set(module, convert, KEY_BUFFER_ELEMENTS,
		        attr_integer(
		                module, box_between(module->arena, tensor, in, out, 0).elements));
		attr_set(module, convert, KEY_SHARED_LOOPS, attr_integer(module, 0));
		attr_set(module, convert, KEY_HALVES, attr_integer(module, 1));
		attr_set(module, convert, KEY_CAUSAL, causal);
	}
	return cast_to(&request->at, convert->result[0], type);
}

/* Do both types have the same elements, padding included, in words of different width? */
static bool is_cast(struct module *module, const struct type *from, const struct type *to)
{
	int64_t have = stream_lanes(from);
	int64_t want = stream_lanes(to);
	return have > want ? type_regroup(module, from, want) == to
	                   : have < want && type_regroup(module, to, have) == from;
}

/* The stream of an earlier reader, cast to the demanded type; NULL: no earlier one has this
 * order. */
static struct value *cast_of_earlier(
        const struct request *request, const struct demand_list *readers, size_t i)
{
	for (size_t e = 0; e < i; e++) {
		struct value *earlier = readers->data[e]->result[0]->data;
		if (earlier && !request->causal == !attr_get(readers->data[e], KEY_CAUSAL) &&
		        readers->data[e]->parent == request->demand->parent &&
		        is_cast(request->at.module, earlier->type, request->type))
			return cast_to(&request->at, earlier, request->type);
	}
	return NULL;
}

/* The stream for reader i; a converter is inserted before `before`. */
static struct value *satisfy(struct module *module, struct value *from,
        const struct demand_list *readers, size_t i, struct op *before)
{
	const struct request request = request_of(module, readers->data[i], before);
	const struct type *tensor = request.at.tensor;
	const struct type *type = request.type;
	bool into_layers = home(from) != request.demand->parent;
	if (!into_layers && from->type == type)
		return from;
	if (!into_layers && is_cast(module, from->type, type))
		return cast_to(&request.at, from, type);
	struct sequence have =
	        sequence_flat(module->arena, sequence_of_type(module->arena, tensor, from->type));
	struct sequence want =
	        sequence_flat(module->arena, sequence_of_type(module->arena, tensor, type));
	if (!into_layers && sequence_same(have, want))
		return stream_lanes(from->type) == stream_lanes(type)
		        ? from
		        : cast_to(&request.at, from, type);
	struct value *part = into_layers ? NULL : chunk_to(&request.at, from, type);
	part = part ? part : cast_of_earlier(&request, readers, i);
	if (part)
		return part;
	struct value *wanted =
	        into_layers || request.causal ? NULL : chunk_wanted(&request.at, from, type);
	return wanted ? satisfy(module, wanted, readers, i, before)
	              : convert_to(&request, from, into_layers);
}

static void rename_operands(struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		for (int j = 0; j < op->operands; j++)
			for (struct op *def = op->operand[j]->def; def && is_demand(def);
			        def = op->operand[j]->def)
				op->operand[j] = def->result[0]->data;
		if (op->region[0])
			rename_operands(op->region[0]);
	}
}

static void remove_demands(struct block *block)
{
	for (struct op *op = block->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_FOR)
			remove_demands(op->region[0]);
		if (is_demand(op))
			op_remove(op);
	}
}

static bool reads_any(const struct op *op, const struct value *const *value, size_t count)
{
	for (int j = 0; j < op->operands; j++)
		for (size_t i = 0; i < count; i++)
			if (op->operand[j] == value[i])
				return true;
	return false;
}

/* Do readers of `last` depend on readers of `first`? */
static bool depends_on(struct module *module, const struct op *first, const struct op *last)
{
	VEC(const struct value *) reached = { 0 };
	VEC_PUSH(module->arena, &reached, first->result[0]);
	for (const struct op *op = first->next; op; op = op->next) {
		if (!reads_any(op, reached.data, reached.count))
			continue;
		if (reads_any(op, (const struct value *const[]){ last->result[0] }, 1))
			return true;
		for (int r = 0; r < op->results; r++)
			VEC_PUSH(module->arena, &reached, op->result[r]);
	}
	return false;
}

/* The reader whose converter sends the most, including all that reader i wants; i: there is none.
 * Readers that depend on each other need converters of their own. */
static size_t reader_of_more(struct module *module, const struct value *from,
        const struct demand_list *readers, size_t i)
{
	const struct op *demand = readers->data[i];
	const struct type *tensor = attr_get(demand, KEY_TENSOR)->type;
	size_t most = i;
	for (size_t e = 0; e < readers->count; e++) {
		const struct op *other = readers->data[e];
		const struct type *best = readers->data[most]->result[0]->type;
		const struct type *type = other->result[0]->type;
		if (type != best && other->parent == demand->parent &&
		        !attr_get(demand, KEY_CAUSAL) && !attr_get(other, KEY_CAUSAL) &&
		        is_chunk(module, tensor, type, best) &&
		        !is_chunk(module, tensor, best, type) &&
		        !is_chunk(module, tensor, from->type, type) &&
		        !depends_on(module, demand, other) && !depends_on(module, other, demand))
			most = e;
	}
	return most;
}

static struct value *stream_for_same_type(const struct demand_list *readers, size_t i)
{
	const struct op *demand = readers->data[i];
	for (size_t e = 0; e < readers->count; e++)
		if (readers->data[e]->result[0]->type == demand->result[0]->type &&
		        !attr_get(demand, KEY_CAUSAL) == !attr_get(readers->data[e], KEY_CAUSAL) &&
		        readers->data[e]->parent == demand->parent &&
		        readers->data[e]->result[0]->data)
			return readers->data[e]->result[0]->data;
	return NULL;
}

/* Is the buffer large enough to share another reader's converter? The reader waits for all words
 * that this sends. */
static bool is_worth_sharing(struct module *module, const struct value *from,
        const struct type *tensor, const struct type *type)
{
	struct box box = box_between(module->arena, tensor, from->type, type, 0);
	return box.why || box.elements * type_bits(type_scalar(tensor)) >= SHARED_LEAST;
}

/* The stream for reader i as a part of another reader's converter: the first repetitions of it, or
 * some of its words; NULL: there is none. */
static struct value *part_of_other(
        struct module *module, struct value *from, const struct demand_list *readers, size_t i)
{
	struct op *demand = readers->data[i];
	const struct type *tensor = attr_get(demand, KEY_TENSOR)->type;
	const struct type *type = demand->result[0]->type;
	if (is_chunk(module, tensor, from->type, type) ||
	        !is_worth_sharing(module, from, tensor, type))
		return NULL;
	size_t more = reader_of_more(module, from, readers, i);
	if (more == i)
		return NULL;
	struct value *answer = stream_for_same_type(readers, more);
	answer = answer ? answer : satisfy(module, from, readers, more, demand);
	readers->data[more]->result[0]->data = answer;
	return chunk_to(&(struct insertion){ module, demand, tensor }, answer, type);
}

/* The stream as a part of an earlier reader's converter in the same layer, which holds words from
 * outside the layer; NULL: there is none. */
static struct value *part_of_earlier(
        struct module *module, const struct demand_list *readers, size_t i)
{
	const struct request request = request_of(module, readers->data[i], readers->data[i]);
	struct value *part = NULL;
	for (size_t e = 0; e < i && !part; e++) {
		struct value *earlier = readers->data[e]->result[0]->data;
		if (readers->data[e]->parent == request.demand->parent)
			part = chunk_to(&request.at, earlier, request.type);
	}
	return part;
}

static void satisfy_all(struct module *module, struct value *from)
{
	const struct demand_list *readers = from->data;
	if (!readers)
		return;
	struct value *drained = choose_drain_order(module, from, readers);
	for (size_t i = 0; i < readers->count; i++)
		readers->data[i]->result[0]->data = NULL;
	for (size_t i = 0; i < readers->count; i++) {
		struct op *demand = readers->data[i];
		bool into_layers = home(from) != demand->parent;
		struct value *answer = stream_for_same_type(readers, i);
		if (!answer)
			answer = into_layers ? part_of_earlier(module, readers, i)
			                     : part_of_other(module, drained, readers, i);
		answer = answer ? answer : satisfy(module, drained, readers, i, demand);
		const struct request request = request_of(module, demand, demand);
		demand->result[0]->data = attr_get(demand, KEY_LOOP_CARRIED)
		        ? cast_to(&request.at, answer, request.type)
		        : answer;
	}
	from->data = NULL;
}

static void satisfy_block(struct module *module, struct block *block)
{
	for (int i = 0; i < block->arguments; i++)
		if (block->argument[i]->type->kind == TYPE_ITENSOR)
			satisfy_all(module, block->argument[i]);
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			satisfy_block(module, op->region[0]);
		for (int r = 0; r < op->results; r++)
			if (!is_demand(op) && op->result[r]->type->kind == TYPE_ITENSOR)
				satisfy_all(module, op->result[r]);
	}
}

bool insert_converters(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	(void)context;
	ir_clear_data(body);
	collect_demands(module, body);
	reorder_layer_feedback(module, body);
	satisfy_block(module, body);
	rename_operands(body);
	remove_demands(body);
	return true;
}
