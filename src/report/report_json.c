#define _POSIX_C_SOURCE 200809L
/* Writes report.json, schema 1, in which a key is present only if its figure is known; and
 * timing.json, the only output that differs between runs. */
#include "base/data.h"
#include "base/json.h"
#include "report/report_loops.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SCHEMA 1

void report_resources(struct text *out, const char *key, struct resources r)
{
	text_add(out,
	        "  \"%s\": {\"lut\": %lld, \"ff\": %lld, \"dsp\": %lld, \"bram18\": %lld, "
	        "\"uram\": %lld},\n",
	        key, (long long)r.lut, (long long)r.ff, (long long)r.dsp, (long long)r.bram18,
	        (long long)r.uram);
}

static void add_boundaries(struct text *out, const struct report *report)
{
	text_add(out, "  \"boundaries\": [");
	for (int i = 0; i + 1 < report->platform->dies; i++)
		text_add(out, "%s{\"fifos\": %d, \"wires\": %lld, \"available\": %lld}",
		        i ? ", " : "", report->cost.crossings[i], (long long)report->cost.wires[i],
		        (long long)report->platform->crossing_wires);
	text_add(out, "],\n");
}

static void add_dies(struct text *out, const struct report *report)
{
	text_add(out, "  \"dies\": [");
	for (int i = 0; i < report->platform->dies; i++) {
		const struct resources *used = &report->cost.die[i];
		const struct resources *has = &report->platform->die[i];
		text_add(out,
		        "%s\n    {\"lut\": %lld, \"ff\": %lld, \"dsp\": %lld, \"bram18\": %lld, "
		        "\"uram\": %lld, \"available\": {\"lut\": %lld, \"ff\": %lld, \"dsp\": "
		        "%lld, \"bram18\": %lld, \"uram\": %lld}}",
		        i ? "," : "", (long long)used->lut, (long long)used->ff,
		        (long long)used->dsp, (long long)used->bram18, (long long)used->uram,
		        (long long)has->lut, (long long)has->ff, (long long)has->dsp,
		        (long long)has->bram18, (long long)has->uram);
	}
	text_add(out, "\n  ],\n");
}

/* A process of rolled layers is that of each: layers.0.mlp becomes layers.*.mlp. */
static const char *layer_of(struct arena *arena, const struct process_cost *process)
{
	const char *layer = process->call->location.layer;
	bool rolled = attr_get(process->function, KEY_STREAM_LAYERS) != NULL;
	for (const char *at = rolled ? layer : NULL; at && *at; at++) {
		size_t digits = strspn(at, "0123456789");
		bool alone = (at == layer || at[-1] == '.') && (!at[digits] || at[digits] == '.');
		if (digits && alone)
			return text_format(arena, "%.*s*%s", (int)(at - layer), layer, at + digits);
	}
	return layer;
}

static void add_kernel_origin(struct text *out, const struct process_cost *process)
{
	const char *layer = layer_of(out->arena, process);
	if (layer)
		text_add(out, ", \"layer\": ");
	if (layer)
		json_quote(out, layer);
	if (process->call->location.line)
		text_add(out, ", \"line\": %d", process->call->location.line);
}

static void add_kernels(struct text *out, const struct report *report)
{
	text_add(out, "  \"kernels\": [");
	for (int i = 0; i < report->cost.processes; i++) {
		const struct process_cost *process = &report->cost.process[i];
		text_add(out, "%s\n    {\"name\": ", i ? "," : "");
		json_quote(out, process->name);
		text_add(out,
		        ", \"cycles\": %lld, \"ii\": %lld, \"unroll\": %lld, \"dsp\": %lld, "
		        "\"lut\": %lld, \"bram18\": %lld, \"uram\": %lld, \"die\": %d",
		        (long long)report->time.process[i].busy, (long long)process->interval,
		        (long long)process->lanes, (long long)process->resources.dsp,
		        (long long)process->resources.lut, (long long)process->resources.bram18,
		        (long long)process->resources.uram, process->die);
		if (report_ends(report)) {
			const struct cycle_process_result *waits = &report->cycle_result.process[i];
			text_add(out,
			        ", \"input_wait\": %lld, \"output_wait\": %lld, "
			        "\"memory_wait\": %lld",
			        (long long)waits->input, (long long)waits->output,
			        (long long)waits->memory);
		}
		add_kernel_origin(out, process);
		text_add(out, "}");
	}
	text_add(out, "\n  ]\n");
}

static void add_bound(struct text *out, const char *key, double value, int *listed)
{
	if (value > 0)
		text_add(out, "%s\"%s\": %.6g", (*listed)++ ? ", " : "", key, value);
}

/* Lower bounds of the time, and their parts of the latency. */
static void add_bounds(const struct report *report, struct text *out)
{
	int listed = 0;
	text_add(out, "  \"bounds\": {");
	add_bound(out, "memory_ms", report->memory_ms, &listed);
	add_bound(out, "mac_ms", report->mac_ms, &listed);
	listed = 0;
	text_add(out, "},\n  \"efficiency\": {");
	add_bound(out, "memory", report->memory_ms / report->latency_ms, &listed);
	add_bound(out, "mac", report->mac_ms / report->latency_ms, &listed);
	text_add(out, "},\n");
	if (report->time.multipliers)
		text_add(out,
		        "  \"products\": {\"built\": %lld, \"used\": %.6g, \"source\": \"%s\"},\n",
		        (long long)report->time.multipliers, report_products(report),
		        report_ends(report) ? "simulated" : "modeled");
}

static void add_cycles(const struct report *report, struct text *out)
{
	bool ends = report_ends(report);
	text_add(out, "  \"cycles\": {\"model\": %lld, \"lower_bound\": %lld",
	        (long long)report->time.most, (long long)report->time.least);
	if (ends)
		text_add(out, ", \"simulated\": %lld", (long long)report->cycles);
	if (ends && report->first_output >= 0)
		text_add(out, ", \"first_output\": %lld", (long long)report->first_output);
	text_add(out, "},\n");
	if (report->simulated)
		text_add(out, "  \"deadlock\": %s,\n", report->deadlock ? "true" : "false");
	const char *termination = ends ? "simulated" : "not shown";
	if (report->termination_proof)
		termination = report->termination_proof;
	text_add(out, "  \"termination\": ");
	json_quote(out, termination);
	text_add(out, ",\n");
}

static void add_tokens(const struct report *report, struct text *out)
{
	double token_ms = report->latency_ms / (double)(report->tokens ? report->tokens : 1);
	if (report->tokens_per_launch) {
		token_ms = report->token_ms;
		text_add(out, "  \"token_ms\": %.6g,\n  \"token_mj\": %.4g,\n", report->token_ms,
		        report->token_energy.launch_mj);
	}
	if (report->decodes)
		text_add(out, "  \"tokens_per_s\": %.6g,\n",
		        (double)report->sequences * 1e3 / token_ms);
	if (report->decodes && report->sequences > 1)
		text_add(out, "  \"sequences\": %lld,\n  \"sequence_tokens_per_s\": %.6g,\n",
		        (long long)report->sequences, 1e3 / token_ms);
	if (report->tokens <= 1)
		text_add(out, "  \"launches_per_token\": %.6g,\n",
		        report->tokens_per_launch ? 1.0 / (double)report->tokens_per_launch : 1.0);
	if (report->decodes && report->tokens > 1)
		text_add(out, "  \"tokens_per_launch\": %lld,\n", (long long)report->tokens);
}

static void add_fifos(const struct report *report, struct text *out)
{
	text_add(out, "  \"fifos\": {\"count\": %d, \"bytes\": %lld, \"needed_bytes\": %lld, ",
	        report->fifos.count, (long long)report->fifos.bytes,
	        (long long)report->fifos.needed);
	if (report->least)
		text_add(out, "\"minimal_bytes\": %lld, ", (long long)report->fifos.needed);
	text_add(out, "\"max_depth\": %lld},\n", (long long)report->fifos.most_depth);
}

static void add_answer(const struct report *report, struct text *out)
{
	struct report_answer answer = report_answer(out->arena, report);
	text_add(out, "  \"bottleneck\": ");
	json_quote(out, answer.limit);
	text_add(out, ",\n  \"suggestions\": ");
	json_quote_list(out, answer.advice, (size_t)answer.count);
	text_add(out, ",\n");
}

void report_json(const struct report *report, struct text *out)
{
	const struct platform *platform = report->platform;
	text_add(out, "{\n  \"schema\": %d,\n  \"tool\": \"%s\",\n  \"design\": %d,\n  \"name\": ",
	        SCHEMA, STC_VERSION, DESIGN_VERSION);
	json_quote(out, report->name);
	text_add(out, ",\n  \"platform\": ");
	json_quote(out, platform->name);
	text_add(out, ",\n  \"clock_mhz\": %.6g,\n  \"quant\": ", platform->clock_mhz);
	json_quote(out, report->quant);
	text_add(out, ",\n");
	if (report->numbers)
		text_add(out, "  \"numbers\": \"%s\",\n", report->numbers);
	const char *past = report->extents.count ? ", \"past_tokens\": 0" : "";
	if (report->context)
		text_add(out, "  \"extents\": {\"context\": %lld%s},\n", (long long)report->context,
		        past);
	images_json(report, out);
	add_cycles(report, out);
	launches_json(report, out);
	text_add(out, "  \"latency_ms\": %.6g,\n", report->latency_ms);
	add_tokens(report, out);
	add_answer(report, out);
	text_add(out,
	        "  \"energy\": {\"watts\": %.4g, \"launch_mj\": %.4g, \"limit_watts\": %.6g, "
	        "\"limit_mj\": %.4g},\n",
	        report->energy.watts, report->energy.launch_mj, report->platform->watts,
	        report->energy.limit_mj);
	add_bounds(report, out);
	report_resources(out, "resources", report->cost.total);
	report_resources(out, "available", platform_total(platform));
	add_dies(out, report);
	add_boundaries(out, report);
	text_add(out, "  \"ports\": %d,\n", report->cost.ports);
	report_layer_json(report, out);
	add_fifos(report, out);
	loops_json(report, out);
	text_add(out, "%s", report->kernel ? report->kernel : "");
	add_kernels(out, report);
	text_add(out, "}\n");
}

/* Resident bytes that are not a mapped file.  Arenas only grow, so this is near the peak. */
static long long private_bytes(struct arena *arena)
{
	size_t size;
	const char *reason;
	const char *text = file_read(arena, "/proc/self/status", &size, &reason);
	const char *line = text ? strstr(text, "RssAnon:") : NULL;
	return line ? strtoll(line + strlen("RssAnon:"), NULL, 10) * 1024 : 0;
}

void report_timing(const struct session *session, double packed_bytes, struct text *out)
{
	struct rusage usage;
	double total = 0;
	text_add(out, "{\n  \"stages\": [");
	for (size_t i = 0; i < session->stages.count; i++) {
		const struct stage *stage = &session->stages.data[i];
		text_add(out, "%s\n    {\"name\": \"%s\", \"seconds\": %.6f, \"steps\": %lld}",
		        i ? "," : "", stage->name, stage->seconds, (long long)stage->steps);
		bool pack = text_same(stage->name, "pack weights");
		total += pack ? 0 : stage->seconds;
	}
	text_add(out, "\n  ],\n  \"compile_seconds\": %.6f,\n", total);
	for (size_t i = 0; i < session->stages.count; i++) {
		const struct stage *stage = &session->stages.data[i];
		if (text_same(stage->name, "pack weights") && stage->seconds > 0)
			text_add(out,
			        "  \"pack\": {\"bytes\": %.0f, \"seconds\": %.6f, "
			        "\"bytes_per_second\": %.6g},\n",
			        packed_bytes, stage->seconds, packed_bytes / stage->seconds);
	}
	getrusage(RUSAGE_SELF, &usage);
	text_add(out, "  \"private_bytes\": %lld,\n  \"peak_rss_bytes\": %lld\n}\n",
	        private_bytes(out->arena), (long long)usage.ru_maxrss * 1024);
}
