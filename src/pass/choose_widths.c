/* How many lanes each kernel may have, and how many memory ports its largest operand.
 *
 * Decode is bound by reading weights once: the kernel that would read longest gets twice the ports, again and again, until the ports are spent (intensity-aware,
 * after HIDA).  A kernel that uses each weight for several tokens needs lanes rather than ports.  If the operators then exceed the budget of DSPs, every
 * width is halved until they fit. */
#include "pass/streams.h"

#define PORT_BITS 512
#define LANES 16                    /* f32 in a port */
#define REUSED_LANES 64             /* f32 lanes of a kernel that uses each weight for several tokens */
#define REUSE 4
#define BULK_ELEMENTS 4096          /* fewer share a port */
#define SHARED_PORTS 10             /* kept for constants, inputs, states and results */
#define MOST_PORTS 8                /* of one operand: a word has at most 4096 bits */
#define MOST_LANES 1024             /* 4-bit numbers in such a word */
#define KERNEL_SHARE 20             /* an elementwise kernel may use this part of the operators' DSPs */
#define TREE_SHARE 4                /* a reduction that streams no weights this part: each of its words is a whole sum */
#define DSP_SHARE 6                 /* tenths of the DSPs that operators may use: the rest is for placement */

struct candidate {
	const struct op *op;
	int operand;
	int64_t port_lanes;       /* elements in a word of a memory port */
	int64_t elements, reuse;
	bool frozen;
};

static int64_t points(const struct op *op, int operand, bool used)
{
	int64_t product = 1;
	for (int l = 0; l < op->kernel->loops; l++)
		if ((op->kernel->operand[operand].stride[l] != 0) == used && (used || !op->kernel->loop[l].reduction))
			product *= op->kernel->loop[l].extent;
	return product;
}

/* A listed kernel that reads the sums of another: what it takes from memory, their scales, is little beside what the other takes. */
static const struct op *maker_of_sums(const struct op *op)
{
	for (int j = 0; op->kernel->ordered && j < op->operands; j++) {
		const struct op *maker = op->operand[j]->def;
		if (maker && maker->code == OP_KERNEL && maker->kernel->ordered && kernel_has_reduction(maker->kernel))
			return maker;
	}
	return NULL;
}

static struct candidate find_bulk(struct arena *arena, const struct op *op)
{
	struct candidate best = {.op = op, .operand = -1, .port_lanes = LANES};
	if (maker_of_sums(op))
		return best;
	enum reach *reach = reach_of(arena, op);
	for (int j = 0; j < op->operands; j++) {
		struct flow *flow = flow_of(op->operand[j]);
		int64_t elements = points(op, j, true);
		if (reach[j] != REACH_PACKED || elements < BULK_ELEMENTS || elements * flow->count <= best.elements)
			continue;
		best.operand = j;
		best.port_lanes = PORT_BITS / type_bits(type_scalar(op->operand[j]->type));
		best.elements = elements * flow->count;
		best.reuse = points(op, j, false);
	}
	return best;
}

static struct plan planned(struct streams *streams, const struct op *op, int64_t most)
{
	return plan_kernel(streams->module, op, reach_of(streams->module->arena, op), only_stored(op), most);
}

static int64_t node_dsp(const struct platform *platform, const struct body *body, const struct node *node)
{
	const struct node *left = &body->node[node->argument[0]], *right = &body->node[node->argument[1]];
	if (node->code != OP_MULI || left->code != OP_EXTSI || right->code != OP_EXTSI)
		return platform_operator(platform, node->code, node->type).dsp;
	int bits = body->node[left->argument[0]].type->width, other = body->node[right->argument[0]].type->width;
	return platform_product(platform, bits > other ? bits : other).dsp;
}

static int64_t body_dsp(const struct platform *platform, const struct body *body)
{
	int64_t dsp = 0;
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP)
			dsp += node_dsp(platform, body, &body->node[n]);
	return dsp;
}

/* A reduction over the lanes ends in one number: its post body stands once. */
static int64_t kernel_dsp(struct streams *streams, const struct op *op, const struct width *width)
{
	const struct platform *platform = streams->context->platform;
	struct plan plan = planned(streams, op, width->lanes);
	bool tree = plan.lanes > 1 && op->kernel->loop[plan.part[plan.parts - 1].source].reduction;
	return plan.lanes * plan.rows * body_dsp(platform, &op->kernel->update) + (tree ? 1 : plan.lanes) * body_dsp(platform, &op->kernel->post);
}

static int64_t total_dsp(struct streams *streams, const struct op *const *kernel, const struct width *width, int count)
{
	int64_t dsp = 0;
	for (int i = 0; i < count; i++)
		dsp += kernel_dsp(streams, kernel[i], &width[i]);
	return dsp;
}

static int collect(const struct block *block, const struct op **kernel, int count)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			count = collect(op->region[0], kernel, count);
		if (op->code != OP_KERNEL)
			continue;
		if (kernel)
			kernel[count] = op;
		op->result[0]->id = count++;
	}
	return count;
}

static int64_t cycles_of(const struct candidate *candidate, const struct width *width)
{
	return candidate->elements / candidate->port_lanes / width->ports;
}

/* Gives the slowest reader twice the ports while there are any. */
static void spend_ports(struct streams *streams, struct candidate *candidate, struct width *width, int count, int ports)
{
	for (;;) {
		int slowest = -1;
		for (int i = 0; i < count; i++)
			if (candidate[i].operand >= 0 && !candidate[i].frozen && width[i].ports <= ports && 2 * width[i].ports <= MOST_PORTS &&
			    (slowest < 0 || cycles_of(&candidate[i], &width[i]) > cycles_of(&candidate[slowest], &width[slowest])))
				slowest = i;
		if (slowest < 0)
			return;
		int64_t lanes = 2 * candidate[slowest].port_lanes * width[slowest].ports;
		struct plan plan = planned(streams, candidate[slowest].op, lanes);
		if (plan.lanes * plan.rows != lanes) {
			candidate[slowest].frozen = true;
			continue;
		}
		ports -= width[slowest].ports;
		width[slowest].ports *= 2;
		width[slowest].lanes = lanes;
	}
}

/* A kernel whose loops are listed needs no more lanes than the sums that it reads arrive in. */
static void keep_pace(struct streams *streams, const struct op *const *kernel, struct width *width, int i)
{
	const struct op *maker = maker_of_sums(kernel[i]);
	if (!maker)
		return;
	width[i].lanes = planned(streams, maker, width[maker->result[0]->id].lanes).rows;
}

struct width *choose_widths(struct streams *streams, const struct block *block)
{
	struct arena *arena = streams->module->arena;
	const struct platform *platform = streams->context->platform;
	int count = collect(block, NULL, 0), ports = platform->ports - SHARED_PORTS;
	const struct op **kernel = ARENA_ARRAY(arena, const struct op *, count + 1);
	struct candidate *candidate = ARENA_ARRAY(arena, struct candidate, count + 1);
	struct width *width = ARENA_ARRAY(arena, struct width, count + 1);
	collect(block, kernel, 0);
	for (int i = 0; i < count; i++) {
		candidate[i] = kernel_is_gather(kernel[i]) ? (struct candidate){.operand = -1} : find_bulk(arena, kernel[i]);
		width[i] = (struct width){.lanes = candidate[i].port_lanes, .bulk = candidate[i].operand, .ports = 1};
		candidate[i].frozen = candidate[i].reuse >= REUSE;
		if (candidate[i].operand >= 0 && candidate[i].frozen)
			width[i].lanes = REUSED_LANES * candidate[i].port_lanes / LANES;
	}
	for (int more = 1; more; ) {          /* more bulk operands than ports: the smallest share */
		int bulk = 0, smallest = -1;
		for (int i = 0; i < count; i++) {
			bulk += candidate[i].operand >= 0;
			if (candidate[i].operand >= 0 && (smallest < 0 || candidate[i].elements < candidate[smallest].elements))
				smallest = i;
		}
		more = bulk && bulk > ports;
		if (more)
			candidate[smallest].operand = width[smallest].bulk = -1;
		else
			ports -= bulk;
	}
	spend_ports(streams, candidate, width, count, ports);
	int64_t budget = streams->context->dsp_budget ? streams->context->dsp_budget : platform_total(platform).dsp * DSP_SHARE / 10;
	for (int i = 0; i < count; i++) {
		int share = kernel_has_reduction(kernel[i]->kernel) ? TREE_SHARE : KERNEL_SHARE;
		keep_pace(streams, kernel, width, i);
		while (candidate[i].operand < 0 && width[i].lanes > 1 && kernel_dsp(streams, kernel[i], &width[i]) * share > budget)
			width[i].lanes /= 2;
	}
	for (int64_t most = MOST_LANES; most > 1 && total_dsp(streams, kernel, width, count) > budget; most /= 2)
		for (int i = 0; i < count; i++) {
			width[i].lanes = width[i].lanes > most / 2 ? most / 2 : width[i].lanes;
			int64_t port = candidate[i].port_lanes;
			keep_pace(streams, kernel, width, i);
			width[i].ports = width[i].lanes < port * width[i].ports ? (int)((width[i].lanes + port - 1) / port) : width[i].ports;
		}
	return width;
}
