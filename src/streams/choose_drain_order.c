/* Chooses the order in which a kernel drains the sums that it holds until its last term.
 *
 * The sums are in an array, so any order is free: the one that leaves the fewest readers with a
 * reorder buffer is best. A value that a layer hands to the next one is such a result too, and then
 * flows in that order through the layer feedback.
 * Before: kernel -> stream in loop order -> reorder buffer -> reader
 * After:  kernel, drained in the reader's order -> reader */
#include "converter/drain_order.h"
#include "schedule/port_order.h"
#include "streams/choose_drain_order.h"
#include "converter/accumulator_drain.h"
#include "streams/stream_builder.h"

struct drain_chooser {
	struct module *module;
	const struct op *writer;
	const struct type *tensor;
	struct demand_list demand;
};

static struct sequence sequence_of(const struct drain_chooser *c, const struct type *type)
{
	return sequence_flat(c->module->arena, sequence_of_type(c->module->arena, c->tensor, type));
}

static bool same_order(
        const struct drain_chooser *c, const struct type *left, const struct type *right)
{
	return left == right || sequence_same(sequence_of(c, left), sequence_of(c, right));
}

/* A store accepts any order. */
static bool takes_any(const struct drain_chooser *c, size_t i)
{
	return attr_get(c->demand.data[i], KEY_ANY_ORDER);
}

static const struct type *wanted(const struct drain_chooser *c, size_t i)
{
	return c->demand.data[i]->result[0]->type;
}

/* How badly a stream of this type suits the readers: first by the orders that need a converter,
 * then by the readers. All words come in a burst at the end, so even a converter that works block
 * by block holds nearly all of them: they wait in front of it. */
static size_t count_unsatisfied(const struct drain_chooser *c, const struct type *from)
{
	size_t orders = 0;
	size_t readers = 0;
	for (size_t i = 0; i < c->demand.count; i++) {
		bool satisfied = takes_any(c, i) || same_order(c, from, wanted(c, i));
		bool known = satisfied;
		for (size_t e = 0; e < i; e++)
			known = known || same_order(c, wanted(c, e), wanted(c, i));
		orders += !known;
		readers += !satisfied;
	}
	return orders * (c->demand.count + 1) + readers;
}

/* The order as loops over the tensor's linear addresses, in words of `lanes` adjacent elements. */
static const struct type *linear_type(
        struct module *module, const struct order *order, int64_t lanes, const struct type *scalar)
{
	int dims = order->loops;
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, dims + 1);
	int64_t *step = ARENA_ARRAY(module->arena, int64_t, dims + 1);
	int64_t *rows = affine_rows(module->arena, dims, 1);
	for (int i = 0; i < dims; i++) {
		trip[i] = order->loop[i].trip;
		step[i] = 1;
		rows[i] = order->loop[i].stride;
	}
	if (lanes > 1) {
		trip[dims - 1] /= lanes;
		step[dims - 1] = lanes;
	}
	rows[dims] = order->offset;
	return type_canonical(module,
	        lanes > 1 ? type_shaped(module, TYPE_VECTOR, 1, &lanes, scalar) : scalar,
	        &(struct itensor){
	                .dims = dims, .trip = trip, .step = step, .map = { dims, 1, rows } });
}

/* Is each element sent once? A store among the readers needs that. */
static bool comes_once(const struct drain_chooser *c, const struct type *type)
{
	bool once = itensor_tiles(type->itensor) * stream_lanes(type) == type_elements(c->tensor);
	bool stored = false;
	for (size_t i = 0; i < c->demand.count; i++)
		stored = stored || takes_any(c, i);
	return once || !stored;
}

/* The order that reader i wants, in words as wide as the producer's; NULL: the kernel cannot drain
 * it. */
static const struct type *order_for(const struct drain_chooser *c, size_t i)
{
	if (takes_any(c, i))
		return NULL;
	const struct type *own = c->writer->result[0]->type;
	const struct type *type = wanted(c, i);
	struct sequence words = sequence_of_type(c->module->arena, c->tensor, own);
	struct sequence flat = sequence_of(c, type);
	if (flat.conditions || flat.run_time || flat.dims > ORDER_LOOPS)
		return NULL;
	struct order order = order_of_sequence(&flat);
	if (!order_of_words(&order, words.lanes, words.lane_stride))
		return NULL;
	if (stream_lanes(type) != words.lanes)
		type = type_regroup(c->module, type, words.lanes);
	if (!type && words.lane_stride <= 1) /* words that cross a dimension of the reader's type */
		type = linear_type(c->module, &order, words.lanes, type_scalar(c->tensor));
	return type && type != own && comes_once(c, type) &&
	                can_drain_in_order(c->module->arena, c->writer, c->tensor, type)
	        ? type
	        : NULL;
}

/* Do all readers want all elements? If one reads a part in the producer's order, it drops the rest,
 * which costs nothing: then the order stays. */
static bool all_take_all(const struct drain_chooser *c)
{
	int64_t own = itensor_tiles(c->writer->result[0]->type->itensor) *
	        stream_lanes(c->writer->result[0]->type);
	bool all = true;
	for (size_t i = 0; i < c->demand.count; i++)
		all = all &&
		        itensor_tiles(wanted(c, i)->itensor) * stream_lanes(wanted(c, i)) >= own;
	return all;
}

/* NULL: the producer's own order. */
static const struct type *best_order(const struct drain_chooser *c)
{
	if (!kernel_holds_result(c->writer) || !all_take_all(c))
		return NULL;
	const struct type *best = NULL;
	size_t least = count_unsatisfied(c, c->writer->result[0]->type);
	bool worth = type_elements(c->tensor) * ((type_bits(type_scalar(c->tensor)) + 7) / 8) >=
	        DRAIN_ORDER_MIN_BYTES;
	for (size_t i = 0; i < c->demand.count && least && worth; i++) {
		const struct type *type = order_for(c, i);
		size_t others = type ? count_unsatisfied(c, type) : least;
		if (others < least) {
			least = others;
			best = type;
		}
	}
	return best;
}

static struct value *drain_as(
        const struct drain_chooser *c, struct value *from, const struct type *type)
{
	struct op *convert = op_new(c->module, OP_CONVERT, from->def->location, 1, &from, 1, &type);
	attr_set(c->module, convert, KEY_BUFFER_ELEMENTS, attr_integer(c->module, 0));
	attr_set(c->module, convert, KEY_SHARED_LOOPS, attr_integer(c->module, 0));
	attr_set(c->module, convert, KEY_HALVES, attr_integer(c->module, 1));
	attr_set(c->module, convert, KEY_IN_PRODUCER, attr_unit(c->module));
	set_stream_tensor(c->module, convert, c->tensor);
	op_insert_before(from->def->next, convert);
	for (size_t i = 0; i < c->demand.count; i++)
		if (takes_any(c, i))
			c->demand.data[i]->result[0]->type = type;
	return convert->result[0];
}

struct value *choose_drain_order(
        struct module *module, struct value *from, const struct demand_list *demand)
{
	struct drain_chooser c = { .module = module, .writer = from->def, .demand = *demand };
	if (!c.writer || c.writer->code != OP_KERNEL)
		return from;
	for (size_t i = 0; i < demand->count; i++)
		if (demand->data[i]->parent != c.writer->parent)
			return from;
	c.tensor = stream_tensor(from);
	const struct type *type = best_order(&c);
	return type ? drain_as(&c, from, type) : from;
}

/* The kernel that produces a carried value and streams it to no other reader, or NULL. */
static struct op *maker_of(const struct op *loop, int carried)
{
	const struct op *demand = loop->region[0]->last->operand[carried]->def;
	struct value *made = demand && attr_get(demand, KEY_DEMAND) ? demand->operand[0] : NULL;
	const struct demand_list *readers = made ? made->data : NULL;
	bool single = readers && readers->count == 1 && made->def && made->def->code == OP_KERNEL &&
	        made->def->parent == loop->region[0] && made->type == demand->result[0]->type;
	return single ? made->def : NULL;
}

static void add_readers(struct module *module, const struct value *value, struct demand_list *all)
{
	const struct demand_list *readers = value->data;
	for (size_t i = 0; readers && i < readers->count; i++)
		VEC_PUSH(module->arena, all, readers->data[i]);
}

static void reorder_carried(struct module *module, struct op *loop, int carried)
{
	struct value *into = loop->region[0]->argument[carried + 1];
	struct value *first = loop->operand[carried + 3];
	struct drain_chooser c = { .module = module, .writer = maker_of(loop, carried) };
	if (!c.writer || !first->def || !attr_get(first->def, KEY_DEMAND))
		return;
	add_readers(module, into, &c.demand);
	add_readers(module, loop->result[carried], &c.demand);
	c.tensor = stream_tensor(c.writer->result[0]);
	const struct type *type = best_order(&c);
	if (!type)
		return;
	struct value *made = c.writer->result[0];
	struct op *yield = loop->region[0]->last;
	struct op *demand = yield->operand[carried]->def;
	yield->operand[carried] = drain_as(&c, made, type);
	op_remove(demand);
	made->data = NULL;
	into->type = first->type = loop->result[carried]->type = type;
}

void reorder_layer_feedback(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next)
		for (int c = 0; op->code == OP_FOR && c < op->results; c++)
			reorder_carried(module, op, c);
}
