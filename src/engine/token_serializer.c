/* Puts the sums of a cycle's tokens one after another, next to a process of PEs, so that only 1 /
 * tokens_per_cycle of the wires cross to the die of the collector. A word of sums looks the same
 * whatever its job and tile, so one loop serves all words of a layer. */
#include "engine/engine.h"

struct serializer {
	const struct engine *engine;
	int count; /* pairs of PEs */
	/* channels of sums: all tokens of a cycle in a word; one token */
	struct value *in[PROCESS_PAIRS_MOST], *out[PROCESS_PAIRS_MOST];
};

static bool same_tokens(const struct job *left, const struct job *right)
{
	return !left->run_time.each == !right->run_time.each && left->tile == right->tile &&
	        left->contract.tokens == right->contract.tokens;
}

/* the loops of all spans are one datapath */
static void add_words(struct process *p, struct job_span span, void *context)
{
	const struct serializer *serializer = context;
	const struct engine *engine = serializer->engine;
	const struct job *job = &engine->jobs.data[span.first];
	int64_t rows = 0;
	for (int i = span.first; i < span.end; i++)
		rows += engine->jobs.data[i].blocks * engine->jobs.data[i].block;
	engine_loop(p, span.tiles, span.run_time);
	process_mark(p, KEY_STREAM_DATAPATH);
	engine_loop(p, rows * job->token_steps, job->token_steps_run_time);
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
