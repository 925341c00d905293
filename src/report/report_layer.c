/* On-chip bytes of a layer compared with the intermediate tensors of the unfused model, and why
 * each converter exists. */
#include "base/json.h"
#include "report/report.h"

static double percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const struct attr *explanations(const struct report *report)
{
	return attr_get(module_main(report->module), KEY_STREAM_CONVERTERS);
}

static void add_converter(struct text *out, const struct attr *item)
{
	static const enum attr_key keys[] = { KEY_WRITER, KEY_FROM, KEY_TO, KEY_AVOIDED_BY };
	const struct attr *readers = attr_item(item, KEY_READERS);
	text_add(out, "{\"bytes\": %lld, \"spilled\": %s, \"readers\": [",
	        (long long)attr_item_integer(item, KEY_BYTES, 0),
	        attr_item_integer(item, KEY_SPILLED, 0) ? "true" : "false");
	for (int i = 0; readers && i < readers->count; i++) {
		text_add(out, i ? ", " : "");
		json_quote(out, readers->items[i].value->text);
	}
	text_add(out, "]");
	for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
		text_add(out, ", \"%s\": ", key_name(keys[k]));
		json_quote(out, attr_item_text(item, keys[k]));
	}
	text_add(out, "}");
}

static void add_intermediates(const struct report *report, struct text *out)
{
	const struct on_chip *sum = &report->on_chip;
	text_add(out, "  \"intermediates\": {");
	if (report->unfused.kernels)
		text_add(out,
		        "\"unfused_bytes\": %lld, \"unfused_after_elementwise_bytes\": %lld, "
		        "\"unfused_kernels\": %d, \"elementwise_fused_kernels\": %d, ",
		        (long long)report->unfused.bytes, (long long)report->fused.bytes,
		        report->unfused.kernels, report->fused.kernels);
	text_add(out,
	        "\"on_chip_bytes\": %lld, \"converters\": %lld, \"accumulators\": %lld, \"fifos\": "
	        "%lld, \"buffers\": %lld, \"layer_feedback\": %lld, \"prefetch\": %lld",
	        (long long)sum->bytes, (long long)sum->converters, (long long)sum->accumulators,
	        (long long)sum->fifos, (long long)sum->buffers, (long long)sum->layer_feedback,
	        (long long)sum->prefetch);
	if (report->unfused.bytes && report->fused.bytes)
		text_add(out,
		        ", \"percent\": {\"of_unfused\": %.4g, \"of_unfused_after_elementwise\": "
		        "%.4g}",
		        percent(sum->bytes, report->unfused.bytes),
		        percent(sum->bytes, report->fused.bytes));
	text_add(out, "},\n");
}

/* Processes that compute an online softmax, in the design's order. */
static void add_scans(const struct report *report, struct text *out, const char *before,
        const char *between, const char *after)
{
	bool any = false;
	for (int i = 0; i < report->cost.processes; i++) {
		const struct op *function = report->cost.process[i].function;
		if (!attr_get(function, KEY_STREAM_SCAN))
			continue;
		text_add(out, "%s%s", any ? between : before,
		        attr_text_or(function, KEY_SYM_NAME, ""));
		any = true;
	}
	text_add(out, "%s", any ? after : "");
}

void report_layer_json(const struct report *report, struct text *out)
{
	const struct attr *list = explanations(report);
	add_intermediates(report, out);
	add_scans(report, out, "  \"online_softmax\": [\"", "\", \"", "\"],\n");
	text_add(out, "  \"converters\": {\"count\": %d, \"bytes\": %lld", report->converters.count,
	        (long long)report->converters.bytes);
	for (int i = 0; list && i < list->count; i++) {
		text_add(out, i ? ",\n    " : ", \"list\": [\n    ");
		add_converter(out, list->items[i].value);
	}
	text_add(out, "%s},\n", list && list->count ? "]" : "");
}

static void row(const struct report *report, struct text *out, const char *name, int64_t bytes)
{
	text_add(out, "  %-16s %12lld", name, (long long)bytes);
	if (report->unfused.bytes && report->fused.bytes)
		text_add(out, " %7.1f %% %7.1f %%", percent(bytes, report->unfused.bytes),
		        percent(bytes, report->fused.bytes));
	text_add(out, "\n");
}

static void explain(struct text *out, const struct attr *item)
{
	const struct attr *readers = attr_item(item, KEY_READERS);
	text_add(out, "  %12lld bytes %s %s ->", (long long)attr_item_integer(item, KEY_BYTES, 0),
	        attr_item_integer(item, KEY_SPILLED, 0) ? "spilled to memory" : "on chip",
	        attr_item_text(item, KEY_WRITER));
	for (int i = 0; readers && i < readers->count; i++)
		text_add(out, "%s %s", i ? "," : "", readers->items[i].value->text);
	text_add(out, "\n    written as %s\n    read as    %s\n    avoidable by %s\n",
	        attr_item_text(item, KEY_FROM), attr_item_text(item, KEY_TO),
	        attr_item_text(item, KEY_AVOIDED_BY));
}

void report_layer_text(const struct report *report, struct text *out)
{
	const struct on_chip *sum = &report->on_chip;
	const struct attr *list = explanations(report);
	text_add(out, "\non-chip buffers of %s (counted; prefetch FIFOs are not part of the sum)\n",
	        sum->rolled ? "one layer" : "the design");
	if (report->unfused.kernels)
		text_add(out,
		        "  %-16s %12s    relative to the intermediates of the unfused model (%lld "
		        "bytes, %d kernels) and after elementwise fusion (%lld bytes, %d "
		        "kernels)\n",
		        "", "bytes", (long long)report->unfused.bytes, report->unfused.kernels,
		        (long long)report->fused.bytes, report->fused.kernels);
	row(report, out, "converters", sum->converters);
	row(report, out, "accumulators", sum->accumulators);
	row(report, out, "FIFOs", sum->fifos);
	row(report, out, "shared buffers", sum->buffers);
	row(report, out, "layer_feedback", sum->layer_feedback);
	row(report, out, "sum", sum->bytes);
	row(report, out, "prefetch", sum->prefetch);
	add_scans(report, out, "  online softmax in ", ", ", "\n");
	for (int i = 0; list && i < list->count; i++) {
		text_add(out, i ? "" : "\nconverters, and how each could be avoided\n");
		explain(out, list->items[i].value);
	}
}
