/* Emits a loop nest as one loop over all points that advances the nest's counters itself.  The HLS
 * compiler does not flatten nests whose trip counts are not constant (UG1399), and the pipeline
 * would drain after each run of the innermost loop. */
#include "emit/hls.h"
#include "predict/timing.h"

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
	for (int l = 1; l < loops; l++)
		run_time = run_time || attr_get(loop[l], KEY_STREAM_RUN_TIME);
	return run_time;
}

/* Advances a nest's counters, the innermost first.  counter[0] is NULL if the outermost one has no
 * use.  over: statement at the end of the outermost loop; NULL: none. */
static void count_on(struct emitter *e, const char *const *counter, const char *const *trips,
        int loop, const char *over)
{
	if (loop < 0) {
		hls_line(e, "%s", over);
		return;
	}
	if (!loop && !over) {
		if (counter[0])
			hls_line(e, "%s++;", counter[0]);
		return;
	}
	hls_line(e, "if (++%s == %s) {", counter[loop], trips[loop]);
	e->indent++;
	hls_line(e, "%s = 0;", counter[loop]);
	count_on(e, counter, trips, loop - 1, over);
	e->indent--;
	hls_line(e, "}");
}

/* The trip count as a name or a number. */
static const char *trips_of(struct emitter *e, const struct op *loop)
{
	const struct spelling *trips = hls_spelling(e, loop->operand[1]);
	if (!attr_get(loop, KEY_STREAM_RUN_TIME))
		return trips->text;
	const char *name = names_add(&e->names, "", "trips");
	hls_line(e, "const int %s = %s;", name, trips->text);
	return name;
}

/* The ops of the outer bodies, which depend only on counters, then the innermost body. */
static void add_bodies(struct emitter *e, struct op *const *loop, int loops)
{
	for (int l = 0; l + 1 < loops; l++)
		for (struct op *op = loop[l]->region[0]->first; op; op = op->next)
			if (op != loop[l + 1])
				hls_op(e, op);
	hls_block(e, loop[loops - 1]->region[0]);
	hls_flush(e);
}

void hls_one_loop(struct emitter *e, struct op *const *loop, int loops, const struct datapath *path)
{
	const char *counter[NEST_MOST];
	const char *trips[NEST_MOST];
	const char *all = names_add(&e->names, "", "i");
	struct text counters = text_new(e->arena);
	struct text product = text_new(e->arena);
	double most = 1;
	bool run_time = false;
	for (int l = 0; l < loops; l++) {
		struct value *value = loop[l]->region[0]->argument[0];
		trips[l] = trips_of(e, loop[l]);
		run_time = run_time || attr_get(loop[l], KEY_STREAM_RUN_TIME);
		most *= (double)timing_trips(loop[l], 0, NULL);
		text_add(&product, "%s%s", l ? " * " : "", trips[l]);
		counter[l] = NULL;
		if (!l && !value->uses)
			continue;
		counter[l] = names_add(&e->names, "", text_format(e->arena, "i%d", e->depth + l));
		hls_bind(e, value, (struct spelling){ .text = counter[l], .atomic = true });
		text_add(&counters, "%s%s = 0", counters.size ? ", " : "", counter[l]);
	}
	bool wide = most > INT32_MAX;
	bool flushes = text_same(attr_text_or(e->process, KEY_STREAM_STYLE, "stp"), "flp");
	hls_line(e, "int %s;", counters.data);
	hls_line(e, "for (%s %s = 0; %s < %s%s; %s++) {", wide ? "int64_t" : "int", all, all,
	        wide ? "int64_t(1) * " : "", product.data, all);
	if (run_time)
		text_add(&e->body, "#pragma HLS loop_tripcount max=%.0f\n", most);
	text_add(&e->body, "#pragma HLS pipeline II=%lld%s\n",
	        (long long)attr_integer_or(loop[loops - 1], KEY_STREAM_PIPELINE, 1),
	        flushes ? " style=flp" : "");
	if (path)
		hls_distances(e, path);
	e->indent++;
	e->depth += loops;
	add_bodies(e, loop, loops);
	count_on(e, counter, trips, loops - 1, NULL);
	e->depth -= loops;
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
		most *= (double)timing_trips(loop[l], 0, NULL);
		hls_bind(e, loop[l]->region[0]->argument[0],
		        (struct spelling){ .text = l + 1 < loops ? "0" : word, .atomic = true });
	}
	bool flushes = text_same(attr_text_or(e->process, KEY_STREAM_STYLE, "stp"), "flp");
	hls_line(e, "for (int %s = 0; %s < %s; %s++) {", word, word, trips.data, word);
	text_add(&e->body, "#pragma HLS loop_tripcount max=%.0f\n", most);
	text_add(&e->body, "#pragma HLS pipeline II=1%s\n", flushes ? " style=flp" : "");
	e->indent++;
	e->depth += loops;
	add_bodies(e, loop, loops);
	e->depth -= loops;
	e->indent--;
	hls_line(e, "}");
}

void hls_iteration(struct emitter *e, struct op *nest, const char *over)
{
	struct op *loop[NEST_MOST];
	const char *counter[NEST_MOST];
	const char *trips[NEST_MOST];
	int loops = hls_nest(nest, loop);
	for (int l = 0; l < loops; l++) {
		counter[l] = names_add(&e->names, "", text_format(e->arena, "i%d", e->depth + l));
		hls_bind(e, loop[l]->region[0]->argument[0],
		        (struct spelling){ .text = counter[l], .atomic = true });
		text_add(&e->registers, "\tint %s = 0;\n", counter[l]);
		trips[l] = trips_of(e, loop[l]);
	}
	e->depth += loops;
	add_bodies(e, loop, loops);
	count_on(e, counter, trips, loops - 1, over);
	e->depth -= loops;
}
