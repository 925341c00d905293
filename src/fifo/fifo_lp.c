/* Finds start times of processes by linear programming, and the FIFO depths that follow from them
 * (arXiv 2509.13694, section on FIFO sizing).
 *
 * A variable for each process: the cycle s at which it begins. A constraint for each channel from i
 * to j: its first word is not popped before it was pushed,
 *     s_j + P >= s_i + D        D: cycles until i pushes its first word
 *                               P: cycles until j pops its first word
 * All paths between two processes then give the same delay, so these constraints are those of the
 * published program for every path. Layer feedback channels are left out. A process that sends
 * before it reads what becomes of it (an array that a layer hands over) has a second variable, the
 * start of its second part. Minimised: the sum of the delays s_j - s_i. The last word has no
 * constraint: a fast producer may wait.
 *
 * Depths for T words, with II the cycles between words, L the cycle of the producer's last word,
 * and delay = s_j + P - s_i:
 *     source faster    min(T, T - floor((L - delay) / II_target))
 *     source slower    min(T, ceil((delay - D) / II_source))
 *   normal        each process has its own intervals
 *   conservative  all are stretched to the slowest process; an assumption for sizing only, nothing
 *                 is slowed down in the design
 *   curves        the most words between both schedules, from the token model's functions instead
 *                 of a single interval */
#include "fifo/fifo.h"
#include "solve/ilp.h"
#include <math.h>

#define SAMPLES 1024 /* words of a channel at which its curves are compared */

/* Timing of a channel, in cycles after the start of its process. */
struct timing {
	int64_t words;
	double first_push, last_push, first_pop, last_pop;
};

struct equalization {
	struct fifo_network *network;
	struct token_result isolated;
	struct timing *timing; /* [channels] */
	double *slowdown;      /* [processes] */
	double *start;         /* [columns] */
	/* [processes] cycle in the process at which it reads the first word that depends on its own
	 * output; INFINITY: there is none */
	double *split_cycle;
	int *split_column; /* [processes] column of its part from that cycle on */
	int columns;
};

static void read_timing(struct equalization *e, int number)
{
	const struct fifo *fifo = &e->network->fifo[number];
	const struct token_flow *flow = &e->isolated.flow[number];
	int64_t words = fifo->sized && fifo->whole < flow->words ? fifo->whole : flow->words;
	struct timing *t = &e->timing[number];
	if (!words)
		return;
	double push = e->slowdown[fifo->writer];
	double pop = e->slowdown[fifo->reader];
	*t = (struct timing){ words, push * (double)token_cycle(&flow->curve[TOKEN_WRITER], 1),
		push * (double)token_cycle(&flow->curve[TOKEN_WRITER], words),
		pop * (double)(token_cycle(&flow->curve[TOKEN_READER], 1) - 1),
		pop * (double)(token_cycle(&flow->curve[TOKEN_READER], words) - 1) };
}

static void set_slowdown(struct equalization *e, enum fifo_equalize how)
{
	int64_t slowest = 1;
	for (int i = 0; i < e->network->processes; i++)
		slowest = e->isolated.end[i] > slowest ? e->isolated.end[i] : slowest;
	for (int i = 0; i < e->network->processes; i++)
		e->slowdown[i] = how == FIFO_CONSERVATIVE && e->isolated.end[i]
		        ? (double)slowest / (double)e->isolated.end[i]
		        : 1;
}

static bool counts(const struct equalization *e, int number)
{
	return !e->network->fifo[number].feedback && e->timing[number].words;
}

/* Processes on cycles of the channels that count, or between two cycles: those that remain when
 * sources and sinks of the graph are removed repeatedly. */
static bool *on_cycles(const struct equalization *e)
{
	const struct fifo_network *n = e->network;
	bool *left = ARENA_ARRAY(n->arena, bool, n->processes + 1);
	bool *sends = ARENA_ARRAY(n->arena, bool, n->processes + 1);
	bool *takes = ARENA_ARRAY(n->arena, bool, n->processes + 1);
	bool changed = true;
	for (int i = 0; i < n->processes; i++)
		left[i] = true;
	while (changed) {
		changed = false;
		for (int i = 0; i < n->processes; i++)
			sends[i] = takes[i] = false;
		for (int i = 0; i < n->count; i++) {
			bool inside =
			        counts(e, i) && left[n->fifo[i].writer] && left[n->fifo[i].reader];
			sends[n->fifo[i].writer] |= inside;
			takes[n->fifo[i].reader] |= inside;
		}
		for (int i = 0; i < n->processes; i++) {
			changed |= left[i] && !(sends[i] && takes[i]);
			left[i] = left[i] && sends[i] && takes[i];
		}
	}
	return left;
}

/* Finds where a process on a cycle sends before it reads. */
static void set_split_cycles(struct equalization *e)
{
	const struct fifo_network *n = e->network;
	const bool *cyclic = on_cycles(e);
	double *sent = ARENA_ARRAY(n->arena, double, n->processes + 1);
	for (int i = 0; i < n->processes; i++)
		sent[i] = e->split_cycle[i] = INFINITY;
	for (int i = 0; i < n->count; i++) {
		int writer = n->fifo[i].writer;
		int reader = n->fifo[i].reader;
		if (!counts(e, i) || !cyclic[writer] || !cyclic[reader])
			continue;
		sent[writer] = fmin(sent[writer], e->timing[i].first_push);
		e->split_cycle[reader] = fmin(e->split_cycle[reader], e->timing[i].first_pop);
	}
	e->columns = n->processes;
	for (int i = 0; i < n->processes; i++) {
		e->split_cycle[i] = sent[i] < e->split_cycle[i] ? e->split_cycle[i] : INFINITY;
		e->split_column[i] = isinf(e->split_cycle[i]) ? i : e->columns++;
	}
}

/* Column of what the process does at this cycle after its start. */
static int column_at(const struct equalization *e, int process, double cycle)
{
	return cycle < e->split_cycle[process] ? process : e->split_column[process];
}

static int reader_of(const struct equalization *e, int number)
{
	return column_at(e, e->network->fifo[number].reader, e->timing[number].first_pop);
}

static int writer_of(const struct equalization *e, int number)
{
	return column_at(e, e->network->fifo[number].writer, e->timing[number].first_push);
}

static void add_columns(const struct equalization *e, struct ilp *lp, const double *cost)
{
	const struct fifo_network *n = e->network;
	for (int i = 0; i < n->processes; i++)
		ilp_column(lp,
		        text_format(n->arena, "s_%s", attr_text_or(n->call[i], KEY_CALLEE, "")), 0,
		        1e15, cost[i], false);
	for (int i = 0; i < n->processes; i++)
		if (e->split_column[i] != i)
			ilp_column(lp,
			        text_format(
			                n->arena, "t_%s", attr_text_or(n->call[i], KEY_CALLEE, "")),
			        0, 1e15, cost[e->split_column[i]], false);
}

static struct ilp make_program(const struct equalization *e)
{
	const struct fifo_network *n = e->network;
	struct ilp lp = ilp_new(n->arena);
	double *cost = ARENA_ARRAY(n->arena, double, e->columns + 1);
	for (int i = 0; i < n->count; i++)
		if (counts(e, i)) {
			cost[reader_of(e, i)] += 1;
			cost[writer_of(e, i)] -= 1;
		}
	add_columns(e, &lp, cost);
	for (int i = 0; i < n->count; i++) {
		if (!counts(e, i))
			continue;
		ilp_row(&lp, attr_text_or(n->fifo[i].channel->def, KEY_NAME, "?"), 'G',
		        e->timing[i].first_push - e->timing[i].first_pop);
		ilp_term(&lp, reader_of(e, i), 1);
		ilp_term(&lp, writer_of(e, i), -1);
	}
	for (int i = 0; i < n->processes; i++) {
		if (e->split_column[i] == i)
			continue;
		ilp_row(&lp,
		        text_format(n->arena, "turn_%s", attr_text_or(n->call[i], KEY_CALLEE, "")),
		        'G', 0);
		ilp_term(&lp, e->split_column[i], 1);
		ilp_term(&lp, i, -1);
	}
	return lp;
}

/* The depth by the published formulas. */ static int64_t published_depth(
        const struct timing *t, double delay)
{
	double words = (double)t->words;
	double gaps = words > 1 ? words - 1 : 1;
	double source = (t->last_push - t->first_push) / gaps;
	double target = (t->last_pop - t->first_pop) / gaps;
	double occupancy = words;
	if (source < target)
		occupancy = words - floor((t->last_push - delay) / target);
	else if (source > 0)
		occupancy = ceil((delay - t->first_push) / source);
	if (occupancy > words)
		return t->words;
	return occupancy < 1 ? 1 : (int64_t)occupancy;
}

/* The most words in the FIFO if the reader pops each word as soon as both its schedule and the word
 * allow it. */
static int64_t fifo_occupancy(const struct equalization *e, int number)
{
	const struct token_flow *flow = &e->isolated.flow[number];
	int64_t words = e->timing[number].words;
	int64_t samples = words < SAMPLES ? words : SAMPLES;
	int64_t most = 1;
	double begin = e->start[writer_of(e, number)];
	double stalled = 0;
	double came[SAMPLES];
	double gone[SAMPLES];
	int64_t count[SAMPLES];
	for (int64_t i = 0; i < samples; i++) {
		count[i] = samples > 1 ? 1 + (words - 1) * i / (samples - 1) : 1;
		came[i] = begin + (double)token_cycle(&flow->curve[TOKEN_WRITER], count[i]);
		double pop = e->start[reader_of(e, number)] +
		        (double)token_cycle(&flow->curve[TOKEN_READER], count[i]) - 1;
		stalled = came[i] - pop > stalled ? came[i] - pop : stalled;
		gone[i] = pop + stalled + 1;
	}
	for (int64_t i = 0, out = 0; i < samples; i++) {
		while (out < i && gone[out] <= came[i])
			out++;
		int64_t now = count[i] - (out ? count[out - 1] : 0);
		most = now > most ? now : most;
	}
	return most;
}

bool fifo_lp(struct fifo_network *n, enum fifo_equalize how, struct text *program, int64_t *depth)
{
	struct equalization e = { .network = n };
	if (!n->tokens)
		return false;
	e.isolated =
	        token_run(n->arena, n->tokens, &(struct token_options){ .mode = TOKEN_ISOLATED });
	e.timing = ARENA_ARRAY(n->arena, struct timing, n->count + 1);
	e.slowdown = ARENA_ARRAY(n->arena, double, n->processes + 1);
	set_slowdown(&e, how);
	for (int i = 0; i < n->count; i++)
		read_timing(&e, i);
	e.split_cycle = ARENA_ARRAY(n->arena, double, n->processes + 1);
	e.split_column = ARENA_ARRAY(n->arena, int, n->processes + 1);
	set_split_cycles(&e);
	struct ilp lp = make_program(&e);
	if (program)
		ilp_print(&lp, program);
	struct ilp_solution solution = ilp_solve(&lp, NULL, 1);
	if (solution.status != ILP_OPTIMAL)
		return false;
	e.start = solution.value;
	for (int i = 0; i < n->count; i++) {
		const struct fifo *fifo = &n->fifo[i];
		const struct timing *t = &e.timing[i];
		if (!fifo->sized || fifo->feedback || !t->words)
			continue;
		int64_t words = how == FIFO_CURVES
		        ? fifo_occupancy(&e, i)
		        : published_depth(t,
		                  e.start[reader_of(&e, i)] + t->first_pop -
		                          e.start[writer_of(&e, i)]);
		if (words < FIFO_LEAST)
			depth[i] = FIFO_LEAST;
		else if (words < depth[i])
			depth[i] = words;
	}
	return true;
}
