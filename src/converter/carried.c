#include "converter/carried.h"

/* The kernel whose result the layer hands on, in its own order or in another one that it can give. */
static const struct op *maker_of(const struct op *loop, int number)
{
	const struct op *def = loop->region[0]->last->operand[number]->def;
	if (def && def->code == OP_CONVERT && attr_get(def, KEY_IN_PRODUCER))
		def = def->operand[0]->def;
	return def && def->code == OP_KERNEL && def->parent == loop->region[0] ? def : NULL;
}

/* The buffer that is the only reader of what the layer begins with, or NULL. */
static const struct op *buffer_of(const struct op *loop, int number)
{
	const struct value *inside = loop->region[0]->argument[number + 1];
	for (const struct op *op = loop->region[0]->first; op; op = op->next)
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == inside)
				return op->code == OP_BUFFER && !attr_integer_or(op, KEY_SHARED_LOOPS, 0) ? op : NULL;
	return NULL;
}

static bool reads_any(const struct op *op, size_t count, struct value *const *below)
{
	for (int j = 0; j < op->operands; j++)
		for (size_t i = 0; i < count; i++)
			if (op->operand[j] == below[i])
				return true;
	return false;
}

/* Does the kernel need what becomes of the stream?  Then it begins with nothing of which the stream's reader waits for the end. */
static bool needs(struct arena *arena, const struct op *kernel, struct value *stream)
{
	VEC(struct value *) below = {0};
	VEC_PUSH(arena, &below, stream);
	for (const struct op *op = stream->def->next; op != kernel; op = op->next)
		for (int r = 0; op && r < op->results && reads_any(op, below.count, below.data); r++)
			VEC_PUSH(arena, &below, op->result[r]);
	return reads_any(kernel, below.count, below.data);
}

static bool comes_behind(const struct op *op, const struct op *first)
{
	while (first && first != op)
		first = first->next;
	return first;
}

static bool find(struct arena *arena, const struct op *loop, int number, struct carried *carried)
{
	const struct op *kernel = maker_of(loop, number), *buffer = kernel && kernel_holds_result(kernel) ? buffer_of(loop, number) : NULL;
	const struct value *inside = loop->region[0]->argument[number + 1];
	if (!buffer || !comes_behind(kernel, buffer) || stream_lanes(inside->type) != stream_lanes(kernel->result[0]->type))
		return false;
	const struct type **type = ARENA_ARRAY(arena, const struct type *, buffer->results + 1);
	for (int r = 0; r < buffer->results; r++) {
		type[r] = buffer->result[r]->type;
		if (!needs(arena, kernel, buffer->result[r]))
			return false;
	}
	type[buffer->results] = inside->type;
	*carried = (struct carried){.loop = loop, .number = number, .served = {.buffer = buffer}};
	return find_served(arena, kernel, attr_get(buffer, KEY_TENSOR)->type, buffer->results + 1, type, &carried->served);
}

bool carried_in_place(struct arena *arena, const struct op *loop, int number)
{
	struct carried carried;
	return find(arena, loop, number, &carried);
}

struct carried carried_of(struct arena *arena, const struct op *kernel)
{
	const struct op *loop = kernel->parent->parent;
	struct carried carried;
	for (int i = 0; loop && loop->code == OP_FOR && i < loop->results; i++)
		if (maker_of(loop, i) == kernel && find(arena, loop, i, &carried))
			return carried;
	return (struct carried){0};
}

bool carried_by_maker(struct arena *arena, const struct op *buffer)
{
	const struct value *from = buffer->operand[0];
	return !from->def && from->block->parent->code == OP_FOR && from->index > 0 && carried_in_place(arena, from->block->parent, from->index - 1);
}

void carried_fill(struct process *p, const struct carried *carried, struct value *array)
{
	struct value *address, *first = stream_fifo(p->design, carried->loop->operand[3 + carried->number]);
	int opened = served_words(p, &carried->served, carried->served.buffer->results, &address);
	make_store(p, make_take(p, NULL, process_argument(p, first, "first")), array, address);
	process_close(p, opened);
}

void carried_give(struct process *p, const struct carried *carried, struct value *array)
{
	struct value *address, *result = carried->loop->result[carried->number];
	if (!result->uses)
		return;
	int opened = served_words(p, &carried->served, carried->served.buffer->results, &address);
	make_push(p, NULL, make_load(p, array, address), process_argument(p, stream_fifo(p->design, result), "y"));
	process_close(p, opened);
}
