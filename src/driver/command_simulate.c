/* `stc simulate`: cycle-exact simulation of launches of a design folder or hardware-level dump. */
#define _POSIX_C_SOURCE 200809L
#include "driver/command_line.h"
#include "base/number.h"
#include "base/blake2.h"
#include "base/data.h"
#include "base/json.h"
#include "base/closest_name.h"
#include "explore/limits.h"
#include "report/report.h"
#include "report/simulate.h"
#include "driver/write_design.h"
#include "ir/sliding_window.h"
#include "ir/launch_tokens.h"
#include "predict/timing.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define EVENTS_MOST ((int64_t)1 << 30)
#define SAMPLES_MOST 100000

static bool is_folder(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* --- what to simulate */

static const struct json *read_json(struct session *session, const char *folder, const char *name)
{
	const char *path = text_format(session->arena, "%s/%s", folder, name);
	const char *reason;
	size_t size;
	const char *text = file_read_regular(session->arena, path, &size, &reason);
	const struct json *json = text ? json_parse(session->arena, text, size, NULL) : NULL;
	if (!json) {
		struct location location = { .file = path };
		if (text)
			diag_error(&session->diag, location, "is no JSON");
		else
			diag_error(&session->diag, location, "cannot be read: %s", reason);
		diag_note(&session->diag,
		        "a design folder that `stc compile` wrote, or a hardware-level dump");
	}
	return json;
}

/* The file must be the one that the manifest lists. */
static bool check_listed(
        struct session *session, const char *folder, const struct json *manifest, const char *name)
{
	const char *path = text_format(session->arena, "%s/%s", folder, name);
	const char *listed = json_text(json_get(manifest, "files"), name);
	const char *reason;
	if (!listed) {
		diag_error(&session->diag, (struct location){ .file = folder },
		        "has no %s listed in its manifest.json", name);
		return diag_note(&session->diag, "compile it again");
	}
	size_t size;
	const char *text = file_read_regular(session->arena, path, &size, &reason);
	if (!text)
		return diag_error(&session->diag, (struct location){ .file = path },
		        "cannot be read: %s", reason);
	char hash[65];
	blake2_hex(text, size, hash);
	if (text_same(hash, listed))
		return true;
	diag_error(&session->diag, (struct location){ .file = path },
	        "is not the file that manifest.json lists");
	return diag_note(&session->diag,
	        "compile the design again, or simulate a changed dump from outside the folder");
}

/* The module file of the phase that the options name; the first phase's is in the folder itself. */
static bool find_phase(struct session *session, const char *folder, const struct json *manifest,
        const char **module)
{
	const struct json *list = json_get(manifest, "phases");
	const char *wanted = session->options.phase;
	struct text known = text_new(session->arena);
	*module = "design.mlir";
	for (const struct json *phase = list ? list->first : NULL; phase; phase = phase->next) {
		const char *name = json_text(phase, "name");
		if (wanted && text_same(name, wanted)) {
			*module = phase_file(
			        session->arena, phase == list->first ? NULL : name, "design.mlir");
			return true;
		}
		text_add(&known, "%s", known.size ? ", " : "");
		text_add(&known, "%s", name ? name : "");
	}
	if (!wanted)
		return true;
	diag_error(
	        &session->diag, (struct location){ .file = folder }, "has no phase '%s'", wanted);
	return diag_note(
	        &session->diag, "%s", known.size ? known.data : "it has one, without a name");
}

static bool check_folder(struct session *session, const char *folder, const char **module)
{
	const struct json *manifest = read_json(session, folder, "manifest.json");
	int64_t version = 0;
	if (!manifest)
		return false;
	if (!json_integer(json_get(manifest, "design"), &version)) {
		diag_error(&session->diag, (struct location){ .file = folder },
		        "its manifest.json is not that of a design");
		return diag_note(&session->diag,
		        "a design folder that `stc compile` wrote, or a hardware-level dump");
	}
	if (version != DESIGN_VERSION) {
		diag_error(&session->diag, (struct location){ .file = folder },
		        "is a design of version %lld", (long long)version);
		return diag_note(&session->diag, "version %d: compile it again", DESIGN_VERSION);
	}
	if (!find_phase(session, folder, manifest, module))
		return false;
	return check_listed(session, folder, manifest, *module) &&
	        (session->options.platform ||
	                check_listed(session, folder, manifest, "report.json"));
}

static bool open_folder(struct session *session)
{
	const char *folder = session->options.file;
	const char *module = NULL;
	if (!check_folder(session, folder, &module))
		return false;
	const struct json *report =
	        session->options.platform ? NULL : read_json(session, folder, "report.json");
	if (!session->options.platform && !report)
		return false;
	if (report && !(session->options.platform = json_text(report, "platform"))) {
		diag_error(&session->diag, (struct location){ .file = folder },
		        "names no platform in its report.json");
		return diag_note(&session->diag, "--platform NAME says which");
	}
	if (report && !session->options.choices.value[CHOICE_CLOCK])
		json_integer(json_get(report, "clock_mhz"),
		        &session->options.choices.value[CHOICE_CLOCK]);
	session->options.file = text_format(session->arena, "%s/%s", folder, module);
	return true;
}

static bool open_module(struct session *session)
{
	bool folder = is_folder(session->options.file);
	if (!folder && session->options.phase) {
		diag_error(&session->diag, NOWHERE, "--phase is given, but %s is one module",
		        session->options.file);
		return diag_note(
		        &session->diag, "a design folder of several phases, or no --phase");
	}
	if (folder && !open_folder(session))
		return false;
	if (!load_platform(session) || !limits_clock(session) ||
	        !load_module(session, session->options.file))
		return false;
	if (session->module->level == LEVEL_HARDWARE)
		return true;
	diag_error(&session->diag, NOWHERE, "%s is of level %s, which has no cycles",
	        session->options.file, level_name(session->module->level));
	return diag_note(&session->diag,
	        "a design folder, or a dump of level hardware (`stc compile --to hardware`)");
}

/* --- running */

static void report_progress(void *user, int64_t events, int64_t of)
{
	struct session *session = user;
	if (session->on_progress)
		session->on_progress(session->on_stage_user, "simulated",
		        of ? (int)(100 * (double)events / (double)of) : 100);
}

static bool check_options(struct session *session)
{
	const struct options *options = &session->options;
	if (options->trace && !trace_has_format(options->trace)) {
		diag_error(&session->diag, NOWHERE,
		        "--trace %s: the name does not say what to write", options->trace);
		return diag_note(&session->diag,
		        "FILE.json for Perfetto and Chrome, FILE.vcd for waveform viewers");
	}
	if (options->samples > SAMPLES_MOST) {
		diag_error(&session->diag, NOWHERE, "--samples %lld", (long long)options->samples);
		return diag_note(&session->diag, "at most %d", SAMPLES_MOST);
	}
	if (options->samples && !options->json && !options->trace) {
		diag_error(&session->diag, NOWHERE,
		        "--samples is given without --json or --trace, which show them");
		return diag_note(&session->diag, "with one of these, or not at all");
	}
	if (!options->overlap || options->launches > 1 || options->tokens)
		return true;
	diag_error(&session->diag, NOWHERE, "--overlap-launches needs several launches");
	return diag_note(&session->diag, "--launches COUNT says how many");
}

/* NAME=COUNT of --channel-depth. */
static bool set_depth(struct session *session, const struct cycle_network *network,
        const char *text, int64_t *depth)
{
	const char *equals = strrchr(text, '=');
	char *end = NULL;
	int64_t count = equals ? whole_number(equals + 1, &end) : 0;
	struct closest_name closest_name = {
		.wanted = equals ? text_copy(session->arena, text, (size_t)(equals - text)) : text
	};
	if (!equals || end == equals + 1 || *end || count < 0 || count > INT32_MAX) {
		diag_error(&session->diag, NOWHERE, "--channel-depth is '%s'", text);
		return diag_note(&session->diag, "--channel-depth CHANNEL=COUNT");
	}
	for (int i = 0; i < cycle_channels(network); i++) {
		if (text_same(cycle_channel_name(network, i), closest_name.wanted)) {
			depth[i] = count;
			return true;
		}
		closest_name_consider(&closest_name, cycle_channel_name(network, i));
	}
	diag_error(&session->diag, NOWHERE, "--channel-depth %s: there is no channel '%s'", text,
	        closest_name.wanted);
	return diag_note(&session->diag, "the nearest name is '%s'",
	        closest_name.found ? closest_name.found : "");
}

/* NULL after a diagnostic. */
static const int64_t *depths(struct session *session, const struct cycle_network *network)
{
	const struct option_list *list = &session->options.depth;
	int64_t *depth = ARENA_ARRAY(session->arena, int64_t, cycle_channels(network) + 1);
	for (int i = 0; i < cycle_channels(network); i++)
		depth[i] = cycle_channel_depth(network, i);
	for (size_t i = 0; i < list->count; i++)
		if (!set_depth(session, network, list->data[i], depth))
			return NULL;
	return depth;
}

static bool unknown_extent(struct session *session, const char *text)
{
	const struct attr *inputs = attr_get(module_main(session->module), KEY_STREAM_INPUTS);
	struct text known = text_new(session->arena);
	for (int i = 0; inputs && i < inputs->count; i++) {
		const char *name = attr_item_text(inputs->items[i].value, KEY_NAME);
		if (simulate_is_extent(session->module, name))
			text_add(&known, "%s%s", known.size ? ", " : "", name);
	}
	diag_error(&session->diag, NOWHERE,
	        "--extent %s: the design has no run-time extent of this name", text);
	return diag_note(&session->diag, "%s",
	        known.size ? known.data : "it has none: all launches do the same work");
}

static bool set_extent(struct session *session, const char *text, struct extent_value *extent)
{
	const char *equals = strchr(text, '=');
	char *end = NULL;
	extent->symbol = equals ? text_copy(session->arena, text, (size_t)(equals - text)) : NULL;
	extent->value = equals ? whole_number(equals + 1, &end) : -1;
	if (!equals || end == equals + 1 || *end || extent->value < 0) {
		diag_error(
		        &session->diag, NOWHERE, "--extent %s names no input and its value", text);
		return diag_note(&session->diag,
		        "accepted is --extent NAME=COUNT with a count of 0 or more");
	}
	if (!extent->value && tokens_counted_by(module_main(session->module), extent->symbol)) {
		diag_error(&session->diag, NOWHERE,
		        "--extent %s: a launch processes at least one token", text);
		return diag_note(&session->diag, "accepted is 1 or more");
	}
	if (!simulate_is_extent(session->module, extent->symbol))
		return unknown_extent(session, text);
	int64_t most = tokens_rows_most(session->module, extent->symbol, session->options.tokens,
	        simulate_extent_most(session->module, extent->symbol));
	if (extent->value <= most)
		return true;
	diag_error(&session->diag, NOWHERE, "--extent %s: the design is built for at most %lld",
	        text, (long long)most);
	return diag_note(&session->diag, "accepted are counts up to that");
}

/* Those of --extent; without it, those of the launch that the design's report is about.
 * false: a diagnostic. */
static bool read_extents(struct session *session, struct extent_list *extents)
{
	const struct option_list *list = &session->options.extent;
	struct extent_value *extent =
	        ARENA_ARRAY(session->arena, struct extent_value, (int)list->count + 1);
	for (size_t i = 0; i < list->count; i++) {
		if (!set_extent(session, list->data[i], &extent[i]))
			return false;
		for (size_t j = 0; j < i; j++)
			if (text_same(extent[j].symbol, extent[i].symbol)) {
				diag_error(&session->diag, NOWHERE, "--extent names '%s' twice",
				        extent[i].symbol);
				return diag_note(&session->diag, "one --extent for each input");
			}
	}
	*extents = (struct extent_list){ (int)list->count, extent };
	if (!list->count && !session->options.tokens)
		*extents = headline_extents(session->arena, session->module);
	return !session->options.tokens || tokens_check(session, (int)list->count, extent);
}

/* With --tokens: the network at the extents of the last step. */
static struct cycle_network *open_network(struct session *session, struct extent_list from)
{
	struct extent_value *extent =
	        ARENA_ARRAY(session->arena, struct extent_value, from.count + 1);
	tokens_extents(session->module, session->options.tokens ? session->options.tokens - 1 : 0,
	        from.count, from.value, extent);
	return cycle_open_at(
	        session->arena, session->platform, session->module, from.count, extent);
}

static struct cycle_options cycle_options(struct session *session)
{
	const struct options *options = &session->options;
	int64_t samples = options->samples;
	if (options->trace && samples < TRACE_POINTS)
		samples = TRACE_POINTS;
	return (struct cycle_options){ .arena = session->arena,
		.budget = options->events ? options->events : EVENTS_MOST,
		.launches = options->launches ? options->launches : 1,
		.overlap = options->overlap,
		.samples = (int)samples,
		.path = true,
		.remedy = true,
		.progress = report_progress,
		.user = session,
		.stop = &session->stop };
}

static bool print(struct session *session, const struct simulated *simulated)
{
	const struct cycle_result *cycle_result = simulated->cycle_result;
	(session->options.json ? simulated_json : simulated_text)(session, simulated);
	if (session->options.trace && !simulated_trace(session, simulated, session->options.trace))
		return false;
	if (cycle_result->deadlock)
		return diag_error(&session->diag, NOWHERE, "deadlock: %s", cycle_result->deadlock);
	return !simulated->stopped ||
	        diag_error(&session->diag, NOWHERE, "interrupted after %lld of %lld iterations",
	                (long long)cycle_result->events, (long long)simulated->total);
}

bool command_simulate(struct session *session)
{
	const char *name = session->options.file;
	if (!check_options(session) || !open_module(session) || !session_stage(session, "simulate"))
		return false;
	struct cycle_options options = cycle_options(session);
	struct extent_list extents = { 0 };
	struct cycle_network *network =
	        read_extents(session, &extents) ? open_network(session, extents) : NULL;
	struct cycle_result result;
	if (!network || !(options.depth = depths(session, network)))
		return false;
	enum cycle_outcome outcome = cycle_run(network, &options, &result);
	struct simulated simulated = { .name = name,
		.cycle_result = &result,
		.wanted = options.launches,
		.total = cycle_events(network) * options.launches,
		.stopped = outcome == CYCLE_STOPPED };
	simulated.steps = outcome == CYCLE_DONE ? session->options.tokens : 0;
	if (simulated.steps &&
	        !tokens_simulate(session, &options, extents.count, extents.value, &simulated))
		return false;
	if (outcome != CYCLE_OVER_BUDGET)
		return print(session, &simulated);
	diag_error(&session->diag, NOWHERE,
	        "%s: %lld launch%s of %lld iterations are more than the limit of %lld", name,
	        (long long)options.launches, options.launches == 1 ? "" : "es",
	        (long long)cycle_events(network), (long long)options.budget);
	return diag_note(&session->diag, "--max-iterations COUNT raises the limit");
}
