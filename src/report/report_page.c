/* Writes report.html: the template share/report.html with the figures as one block of JSON, from
 * which the page draws everything itself. */
#include "base/data.h"
#include "base/json.h"
#include "report/report.h"
#include <string.h>

#define TEMPLATE "share/report.html"
#define PLACE "@REPORT@" /* stands once in the template */

static void add_platform(const struct platform *platform, struct text *out)
{
	text_add(out, "{\"name\":");
	json_quote(out, platform->name);
	text_add(out, ",\"part\":");
	json_quote(out, platform->part);
	text_add(out,
	        ",\"channels\":%d,\"channel_gbps\":%.6g,\"channel_efficiency\":%.6g,\"ports\":%d,"
	        "\"memory_die\":%d,\"memory_latency\":%d,\"launch_us\":%.6g}",
	        platform->channels, platform->channel_gbps, platform->channel_efficiency,
	        platform->ports, platform->memory_die, platform->memory_latency,
	        platform->launch_us);
}

static void add_answer(const struct report *report, struct text *out)
{
	struct report_answer answer = report_answer(out->arena, report);
	text_add(out, "{\"bottleneck\":");
	json_quote(out, answer.limit);
	text_add(out, ",\"advice\":");
	json_quote_list(out, answer.advice, (size_t)answer.count);
	text_add(out, "}");
}

static void add_model(const struct report *report, struct text *out)
{
	text_add(out,
	        "{\"modeled_ms\":%.6g,\"lower_bound_ms\":%.6g,\"products\":%lld,\"multipliers\":%"
	        "lld,\"memory_bytes\":%.0f,\"host_bytes\":%.0f",
	        report->model_ms, report->least_ms, (long long)report->time.multiplies,
	        (long long)report->time.multipliers, report->time.memory_bytes, report->host_bytes);
	if (report->simulated)
		text_add(out, ",\"simulated_cycles\":%lld", (long long)report->cycles);
	int samples = report->simulated ? cycle_points(&report->cycle_result) : 0;
	if (samples)
		text_add(out, ",\"samples\":%d,\"sample_cycles\":%lld", samples,
		        (long long)report->cycle_result.sample_cycles);
	text_add(out, ",\"predicted\":%s", report->predicted ? "true" : "false");
	text_add(out, ",\"iterations\":%lld", (long long)report->cycle_result.events);
	if (report->deadlock) {
		text_add(out, ",\"deadlock\":");
		json_quote(out, report->deadlock);
	}
	text_add(out, "}");
}

/* Escapes '<': inside a script element nothing may look like its end. */
static void add_escaped(struct text *out, const char *json)
{
	for (const char *next; (next = strchr(json, '<')); json = next + 1) {
		text_add_bytes(out, json, (size_t)(next - json));
		text_add(out, "\\u003c");
	}
	text_add(out, "%s", json);
}

bool report_page(const struct report *report, struct diag *diag, struct text *out)
{
	const char *path = data_path(out->arena, TEMPLATE);
	const char *reason;
	size_t size;
	const char *page = file_read(out->arena, path, &size, &reason);
	const char *place = page ? strstr(page, PLACE) : NULL;
	struct location location = { .file = path };
	if (!page)
		return diag_error(diag, location, "cannot be read: %s", reason);
	if (!place)
		return diag_error(diag, location, "has no place for the figures");
	struct text json = text_new(out->arena);
	text_add(&json, "{\"report\":");
	report_json(report, &json);
	text_add(&json, ",\"platform\":");
	add_platform(report->platform, &json);
	text_add(&json, ",\"diagnosis\":");
	add_answer(report, &json);
	text_add(&json, ",\"model\":");
	add_model(report, &json);
	text_add(&json, ",\"graph\":");
	report_graph(report, &json);
	text_add(&json, "}");
	text_add_bytes(out, page, (size_t)(place - page));
	add_escaped(out, json.data);
	text_add(out, "%s", place + strlen(PLACE));
	return true;
}
