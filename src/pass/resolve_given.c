/* In which order a kernel gives what it holds until its last term: the one that leaves its readers the least converters.  The sums lie in an array anyway, so any order is free; what a layer
 * hands to the next one is such a result as well, and then flows in that order through the ring. */
#include "pass/given.h"
#include "pass/repeat_kernels.h"
#include "pass/resolve_given.h"
#include "pass/served.h"
#include "pass/streams.h"

struct giver {
	struct module *module;
	const struct op *writer;
	const struct type *tensor;
	struct wish_list wish;
};

static struct sequence sequence_of(const struct giver *c, const struct type *type)
{
	return sequence_flat(c->module->arena, sequence_of_type(c->module->arena, c->tensor, type));
}

/* All words come at once, at the end, so what wants them in another order holds nearly all of them, even where its converter takes them by blocks: in front of it they wait. */
static int64_t converter(const struct giver *c, const struct type *from, const struct type *to)
{
	bool same = from == to || sequence_same(sequence_of(c, from), sequence_of(c, to));
	return same ? 0 : type_elements(c->tensor) * ((type_bits(type_scalar(from)) + 7) / 8);
}

static const struct type *wanted(const struct giver *c, size_t i)
{
	return c->wish.data[i]->result[0]->type;
}

/* Bytes of the converters between a stream of this type and all readers. */
static int64_t converters(const struct giver *c, const struct type *from)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < c->wish.count; i++) {
		bool known = false;
		for (size_t e = 0; e < i; e++)
			known = known || wanted(c, e) == wanted(c, i);
		bytes += known ? 0 : converter(c, from, wanted(c, i));
	}
	return bytes;
}

/* What the reader wants, in words as wide as the writer's and once; NULL: that is no order of its words. */
static const struct type *order_for(const struct giver *c, size_t i)
{
	const struct type *own = c->writer->result[0]->type, *type = wanted(c, i), *once = type_once(c->module, type);
	type = once ? once : type;
	if (stream_lanes(type) != stream_lanes(own))
		type = stream_lanes(own) % stream_lanes(type) ? NULL : type_regroup(c->module, type, stream_lanes(own));
	return type && type != own && can_be_given(c->module->arena, c->writer, c->tensor, type) ? type : NULL;
}

/* A reader of some of the words drops the others on the way, which costs nothing: then all come in the writer's order. */
static bool all_take_all(const struct giver *c)
{
	int64_t own = itensor_tiles(c->writer->result[0]->type->itensor) * stream_lanes(c->writer->result[0]->type);
	bool all = true;
	for (size_t i = 0; i < c->wish.count; i++)
		all = all && itensor_tiles(wanted(c, i)->itensor) * stream_lanes(wanted(c, i)) >= own;
	return all;
}

/* NULL: the writer's own. */
static const struct type *best_order(const struct giver *c)
{
	if (!kernel_holds_result(c->writer) || !all_take_all(c))
		return NULL;
	const struct type *best = NULL;
	int64_t own = converters(c, c->writer->result[0]->type), least = own - GIVEN_BYTES;
	for (size_t i = 0; i < c->wish.count && own >= GIVEN_BYTES; i++) {
		const struct type *type = order_for(c, i);
		int64_t bytes = type ? converters(c, type) : least + 1;
		if (bytes <= least) {
			least = bytes - 1;
			best = type;
		}
	}
	return best;
}

static struct value *give(const struct giver *c, struct value *from, const struct type *type)
{
	struct op *convert = op_new(c->module, OP_CONVERT, from->def->location, 1, &from, 1, &type);
	attr_set(c->module, convert, "buffer", attr_integer(c->module, 0));
	attr_set(c->module, convert, "shared", attr_integer(c->module, 0));
	attr_set(c->module, convert, "halves", attr_integer(c->module, 1));
	attr_set(c->module, convert, "given", attr_unit(c->module));
	set_stream_tensor(c->module, convert, c->tensor);
	op_insert_before(from->def->next, convert);
	return convert->result[0];
}

struct value *give_to_readers(struct module *module, struct value *from, const struct wish_list *wish)
{
	struct giver c = {.module = module, .writer = from->def, .wish = *wish};
	if (!c.writer || c.writer->code != OP_KERNEL)
		return from;
	for (size_t i = 0; i < wish->count; i++)
		if (wish->data[i]->parent != c.writer->parent)
			return from;
	c.tensor = stream_tensor(from);
	const struct type *type = best_order(&c);
	return type ? give(&c, from, type) : from;
}

/* The kernel that makes what the loop yields as `carried` and hands it to nobody else, or NULL. */
static struct op *maker_of(const struct op *loop, int carried)
{
	const struct op *wish = loop->region[0]->last->operand[carried]->def;
	struct value *made = wish && attr_get(wish, "wish") ? wish->operand[0] : NULL;
	const struct wish_list *readers = made ? made->data : NULL;
	bool alone = readers && readers->count == 1 && made->def && made->def->code == OP_KERNEL && made->def->parent == loop->region[0] && made->type == wish->result[0]->type;
	return alone ? made->def : NULL;
}

static void add_readers(struct module *module, const struct value *value, struct wish_list *all)
{
	const struct wish_list *readers = value->data;
	for (size_t i = 0; readers && i < readers->count; i++)
		VEC_PUSH(module->arena, all, readers->data[i]);
}

static void turn_carried(struct module *module, struct op *loop, int carried)
{
	struct value *into = loop->region[0]->argument[carried + 1], *first = loop->operand[carried + 3];
	struct giver c = {.module = module, .writer = maker_of(loop, carried)};
	if (!c.writer || !first->def || !attr_get(first->def, "wish"))
		return;
	add_readers(module, into, &c.wish);
	add_readers(module, loop->result[carried], &c.wish);
	c.tensor = stream_tensor(c.writer->result[0]);
	const struct type *type = best_order(&c);
	if (!type)
		return;
	struct value *made = c.writer->result[0];
	struct op *yield = loop->region[0]->last, *wish = yield->operand[carried]->def;
	yield->operand[carried] = give(&c, made, type);
	op_remove(wish);
	made->data = NULL;
	into->type = first->type = loop->result[carried]->type = type;
}

void turn_rings(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next)
		for (int c = 0; op->code == OP_FOR && c < op->results; c++)
			turn_carried(module, op, c);
}
