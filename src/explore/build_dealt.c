/* How many slices of the unit use the words of a memory port, beside many counted tokens. */
#include "ir/workload.h"
#include "explore/build.h"
#include "ir/contract.h"
#include "floorplan/place.h"
#include <math.h>

/* From what was wanted, at the clock that was. */
static void choose_dealt(struct build *b, const struct choices *wanted, struct clock clock, int dealt)
{
	struct block *body = module_main(b->tensor)->region[0];
	int uses = unit_uses(unit_shape(body));
	b->session->choices = *wanted;
	b->session->choices.value[CHOICE_DEALT] = dealt;
	build_set_clock(b->session, clock);
	mark_shape(b->tensor, body, (struct unit_shape){uses / dealt, dealt});
}

static bool is_dealable(const struct build *b)
{
	const struct session *session = b->session;
	const struct pass_context context = {.platform = session->platform, .choices = session->choices};
	const struct block *body = module_main(b->tensor)->region[0];
	return build_is_whole(b) && session->options.effort != 1 && !session->choices.value[CHOICE_DEALT] && !session->widths && has_unit(&context) && unit_counts_tiles(body) && unit_shape(body).abreast % (2 * DEALT_MOST) == 0;
}

/* With FIFOs as deep as dies may have room for. */
static double rating_dealt(struct build *part)
{
	if (build_attempt(part) != OUTCOME_BUILT)
		return INFINITY;
	place_set_depth(part->session->module, PLACE_DEEPEST);
	return build_rating(part->session);
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
	struct build part = build_part(b);        /* as far as its cycles can be told */
	choose_dealt(b, &wanted, clock, DEALT_MOST);
	double rated = rating_dealt(&part), reached = INFINITY;
	for (int dealt = 1; dealt <= DEALT_MOST && !session->stop; dealt++) {
		choose_dealt(b, &wanted, clock, dealt);
		bool built = build_counted(b);
		double rating = built ? build_rating(session) : INFINITY;
		if (rated * NEAR >= rating || (dealt > 1 && rating < reached))
			return built;
		reached = rating;
	}
	choose_dealt(b, &wanted, clock, 1);
	return !session->stop && build_counted(b);
}
