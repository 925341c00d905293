/* Fewer slices of the unit, where a design with as many as there are ports takes more than it may: narrower kernels beside as many slices are slow long before they are small. */
#include "ir/workload.h"
#include "engine/unit_cost.h"
#include "explore/build.h"
#include <math.h>

#define TAKEN_BACK 4          /* where none of so many slices is a design, one part in so many less are tried */
#define STEP_PART 8           /* what is a design is compared with those of one part in so many more or less */

struct fewer {
	struct build *build;
	struct choices wanted;
	struct clock clock;
	int step, least;          /* slices are a multiple of the step, and at least so many */
	int best, built;          /* slices of the quickest, and of the design at hand; 0: as many as there are ports */
	double rating;            /* of the quickest */
};

static void choose_slices(struct fewer *f, int slices)
{
	f->build->session->choices.value[CHOICE_SLICES] = slices;
	mark_lanes(f->build->tensor, module_main(f->build->tensor)->region[0], slices);
}

/* How good the design with so many slices is; INFINITY: it is none. */
static double rate(struct fewer *f, int slices)
{
	struct session *session = f->build->session;
	build_set_clock(session, f->clock);
	session->choices = f->wanted;
	choose_slices(f, slices);
	f->built = slices;
	double rating = build_counted(f->build) ? build_rating(session) : INFINITY;
	if (rating < f->rating) {
		f->rating = rating;
		f->best = slices;
	}
	return rating;
}

static int in_steps(const struct fewer *f, double slices)
{
	int whole = (int)slices / f->step * f->step;
	return whole < f->least ? f->least : whole;
}

/* As long as more of them, or fewer (a stride below 0), are quicker.  Returns how many are. */
static int climb(struct fewer *f, int from, double reached, int stride, int below)
{
	for (int next = from + stride; next >= f->least && next < below && !f->build->session->stop; next += stride) {
		double rating = rate(f, next);
		if (rating >= reached)
			break;
		reached = rating;
		from = next;
	}
	return from;
}

/* As many times fewer as too much was taken is near the best.  -O1 takes what is a design. */
static void search(struct fewer *f, double begin, int below)
{
	const struct session *session = f->build->session;
	int slices = in_steps(f, begin);
	double rating = rate(f, slices);
	while (rating == INFINITY && slices > f->least && !session->stop) {
		below = slices;
		slices = in_steps(f, slices - (slices > TAKEN_BACK * f->step ? slices / TAKEN_BACK : f->step));
		rating = rate(f, slices);
	}
	int stride = slices / STEP_PART / f->step * f->step;
	stride = stride > f->step ? stride : f->step;
	if (rating < INFINITY && session->options.effort != 1 && climb(f, slices, rating, stride, below) == slices)
		climb(f, slices, rating, -stride, below);
}

static bool is_limited(const struct session *session)
{
	bool limited = false;
	for (enum limit limit = LIMIT_DSP; limit < LIMITS; limit++)
		limited |= session->options.limit[limit] != NULL;
	return limited;
}

/* Where the quickest is not the design at hand, it is built again; where there is none, that with the fewest slices says why. */
static bool build_best(struct fewer *f)
{
	struct session *session = f->build->session;
	if (f->rating == INFINITY || session->stop)
		return false;
	if (f->best == f->built)
		return true;
	build_set_clock(session, f->clock);
	session->choices = f->wanted;
	choose_slices(f, f->best);
	return build_counted(f->build);
}

bool build_allowed(struct build *b)
{
	struct session *session = b->session;
	struct fewer f = {.build = b, .wanted = session->choices, .clock = build_clock(session), .rating = INFINITY};
	bool built = build_dealt(b);
	int slices = b->slices;
	f.step = unit_step(unit_uses(unit_shape(module_main(b->tensor)->region[0])), build_counts_tokens(b));
	f.least = f.step > UNIT_LEAST ? f.step : UNIT_LEAST;
	if (session->stop || session->widths || f.wanted.value[CHOICE_SLICES] || slices <= f.least || (built && !is_limited(session)))
		return built;
	f.rating = built ? build_rating(session) : INFINITY;
	search(&f, slices / b->excess, slices);
	return build_best(&f);
}
