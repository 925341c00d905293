/* Sums of tokens abreast, one token after another: beside processes of slices, so that a quarter
 * of the wires cross to the die on which rows are collected. Nothing is asked of a word but of
 * how many tokens it is, so the words of a layer's phases, of all tiles, are one loop. */
#include "engine/engine.h"

struct serializer {
	const struct engine *engine;
	int count;                                                      /* sets of slices */
	struct value *in[PROCESS_PAIRS_MOST], *out[PROCESS_PAIRS_MOST]; /* channels */
};

static bool same_tokens(const struct job *left, const struct job *right)
{
	return !left->run_time.each == !right->run_time.each && left->tile == right->tile &&
	        left->contract.tokens == right->contract.tokens;
}

/* All are one datapath. */
static void add_words(struct process *p, struct job_span stretch, void *context)
{
	const struct serializer *serializer = context;
	const struct engine *engine = serializer->engine;
	const struct job *job = &engine->jobs.data[stretch.first];
	int64_t rows = 0;
	for (int i = stretch.first; i < stretch.end; i++)
		rows += engine->jobs.data[i].blocks * engine->jobs.data[i].block;
	engine_loop(p, stretch.tiles, stretch.run_time);
	process_mark(p, KEY_STREAM_DATAPATH);
	engine_loop(p, rows * job->words, job->words_run_time);
	struct value *token = engine_token_loop(engine, p, job);
	process_pipeline(p, 1);
	for (int i = 0; i < serializer->count; i++) {
		struct value *of[2] = { make_pop(p, make_equal(p, token, 0), serializer->in[i]),
			token };
		make_push(p, NULL,
		        make_op(p, OP_SPLIT_LANES, serializer->out[i]->type->element, 2, of),
		        serializer->out[i]);
	}
	process_close(p, 3);
}

void lower_token_serializer(const struct engine *engine, int number)
{
	struct process p = engine_process(engine, "token_serializer");
	struct serializer serializer = { .engine = engine };
	for (int i = number;
	        i < engine_pe_pairs(engine) && serializer.count < engine->pairs_per_process;
	        i++, serializer.count++) {
		const char *which = serializer.count
		        ? text_format(p.module->arena, "%d", serializer.count)
		        : "";
		serializer.in[serializer.count] = process_argument(
		        &p, engine->sums[i], text_format(p.module->arena, "x%s", which));
		serializer.out[serializer.count] = process_argument(
		        &p, engine->collected[i], text_format(p.module->arena, "y%s", which));
	}
	for (int first = 0; first < (int)engine->jobs.count; first = engine_loop_end(engine, first))
		engine_each_span(engine, &p, first, add_words, &serializer);
	process_finish(&p);
}

bool engine_can_serialize(const struct engine *engine)
{
	const struct job *job = engine->jobs.data;
	bool same = true;
	for (int i = 0; i < (int)engine->jobs.count; i++)
		same = same && (!job[i].layer_overlap || job[i].run_time.tiles) &&
		        (engine_loop_end(engine, i) == i + 1 || same_tokens(&job[i], &job[i + 1]));
	return same;
}
