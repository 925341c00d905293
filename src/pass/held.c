#include "pass/held.h"
#include "pass/explain.h"
#include "pass/schedule.h"
#include "pass/served.h"

#define FIFO_WORDS 2

int64_t held_bytes(const struct held *held)
{
	return held->converters + held->buffers + held->sums + held->fifos;
}

static int64_t bytes_of(const struct type *scalar, int64_t elements)
{
	return elements * ((type_bits(scalar) + 7) / 8);
}

/* One sum, or sets of partial ones, for each point of the parallel loops inside the outermost reduction; none is kept where only the lanes are reduced. */
static int64_t sums_of(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	int outermost = kernel_outer_reduction(kernel);
	int64_t sums = outermost >= 0 ? kernel->partial * sum_sets(op) : 0;
	for (int l = outermost + 1; l < kernel->loops; l++)
		sums *= kernel->loop[l].reduction ? 1 : kernel->loop[l].extent;
	return sums;
}

static void add_op(struct op *op, void *context)
{
	struct held *held = context;
	if (op->code == OP_CONVERT) {
		VEC_PUSH(held->arena, &held->converter, op);
		held->converters += attr_get(op, "cut") ? 0 : converter_bytes(op);
	}
	if (op->code == OP_BUFFER && !served_by_writer(held->arena, op))
		held->buffers += bytes_of(type_scalar(op->result[0]->type), attr_integer_or(op, "buffer", 0));
	if (op->code == OP_KERNEL)
		held->sums += bytes_of(op->kernel->type, sums_of(op));
	for (int r = 0; r < op->results && op->code != OP_REASSOCIATE && op->code != OP_FOR; r++)
		if (op->result[r]->type->kind == TYPE_ITENSOR)
			held->fifos += FIFO_WORDS * bytes_of(type_scalar(op->result[r]->type), stream_lanes(op->result[r]->type));
}

int64_t on_chip_budget(const struct pass_context *context)
{
	return choice_on(&context->choices, context->platform, CHOICE_ON_CHIP);
}

/* A block that both sides walk within one outer iteration would need memory traffic in step with it: only whole tensors are cut. */
static bool can_be_cut(const struct op *convert)
{
	return !attr_get(convert, "cut") && !attr_integer_or(convert, "shared", 0) && converter_bytes(convert);
}

struct op *held_largest(const struct held *held)
{
	struct op *best = NULL;
	for (size_t i = 0; i < held->converter.count; i++) {
		struct op *op = held->converter.data[i];
		if (can_be_cut(op) && (!best || converter_bytes(op) > converter_bytes(best)))
			best = op;
	}
	return best;
}

struct held held_count(struct arena *arena, struct block *block)
{
	struct held held = {.arena = arena};
	ir_walk(block, add_op, &held);
	return held;
}

int64_t held_least(struct arena *arena, struct block *block)
{
	struct held held = held_count(arena, block);
	int64_t least = held_bytes(&held);
	for (size_t i = 0; i < held.converter.count; i++)
		least -= can_be_cut(held.converter.data[i]) ? converter_bytes(held.converter.data[i]) : 0;
	return least;
}
