/* An order of the statements in which each comes behind those whose values it reads.
 * Statements that depend on each other, other than by adding to one element, are split by the
 * counter of the loop that carries the dependence, one statement for each of its iterations:
 * Before: for t: for i: b[i] = a[i - 1] + a[i]; for i: a[i] = b[i]      (a needs b needs a)
 * After:  b0 → a0 → b1 → a1 → …, each over i
 * Ends: each round fixes a counter of some statement. */
#include "raise/raise_internal.h"

#define STATEMENTS_MOST 512 /* of a program with split statements */

/* --- what depends on what --- */

struct dependence_graph {
	struct raising *r;
	int count;   /* instances */
	bool *reads; /* [count * count]: the first reads the second's value */
};

static struct dependence_graph graph_of(struct raising *r)
{
	int count = r->instances;
	struct dependence_graph graph = { r, count,
		ARENA_ARRAY(r->arena, bool, (size_t)count *(size_t)count) };
	for (int s = 0; s < count; s++)
		for (int i = 0; i < raise_statement(r, s)->reads; i++) {
			const struct poly_read_flow *read = &r->flow[s].read[i];
			for (int j = 0; j < read->sources; j++)
				if (read->source[j].instance >= 0)
					graph.reads[s * count + read->source[j].instance] = true;
		}
	return graph;
}

/* Marks what can be reached from s by reads, or (backwards) by being read. */
static void mark_reachable(
        const struct dependence_graph *graph, int s, bool backwards, bool *marked)
{
	int count = graph->count;
	int *stack = ARENA_ARRAY(graph->r->arena, int, count + 1);
	int top = 0;
	stack[top++] = s;
	while (top) {
		int at = stack[--top];
		for (int other = 0; other < count; other++) {
			bool edge = backwards ? graph->reads[other * count + at]
			                      : graph->reads[at * count + other];
			if (!edge || marked[other])
				continue;
			marked[other] = true;
			stack[top++] = other;
		}
	}
}

enum visit { UNVISITED, ON_PATH, DONE };

struct statement_walk {
	const struct dependence_graph *graph;
	enum visit *visit; /* [statements] */
	int cycle;         /* a statement that depends on itself through others; -1: none */
};

static bool walk(struct statement_walk *w, int s)
{
	struct raising *r = w->graph->r;
	w->visit[s] = ON_PATH;
	for (int from = 0; from < w->graph->count; from++) {
		if (!w->graph->reads[s * w->graph->count + from] || from == s ||
		        w->visit[from] == DONE)
			continue;
		if (w->visit[from] == ON_PATH || !walk(w, from)) {
			w->cycle = w->cycle < 0 ? from : w->cycle;
			return false;
		}
	}
	w->visit[s] = DONE;
	r->order[r->ordered++] = s;
	return true;
}

bool raise_has_reduction(const struct raising *r, int instance)
{
	for (int d = 0; d < raise_statement(r, instance)->dims; d++)
		if (r->flow[instance].reduced[d])
			return true;
	return false;
}

/* Do the iterations that read each other accumulate into one element? */
static bool accumulates(const struct raising *r, int s)
{
	const struct poly_statement *statement = raise_statement(r, s);
	int rank = statement->write.array < 0 ? 0 : r->program.array[statement->write.array].rank;
	for (int d = 0; d < statement->dims; d++)
		for (int i = 0; i < rank && r->flow[s].reduced[d]; i++)
			if (statement->write.subscript[i].coefficient[d])
				return false;
	return !r->flow[s].read_before_end;
}

/* A statement that depends on itself in another way than a kernel can; -1: there is none, and the
 * order is known. */
static int find_cycle(struct raising *r, const struct dependence_graph *graph)
{
	struct statement_walk w = { graph, ARENA_ARRAY(r->arena, enum visit, graph->count), -1 };
	r->order = ARENA_ARRAY(r->arena, int, graph->count);
	r->ordered = 0;
	for (int o = 0; o < r->outputs; o++)
		if (w.visit[r->readers + o] != DONE && !walk(&w, r->readers + o))
			return w.cycle;
	for (int i = 0; i < r->ordered; i++)
		if (raise_has_reduction(r, r->order[i]) && !accumulates(r, r->order[i]))
			return r->order[i];
	return -1;
}

/* --- splitting --- */

static bool is_own_counter(const struct poly_form *form, int dim)
{
	for (int d = 0; d < POLY_DIMS; d++)
		if (form->coefficient[d] != (d == dim))
			return false;
	return form->constant == 0;
}

/* The outermost counter in which a source differs from its reader; POLY_DIMS: there is none, or the
 * source is in no cycle. Counters that were fixed cannot be split again. */
static int carried_by_source(
        const struct raising *r, const bool *cycle, const struct poly_source *source)
{
	if (source->instance < 0 || !cycle[source->instance])
		return POLY_DIMS;
	const struct poly_flow *flow = &r->flow[source->instance];
	for (int d = 0; d < raise_statement(r, source->instance)->dims; d++)
		if (flow->low[d] < flow->high[d] &&
		        (!source->is_affine || !is_own_counter(&source->counter[d], d)))
			return d;
	return POLY_DIMS;
}

static int carried_by(const struct raising *r, const bool *cycle)
{
	int least = POLY_DIMS;
	for (int s = 0; s < r->readers; s++)
		for (int i = 0; cycle[s] && i < raise_statement(r, s)->reads; i++) {
			const struct poly_read_flow *read = &r->flow[s].read[i];
			for (int j = 0; j < read->sources; j++) {
				int d = carried_by_source(r, cycle, &read->source[j]);
				least = d < least ? d : least;
			}
		}
	return least;
}

/* How many instances there are if those of the cycle are split by counter `dim`. */
static int64_t count_split(const struct raising *r, const bool *cycle, int dim)
{
	int64_t count = r->instances;
	for (int s = 0; s < r->readers; s++)
		if (cycle[s] && dim < raise_statement(r, s)->dims)
			count += r->flow[s].high[dim] - r->flow[s].low[dim];
	return count;
}

static void split(struct raising *r, const bool *cycle, int dim)
{
	int64_t count = count_split(r, cycle, dim);
	struct poly_instance *instance = ARENA_ARRAY(r->arena, struct poly_instance, count);
	int n = 0;
	for (int s = 0; s < r->readers; s++) {
		instance[n] = r->instance[s];
		if (!cycle[s] || dim >= raise_statement(r, s)->dims) {
			n++;
			continue;
		}
		for (int64_t v = r->flow[s].low[dim]; v <= r->flow[s].high[dim]; v++) {
			instance[n] = r->instance[s];
			instance[n].is_fixed[dim] = true;
			instance[n++].value[dim] = v;
		}
	}
	int readers = n;
	for (int o = 0; o < r->outputs; o++)
		instance[n++] = r->instance[r->readers + o];
	r->readers = readers;
	r->instance = instance;
	r->instances = n;
}

/* At first an instance for each statement. */
static void begin(struct raising *r)
{
	r->instances = r->program.statements;
	r->readers = r->statements;
	r->instance = ARENA_ARRAY(r->arena, struct poly_instance, r->instances);
	for (int s = 0; s < r->instances; s++)
		r->instance[s].statement = s;
}

static bool refuse_recurrence(struct raising *r, int s)
{
	const struct region_statement *statement = raise_origin(r, s);
	diag_error(r->module->diag, statement->location,
	        "`%s` needs what earlier iterations have computed, and these are too many to be "
	        "kernels of their own",
	        statement->text);
	return diag_note(r->module->diag,
	        "accepted are loops whose iterations are independent or add to the same element, "
	        "and up to %d kernels for the iterations of others",
	        STATEMENTS_MOST);
}

static bool order_with(struct raising *r, struct poly *poly)
{
	for (;;) {
		r->flow = poly_flow(poly, r->instances, r->instance);
		if (!r->flow)
			return raise_report(
			        r, &(struct poly_error){ .fault = POLY_TOO_COMPLEX, .read = -1 });
		struct dependence_graph graph = graph_of(r);
		int s = find_cycle(r, &graph);
		if (s < 0)
			return true;
		bool *cycle = ARENA_ARRAY(r->arena, bool, graph.count);
		bool *back = ARENA_ARRAY(r->arena, bool, graph.count);
		mark_reachable(&graph, s, false, cycle);
		mark_reachable(&graph, s, true, back);
		for (int i = 0; i < graph.count; i++)
			cycle[i] = cycle[i] && back[i];
		int dim = carried_by(r, cycle);
		if (dim == POLY_DIMS || count_split(r, cycle, dim) > STATEMENTS_MOST)
			return refuse_recurrence(r, s);
		split(r, cycle, dim);
	}
}

bool raise_order(struct raising *r)
{
	struct poly_error error;
	begin(r);
	struct poly *poly = poly_new(r->arena, &r->program, &error);
	if (!poly)
		return raise_report(r, &error);
	bool good = order_with(r, poly);
	poly_free(poly);
	return good;
}
