/* An order of the statements in which each comes behind those whose values it reads.
 * Statements that depend on each other, other than by adding to one element, become a group, which
 * is a sequential nest, or, if the loop that carries the dependence has few iterations, they are
 * split by its counter, one statement for each of its iterations:
 * Before: for t: for i: b[i] = a[i - 1] + a[i]; for i: a[i] = b[i]      (a needs b needs a)
 * After:  b0 → a0 → b1 → a1 → …, each over i
 * Ends: each round fixes a counter of some statement, or puts a statement into a group. */
#include "raise/raise_internal.h"

#define SPLIT_MOST 8 /* further statements that splitting may make at a time */

/* --- what depends on what --- */

struct dependence_graph {
	struct raising *r;
	int count;   /* instances */
	bool *reads; /* [count * count]: the first reads the second's value */
};

/* A group is one node, its first instance. */
static int node_of(const struct raising *r, int instance)
{
	int group = raise_group_of(r, instance);
	int first = 0;
	if (group < 0)
		return instance;
	while (raise_group_of(r, first) != group)
		first++;
	return first;
}

static void add_edge(struct dependence_graph *graph, int reader, int writer)
{
	int to = node_of(graph->r, reader);
	int from = node_of(graph->r, writer);
	if (to != from || raise_group_of(graph->r, reader) < 0)
		graph->reads[to * graph->count + from] = true;
}

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
					add_edge(&graph, s, read->source[j].instance);
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
		if (raise_group_of(r, r->order[i]) < 0 && raise_has_reduction(r, r->order[i]) &&
		        !accumulates(r, r->order[i]))
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

/* What can reach s and be reached from it, groups as a whole; false: a group is among it. */
static bool mark_cycle(const struct dependence_graph *graph, int s, bool *cycle)
{
	struct raising *r = graph->r;
	bool *back = ARENA_ARRAY(r->arena, bool, graph->count);
	bool plain = true;
	mark_reachable(graph, s, false, cycle);
	mark_reachable(graph, s, true, back);
	for (int i = 0; i < graph->count; i++)
		cycle[i] = cycle[i] && back[i];
	for (int i = 0; i < graph->count; i++) {
		cycle[i] = cycle[node_of(r, i)];
		plain = plain && (!cycle[i] || raise_group_of(r, i) < 0);
	}
	return plain;
}

static void mark_live(struct raising *r)
{
	bool *ordered = ARENA_ARRAY(r->arena, bool, r->instances);
	r->live = ARENA_ARRAY(r->arena, bool, r->instances);
	for (int i = 0; i < r->ordered; i++)
		ordered[r->order[i]] = true;
	for (int i = 0; i < r->instances; i++)
		r->live[i] = ordered[node_of(r, i)];
}

static bool make_nests(struct raising *r, struct poly *poly)
{
	for (size_t g = 0; g < r->groups.count; g++) {
		struct raise_group *group = &r->groups.data[g];
		bool used = false;
		for (int s = 0; s < r->program.statements; s++)
			used = used || r->group[s] == (int)g;
		if (used && !(group->nest = raise_nest(r, poly, (int)g)))
			return raise_report(
			        r, &(struct poly_error){ .fault = POLY_TOO_COMPLEX, .read = -1 });
	}
	return true;
}

static bool order_with(struct raising *r, struct poly *poly)
{
	bool whole = true; /* no statement is split */
	for (;;) {
		r->flow = poly_flow(poly, r->instances, r->instance);
		if (!r->flow)
			return raise_report(
			        r, &(struct poly_error){ .fault = POLY_TOO_COMPLEX, .read = -1 });
		if (whole && (raise_join_triangle(r) || raise_absorb(r, poly)))
			continue;
		struct dependence_graph graph = graph_of(r);
		int s = find_cycle(r, &graph);
		if (s < 0 && whole && raise_chain(r))
			continue;
		if (s < 0 && raise_join_addresses(r)) {
			begin(r);
			whole = true;
			continue;
		}
		if (s < 0)
			break;
		bool *cycle = ARENA_ARRAY(r->arena, bool, graph.count);
		bool plain = mark_cycle(&graph, s, cycle);
		int dim = carried_by(r, cycle);
		if (plain && dim < POLY_DIMS &&
		        count_split(r, cycle, dim) <= r->instances + SPLIT_MOST) {
			split(r, cycle, dim);
			whole = false;
			continue;
		}
		raise_join(r, cycle);
		begin(r);
		whole = true;
	}
	mark_live(r);
	return true;
}

static void forget_groups(struct raising *r)
{
	r->group = ARENA_ARRAY(r->arena, int, r->program.statements);
	r->groups.count = 0;
	for (int s = 0; s < r->program.statements; s++)
		r->group[s] = -1;
	begin(r);
}

static bool order_once(struct raising *r, bool *changed)
{
	struct poly_error error;
	forget_groups(r);
	struct poly *poly = poly_new(r->arena, &r->program, &error);
	if (!poly)
		return raise_report(r, &error);
	bool good = order_with(r, poly);
	if (good && changed)
		*changed = raise_expand(r, poly);
	good = good && ((changed && *changed) || make_nests(r, poly));
	poly_free(poly);
	return good;
}

bool raise_order(struct raising *r)
{
	bool changed = false;
	if (!order_once(r, &changed))
		return false;
	if (!changed)
		return true;
	raise_make_program(r);
	return order_once(r, NULL);
}
