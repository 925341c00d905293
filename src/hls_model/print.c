/* The table and the JSON of a model. */
#include "hls_model/hls_model.h"
#include "base/json.h"
#include <inttypes.h>

static const char *kind_of(const struct model_row *row)
{
	if (row->dataflow)
		return "dataflow";
	return row->pipelined ? "pipeline" : "sequence";
}

static const char *indented(struct arena *arena, const struct model_row *row)
{
	return text_format(arena, "%*s%s", 2 * row->level, "", row->name);
}

static int width_of(const struct model *model, struct arena *arena)
{
	int width = 4;
	for (size_t i = 0; i < model->rows.count; i++) {
		struct text name = text_new(arena);
		text_add(&name, "%s", indented(arena, &model->rows.data[i]));
		width = (int)name.size > width ? (int)name.size : width;
	}
	return width < 40 ? width : 40;
}

static void add_number(struct text *out, bool shown, bool about, int width, int64_t number)
{
	if (!shown)
		text_add(out, " %*s", width, "-");
	else if (about)
		text_add(out, " %*s", width, text_format(out->arena, "~%" PRId64, number));
	else
		text_add(out, " %*" PRId64, width, number);
}

static void add_row(struct text *out, const struct model_row *row, int width)
{
	text_add(out, "%-*s %5d %-8s", width, indented(out->arena, row), row->location.line,
	        kind_of(row));
	add_number(out, row->is_loop, row->estimated, 10, row->trips);
	add_number(out, row->pipelined || row->dataflow || !row->is_loop, false, 10, row->interval);
	add_number(out, row->is_loop, false, 8, row->depth);
	add_number(out, true, row->estimated, 12, row->latency);
	add_number(out, true, false, 6, row->cost.dsp);
	if (row->limit)
		text_add(out, "  %s", row->limit);
	text_add(out, "\n");
}

void model_table(const struct model *model, struct text *out)
{
	const struct model_row *top = model->rows.data;
	int width = width_of(model, out->arena);
	text_add(out, "Modelled, not synthesised: %s on %s, period %.3g ns\n\n", top->name,
	        model->platform->part, model->period);
	text_add(out, "%-*s %5s %-8s %10s %10s %8s %12s %6s  %s\n", width, "name", "line",
	        "runs as", "trips", "interval", "depth", "latency", "DSP", "interval limited by");
	for (size_t i = 0; i < model->rows.count; i++)
		add_row(out, &model->rows.data[i], width);
	text_add(out,
	        "\nlatency %" PRId64 " cycles, %.4g us; DSP %" PRId64 ", BRAM18 %" PRId64
	        ", operators' LUT %" PRId64 "\n",
	        top->latency, (double)top->latency * model->period / 1000, model->cost.dsp,
	        model->cost.bram18, model->cost.lut);
}

static void json_row(struct text *out, const struct model_row *row)
{
	text_add(out, "{\"name\": ");
	json_quote(out, row->name);
	text_add(out, ", \"line\": %d, \"level\": %d, \"loop\": %s, \"runs_as\": \"%s\"",
	        row->location.line, row->level, row->is_loop ? "true" : "false", kind_of(row));
	if (row->is_loop)
		text_add(out, ", \"trips\": %" PRId64 ", \"mean_trips\": %s, \"depth\": %" PRId64,
		        row->trips, row->estimated ? "true" : "false", row->depth);
	text_add(out, ", \"interval\": %" PRId64 ", \"latency\": %" PRId64 ", \"dsp\": %" PRId64,
	        row->interval, row->latency, row->cost.dsp);
	if (row->limit) {
		text_add(out, ", \"limit\": ");
		json_quote(out, row->limit);
	}
	text_add(out, "}");
}

void model_json(const struct model *model, struct text *out)
{
	const struct model_row *top = model->rows.data;
	text_add(out, "{\"top\": ");
	json_quote(out, top->name);
	text_add(out, ", \"platform\": ");
	json_quote(out, model->platform->name);
	text_add(out,
	        ", \"period_ns\": %.6g, \"latency\": %" PRId64 ", \"interval\": %" PRId64
	        ", \"dsp\": %" PRId64 ", \"bram18\": %" PRId64 ", \"lut\": %" PRId64
	        ",\n \"rows\": [",
	        model->period, top->latency, top->interval, model->cost.dsp, model->cost.bram18,
	        model->cost.lut);
	for (size_t i = 0; i < model->rows.count; i++) {
		text_add(out, "%s", i ? ",\n  " : "\n  ");
		json_row(out, &model->rows.data[i]);
	}
	text_add(out, "]}\n");
}
