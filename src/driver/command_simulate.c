/* stc simulate: the cycles of one launch of a design folder, or of a hardware-level dump. */
#define _POSIX_C_SOURCE 200809L
#include "base/blake2.h"
#include "base/data.h"
#include "base/json.h"
#include "driver/session.h"
#include "sim/flow.h"
#include <sys/stat.h>

#define EVENTS_MOST ((int64_t)1 << 30)
#define LISTED 12             /* processes and FIFOs in the text */
#define SCHEMA 1

static bool is_folder(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* --- what to simulate */

static const struct json *read_json(struct session *session, const char *folder, const char *name)
{
	const char *path = text_format(session->arena, "%s/%s", folder, name), *reason;
	size_t size;
	const char *text = file_read(session->arena, path, &size, &reason);
	const struct json *json = text ? json_parse(session->arena, text, size, NULL) : NULL;
	if (!json) {
		diag_error(&session->diag, (struct location){.file = path}, "%s%s", text ? "is no JSON" : "cannot be read: ", text ? "" : reason);
		diag_note(&session->diag, "a design folder that `stc compile` wrote, or a hardware-level dump");
	}
	return json;
}

/* The module must be the one that the manifest lists. */
static bool check_module(struct session *session, const char *folder)
{
	const struct json *manifest = read_json(session, folder, "manifest.json");
	const char *path = text_format(session->arena, "%s/design.mlir", folder), *listed = json_text(json_get(manifest, "files"), "design.mlir"), *reason;
	int64_t version = 0;
	if (!manifest)
		return false;
	if (!json_integer(json_get(manifest, "design"), &version) || version != DESIGN_VERSION) {
		diag_error(&session->diag, (struct location){.file = folder}, "is a design of version %lld", (long long)version);
		return diag_note(&session->diag, "version %d: compile it again", DESIGN_VERSION);
	}
	if (!listed) {
		diag_error(&session->diag, (struct location){.file = folder}, "lists no design.mlir in its manifest.json");
		return diag_note(&session->diag, "compile it again");
	}
	size_t size;
	const char *text = file_read(session->arena, path, &size, &reason);
	if (!text)
		return diag_error(&session->diag, (struct location){.file = path}, "cannot be read: %s", reason);
	char hash[65];
	blake2_hex(text, size, hash);
	if (text_same(hash, listed))
		return true;
	diag_error(&session->diag, (struct location){.file = path}, "is not the file that manifest.json lists");
	return diag_note(&session->diag, "compile the design again, or simulate a changed dump from outside the folder");
}

static bool open_folder(struct session *session)
{
	const char *folder = session->options.file;
	if (!check_module(session, folder))
		return false;
	const struct json *report = session->options.platform ? NULL : read_json(session, folder, "report.json");
	if (!session->options.platform && !report)
		return false;
	if (report)
		session->options.platform = json_text(report, "platform");
	session->options.file = text_format(session->arena, "%s/design.mlir", folder);
	return true;
}

static bool open_module(struct session *session)
{
	if (is_folder(session->options.file) && !open_folder(session))
		return false;
	if (!load_platform(session) || !load_module(session))
		return false;
	if (session->module->level == LEVEL_HARDWARE)
		return true;
	diag_error(&session->diag, NOWHERE, "%s is of level %s, which has no cycles", session->options.file, level_name(session->module->level));
	return diag_note(&session->diag, "a design folder, or a dump of level hardware (`stc compile --to hardware`)");
}

/* --- results */

static double milliseconds(const struct session *session, int64_t cycles)
{
	return (double)cycles / (session->platform->clock_mhz * 1e3) + session->platform->launch_us / 1e3;
}

static int64_t busy(const struct flow_process_result *process)
{
	return process->active - process->input - process->output - process->memory;
}

static void print_json(struct session *session, const char *name, const struct flow_result *result)
{
	struct text *out = &session->out;
	text_add(out, "{\n  \"schema\": %d,\n  \"name\": ", SCHEMA);
	json_quote(out, name);
	text_add(out, ",\n  \"platform\": \"%s\",\n  \"clock_mhz\": %.6g,\n", session->platform->name, session->platform->clock_mhz);
	text_add(out, "  \"cycles\": %lld,\n", (long long)result->cycles);
	if (result->first_output >= 0)
		text_add(out, "  \"first_output\": %lld,\n", (long long)result->first_output);
	if (!result->deadlock)
		text_add(out, "  \"latency_ms\": %.6g,\n", milliseconds(session, result->cycles));
	text_add(out, "  \"events\": %lld,\n  \"deadlock\": ", (long long)result->events);
	if (result->deadlock)
		json_quote(out, result->deadlock);
	else
		text_add(out, "false");
	text_add(out, ",\n  \"processes\": [");
	for (int i = 0; i < result->processes; i++) {
		const struct flow_process_result *process = &result->process[i];
		text_add(out, "%s\n    {\"name\": ", i ? "," : "");
		json_quote(out, process->name);
		text_add(out, ", \"end\": %lld, \"busy\": %lld, \"input\": %lld, \"output\": %lld, \"memory\": %lld, \"ended\": %s}", (long long)process->end,
			 (long long)busy(process), (long long)process->input, (long long)process->output, (long long)process->memory, process->ended ? "true" : "false");
	}
	text_add(out, "\n  ],\n  \"channels\": [");
	for (int i = 0; i < result->channels; i++) {
		const struct flow_channel_result *channel = &result->channel[i];
		text_add(out, "%s\n    {\"name\": ", i ? "," : "");
		json_quote(out, channel->name);
		text_add(out, ", \"kind\": \"%s\", \"depth\": %lld, \"most\": %lld, \"words\": %lld}", channel->blocks ? "blocks" : "fifo", (long long)channel->depth,
			 (long long)channel->most, (long long)channel->words);
	}
	text_add(out, "\n  ]\n}\n");
}

/* The number of a process by falling busy cycles, after `last`; -1: none is left. */
static int next_busiest(const struct flow_result *result, int last)
{
	int found = -1;
	for (int i = 0; i < result->processes; i++) {
		int64_t cycles = busy(&result->process[i]), before = last < 0 ? INT64_MAX : busy(&result->process[last]);
		bool later = cycles < before || (cycles == before && i > last);
		if (later && (found < 0 || cycles > busy(&result->process[found])))
			found = i;
	}
	return found;
}

static void print_text(struct session *session, const char *name, const struct flow_result *result)
{
	struct text *out = &session->out;
	int full = 0;
	text_add(out, "%s on %s\n\n", name, session->platform->name);
	if (result->deadlock)
		text_add(out, "one launch      does not end: %s\n", result->deadlock);
	else
		text_add(out, "one launch      %lld cycles at %g MHz, %.4g ms with %g us to launch    (simulated)\n", (long long)result->cycles, session->platform->clock_mhz,
			 milliseconds(session, result->cycles), session->platform->launch_us);
	if (result->first_output >= 0)
		text_add(out, "first output    in cycle %lld\n", (long long)result->first_output);
	text_add(out, "simulated       %d processes, %d channels, %lld iterations\n", result->processes, result->channels, (long long)result->events);
	text_add(out, "\nbusiest processes, in cycles\n  %-32s %12s %12s %12s %12s %12s\n", "", "busy", "no input", "no room", "memory", "end");
	for (int i = next_busiest(result, -1), listed = 0; i >= 0 && listed < LISTED; i = next_busiest(result, i), listed++) {
		const struct flow_process_result *process = &result->process[i];
		text_add(out, "  %-32s %12lld %12lld %12lld %12lld %12lld\n", process->name, (long long)busy(process), (long long)process->input, (long long)process->output,
			 (long long)process->memory, (long long)process->end);
	}
	text_add(out, "\nchannels that were full\n  %-32s %12s %12s\n", "", "depth", "words");
	for (int i = 0; i < result->channels; i++) {
		const struct flow_channel_result *channel = &result->channel[i];
		if (channel->most < channel->depth || full++ >= LISTED)
			continue;
		text_add(out, "  %-32s %12lld %12lld%s\n", channel->name, (long long)channel->depth, (long long)channel->words, channel->blocks ? "  blocks" : "");
	}
	if (full > LISTED)
		text_add(out, "  and %d more; --json lists all\n", full - LISTED);
}

bool command_simulate(struct session *session)
{
	const char *name = session->options.file;
	int64_t budget = session->options.events ? session->options.events : EVENTS_MOST;
	struct flow_result result;
	if (!open_module(session) || !session_stage(session, "simulate"))
		return false;
	enum flow_outcome outcome = flow_simulate(session->arena, session->platform, session->module, budget, &result);
	if (outcome == FLOW_REFUSED)
		return false;
	if (outcome == FLOW_OVER_BUDGET) {
		diag_error(&session->diag, NOWHERE, "%s takes %lld iterations, more than the %lld that are simulated", name, (long long)result.events, (long long)budget);
		return diag_note(&session->diag, "--events COUNT raises the limit");
	}
	(session->options.json ? print_json : print_text)(session, name, &result);
	return !result.deadlock || diag_error(&session->diag, NOWHERE, "deadlock: %s", result.deadlock);
}
