/* Start times of processes by linear programming, and the depths that follow from them (arXiv 2509.13694, section on FIFO sizing).
 *
 * One variable a process: the cycle s in which it begins.  One constraint a channel from i to j: the first word is not popped before it was pushed,
 *     s_j + P >= s_i + D        D: cycles until i pushes its first word, P: until j pops its first one
 * so every way from one process to another gives the same delay, and one constraint a channel says what the published program says of every path.  The channels of a ring
 * are left out.  Minimised: the sum of the delays s_j - s_i.  The last word has no constraint: a fast producer may wait.
 *
 * Depths of T words, with II the cycles between words, L the cycle of the producer's last word, and delay = s_j + P - s_i:
 *     source faster    min(T, T - floor((L - delay) / II_target))
 *     source slower    min(T, ceil((delay - D) / II_source))
 *   normal            each process has its own intervals
 *   conservative      all are stretched to the slowest process; an assumption for sizing only, nothing is slowed in the design
 *   curves            what the two schedules hold at once, from the token model's functions instead of one interval */
#include "pass/fifo.h"
#include "solve/ilp.h"
#include <math.h>

#define SAMPLES 1024          /* words of a channel at which its curves are compared */

struct timing {               /* of one channel; cycles after its process has begun */
	int64_t words;
	double first_push, last_push, first_pop, last_pop;
};

struct equalisation {
	struct fifo_network *network;
	struct token_result alone;
	struct timing *timing;    /* [channels] */
	double *stretch;          /* [processes] */
	double *start;            /* [processes] */
};

static void read_timing(struct equalisation *e, int number)
{
	const struct fifo *fifo = &e->network->fifo[number];
	const struct token_flow *flow = &e->alone.flow[number];
	int64_t words = fifo->sized && fifo->whole < flow->words ? fifo->whole : flow->words;
	struct timing *t = &e->timing[number];
	if (!words)
		return;
	double push = e->stretch[fifo->writer], pop = e->stretch[fifo->reader];
	*t = (struct timing){words, push * (double)token_cycle(&flow->curve[TOKEN_WRITER], 1), push * (double)token_cycle(&flow->curve[TOKEN_WRITER], words),
			     pop * (double)(token_cycle(&flow->curve[TOKEN_READER], 1) - 1), pop * (double)(token_cycle(&flow->curve[TOKEN_READER], words) - 1)};
}

static void set_stretch(struct equalisation *e, enum fifo_equalise how)
{
	int64_t slowest = 1;
	for (int i = 0; i < e->network->processes; i++)
		slowest = e->alone.end[i] > slowest ? e->alone.end[i] : slowest;
	for (int i = 0; i < e->network->processes; i++)
		e->stretch[i] = how == FIFO_CONSERVATIVE && e->alone.end[i] ? (double)slowest / (double)e->alone.end[i] : 1;
}

static struct ilp make_program(const struct equalisation *e)
{
	const struct fifo_network *n = e->network;
	struct ilp lp = ilp_new(n->arena);
	double *cost = ARENA_ARRAY(n->arena, double, n->processes + 1);
	for (int i = 0; i < n->count; i++)
		if (!n->fifo[i].back && e->timing[i].words) {
			cost[n->fifo[i].reader] += 1;
			cost[n->fifo[i].writer] -= 1;
		}
	for (int i = 0; i < n->processes; i++)
		ilp_column(&lp, text_format(n->arena, "s_%s", attr_text_or(n->call[i], "callee", "")), 0, 1e15, cost[i], false);
	for (int i = 0; i < n->count; i++) {
		const struct fifo *fifo = &n->fifo[i];
		if (fifo->back || !e->timing[i].words)
			continue;
		ilp_row(&lp, attr_text_or(fifo->channel->def, "name", "?"), 'G', e->timing[i].first_push - e->timing[i].first_pop);
		ilp_term(&lp, fifo->reader, 1);
		ilp_term(&lp, fifo->writer, -1);
	}
	return lp;
}

static int64_t published(const struct timing *t, double delay)
{
	double words = (double)t->words, gaps = words > 1 ? words - 1 : 1;
	double source = (t->last_push - t->first_push) / gaps, target = (t->last_pop - t->first_pop) / gaps;
	double held = source < target ? words - floor((t->last_push - delay) / target) : source > 0 ? ceil((delay - t->first_push) / source) : words;
	return held > words ? t->words : held < 1 ? 1 : (int64_t)held;
}

/* Words that come before others go, when the reader pops each as soon as its schedule and the word are there. */
static int64_t held(const struct equalisation *e, int number)
{
	const struct fifo *fifo = &e->network->fifo[number];
	const struct token_flow *flow = &e->alone.flow[number];
	int64_t words = e->timing[number].words, samples = words < SAMPLES ? words : SAMPLES, most = 1;
	double begin = e->start[fifo->writer], late = 0, came[SAMPLES], gone[SAMPLES];
	int64_t count[SAMPLES];
	for (int64_t i = 0; i < samples; i++) {
		count[i] = samples > 1 ? 1 + (words - 1) * i / (samples - 1) : 1;
		came[i] = begin + (double)token_cycle(&flow->curve[TOKEN_WRITER], count[i]);
		double pop = e->start[fifo->reader] + (double)token_cycle(&flow->curve[TOKEN_READER], count[i]) - 1;
		late = came[i] - pop > late ? came[i] - pop : late;
		gone[i] = pop + late + 1;
	}
	for (int64_t i = 0, out = 0; i < samples; i++) {
		while (out < i && gone[out] <= came[i])
			out++;
		int64_t now = count[i] - (out ? count[out - 1] : 0);
		most = now > most ? now : most;
	}
	return most;
}

bool fifo_lp(struct fifo_network *n, enum fifo_equalise how, struct text *program, int64_t *depth)
{
	struct equalisation e = {.network = n};
	if (!n->tokens)
		return false;
	e.alone = token_run(n->arena, n->tokens, &(struct token_options){.mode = TOKEN_ALONE});
	e.timing = ARENA_ARRAY(n->arena, struct timing, n->count + 1);
	e.stretch = ARENA_ARRAY(n->arena, double, n->processes + 1);
	set_stretch(&e, how);
	for (int i = 0; i < n->count; i++)
		read_timing(&e, i);
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
		if (!fifo->sized || fifo->back || !t->words)
			continue;
		int64_t words = how == FIFO_CURVES ? held(&e, i) : published(t, e.start[fifo->reader] + t->first_pop - e.start[fifo->writer]);
		depth[i] = words < FIFO_LEAST ? FIFO_LEAST : words > depth[i] ? depth[i] : words;
	}
	return true;
}
