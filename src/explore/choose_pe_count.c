/* Fewer slices of the unit, where a design with as many as there are ports takes more than it
 * may: narrower kernels beside as many slices are slow long before they are small. */
#include "ir/workload.h"
#include "engine/engine_cost.h"
#include "explore/build.h"
#include <math.h>

/* where none of so many slices is a design, one part in so many less are tried */
#define TAKEN_BACK 4
/* what is a design is compared with those of one part in so many more or less */
#define STEP_PART 8

struct pe_search {
	struct build *build;
	struct choices wanted;
	struct clock clock;
	int step, least; /* slices are a multiple of the step, and at least so many */
	/* slices of the quickest, and of the design at hand; 0: as many as there are ports */
	int best, built;
	double rating; /* of the quickest */
};

static void apply_pe_count(struct pe_search *f, int pes)
{
	f->build->session->choices.value[CHOICE_ENGINE_PES] = pes;
	mark_result_lanes(f->build->tensor, module_main(f->build->tensor)->region[0], pes);
}

/* How good the design with so many slices is; INFINITY: it is none. */
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

/* As long as more of them, or fewer (a stride below 0), are quicker.  Returns how many are. */
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

/* As many times fewer as too much was taken is near the best.  -O1 takes what is a design. */
static void search_pe_count(struct pe_search *f, double begin, int below)
{
	const struct session *session = f->build->session;
	int pes = in_steps(f, begin);
	double rating = rate(f, pes);
	while (rating == INFINITY && pes > f->least && !session->stop) {
		below = pes;
		pes = in_steps(f, pes - (pes > TAKEN_BACK * f->step ? pes / TAKEN_BACK : f->step));
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

/* Where the quickest is not the design at hand, it is built again; where there is none, that
 * with the fewest slices says why. */
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
