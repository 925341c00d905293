/* Moves an elementwise kernel behind the converter that replays its result by blocks.
 *
 * A matmul holds all words of a block in its accumulators until the last term and drains them in as
 * many cycles. An elementwise kernel reads them element by element, so a FIFO of wide words is
 * between both, and the converter behind the kernel, which reorders the block and sends it several
 * times, is filled nearly as slowly as it is read: it needs two halves.
 * Before: matmul -> deep FIFO -> kernel -> converter, two halves -> reader
 * After:  matmul -> converter, one half -> kernel, computed for each repetition -> reader
 * The block is then filled so fast that one half is enough. */
#include "ir/converter.h"
#include "itensor/box.h"
#include "streams/shared_buffer_plan.h"
#include "streams/explain_converters.h"
#include "streams/recompute_after_converter.h"
#include "streams/recompute_kernels.h"
#include "streams/kernel_reordered.h"

/* least words read of a block per word written: filling then takes so small a part of the time that
 * a second half is not needed */
#define QUICK 32

/* what an operand with a new type is read from */
struct operand_source {
	struct value *from;
	struct box box;
	int halves;
};

struct buffer_move {
	struct module *module;
	/* the converter; what its readers read: itself or the cast after it; the kernel */
	struct op *convert, *last, *op;
	struct kernel *kernel;         /* in the converter's order */
	const struct type **type;      /* [operands], then that of the result */
	struct operand_source *source; /* [operands] */
};

static bool has_single_reader(const struct value *value)
{
	return stream_readers(value) && !stream_readers(value)->deferred &&
	        stream_readers(value)->list.count == 1;
}

static bool passes_on(const struct op *op, bool converted)
{
	return op->code == OP_CAST ||
	        (converted &&
	                (converter_is_reorder(op) || converter_form(op) == CONVERTER_LINE_BUFFER));
}

/* The value in this block from which casts, and if allowed converters, produce this one. */
static struct value *source_below(struct value *value, const struct block *block, bool converted)
{
	while (value->def && value->def->parent == block && passes_on(value->def, converted))
		value = value->def->operand[0];
	return value;
}

static int64_t iterations_of(const struct box *box)
{
	int64_t iterations = 1;
	for (int l = 0; l < box->shared; l++)
		iterations *= box->fill.trip[l];
	return iterations;
}

static int64_t words_of(const struct box *box, const struct box_side *side)
{
	int64_t words = 1;
	for (int l = box->shared; l < side->loops; l++)
		words *= side->trip[l];
	return words;
}

/* Does the block hold exactly the kernel's accumulators, and is it filled while next to nothing is
 * read? */
static bool arrives_in_burst(const struct op *writer, const struct box *box)
{
	if (!writer || writer->code != OP_KERNEL || !box->shared)
		return false;
	int outermost = kernel_outer_reduction(writer->kernel);
	int64_t blocks = 1;
	for (int l = 0; l < outermost; l++)
		blocks *= writer->kernel->loop[l].extent;
	return outermost > 0 && blocks == iterations_of(box) &&
	        words_of(box, &box->fill) * QUICK <= words_of(box, &box->drain);
}

static int64_t bytes_of(const struct value *stream, int64_t elements)
{
	return elements * ((type_bits(type_scalar(stream_tensor(stream))) + 7) / 8);
}

static bool find_source(struct buffer_move *t, int operand)
{
	struct value *value = t->op->operand[operand];
	bool large = type_elements(stream_tensor(value)) ==
	        type_elements(stream_tensor(t->op->result[0]));
	struct operand_source *source = &t->source[operand];
	source->from = source_below(value, t->op->parent, !large);
	struct block *home = source->from->def ? source->from->def->parent : source->from->block;
	if (home != t->op->parent || !stream_readers(source->from) ||
	        stream_readers(source->from)->deferred ||
	        (large && !(has_single_reader(source->from) && has_single_reader(value))))
		return false;
	source->box = box_between(t->module->arena, stream_tensor(source->from), source->from->type,
	        t->type[operand], BOX_LEAST);
	if (source->box.why || (large && !arrives_in_burst(source->from->def, &source->box)))
		return false;
	source->halves = large ? 1 : source->box.halves;
	return true;
}

/* Finds the sources of all operands; true: some are matmuls, and all blocks together are no larger
 * than that of the result. */
static bool find_sources(struct buffer_move *t)
{
	int64_t bytes = 0;
	bool any = false;
	for (int j = 0; j < t->op->operands; j++) {
		if (t->type[j] == t->op->operand[j]->type)
			continue;
		if (!find_source(t, j))
			return false;
		bytes += bytes_of(
		        t->op->operand[j], t->source[j].box.elements * t->source[j].halves);
		any |= arrives_in_burst(t->source[j].from->def, &t->source[j].box);
	}
	return any && bytes <= converter_bytes(t->convert);
}

static bool is_plain(const struct op *op)
{
	bool plain = op->code == OP_KERNEL && !kernel_has_reduction(op->kernel) &&
	        !body_uses_counters(&op->kernel->update);
	for (int j = 0; plain && j < op->operands; j++)
		plain = !op->kernel->operand[j].guards &&
		        op->kernel->operand[j].index_operand < 0 &&
		        !op->operand[j]->type->itensor->run_time;
	return plain;
}

/* Do both types denote the same words? */
static bool are_same(const struct buffer_move *t, const struct type *one, const struct type *other)
{
	struct arena *arena = t->module->arena;
	const struct type *tensor = stream_tensor(t->op->result[0]);
	return stream_lanes(one) == stream_lanes(other) &&
	        sequence_same(sequence_flat(arena, sequence_of_type(arena, tensor, one)),
	                sequence_flat(arena, sequence_of_type(arena, tensor, other)));
}

static bool match_move(struct buffer_move *t)
{
	const struct op *convert = t->convert;
	struct op *op = t->op = convert->operand[0]->def;
	if (!converter_shared_loops(convert) || converter_form(convert) == CONVERTER_SPILLED ||
	        !op || op->parent != convert->parent || !is_plain(op) ||
	        !has_single_reader(op->result[0]))
		return false;
	struct stream_readers *readers = stream_readers(convert->result[0]);
	if (!readers || readers->deferred)
		return false;
	t->last = readers->list.count == 1 && readers->list.data[0].op->code == OP_CAST
	        ? readers->list.data[0].op
	        : t->convert;
	const struct value *result = t->last->result[0];
	t->kernel = is_reused_enough(stream_readers(result)) && !stream_readers(result)->deferred
	        ? kernel_reordered(t->module, op, result->type)
	        : NULL;
	t->type = ARENA_ARRAY(t->module->arena, const struct type *, op->operands + 1);
	t->source = ARENA_ARRAY(t->module->arena, struct operand_source, op->operands + 1);
	return t->kernel && kernel_port_types(t->module, op, t->kernel, t->type) &&
	        are_same(t, t->type[op->operands], result->type) && find_sources(t);
}

static void drop_reader(struct value *value, const struct op *op, int operand)
{
	struct stream_readers *readers = stream_readers(value);
	size_t remaining = 0;
	for (size_t i = 0; i < readers->list.count; i++)
		if (readers->list.data[i].op != op || readers->list.data[i].operand != operand)
			readers->list.data[remaining++] = readers->list.data[i];
	readers->list.count = remaining;
}

/* Reads the operand through a converter of its own, and removes what nobody reads any more. */
static void read_by_block(struct buffer_move *t, int operand)
{
	struct module *module = t->module;
	struct operand_source *source = &t->source[operand];
	struct value *old = t->op->operand[operand];
	struct op *convert =
	        op_new(module, OP_CONVERT, t->op->location, 1, &source->from, 1, &t->type[operand]);
	set_stream_tensor(module, convert, stream_tensor(source->from));
	attr_set(module, convert, KEY_BUFFER_ELEMENTS, attr_integer(module, source->box.elements));
	attr_set(module, convert, KEY_SHARED_LOOPS, attr_integer(module, source->box.shared));
	attr_set(module, convert, KEY_HALVES, attr_integer(module, source->halves));
	op_insert_before(t->op, convert);
	struct stream_readers *own = convert->result[0]->data =
	        ARENA_NEW(module->arena, struct stream_readers);
	VEC_PUSH(module->arena, &own->list, ((struct stream_reader){ t->op, operand }));
	t->op->operand[operand] = convert->result[0];
	drop_reader(old, t->op, operand);
	while (old != source->from && !stream_readers(old)->list.count) {
		struct op *def = old->def;
		old = def->operand[0];
		drop_reader(old, def, 0);
		op_remove(def);
	}
	VEC_PUSH(module->arena, &stream_readers(source->from)->list,
	        ((struct stream_reader){ convert, 0 }));
}

static void apply_move(struct buffer_move *t)
{
	struct op *op = t->op;
	for (int j = 0; j < op->operands; j++)
		if (t->type[j] != op->operand[j]->type)
			read_by_block(t, j);
	op->kernel = t->kernel;
	op->result[0]->type = t->last->result[0]->type;
	struct stream_readers *readers = op->result[0]->data = stream_readers(t->last->result[0]);
	for (size_t i = 0; i < readers->list.count; i++)
		readers->list.data[i].op->operand[readers->list.data[i].operand] = op->result[0];
	if (t->last != t->convert)
		op_remove(t->last);
	op_remove(t->convert);
}

static bool recompute_in_block(struct module *module, struct block *block)
{
	bool any = false;
	VEC(struct op *) converts = { 0 };
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			any |= recompute_in_block(module, op->region[0]);
		if (op->code == OP_CONVERT)
			VEC_PUSH(module->arena, &converts, op);
	}
	for (size_t i = 0; i < converts.count; i++) {
		struct buffer_move t = { .module = module, .convert = converts.data[i] };
		if (!match_move(&t))
			continue;
		apply_move(&t);
		any = true;
	}
	return any;
}

void recompute_after_converter(struct module *module, struct block *block)
{
	if (recompute_in_block(module, block))
		plan_shared_buffers(module, block);
}
