/* Slices of a contraction unit, in sets that share multipliers: a word of weights of each a
 * cycle, against the groups of numbers that they keep for a phase. */
#include "engine/engine.h"

struct pe_pair { /* of slices that share multipliers */
	int first;
	struct value **weights, *scale, *out; /* channels */
	struct value *sums;                   /* array: those of the block */
};

struct pe_process {
	int count; /* sets of the process */
	struct pe_pair pe_pair[PROCESS_PAIRS_MOST];
	struct value *in, *next; /* channels; next: NULL for the last of its chain */
	struct value **groups;   /* arrays: those of the phase, or of a tile of it, [abreast] */
};

/* Σ x * w of a group, for each slice, for each token abreast. */
static struct value *group_products(const struct engine *engine, struct process *p,
        const struct job *job, struct value *const *counter, struct value *const *x,
        const struct pe_pair *pe_pair)
{
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
		operand[tokens_per_dot + i] = engine_pop_word(
		        engine, p, job, counter, pe_pair->first + i, pe_pair->weights[i]);
	for (int q = 0; q < dots; q++) {
		for (int j = 0; j < tokens_per_dot; j++)
			operand[j] = x[q * tokens_per_dot + j];
		sum[q] = make_op(p, OP_DOT, row, tokens_per_dot + words, operand);
		if (tokens_per_dot > 1)
			attr_set(p->module, sum[q]->def, KEY_INPUT_WORDS,
			        attr_integer(p->module, tokens_per_dot));
	}
	struct value *word = dots > 1
	        ? make_op(p, OP_JOIN_LANES, type_shaped(p->module, TYPE_VECTOR, 1, &all, whole),
	                  dots, sum)
	        : sum[0];
	return make_op(p, OP_SITOFP, engine->real, 1, &word);
}

/* Where the sum of a row and a token is. */
static struct value *pe_sum_address(
        const struct engine *engine, struct process *p, struct value *const *counter)
{
	struct value *of[2] = { counter[2], counter[ENGINE_LOOPS - 1] };
	const int64_t pitch[2] = { engine->words_most, 1 };
	return make_address(p, 2, of, pitch, 0);
}

/* first, last: group of the row. */
static void add_pe_pair(const struct engine *engine, struct process *p, const struct job *job,
        struct value *const *counter, struct value *const *x, const struct pe_pair *pe_pair,
        struct value *first, struct value *last)
{
	struct value *row = pe_sum_address(engine, p, counter);
	struct value *factor[2] = { group_products(engine, p, job, counter, x, pe_pair),
		make_pop(p, NULL, pe_pair->scale) };
	struct value *term[2] = { make_select(p, first, make_number(p, 0, engine->real),
		                          make_load(p, pe_pair->sums, row)),
		make_op(p, OP_MULF, engine->real, 2, factor) };
	struct value *sum = make_op(p, OP_ADDF, engine->real, 2, term);
	make_store(p, sum, pe_pair->sums, row);
	make_push(p, last, sum, pe_pair->out);
}

static void add_products(const struct engine *engine, struct process *p, const struct job *job,
        const struct pe_process *s)
{
	struct value *counter[ENGINE_LOOPS];
	int loops = engine_job_loops(engine, p, job, counter);
	struct value *group = counter[1];
	struct value *first = make_equal(p, group, 0);
	struct value *last =
	        make_equal_values(p, group, make_unshared_index(p, job->contract.groups - 1));
	struct value **x = ARENA_ARRAY(p->module->arena, struct value *, engine->tokens_per_cycle);
	struct value *place =
	        engine->streams_groups ? NULL : engine_group_address(engine, p, job, counter);
	for (int q = 0; q < engine->tokens_per_cycle; q++)
		x[q] = engine->streams_groups
		        ? engine_stream_group(p, counter, s->in, s->groups[q], s->next)
		        : make_load(p, s->groups[q], place);
	if (!engine->streams_groups)
		engine_prefetch_group(engine, p, job, counter, s->in, s->groups, s->next);
	for (int i = 0; i < s->count; i++)
		add_pe_pair(engine, p, job, counter, x, &s->pe_pair[i], first, last);
	process_close(p, loops);
}

static void add_job(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct pe_process *s = context;
	if (!engine->streams_groups)
		engine_load_first_group(engine, p, job, s->in, s->groups, s->next);
	add_products(engine, p, job, context);
}

static void add_operands(const struct engine *engine, struct process *p, struct pe_pair *pe_pair,
        int number, bool only)
{
	struct arena *arena = p->module->arena;
	*pe_pair = (struct pe_pair){ .first = number * engine->pes_per_pair,
		.weights = ARENA_ARRAY(arena, struct value *, engine->pes_per_pair) };
	for (int i = 0; i < engine->pes_per_pair; i++)
		pe_pair->weights[i] = process_argument(p, engine->weights[pe_pair->first + i],
		        text_format(arena, "w%d",
		                pe_pair->first %
		                                (engine->pes_per_pair * engine->pairs_per_process) +
		                        i));
	pe_pair->scale = process_argument(p, engine->scale[number],
	        only ? "scale" : text_format(arena, "scale%d", number % engine->pairs_per_process));
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
	s.in = process_argument(&p, engine->input[number], "x");
	for (int i = 0; i < s.count; i++)
		add_operands(engine, &p, &s.pe_pair[i], number + i, s.count == 1);
	s.next = s.count < left && s.count < all
	        ? process_argument(&p, engine->input[number + s.count], "next_pe")
	        : NULL;
	for (int i = 0; i < s.count; i++)
		s.pe_pair[i].out = process_argument(&p, engine->sums[number + i],
		        s.count == 1 ? "y" : text_format(arena, "y%d", i));
	s.groups = engine_group_buffers(engine, &p, "groups", engine->group);
	for (int i = 0; i < s.count; i++) {
		s.pe_pair[i].sums = make_array(&p, i ? text_format(arena, "sums%d", i) : "sums",
		        engine->block_most * engine->words_most, engine->real, 1);
		attr_set(p.module, s.pe_pair[i].sums->def, KEY_STREAM_DISTANCE,
		        attr_integer(p.module, engine->distance));
	}
	engine_each_pipeline(engine, &p, add_job, &s);
	process_finish(&p);
	return number + s.count;
}
