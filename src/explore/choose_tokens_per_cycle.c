/* Chooses how many tokens a PE takes per cycle, and how many PEs there are, if a launch has a few
 * tokens, counted at run time.  A single token waits for memory, so PEs that load more words help
 * it; they leave fewer LUTs and DSPs to the other kernels. */
#include "ir/workload.h"
#include "explore/build.h"
#include "predict/token.h"
#include <math.h>

/* the token model cannot tell designs of different shapes apart within this factor */
#define MODEL_TOLERANCE 1.05

#define TOKENS_TRIED 4
static const struct {
	int tokens_per_cycle;
	/* PEs are a multiple of this, so that results fill whole words; 0: a PE for each port */
	int rounded;
} tokens_tried[TOKENS_TRIED] = { { 4, 0 }, { 4, 8 }, { 2, 0 }, { 2, 8 } };

struct tokens_trial { /* a shape of the engine */
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

/* Makes the design far enough to be rated; *pes becomes its PE count. */
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

/* The trials that can be made and their ratings: those with the most tokens per cycle first, of
 * these the one with the fewest PEs. */
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
		int64_t *chosen_pes = &tokens_candidate.choices.value[CHOICE_ENGINE_PES];
		if (tokens_candidate.tokens_per_cycle >=
		                engine_tokens(module_main(b->tensor)->region[0], NULL) ||
		        (rounded && (pes % rounded == 0 || *chosen_pes)))
			continue;
		if (rounded)
			*chosen_pes = pes / rounded * rounded;
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

/* The best trial with another number of tokens per cycle, or -1. */
static int best_other_tokens(const struct tokens_trial *list, int count, int first)
{
	int best = -1;
	for (int i = 0; i < count; i++)
		if (list[i].tokens_per_cycle != list[first].tokens_per_cycle &&
		        (best < 0 || list[i].rating < list[best].rating))
			best = i;
	return best;
}

/* Whether a die is crowded is known of a whole design only.  If the design is slower than its
 * rating for that reason, the best of the others is built as well, and the faster one stays. */
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

/* Takes the first trial of the list whose rating is the best within the model's tolerance. */
bool build_tokens_per_cycle(struct build *b)
{
	struct session *session = b->session;
	const struct pass_context context = { .platform = session->platform,
		.choices = session->choices };
	struct tokens_trial list[TOKENS_TRIED];
	bool tokens_trial = build_is_whole(b) && session->options.effort != 1 &&
	        !session->choices.value[CHOICE_TOKENS_PER_CYCLE] && engine_allowed(&context) &&
	        build_counts_tokens(b);
	int count = tokens_trial ? list_tokens_trials(b, list) : 0;
	int first = 0;
	double best = INFINITY;
	for (int i = 0; i < count; i++)
		best = list[i].rating < best ? list[i].rating : best;
	while (first < count && list[first].rating > best * MODEL_TOLERANCE)
		first++;
	return first < count ? build_rated(b, list, count, first) : build_at_clock(b);
}
