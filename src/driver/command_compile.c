/* stc compile: MLIR in; the module's text, or a design folder, out. */
#include "driver/explore.h"
#include "driver/limits.h"
#include "driver/point.h"
#include "driver/quant_option.h"
#include "driver/report.h"
#include "driver/write_design.h"

#define LONG_TRIALS 60

struct range {
	int first, last;
};

static bool unknown_pass(struct session *session, const char *option, const char *name)
{
	diag_error(&session->diag, NOWHERE, "--%s names '%s', which is no pass", option, name);
	struct nearest nearest = {.wanted = name};
	for (int i = 0; i < pass_count; i++)
		nearest_consider(&nearest, passes[i].name);
	return diag_note(&session->diag, "the nearest is %s; `stc passes` lists all", nearest.found);
}

static bool choose_passes(struct session *session, struct range *range)
{
	const struct options *options = &session->options;
	enum level level = session->module->level, to = LEVEL_HARDWARE;
	*range = (struct range){options->from ? pass_find(options->from) : pass_first(level), pass_count - 1};
	if (options->from && range->first < 0)
		return unknown_pass(session, "from", options->from);
	if (options->from && passes[range->first].needed != level) {
		diag_error(&session->diag, NOWHERE, "--from %s needs a module of level %s, not %s", options->from, level_name(passes[range->first].needed), level_name(level));
		return diag_note(&session->diag, "a pass that `stc passes` lists with that level");
	}
	if (options->stop_after && (range->last = pass_find(options->stop_after)) < 0)
		return unknown_pass(session, "stop-after", options->stop_after);
	if (options->to && !level_find(options->to, &to)) {
		diag_error(&session->diag, NOWHERE, "--to names '%s', which is no level", options->to);
		return diag_note(&session->diag, "tensor, stream or hardware");
	}
	if (options->to && !options->stop_after)
		range->last = pass_last(to);
	return true;
}

static bool write_program(struct session *session)
{
	const char *path = session->options.lp;
	if (!path || session->lp.size)
		return !path || file_write_whole(session->arena, &session->diag, path, session->lp.data, session->lp.size);
	diag_error(&session->diag, NOWHERE, "--lp: no linear program was made");
	return diag_note(&session->diag, "one is made for a whole design, and not with --fifo safe");
}

static bool write_text(struct session *session)
{
	struct text text = text_new(session->arena);
	ir_print(session->module, &text);
	if (session->options.output)
		return file_write_whole(session->arena, &session->diag, session->options.output, text.data, text.size);
	text_add_bytes(&session->out, text.data, text.size);
	return true;
}

static bool open_weights(struct session *session)
{
	const char *path = session->options.weights;
	session->weights = path ? weights_open(session->arena, &session->diag, path) : NULL;
	return !path || session->weights;
}

static bool write_reports(struct session *session, const struct report *report)
{
	struct text json = text_new(session->arena), text = text_new(session->arena), page = text_new(session->arena);
	report_json(report, &json);
	report_text(report, &text);
	return report_page(report, &session->diag, &page) && output_file(session->output, "report.json", json.data, json.size) &&
	       output_file(session->output, "report.txt", text.data, text.size) && output_file(session->output, "report.html", page.data, page.size);
}

static bool write_timing(struct session *session, int64_t packed_bytes)
{
	struct text text = text_new(session->arena);
	report_timing(session, (double)packed_bytes, &text);
	return output_unlisted(session->output, "timing.json", text.data, text.size);
}

/* Nothing is in place before everything is written. */
static bool build_design(struct session *session)
{
	const char *name = design_name(session->arena, session->options.file);
	int64_t packed_bytes = 0;
	if (!session_stage(session, "report"))
		return false;
	struct report report = report_make(session, name);
	if (!report_fits(session, &report))
		return false;
	session->output = output_begin(session->arena, &session->diag, session->options.output, &session->stop);
	if (!session->output || !session_stage(session, "emit") || !write_code(session->output, session->module, session->platform, name))
		return false;
	if (!session_stage(session, "simulate"))
		return false;
	report_simulate(session, &report);
	if (!write_reports(session, &report))
		return false;
	if (!session_stage(session, "pack weights") || !pack_weights(session->output, session->module, session->weights, &packed_bytes))
		return false;
	bool packed = session->weights != NULL;
	return session_stage(session, "finish") && write_manifest(session->output, session->module, name, packed) && write_timing(session, packed_bytes) &&
	       output_commit(session->output);
}

/* -O3: the best of many points; where none fits, the compiler's own choices say why. */
static bool take_best(struct session *session)
{
	struct exploration exploration;
	if (!exploration_begin(session, &exploration) || !explore(session, &exploration, LONG_TRIALS, NULL))
		return false;
	int best = exploration_best(&exploration);
	if (best < 0)
		return true;
	session->choices = exploration.trials.data[best].built;
	session->options.choices.value[CHOICE_CLOCK] = session->choices.value[CHOICE_CLOCK];
	session->target_ms = 0;
	return limits_clock(session);
}

/* Choices matter from make_streams on: what comes before is run once. */
static bool run_range(struct session *session, struct range range)
{
	int choosing = pass_find("make_streams");
	if (range.first > choosing || range.last < choosing)
		return run_passes(session, range.first, range.last);
	if (range.first < choosing && !run_passes(session, range.first, choosing - 1))
		return false;
	bool long_search = session->options.effort == 3 && !session->options.point && range.last == pass_count - 1;
	return (!long_search || take_best(session)) && point_build(session, choosing, range.last);
}

bool command_compile(struct session *session)
{
	const struct options *options = &session->options;
	struct range range;
	bool whole = !options->to && !options->stop_after;
	if (whole && !options->output) {
		diag_error(&session->diag, NOWHERE, "compile lacks -o DIR");
		return diag_note(&session->diag, "-o DIR, or --to LEVEL or --stop-after PASS to print the module");
	}
	if (!quant_parse(session->arena, &session->diag, options->quant, &session->quant) || !load_platform(session) || (options->point && !exploration_take(session, options->point)))
		return false;
	if (!point_choose(session) || !limits_read(session) || !open_weights(session) || !load_module(session) || !choose_passes(session, &range))
		return false;
	if (!run_range(session, range) || !write_program(session))
		return false;
	return whole ? build_design(session) : write_text(session);
}
