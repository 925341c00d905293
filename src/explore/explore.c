/* Design space exploration: proposes points (choices of the compiler), builds and times each, and
 * keeps the Pareto front over time, DSPs, on-chip memory, energy and throughput; of C over time,
 * DSPs, LUTs and block RAMs. */
#include "explore/explore.h"
#include "base/blake2.h"
#include "base/data.h"
#include "explore/limits.h"
#include "explore/point.h"
#include "frontend/frontend.h"
#include "report/report.h"
#include <string.h>

/* random points tried for one that is new; after them the space counts as explored */
#define PROPOSALS 256
#define SIMULATED_MOST (INT64_C(1) << 28) /* iterations of a simulation */

/* --- the Pareto front */

/* In each, smaller is better. */
#define FIGURES 5
static void figures_of(
        const struct exploration *exploration, const struct trial *trial, double *figure)
{
	const double list[FIGURES] = { trial->ms, (double)trial->used.dsp, (double)trial->on_chip,
		trial->energy_mj, -trial->per_second };
	const double of_c[FIGURES] = { trial->ms, (double)trial->used.dsp, (double)trial->used.lut,
		(double)trial->used.bram18 };
	memcpy(figure, exploration->of_c ? of_c : list, sizeof list);
}

static bool dominates(const double *left, const double *right)
{
	bool better = false;
	for (int i = 0; i < FIGURES; i++) {
		if (left[i] > right[i])
			return false;
		better = better || left[i] < right[i];
	}
	return better;
}

bool exploration_on_front(const struct exploration *exploration, size_t trial)
{
	const struct trial *trials = exploration->trials.data;
	double own[FIGURES];
	double other[FIGURES];
	figures_of(exploration, &trials[trial], own);
	for (size_t i = 0; i < exploration->trials.count; i++) {
		figures_of(exploration, &trials[i], other);
		/* of equal ones, the first */
		bool same = i < trial && !memcmp(own, other, sizeof own);
		if (!trials[i].refused && (same || dominates(other, own)))
			return false;
	}
	return !trials[trial].refused;
}

/* By time, then DSPs; with a target by DSPs, then time. */
static bool is_better(
        const struct exploration *exploration, const struct trial *trial, const struct trial *other)
{
	double own[2] = { trial->ms, (double)trial->used.dsp };
	double best[2] = { other->ms, (double)other->used.dsp };
	int first = exploration->target_ms > 0;
	if (own[first] != best[first])
		return own[first] < best[first];
	return own[!first] < best[!first];
}

int exploration_best(const struct exploration *exploration)
{
	int best = -1;
	for (size_t i = 0; i < exploration->trials.count; i++) {
		const struct trial *trial = &exploration->trials.data[i];
		const struct trial *known = best < 0 ? NULL : &exploration->trials.data[best];
		if (trial->refused)
			continue;
		if (!known || is_better(exploration, trial, known))
			best = (int)i;
	}
	return best;
}

/* --- the next point */

struct proposer {
	const struct session *session;
	const struct exploration *exploration;
	uint64_t random;
};

static uint64_t next_random(struct proposer *p)
{
	p->random += 0x9e3779b97f4a7c15u;
	uint64_t mixed = (p->random ^ (p->random >> 30)) * 0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
	return mixed ^ (mixed >> 31);
}

static bool is_free(const struct exploration *exploration, int choice)
{
	return !exploration->fixed_choices.value[choice] &&
	        choice_candidates((enum choice)choice) > 0;
}

static bool is_new(const struct exploration *exploration, const struct choices *point)
{
	for (size_t i = 0; i < exploration->trials.count; i++)
		if (!memcmp(exploration->trials.data[i].asked.value, point->value,
		            sizeof point->value))
			return false;
	return true;
}

/* First the compiler's own choices, then each value of each single choice. */
static bool propose_single(const struct proposer *p, struct choices *point)
{
	*point = p->exploration->fixed_choices;
	if (is_new(p->exploration, point))
		return true;
	for (int c = 0; c < CHOICES; c++)
		for (int n = 0; is_free(p->exploration, c) && n < choice_candidates((enum choice)c);
		        n++) {
			*point = p->exploration->fixed_choices;
			point->value[c] = choice_candidate(p->session->platform, (enum choice)c, n);
			if (point->value[c] !=
			                choice_resolve(&p->exploration->fixed_choices,
			                        p->session->platform, (enum choice)c) &&
			        is_new(p->exploration, point))
				return true;
		}
	return false;
}

/* A trial of the front with one or two of its choices changed. */
static void mutate(struct proposer *p, struct choices *point)
{
	const struct exploration *exploration = p->exploration;
	size_t front = 0;
	size_t seen = 0;
	for (size_t i = 0; i < exploration->trials.count; i++)
		front += exploration_on_front(exploration, i);
	size_t wanted = front ? next_random(p) % front : 0;
	for (size_t i = 0; i < exploration->trials.count && seen <= wanted; i++)
		if (exploration_on_front(exploration, i) && seen++ == wanted)
			*point = exploration->trials.data[i].asked;
	for (uint64_t step = 1 + next_random(p) % 2; step > 0; step--) {
		int c = (int)(next_random(p) % CHOICES);
		while (!is_free(exploration, c))
			c = (c + 1) % CHOICES;
		point->value[c] = choice_candidate(p->session->platform, (enum choice)c,
		        (int)(next_random(p) % (uint64_t)choice_candidates((enum choice)c)));
	}
}

static bool any_free(const struct exploration *exploration)
{
	int free = 0;
	for (int c = 0; c < CHOICES; c++)
		free += is_free(exploration, c);
	return free > 0;
}

static bool propose(
        const struct session *session, const struct exploration *exploration, struct choices *point)
{
	struct proposer p = {
		.session = session, .exploration = exploration, .random = exploration->trials.count
	};
	if (propose_single(&p, point))
		return true;
	for (int i = 0; any_free(exploration) && i < PROPOSALS; i++) {
		*point = exploration->fixed_choices;
		mutate(&p, point);
		if (is_new(exploration, point))
			return true;
	}
	return false;
}

/* --- a trial */

static void simulate(struct session *session, struct trial *trial, struct report *report)
{
	report_simulate(session, report);
	if (!report->simulated || report->deadlock)
		return;
	trial->simulated = report->cycles;
	trial->ms = report->latency_ms;
	trial->energy_mj = report->energy.launch_mj;
}

/* Times a design by the model, and by the simulator as well if the model puts it on the front. */
static void measure(struct session *session, struct exploration *exploration, struct trial *trial)
{
	struct report report = report_make(session, "");
	double busy_ms = platform_launch_ms(session->platform, report.time.least);
	trial->cycles = report.time.most;
	trial->ms = report.model_ms;
	trial->energy_mj = report.energy.launch_mj;
	trial->used = report.cost.total;
	trial->on_chip = report.fifos.bytes + report.converters.bytes;
	/* a token depends on the one before; other launches overlap, limited by the busiest process
	 * or memory channel */
	trial->per_second = 1e3 / (report.decodes ? trial->ms : busy_ms);
	VEC_PUSH(session->arena, &exploration->trials, *trial);
	size_t last = exploration->trials.count - 1;
	if (exploration_on_front(exploration, last))
		simulate(session, trial, &report);
	if (report.decodes)
		trial->per_second = 1e3 / trial->ms;
	exploration->trials.count = last;
}

/* A broken invariant ends this trial, not the exploration. */
static bool guarded_build(struct session *session, int first)
{
	struct guard outer = session->guard;
	volatile bool built = false;
	if (setjmp(session->guard.leave)) {
		if (session->guard.reason == GUARD_MEMORY)
			guard_leave(&outer, GUARD_MEMORY, "%s", session->guard.message);
		diag_error(&session->diag, NOWHERE, "internal error: %s", session->guard.message);
	} else {
		built = point_build(session, first, pass_count - 1);
	}
	memcpy(session->guard.leave, outer.leave, sizeof outer.leave);
	session->guard.reason = GUARD_NONE;
	return built;
}

static bool try_point(
        struct session *session, struct exploration *exploration, const struct choices *point)
{
	struct module *tensor = session->module;
	const struct platform *board = session->platform;
	bool first = !exploration->trials.count;
	struct trial trial = { .asked = *point };
	size_t stages = session->stages.count;
	int64_t events = session->options.events;
	session->choices = *point;
	session->target_ms = 0;
	session->options.choices.value[CHOICE_CLOCK] = point->value[CHOICE_CLOCK];
	bool built = limits_clock(session) && guarded_build(session, pass_choosing());
	trial.built = session->choices;
	session->target_ms = exploration->target_ms;
	session->options.events = events ? events : SIMULATED_MOST;
	if (built)
		measure(session, exploration, &trial);
	if (built && exploration->target_ms > 0 && trial.ms > exploration->target_ms)
		trial.refused = text_format(
		        session->arena, "it takes %.4g ms, more than --target-ms", trial.ms);
	if (!built)
		trial.refused = session->diag.count
		        ? text_format(session->arena, "%s", session->diag.entry[0].message)
		        : "no design";
	session->options.events = events;
	session->options.choices.value[CHOICE_CLOCK] =
	        exploration->fixed_choices.value[CHOICE_CLOCK];
	session->platform = board;
	session->module = tensor;
	session->stages.count = stages;
	if (session->stop ||
	        (first && !built && session->options.fix.count &&
	                text_same(session->guard.stage, "choose_parallelism")))
		return false; /* a --fix-kernel that no point can satisfy */
	session->diag.count = 0;
	VEC_PUSH(session->arena, &exploration->trials, trial);
	return true;
}

bool explore(struct session *session, struct exploration *exploration, int64_t trials,
        bool (*keep)(struct session *session, const struct exploration *exploration))
{
	struct choices point;
	while ((int64_t)exploration->trials.count < trials &&
	        propose(session, exploration, &point)) {
		if (!try_point(session, exploration, &point) ||
		        (keep && !keep(session, exploration)))
			return false;
		if (session->on_progress)
			session->on_progress(session->on_stage_user, "explored",
			        (int)(100 * (int64_t)exploration->trials.count / trials));
	}
	return true;
}

/* --- the identity of an exploration */

static void print_choice(struct text *out, enum choice choice, int64_t value)
{
	text_add(out, "%s--%s ", out->size ? " " : "", choice_info[choice].name);
	choice_print(out, choice, value, false);
}

static void print_list(struct text *out, const char *name, const struct option_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		text_add(out, "%s--%s %s", out->size ? " " : "", name, list->data[i]);
}

static const char *constraints_of(struct session *session)
{
	const struct options *options = &session->options;
	struct text text = text_new(session->arena);
	if (options->top)
		text_add(&text, "--top %s", options->top);
	print_list(&text, "macro", &options->macro);
	print_list(&text, "include", &options->include);
	print_list(&text, "define", &options->define);
	if (options->reassociate)
		text_add(&text, "%s--reassociate", text.size ? " " : "");
	for (int i = 0; i < LIMITS; i++)
		if (options->limit[i])
			text_add(&text, "%s--%s %s", text.size ? " " : "", limit_option[i],
			        options->limit[i]);
	if (options->target_ms)
		text_add(&text, "%s--target-ms %s", text.size ? " " : "", options->target_ms);
	print_list(&text, "fix-kernel", &options->fix);
	for (int c = 0; c < CHOICES; c++)
		if (session->choices.value[c])
			print_choice(&text, (enum choice)c, session->choices.value[c]);
	return text.size ? text.data : "";
}

bool exploration_begin(struct session *session, struct exploration *exploration)
{
	const char *reason;
	size_t size;
	char hash[65];
	const char *text = file_read(session->arena, session->options.file, &size, &reason);
	if (!text)
		return diag_error(&session->diag,
		        (struct location){ .file = session->options.file }, "cannot be read: %s",
		        reason);
	blake2_hex(text, size, hash);
	*exploration = (struct exploration){ .model = text_copy(session->arena, hash, 64),
		.name = session->options.file,
		.platform = session->platform->name,
		.of_c = c_is_source(session->options.file),
		.fixed_choices = session->choices,
		.fix = session->options.fix,
		.target_ms = session->target_ms };
	exploration->quant = session->quant ? session->quant->text : "none";
	exploration->constraints = constraints_of(session);
	return true;
}
