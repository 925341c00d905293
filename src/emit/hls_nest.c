/* Emits a loop nest as one loop over all points that advances the nest's counters itself.  The HLS
 * compiler does not flatten nests whose trip counts are not constant (UG1399), and the pipeline
 * would drain after each run of the innermost loop. */
#include "emit/hls.h"
#include "platform/index_range.h"
#include "predict/timing.h"
#include <stdlib.h>

int hls_nest(struct op *nest, struct op *loop[NEST_MOST])
{
	int loops = 0;
	for (struct op *op = nest; op;
	        op = attr_get(op, KEY_STREAM_PIPELINE) ? NULL : timing_only_loop(op->region[0])) {
		/* a shared datapath is called: no part of this pipeline */
		if (loops == NEST_MOST || (loops && nest_datapath(op) >= 0))
			return 1;
		loop[loops++] = op;
	}
	return attr_get(loop[loops - 1], KEY_STREAM_PIPELINE) ? loops : 1;
}

bool hls_is_nest(struct op *nest)
{
	struct op *loop[NEST_MOST];
	int loops = hls_nest(nest, loop);
	bool run_time = false;
	bool flattened = loops > 1;
	for (int l = 1; l < loops; l++) {
		run_time = run_time || attr_get(loop[l], KEY_STREAM_RUN_TIME);
		flattened = flattened && attr_get(loop[l - 1], KEY_STREAM_FLATTENED);
	}
	return run_time || flattened;
}

/* The trip count as a name or a number. */
static const char *trips_of(struct emitter *e, const struct op *loop)
{
	const struct spelling *trips = hls_spelling(e, loop->operand[1]);
	bool number = loop->operand[1]->def && loop->operand[1]->def->code == OP_CONSTANT;
	if (number || (!attr_get(loop, KEY_STREAM_RUN_TIME) && !hls_is_sequential(loop)))
		return trips->text;
	const char *name = names_add(&e->names, "", "trips");
	hls_line(e, "const int %s = %s;", name, trips->text);
	return name;
}

void hls_body_around(struct emitter *e, const struct op *loop, const struct op *inside)
{
	for (struct op *op = loop->region[0]->first; op; op = op->next)
		if (op != inside)
			hls_op(e, op);
}

/* The ops of the outer bodies, which depend only on counters, then the innermost body. */
static void add_bodies(struct emitter *e, struct op *const *loop, int loops)
{
	for (int l = 0; l + 1 < loops; l++)
		hls_body_around(e, loop[l], loop[l + 1]);
	hls_block(e, loop[loops - 1]->region[0]);
	hls_flush(e);
}

/* --- counters
 * Before: if (++i2 == n2) { i2 = 0; if (++i1 == n1) { … } }
 * After:  if (last2) { at2 = 0; last2 = n2 == 1; if (last1) … }
 *         else { last2 = at2 == n2 - 2; at2++; }
 * Between two registers lies an addition or a comparison, and no chain of both through all loops:
 * that a counter is at its last is known an iteration ahead. */

static int bits_of(int64_t most)
{
	int bits = 1;
	while (most >> bits)
		bits++;
	return bits;
}

/* Most iterations of loop l in all nests of the datapath. */
static int64_t most_trips(const struct datapath *path, const struct op *loop, int l)
{
	int64_t most = timing_most_trips(loop);
	if (hls_is_sequential(loop))
		return (INT64_C(1) << index_bits(loop->operand[1])) - 1;
	for (size_t n = 0; path && n < path->nests.count; n++) {
		struct op *own[NEST_MOST];
		hls_nest(path->nests.data[n], own);
		int64_t trips = timing_most_trips(own[l]);
		most = trips > most ? trips : most;
	}
	return most;
}

/* Is it known that the loop has one iteration? */
static bool is_once(const char *trips)
{
	return text_same(trips, "1");
}

/* The counter as a number that the body uses. */
static void bind_counter(struct emitter *e, const struct counters *counters, int l)
{
	struct value *value = counters->loop[l]->region[0]->argument[0];
	bool once = is_once(counters->trips[l]);
	const char *name =
	        once ? "0" : names_add(&e->names, "", text_format(e->arena, "i%d", e->depth + l));
	hls_bind(e, value, (struct spelling){ .text = name, .atomic = true });
	if (!hls_unused(value) && !once)
		hls_line(e, "const int %s = %s;", name, counters->at[l]);
}

struct counters hls_counters(
        struct emitter *e, struct op *nest, const struct datapath *path, bool ends)
{
	struct counters counters = { .ends = ends };
	counters.loops = hls_nest(nest, counters.loop);
	e->counts = true;
	for (int l = 0; l < counters.loops; l++) {
		int number = e->depth + l;
		int64_t most = most_trips(path, counters.loop[l], l);
		counters.bits[l] = bits_of(most > 1 ? most - 1 : 1);
		counters.at[l] = names_add(&e->names, "", text_format(e->arena, "at%d", number));
		counters.last[l] =
		        names_add(&e->names, "", text_format(e->arena, "last%d", number));
		counters.before[l] =
		        names_add(&e->names, "", text_format(e->arena, "before%d", number));
	}
	return counters;
}

/* Does something end with the last iteration of the loop? */
static bool has_end(const struct counters *counters, int l)
{
	return (l || counters->ends) && !is_once(counters->trips[l]);
}

/* Is the counter one that counts, and not only stands for a loop? */
static bool is_counted(const struct counters *counters, int l)
{
	return has_end(counters, l) ||
	        (!is_once(counters->trips[l]) &&
	                !hls_unused(counters->loop[l]->region[0]->argument[0]));
}

static bool is_number(const char *trips)
{
	return *trips >= '0' && *trips <= '9';
}

/* The last counter but one, and whether a loop has one iteration, as expressions. */
static const char *before_of(struct emitter *e, const char *trips)
{
	if (is_number(trips))
		return text_format(e->arena, "%lld", strtoll(trips, NULL, 10) - 2);
	return text_format(e->arena, "%s - 2", trips);
}

static const char *once_of(struct emitter *e, const char *trips)
{
	return is_number(trips) ? "false" : text_format(e->arena, "%s == 1", trips);
}

void hls_counters_declare(
        struct emitter *e, const struct counters *counters, struct text *out, const char *at)
{
	for (int l = 0; l < counters->loops; l++) {
		const char *trips = counters->trips[l];
		bool end = has_end(counters, l);
		if (is_counted(counters, l))
			text_add(out, "%sap_uint<%d> %s = 0;\n", at, counters->bits[l],
			        counters->at[l]);
		if (end)
			text_add(
			        out, "%sbool %s = %s;\n", at, counters->last[l], once_of(e, trips));
		if (end && !is_number(trips))
			text_add(out, "%sap_uint<%d> %s = %s;\n", at, counters->bits[l],
			        counters->before[l], before_of(e, trips));
	}
}

void hls_counters_begin(struct emitter *e, const struct counters *counters)
{
	for (int l = 0; l < counters->loops; l++) {
		const char *trips = counters->trips[l];
		if (is_number(trips)) /* as the nest before left it */
			continue;
		hls_line(e, "%s = %s;", counters->last[l], once_of(e, trips));
		hls_line(e, "%s = %s;", counters->before[l], before_of(e, trips));
	}
}

/* Counts on, the innermost loop first.  over: statement after the last iteration; NULL: none. */
static void count_on(struct emitter *e, const struct counters *counters, int l, const char *over)
{
	if (l < 0) {
		if (over)
			hls_line(e, "%s", over);
		return;
	}
	const char *trips = counters->trips[l];
	const char *before = is_number(trips) ? before_of(e, trips) : counters->before[l];
	if (is_once(trips)) {
		count_on(e, counters, l - 1, over);
		return;
	}
	if (!has_end(counters, l)) {
		if (is_counted(counters, l))
			hls_line(e, "%s++;", counters->at[l]);
		return;
	}
	hls_line(e, "if (%s) {", counters->last[l]);
	e->indent++;
	hls_line(e, "%s = 0;", counters->at[l]);
	hls_line(e, "%s = %s;", counters->last[l], once_of(e, trips));
	count_on(e, counters, l - 1, over);
	e->indent--;
	hls_line(e, "} else {");
	hls_line(e, "\t%s = %s == %s;", counters->last[l], counters->at[l], before);
	hls_line(e, "\t%s++;", counters->at[l]);
	hls_line(e, "}");
}

void hls_iteration(struct emitter *e, const struct counters *counters, const char *over)
{
	for (int l = 0; l < counters->loops; l++)
		bind_counter(e, counters, l);
	e->depth += counters->loops;
	add_bodies(e, counters->loop, counters->loops);
	count_on(e, counters, counters->loops - 1, over);
	e->depth -= counters->loops;
}

/* The stages that the timing model gives the loop's body.  value->id stays what it is. */
static int64_t stages_of(struct emitter *e, const struct block *body)
{
	VEC(int) ids = { 0 };
	size_t next = 0;
	for (const struct op *op = body->first; op; op = op->next)
		for (int i = 0; i < op->results; i++)
			VEC_PUSH(e->arena, &ids, op->result[i]->id);
	int64_t stages = timing_depth(e->platform, body);
	for (const struct op *op = body->first; op; op = op->next)
		for (int i = 0; i < op->results; i++)
			op->result[i]->id = ids.data[next++];
	return stages;
}

void hls_pipeline(struct emitter *e, const struct op *loop)
{
	bool flushes = text_same(attr_text_or(e->process, KEY_STREAM_STYLE, "stp"), "flp");
	text_add(&e->body, "#pragma HLS pipeline II=%lld%s\n",
	        (long long)attr_integer_or(loop, KEY_STREAM_PIPELINE, 1),
	        flushes ? " style=flp" : "");
	hls_line(e, "\t// modelled stages: %lld", (long long)stages_of(e, loop->region[0]));
}

void hls_one_loop(struct emitter *e, struct op *nest, const struct datapath *path)
{
	struct counters counters = hls_counters(e, nest, path, false);
	int loops = counters.loops;
	const char *all = names_add(&e->names, "", "i");
	struct text product = text_new(e->arena);
	double most = 1;
	bool run_time = false;
	for (int l = 0; l < loops; l++) {
		struct op *loop = counters.loop[l];
		counters.trips[l] = trips_of(e, loop);
		run_time = run_time || attr_get(loop, KEY_STREAM_RUN_TIME);
		most *= (double)timing_most_trips(loop);
		text_add(&product, "%s%s", l ? " * " : "", counters.trips[l]);
	}
	bool wide = most > INT32_MAX;
	hls_flush(e);
	hls_counters_declare(e, &counters, &e->body, hls_margin(e));
	hls_line(e, "for (%s %s = 0; %s < %s%s; %s++) {", wide ? "int64_t" : "int", all, all,
	        wide ? "int64_t(1) * " : "", product.data, all);
	if (run_time)
		text_add(&e->body, "#pragma HLS loop_tripcount max=%.0f\n", most);
	hls_pipeline(e, counters.loop[loops - 1]);
	if (path)
		hls_distances(e, path);
	hls_sequential_pragmas(e, counters.loop[loops - 1]);
	e->indent++;
	hls_iteration(e, &counters, NULL);
	e->indent--;
	hls_line(e, "}");
}

void hls_run(struct emitter *e, struct op *nest)
{
	struct op *loop[NEST_MOST];
	struct text trips = text_new(e->arena);
	int loops = hls_nest(nest, loop);
	double most = 1;
	const char *word = names_add(&e->names, "", text_format(e->arena, "i%d", e->depth));
	for (int l = 0; l < loops; l++) {
		text_add(&trips, "%s%s", l ? " * " : "", trips_of(e, loop[l]));
		most *= (double)timing_most_trips(loop[l]);
		hls_bind(e, loop[l]->region[0]->argument[0],
		        (struct spelling){ .text = l + 1 < loops ? "0" : word, .atomic = true });
	}
	hls_line(e, "for (int %s = 0; %s < %s; %s++) {", word, word, trips.data, word);
	text_add(&e->body, "#pragma HLS loop_tripcount max=%.0f\n", most);
	hls_pipeline(e, loop[loops - 1]);
	e->indent++;
	e->depth += loops;
	add_bodies(e, loop, loops);
	e->depth -= loops;
	e->indent--;
	hls_line(e, "}");
}
