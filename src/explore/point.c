/* Builds one point of the design space: compares parallelism searches for small modules, chooses
 * the engine's shape, and meets --target-ms with as few operators as it can. */
#include "explore/point.h"
#include "explore/build.h"
#include "report/report.h"
#include "predict/token.h"

/* Share of the target that a design with fewer operators may take by the model, since it may take
 * longer by the simulation. */
#define TARGET_SHARE 0.99
#define TARGET_STEPS 6      /* bisection steps for the operators that --target-ms needs */
#define COMPARED_KERNELS 36 /* larger modules take the joint search without comparison */

/* --- searches compared */

static void count_kernel(struct op *op, void *count)
{
	*(int *)count += op->code == OP_KERNEL;
}

struct compared {
	/* the best search so far; and, of those whose design needs too much on-chip memory, the
	 * one that needs least; -1: none */
	int search, smallest;
	int tiles, smallest_tiles; /* their values of the choice of register tiles */
	int64_t cycles, dsp;       /* of the best */
	int64_t lacks;             /* bytes that the smallest needs */
	int64_t most; /* multipliers allowed to the best; 0: the compiler's own choice */
};

/* Cycles of a launch with unbounded FIFOs; 0: the search gives no design. */
static int64_t cycles_of(struct build *b, int search, int64_t *dsp)
{
	struct session *session = b->session;
	struct build part = build_part(b);
	struct choices wanted = session->choices;
	session->choices.value[CHOICE_SEARCH] = 1 + search;
	enum outcome outcome = build_attempt(&part);
	if (outcome == OUTCOME_PORTS) {
		build_narrower(&part, outcome, 0);
		outcome = build_attempt(&part);
	}
	session->choices = wanted;
	if (outcome != OUTCOME_BUILT)
		return 0;
	struct design_cost cost = design_cost(session->attempt, session->platform, session->module);
	int64_t cycles = report_cycles(session, token_detail_predicted);
	*dsp = cost.total.dsp;
	if (cycles)
		return cycles;
	const struct extent_list most = { 0 };
	return design_time(session->attempt, session->platform, session->module, &cost, most).most;
}

/* true: the search gives the best design so far. */
static bool compare_search(struct build *b, int search, int64_t most, struct compared *best)
{
	int64_t dsp = 0;
	int64_t cycles = cycles_of(b, search, &dsp);
	int64_t lacks = b->session->context.least_budget;
	int tiles = (int)b->session->choices.value[CHOICE_REGISTER_TILES];
	if (!cycles && lacks && (best->smallest < 0 || lacks < best->lacks)) {
		best->smallest = search;
		best->smallest_tiles = tiles;
		best->lacks = lacks;
	}
	if (!cycles ||
	        (best->search >= 0 &&
	                (cycles > best->cycles || (cycles == best->cycles && dsp >= best->dsp))))
		return false;
	*best = (struct compared){ search, best->smallest, tiles, best->smallest_tiles, cycles, dsp,
		best->lacks, most };
	return true;
}

/* Compares all searches with at most `most` multipliers, with register tiles and, if some kernel
 * has one, without.  true: one is the best so far. */
static bool compare_with(struct build *b, int64_t most, struct compared *best)
{
	struct session *session = b->session;
	struct choices wanted = session->choices;
	int asked = (int)wanted.value[CHOICE_REGISTER_TILES];
	bool better = false;
	bool tiled = true;
	session->choices.value[CHOICE_DSP] = most;
	for (int tiles = asked ? asked : 1;
	        tiled && tiles <= (asked ? asked : REGISTER_TILES_FORMS); tiles++) {
		session->choices.value[CHOICE_REGISTER_TILES] = tiles;
		tiled = false;
		for (int search = 0; search < choice_info[CHOICE_SEARCH].words && !session->stop;
		        search++) {
			better |= compare_search(b, search, most, best);
			tiled |= session->context.register_tiles > 0;
		}
	}
	session->choices = wanted;
	return better;
}

/* The closed form of the joint search leaves effects out, so a simpler search may give the better
 * design.  Small modules are made with each search and timed; then with half the multipliers of the
 * best design, as long as no cycle is lost.  If on-chip memory suffices for none, the search that
 * needs least of it is taken, and its build gives the diagnostic. */
static struct compared compare_searches(struct build *b)
{
	struct choices *choices = &b->session->choices;
	struct compared best = { .search = -1, .smallest = -1 };
	int kernels = 0;
	ir_walk(module_body(b->tensor), count_kernel, &kernels);
	if (choices->value[CHOICE_SEARCH] || !build_is_whole(b) || kernels > COMPARED_KERNELS)
		return best;
	bool better = compare_with(b, choices->value[CHOICE_DSP], &best);
	while (better && best.dsp > 1)
		better = compare_with(b, best.dsp / 2, &best);
	choices->value[CHOICE_SEARCH] = 1 + (best.search >= 0 ? best.search : best.smallest);
	if (best.search >= 0) {
		choices->value[CHOICE_DSP] = best.most;
		choices->value[CHOICE_REGISTER_TILES] = best.tiles;
	} else if (best.smallest >= 0) {
		choices->value[CHOICE_REGISTER_TILES] = best.smallest_tiles;
	}
	return best;
}

/* What the lanes that pragmas ask for cost: the design is made without them, too. */
static void compare_pragmas(
        struct build *b, const struct choices *limited, const struct compared *with)
{
	struct module *module = b->tensor;
	struct op *main = module_main(module);
	const struct attr *wishes = attr_get(main, KEY_STREAM_UNROLL);
	const struct choices chosen = b->session->choices;
	if (!wishes || with->search < 0)
		return;
	attr_set(module, main, KEY_STREAM_UNROLL, NULL);
	b->session->choices = *limited;
	const struct compared without = compare_searches(b);
	b->session->choices = chosen;
	attr_set(module, main, KEY_STREAM_UNROLL, wishes);
	if (without.search >= 0 && without.cycles < with->cycles)
		attr_set(module, main, KEY_STREAM_PRAGMA_COST,
		        attr_integers(
		                module, 2, (const int64_t[]){ with->cycles, without.cycles }));
}

/* --- a target */

static bool refuse_target(struct build *b)
{
	struct session *session = b->session;
	diag_error(&session->diag, NOWHERE,
	        "--target-ms %s cannot be met: the fastest design that was found takes %.4g ms",
	        session->options.target_ms, b->ms);
	return diag_note(&session->diag,
	        "the lowest that can be met is --target-ms %.4g; -O3 searches more designs",
	        b->ms * 1.0001);
}

/* Bisects the number of operators for the fewest that meet the target; the parallelism is searched
 * anew for each number. */
static bool meet_target(struct build *b)
{
	struct session *session = b->session;
	if (b->ms > session->target_ms)
		return refuse_target(b);
	struct choices best = session->choices;
	int64_t low = 0;
	int64_t high = b->used.dsp;
	bool current = true;
	for (int step = 0; step < TARGET_STEPS && high - low > 1; step++) {
		session->choices = best;
		session->choices.value[CHOICE_DSP] = low + (high - low) / 2;
		struct choices tried = session->choices;
		current = build_fitting(b) && b->ms <= TARGET_SHARE * session->target_ms;
		if (session->stop)
			return false;
		if (current) {
			best = session->choices;
			high = b->used.dsp < tried.value[CHOICE_DSP] ? b->used.dsp
			                                             : tried.value[CHOICE_DSP];
		} else {
			low = tried.value[CHOICE_DSP];
		}
	}
	session->choices = best;
	return current || build_fitting(b);
}

/* Where no die has room for a process, the compiler has already narrowed all that it may choose:
 * names the user's options that it may not.  Always false. */
static bool note_asked(struct session *session, const struct choices *asked)
{
	static const enum choice room[] = { CHOICE_ENGINE_PES, CHOICE_PRODUCTS_PER_DSP,
		CHOICE_TOKENS_PER_CYCLE, CHOICE_KV_PARTITIONS, CHOICE_KV_PORTS };
	struct text text = text_new(session->arena);
	for (size_t i = 0; i < sizeof room / sizeof *room; i++)
		if (asked->value[room[i]])
			text_add(&text, "--%s %lld ", choice_info[room[i]].name,
			        (long long)asked->value[room[i]]);
	for (size_t i = 0; i < session->options.fix.count; i++)
		text_add(&text, "--fix-kernel %s ", session->options.fix.data[i]);
	if (!text.size || !session->diag.count || !build_lacks_room(session))
		return false;
	return diag_note(&session->diag,
	        "leave out %sso that the compiler may choose smaller values; or %s", text.data,
	        session->diag.entry[0].note);
}

bool point_build(struct session *session, int first, int last)
{
	struct build b = {
		.session = session, .tensor = session->module, .first = first, .last = last
	};
	const struct choices asked = session->choices;
	build_begin(&b);
	const struct choices limited = session->choices;
	const struct compared best = compare_searches(&b);
	compare_pragmas(&b, &limited, &best);
	bool built = build_pe_count(&b);
	if (built && session->target_ms && build_is_whole(&b))
		built = meet_target(&b);
	return built || note_asked(session, &asked);
}
