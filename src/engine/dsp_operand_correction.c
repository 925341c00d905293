/* Corrects the activations of tokens that share multipliers in pairs. A multiplier takes x0 and x1
 * joined as x1 * 2^n + x0 (ir/dot.h). The second token of a pair comes less one in every element in
 * which the first is negative, so that PEs join the two without an adder. One process does this for
 * all PEs. */
#include "engine/engine.h"

struct correction {
	/* channel of groups; array of one word, the token before; channels to the chains */
	struct value *in, *before, **out;
	int chains;
};

static struct value *corrected_word(const struct engine *engine, struct process *p,
        struct value *before, struct value *token, struct value *word)
{
	const struct type *bits = type_shaped(p->module, TYPE_VECTOR, 1,
	        &engine->jobs.data[0].contract.size, type_integer(p->module, 1));
	struct value *only = make_index(p, 0);
	struct value *second = make_equal(p, make_divided(p, OP_REMSI, token, 2), 1);
	struct value *sign[2] = { make_load(p, before, only) };
	sign[1] = make_number(p, 0, engine->group);
	struct value *negative = make_op(p, OP_CMPI, bits, 2, sign);
	attr_set(p->module, negative->def, KEY_PREDICATE, attr_integer(p->module, CMPI_SLT));
	struct value *difference[2] = { word, make_op(p, OP_EXTUI, engine->group, 1, &negative) };
	make_store(p, word, before, only);
	return make_select(p, second, make_op(p, OP_SUBI, engine->group, 2, difference), word);
}

static void correct_job(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct correction *correction = context;
	if (job->reuses_activations)
		return;
	process_loop_value(p, make_unshared_index(p, job->contract.groups));
	process_mark(p, KEY_STREAM_DATAPATH);
	struct value *token = engine_loop(p, job->tile, job->run_time.each);
	process_pipeline(p, 1);
	struct value *word = corrected_word(
	        engine, p, correction->before, token, make_pop(p, NULL, correction->in));
	for (int i = 0; i < correction->chains; i++)
		make_push(p, NULL, word, correction->out[i]);
	process_close(p, 2);
}

void lower_operand_correction(
        const struct engine *engine, struct value *in, int chains, struct value *const *chain)
{
	struct process p = engine_process(engine, "operand_correction");
	struct correction correction = { .in = process_argument(&p, in, "x"),
		.out = ARENA_ARRAY(p.module->arena, struct value *, chains + 1),
		.chains = chains };
	for (int i = 0; i < chains; i++)
		correction.out[i] =
		        process_argument(&p, chain[i], text_format(p.module->arena, "chain%d", i));
	correction.before = make_array(&p, "previous", 1, engine->group, 1);
	engine_each_job(engine, &p, correct_job, &correction);
	process_finish(&p);
}
