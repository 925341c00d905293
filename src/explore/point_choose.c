/* Reads the point of the design space from the command line's options. */
#include "explore/point.h"

#define QUICK_SHARE 10       /* -O1 searches 1 / this of the loop orders */
#define QUICK_EVENTS 2400000 /* and simulates at most this many iterations */

static bool choose_effort(struct session *session)
{
	struct choices *choices = &session->choices;
	int64_t effort = session->options.effort;
	if (effort > 3) {
		diag_error(&session->diag, NOWHERE, "-O%lld is not an effort level",
		        (long long)effort);
		return diag_note(&session->diag, "-O1, -O2 or -O3");
	}
	if (effort != 1)
		return true;
	if (!choices->value[CHOICE_SEARCH])
		choices->value[CHOICE_SEARCH] = 1 + choice_word_named(CHOICE_SEARCH, "intensity");
	if (!choices->value[CHOICE_LOOP_ORDER_BUDGET])
		choices->value[CHOICE_LOOP_ORDER_BUDGET] =
		        choice_info[CHOICE_LOOP_ORDER_BUDGET].default_value / QUICK_SHARE;
	if (!session->options.events)
		session->options.events = QUICK_EVENTS;
	return true;
}

bool point_choose(struct session *session)
{
	const struct option_list *fix = &session->options.fix;
	struct fixed_parallelism *fixed =
	        ARENA_ARRAY(session->arena, struct fixed_parallelism, (int)fix->count + 1);
	session->choices = session->options.choices;
	for (size_t i = 0; i < fix->count; i++) {
		if (!fixed_parallelism_parse(&session->diag, fix->data[i], &fixed[i]))
			return false;
		if (fixed_parallelism_of(&session->choices, fixed[i].kernel)) {
			diag_error(&session->diag, NOWHERE, "--fix-kernel names kernel '%s' twice",
			        fixed[i].kernel);
			return diag_note(&session->diag,
			        "one --fix-kernel for each kernel: "
			        "KERNEL:lanes=COUNT,row-unroll=COUNT,ports=COUNT");
		}
		session->choices.fix = fixed;
		session->choices.fixed = (int)i + 1;
	}
	return choose_effort(session);
}
