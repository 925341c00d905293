/* Finds where the elements of each tensor value come from, before any kernel is scheduled: passes
 * that schedule kernels and the one that forms streams ask it of the same module. */
#include "schedule/tensor_sources.h"

struct tensor_source *new_tensor_source(
        struct module *module, struct value *value, enum tensor_source_kind kind)
{
	struct tensor_source *tensor_source =
	        value->data ? value->data : ARENA_NEW(module->arena, struct tensor_source);
	tensor_source->kind = kind;
	tensor_source->tensor = value->type;
	value->data = tensor_source;
	return tensor_source;
}

static struct tensor_source *memory_source(
        struct module *module, struct value *value, struct value *argument)
{
	struct tensor_source *tensor_source = new_tensor_source(module, value, SOURCE_MEMORY);
	tensor_source->count = 1;
	tensor_source->argument = ARENA_ARRAY(module->arena, struct value *, 1);
	tensor_source->argument[0] = argument;
	return tensor_source;
}

bool is_tensor_constant(const struct op *op)
{
	return op->code == OP_CONSTANT && op->result[0]->type->kind == TYPE_TENSOR;
}

/* The arguments of main, then its constants. */
static void mark_memory(struct module *module, const struct block *made)
{
	const struct op *main = module_main(module);
	struct block *body = main->region[0];
	int place = body->arguments;
	for (int i = 0; i < body->arguments; i++) {
		struct value *argument = body->argument[i];
		const struct attr *role = function_argument_attr(main, i, KEY_STREAM_ROLE);
		struct tensor_source *tensor_source =
		        memory_source(module, argument, made ? made->argument[i] : argument);
		tensor_source->ordered = role && text_same(role->text, "state");
		tensor_source->is_launch_input = role && text_same(role->text, "input");
		tensor_source->dims = function_argument_attr(main, i, KEY_STREAM_DIMS);
	}
	for (struct op *op = body->first; op; op = op->next)
		if (is_tensor_constant(op))
			memory_source(module, op->result[0],
			        made ? made->argument[place++] : op->result[0]);
}

/* Records for each tensor whether kernels and loops read it, or only results of main. */
static void mark_readers(struct module *module, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		bool stacked = op->code == OP_INSERT_LAYER &&
		        !loop_streams_stack(op->parent->parent, op->operand[1]->index - 1);
		bool stores = op->code == OP_RETURN || stacked || op->code == OP_LAYER_EXTRACT;
		for (int j = 0; j < op->operands; j++) {
			struct tensor_source *tensor_source = op->operand[j]->data
			        ? op->operand[j]->data
			        : new_tensor_source(module, op->operand[j], SOURCE_NONE);
			*(stores ? &tensor_source->stored : &tensor_source->read) = true;
		}
		if (op->code == OP_FOR)
			mark_readers(module, op->region[0]);
	}
}

/* A layer select among streams: lists the different streams, and which of them each layer reads. */
static void mark_layer_mux(struct module *module, const struct op *op)
{
	struct tensor_source *tensor_source =
	        new_tensor_source(module, op->result[0], SOURCE_LAYER_MUX);
	tensor_source->choice = ARENA_ARRAY(module->arena, struct tensor_source *, op->operands);
	tensor_source->table = ARENA_ARRAY(module->arena, int64_t, op->operands);
	for (int i = 1; i < op->operands; i++) {
		struct tensor_source *from = op->operand[i]->data
		        ? tensor_source_of(op->operand[i])
		        : new_tensor_source(module, op->operand[i], SOURCE_NONE);
		int known = 0;
		while (known < tensor_source->count && tensor_source->choice[known] != from)
			known++;
		if (known == tensor_source->count)
			tensor_source->choice[tensor_source->count++] = from;
		tensor_source->table[tensor_source->layers++] = known;
	}
}

/* Sets the sources of layer selects, which are known before any op is emitted. */
static void mark_layer_selects(struct module *module, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			mark_layer_selects(module, op->region[0]);
		if (op->code != OP_LAYER_SELECT)
			continue;
		bool memory = true;
		for (int i = 1; i < op->operands; i++)
			memory = memory && op->operand[i]->data &&
			        tensor_source_of(op->operand[i])->kind == SOURCE_MEMORY &&
			        !tensor_source_of(op->operand[i])->layered;
		if (!memory) {
			mark_layer_mux(module, op);
			continue;
		}
		struct tensor_source *tensor_source =
		        new_tensor_source(module, op->result[0], SOURCE_MEMORY);
		tensor_source->layered = true;
		tensor_source->argument = ARENA_ARRAY(module->arena, struct value *, op->operands);
		for (int i = 1; i < op->operands; i++) {
			tensor_source->ordered =
			        tensor_source->ordered || tensor_source_of(op->operand[i])->ordered;
			tensor_source->dims = tensor_source_of(op->operand[1])->dims;
			tensor_source->argument[tensor_source->count++] =
			        tensor_source_of(op->operand[i])->argument[0];
		}
	}
}

static bool is_row(const struct op *main, int result)
{
	return function_result_attr(main, result, KEY_STREAM_POSITION);
}

const struct attr *stack_results(
        struct module *module, const struct op *loop, int carried, bool rows, int skip)
{
	const struct op *main = module_main(module);
	const struct op *results = main->region[0]->last;
	int64_t layers = type_elements(loop->result[carried]->type)
	        ? loop->result[carried]->type->shape[0]
	        : 0;
	int64_t *result = ARENA_ARRAY(module->arena, int64_t, layers + 1);
	int64_t *seen = ARENA_ARRAY(module->arena, int64_t, layers + 1);
	bool any = false;
	for (int64_t l = 0; l < layers; l++)
		result[l] = -1;
	for (int r = 0; r < results->operands; r++) {
		const struct op *part = results->operand[r]->def;
		if (!part || part->code != OP_LAYER_EXTRACT ||
		        part->operand[0] != loop->result[carried] || is_row(main, r) != rows)
			continue;
		int64_t layer = attr_integer_or(part, KEY_INDEX, 0);
		if (seen[layer]++ == skip) {
			result[layer] = r;
			any = true;
		}
	}
	return any ? attr_integers(module, (int)layers, result) : NULL;
}

/* Marks tensors that are stored as rows of a state. */
static void mark_rows(struct module *module, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			mark_rows(module, op->region[0]);
		for (int r = 0; op->code == OP_RETURN && r < op->operands; r++)
			tensor_source_of(op->operand[r])->row =
			        tensor_source_of(op->operand[r])->row ||
			        is_row(module_main(module), r);
		if (op->code != OP_INSERT_LAYER || !op->operand[1]->block)
			continue;
		const struct value *stack = op->operand[1];
		tensor_source_of(op->operand[0])->row =
		        stack_results(module, stack->block->parent, stack->index - 1, true, 0);
	}
}

void find_tensor_sources(struct module *module, const struct block *made)
{
	struct block *body = module_main(module)->region[0];
	ir_clear_data(body);
	mark_memory(module, made);
	mark_readers(module, body);
	mark_layer_selects(module, body);
	mark_rows(module, body);
}
