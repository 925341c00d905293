/* What became of the loops of C, a row for each statement: loop perfectization (LP), removed
 * variable bounds (RVB), permutation, tiles, unrolling, pipeline II, partition of arrays. They come
 * from an attribute, which any text may hold. */
#include "base/json.h"
#include "report/report_loops.h"
#include <ctype.h>
#include <string.h>

static const struct attr *rows_of(const struct report *report)
{
	const struct attr *rows = attr_get(module_main(report->module), KEY_STREAM_TRANSFORMATIONS);
	return rows && rows->kind == ATTR_ARRAY && rows->count ? rows : NULL;
}

/* p31_C_l11 is the process of C_l11. */
static const struct process_cost *process_of(const struct report *report, const char *kernel)
{
	for (int i = 0; i < report->cost.processes; i++) {
		const char *name = report->cost.process[i].name;
		const char *behind = strchr(name, '_');
		if (behind && text_same(behind + 1, kernel))
			return &report->cost.process[i];
	}
	return NULL;
}

/* NULL: absent, or of another kind. */
static const struct attr *item_of(const struct attr *row, enum attr_key key, enum attr_kind kind)
{
	const struct attr *item = attr_item(row, key);
	return item && item->kind == kind ? item : NULL;
}

static const char *text_of(const struct attr *attr)
{
	return attr->kind == ATTR_STRING ? attr->text : "";
}

/* Cycles with the lanes that pragmas ask for, and without; NULL: they cost nothing. */
static const struct attr *pragma_cost(const struct report *report)
{
	const struct attr *cost = attr_get(module_main(report->module), KEY_STREAM_PRAGMA_COST);
	return cost && cost->kind == ATTR_INTEGERS && cost->count == 2 ? cost : NULL;
}

/* A perfect nest that ends with this statement was made of an imperfect one. */
static bool is_perfectized(const struct attr *row)
{
	return attr_item(row, KEY_IMPERFECT) && !attr_item(row, KEY_SEQUENTIAL);
}

/* The loops run over the box around their iterations, under a condition. */
static bool has_constant_bounds(const struct attr *row)
{
	return attr_item(row, KEY_VARIABLE) && !attr_item(row, KEY_SEQUENTIAL);
}

/* Cycles of the C as it stands, one iteration after the other: Σ iterations · cycles of one.
 * 0: some statement has no count. */
static double baseline_cycles(const struct attr *rows)
{
	double sum = 0;
	for (int i = 0; i < rows->count; i++) {
		const struct attr *row = rows->items[i].value;
		int64_t points = attr_item_integer(row, KEY_POINTS, -1);
		if (points < 0)
			return 0;
		sum += (double)points * (double)attr_item_integer(row, KEY_POINT_CYCLES, 0);
	}
	return sum;
}

static double design_cycles(const struct report *report)
{
	return (double)(report_ends(report) ? report->cycles : report->time.most);
}

/* --- text */

static const char *integers_text(struct arena *arena, const struct attr *row, enum attr_key key)
{
	const struct attr *list = item_of(row, key, ATTR_INTEGERS);
	struct text text = text_new(arena);
	if (!list)
		return "-";
	for (int i = 0; i < list->count; i++)
		text_add(&text, "%s%lld", i ? "," : "[", (long long)list->integers[i]);
	text_add(&text, list->count ? "]" : "[]");
	return text.data;
}

static const char *counters_text(struct arena *arena, const struct attr *row)
{
	const struct attr *names = item_of(row, KEY_COUNTERS, ATTR_ARRAY);
	const struct attr *trips = item_of(row, KEY_TRIPS, ATTR_INTEGERS);
	struct text text = text_new(arena);
	for (int i = 0; names && trips && i < names->count && i < trips->count; i++)
		text_add(&text, "%s%s %lld", i ? ", " : "", text_of(names->items[i].value),
		        (long long)trips->integers[i]);
	return text.size ? text.data : "-";
}

static const char *list_text(struct arena *arena, const struct attr *row, enum attr_key key)
{
	const struct attr *list = item_of(row, key, ATTR_ARRAY);
	struct text text = text_new(arena);
	for (int i = 0; list && i < list->count; i++)
		text_add(&text, "%s%s", i ? "; " : "", text_of(list->items[i].value));
	return text.size ? text.data : NULL;
}

/* Cycles of an iteration of the statement that runs most often. */
static const char *iteration_text(struct arena *arena, const struct attr *rows)
{
	int64_t most = -1;
	int64_t cycles = 0;
	int64_t others = 0;
	for (int i = 0; i < rows->count; i++) {
		const struct attr *row = rows->items[i].value;
		int64_t points = attr_item_integer(row, KEY_POINTS, 0);
		others += points > 0;
		if (points <= most)
			continue;
		most = points;
		cycles = attr_item_integer(row, KEY_POINT_CYCLES, 0);
	}
	return text_format(arena, "%lld%s", (long long)cycles,
	        others > 1 ? " (the most frequent statement)" : "");
}

static const char *yes_or_no(bool is)
{
	return is ? "yes" : "no";
}

static void add_row(const struct report *report, const struct attr *row, struct text *out)
{
	const char *name = attr_item_text(row, KEY_NAME);
	const struct process_cost *process = process_of(report, name);
	int64_t asked = attr_item_integer(row, KEY_ASKED_INTERVAL, 0);
	struct text interval = text_new(out->arena);
	const char *banks = list_text(out->arena, row, KEY_PARTITIONS);
	const char *wish = list_text(out->arena, row, KEY_ASKED_PARTITIONS);
	if (process)
		text_add(&interval, "%lld", (long long)process->interval);
	else
		text_add(&interval, "in another");
	if (asked)
		text_add(&interval, " (asked: %lld)", (long long)asked);
	text_add(out, "  %-16s %5lld  %-28s %-4s %-4s %-12s %-14s %-14s %-12s %s", name,
	        (long long)attr_item_integer(row, KEY_LINE, 0), counters_text(out->arena, row),
	        yes_or_no(is_perfectized(row)), yes_or_no(has_constant_bounds(row)),
	        integers_text(out->arena, row, KEY_LOOP_PERMUTATION),
	        integers_text(out->arena, row, KEY_TILES),
	        integers_text(out->arena, row, KEY_UNROLLED), interval.data,
	        banks ? banks : "none");
	if (wish)
		text_add(out, " (asked: %s)", wish);
	text_add(out, "\n");
}

void loops_text(const struct report *report, struct text *out)
{
	const struct attr *rows = rows_of(report);
	const struct attr *cost = pragma_cost(report);
	if (!rows)
		return;
	text_add(out,
	        "\nloops of C (LP: perfectized; RVB: variable bounds removed; tiles and unrolling "
	        "of each loop; II modeled)\n  %-16s %5s  %-28s %-4s %-4s %-12s %-14s %-14s %-12s "
	        "%s\n",
	        "kernel", "line", "loops", "LP", "RVB", "Perm. Map", "Tiling Sizes", "Unrolling",
	        "Pipeline II", "Array Partition");
	for (int i = 0; i < rows->count; i++)
		add_row(report, rows->items[i].value, out);
	double baseline = baseline_cycles(rows);
	if (baseline > 0)
		text_add(out,
		        "  unoptimised C takes %.0f cycles: iterations one after the other, %s "
		        "cycles "
		        "each (closed form); the design is %.4g times as fast\n",
		        baseline, iteration_text(out->arena, rows),
		        baseline / design_cycles(report));
	if (cost)
		text_add(out,
		        "  the lanes of #pragma HLS UNROLL cost time: %lld cycles with them, %lld "
		        "without (modeled)\n",
		        (long long)cost->integers[0], (long long)cost->integers[1]);
}

/* --- JSON */

static void add_integers(
        struct text *out, const struct attr *row, enum attr_key key, const char *name)
{
	const struct attr *list = item_of(row, key, ATTR_INTEGERS);
	if (!list)
		return;
	text_add(out, ", ");
	json_quote(out, name);
	text_add(out, ": [");
	for (int i = 0; i < list->count; i++)
		text_add(out, "%s%lld", i ? ", " : "", (long long)list->integers[i]);
	text_add(out, "]");
}

static void add_strings(
        struct text *out, const struct attr *row, enum attr_key key, const char *name)
{
	const struct attr *list = item_of(row, key, ATTR_ARRAY);
	if (!list)
		return;
	text_add(out, ", ");
	json_quote(out, name);
	text_add(out, ": [");
	for (int i = 0; i < list->count; i++) {
		text_add(out, i ? ", " : "");
		json_quote(out, text_of(list->items[i].value));
	}
	text_add(out, "]");
}

static void add_entry(const struct report *report, const struct attr *row, struct text *out)
{
	const char *name = attr_item_text(row, KEY_NAME);
	const struct process_cost *process = process_of(report, name);
	int64_t asked = attr_item_integer(row, KEY_ASKED_INTERVAL, 0);
	text_add(out, "{\"kernel\": ");
	json_quote(out, name);
	text_add(out, ", \"line\": %lld, \"sequential\": %s",
	        (long long)attr_item_integer(row, KEY_LINE, 0),
	        attr_item(row, KEY_SEQUENTIAL) ? "true" : "false");
	add_strings(out, row, KEY_COUNTERS, "loops");
	add_integers(out, row, KEY_TRIPS, "trips");
	if (attr_item_integer(row, KEY_POINTS, 0))
		text_add(out, ", \"iterations\": %lld, \"iteration_cycles\": %lld",
		        (long long)attr_item_integer(row, KEY_POINTS, 0),
		        (long long)attr_item_integer(row, KEY_POINT_CYCLES, 0));
	text_add(out, ", \"perfectized\": %s, \"bounds_removed\": %s",
	        is_perfectized(row) ? "true" : "false",
	        has_constant_bounds(row) ? "true" : "false");
	add_integers(out, row, KEY_LOOP_PERMUTATION, "permutation");
	add_integers(out, row, KEY_TILES, "tiles");
	add_integers(out, row, KEY_UNROLLED, "unrolled");
	if (process)
		text_add(out, ", \"ii\": %lld", (long long)process->interval);
	if (asked)
		text_add(out, ", \"asked_ii\": %lld", (long long)asked);
	add_strings(out, row, KEY_PARTITIONS, "partitions");
	add_strings(out, row, KEY_ASKED_PARTITIONS, "asked_partitions");
	text_add(out, "}");
}

void loops_json(const struct report *report, struct text *out)
{
	const struct attr *rows = rows_of(report);
	const struct attr *cost = pragma_cost(report);
	if (!rows)
		return;
	text_add(out, "  \"loops\": [");
	for (int i = 0; i < rows->count; i++) {
		text_add(out, i ? ",\n    " : "\n    ");
		add_entry(report, rows->items[i].value, out);
	}
	text_add(out, "\n  ],\n");
	if (baseline_cycles(rows) > 0)
		text_add(out, "  \"baseline\": {\"cycles\": %.0f, \"speedup\": %.6g},\n",
		        baseline_cycles(rows), baseline_cycles(rows) / design_cycles(report));
	if (cost)
		text_add(out, "  \"pragma_cost\": {\"cycles\": %lld, \"without\": %lld},\n",
		        (long long)cost->integers[0], (long long)cost->integers[1]);
}
