/* Counts on-chip memory at stream level, and spills converters. */
#include "ir/converter.h"
#include "streams/on_chip_footprint.h"
#include "itensor/box.h"
#include "predict/resource.h"
#include "streams/explain_converters.h"
#include "schedule/kernel_schedule.h"

#define FIFO_WORDS 2

int64_t on_chip_bytes_total(const struct on_chip_bytes *on_chip_bytes)
{
	return on_chip_bytes->converters + on_chip_bytes->buffers + on_chip_bytes->sums +
	        on_chip_bytes->fifos;
}

static int64_t bytes_of(const struct type *scalar, int64_t elements)
{
	return elements * ((type_bits(scalar) + 7) / 8);
}

/* Accumulators of a kernel: one sum, or copies of its partial sums, for each iteration of the
 * parallel loops inside the outermost reduction; none if only the lanes are reduced. */
static int64_t accumulator_count(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	int outermost = kernel_outer_reduction(kernel);
	int64_t sums = outermost >= 0 ? kernel->partial_sums * sum_buffers(op) : 0;
	for (int l = outermost + 1; l < kernel->loops; l++)
		sums *= kernel->loop[l].reduction ? 1 : kernel->loop[l].extent;
	return sums;
}

static void add_op(struct op *op, void *context)
{
	struct on_chip_bytes *on_chip_bytes = context;
	if (op->code == OP_CONVERT) {
		VEC_PUSH(on_chip_bytes->arena, &on_chip_bytes->converter, op);
		on_chip_bytes->converters +=
		        converter_form(op) == CONVERTER_SPILLED ? 0 : converter_bytes(op);
	}
	if (op->code == OP_BUFFER && !attr_get(op, KEY_IN_PRODUCER))
		on_chip_bytes->buffers += bytes_of(type_scalar(op->result[0]->type),
		        attr_integer_or(op, KEY_BUFFER_ELEMENTS, 0));
	if (op->code == OP_KERNEL)
		on_chip_bytes->sums += bytes_of(op->kernel->type, accumulator_count(op));
	for (int r = 0; r < op->results && op->code != OP_REASSOCIATE && op->code != OP_FOR; r++)
		if (op->result[r]->type->kind == TYPE_ITENSOR)
			on_chip_bytes->fifos += FIFO_WORDS *
			        bytes_of(type_scalar(op->result[r]->type),
			                stream_lanes(op->result[r]->type));
}

int64_t on_chip_budget(const struct pass_context *context)
{
	return choice_resolve(&context->choices, context->platform, CHOICE_ON_CHIP);
}

/* Only a converter that holds the whole tensor can be spilled: a block within an outer iteration
 * would need memory traffic in lockstep with it. */
static bool can_be_spilled(const struct op *convert)
{
	return converter_form(convert) != CONVERTER_SPILLED && !converter_shared_loops(convert) &&
	        converter_bytes(convert);
}

struct op *largest_spillable(const struct on_chip_bytes *on_chip_bytes)
{
	struct op *best = NULL;
	for (size_t i = 0; i < on_chip_bytes->converter.count; i++) {
		struct op *op = on_chip_bytes->converter.data[i];
		if (can_be_spilled(op) && (!best || converter_bytes(op) > converter_bytes(best)))
			best = op;
	}
	return best;
}

struct on_chip_bytes on_chip_bytes_of_block(struct arena *arena, struct block *block)
{
	struct on_chip_bytes on_chip_bytes = { .arena = arena };
	ir_walk(block, add_op, &on_chip_bytes);
	return on_chip_bytes;
}

/* Does the buffer fit a die without crowding it? One that keeps the order keeps words whole; others
 * are in as many banks as a word has runs of elements. */
static bool fits_a_die(
        struct arena *arena, const struct platform *platform, const struct op *convert)
{
	struct box box =
	        box_between(arena, attr_get(convert, KEY_TENSOR)->type, convert->operand[0]->type,
	                convert->result[0]->type, converter_shared_loops(convert));
	int64_t lanes = stream_lanes(convert->result[0]->type);
	int64_t word = box.why ? 1 : box_word(&box);
	if (converter_form(convert) == CONVERTER_REPLAY)
		word = lanes;
	int64_t banks = word < lanes ? lanes / word : 1;
	int64_t bits = word * type_bits(type_scalar(convert->result[0]->type));
	int64_t words = box.why
	        ? 1
	        : attr_integer_or(convert, KEY_HALVES, box.halves) * box.elements / word;
	struct resources needed =
	        storage_cost(storage_choose(bits, words / banks, platform_total(platform).uram > 0),
	                bits, words / banks);
	bool fits = box.why || converter_form(convert) == CONVERTER_LINE_BUFFER;
	for (int d = 0; d < platform->dies && !fits; d++) {
		struct resources room = platform_uncrowded(platform, d);
		fits = banks * needed.bram18 <= room.bram18 && banks * needed.uram <= room.uram;
	}
	return fits;
}

static struct box whole_box(struct arena *arena, const struct op *convert)
{
	return box_between(arena, attr_get(convert, KEY_TENSOR)->type, convert->operand[0]->type,
	        convert->result[0]->type, 0);
}

struct op *unplaceable_converter(
        const struct platform *platform, const struct on_chip_bytes *on_chip_bytes)
{
	for (size_t i = 0; i < on_chip_bytes->converter.count; i++) {
		struct op *op = on_chip_bytes->converter.data[i];
		bool whole = can_be_spilled(op) ||
		        (converter_form(op) != CONVERTER_SPILLED && converter_bytes(op) &&
		                !whole_box(on_chip_bytes->arena, op).why);
		if (whole && !fits_a_die(on_chip_bytes->arena, platform, op))
			return op;
	}
	return NULL;
}

void spill_converter(struct module *module, struct on_chip_bytes *on_chip_bytes, struct op *convert)
{
	on_chip_bytes->converters -= converter_bytes(convert);
	if (converter_shared_loops(convert)) {
		attr_set(module, convert, KEY_BUFFER_ELEMENTS,
		        attr_integer(module, whole_box(module->arena, convert).elements));
		attr_set(module, convert, KEY_SHARED_LOOPS, attr_integer(module, 0));
		attr_set(module, convert, KEY_HALVES, attr_integer(module, 1));
	}
	attr_set(module, convert, KEY_SPILLED, attr_unit(module));
}

int64_t on_chip_bytes_least(struct arena *arena, struct block *block)
{
	struct on_chip_bytes on_chip_bytes = on_chip_bytes_of_block(arena, block);
	int64_t least = on_chip_bytes_total(&on_chip_bytes);
	for (size_t i = 0; i < on_chip_bytes.converter.count; i++)
		least -= can_be_spilled(on_chip_bytes.converter.data[i])
		        ? converter_bytes(on_chip_bytes.converter.data[i])
		        : 0;
	return least;
}
