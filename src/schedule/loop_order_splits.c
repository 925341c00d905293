/* Finds where loops may be split so that kernels can walk a shared tensor in one order. A loop over
 * addresses s, 2s, ... e*s of a tensor is split at b if a loop of another kernel over the same
 * tensor begins or ends there; its splits carry over to the other tensors that it walks. */
#include "ir/kernel_edit.h"
#include "schedule/loop_orders.h"

#define ROUNDS 4
#define BOUNDS 16

struct bounds {
	int count;
	int64_t at[BOUNDS]; /* addresses */
};

struct cutter {
	const struct loop_order_graph *graph;
	const struct schedule *first;      /* [kernels] the heuristic's schedules */
	struct loop_order_splits **splits; /* [kernels][loops] */
	struct bounds *bounds;             /* [values] */
};

static int digits(const struct kernel *kernel, const struct loop_order_splits *splits)
{
	int count = 0;
	for (int l = 0; l < kernel->loops; l++)
		count += splits[l].count + (kernel->loop[l].extent > 1);
	return count;
}

static int64_t lanes_along(const struct schedule *schedule, int loop)
{
	return schedule->lanes > 1 && schedule->part[schedule->parts - 1].source == loop
	        ? schedule->lanes
	        : 1;
}

static void add_split(const struct cutter *c, int k, int loop, int64_t at, int most)
{
	const struct kernel *kernel = c->graph->kernel[k].op->kernel;
	struct loop_order_splits *splits = &c->splits[k][loop];
	int64_t extent = kernel->loop[loop].extent;
	int64_t lanes = lanes_along(&c->first[k], loop);
	bool fits = at > lanes && at < extent && extent % at == 0 && at % lanes == 0 &&
	        splits->count < LOOP_ORDER_SPLITS && digits(kernel, c->splits[k]) < most;
	for (int s = 0; s < splits->count; s++)
		fits = fits && at != splits->at[s] &&
		        (at % splits->at[s] == 0 || splits->at[s] % at == 0);
	if (!fits || c->first[k].padded || kernel->loop[loop].run_time ||
	        kernel_is_guarded(c->graph->kernel[k].op, loop))
		return;
	int i = splits->count++;
	for (; i > 0 && splits->at[i - 1] > at; i--)
		splits->at[i] = splits->at[i - 1];
	splits->at[i] = at;
}

/* The heuristic splits the lane loop to have enough accumulators inside; such a split does not
 * carry over to neighbours. */
static void split_as_first(const struct cutter *c, int k)
{
	const struct schedule *schedule = &c->first[k];
	for (int i = 0; i < schedule->parts; i++)
		if (schedule->part[i].trip > 1)
			add_split(c, k, schedule->part[i].source, schedule->part[i].step,
			        LOOP_ORDER_DIGITS);
}

static void add_bound(struct bounds *bounds, int64_t at)
{
	for (int i = 0; i < bounds->count; i++)
		if (bounds->at[i] == at)
			return;
	if (bounds->count < BOUNDS)
		bounds->at[bounds->count++] = at;
}

/* A port with a single loop walks its tensor in one order however that loop is split. */
static bool has_one_loop(const struct kernel *kernel, const struct access *access)
{
	int loops = 0;
	for (int l = 0; l < kernel->loops; l++)
		loops += access->stride[l] && kernel->loop[l].extent > 1;
	return loops < 2;
}

static void bounds_of(const struct cutter *c, int k, const struct access *access, bool lanes,
        struct bounds *bounds)
{
	const struct kernel *kernel = c->graph->kernel[k].op->kernel;
	if (has_one_loop(kernel, access))
		return;
	for (int l = 0; l < kernel->loops; l++) {
		int64_t stride = access->stride[l];
		if (!stride || kernel->loop[l].extent == 1)
			continue;
		add_bound(bounds, stride);
		if (lanes)
			add_bound(bounds, stride * lanes_along(&c->first[k], l));
		for (int s = 0; s < c->splits[k][l].count; s++)
			add_bound(bounds, stride * c->splits[k][l].at[s]);
		add_bound(bounds, stride * kernel->loop[l].extent);
	}
}

static void cut_at(
        const struct cutter *c, int k, const struct access *access, const struct bounds *bounds)
{
	const struct kernel *kernel = c->graph->kernel[k].op->kernel;
	for (int l = 0; l < kernel->loops; l++)
		for (int b = 0; b < bounds->count && access->stride[l] > 0; b++)
			if (bounds->at[b] % access->stride[l] == 0)
				add_split(c, k, l, bounds->at[b] / access->stride[l],
				        LOOP_ORDER_DIGITS - 1);
}

/* What a layer hands to the next one is the same tensor as its last kernel's result. */
static struct bounds *bounds_on(const struct cutter *c, int value)
{
	int writer = c->graph->value[value].writer;
	return &c->bounds[writer < 0 ? value : c->graph->kernel[writer].value];
}

static void for_ports(const struct cutter *c, int k, bool cut, bool lanes)
{
	const struct loop_order_kernel *kernel = &c->graph->kernel[k];
	for (int j = -1; j < kernel->operands; j++) {
		int value = j < 0 ? kernel->value : kernel->source[j];
		const struct access *access =
		        j < 0 ? &kernel->op->kernel->result : &kernel->op->kernel->operand[j];
		if (value < 0)
			continue;
		if (cut)
			cut_at(c, k, access, bounds_on(c, value));
		else
			bounds_of(c, k, access, lanes, bounds_on(c, value));
	}
}

struct loop_order_splits **loop_order_find_splits(
        const struct loop_order_graph *graph, const struct schedule *first)
{
	struct cutter c = { .graph = graph, .first = first };
	c.splits = ARENA_ARRAY(graph->arena, struct loop_order_splits *, graph->kernels + 1);
	c.bounds = ARENA_ARRAY(graph->arena, struct bounds, graph->values + 1);
	for (int k = 0; k < graph->kernels; k++)
		c.splits[k] = ARENA_ARRAY(graph->arena, struct loop_order_splits,
		        graph->kernel[k].op->kernel->loops + 1);
	/* words are bounds for direct neighbours only */
	for (int round = 0; round < ROUNDS; round++)
		for (int step = 0; step < 2 * graph->kernels; step++)
			for_ports(&c, step % graph->kernels, step >= graph->kernels,
			        round == ROUNDS - 1);
	/* and for neighbours of an elementwise kernel between them */
	for (int step = 0; step < 2 * graph->kernels; step++)
		if (step >= graph->kernels || !kernel_has_reduction(graph->kernel[step].op->kernel))
			for_ports(&c, step % graph->kernels, step >= graph->kernels, false);
	for (int k = 0; k < graph->kernels; k++)
		split_as_first(&c, k);
	return c.splits;
}
