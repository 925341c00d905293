/* The process behind a unit's slices: it puts the rows of all of them in order, as words of the
 * phases' results. */
#include "engine/engine.h"

struct collector {
	/* channels; array of a tile's words, where a word of the result is narrower than what a
	 * set gives, else NULL */
	struct value **sums, *buffer;
	/* channels of the phases; at once, where they are collected by one datapath */
	struct value **out;
	int64_t wide, narrow;   /* lanes of most words then, and of those of the others */
	bool has_start_offsets; /* some phase has no first row of some slices */
	/* a slice gives fewer rows in the last turn of some phase */
	bool short_last_period;
};

/* Where a word of the result stands among those of its row: the turn, the part of it, the word
 * of tokens, the token in it; NULL: the only one. */
struct result_position {
	struct value *number, *part, *word, *token;
	int64_t tokens; /* of a word */
	/* [rows in turn] is there such a row of each slice?  NULL: there are all */
	struct value **row_valid;
};

/* A row of the token whose turn it is. */
static struct value *row_of(const struct engine *engine, struct process *p,
        const struct result_position *result_position, struct value *word, int64_t pe)
{
	struct value *row = word;
	const int64_t tokens = engine->serializes_tokens ? 1 : result_position->tokens;
	for (int64_t q = 0; engine->pes_per_pair * engine->tokens_per_cycle > 1 && q < tokens;
	        q++) {
		struct value *part[2] = { word,
			make_index(p, q * engine->pes_per_pair + pe % engine->pes_per_pair) };
		struct value *own = make_op(p, OP_SPLIT_LANES, type_float(p->module, 32), 2, part);
		row = q ? make_select(p, make_equal(p, result_position->token, q), own, row) : own;
	}
	return row;
}

/* The word of a set, taken for the first of its tokens, or for each. */
static struct value *take_sums(const struct engine *engine, struct process *p,
        const struct result_position *result_position, struct value *mine, struct value *sums)
{
	struct value *first =
	        make_and(p, result_position->part ? make_equal(p, result_position->part, 0) : NULL,
	                result_position->token && !engine->serializes_tokens
	                        ? make_equal(p, result_position->token, 0)
	                        : NULL);
	struct value *word = make_pop(p, make_and(p, mine, first), sums);
	attr_set(p->module, word->def, KEY_STREAM_VALUE_NOT_HELD, attr_unit(p->module));
	return word;
}

/* One row: the word of a set is taken in the turn of its first slice, and kept for those of the
 * others. */
static struct value *narrow_result_word(const struct engine *engine, struct process *p,
        const struct collector *c, const struct result_position *result_position)
{
	struct value *pe = make_divided(p, OP_REMSI, result_position->number, engine->pes_per_pair);
	struct value *place = result_position->word ? result_position->word : make_index(p, 0);
	struct value *word = make_load(p, c->buffer, place);
	struct value *row = NULL;
	for (int i = 0; i < engine_pe_pairs(engine); i++) {
		struct value *mine =
		        make_equal(p, result_position->number, i * engine->pes_per_pair);
		word = make_select(
		        p, mine, take_sums(engine, p, result_position, mine, c->sums[i]), word);
	}
	make_store(p, word, c->buffer, place);
	for (int s = 0; s < engine->pes_per_pair; s++)
		row = s ? make_select(p, make_equal(p, pe, s),
		                  row_of(engine, p, result_position, word, s), row)
		        : row_of(engine, p, result_position, word, s);
	return row;
}

/* Is it the turn in which a slice gives one of its rows?  NULL: it is always. */
static struct value *pe_selected(const struct engine *engine, struct process *p,
        const struct result_position *result_position, int64_t pe, int64_t lanes)
{
	int64_t rows = engine_rows_per_period(engine, lanes);
	struct value *mine = NULL;
	if (rows * engine->pes == lanes)
		return NULL;
	for (int64_t r = 0; r < rows; r++) {
		struct value *own = make_and(p,
		        make_equal(p, result_position->number, (r * engine->pes + pe) / lanes),
		        result_position->row_valid ? result_position->row_valid[r] : NULL);
		mine = mine ? make_op(p, OP_ORI, own->type, 2, (struct value *[2]){ mine, own })
		            : own;
	}
	return mine;
}

/* One word of the result: `lanes` slices in turn.  Each slice gives its row in one of the turns. */
static struct value *result_word(const struct engine *engine, struct process *p,
        const struct collector *c, const struct result_position *result_position, int64_t lanes)
{
	int64_t rows = engine_rows_per_period(engine, lanes);
	const struct type *real = type_float(p->module, 32);
	const struct type *word = type_shaped(p->module, TYPE_VECTOR, 1, &lanes, real);
	struct value **row = ARENA_ARRAY(p->module->arena, struct value *, lanes);
	struct value **own = ARENA_ARRAY(p->module->arena, struct value *, engine->pes);
	struct value *taken = NULL;
	for (int64_t s = 0; s < engine->pes; s++) {
		if (s % engine->pes_per_pair == 0)
			taken = take_sums(engine, p, result_position,
			        pe_selected(engine, p, result_position, s, lanes),
			        c->sums[s / engine->pes_per_pair]);
		own[s] = row_of(engine, p, result_position, taken, s);
	}
	for (int64_t n = 0; n < rows * engine->pes; n++)
		row[n % lanes] = n < lanes
		        ? own[n % engine->pes]
		        : make_select(p, make_equal(p, result_position->number, n / lanes),
		                  own[n % engine->pes], row[n % lanes]);
	return lanes > 1 ? make_op(p, OP_JOIN_LANES, word, (int)lanes, row) : row[0];
}

/* Turns of so many rows each in which a slice gives all of its rows. */
static int64_t row_periods(const struct job *job, int64_t each)
{
	return (job->blocks * job->block + each - 1) / each;
}

/* Where some phase has fewer rows in its last turn. */
static struct value **valid_rows(const struct collector *c, struct process *p,
        const struct job *job, struct value *result_position, int64_t each)
{
	const int64_t pitch[1] = { each };
	struct value **row_valid =
	        c->short_last_period ? ARENA_ARRAY(p->module->arena, struct value *, each) : NULL;
	struct value *rows = row_valid ? make_unshared_index(p, job->blocks * job->block) : NULL;
	for (int64_t r = 1; row_valid && r < each; r++)
		row_valid[r] = make_below(p, make_address(p, 1, &result_position, pitch, r), rows);
	return row_valid;
}

/* NULL: all words are. */
static struct value *after_start(struct process *p, const struct job *job, struct value *place)
{
	return job->start ? make_compare(p, 5, place, job->start) : NULL;
}

/* Each slice gives a row for all tokens of a tile; rows beyond the outputs, and tokens beyond
 * the tile, are dropped. */
static void collect_job(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct collector *c = context;
	const struct value *result = job->op->result[0];
	int64_t lanes = stream_lanes(result->type);
	int64_t each = engine_rows_per_period(engine, lanes);
	int64_t words_per_period = engine->pes * each / lanes;
	int64_t rows = row_periods(job, each);
	struct value *counter[2] = { process_loop(p, rows), process_loop(p, words_per_period) };
	struct value *inside = NULL;
	const int64_t pitch[2] = { engine->pes * each, lanes };
	struct result_position result_position = { .number = counter[1],
		.tokens = job->tile < engine->tokens_per_cycle ? job->tile
		                                               : engine->tokens_per_cycle };
	result_position.word =
	        job->words > 1 ? process_loop_run_time(p, job->words, job->words_run_time) : NULL;
	result_position.token = result_position.tokens > 1
	        ? process_loop_run_time(p, result_position.tokens,
	                  engine_token_run_time(p, job, result_position.tokens))
	        : NULL;
	process_pipeline(p, 1);
	result_position.row_valid = valid_rows(c, p, job, counter[0], each);
	struct value *word = lanes < engine->pes_per_pair
	        ? narrow_result_word(engine, p, c, &result_position)
	        : result_word(engine, p, c, &result_position, lanes);
	if (job->contract.tokens * rows * words_per_period > itensor_tiles(result->type->itensor))
		inside = make_compare(
		        p, 2, make_address(p, 2, counter, pitch, 0), job_outputs(engine, job));
	if (job->words * result_position.tokens > job->tile || job->words_run_time) {
		struct value *token[2] = { result_position.word, result_position.token };
		const int64_t tokens_each[2] = { result_position.tokens, 1 };
		struct value *tokens = job->words_run_time
		        ? process_trip_count(p, job->run_time.each, 1)
		        : make_index(p, job->tile);
		inside = make_and(p, inside,
		        make_below(p, make_address(p, 2, token, tokens_each, 0), tokens));
	}
	inside = make_and(p, inside, after_start(p, job, make_address(p, 2, counter, pitch, 0)));
	make_push(p, inside, word,
	        engine_channel(p, &c->out[job_number(engine, job)], job->op->result[0], "y"));
	process_close(p, 2 + (result_position.word != NULL) + (result_position.token != NULL));
}

/* May all phases be collected by one datapath?  Its words are as wide as the widest; where a
 * phase has one token, they may fall into parts. */
static bool results_are_uniform(const struct engine *engine, struct collector *c)
{
	c->wide = engine_widest_result(engine);
	c->narrow = 0;
	for (int i = 0; i < (int)engine->jobs.count; i++) {
		const struct job *job = &engine->jobs.data[i];
		int64_t lanes = job_lanes(job);
		if (lanes == c->wide)
			continue;
		if (job->contract.tokens > 1 || c->wide % lanes ||
		        (c->narrow && c->narrow != lanes))
			return false;
		c->narrow = lanes;
	}
	return c->wide >= engine->pes_per_pair && engine->jobs.count > 1;
}

/* All loops have the same channels: a word goes to the phase at hand. */
static void push_to_job(const struct engine *engine, struct process *p, const struct collector *c,
        const struct result_position *result_position, struct value *number, struct value *inside,
        struct value *word)
{
	const struct type *part = type_float(p->module, 32);
	if (c->narrow > 1)
		part = type_shaped(p->module, TYPE_VECTOR, 1, &c->narrow, part);
	struct value *of[2] = { word, result_position->part };
	struct value *some = c->narrow ? make_op(p, OP_SPLIT_LANES, part, 2, of) : NULL;
	for (int i = 0; i < (int)engine->jobs.count; i++)
		if (!engine->jobs.data[i].part_first)
			make_push(p, make_and(p, inside, make_equal(p, number, i)),
			        job_lanes(&engine->jobs.data[i]) < c->wide ? some : word,
			        c->out[i]);
}

/* The same for phases that share a datapath: loops that only some need are there for all. */
static void collect_uniform(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct collector *c = context;
	int64_t rows = engine_rows_per_period(engine, c->wide);
	int64_t words_per_period = engine->pes * rows / c->wide;
	int loops = 2;
	struct value *number = make_unshared_index(p, job_number(engine, job));
	struct value *outputs = make_unshared_index(p, job_outputs(engine, job));
	struct value *tokens = job->words_run_time ? process_trip_count(p, job->run_time.each, 1)
	                                           : make_unshared_index(p, job->tile);
	struct result_position result_position = { .tokens = engine->tokens_per_cycle };
	struct value *row = process_loop_value(p, make_unshared_index(p, row_periods(job, rows)));
	process_mark(p, KEY_STREAM_DATAPATH);
	result_position.number = process_loop(p, words_per_period);
	if (c->narrow && loops++)
		result_position.part =
		        process_loop_value(p, make_unshared_index(p, c->wide / job_lanes(job)));
	if (engine->words_most > 1 && loops++)
		result_position.word = engine_loop(p, job->words, job->words_run_time);
	if (engine->tokens_per_cycle > 1 && loops++)
		result_position.token = engine_token_loop(engine, p, job);
	process_pipeline(p, 1);
	result_position.row_valid = valid_rows(c, p, job, row, rows);
	struct value *place[3] = { row, result_position.number, result_position.part };
	struct value *token[2] = { result_position.word, result_position.token };
	const int64_t pitch[3] = { engine->pes * rows, c->wide, c->narrow };
	const int64_t each[2] = { engine->tokens_per_cycle, 1 };
	struct value *number_of = make_address(p, 3, place, pitch, 0);
	struct value *inside = make_below(p, number_of, outputs);
	if (c->has_start_offsets)
		inside = make_and(p, inside,
		        make_below(p, make_unshared_index(p, job->start - 1), number_of));
	if (engine->tokens_per_cycle > 1)
		inside = make_and(
		        p, inside, make_below(p, make_address(p, 2, token, each, 0), tokens));
	push_to_job(engine, p, c, &result_position, number, inside,
	        result_word(engine, p, c, &result_position, c->wide));
	process_close(p, loops);
}

bool engine_has_narrow_results(const struct engine *engine)
{
	for (int i = 0; i < (int)engine->jobs.count; i++)
		if (stream_lanes(engine->jobs.data[i].op->result[0]->type) < engine->pes_per_pair)
			return true;
	return false;
}

/* lanes: of all phases' words; 0: each has its own. */
static bool has_short_last_period(const struct engine *engine, int64_t lanes)
{
	for (int i = 0; i < (int)engine->jobs.count; i++) {
		const struct job *job = &engine->jobs.data[i];
		if (job->blocks * job->block %
		        engine_rows_per_period(engine, lanes ? lanes : job_lanes(job)))
			return true;
	}
	return false;
}

void lower_result_collector(const struct engine *engine)
{
	struct process p = engine_process(engine, "collect");
	struct collector c = { .sums = ARENA_ARRAY(
		                       p.module->arena, struct value *, engine_pe_pairs(engine)) };
	for (int i = 0; i < engine_pe_pairs(engine); i++)
		c.sums[i] = process_argument(&p, engine->collected[i],
		        text_format(p.module->arena, "pe%d", i * engine->pes_per_pair));
	bool uniform = results_are_uniform(engine, &c);
	for (int i = 0; i < (int)engine->jobs.count; i++)
		c.has_start_offsets |= engine->jobs.data[i].start > 0;
	c.short_last_period = has_short_last_period(engine, uniform ? c.wide : 0);
	c.out = ARENA_ARRAY(p.module->arena, struct value *, engine->jobs.count);
	for (int i = 0; uniform && i < (int)engine->jobs.count; i++) {
		if (engine->jobs.data[i].part_first)
			continue;
		p.design->layers = engine->jobs.data[i].layers;
		c.out[i] = process_argument(&p,
		        stream_fifo(p.design, engine->jobs.data[i].op->result[0]),
		        text_format(p.module->arena, "y%d", i));
	}
	p.design->layers = 0;
	c.buffer = !uniform && engine_has_narrow_results(engine)
	        ? make_array(&p, "local_buffer", engine->words_most, engine->real, 1)
	        : NULL;
	engine_each_job(engine, &p, uniform ? collect_uniform : collect_job, &c);
	process_finish(&p);
}
