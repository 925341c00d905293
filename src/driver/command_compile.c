/* `stc compile`: reads MLIR and writes a design folder, or the module at some level. */
#include "driver/pack.h"
#include "pipeline/output.h"
#include "driver/write_design.h"
#include "import/weights.h"
#include "driver/command_line.h"
#include "base/parallel.h"
#include "base/closest_name.h"
#include "explore/explore.h"
#include "explore/limits.h"
#include "explore/point.h"
#include "explore/phases.h"
#include "driver/quant_option.h"

#define LONG_TRIALS 60

struct pass_range {
	int first, last;
};

static bool unknown_pass(struct session *session, const char *option, const char *name)
{
	diag_error(&session->diag, NOWHERE, "--%s names '%s', which is no pass", option, name);
	struct closest_name closest_name = { .wanted = name };
	for (int i = 0; i < pass_count; i++)
		closest_name_consider(&closest_name, passes[i].name);
	return diag_note(
	        &session->diag, "the nearest is %s; `stc passes` lists all", closest_name.found);
}

static bool choose_passes(struct session *session, struct pass_range *range)
{
	const struct options *options = &session->options;
	enum level level = session->module->level;
	enum level to = LEVEL_HARDWARE;
	*range = (struct pass_range){ options->from ? pass_find(options->from) : pass_first(level),
		pass_count - 1 };
	if (options->from && range->first < 0)
		return unknown_pass(session, "from", options->from);
	if (options->from && passes[range->first].needed != level) {
		diag_error(&session->diag, NOWHERE, "--from %s needs a module of level %s, not %s",
		        options->from, level_name(passes[range->first].needed), level_name(level));
		return diag_note(&session->diag, "a pass that `stc passes` lists with that level");
	}
	if (options->stop_after && (range->last = pass_find(options->stop_after)) < 0)
		return unknown_pass(session, "stop-after", options->stop_after);
	if (options->to && !level_find(options->to, &to)) {
		diag_error(
		        &session->diag, NOWHERE, "--to names '%s', which is no level", options->to);
		return diag_note(&session->diag, "tensor, demand, stream or hardware");
	}
	if (options->to)
		range->last = pass_last(to);
	return true;
}

static bool is_printed(const char *path)
{
	return text_same(path, "-");
}

static bool write_to(struct session *session, const char *path, const struct text *text)
{
	if (!is_printed(path))
		return file_write_whole(
		        session->arena, &session->diag, path, text->data, text->size);
	text_add_bytes(&session->out, text->data, text->size);
	return true;
}

static bool write_program(struct session *session)
{
	const char *path = session->options.lp;
	if (!path || session->lp.size)
		return !path || write_to(session, path, &session->lp);
	diag_error(&session->diag, NOWHERE, "--dump-fifo-lp: no linear program was solved");
	return diag_note(&session->diag,
	        "FIFO depths use one only for a complete design and with --fifo-sizing other than "
	        "safe");
}

static bool write_text(struct session *session)
{
	struct text text = text_new(session->arena);
	ir_print(session->module, &text);
	return write_to(session, session->options.output ? session->options.output : "-", &text);
}

static bool open_weights(struct session *session)
{
	const char *path = session->options.weights;
	session->weights = path ? weights_open(session->arena, &session->diag, path) : NULL;
	return !path || session->weights;
}

static bool write_timing(struct session *session, int64_t packed_bytes)
{
	struct text text = text_new(session->arena);
	report_timing(session, (double)packed_bytes, &text);
	return output_unlisted(session->output, "timing.json", text.data, text.size);
}

struct emission {
	struct session *session;
	const struct design_phases *design;
	struct text manifest; /* its part before the list of files */
	bool done;
};

static bool emit_code(struct emission *e)
{
	struct session *session = e->session;
	const struct phases *phases = &e->design->phases;
	const char *name = e->design->name;
	session->output = output_begin(
	        session->arena, &session->diag, session->options.output, &session->stop);
	if (!session->output || !session_stage(session, "emit") ||
	        !write_code(session->output, phases, session->platform, name))
		return false;
	e->manifest = text_new(session->arena);
	emit_manifest(phases, session->platform, name, session->weights != NULL, &e->manifest);
	return session_stage(session, "simulate");
}

static void emit(void *data, struct arena *scratch)
{
	struct emission *emission = data;
	(void)scratch;
	emission->done = emit_code(emission);
}

/* Emits the design's code while, in parallel, it is simulated and its cycles are modeled. */
static bool emit_simulate_report(
        struct session *session, struct emission *emission, struct report *report)
{
	const struct design_phases *design = emission->design;
	struct simulation simulation[PHASES_MOST];
	struct forecast *forecast[PHASES_MOST];
	struct task task[1 + 2 * PHASES_MOST] = { { emit, emission } };
	int phases = design->phases.count;
	phases_open(session, design, simulation, forecast);
	for (int p = 0; p < phases; p++) {
		task[1 + p] = (struct task){ simulation_run, &simulation[p] };
		task[1 + phases + p] = (struct task){ forecast_run, forecast[p] };
	}
	tasks_run(&session->guard, 1 + 2 * phases, task);
	phases_make(session, design, forecast, report);
	if (emission->done)
		phases_simulated(session, design, simulation, report);
	return emission->done;
}

/* Writes the design folder; the target is replaced only when everything is written. */
static bool build_design(struct session *session, const struct design_phases *design)
{
	int64_t packed_bytes = 0;
	struct report *report = ARENA_ARRAY(session->arena, struct report, design->phases.count);
	struct emission emission = { .session = session, .design = design };
	if (!session_stage(session, "report") || !phases_fit(session, design) ||
	        !emit_simulate_report(session, &emission, report) ||
	        !phases_report(session, design, report) || !session_stage(session, "pack weights"))
		return false;
	for (int p = 0; p < design->phases.count; p++)
		if (!pack_weights(session->output, design->phase[p].module, session->weights,
		            &packed_bytes))
			return false;
	return session_stage(session, "finish") &&
	        write_manifest(session->output, &emission.manifest) &&
	        write_timing(session, packed_bytes) && output_commit(session->output);
}

/* -O3: takes the best of many points; if none fits, the compiler's own choices are diagnosed. */
static bool take_best(struct session *session)
{
	struct exploration exploration;
	if (!exploration_begin(session, &exploration) ||
	        !explore(session, &exploration, LONG_TRIALS, NULL))
		return false;
	int best = exploration_best(&exploration);
	if (best < 0)
		return true;
	session->choices = exploration.trials.data[best].built;
	session->options.choices.value[CHOICE_CLOCK] = session->choices.value[CHOICE_CLOCK];
	session->target_ms = 0;
	return limits_clock(session);
}

/* The passes before the first that depends on choices run once. */
static bool run_range(struct session *session, struct pass_range range)
{
	int choosing = pass_choosing();
	if (range.first > choosing || range.last < choosing)
		return run_passes(session, range.first, range.last);
	if (range.first < choosing && !run_passes(session, range.first, choosing - 1))
		return false;
	bool long_search = session->options.effort == 3 && !session->options.point &&
	        range.last == pass_count - 1;
	return (!long_search || take_best(session)) && point_build(session, choosing, range.last);
}

/* Warns that only the narrowest kernels fit: such a design works, but is very slow. */
static void warn_narrowest(struct session *session, const struct design_phases *design)
{
	bool any = false;
	for (int p = 0; p < design->phases.count; p++) {
		if (!design->narrowest[p])
			continue;
		const char *phase = "";
		if (design->phases.count > 1)
			phase = text_format(session->arena, " of phase %s", design->phase[p].name);
		text_add(&session->notices,
		        "stc: warning: only kernels with a single lane%s fit (at most one element "
		        "per cycle, slow): %s\n",
		        phase, design->narrowest[p]);
		any = true;
	}
	if (any)
		text_add(&session->notices,
		        "stc: note: fewer tokens per launch, fewer bits (--quant) or a larger "
		        "platform leave more room\n");
}

static bool compile_one(struct session *session, bool whole)
{
	struct pass_range range;
	if (!load_module(session, session->options.file) || !choose_passes(session, &range))
		return false;
	/* if no pass sizes FIFOs, depths are the user's: the report shows where a launch stops */
	if (!check_words(session, range.first <= pass_find("size_fifos")) ||
	        !run_range(session, range) || !write_program(session))
		return false;
	if (!whole)
		return write_text(session);
	struct design_phases design = { .name = design_name(session->arena, session->options.file),
		.phase = { { NULL, session->module } },
		.narrowest = { session->narrowest } };
	design.phases = (struct phases){ 1, design.phase };
	warn_narrowest(session, &design);
	return build_design(session, &design);
}

static bool compile_two(struct session *session)
{
	struct design_phases design = { 0 };
	if (!phases_compile(session, &design) || !write_program(session))
		return false;
	warn_narrowest(session, &design);
	return build_design(session, &design);
}

/* A folder cannot be printed to standard output, nor two texts that must be told apart. */
static bool outputs_agree(struct diag *diag, const struct options *options, bool whole)
{
	bool printed = !options->output || is_printed(options->output);
	if (whole && printed) {
		diag_error(diag, NOWHERE,
		        options->output ? "-o is '-', but a design is a folder"
		                        : "compile lacks -o DIR");
		return diag_note(
		        diag, "-o DIR, or --to LEVEL or --stop-after PASS to print the module");
	}
	if (!printed || !is_printed(options->lp))
		return true;
	diag_error(diag, NOWHERE,
	        "--dump-fifo-lp is '-', but the module is printed to standard output");
	return diag_note(diag, "--dump-fifo-lp FILE, or -o FILE for the module");
}

bool command_compile(struct session *session)
{
	const struct options *options = &session->options;
	bool whole = !options->to && !options->stop_after && !options->dry_run;
	if (!options_agree(&session->diag, options, command_find("compile")) ||
	        !outputs_agree(&session->diag, options, whole))
		return false;
	if (whole && !output_check(session->arena, &session->diag, options->output))
		return false;
	if (!quant_parse(session->arena, &session->diag, options->quant, &session->quant) ||
	        !load_platform(session) ||
	        (options->point && !exploration_take(session, options->point)))
		return false;
	if (!point_choose(session) || !limits_read(session) || !open_weights(session))
		return false;
	if (options->dry_run)
		return true;
	return options->with ? compile_two(session) : compile_one(session, whole);
}
