/* Chooses the loop orders of all kernels jointly for the least memory on chip: reorder buffers
 * between kernels whose orders differ, accumulators of reductions that are not innermost, and FIFOs
 * where paths meet. Lane loop, lanes, cycles of each kernel and its words from memory stay those of
 * the heuristic (schedule_kernel.c), whose orders are one of the options. Ends: --loop-order-budget
 * bounds the number of costs that are computed. */
#include "ir/kernel_edit.h"
#include "schedule/search_cache.h"
#include "schedule/tensor_sources.h"

struct chooser {
	struct streams *streams;
	struct loop_order_graph graph;
	const struct parallelism *parallelism;
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
	struct streams *s = c->streams;
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			add_kernels(c, op->region[0]);
		if (op->code != OP_KERNEL || kernel_is_gather(op))
			continue;
		int k = c->graph.kernels++;
		c->first[k] =
		        schedule_kernel(s->module, op, operand_locations(s->module->arena, op),
		                is_only_stored(op), c->parallelism[op->result[0]->id].lanes);
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
	return value->def && value->def->code == OP_FOR
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
	row->crossing = tensor_source->kind == SOURCE_LAYER_MUX;
	row->streams = tensor_source->kind != SOURCE_MEMORY;
	const struct op *def = loop_yield_of(value)->def;
	struct order fixed = def && def->code == OP_CONTRACT ? order_of_contract(c->streams, def)
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
		c->graph.value[v].crossing =
		        c->graph.value[v].crossing || from_outside(operand, kernel->op);
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

/* Adds readers with a fixed order: the matmul engine, and the padding of rows. */
static void add_contractions(struct chooser *c, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			add_contractions(c, op->region[0]);
		int operands = op->code == OP_CONTRACT ? 2 : op->code == OP_PAD_TOKENS;
		for (int j = 0; j < operands; j++) {
			int v = value_of(c, op->operand[j]);
			if (v < 0)
				continue;
			struct order order = op->code == OP_CONTRACT
			        ? order_of_group_operand(c->streams, op, j)
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
	c->graph.arena = c->streams->module->arena;
	c->graph.kernel = ARENA_ARRAY(c->graph.arena, struct loop_order_kernel, kernels + 1);
	c->first = ARENA_ARRAY(c->graph.arena, struct schedule, kernels + 1);
	add_kernels(c, block);
	c->graph.value = ARENA_ARRAY(c->graph.arena, struct loop_order_value,
	        ports(&c->graph) + 2 * count_ops(block, OP_CONTRACT) +
	                count_ops(block, OP_PAD_TOKENS) + 1);
	for (int k = 0; k < c->graph.kernels; k++)
		add_ports(c, k);
	add_contractions(c, block);
	add_stored(c, block);
	add_carried(&c->graph);
	loop_order_prepare(&c->graph, c->streams->context->platform, c->first);
}

struct schedule *choose_loop_orders(
        struct streams *streams, const struct block *block, const struct parallelism *parallelism)
{
	struct chooser c = { .streams = streams, .parallelism = parallelism };
	build_graph(&c, block);
	int *choice = ARENA_ARRAY(c.graph.arena, int, c.graph.kernels + 1);
	c.graph.spills = streams->assume_spilled ? LOOP_ORDER_SPILLS : 0;
	int64_t points = choice_count(&streams->context->choices, CHOICE_LOOP_ORDER_BUDGET);
	struct search_key search_key = loop_order_search_key(&c.graph, points);
	if (!search_cache_lookup(
	            streams->context->search_cache, &search_key, c.graph.kernels, choice)) {
		loop_order_search(&c.graph, points, choice);
		search_cache_store(
		        streams->context->search_cache, &search_key, c.graph.kernels, choice);
	}
	struct schedule *schedule =
	        ARENA_ARRAY(c.graph.arena, struct schedule, count_ops(block, OP_KERNEL) + 1);
	for (int k = 0; k < c.graph.kernels; k++) {
		const struct loop_order_kernel *kernel = &c.graph.kernel[k];
		const struct schedule *chosen = &kernel->option[choice[k]].schedule;
		schedule[kernel->op->result[0]->id] =
		        schedule_fits(streams->module, kernel->op, chosen) ? *chosen : c.first[k];
	}
	return schedule;
}
