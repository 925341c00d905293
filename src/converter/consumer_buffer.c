/* Matches and emits reorder buffers that are folded into their consumer (consumer_buffer.h). */
#include "ir/converter.h"
#include "ir/kernel_edit.h"
#include "converter/consumer_buffer.h"
#include "converter/lower_box.h"

static bool is_whole_tensor_buffer(const struct op *op)
{
	return op && converter_is_reorder(op) && !converter_shared_loops(op) &&
	        op->operand[0]->def && op->operand[0]->def->parent == op->parent;
}

/* Is the operand's first word needed before everything else, and are its words read by one nest? */
static bool begins_with(const struct kernel *kernel, int operand)
{
	const struct access *access = &kernel->operand[operand];
	bool first = kernel->partial_sums == 1 && !kernel_is_post_operand(kernel, operand);
	for (int g = 0; g < access->guards; g++)
		first = first && access->guard[g].low == 0 && !access->guard[g].last;
	return first;
}

/* loops of a kernel's nest, without those over lanes and unrolled rows */
static int nest_loops(const struct kernel *kernel)
{
	return kernel->loops - (kernel->lanes > 1) - (kernel->row_unroll > 1);
}

bool kernel_strides(const struct kernel *kernel, const struct access *access,
        const struct box_side *side, int64_t *stride)
{
	int loop = nest_loops(kernel) - 1;
	int at = side->loops;
	int64_t rest = 1;
	int64_t step = 0;
	while (loop >= 0 && (!access->stride[loop] || access_extent(kernel, access, loop) == 1))
		loop--;
	for (; loop >= 0; loop--) {
		int64_t trip = access_extent(kernel, access, loop);
		if (trip == 1 || (access == &kernel->result && kernel->loop[loop].reduction))
			continue;
		for (; rest == 1 && at > 0; at--) {
			rest = side->trip[at - 1];
			step = side->step[at - 1];
		}
		for (; rest < trip && at > 0 && side->step[at - 1] == step * rest; at--)
			rest *= side->trip[at - 1];
		bool come = access->row_predicate && access->row_predicate->weight[loop];
		bool run_time = kernel->loop[loop].run_time || (side->run_time[at] && !come);
		if (rest % trip || (run_time && step))
			return false;
		stride[loop] = step / side->lanes;
		step *= trip;
		rest /= trip;
	}
	for (; rest == 1 && at > 0; at--)
		rest = side->trip[at - 1];
	return rest == 1;
}

/* Does it pass words on while it holds them, so that the consumer need not wait for all? */
static bool passes_words_on(const struct op *convert)
{
	return attr_get(convert, KEY_HELD) && attr_get(convert, KEY_REPLAY);
}

static bool try_operand(struct arena *arena, const struct op *op, int operand,
        struct consumer_buffer *consumer_buffer)
{
	const struct op *convert = op->operand[operand]->def;
	if (!is_whole_tensor_buffer(convert) || convert->parent != op->parent ||
	        passes_words_on(convert) || !begins_with(op->kernel, operand))
		return false;
	*consumer_buffer = (struct consumer_buffer){ .convert = convert,
		.operand = operand,
		.loops = nest_loops(op->kernel),
		.stride = ARENA_ARRAY(arena, int64_t, op->kernel->loops + 1) };
	consumer_buffer->box = box_between(arena, attr_get(convert, KEY_TENSOR)->type,
	        convert->operand[0]->type, convert->result[0]->type, 0);
	int64_t word = consumer_buffer->box.why ? 0 : box_word(&consumer_buffer->box);
	return word && word == consumer_buffer->box.fill.lanes &&
	        word == consumer_buffer->box.drain.lanes &&
	        kernel_strides(op->kernel, &op->kernel->operand[operand],
	                &consumer_buffer->box.drain, consumer_buffer->stride);
}

/* Only one operand, the largest: several would be filled one after another, each waiting for the
 * one before. */
static const struct op *largest_buffer(struct arena *arena, const struct op *kernel)
{
	struct consumer_buffer best = { 0 };
	struct consumer_buffer consumer_buffer;
	for (int j = 0; j < kernel->operands; j++)
		if (try_operand(arena, kernel, j, &consumer_buffer) &&
		        (!best.convert || consumer_buffer.box.elements > best.box.elements))
			best = consumer_buffer;
	return best.convert;
}

void mark_consumer_buffers(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			mark_consumer_buffers(module, op->region[0]);
		const struct op *folded =
		        op->code == OP_KERNEL ? largest_buffer(module->arena, op) : NULL;
		for (int j = 0; j < op->operands; j++) {
			struct op *def = op->operand[j]->def;
			if (def && def->code == OP_CONVERT)
				attr_set(module, def, KEY_IN_CONSUMER,
				        def == folded ? attr_unit(module) : NULL);
		}
	}
}

struct consumer_buffer consumer_buffer_of(struct arena *arena, const struct op *kernel)
{
	struct consumer_buffer consumer_buffer;
	for (int j = 0; j < kernel->operands; j++)
		if (kernel->operand[j]->def &&
		        converter_form(kernel->operand[j]->def) == CONVERTER_IN_CONSUMER &&
		        try_operand(arena, kernel, j, &consumer_buffer))
			return consumer_buffer;
	return (struct consumer_buffer){ 0 };
}

bool check_consumer_buffer(struct design *design, const struct op *convert)
{
	for (const struct op *op = convert->next; op; op = op->next)
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == convert->result[0] && op->code == OP_KERNEL &&
			        consumer_buffer_of(design->module->arena, op).convert == convert)
				return true;
	diag_error(design->module->diag, convert->location,
	        "stream.convert: held by its consumer, which does not need all words of %s before "
	        "its first result, or holds another operand",
	        convert->result[0]->type->text);
	return diag_note(
	        design->module->diag, "without in_consumer the converter has a buffer of its own");
}

struct value *consumer_buffer_fill(struct process *p, const struct consumer_buffer *consumer_buffer)
{
	const struct box_side *steps = &consumer_buffer->box.fill;
	struct side side = { .steps = steps, .word = steps->lanes };
	struct value **counter = ARENA_ARRAY(p->module->arena, struct value *, steps->loops + 1);
	const struct value *from = consumer_buffer->convert->operand[0];
	struct value *array =
	        make_array(p, "local_buffer", consumer_buffer->box.elements / steps->lanes,
	                stream_word(p->module, from->type), 1);
	int opened = side_loops(p, &side, counter);
	side_write(p, &side, array, counter,
	        make_pop(p, NULL,
	                process_argument(p, stream_fifo(p->design, from),
	                        text_format(p->module->arena, "x%d", consumer_buffer->operand))));
	process_close(p, opened);
	return array;
}

struct value *consumer_buffer_word(struct process *p, const struct consumer_buffer *consumer_buffer,
        struct value *array, struct value *const *counter, struct value *active)
{
	struct value *address =
	        make_address(p, consumer_buffer->loops, counter, consumer_buffer->stride,
	                consumer_buffer->box.drain.first / consumer_buffer->box.drain.lanes);
	if (active)
		address = make_select(p, active, address, make_index(p, 0));
	return make_load(p, array, address);
}
