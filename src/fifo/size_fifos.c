/* Chooses the depth of every FIFO.
 * Before: every FIFO holds all words of a launch, or of a layer. After: as few as needed.
 * Needs: those depths (make_processes), with which processes can run one after the other and
 * nothing deadlocks. Guarantees: no launch deadlocks, proven for the final depths (fifo_extents.c).
 * By strategy (--fifo-sizing):
 *   safe     32 words if the wait-for graph proves them, else all of a layer (fifo_safe.c)
 *   lp, normal, conservative  by linear programming (fifo_lp.c)
 *   trim     at most 1/200 more cycles (fifo_trim.c); for small designs the best of several
 *            searches; the default
 *   minimal  the best of five searches, continued until no single depth can be less
 * If no result is proven within the budget, FIFOs that the wait-for graph does not allow to be
 * short hold all words. Each FIFO is then as deep as its memory is anyway; stream.required_depth
 * keeps the requested depth. Exact. Ends: each search has a budget. */
#include "fifo/fifo_passes.h"
#include "predict/resource.h"
#include "fifo/fifo.h"
#include "streams/on_chip_footprint.h"
#include "simulate/cycle_sim.h"
#include <string.h>

#define BUDGET 36000000           /* iterations: less than a second */
#define BUDGET_PREDICTED 12000000 /* stretches of the token model: half a second */
#define BUDGET_ENGINE 5000000     /* the same with a matmul engine, whose FIFOs are found sooner */
#define BUDGET_LEAST 400000000
#define RESTART_SHARE 4
/* a proof for which a search leaves no budget gets so many budgets of its own: without it, FIFOs
 * hold all words */
#define PROOF_RETRIES 2
/* a FIFO that may be short takes at most 1/DIE_SHARE of a die's memory of one kind: it is on one
 * die, with others */
#define DIE_SHARE 4
/* least number of predictions of a search: with many tokens one costs a large part of the budget */
#define PREDICTIONS 24
#define PREDICTIONS_SHORT 64 /* where memory is short */
/* memory is short if less than 1/ROOM_SHARE of it is left; FIFOs may then not exceed the safe
 * depths */
#define ROOM_SHARE 4

static const struct type *type_of(const struct fifo *fifo)
{
	return fifo->channel->type;
}

static void set_depth(struct module *module, struct fifo *fifo, int64_t needed)
{
	int64_t built = fifo_free_depth(type_bits(type_of(fifo)->element), needed);
	built = built < fifo->whole ? built : fifo->whole;
	attr_set(module, fifo->channel->def, KEY_STREAM_REQUIRED_DEPTH,
	        attr_integer(module, needed));
	fifo->channel->type = type_channel(module, TYPE_FIFO, type_of(fifo)->element, built);
}

/* --- limits */

static int64_t die_share(const struct platform *platform)
{
	int64_t most = 0;
	for (int i = 0; i < platform->dies; i++) {
		int64_t bram =
		        resources_bytes((struct resources){ .bram18 = platform->die[i].bram18 });
		int64_t uram = resources_bytes((struct resources){ .uram = platform->die[i].uram });
		int64_t bytes = bram > uram ? bram : uram;
		most = bytes > most ? bytes : most;
	}
	return most / DIE_SHARE;
}

/* All words; of a FIFO that may be short no more than a die has room for. */
static int64_t limit_of(const struct fifo *fifo, int64_t bytes)
{
	int64_t room = fifo->word_bytes ? bytes / fifo->word_bytes : fifo->whole;
	room = room > fifo->safe ? room : fifo->safe;
	return room < fifo->whole ? room : fifo->whole;
}

/* The limit of each depth: all words that a die has room for; for prefetched words a short FIFO, if
 * all of them would take too much memory or their writer has them in a memory of its own, unless
 * that is filled again for each layer of an engine. */
static int64_t *limits(struct fifo_network *n)
{
	int64_t *limit = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	int64_t prefetch = 0;
	int64_t share = die_share(n->context->platform);
	bool engine = n->context->quant && engine_allowed(n->context);
	for (int i = 0; i < n->count; i++)
		prefetch += n->fifo[i].prefetch && !n->fifo[i].fixed_depth
		        ? n->fifo[i].whole * n->fifo[i].word_bytes
		        : 0;
	bool whole = prefetch <=
	        on_chip_budget(n->context) / choice_count(&n->context->choices, CHOICE_PREFETCH);
	for (int i = 0; i < n->count; i++) {
		const struct fifo *fifo = &n->fifo[i];
		bool held = (fifo->replayed && !engine) || (fifo->prefetch && !whole);
		bool is_short = held && !fifo->fixed_depth && fifo->safe < fifo->whole;
		limit[i] = is_short ? FIFO_SHORT : limit_of(fifo, share);
	}
	return limit;
}

/* --- strategies */

static void make_safe(const struct fifo_network *n, int64_t *depth)
{
	for (int i = 0; i < n->count; i++)
		if (!n->fifo[i].acyclic && n->fifo[i].safe == n->fifo[i].whole)
			depth[i] = n->fifo[i].whole;
}

static void take_safe(const struct fifo_network *n, int64_t *depth)
{
	for (int i = 0; i < n->count; i++)
		/* deeper FIFOs never stop a launch */
		depth[i] = n->fifo[i].fixed_depth ? n->fifo[i].whole : n->fifo[i].safe;
}

static bool size_by_lp(struct fifo_network *n, enum fifo_strategy strategy, int64_t *depth)
{
	enum fifo_equalize how = FIFO_CURVES;
	if (strategy == FIFO_STRATEGY_NORMAL)
		how = FIFO_NORMAL;
	else if (strategy == FIFO_STRATEGY_CONSERVATIVE)
		how = FIFO_CONSERVATIVE;
	if (!fifo_lp(n, how, n->context->lp, depth))
		return false;
	if (!fifo_repair(n, FIFO_RAISED, depth))
		make_safe(n, depth);
	return true;
}

/* A search starts from the depths of the linear program, or from the limits. */
static bool size_by_search(struct fifo_network *n, int order, const int64_t *limit, int64_t *depth)
{
	memcpy(depth, limit, sizeof *depth * (size_t)n->count);
	struct text *program = n->context->lp && !n->context->lp->size ? n->context->lp : NULL;
	if (order % 2 == 0)
		fifo_lp(n, FIFO_CURVES, program, depth);
	int64_t budget = n->budget;
	if (fifo_trim(n, limit, order, depth))
		return true;
	n->budget = PROOF_RETRIES * budget;
	bool proven = fifo_repair(n, FIFO_RAISED, depth);
	n->budget = 0;
	if (proven)
		return true;
	make_safe(n, depth);
	return n->tokens != NULL;
}

static void add_bytes(struct op *op, void *sum)
{
	*(int64_t *)sum +=
	        op->code == OP_BLOCK_CHANNEL || op->code == OP_ALLOCA ? memory_bytes(op) : 0;
}

static bool is_short(struct fifo_network *n, const int64_t *depth)
{
	int64_t others = 0;
	int64_t whole = on_chip_budget(n->context);
	ir_walk(module_body(n->module), add_bytes, &others);
	return fifo_bytes(n, depth) + others > whole - whole / ROOM_SHARE;
}

/* The best of several searches, each with `budget`; no further one starts when `enough` is
 * spent. */
static bool search_depths(struct fifo_network *n, const int64_t *limit, int64_t budget,
        int64_t enough, int64_t *depth)
{
	int64_t *found = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	int64_t spent = 0;
	bool any = false;
	for (int order = 0; order < FIFO_ORDERS && spent <= enough; order++) {
		n->budget = budget;
		n->granted = 0;
		bool better = size_by_search(n, order, limit, found) &&
		        (!any || fifo_bytes(n, found) < fifo_bytes(n, depth));
		spent += budget + n->granted - n->budget;
		if (better)
			memcpy(depth, found, sizeof *depth * (size_t)n->count);
		any |= better;
	}
	return any;
}

/* Where memory is short the search is longer; if safe depths are smaller, it starts from them and
 * allows their cycles. */
static bool trim(struct fifo_network *n, int64_t *limit, int64_t *depth)
{
	bool usual = !n->context->fifo_events && !fifo_simulates(n);
	bool engine = n->context->quant && engine_allowed(n->context);
	int64_t predicted = engine ? BUDGET_ENGINE : BUDGET_PREDICTED;
	int64_t budget = usual ? predicted : n->budget;
	int64_t *safe = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	int64_t *other = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	n->keep_fixed_depth = true;
	bool found = search_depths(n, limit, budget, budget / RESTART_SHARE, depth);
	n->keep_fixed_depth = false;
	if (!found || !is_short(n, depth))
		return found;
	take_safe(n, safe);
	bool large = fifo_bytes(n, depth) > fifo_bytes(n, safe);
	n->predictions = PREDICTIONS_SHORT;
	found = search_depths(n, large ? safe : limit, budget, 0, other);
	if (found && (large || fifo_bytes(n, other) < fifo_bytes(n, depth)))
		memcpy(depth, other, sizeof *depth * (size_t)n->count);
	return found || !large;
}

static bool trim_to_minimum(struct fifo_network *n, const int64_t *limit, int64_t *depth)
{
	int64_t budget = n->budget;
	if (!search_depths(n, limit, budget / FIFO_ORDERS, budget, depth))
		return false;
	n->budget = budget;
	fifo_settle(n, limit, depth);
	return true;
}

static void open_simulator(struct fifo_network *n)
{
	int reported = n->module->diag->count;
	n->simulated = cycle_open(n->arena, n->context->platform, n->module);
	n->module->diag->count =
	        reported; /* a design that cannot be simulated is sized all the same */
}

static bool choose_depths(struct fifo_network *n, int64_t *limit, int64_t *depth)
{
	enum fifo_strategy strategy =
	        (enum fifo_strategy)choice_word(&n->context->choices, CHOICE_FIFO);
	memcpy(depth, limit, sizeof *depth * (size_t)n->count);
	if (strategy == FIFO_STRATEGY_TRIM || strategy == FIFO_STRATEGY_MINIMAL)
		open_simulator(n);
	switch (strategy) {
	case FIFO_STRATEGIES:
	case FIFO_STRATEGY_SAFE: return false;
	case FIFO_STRATEGY_MINIMAL: return trim_to_minimum(n, limit, depth);
	case FIFO_STRATEGY_TRIM: return trim(n, limit, depth);
	case FIFO_STRATEGY_LP:
	case FIFO_STRATEGY_NORMAL:
	case FIFO_STRATEGY_CONSERVATIVE: return size_by_lp(n, strategy, depth);
	}
	return false;
}

bool size_fifos(struct pass_context *context, struct module *module)
{
	struct arena *arena = arena_within(module->arena);
	struct fifo_network *n = fifo_collect(arena, context, module);
	int64_t *depth = ARENA_ARRAY(arena, int64_t, n->count + 1);
	n->predictions = PREDICTIONS;
	bool minimal = choice_word(&context->choices, CHOICE_FIFO) == FIFO_STRATEGY_MINIMAL;
	n->budget = minimal ? BUDGET_LEAST : BUDGET;
	if (context->fifo_events)
		n->budget = context->fifo_events;
	fifo_open_extents(n);
	const struct value *channel;
	const char *unbalanced = fifo_unbalanced(n, &channel);
	INVARIANT(module->guard, !unbalanced || context->dumped, "%s", unbalanced);
	if (unbalanced)
		return fifo_report_unbalanced(module->diag, channel, unbalanced);
	fifo_prove(n);
	enum fifo_evidence shown = choose_depths(n, limits(n), depth)
	        ? fifo_prove_termination(n, false, depth)
	        : FIFO_UNPROVEN;
	if (shown == FIFO_UNPROVEN) {
		take_safe(n, depth);
		shown = fifo_prove_termination(n, true, depth);
	}
	for (int i = 0; i < n->count; i++)
		if (n->fifo[i].sized)
			set_depth(module, &n->fifo[i], depth[i]);
	for (int i = 0; i < n->processes; i++)
		fifo_set_arguments(module, n->call[i]);
	fifo_note_proof(module, shown);
	arena_free(arena);
	return true;
}
