/* Makes the process after the PEs that puts rows in order: it pops the sums of all pairs and pushes
 * the words of each job's result, without rows and tokens that are padding. */
#include "engine/engine.h"

struct collector {
	/* channels of sums; array of the last sums of each token step, where words of some
	 * result are narrower than the sums of a pair, else NULL */
	struct value **sums, *buffer;
	/* [jobs] channels of results; with one datapath for all jobs they are made at the
	 * beginning */
	struct value **out;
	/* with one datapath: lanes of the widest results, and of the others (0: no others) */
	int64_t wide, narrow;
	bool has_start_offsets; /* some job starts at another PE than the first */
	/* in its last period some job has fewer rows of a PE */
	bool short_last_period;
};

/* Where a word of the result stands. A period is a number of rows of all PEs that make whole
 * words: number of the word in its period, part of it, token step, token in that. NULL: the
 * only one. */
struct result_position {
	struct value *number, *part, *step, *token;
	int64_t tokens; /* tokens of a step */
	/* [rows of a period] has each PE this row? NULL: all have all rows */
	struct value **row_valid;
	/* is it a word of the result? NULL: it always is */
	struct value *inside;
	/* number of the job, where one datapath collects all */
	struct value *job;
};

/* The row of one PE for the current token, from a pair's word of sums. */
static struct value *row_of(const struct engine *engine, struct process *p,
        const struct result_position *position, struct value *word, int64_t pe)
{
	struct value *row = word;
	const int64_t tokens = engine->serializes_tokens ? 1 : position->tokens;
	for (int64_t q = 0; engine->pes_per_pair * engine->tokens_per_cycle > 1 && q < tokens;
	        q++) {
		struct value *part[2] = { word,
			make_index(p, q * engine->pes_per_pair + pe % engine->pes_per_pair) };
		struct value *own = make_op(p, OP_SPLIT_LANES, type_float(p->module, 32), 2, part);
		row = q ? make_select(p, make_equal(p, position->token, q), own, row) : own;
	}
	return row;
}

/* Pops the sums of a pair, for the first token of a step or for each (serializes_tokens).
 * selected: does this word of the result have the pair's row? */
static struct value *take_sums(const struct engine *engine, struct process *p,
        const struct result_position *position, struct value *selected, struct value *sums)
{
	bool by_token = position->token && !engine->serializes_tokens;
	struct value *token = by_token ? make_equal(p, position->token, 0) : NULL;
	struct value *part = position->part ? make_equal(p, position->part, 0) : NULL;
	struct value *first = make_and(p, part, token);
	struct value *word = make_pop(p, make_and(p, selected, first), sums);
	attr_set(p->module, word->def, KEY_STREAM_VALUE_NOT_HELD, attr_unit(p->module));
	return word;
}

/* A result of one row per word: a pair's sums are popped for the row of its first PE and stored for
 * the rows of its others. */
static struct value *narrow_result_word(const struct engine *engine, struct process *p,
        const struct collector *c, const struct result_position *position)
{
	struct value *pe = make_divided(p, OP_REMSI, position->number, engine->pes_per_pair);
	struct value *place = position->step ? position->step : make_index(p, 0);
	struct value *word = make_load(p, c->buffer, place);
	struct value *row = NULL;
	for (int i = 0; i < engine_pe_pairs(engine); i++) {
		struct value *selected = make_equal(p, position->number, i * engine->pes_per_pair);
		word = make_select(
		        p, selected, take_sums(engine, p, position, selected, c->sums[i]), word);
	}
	make_store(p, word, c->buffer, place);
	for (int s = 0; s < engine->pes_per_pair; s++) {
		struct value *own = row_of(engine, p, position, word, s);
		row = s ? make_select(p, make_equal(p, pe, s), own, row) : own;
	}
	return row;
}

/* Does this word have a row of the PE? NULL: every word has. */
static struct value *pe_selected(const struct engine *engine, struct process *p,
        const struct result_position *position, int64_t pe, int64_t lanes)
{
	int64_t rows = engine_rows_per_period(engine, lanes);
	struct value *selected = NULL;
	if (rows * engine->pes == lanes)
		return NULL;
	for (int64_t r = 0; r < rows; r++) {
		struct value *own =
		        make_and(p, make_equal(p, position->number, (r * engine->pes + pe) / lanes),
		                position->row_valid ? position->row_valid[r] : NULL);
		selected = selected
		        ? make_op(p, OP_ORI, own->type, 2, (struct value *[2]){ selected, own })
		        : own;
	}
	return selected;
}

/* A word of the result has rows of `lanes` PEs, one after another; each PE contributes a row to one
 * of the period's words, for each of the period's rows. */
static struct value *result_word(const struct engine *engine, struct process *p,
        const struct collector *c, const struct result_position *position, int64_t lanes)
{
	int64_t rows = engine_rows_per_period(engine, lanes);
	const struct type *real = type_float(p->module, 32);
	const struct type *word = type_shaped(p->module, TYPE_VECTOR, 1, &lanes, real);
	struct value **row = ARENA_ARRAY(p->module->arena, struct value *, lanes);
	struct value **own = ARENA_ARRAY(p->module->arena, struct value *, engine->pes);
	struct value *taken = NULL;
	for (int64_t s = 0; s < engine->pes; s++) {
		if (s % engine->pes_per_pair == 0)
			taken = take_sums(engine, p, position,
			        pe_selected(engine, p, position, s, lanes),
			        c->sums[s / engine->pes_per_pair]);
		own[s] = row_of(engine, p, position, taken, s);
	}
	for (int64_t n = 0; n < rows * engine->pes; n++)
		row[n % lanes] = n < lanes
		        ? own[n % engine->pes]
		        : make_select(p, make_equal(p, position->number, n / lanes),
		                  own[n % engine->pes], row[n % lanes]);
	return lanes > 1 ? make_op(p, OP_JOIN_LANES, word, (int)lanes, row) : row[0];
}

/* periods of so many rows each in which a PE gives all of its rows */
static int64_t row_periods(const struct job *job, int64_t each)
{
	return (job->blocks * job->block + each - 1) / each;
}

/* the valid rows of a period, if some job has fewer in its last one */
static struct value **valid_rows(const struct collector *c, struct process *p,
        const struct job *job, struct value *period, int64_t each)
{
	const int64_t pitch[1] = { each };
	struct value **row_valid =
	        c->short_last_period ? ARENA_ARRAY(p->module->arena, struct value *, each) : NULL;
	struct value *rows = row_valid ? make_unshared_index(p, job->blocks * job->block) : NULL;
	for (int64_t r = 1; row_valid && r < each; r++)
		row_valid[r] = make_below(p, make_address(p, 1, &period, pitch, r), rows);
	return row_valid;
}

/* Is the word at or beyond the job's first PE? NULL: every word is. */
static struct value *after_start(struct process *p, const struct job *job, struct value *place)
{
	return job->start ? make_compare(p, CMPI_SGE, place, job->start) : NULL;
}

/* is the current token one of the tile? */
static struct value *token_below_end(
        struct process *p, const struct job *job, const struct result_position *position)
{
	struct value *token[2] = { position->step, position->token };
	const int64_t pitch[2] = { position->tokens, 1 };
	struct value *tokens = job->token_steps_run_time
	        ? process_trip_count(p, job->run_time.each, 1)
	        : make_index(p, job->tile);
	return make_below(p, make_address(p, 2, token, pitch, 0), tokens);
}

/* Collects one job with loops of its own: each PE gives a row for all tokens of a tile; rows that
 * are no outputs and tokens beyond the tile are dropped. */
static void collect_job(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct collector *c = context;
	struct value *result = job->op->result[0];
	int64_t lanes = stream_lanes(result->type);
	int64_t each = engine_rows_per_period(engine, lanes);
	int64_t words_per_period = engine->pes * each / lanes;
	int64_t rows = row_periods(job, each);
	struct value *counter[2] = { process_loop(p, rows) };
	counter[1] = process_loop(p, words_per_period);
	const int64_t pitch[2] = { engine->pes * each, lanes };
	struct result_position position = { .number = counter[1],
		.tokens = job->tile < engine->tokens_per_cycle ? job->tile
		                                               : engine->tokens_per_cycle };
	if (job->token_steps > 1)
		position.step =
		        process_loop_run_time(p, job->token_steps, job->token_steps_run_time);
	if (position.tokens > 1)
		position.token = process_loop_run_time(
		        p, position.tokens, engine_token_run_time(p, job, position.tokens));
	process_pipeline(p, 1);
	position.row_valid = valid_rows(c, p, job, counter[0], each);
	struct value *word = lanes < engine->pes_per_pair
	        ? narrow_result_word(engine, p, c, &position)
	        : result_word(engine, p, c, &position, lanes);
	if (job->contract.tokens * rows * words_per_period > itensor_tiles(result->type->itensor))
		position.inside = make_compare(p, CMPI_SLT, make_address(p, 2, counter, pitch, 0),
		        job_outputs(engine, job));
	if (job->token_steps * position.tokens > job->tile || job->token_steps_run_time)
		position.inside = make_and(p, position.inside, token_below_end(p, job, &position));
	position.inside = make_and(
	        p, position.inside, after_start(p, job, make_address(p, 2, counter, pitch, 0)));
	make_push(p, position.inside, word,
	        engine_channel(p, &c->out[job_number(engine, job)], result, "y"));
	process_close(p, 2 + (position.step != NULL) + (position.token != NULL));
}

/* May one datapath collect all jobs? Its words are as wide as the widest; jobs of one token may
 * split them in narrower ones, all of one width. */
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

/* All jobs have the same loops and channels, so a word goes to the channel of the current job. */
static void push_to_job(const struct engine *engine, struct process *p, const struct collector *c,
        const struct result_position *position, struct value *word)
{
	const struct type *part = type_float(p->module, 32);
	if (c->narrow > 1)
		part = type_shaped(p->module, TYPE_VECTOR, 1, &c->narrow, part);
	struct value *of[2] = { word, position->part };
	struct value *some = c->narrow ? make_op(p, OP_SPLIT_LANES, part, 2, of) : NULL;
	for (int i = 0; i < (int)engine->jobs.count; i++)
		if (!engine->jobs.data[i].part_first)
			make_push(p, make_and(p, position->inside, make_equal(p, position->job, i)),
			        job_lanes(&engine->jobs.data[i]) < c->wide ? some : word,
			        c->out[i]);
}

/* Collects a job with the datapath that all jobs share: loops that only some jobs need exist
 * for all. */
static void collect_uniform(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct collector *c = context;
	int64_t rows = engine_rows_per_period(engine, c->wide);
	int64_t words_per_period = engine->pes * rows / c->wide;
	int loops = 2;
	struct result_position position = { .tokens = engine->tokens_per_cycle,
		.job = make_unshared_index(p, job_number(engine, job)) };
	struct value *outputs = make_unshared_index(p, job_outputs(engine, job));
	struct value *tokens = job->token_steps_run_time
	        ? process_trip_count(p, job->run_time.each, 1)
	        : make_unshared_index(p, job->tile);
	struct value *row = process_loop_value(p, make_unshared_index(p, row_periods(job, rows)));
	process_mark(p, KEY_STREAM_DATAPATH);
	position.number = process_loop(p, words_per_period);
	if (c->narrow && loops++)
		position.part =
		        process_loop_value(p, make_unshared_index(p, c->wide / job_lanes(job)));
	if (engine->token_steps_most > 1 && loops++)
		position.step = engine_loop(p, job->token_steps, job->token_steps_run_time);
	if (engine->tokens_per_cycle > 1 && loops++)
		position.token = engine_token_loop(engine, p, job);
	process_pipeline(p, 1);
	position.row_valid = valid_rows(c, p, job, row, rows);
	struct value *place[3] = { row, position.number, position.part };
	struct value *token[2] = { position.step, position.token };
	const int64_t pitch[3] = { engine->pes * rows, c->wide, c->narrow };
	const int64_t each[2] = { engine->tokens_per_cycle, 1 };
	struct value *number_of = make_address(p, 3, place, pitch, 0);
	position.inside = make_below(p, number_of, outputs);
	if (c->has_start_offsets)
		position.inside = make_and(p, position.inside,
		        make_below(p, make_unshared_index(p, job->start - 1), number_of));
	if (engine->tokens_per_cycle > 1)
		position.inside = make_and(p, position.inside,
		        make_below(p, make_address(p, 2, token, each, 0), tokens));
	push_to_job(engine, p, c, &position, result_word(engine, p, c, &position, c->wide));
	process_close(p, loops);
}

bool engine_has_narrow_results(const struct engine *engine)
{
	for (int i = 0; i < (int)engine->jobs.count; i++)
		if (stream_lanes(engine->jobs.data[i].op->result[0]->type) < engine->pes_per_pair)
			return true;
	return false;
}

/* lanes: of all jobs' words; 0: each job has its own width */
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
	        ? make_array(&p, "local_buffer", engine->token_steps_most, engine->real, 1)
	        : NULL;
	engine_each_job(engine, &p, uniform ? collect_uniform : collect_job, &c);
	process_finish(&p);
}
