/* Walks a layer and adds up the bytes of its results (tensor level) or memories (hardware
 * level). */
#include "predict/intermediates.h"

#define ELEMENT_BYTES 4

static const struct op *rolled_layer(const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next)
		if (op->code == OP_FOR)
			return op;
	return NULL;
}

static bool is_weight(const struct op *main, int argument)
{
	const struct attr *role = function_argument_attr(main, argument, KEY_STREAM_ROLE);
	return role && text_same(role->text, "weight");
}

/* Does the op's result depend only on weights and constants? value->id marks such values; a layer
 * counter may select among them. */
static bool is_prepared(const struct op *op)
{
	if (op->code == OP_CONSTANT || op->code == OP_TENSOR_EMPTY)
		return true;
	if (op->code != OP_KERNEL && op->code != OP_LAYER_SELECT && op->code != OP_LAYER_EXTRACT)
		return false;
	for (int j = op->code == OP_LAYER_SELECT; j < op->operands; j++)
		if (!op->operand[j]->id)
			return false;
	return true;
}

static void mark_prepared(const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		for (int r = 0; r < op->results; r++)
			op->result[r]->id = is_prepared(op);
		for (int i = 0; op->code == OP_FOR && i < op->region[0]->arguments; i++)
			op->region[0]->argument[i]->id = 0;
		if (op->code == OP_FOR)
			mark_prepared(op->region[0]);
	}
}

/* Only moves elements: a copy, a concatenation or a fill. */
static bool is_copy(const struct kernel *kernel)
{
	if (kernel_has_reduction(kernel))
		return false;
	for (int n = 0; n < kernel->update.count; n++) {
		const struct node *node = &kernel->update.node[n];
		if (node->kind == NODE_OP && node->code != OP_ACTIVE && node->code != OP_SELECT)
			return false;
	}
	return true;
}

struct intermediates intermediates_count(const struct module *module)
{
	struct intermediates count = { 0 };
	const struct op *main = module_main(module);
	const struct block *block = main->region[0];
	for (int i = 0; i < block->arguments; i++)
		block->argument[i]->id = is_weight(main, i);
	mark_prepared(block);
	const struct op *layer = rolled_layer(block);
	for (const struct op *op = layer ? layer->region[0]->first : block->first; op;
	        op = op->next) {
		if (op->code != OP_KERNEL || op->result[0]->id || is_copy(op->kernel))
			continue;
		count.bytes += ELEMENT_BYTES * type_elements(op->result[0]->type);
		count.kernels++;
	}
	return count;
}

void intermediates_note(struct module *module, enum attr_key key, struct intermediates count)
{
	const int64_t figures[] = { count.bytes, count.kernels };
	attr_set(module, module->op, key, attr_integers(module, 2, figures));
}

struct intermediates intermediates_noted(const struct module *module, enum attr_key key)
{
	const struct attr *figures = attr_get(module->op, key);
	bool noted = figures && figures->count == 2 && figures->integers;
	return noted ? (struct intermediates){ figures->integers[0], (int)figures->integers[1] }
	             : (struct intermediates){ 0 };
}

static bool in_layer(const struct value *channel)
{
	return channel->def && attr_get(channel->def, KEY_STREAM_IN_LAYER);
}

static bool works_in_layer(const struct op *call)
{
	for (int j = 0; j < call->operands; j++)
		if (in_layer(call->operand[j]))
			return true;
	return false;
}

static void add_channel(struct on_chip *sum, const struct channel_cost *channel)
{
	const struct op *op = channel->op;
	int64_t *kind = &sum->fifos;
	if (op->code == OP_BLOCK_CHANNEL)
		kind = &sum->converters;
	else if (attr_get(op, KEY_STREAM_LAYER_FEEDBACK))
		kind = &sum->layer_feedback;
	else if (attr_get(op, KEY_STREAM_PREFETCH))
		kind = &sum->prefetch;
	*kind += channel->needed;
}

/* Classifies the arrays of a process by name: "acc" holds a kernel's sums, "box" is a converter's,
 * "local_buffer" a converter buffer folded into its reader, "parts" (the word that a cast
 * assembles) and "running" (sums on their way through an adder) are of the datapath, all others are
 * buffers. */
static void add_array(struct op *op, void *context)
{
	struct on_chip *sum = context;
	if (op->code != OP_ALLOCA)
		return;
	const char *name = attr_text_or(op, KEY_STREAM_NAME, "");
	if (text_same(name, "acc"))
		sum->accumulators += memory_bytes(op);
	else if (text_same(name, "box") || text_same(name, "local_buffer"))
		sum->converters += memory_bytes(op);
	else if (!text_same(name, "parts") && !text_same(name, "running"))
		sum->buffers += memory_bytes(op);
}

struct on_chip on_chip_count(const struct design_cost *cost)
{
	struct on_chip sum = { 0 };
	for (int i = 0; i < cost->channels; i++)
		sum.rolled = sum.rolled || in_layer(cost->channel[i].op->result[0]);
	for (int i = 0; i < cost->channels; i++)
		if (!sum.rolled || in_layer(cost->channel[i].op->result[0]))
			add_channel(&sum, &cost->channel[i]);
	for (int i = 0; i < cost->processes; i++)
		if (!sum.rolled || works_in_layer(cost->process[i].call))
			ir_walk(cost->process[i].function->region[0], add_array, &sum);
	sum.bytes =
	        sum.converters + sum.accumulators + sum.fifos + sum.buffers + sum.layer_feedback;
	return sum;
}
