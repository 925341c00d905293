/* Chooses how many of the engine's PEs share a memory port, for tiles of many tokens counted at
 * run time.  Two PEs of a port use prefetched weights twice as fast, which helps where a single
 * token waits for attention; but they take wires, memories and LUTs of other kernels. */
#include "ir/workload.h"
#include "explore/build.h"
#include "ir/contract.h"
#include "floorplan/floorplan.h"
#include <math.h>

/* Starts from the choices and the clock before the comparison. */
static void apply_pes_per_port(
        struct build *b, const struct choices *wanted, struct clock clock, int pes_per_port)
{
	struct block *body = module_main(b->tensor)->region[0];
	int uses = engine_word_uses(engine_shape(body));
	b->session->choices = *wanted;
	b->session->choices.value[CHOICE_PES_PER_PORT] = pes_per_port;
	build_set_clock(b->session, clock);
	mark_engine_shape(
	        b->tensor, body, (struct engine_shape){ uses / pes_per_port, pes_per_port });
}

static bool can_share_ports(const struct build *b)
{
	const struct session *session = b->session;
	const struct pass_context context = { .platform = session->platform,
		.choices = session->choices };
	const struct op *main = module_main(b->tensor);
	return build_is_whole(b) && session->options.effort != 1 &&
	        !session->choices.value[CHOICE_PES_PER_PORT] && !session->parallelism_table &&
	        engine_allowed(&context) && workload_of(main) == WORKLOAD_TILED_COUNTED_TOKENS &&
	        engine_shape(main->region[0]).tokens_per_cycle % (2 * PES_PER_PORT_MOST) == 0;
}

/* Rates the design with FIFOs as deep as dies may have room for. */
static double rate_pes_per_port(struct build *part)
{
	if (build_attempt(part) != OUTCOME_BUILT)
		return INFINITY;
	floorplan_set_fifo_depth(part->session->module, FLOORPLAN_FIFO_DEEPEST);
	return build_rating(part->session);
}

/* Where the token model says that sharing may pay, both designs are built and the faster stays. */
bool build_pes_per_port(struct build *b)
{
	struct session *session = b->session;
	const struct choices wanted = session->choices;
	const struct clock clock = build_clock(session);
	if (!can_share_ports(b))
		return build_tokens_per_cycle(b);
	struct build part = build_part(b);
	apply_pes_per_port(b, &wanted, clock, PES_PER_PORT_MOST);
	double rated = rate_pes_per_port(&part);
	double reached = INFINITY;
	for (int pes_per_port = 1; pes_per_port <= PES_PER_PORT_MOST && !session->stop;
	        pes_per_port++) {
		apply_pes_per_port(b, &wanted, clock, pes_per_port);
		bool built = build_tokens_per_cycle(b);
		double rating = built ? build_rating(session) : INFINITY;
		if (rated * RATING_TOLERANCE >= rating || (pes_per_port > 1 && rating < reached))
			return built;
		reached = rating;
	}
	apply_pes_per_port(b, &wanted, clock, 1);
	return !session->stop && build_tokens_per_cycle(b);
}
