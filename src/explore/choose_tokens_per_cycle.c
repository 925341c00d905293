/* How many of a few tokens, counted at run time, a slice takes a cycle. */
#include "ir/workload.h"
#include "explore/build.h"
#include "predict/token.h"
#include <math.h>

/* what the token model tells apart of designs of other shapes */
#define MODEL_TOLERANCE 1.05

#define TOKENS_TRIED 4
static const struct {
	int tokens_per_cycle;
	/* slices are a multiple of it: words of results then have no turns; 0: as there are
	 * ports */
	int rounded;
} tokens_tried[TOKENS_TRIED] = { { 4, 0 }, { 4, 8 }, { 2, 0 }, { 2, 8 } };

struct tokens_trial { /* a way to take a few tokens that are counted at run time */
	int tokens_per_cycle;
	struct choices choices;
	double rating;
};

static void apply_tokens_trial(struct build *b, const struct tokens_trial *tokens_candidate)
{
	b->session->choices = tokens_candidate->choices;
	mark_engine_shape(b->tensor, module_main(b->tensor)->region[0],
	        (struct engine_shape){ tokens_candidate->tokens_per_cycle, 1 });
}

/* Built as far as its cycles can be told.  slices: of the design. */
static bool rate_tokens_trial(struct build *b, struct tokens_trial *tokens_candidate, int *pes)
{
	struct session *session = b->session;
	struct build part = build_part(b);
	apply_tokens_trial(b, tokens_candidate);
	if (build_attempt(&part) != OUTCOME_BUILT)
		return false;
	struct design_cost cost = design_cost(session->attempt, session->platform, session->module);
	*pes = build_pes(b, &cost);
	tokens_candidate->rating = build_rating(session);
	return true;
}

/* Those with the most tokens abreast first, of these the one with the fewest slices. */
static int list_tokens_trials(struct build *b, struct tokens_trial *list)
{
	const struct choices wanted = b->session->choices;
	int count = 0;
	int pes = 0;
	for (int i = 0; i < TOKENS_TRIED && !b->session->stop; i++) {
		struct tokens_trial tokens_candidate = {
			.tokens_per_cycle = tokens_tried[i].tokens_per_cycle, .choices = wanted
		};
		int rounded = tokens_tried[i].rounded;
		if (tokens_candidate.tokens_per_cycle >=
		                engine_tokens(module_main(b->tensor)->region[0], NULL) ||
		        (rounded && (pes % rounded == 0 || wanted.value[CHOICE_ENGINE_PES])))
			continue;
		tokens_candidate.choices.value[CHOICE_ENGINE_PES] =
		        rounded ? pes / rounded * rounded : wanted.value[CHOICE_ENGINE_PES];
		pes = 0;
		if (!rate_tokens_trial(b, &tokens_candidate, &pes))
			continue;
		if (rounded && count)
			list[count] = list[count - 1];
		list[rounded && count ? count - 1 : count] = tokens_candidate;
		count++;
	}
	b->session->choices = wanted;
	return count;
}

/* The best of another number of tokens abreast, or -1. */
static int best_other_tokens(const struct tokens_trial *list, int count, int first)
{
	int best = -1;
	for (int i = 0; i < count; i++)
		if (list[i].tokens_per_cycle != list[first].tokens_per_cycle &&
		        (best < 0 || list[i].rating < list[best].rating))
			best = i;
	return best;
}

/* What a crowded die takes back is known of a whole design only: where that is not what it was
 * rated, the best of the others is built as well, and the better one stays. */
static bool build_rated(struct build *b, const struct tokens_trial *list, int count, int first)
{
	struct session *session = b->session;
	const struct clock wanted = build_clock(session);
	apply_tokens_trial(b, &list[first]);
	bool built = build_at_clock(b);
	int other = best_other_tokens(list, count, first);
	double reached = built ? build_rating(session) : INFINITY;
	if (session->stop || other < 0 ||
	        (built && reached < list[first].rating * RATING_TOLERANCE))
		return built;
	build_set_clock(session, wanted);
	apply_tokens_trial(b, &list[other]);
	built = build_at_clock(b);
	if (session->stop || (built && build_rating(session) < reached))
		return built;
	build_set_clock(session, wanted);
	apply_tokens_trial(b, &list[first]);
	return build_at_clock(b);
}

/* Of a few tokens that are counted at run time: how many does a slice take a cycle, and how many
 * slices leave the kernels beside them enough?  One token alone waits for memory, of which every
 * slice brings some. Of those that the token model says are alike, as near as it can tell, the
 * first of the list. */
bool build_tokens_per_cycle(struct build *b)
{
	struct session *session = b->session;
	const struct pass_context context = { .platform = session->platform,
		.choices = session->choices };
	struct tokens_trial list[TOKENS_TRIED];
	bool tokens_trial = build_is_whole(b) && session->options.effort != 1 &&
	        !session->choices.value[CHOICE_TOKENS_PER_CYCLE] && has_engine(&context) &&
	        build_counts_tokens(b);
	int count = tokens_trial ? list_tokens_trials(b, list) : 0;
	int first = 0;
	double least = INFINITY;
	for (int i = 0; i < count; i++)
		least = list[i].rating < least ? list[i].rating : least;
	while (first < count && list[first].rating > least * MODEL_TOLERANCE)
		first++;
	return first < count ? build_rated(b, list, count, first) : build_at_clock(b);
}
