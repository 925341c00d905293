/* How many slices of the unit use the words of a memory port, beside many counted tokens. */
#include "driver/build.h"
#include "ir/contract.h"
#include <math.h>

static void choose_dealt(struct build *b, int dealt)
{
	struct block *body = module_main(b->tensor)->region[0];
	int uses = unit_uses(unit_shape(body));
	b->session->choices.value[CHOICE_DEALT] = dealt;
	mark_shape(b->tensor, body, (struct unit_shape){uses / dealt, dealt});
}

/* Built as far as its cycles can be told. */
static double rate_dealt(struct build *b, int dealt)
{
	struct build part = build_part(b);
	struct less less = {.rating = INFINITY};
	choose_dealt(b, dealt);
	if (build_attempt(&part) == OUTCOME_BUILT)
		build_rate(b->session, &less);
	return less.rating;
}

static bool is_dealable(const struct build *b)
{
	const struct session *session = b->session;
	const struct pass_context context = {.platform = session->platform, .choices = session->choices};
	const struct block *body = module_main(b->tensor)->region[0];
	return build_is_whole(b) && session->options.effort != 1 && !session->choices.value[CHOICE_DEALT] && !session->widths && has_unit(&context) && unit_counts_tiles(body) && unit_shape(body).abreast % (2 * DEALT_MOST) == 0;
}

/* One token alone waits for attention while words are brought ahead, and two slices of a port then use them twice as fast; but they take wires, memories and LUTs that kernels would have.
 * So where the token model says that it may pay, both designs are built, and the quicker one stays. */
bool build_dealt(struct build *b)
{
	struct session *session = b->session;
	const struct choices wanted = session->choices;
	const struct clock clock = build_clock(session);
	if (!is_dealable(b))
		return build_counted(b);
	double rated = rate_dealt(b, DEALT_MOST), reached = INFINITY;
	for (int dealt = 1; dealt <= DEALT_MOST && !session->stop; dealt++) {
		session->choices = wanted;
		build_set_clock(session, clock);
		choose_dealt(b, dealt);
		bool built = build_counted(b);
		double rating = built ? build_rating(session) : INFINITY;
		if (rated * NEAR >= rating || (dealt > 1 && rating < reached))
			return built;
		reached = rating;
	}
	session->choices = wanted;
	build_set_clock(session, clock);
	choose_dealt(b, 1);
	return !session->stop && build_counted(b);
}
