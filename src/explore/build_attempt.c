/* Builds a design from the current choices and, while it exceeds the board or the user's limits,
 * builds it again with a lower budget for what it exceeds. */
#include "ir/workload.h"
#include "explore/build.h"
#include "report/report.h"
#include "ir/datapath_sharing.h"
#include "fifo/fifo.h"
#include "floorplan/floorplan.h"

#define ATTEMPTS 8          /* the last one has the smallest budgets */
#define NARROWER 0.8        /* factor of LUTs and DSPs from one attempt to the next */
#define NARROWER_DSP 0.95   /* DSPs are predicted well: this much below the limit */
#define NARROWER_MEMORY 0.7 /* factor of on-chip memory */
#define INTERVAL_MOST 32    /* cycles between iterations, where operators must be shared */
#define MEMORY_STEPS 4      /* increases of memory limits to find the smallest possible */

struct build build_part(const struct build *b)
{
	return (struct build){ .session = b->session,
		.tensor = b->tensor,
		.first = b->first,
		.last = pass_find("assign_axi_bundles") };
}

bool build_is_whole(const struct build *b)
{
	return b->last == pass_count - 1;
}

bool build_counts_tokens(const struct build *b)
{
	const struct op *main = module_main(b->tensor);
	return workload_has_many_tokens(workload_of(main)) && counts_few_tokens(main);
}

bool build_lacks_room(const struct session *session)
{
	return text_same(session->guard.stage, "check_multipliers") ||
	        text_same(session->guard.stage, "floorplan");
}

static enum outcome classify(struct build *b)
{
	const struct session *session = b->session;
	const char *stage = session->guard.stage;
	if (session->stop)
		return OUTCOME_REFUSED;
	if (session->context.excess_ports || session->context.engine_ports_left)
		return OUTCOME_PORTS;
	if (text_same(stage, "bind_storage"))
		return OUTCOME_MEMORY;
	if (!build_lacks_room(session))
		return OUTCOME_REFUSED;
	b->used = design_cost(session->attempt, session->platform, session->module).total;
	return OUTCOME_SPACE;
}

static void begin_attempt(struct build *b)
{
	struct session *session = b->session;
	arena_free(session->attempt);
	session->attempt = arena_new(&session->guard);
	session->module = module_clone(b->tensor, session->attempt);
	session->diag.count = 0;
}

/* Is a die crowded even with the shallowest FIFOs?  Then no FIFO depths can mend it. */
static bool crowded_in_any_case(struct build *b)
{
	struct session *session = b->session;
	struct module *made = session->module;
	session->module = module_clone(made, session->attempt);
	fifo_shallow(session->module);
	int pass = pass_find("bind_storage");
	bool stored = run_passes(session, pass, pass);
	b->cost = design_cost(session->attempt, session->platform, session->module);
	bool crowded = stored && limits_exceeded(session, b->cost.total) == LIMITS &&
	        !floorplan_fits(session->platform, session->module);
	session->module = made;
	session->diag.count = 0;
	return crowded;
}

enum outcome build_attempt(struct build *b)
{
	struct session *session = b->session;
	int half = pass_find("assign_axi_bundles");
	int next = b->first > half ? b->first : half + 1;
	enum from from = b->from;
	b->from = FROM_TENSOR;
	if (from == FROM_JUDGED && b->judged != OUTCOME_BUILT)
		return b->judged;
	if (from == FROM_TENSOR)
		begin_attempt(b);
	session->predicted = NULL;
	b->over = LIMITS;
	b->crowded = false;
	if (from < FROM_MADE && !run_passes(session, b->first, b->last < half ? b->last : half))
		return classify(b);
	if (from < FROM_JUDGED && b->skips_crowded && b->first <= half)
		b->crowded = crowded_in_any_case(b);
	if (b->crowded)
		return OUTCOME_CROWDED;
	if (!run_passes(session, next, b->last))
		return classify(b);
	if (!build_is_whole(b))
		return OUTCOME_BUILT;
	b->cost = design_cost(session->arena, session->platform, session->module);
	b->used = b->cost.total;
	b->ms = session->target_ms ? report_make(session, "").model_ms : 0;
	b->over = limits_exceeded(session, b->used);
	b->crowded = limits_crowded(session, &b->cost);
	return b->over == LIMITS ? OUTCOME_BUILT : OUTCOME_SPACE;
}

/* --- narrower */

static void scale(struct build *b, enum choice choice, int64_t used, double factor)
{
	struct choices *choices = &b->session->choices;
	int64_t now = choice_resolve(choices, b->session->platform, choice);
	now = used > 0 && used < now ? used : now;
	int64_t next = (int64_t)((double)now * factor);
	choices->value[choice] = next < 1 ? 1 : next;
}

/* Did the lower budget change nothing, because it is still above what converters hold? */
static bool memory_is_same(const struct build *b)
{
	const struct resources *taken = &b->session->context.taken;
	return taken->bram18 == b->before.bram18 && taken->uram == b->before.uram;
}

/* Lowers the budget of on-chip memory; starting from what converters hold if the last budget had
 * no effect, and never below what they hold at least. */
static void narrow_memory(struct build *b)
{
	const struct pass_context *context = &b->session->context;
	int64_t *budget = &b->session->choices.value[CHOICE_ON_CHIP];
	bool below = memory_is_same(b) && context->on_chip_bytes > context->least_on_chip_bytes;
	scale(b, CHOICE_ON_CHIP, below ? context->on_chip_bytes : 0, NARROWER_MEMORY);
	*budget = *budget < context->least_on_chip_bytes ? context->least_on_chip_bytes : *budget;
}

static void narrow_space(struct build *b)
{
	const struct resources *limit = &b->session->limit;
	if (b->over == LIMIT_DSP) {
		scale(b, CHOICE_DSP, 0, NARROWER_DSP * (double)limit->dsp / (double)b->used.dsp);
		return;
	}
	scale(b, CHOICE_DSP, b->used.dsp, NARROWER);
	scale(b, CHOICE_LUT, b->used.lut, NARROWER);
}

/* As many PEs as there are ports left for; the words of results follow. */
static void use_fewer_pes(struct build *b)
{
	int pes = b->session->context.engine_ports_left;
	b->session->choices.value[CHOICE_ENGINE_PES] = pes;
	mark_result_lanes(b->tensor, module_main(b->tensor)->region[0], pes);
}

/* Leaves register tiles out, unless they are asked for; false: there are none to leave out. */
static bool drop_register_tiles(struct session *session)
{
	int64_t *tiles = &session->choices.value[CHOICE_REGISTER_TILES];
	bool dropped = !*tiles && session->context.register_tiles > 0;
	if (dropped)
		*tiles = 1 + REGISTER_TILES_NONE;
	return dropped;
}

void build_narrower(struct build *b, enum outcome outcome, int number)
{
	struct choices *choices = &b->session->choices;
	if (outcome == OUTCOME_PORTS && b->session->context.engine_ports_left)
		use_fewer_pes(b);
	else if (outcome == OUTCOME_PORTS)
		choices->value[CHOICE_RESERVED_PORTS] =
		        choice_count(choices, CHOICE_RESERVED_PORTS) +
		        b->session->context.excess_ports;
	else if (outcome == OUTCOME_MEMORY)
		narrow_memory(b);
	else
		narrow_space(b);
	if (number < ATTEMPTS - 2 || outcome == OUTCOME_PORTS)
		return;
	/* the last two attempts take the smallest kernels that there are */
	choices->value[CHOICE_DSP] = choices->value[CHOICE_LUT] = 1;
	choices->value[CHOICE_SEARCH] = b->session->options.choices.value[CHOICE_SEARCH];
	drop_register_tiles(b->session);
}

/* Resources of the narrowest design, as options, for every limit that it exceeds. */
static const char *narrowest_limits(const struct build *b)
{
	const struct session *session = b->session;
	struct text text = text_new(session->arena);
	for (enum limit limit = b->over; limit < LIMITS; limit++)
		if (session->options.limit[limit] &&
		        limit_of(b->used, limit) > limit_of(session->limit, limit))
			text_add(&text, " --%s %lld", limit_option[limit],
			        (long long)limit_of(b->used, limit));
	return text.data;
}

/* Explains a limit that no attempt met, with the smallest value that can be met. */
static bool refuse_limit(struct build *b)
{
	struct session *session = b->session;
	if (b->over == LIMITS)
		return false;
	long long need = (long long)limit_of(b->used, b->over);
	/* the limit of a second phase is what the first leaves */
	if (!session->options.limit[b->over]) {
		diag_error(&session->diag, NOWHERE,
		        "both phases do not fit: the smallest design found for one takes %lld %s, "
		        "and %lld are available to it",
		        need, limit_unit[b->over], (long long)limit_of(session->limit, b->over));
		return diag_note(&session->diag,
		        "compile each phase separately, without --second-phase; or fewer tokens "
		        "per launch");
	}
	diag_error(&session->diag, NOWHERE,
	        "--%s %s cannot be met%s: the smallest design found takes %lld %s",
	        limit_option[b->over], session->options.limit[b->over],
	        session->choices.fixed ? " with --fix-kernel" : "", need, limit_unit[b->over]);
	return diag_note(
	        &session->diag, "the tightest limit that can be met is%s", narrowest_limits(b));
}

static bool no_more_memory(struct resources a, struct resources b)
{
	return a.bram18 <= b.bram18 && a.uram <= b.uram;
}

/* Raises the limits of block RAMs and URAMs until the narrowest design's memories can be bound;
 * the two kinds stand in for each other. */
static bool memory_placed(struct session *session)
{
	int pass = pass_find("bind_storage");
	for (int i = 0; i < MEMORY_STEPS; i++) {
		struct resources used = session->context.taken;
		struct resources *limit = &session->limit;
		limit->bram18 = used.bram18 > limit->bram18 ? used.bram18 : limit->bram18;
		limit->uram = used.uram > limit->uram ? used.uram : limit->uram;
		if (!no_more_memory(*limit, platform_total(session->platform)))
			return false;
		session->diag.count = 0;
		if (run_passes(session, pass, pass))
			return true;
	}
	return false;
}

/* Does the design exceed the user's memory limits, but not the platform?  Then b->used is what it
 * takes. */
static bool exceeds_memory_limit(struct build *b)
{
	struct session *session = b->session;
	struct resources limit = session->limit;
	const struct diag refusal = session->diag;
	if (!session->options.limit[LIMIT_BRAM] && !session->options.limit[LIMIT_URAM])
		return false;
	bool placed = memory_placed(session);
	session->limit = limit;
	session->diag.count = 0;
	b->used = session->context.taken;
	b->over = LIMITS;
	if (!no_more_memory(b->used, limit))
		b->over = b->used.bram18 > limit.bram18 ? LIMIT_BRAM : LIMIT_URAM;
	if (placed && b->over != LIMITS)
		return true;
	session->diag = refusal;
	return false;
}

void build_begin(struct build *b)
{
	const struct session *session = b->session;
	struct choices *choices = &b->session->choices;
	if (session->options.limit[LIMIT_DSP] &&
	        choice_resolve(choices, session->platform, CHOICE_DSP) > session->limit.dsp)
		choices->value[CHOICE_DSP] = session->limit.dsp > 0 ? session->limit.dsp : 1;
	if (session->options.limit[LIMIT_LUT] &&
	        choice_resolve(choices, session->platform, CHOICE_LUT) > session->limit.lut / 2)
		choices->value[CHOICE_LUT] = session->limit.lut > 1 ? session->limit.lut / 2 : 1;
}

/* A second phase that lacks ports waits until the first is built with fewer (phases.c). */
static bool waits_for_first(const struct build *b, int number)
{
	return b->session->follows && number > 0;
}

/* Records of the first attempt that took too much its PEs and the factor of the excess: the
 * starting point of choose_pe_count.c. */
static void note_excess(struct build *b, enum outcome outcome)
{
	const struct session *session = b->session;
	if (b->pes || !build_is_whole(b) || (outcome != OUTCOME_SPACE && outcome != OUTCOME_MEMORY))
		return;
	struct design_cost cost = design_cost(session->attempt, session->platform, session->module);
	double excess = resources_share(
	        outcome == OUTCOME_MEMORY ? session->context.taken : b->used, session->limit);
	b->pes = build_pes(b, &cost);
	b->excess = excess > 1 ? excess : 1;
}

/* Lowers the budgets and returns the number of the next attempt.  If less memory changes nothing
 * and converters cannot be cut further, only the narrowest kernels are left to try. */
static int next_attempt(struct build *b, enum outcome outcome, int number)
{
	const struct pass_context *context = &b->session->context;
	bool stuck = outcome == OUTCOME_MEMORY && memory_is_same(b) &&
	        context->on_chip_bytes <= context->least_on_chip_bytes;
	int last = stuck && number < ATTEMPTS - 2 ? ATTEMPTS - 2 : number;
	for (; number <= last && number < ATTEMPTS - 1; number++)
		build_narrower(b, outcome, number);
	b->before = context->taken;
	return last + 1;
}

/* Register tiles hold operands on chip, so a budget may leave no room for them. */
static enum outcome attempt_within_budget(struct build *b)
{
	enum outcome outcome = build_attempt(b);
	bool over = outcome == OUTCOME_REFUSED && b->session->context.least_budget;
	return over && drop_register_tiles(b->session) ? build_attempt(b) : outcome;
}

static bool is_built(enum outcome outcome)
{
	return outcome == OUTCOME_BUILT || outcome == OUTCOME_CROWDED;
}

/* Builds the smallest kernels once more, whose operations share operators: with the shortest
 * interval that fits, if the longest one does. */
static enum outcome attempt_sharing(struct build *b)
{
	int64_t *interval = &b->session->choices.value[CHOICE_KERNEL_INTERVAL];
	if (*interval)
		return OUTCOME_SPACE;
	*interval = INTERVAL_MOST;
	enum outcome outcome = attempt_within_budget(b);
	if (!is_built(outcome))
		return outcome;
	for (*interval = 2; *interval <= INTERVAL_MOST; *interval *= 2) {
		outcome = attempt_within_budget(b);
		if (is_built(outcome))
			return outcome;
	}
	return outcome;
}

bool build_fitting(struct build *b)
{
	enum outcome outcome = OUTCOME_REFUSED;
	const struct diag *diag = &b->session->diag;
	const char *first = NULL;
	b->session->narrowest = NULL;
	b->before = (struct resources){ 0 };
	for (int number = 0; number < ATTEMPTS; number = next_attempt(b, outcome, number)) {
		outcome = attempt_within_budget(b);
		if (is_built(outcome)) {
			b->session->narrowest = number == ATTEMPTS - 1 ? first : NULL;
			return true;
		}
		first = !first && diag->count ? diag->entry[0].message : first;
		if (outcome == OUTCOME_REFUSED ||
		        (outcome == OUTCOME_PORTS && waits_for_first(b, number)))
			return false;
		note_excess(b, outcome);
	}
	if (outcome == OUTCOME_SPACE)
		outcome = attempt_sharing(b);
	if (is_built(outcome)) {
		b->session->narrowest = first;
		return true;
	}
	return (outcome != OUTCOME_MEMORY || exceeds_memory_limit(b)) && refuse_limit(b);
}

/* The first stream.dot inside a shared datapath, which is the engine's: other kernels form sums of
 * products as well. */
static const struct op *dot_in(const struct block *block, bool inside)
{
	const struct op *found = NULL;
	for (const struct op *op = block->first; op && !found; op = op->next) {
		if (op->code == OP_DOT && inside)
			found = op;
		else if (op->region[0])
			found = dot_in(op->region[0], inside || nest_datapath(op) >= 0);
	}
	return found;
}

int build_pes(const struct build *b, const struct design_cost *cost)
{
	int pes = 0;
	struct dot dot;
	for (int i = 0; i < cost->processes; i++)
		for (const struct op *op = dot_in(cost->process[i].function->region[0], false); op;
		        op = op->next)
			pes += op->code == OP_DOT && dot_of(op, &dot) ? dot.words : 0;
	return pes / engine_shape(module_main(b->tensor)->region[0]).pes_per_port;
}
