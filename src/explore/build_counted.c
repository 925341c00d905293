/* How many of a few tokens, counted at run time, a slice takes a cycle. */
#include "ir/workload.h"
#include "explore/build.h"
#include "predict/token.h"
#include <math.h>

#define ALIKE 1.05            /* what the token model tells apart of designs of other shapes */

#define TRIED_ABREAST 4
static const struct {
	int abreast;
	int rounded;              /* slices are a multiple of it: words of results then have no turns; 0: as there are ports */
} tried_abreast[TRIED_ABREAST] = {{4, 0}, {4, 8}, {2, 0}, {2, 8}};

struct counted {              /* a way to take a few tokens that are counted at run time */
	int abreast;
	struct choices choices;
	double rating;
};

static void choose_counted(struct build *b, const struct counted *way)
{
	b->session->choices = way->choices;
	mark_shape(b->tensor, module_main(b->tensor)->region[0], (struct unit_shape){way->abreast, 1});
}

/* Built as far as its cycles can be told.  slices: of the design. */
static bool rate_counted(struct build *b, struct counted *way, int *slices)
{
	struct session *session = b->session;
	struct build part = build_part(b);
	choose_counted(b, way);
	if (build_attempt(&part) != OUTCOME_BUILT)
		return false;
	struct design_cost cost = design_cost(session->attempt, session->platform, session->module);
	*slices = build_slices(b, &cost);
	way->rating = build_rating(session);
	return true;
}

/* Those with the most tokens abreast first, of these the one with the fewest slices. */
static int list_counted(struct build *b, struct counted *list)
{
	const struct choices wanted = b->session->choices;
	int count = 0, slices = 0;
	for (int i = 0; i < TRIED_ABREAST && !b->session->stop; i++) {
		struct counted way = {.abreast = tried_abreast[i].abreast, .choices = wanted};
		int rounded = tried_abreast[i].rounded;
		if (way.abreast >= unit_tokens(module_main(b->tensor)->region[0], NULL) || (rounded && (slices % rounded == 0 || wanted.value[CHOICE_SLICES])))
			continue;
		way.choices.value[CHOICE_SLICES] = rounded ? slices / rounded * rounded : wanted.value[CHOICE_SLICES];
		slices = 0;
		if (!rate_counted(b, &way, &slices))
			continue;
		if (rounded && count)
			list[count] = list[count - 1];
		list[rounded && count ? count - 1 : count] = way;
		count++;
	}
	b->session->choices = wanted;
	return count;
}

/* The best of another number of tokens abreast, or -1. */
static int other_abreast(const struct counted *list, int count, int first)
{
	int best = -1;
	for (int i = 0; i < count; i++)
		if (list[i].abreast != list[first].abreast && (best < 0 || list[i].rating < list[best].rating))
			best = i;
	return best;
}

/* What a crowded die takes back is known of a whole design only: where that is not what it was rated, the best of the others is built as well, and the better one stays. */
static bool build_rated(struct build *b, const struct counted *list, int count, int first)
{
	struct session *session = b->session;
	const struct clock wanted = build_clock(session);
	choose_counted(b, &list[first]);
	bool built = build_timed(b);
	int other = other_abreast(list, count, first);
	double reached = built ? build_rating(session) : INFINITY;
	if (session->stop || other < 0 || (built && reached < list[first].rating * NEAR))
		return built;
	build_set_clock(session, wanted);
	choose_counted(b, &list[other]);
	built = build_timed(b);
	if (session->stop || (built && build_rating(session) < reached))
		return built;
	build_set_clock(session, wanted);
	choose_counted(b, &list[first]);
	return build_timed(b);
}

/* Of a few tokens that are counted at run time: how many does a slice take a cycle, and how many slices leave the kernels beside them enough?  One token alone waits for memory, of which every slice brings some.
 * Of those that the token model says are alike, as near as it can tell, the first of the list. */
bool build_counted(struct build *b)
{
	struct session *session = b->session;
	const struct pass_context context = {.platform = session->platform, .choices = session->choices};
	struct counted list[TRIED_ABREAST];
	bool counted = build_is_whole(b) && session->options.effort != 1 && !session->choices.value[CHOICE_ABREAST] && has_unit(&context) && build_counts_tokens(b);
	int count = counted ? list_counted(b, list) : 0, first = 0;
	double least = INFINITY;
	for (int i = 0; i < count; i++)
		least = list[i].rating < least ? list[i].rating : least;
	while (first < count && list[first].rating > least * ALIKE)
		first++;
	return first < count ? build_rated(b, list, count, first) : build_timed(b);
}
