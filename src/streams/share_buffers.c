/* Gives each stream one reader: a buffer that serves several in turn, else a fork.
 *
 * Before: stream -> reader A;  the same stream -> reader B, later
 * After:  stream -> stream.buffer (service round 0: A, service round 1: B), or stream.fork -> A, B
 * shared_buffer_plan.c says which streams get a buffer. A tensor in memory that is too large to
 * wait on chip is loaded again for its late readers.
 * Needs: resolved demands. Guarantees: streams have one reader each. Exact. Ends: one walk. */
#include "streams/streams_passes.h"
#include "streams/shared_buffer_plan.h"
#include "streams/stream_builder.h"
#include "itensor/box.h"

static struct value *cast_to(
        struct module *module, struct op *before, struct value *from, const struct type *type)
{
	if (from->type == type)
		return from;
	struct op *cast = op_new(module, OP_CAST, before->location, 1, &from, 1, &type);
	set_stream_tensor(module, cast, stream_tensor(from));
	op_insert_before(before, cast);
	return cast->result[0];
}

/* The results of a buffer, sorted by service round. */
struct outputs {
	int count;
	int64_t *service_round;
	const struct type **type;
};

static struct op *new_buffer(struct module *module, struct value *value, struct op *before,
        const struct outputs *outputs)
{
	const struct type *tensor = stream_tensor(value);
	/* a kernel's result in another order than its own comes from its accumulators */
	if (outputs->service_round[0])
		value = accumulator_holder(value) ? accumulator_holder(value)->result[0] : value;
	struct box box = box_between(module->arena, tensor, value->type, value->type, 0);
	struct op *buffer = op_new(
	        module, OP_BUFFER, before->location, 1, &value, outputs->count, outputs->type);
	attr_set(module, buffer, KEY_BUFFER_ELEMENTS, attr_integer(module, box.elements));
	attr_set(module, buffer, KEY_SHARED_LOOPS, attr_integer(module, 0));
	attr_set(module, buffer, KEY_SERVICE_ROUNDS,
	        attr_integers(module, outputs->count, outputs->service_round));
	set_stream_tensor(module, buffer, tensor);
	op_insert_before(before, buffer);
	return buffer;
}

static bool is_reader(const struct stream_readers *all, const struct op *op)
{
	for (size_t i = 0; i < all->list.count; i++)
		if (all->list.data[i].op == op)
			return true;
	return false;
}

/* Removes casts and converters between the stream and its final readers. */
static void remove_between(const struct stream_readers *direct, const struct stream_readers *all)
{
	for (size_t i = 0; i < direct->list.count; i++) {
		struct op *op = direct->list.data[i].op;
		if (is_reader(all, op) || (op->code != OP_CAST && op->code != OP_CONVERT))
			continue;
		if (op->result[0]->data)
			remove_between(op->result[0]->data, all);
		op_remove(op);
	}
}

static void share_buffer(struct module *module, struct value *value, struct op *before)
{
	const struct stream_readers *direct = value->data;
	const struct stream_readers *all = direct->deferred;
	int count = (int)all->list.count;
	int next = 0;
	int *result = ARENA_ARRAY(module->arena, int, count);
	struct outputs outputs = { count, ARENA_ARRAY(module->arena, int64_t, count),
		ARENA_ARRAY(module->arena, const struct type *, count) };
	for (int64_t p = 0; next < count; p++)
		for (int i = 0; i < count; i++)
			if (all->service_round[i] == p) {
				result[i] = next;
				outputs.type[next] = all->type[i];
				outputs.service_round[next++] = p;
			}
	struct op *buffer = new_buffer(module, value, before, &outputs);
	for (int i = 0; i < count; i++) {
		const struct stream_reader *reader = &all->list.data[i];
		struct value **operand = &reader->op->operand[reader->operand];
		*operand = cast_to(module, before, buffer->result[result[i]], (*operand)->type);
	}
	remove_between(direct, all);
}

static void fork_value(struct module *module, struct value *value, struct op *before);

static struct value *load_again(struct module *module, const struct op *load, struct op *before)
{
	const struct type *type = load->result[0]->type;
	struct op *again =
	        op_new(module, OP_LOAD, load->location, load->operands, load->operand, 1, &type);
	set_stream_tensor(module, again, stream_tensor(load->result[0]));
	if (attr_get(load, KEY_PORTS))
		attr_set(module, again, KEY_PORTS, attr_get(load, KEY_PORTS));
	op_insert_before(before, again);
	return again->result[0];
}

/* Gives the readers of one round a load of their own; returns how many there are. */
static size_t share_load(
        struct module *module, struct value *value, struct op *before, int64_t round)
{
	const struct stream_readers *all = stream_readers(value)->deferred;
	const struct type **type = ARENA_ARRAY(module->arena, const struct type *, all->list.count);
	struct stream_readers own = { 0 };
	for (size_t i = 0; i < all->list.count; i++)
		if (all->service_round[i] == round)
			VEC_PUSH(module->arena, &own.list, all->list.data[i]);
	if (!own.list.count)
		return 0;
	struct value *from = round ? load_again(module, value->def, before) : value;
	for (size_t i = 0; i < own.list.count; i++) {
		const struct stream_reader *reader = &own.list.data[i];
		type[i] = reader->op->operand[reader->operand]->type;
		reader->op->operand[reader->operand] = from;
	}
	from->data = &own;
	fork_value(module, from, before);
	for (size_t i = 0; i < own.list.count; i++) {
		struct value **operand = &own.list.data[i].op->operand[own.list.data[i].operand];
		*operand = cast_to(module, before, *operand, type[i]);
	}
	return own.list.count;
}

static void share_loads(struct module *module, struct value *value, struct op *before)
{
	struct stream_readers *direct = value->data;
	size_t served = 0;
	for (int64_t round = 0; served < direct->deferred->list.count; round++) {
		value->data = direct;
		served += share_load(module, value, before, round);
	}
	remove_between(direct, direct->deferred);
}

static void fork_value(struct module *module, struct value *value, struct op *before)
{
	struct stream_readers *uses = value->data;
	if (uses && uses->deferred && uses->deferred->loads) {
		share_loads(module, value, before);
		return;
	}
	if (uses && uses->deferred)
		share_buffer(module, value, before);
	value->data = NULL;
	if (!uses || uses->deferred || uses->list.count < 2)
		return;
	const struct type **types =
	        ARENA_ARRAY(module->arena, const struct type *, uses->list.count);
	for (size_t i = 0; i < uses->list.count; i++)
		types[i] = value->type;
	struct op *fork =
	        op_new(module, OP_FORK, before->location, 1, &value, (int)uses->list.count, types);
	set_stream_tensor(module, fork, stream_tensor(value));
	op_insert_before(before, fork);
	for (size_t i = 0; i < uses->list.count; i++)
		uses->list.data[i].op->operand[uses->list.data[i].operand] = fork->result[i];
}

/* Is the value read from that op on, in loops too? */
static bool is_read(const struct value *value, const struct op *from)
{
	for (const struct op *op = from; op; op = op->next) {
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == value)
				return true;
		if (op->code == OP_FOR && is_read(value, op->region[0]->first))
			return true;
	}
	return false;
}

static void fork_block(struct module *module, struct block *block)
{
	for (int i = 0; i < block->arguments; i++)
		fork_value(module, block->argument[i], block->first);
	for (struct op *op = block->first, *next; op; op = next) {
		if (op->code == OP_FOR)
			fork_block(module, op->region[0]);
		for (int r = 0; op->code != OP_FORK && op->code != OP_BUFFER && r < op->results;
		        r++)
			fork_value(module, op->result[r], op->next);
		next = op->next;
		/* the producer drains for its readers directly */
		if (op->code == OP_CONVERT && !is_read(op->result[0], op->next))
			op_remove(op);
	}
}

bool share_buffers(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	collect_stream_readers(module, body);
	plan_shared_buffers(module, body);
	plan_loads(module, body, passing_bytes_most(context));
	fork_block(module, body);
	module->level = LEVEL_STREAM;
	return true;
}
