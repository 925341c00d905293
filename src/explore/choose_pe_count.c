/* Chooses the number of the engine's processing elements (PEs) where a design with a PE for every
 * memory port does not fit: with narrower kernels instead, it would be slow long before it fits. */
#include "ir/workload.h"
#include "engine/engine_cost.h"
#include "explore/build.h"
#include <math.h>

#define RETREAT_PART 4 /* after a design that does not fit, 1 / this of its PEs are removed */
#define STEP_PART 8    /* designs with 1 / this more or fewer PEs are compared */

struct pe_search {
	struct build *build;
	struct choices wanted;
	struct clock clock;
	int step, least; /* a PE count is a multiple of `step`, at least `least` */
	/* PEs of the fastest design, and of the current one; 0: a PE for every port */
	int best, built;
	double rating; /* of the fastest */
};

static void apply_pe_count(struct pe_search *f, int pes)
{
	f->build->session->choices.value[CHOICE_ENGINE_PES] = pes;
	mark_result_lanes(f->build->tensor, module_main(f->build->tensor)->region[0], pes);
}

/* Builds and rates the design with that many PEs; INFINITY: it does not fit. */
static double rate(struct pe_search *f, int pes)
{
	struct session *session = f->build->session;
	build_set_clock(session, f->clock);
	session->choices = f->wanted;
	apply_pe_count(f, pes);
	f->built = pes;
	double rating = build_tokens_per_cycle(f->build) ? build_rating(session) : INFINITY;
	if (rating < f->rating) {
		f->rating = rating;
		f->best = pes;
	}
	return rating;
}

static int in_steps(const struct pe_search *f, double pes)
{
	int whole = (int)pes / f->step * f->step;
	return whole < f->least ? f->least : whole;
}

/* Hill climbing: goes on by `stride` PEs, which may be negative, while the design gets faster, up
 * to `below`.  Returns the PE count reached. */
static int climb(struct pe_search *f, int from, double reached, int stride, int below)
{
	for (int next = from + stride; next >= f->least && next < below && !f->build->session->stop;
	        next += stride) {
		double rating = rate(f, next);
		if (rating >= reached)
			break;
		reached = rating;
		from = next;
	}
	return from;
}

/* Starts with the PE count divided by the excess, which is near the best, retreats until a design
 * fits, then climbs.  -O1 takes the first that fits. */
static void search_pe_count(struct pe_search *f, double begin, int below)
{
	const struct session *session = f->build->session;
	int pes = in_steps(f, begin);
	double rating = rate(f, pes);
	while (rating == INFINITY && pes > f->least && !session->stop) {
		below = pes;
		int fewer = pes > RETREAT_PART * f->step ? pes / RETREAT_PART : f->step;
		pes = in_steps(f, pes - fewer);
		rating = rate(f, pes);
	}
	int stride = pes / STEP_PART / f->step * f->step;
	stride = stride > f->step ? stride : f->step;
	if (rating < INFINITY && session->options.effort != 1 &&
	        climb(f, pes, rating, stride, below) == pes)
		climb(f, pes, rating, -stride, below);
}

static bool is_limited(const struct session *session)
{
	bool limited = false;
	for (enum limit limit = LIMIT_DSP; limit < LIMITS; limit++)
		limited |= session->options.limit[limit] != NULL;
	return limited;
}

/* Builds the fastest design once more unless it is the current one.  If there is none, the
 * diagnostic of the design with the fewest PEs stays. */
static bool build_best(struct pe_search *f)
{
	struct session *session = f->build->session;
	if (f->rating == INFINITY || session->stop)
		return false;
	if (f->best == f->built)
		return true;
	build_set_clock(session, f->clock);
	session->choices = f->wanted;
	apply_pe_count(f, f->best);
	return build_tokens_per_cycle(f->build);
}

bool build_pe_count(struct build *b)
{
	struct session *session = b->session;
	struct pe_search f = { .build = b,
		.wanted = session->choices,
		.clock = build_clock(session),
		.rating = INFINITY };
	bool built = build_pes_per_port(b);
	int pes = b->pes;
	f.step = engine_port_step(engine_word_uses(engine_shape(module_main(b->tensor)->region[0])),
	        build_counts_tokens(b));
	f.least = f.step > ENGINE_PES_LEAST ? f.step : ENGINE_PES_LEAST;
	if (session->stop || session->parallelism_table || f.wanted.value[CHOICE_ENGINE_PES] ||
	        pes <= f.least || (built && !is_limited(session)))
		return built;
	f.rating = built ? build_rating(session) : INFINITY;
	search_pe_count(&f, pes / b->excess, pes);
	return build_best(&f);
}
