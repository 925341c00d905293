/* Chooses the loop orders of all kernels jointly for the least memory on chip: reorder buffers
 * between kernels whose orders differ, accumulators of reductions that are not innermost, and FIFOs
 * where paths meet. Lane loop, lanes, cycles of each kernel and its words from memory stay those of
 * the heuristic (schedule_kernel.c), whose orders are one of the options.
 *
 * Before: stream.kernel {loops = [64, 128, 512], parallelism = {lanes = 16}}
 * After:  the same with schedule = {loops = [[1, 8, 16], [2, 512, 1], [0, 64, 1], [1, 16, 1]],
 *         lanes = 16}
 * Needs: the parallelism of every kernel. Guarantees: every kernel but gathers has a schedule.
 * Exact. Ends: --loop-order-budget bounds the number of costs that are computed. */
#include "ir/kernel_edit.h"
#include "schedule/recorded_choices.h"
#include "schedule/schedule_passes.h"
#include "schedule/search_cache.h"
#include "schedule/tensor_sources.h"

struct chooser {
	struct pass_context *context;
	struct module *module;
	struct loop_order_graph graph;
	struct schedule *first; /* [kernels] the heuristic's schedules */
};

static int count_ops(const struct block *block, enum op_code code)
{
	int count = 0;
	for (const struct op *op = block->first; op; op = op->next)
		count += op->code == OP_FOR ? count_ops(op->region[0], code) : op->code == code;
	return count;
}

static void add_kernels(struct chooser *c, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			add_kernels(c, op->region[0]);
		if (op->code != OP_KERNEL || kernel_is_gather(op))
			continue;
		int k = c->graph.kernels++;
		c->first[k] =
		        schedule_kernel(c->module, op, operand_locations(c->module->arena, op),
		                is_only_stored(op), recorded_parallelism(op).lanes);
		c->graph.kernel[k] =
		        (struct loop_order_kernel){ .op = op, .operands = op->operands };
		c->graph.kernel[k].source = ARENA_ARRAY(c->graph.arena, int, op->operands + 1);
		c->graph.kernel[k].post_operand =
		        ARENA_ARRAY(c->graph.arena, bool, op->operands + 1);
		tensor_source_of(op->result[0])->kernel = k + 1;
	}
}

/* A result of the rolled layer has the order in which layers hand it over: it is the same value. */
static const struct value *loop_yielded(const struct value *value)
{
	return value->def && value->def->code == OP_FOR && !loop_collects(value->def, value->index)
	        ? value->def->region[0]->argument[value->index + 1]
	        : value;
}

static int value_of(struct chooser *c, const struct value *of)
{
	const struct value *value = loop_yielded(of);
	struct tensor_source *tensor_source = tensor_source_of(value);
	const struct tensor_source *made = tensor_source_of(loop_yield_of(value));
	if (tensor_source->kind == SOURCE_MEMORY && !tensor_source->ordered)
		return -1;
	if (tensor_source->order)
		return tensor_source->order - 1;
	struct loop_order_value *row = &c->graph.value[c->graph.values];
	*row = (struct loop_order_value){ .elements = type_elements(value->type),
		.bytes = (type_bits(type_scalar(value->type)) + 7) / 8 };
	row->writer = made ? made->kernel - 1 : -1;
	row->copies = tensor_source->kind == SOURCE_LAYER_MUX ? tensor_source->count : 1;
	row->into_layers = tensor_source->kind == SOURCE_LAYER_MUX;
	row->streams = tensor_source->kind != SOURCE_MEMORY;
	const struct op *def = loop_yield_of(value)->def;
	struct order fixed = def && def->code == OP_CONTRACT ? order_of_contract(c->module, def)
	                                                     : order_of_tensor(value->type);
	row->fixed = loop_order_row(c->graph.arena, &row->written, &fixed);
	tensor_source->order = ++c->graph.values;
	return tensor_source->order - 1;
}

static bool from_outside(const struct value *value, const struct op *reader)
{
	return (value->def ? value->def->parent : value->block) != reader->parent &&
	        tensor_source_of(value)->kind != SOURCE_MEMORY;
}

static int wanted_row(struct chooser *c, struct loop_order_value *value, struct order order)
{
	return loop_order_row(c->graph.arena, &value->wanted, &order);
}

static void add_ports(struct chooser *c, int k)
{
	struct loop_order_kernel *kernel = &c->graph.kernel[k];
	for (int j = 0; j < kernel->operands; j++) {
		const struct value *operand = kernel->op->operand[j];
		int v = kernel->source[j] = value_of(c, operand);
		kernel->post_operand[j] = kernel_is_post_operand(kernel->op->kernel, j);
		if (v < 0)
			continue;
		c->graph.value[v].into_layers =
		        c->graph.value[v].into_layers || from_outside(operand, kernel->op);
		VEC_PUSH(c->graph.arena, &c->graph.value[v].reader,
		        ((struct loop_order_reader){ k, j }));
	}
	const struct value *result = kernel->op->result[0];
	kernel->value = value_of(c, result);
	struct loop_order_value *value = &c->graph.value[kernel->value];
	value->stored = tensor_source_of(result)->stored;
	/* a row of a state is stored in row-major order */
	if (tensor_source_of(result)->row)
		VEC_PUSH(c->graph.arena, &value->reader,
		        ((struct loop_order_reader){
		                -1, wanted_row(c, value, order_of_tensor(result->type)) }));
}

/* Adds readers with a fixed order: the matmul engine, the padding of rows, and layers that take a
 * row each. */
static void add_contractions(struct chooser *c, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			add_contractions(c, op->region[0]);
		int operands = op->code == OP_CONTRACT ? 2 : op->code == OP_PAD_TOKENS;
		bool row = op->code == OP_LAYER_ROW;
		for (int j = row; j < operands + 2 * row; j++) {
			int v = value_of(c, op->operand[j]);
			if (v < 0)
				continue;
			struct order order = op->code == OP_CONTRACT
			        ? order_of_group_operand(c->module, op, j)
			        : order_of_tensor(op->operand[j]->type);
			VEC_PUSH(c->graph.arena, &c->graph.value[v].reader,
			        ((struct loop_order_reader){
			                -1, wanted_row(c, &c->graph.value[v], order) }));
		}
	}
}

/* Marks results of the layers that are stored. */
static void add_stored(struct chooser *c, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next)
		for (int r = 0; op->code == OP_FOR && r < op->results; r++) {
			const struct tensor_source *carried =
			        tensor_source_of(loop_yielded(op->result[r]));
			const struct tensor_source *result = tensor_source_of(op->result[r]);
			if (carried && carried->order && result && result->stored)
				c->graph.value[carried->order - 1].stored = true;
		}
}

static void add_carried(struct loop_order_graph *graph)
{
	for (int k = 0; k < graph->kernels; k++)
		graph->kernel[k].carried = -1;
	for (int v = 0; v < graph->values; v++) {
		int writer = graph->value[v].writer;
		if (writer >= 0 && graph->kernel[writer].value != v)
			graph->kernel[writer].carried = v;
	}
}

static int ports(const struct loop_order_graph *graph)
{
	int count = 0;
	for (int k = 0; k < graph->kernels; k++)
		count += graph->kernel[k].operands + 1;
	return count;
}

static void build_graph(struct chooser *c, const struct block *block)
{
	int kernels = count_ops(block, OP_KERNEL);
	c->graph.arena = c->module->arena;
	c->graph.kernel = ARENA_ARRAY(c->graph.arena, struct loop_order_kernel, kernels + 1);
	c->first = ARENA_ARRAY(c->graph.arena, struct schedule, kernels + 1);
	add_kernels(c, block);
	c->graph.value = ARENA_ARRAY(c->graph.arena, struct loop_order_value,
	        ports(&c->graph) + 2 * count_ops(block, OP_CONTRACT) +
	                count_ops(block, OP_PAD_TOKENS) + count_ops(block, OP_LAYER_ROW) + 1);
	for (int k = 0; k < c->graph.kernels; k++)
		add_ports(c, k);
	add_contractions(c, block);
	add_stored(c, block);
	add_carried(&c->graph);
	loop_order_prepare(&c->graph, c->context->platform, c->first);
}

/* Records the chosen schedules. A schedule that gives some port no type is not taken. */
static void record_block(const struct chooser *c, const struct block *block, const int *choice)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			record_block(c, op->region[0], choice);
		if (op->code != OP_KERNEL || kernel_is_gather(op))
			continue;
		int k = tensor_source_of(op->result[0])->kernel - 1;
		const struct schedule *chosen = &c->graph.kernel[k].option[choice[k]].schedule;
		record_schedule(c->module, op,
		        schedule_fits(c->module, op, chosen) ? chosen : &c->first[k]);
	}
}

void choose_orders(struct pass_context *context, struct module *module, int spills)
{
	struct chooser c = { .context = context, .module = module };
	const struct block *body = module_main(module)->region[0];
	find_tensor_sources(module, NULL);
	build_graph(&c, body);
	int *choice = ARENA_ARRAY(c.graph.arena, int, c.graph.kernels + 1);
	c.graph.spills = spills;
	int64_t points = choice_count(&context->choices, CHOICE_LOOP_ORDER_BUDGET);
	struct search_key search_key = loop_order_search_key(&c.graph, points);
	if (!search_cache_lookup(context->search_cache, &search_key, c.graph.kernels, choice)) {
		loop_order_search(&c.graph, points, choice);
		search_cache_store(context->search_cache, &search_key, c.graph.kernels, choice);
	}
	record_block(&c, body, choice);
}

bool choose_loop_orders(struct pass_context *context, struct module *module)
{
	if (!kernels_have_parallelism(module))
		return false;
	ir_count_uses(module_main(module)->region[0]);
	choose_orders(context, module, 0);
	return true;
}
