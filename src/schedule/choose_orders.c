/* Chooses the loop orders of all kernels together, so that what stays on chip is small: re-ordering buffers between kernels whose orders differ, sums held
 * because a reduction is not innermost, and words held because paths meet again.  The lane loop, the number of lanes, the cycles of each kernel and the words
 * that it reads from memory stay those of the heuristic (plan_kernel.c), whose orders are one of the choices.
 * Effort: --order-points costs are computed at most. */
#include "ir/kernel_edit.h"
#include "schedule/answers.h"
#include "schedule/sources.h"

struct chooser {
	struct streams *streams;
	struct orders_graph graph;
	const struct width *width;
	struct plan *first;       /* [kernels] the heuristic's */
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
		c->first[k] = plan_kernel(s->module, op, reach_of(s->module->arena, op), only_stored(op), c->width[op->result[0]->id].lanes);
		c->graph.kernel[k] = (struct orders_kernel){.op = op, .operands = op->operands};
		c->graph.kernel[k].source = ARENA_ARRAY(c->graph.arena, int, op->operands + 1);
		c->graph.kernel[k].late = ARENA_ARRAY(c->graph.arena, bool, op->operands + 1);
		flow_of(op->result[0])->kernel = k + 1;
	}
}

/* What comes out of the rolled layer flows in the order in which layers hand it on: it is the same value. */
static const struct value *handed_on(const struct value *value)
{
	return value->def && value->def->code == OP_FOR ? value->def->region[0]->argument[value->index + 1] : value;
}

static int value_of(struct chooser *c, const struct value *of)
{
	const struct value *value = handed_on(of);
	struct flow *flow = flow_of(value);
	const struct flow *made = flow_of(made_as(value));
	if (flow->kind == FLOW_MEMORY && !flow->ordered)
		return -1;
	if (flow->order)
		return flow->order - 1;
	struct orders_value *row = &c->graph.value[c->graph.values];
	*row = (struct orders_value){.elements = type_elements(value->type), .bytes = (type_bits(type_scalar(value->type)) + 7) / 8};
	row->writer = made ? made->kernel - 1 : -1;
	row->copies = flow->kind == FLOW_CHOICE ? flow->count : 1;
	row->crossing = flow->kind == FLOW_CHOICE;
	row->streams = flow->kind != FLOW_MEMORY;
	const struct op *def = made_as(value)->def;
	struct order fixed = def && def->code == OP_CONTRACT ? order_of_contract(c->streams, def) : order_of_tensor(value->type);
	row->fixed = orders_row(c->graph.arena, &row->written, &fixed);
	flow->order = ++c->graph.values;
	return flow->order - 1;
}

static bool from_outside(const struct value *value, const struct op *reader)
{
	return (value->def ? value->def->parent : value->block) != reader->parent && flow_of(value)->kind != FLOW_MEMORY;
}

static int wanted_row(struct chooser *c, struct orders_value *value, struct order order)
{
	return orders_row(c->graph.arena, &value->wanted, &order);
}

static void add_ports(struct chooser *c, int k)
{
	struct orders_kernel *kernel = &c->graph.kernel[k];
	for (int j = 0; j < kernel->operands; j++) {
		const struct value *operand = kernel->op->operand[j];
		int v = kernel->source[j] = value_of(c, operand);
		kernel->late[j] = kernel_is_post_operand(kernel->op->kernel, j);
		if (v < 0)
			continue;
		c->graph.value[v].crossing = c->graph.value[v].crossing || from_outside(operand, kernel->op);
		VEC_PUSH(c->graph.arena, &c->graph.value[v].reader, ((struct orders_reader){k, j}));
	}
	const struct value *result = kernel->op->result[0];
	kernel->value = value_of(c, result);
	struct orders_value *value = &c->graph.value[kernel->value];
	value->stored = flow_of(result)->stored;
	if (flow_of(result)->row)             /* a row of a state is stored in its natural order */
		VEC_PUSH(c->graph.arena, &value->reader, ((struct orders_reader){-1, wanted_row(c, value, order_of_tensor(result->type))}));
}

/* Those who take numbers in a fixed order: a unit, and what fills rows up. */
static void add_contractions(struct chooser *c, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			add_contractions(c, op->region[0]);
		int operands = op->code == OP_CONTRACT ? 2 : op->code == OP_FILL;
		for (int j = 0; j < operands; j++) {
			int v = value_of(c, op->operand[j]);
			if (v < 0)
				continue;
			struct order order = op->code == OP_CONTRACT ? order_of_groups(c->streams, op, j) : order_of_tensor(op->operand[j]->type);
			VEC_PUSH(c->graph.arena, &c->graph.value[v].reader, ((struct orders_reader){-1, wanted_row(c, &c->graph.value[v], order)}));
		}
	}
}

/* What comes out of the layers and is stored. */
static void add_stored(struct chooser *c, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next)
		for (int r = 0; op->code == OP_FOR && r < op->results; r++) {
			const struct flow *carried = flow_of(handed_on(op->result[r])), *result = flow_of(op->result[r]);
			if (carried && carried->order && result && result->stored)
				c->graph.value[carried->order - 1].stored = true;
		}
}

static void add_carried(struct orders_graph *graph)
{
	for (int k = 0; k < graph->kernels; k++)
		graph->kernel[k].carried = -1;
	for (int v = 0; v < graph->values; v++) {
		int writer = graph->value[v].writer;
		if (writer >= 0 && graph->kernel[writer].value != v)
			graph->kernel[writer].carried = v;
	}
}

static int ports(const struct orders_graph *graph)
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
	c->graph.kernel = ARENA_ARRAY(c->graph.arena, struct orders_kernel, kernels + 1);
	c->first = ARENA_ARRAY(c->graph.arena, struct plan, kernels + 1);
	add_kernels(c, block);
	c->graph.value = ARENA_ARRAY(c->graph.arena, struct orders_value, ports(&c->graph) + 2 * count_ops(block, OP_CONTRACT) + count_ops(block, OP_FILL) + 1);
	for (int k = 0; k < c->graph.kernels; k++)
		add_ports(c, k);
	add_contractions(c, block);
	add_stored(c, block);
	add_carried(&c->graph);
	orders_prepare(&c->graph, c->streams->context->platform, c->first);
}

struct plan *choose_orders(struct streams *streams, const struct block *block, const struct width *width)
{
	struct chooser c = {.streams = streams, .width = width};
	build_graph(&c, block);
	int *choice = ARENA_ARRAY(c.graph.arena, int, c.graph.kernels + 1);
	c.graph.cuts = streams->frugal ? ORDERS_CUTS : 0;
	int64_t points = choice_count(&streams->context->choices, CHOICE_ORDER_POINTS);
	struct problem problem = problem_of_orders(&c.graph, points);
	if (!answer_known(streams->context->answers, &problem, c.graph.kernels, choice)) {
		orders_search(&c.graph, points, choice);
		answer_keep(streams->context->answers, &problem, c.graph.kernels, choice);
	}
	struct plan *plan = ARENA_ARRAY(c.graph.arena, struct plan, count_ops(block, OP_KERNEL) + 1);
	for (int k = 0; k < c.graph.kernels; k++) {
		const struct orders_kernel *kernel = &c.graph.kernel[k];
		const struct plan *chosen = &kernel->option[choice[k]].plan;
		plan[kernel->op->result[0]->id] = plan_fits(streams->module, kernel->op, chosen) ? *chosen : c.first[k];
	}
	return plan;
}
