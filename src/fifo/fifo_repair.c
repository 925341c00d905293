/* Proves that a launch ends with given depths, and raises depths until it does. With rolled layers
 * the proof walks a few of them one after the other (token_counter_ends_all); if that says nothing
 * about the others, it walks all of them. */
#include "base/parallel.h"
#include "fifo/fifo.h"
#include <string.h>

struct proof {
	struct fifo_network *network;
	int64_t *depth; /* [channels] */
	/* [channels] the same, but FIFOs on no cycle have no bound: they are in no cycle of
	 * waits */
	int64_t *bound;
	int64_t eighths; /* by which depths are raised; 0: they are not */
};

static int64_t raised_depth(const struct fifo *fifo, int64_t depth, int64_t eighths)
{
	int64_t more = depth + depth * eighths / 8;
	more = more > depth ? more : depth + 1;
	return more < fifo->whole ? more : fifo->whole;
}

struct waits {
	const struct token_network *network;
	int *channel;   /* [processes] that the process waits for; -1: none */
	bool *in_cycle; /* [processes] does the process wait for itself in the end? */
};

/* The process for which this one waits; -1: none. */
static int next_of(const struct waits *w, int process)
{
	if (process < 0 || w->channel[process] < 0)
		return -1;
	const struct token_channel *next = &w->network->channels.data[w->channel[process]];
	return next->process[next->process[TOKEN_WRITER] == process ? TOKEN_READER : TOKEN_WRITER];
}

/* Each process waits for at most one other: a walk from each process ends, meets an earlier walk,
 * or closes a cycle. */
static void find_cycles(struct arena *arena, struct waits *w)
{
	int processes = (int)w->network->processes.count;
	int *walk = ARENA_ARRAY(arena, int, processes + 1);
	w->in_cycle = ARENA_ARRAY(arena, bool, processes + 1);
	for (int i = 0; i < processes; i++) {
		int at = i;
		for (; at >= 0 && !walk[at]; at = next_of(w, at))
			walk[at] = i + 1;
		bool closed = at >= 0 && walk[at] == i + 1;
		for (; closed && !w->in_cycle[at]; at = next_of(w, at))
			w->in_cycle[at] = true;
	}
}

static struct waits waited_for(struct arena *arena, const struct token_network *network,
        const struct token_counter *counter)
{
	struct waits w = { .network = network,
		.channel = ARENA_ARRAY(arena, int, network->processes.count + 1) };
	for (size_t i = 0; i < network->processes.count; i++)
		w.channel[i] = -1;
	for (int i = 0; i < (int)network->channels.count; i++)
		for (int side = 0; side < TOKEN_SIDES; side++)
			if (token_counter_waits(counter, i, side) &&
			        network->channels.data[i].process[side] >= 0)
				w.channel[network->channels.data[i].process[side]] = i;
	find_cycles(arena, &w);
	return w;
}

/* Does the writer of a full FIFO wait for itself, or for a process that has finished its layer?
 * Other full FIFOs only follow from such a one. */
static bool is_cause(const struct waits *w, int channel)
{
	int writer = w->network->channels.data[channel].process[TOKEN_WRITER];
	int reader = w->network->channels.data[channel].process[TOKEN_READER];
	return w->in_cycle[writer] || reader < 0 || w->channel[reader] < 0;
}

static bool raise_full(struct proof *p, struct arena *scratch, const struct token_network *network,
        const struct token_counter *counter)
{
	const struct fifo_network *n = p->network;
	bool raised = false;
	if (!p->eighths)
		return false;
	struct arena *arena = arena_within(scratch);
	const struct waits waits = waited_for(arena, network, counter);
	for (int i = 0; i < n->count; i++)
		if (token_counter_full(counter, i) && n->fifo[i].sized &&
		        p->depth[i] < n->fifo[i].whole && is_cause(&waits, i)) {
			p->bound[i] = p->depth[i] =
			        raised_depth(&n->fifo[i], p->depth[i], p->eighths);
			raised = true;
		}
	if (raised && p->eighths < FIFO_RAISED_MOST)
		p->eighths *= 2;
	arena_free(arena);
	return raised;
}

/* Where the launch deadlocks, depths are raised and it continues: the words so far would pass with
 * the deeper FIFOs as well. */
static bool ends(struct proof *p, const struct token_network *network, bool in_order, bool *holds)
{
	struct arena *arena = arena_within(p->network->arena);
	struct token_counter *counter = token_counter_new(arena, network, p->bound, in_order);
	enum token_outcome outcome;
	do {
		int64_t work = 0;
		outcome = token_counter_run(counter, p->network->budget, &work);
		p->network->budget -= work;
	} while (outcome == TOKEN_STUCK && raise_full(p, arena, network, counter));
	*holds = token_counter_ends_all(counter);
	p->network->stuck = outcome == TOKEN_STUCK && p->eighths
	        ? ARENA_ARRAY(p->network->arena, bool, p->network->count + 1)
	        : NULL;
	for (int i = 0; p->network->stuck && i < p->network->count; i++)
		p->network->stuck[i] = token_counter_full(counter, i);
	arena_free(arena);
	return outcome == TOKEN_ENDS;
}

static bool prove(struct proof *p, bool in_order)
{
	struct fifo_network *n = p->network;
	bool holds = false;
	bool ended = ends(p, n->tokens, in_order, &holds);
	if (!ended || holds)
		return ended;
	struct arena *arena = arena_within(n->arena);
	struct token_detail detail = n->detail;
	detail.layers = 0;
	const struct token_network *all =
	        token_network_new(arena, n->context->platform, n->module, detail);
	ended = all && ends(p, all, in_order, &holds);
	arena_free(arena);
	return ended;
}

static struct proof proof_of(struct fifo_network *n, int64_t *depth, int64_t eighths)
{
	struct proof p = { .network = n,
		.depth = depth,
		.bound = ARENA_ARRAY(n->arena, int64_t, n->count + 1),
		.eighths = eighths };
	for (int i = 0; i < n->count; i++)
		p.bound[i] = n->fifo[i].acyclic ? 0 : depth[i];
	return p;
}

bool fifo_terminates(struct fifo_network *n, bool in_order, const int64_t *depth)
{
	struct proof p =
	        proof_of(n, arena_copy(n->arena, depth, sizeof *depth * (size_t)n->count), 0);
	return prove(&p, in_order);
}

/* Is this what the last search ended with a proof of? */
static bool is_proven(
        const struct fifo_network *n, const struct token_network *tokens, const int64_t *depth)
{
	return n->proven && n->proven_at == tokens &&
	        !memcmp(n->proven, depth, sizeof *depth * (size_t)n->count);
}

/* A run of a proof in which no depth is raised. */
struct check {
	const struct token_network *tokens;
	const int64_t *bound;
	bool in_order, ends, holds;
	int64_t budget, work;
};

static void run_check(void *data, struct arena *scratch)
{
	struct check *check = data;
	struct token_counter *counter =
	        token_counter_new(scratch, check->tokens, check->bound, check->in_order);
	check->ends = token_counter_run(counter, check->budget, &check->work) == TOKEN_ENDS;
	check->holds = token_counter_ends_all(counter);
}

static bool is_among(const struct fifo_extents *at, int count, const struct token_network *tokens)
{
	bool among = false;
	for (int i = 0; i < count; i++)
		among |= at[i].tokens == tokens;
	return among;
}

/* The runs at all extents are independent, so they are run in parallel. */
bool fifo_all_terminate(struct fifo_network *n, int64_t budget, int64_t *depth)
{
	struct proof p = proof_of(n, depth, 0);
	struct check check[2 * FIFO_EXTENTS];
	struct task task[2 * FIFO_EXTENTS];
	int count = 0;
	for (int i = 0; i < n->extents; i++) {
		const struct token_network *tokens = n->at[i].tokens;
		if (!tokens)
			return false;
		bool known = is_among(n->at, i, tokens) || is_proven(n, tokens, depth);
		for (int run = 0; !known && run < 1 + tokens->freezes; run++, count++) {
			check[count] = (struct check){ .tokens = tokens,
				.bound = p.bound,
				.in_order = !run,
				.budget = budget / 2 };
			task[count] = (struct task){ run_check, &check[count] };
		}
	}
	tasks_run(n->module->guard, count, task);
	bool end = true;
	for (int c = 0; c < count; c++)
		end = end && check[c].ends && check[c].holds;
	return end;
}

struct in_order {
	struct proof *proof;
	bool proven;
};

static void prove_in_order(void *data, struct arena *scratch)
{
	struct in_order *in_order = data;
	(void)scratch;
	in_order->proven = prove(in_order->proof, true);
}

/* Proves both runs in parallel: if the first one raises no depth, the second one is valid too. */
static bool prove_both(struct proof *p)
{
	struct fifo_network *n = p->network;
	size_t bytes = sizeof *p->bound * (size_t)n->count;
	const int64_t *bound = arena_copy(n->arena, p->bound, bytes);
	struct in_order in_order = { p, false };
	struct check check = { .tokens = n->tokens, .bound = bound, .budget = n->budget };
	tasks_run(n->module->guard, 2,
	        (struct task[]){ { prove_in_order, &in_order }, { run_check, &check } });
	if (!in_order.proven)
		return false;
	if (!check.ends || !check.holds || check.work > n->budget ||
	        memcmp(bound, p->bound, bytes) != 0)
		return prove(p, false);
	n->budget -= check.work;
	return true;
}

/* First with pipelines that hold no words, because deeper FIFOs then end as well. If no pipeline
 * freezes, it makes no difference whether they hold words. */
bool fifo_repair(struct fifo_network *n, int64_t eighths, int64_t *depth)
{
	if (!n->tokens || is_proven(n, n->tokens, depth))
		return n->tokens;
	struct proof p = proof_of(n, depth, eighths);
	bool proven = n->tokens->freezes ? prove_both(&p) : prove(&p, true);
	n->proven = proven ? arena_copy(n->arena, depth, sizeof *depth * (size_t)n->count) : NULL;
	n->proven_at = n->tokens;
	return proven;
}
