/* Makes the processes of PEs: per cycle a PE multiplies a word of weights with the groups of
 * activations that the process holds, and adds the scaled sum to that of the row. At the last group
 * it sends the sums of the block's rows to the collector. PEs that share multipliers (a pair) are
 * one op. */
#include "engine/engine.h"

/* PEs that share multipliers; `first` is the first of them */
struct pe_pair {
	int first;
	/* channels: [pes_per_pair] words of weights; products of scales; sums */
	struct value **weights, *scale, *out;
	struct value *correction; /* channel; NULL: weights have no zero points */
	struct value *sums;       /* array: the sums of a block */
};

struct pe_process {
	int count; /* pairs of the process */
	struct pe_pair pe_pair[PROCESS_PAIRS_MOST];
	/* groups of the job, or of a tile of it, and where they come from and go to; next: NULL for
	 * the last process of its chain */
	struct group_source source;
};

/* Σ x * w of a group as f32, for each PE of the pair and each token of a cycle. */
static struct value *group_products(
        const struct job_nest *nest, struct value *const *x, const struct pe_pair *pe_pair)
{
	const struct engine *engine = nest->engine;
	struct process *p = nest->p;
	const int tokens_per_dot = engine->tokens_per_dsp > 1 ? engine->tokens_per_cycle : 1;
	const int words = engine->pes_per_pair;
	const int dots = engine->tokens_per_cycle / tokens_per_dot;
	const int64_t sums = words * tokens_per_dot;
	const int64_t all = words * engine->tokens_per_cycle;
	const struct type *whole = type_integer(p->module, 32);
	const struct type *row =
	        sums > 1 ? type_shaped(p->module, TYPE_VECTOR, 1, &sums, whole) : whole;
	struct value **operand =
	        ARENA_ARRAY(p->module->arena, struct value *, tokens_per_dot + words);
	struct value **sum = ARENA_ARRAY(p->module->arena, struct value *, dots);
	for (int i = 0; i < words; i++)
		operand[tokens_per_dot + i] =
		        engine_pop_word(nest, pe_pair->first + i, pe_pair->weights[i]);
	for (int q = 0; q < dots; q++) {
		for (int j = 0; j < tokens_per_dot; j++)
			operand[j] = x[q * tokens_per_dot + j];
		sum[q] = make_op(p, OP_DOT, row, tokens_per_dot + words, operand);
		if (tokens_per_dot > 1)
			attr_set(p->module, sum[q]->def, KEY_INPUT_WORDS,
			        attr_integer(p->module, tokens_per_dot));
	}
	struct value *word = sum[0];
	if (dots > 1)
		word = make_op(p, OP_JOIN_LANES,
		        type_shaped(p->module, TYPE_VECTOR, 1, &all, whole), dots, sum);
	if (pe_pair->correction)
		word = make_op(p, OP_SUBI, engine->whole, 2,
		        (struct value *[2]){ word, make_pop(p, NULL, pe_pair->correction) });
	return make_op(p, OP_SITOFP, engine->real, 1, &word);
}

/* address of the sum of the current row and token step */
static struct value *pe_sum_address(const struct job_nest *nest)
{
	struct value *of[2] = { nest->counter[2], nest->counter[ENGINE_LOOPS - 1] };
	const int64_t pitch[2] = { nest->engine->token_steps_most, 1 };
	return make_address(nest->p, 2, of, pitch, 0);
}

/* The sum of the row with this group; first: is it the first of the row? */
static struct value *add_pe_pair(const struct job_nest *nest, struct value *const *x,
        const struct pe_pair *pe_pair, struct value *first)
{
	const struct engine *engine = nest->engine;
	struct process *p = nest->p;
	struct value *row = pe_sum_address(nest);
	struct value *factor[2] = { group_products(nest, x, pe_pair) };
	factor[1] = make_pop(p, NULL, pe_pair->scale);
	struct value *before = make_load(p, pe_pair->sums, row);
	struct value *zero = make_number(p, 0, engine->real);
	struct value *term[2] = { make_select(p, first, zero, before) };
	term[1] = make_op(p, OP_MULF, engine->real, 2, factor);
	struct value *sum = make_op(p, OP_ADDF, engine->real, 2, term);
	make_store(p, sum, pe_pair->sums, row);
	return sum;
}

static void add_products(const struct engine *engine, struct process *p, const struct job *job,
        const struct pe_process *s)
{
	struct job_nest nest = engine_open_job(engine, p, job);
	struct value *group = nest.counter[1];
	struct value *first = make_equal(p, group, 0);
	struct value *last =
	        make_equal_values(p, group, make_unshared_index(p, job->contract.groups - 1));
	struct value **x = ARENA_ARRAY(p->module->arena, struct value *, engine->tokens_per_cycle);
	struct value *place = engine->streams_groups ? NULL : engine_group_address(&nest);
	for (int q = 0; q < engine->tokens_per_cycle; q++)
		x[q] = engine->streams_groups ? engine_stream_group(&nest, &s->source)
		                              : make_load(p, s->source.buffer[q], place);
	if (!engine->streams_groups)
		engine_prefetch_group(&nest, &s->source);
	struct value *sum[PROCESS_PAIRS_MOST];
	for (int i = 0; i < s->count; i++)
		sum[i] = add_pe_pair(&nest, x, &s->pe_pair[i], first);
	engine_pass_group(&nest, &s->source);
	for (int i = 0; i < s->count; i++)
		make_push(p, last, sum[i], s->pe_pair[i].out);
	process_close(p, nest.loops);
}

static void add_job(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct pe_process *s = context;
	if (!engine->streams_groups)
		engine_load_first_group(engine, p, job, &s->source);
	add_products(engine, p, job, context);
}

static void add_operands(const struct engine *engine, struct process *p, struct pe_pair *pe_pair,
        int number, bool only)
{
	struct arena *arena = p->module->arena;
	*pe_pair = (struct pe_pair){ .first = number * engine->pes_per_pair,
		.weights = ARENA_ARRAY(arena, struct value *, engine->pes_per_pair) };
	int name = pe_pair->first % (engine->pes_per_pair * engine->pairs_per_process);
	for (int i = 0; i < engine->pes_per_pair; i++)
		pe_pair->weights[i] = process_argument(p, engine->weights[pe_pair->first + i],
		        text_format(arena, "w%d", name + i));
	pe_pair->scale = process_argument(p, engine->scale_products[number],
	        only ? "scale" : text_format(arena, "scale%d", number % engine->pairs_per_process));
	if (engine->corrections)
		pe_pair->correction = process_argument(p, engine->corrections[number],
		        only ? "zero"
		             : text_format(arena, "zero%d", number % engine->pairs_per_process));
}

int lower_pe(const struct engine *engine, int number)
{
	struct arena *arena = engine->design->module->arena;
	int left = engine->pairs_per_chain - number % engine->pairs_per_chain;
	int all = engine_pe_pairs(engine) - number;
	int most = left < all ? left : all;
	struct process p =
	        engine_datapath(engine, text_format(arena, "pe%d", number * engine->pes_per_pair));
	struct pe_process s = {
		.count = most < engine->pairs_per_process ? most : engine->pairs_per_process
	};
	s.source.in = process_argument(&p, engine->input[number], "x");
	for (int i = 0; i < s.count; i++)
		add_operands(engine, &p, &s.pe_pair[i], number + i, s.count == 1);
	if (s.count < left && s.count < all)
		s.source.next = process_argument(&p, engine->input[number + s.count], "next_pe");
	for (int i = 0; i < s.count; i++)
		s.pe_pair[i].out = process_argument(&p, engine->sums[number + i],
		        s.count == 1 ? "y" : text_format(arena, "y%d", i));
	s.source.buffer = engine_group_buffers(engine, &p, "groups", engine->group);
	for (int i = 0; i < s.count; i++) {
		s.pe_pair[i].sums = make_array(&p, i ? text_format(arena, "sums%d", i) : "sums",
		        engine->block_most * engine->token_steps_most, engine->real, 1);
		attr_set(p.module, s.pe_pair[i].sums->def, KEY_STREAM_DISTANCE,
		        attr_integer(p.module, engine->distance));
		attr_set(p.module, s.pe_pair[i].sums->def, KEY_STREAM_LOCAL, attr_unit(p.module));
	}
	engine_each_pipeline(engine, &p, add_job, &s);
	process_finish(&p);
	return number + s.count;
}
