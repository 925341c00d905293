/* Chooses how many tokens a PE takes per cycle, and how many PEs there are, if a launch has a few
 * tokens.  A single token waits for memory, so PEs that load more words help it; a batch waits for
 * the products.  Both leave fewer LUTs and DSPs to the other kernels. */
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

/* Are there too few tokens?  A counted number of them needs a loop over the words of a tile. */
static bool has_too_few(const struct build *b, int tokens_per_cycle)
{
	int64_t tokens = engine_tokens(module_main(b->tensor)->region[0], NULL);
	return build_counts_tokens(b) ? tokens_per_cycle >= tokens
	                              : tokens_per_cycle > (tokens + 1) / 2 * 2;
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
		if (has_too_few(b, tokens_candidate.tokens_per_cycle) ||
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

/* Index of the trial to build, of those whose rating is the best within the model's tolerance: the
 * one with the most tokens per cycle, or with a fixed number of tokens, where only the time of all
 * counts, the one with the fewest operators; `count`: none can be rated. */
static int best_trial(const struct build *b, const struct tokens_trial *list, int count)
{
	double best = INFINITY;
	int found = count;
	for (int i = 0; i < count; i++)
		best = list[i].rating < best ? list[i].rating : best;
	for (int i = 0; i < count; i++)
		if (list[i].rating <= best * MODEL_TOLERANCE &&
		        (found == count || !build_counts_tokens(b)))
			found = i;
	return found;
}

bool build_tokens_per_cycle(struct build *b)
{
	struct session *session = b->session;
	const struct pass_context context = { .platform = session->platform,
		.choices = session->choices };
	struct tokens_trial list[TOKENS_TRIED];
	bool few = workload_of(module_main(b->tensor)) == WORKLOAD_FEW_TOKENS ||
	        build_counts_tokens(b);
	bool tokens_trial = build_is_whole(b) && session->options.effort != 1 && few &&
	        !session->choices.value[CHOICE_TOKENS_PER_CYCLE] && engine_allowed(&context);
	int count = tokens_trial ? list_tokens_trials(b, list) : 0;
	int first = best_trial(b, list, count);
	return first < count ? build_rated(b, list, count, first) : build_at_clock(b);
}
