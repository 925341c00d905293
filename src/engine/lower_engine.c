/* Contractions as phases of one unit: the processes around its slices.
 * All that the unit reads from memory lies in the order of use, so its loaders run ahead,
 * whatever the phase at hand still waits for.  What a phase takes and gives passes through FIFOs
 * that hold all of it, and phases come in an order in which none waits for a later one
 * (engine_job_order.c); so the unit adds no cycle of waits. */
#include "ir/workload.h"
#include "engine/engine.h"

#define LINK_FIFO_WORDS 32  /* words of the FIFOs inside: one LUT a bit */
#define SUM_FIFO_WORDS 512  /* words of sums: so deep is a block RAM */
#define OTHERS_LEAST 2      /* adapters beside the slices': of scales and of small operands */
#define GROUP_FIFO_WORDS 16 /* of those of groups: half a LUT a bit */

struct process engine_process(const struct engine *engine, const char *name)
{
	struct process p = process_new(engine->design, name);
	/* its next input may depend on what is in its pipeline */
	attr_set(p.module, p.function, KEY_STREAM_STYLE, attr_string(p.module, "flp"));
	return p;
}

struct process engine_datapath(const struct engine *engine, const char *name)
{
	struct process p = engine_process(engine, name);
	if (!engine->streams_groups)
		attr_set(p.module, p.function, KEY_STREAM_REWIND, attr_unit(p.module));
	return p;
}

struct value *engine_loop(struct process *p, int64_t trips, const struct run_time_trip *run_time)
{
	return run_time ? process_loop_run_time(p, trips, run_time)
	                : process_loop_value(p, make_unshared_index(p, trips));
}

int engine_job_loops(const struct engine *engine, struct process *p, const struct job *job,
        struct value *counter[ENGINE_LOOPS])
{
	const int64_t trip[ENGINE_LOOPS] = { job->blocks, job->contract.groups, job->block,
		job->words };
	int loops = engine->words_most > 1 ? ENGINE_LOOPS : ENGINE_LOOPS - 1;
	counter[ENGINE_LOOPS - 1] = NULL;
	for (int i = 0; i < loops; i++) {
		counter[i] =
		        engine_loop(p, trip[i], i == ENGINE_LOOPS - 1 ? job->words_run_time : NULL);
		if (!i)
			process_mark(p, KEY_STREAM_DATAPATH);
	}
	process_pipeline(p, 1);
	return loops;
}

const struct run_time_trip *engine_token_run_time(
        struct process *p, const struct job *job, int64_t most)
{
	struct run_time_trip *trip =
	        job->run_time.each ? ARENA_NEW(p->module->arena, struct run_time_trip) : NULL;
	if (trip)
		*trip = (struct run_time_trip){
			.symbol = job->run_time.each->symbol, .tile = 1, .most = most
		};
	return trip;
}

struct value *engine_token_loop(
        const struct engine *engine, struct process *p, const struct job *job)
{
	bool few = !job->run_time.each && job->tile < engine->tokens_per_cycle;
	return engine_loop(p, few ? job->tile : engine->tokens_per_cycle,
	        engine_token_run_time(p, job, engine->tokens_per_cycle));
}

static int64_t rows_of_pe(int64_t rows, int last_row_pes, int pe)
{
	return rows - (pe >= last_row_pes);
}

int64_t job_last_block_rows(const struct job *job, int pe)
{
	return rows_of_pe(job->rows, job->last_row_pes, pe);
}

bool job_lacks_first_row(const struct engine *engine, const struct job *job, int pe)
{
	return pe >= 0 &&
	        engine_loader_end_port(engine, pe / engine->pes_per_port) * engine->pes_per_port <=
	        job->start;
}

static bool some_lack_row(const struct engine *engine, int pe)
{
	bool some = false;
	for (int i = 0; i < (int)engine->jobs.count; i++)
		some |= job_lacks_first_row(engine, &engine->jobs.data[i], pe);
	return some;
}

/* Has some phase a last block of fewer rows than the others there? */
static bool has_short_rows(const struct engine *engine, int pe)
{
	for (int i = 0; i < (int)engine->jobs.count; i++)
		if (job_last_block_rows(&engine->jobs.data[i], pe) < engine->jobs.data[i].block)
			return true;
	return false;
}

static struct value *row_below_end(const struct engine *engine, struct process *p,
        const struct job *job, struct value *const *counter, int pe)
{
	struct value *rows = NULL;
	for (int i = 0; i < engine->end_count_most; i++) {
		const struct job_end *end = &job->end[i < job->end_count ? i : 0];
		struct value *last =
		        make_equal_values(p, counter[0], make_unshared_index(p, end->blocks - 1));
		struct value *own =
		        make_unshared_index(p, rows_of_pe(end->rows, end->last_row_pes, pe));
		rows = make_select(p, last, own, rows ? rows : make_unshared_index(p, job->block));
	}
	return make_below(p, counter[2], rows);
}

static struct value *row_from_start(const struct engine *engine, struct process *p,
        const struct job *job, struct value *const *counter, int pe)
{
	const int64_t one[2] = { 1, 1 };
	struct value *lacks = make_unshared_index(p, job_lacks_first_row(engine, job, pe));
	struct value *place[2] = { counter[0], counter[2] };
	return make_below(p, lacks, make_address(p, 2, place, one, 1));
}

/* Some slices have no words of some rows between phases of a block. */
static struct value *row_outside_gaps(const struct engine *engine, struct process *p,
        const struct job *job, struct value *run_time, struct value *const *counter, int pe)
{
	int64_t gap[GAPS_MOST];
	int gaps = engine_row_gaps(engine, job->stack, pe, gap);
	for (int i = 0; pe >= 0 && i < engine->gaps_most; i++)
		run_time = make_and(p, run_time,
		        make_not_equal(p, counter[2],
		                make_unshared_index(p, i < gaps ? gap[i] : engine->block_most)));
	return run_time;
}

struct value *engine_pop_word(const struct engine *engine, struct process *p, const struct job *job,
        struct value *const *counter, int pe, struct value *fifo)
{
	int first = engine_loader_first_pe(engine, pe);
	struct value *token = counter[ENGINE_LOOPS - 1];
	struct value *run_time = make_and(p, token ? make_equal(p, token, 0) : NULL,
	        has_short_rows(engine, first) ? row_below_end(engine, p, job, counter, first)
	                                      : NULL);
	bool lacks = some_lack_row(engine, first);
	if (lacks)
		run_time = make_and(p, run_time, row_from_start(engine, p, job, counter, first));
	run_time = row_outside_gaps(engine, p, job, run_time, counter, first);
	struct value *word = make_pop(p, run_time, fifo);
	/* of the rows beyond and before, nothing is used */
	if (lacks || engine->gaps_most || (run_time && !token))
		attr_set(p->module, word->def, KEY_STREAM_VALUE_NOT_HELD, attr_unit(p->module));
	return word;
}

struct value *engine_fifo(
        const struct engine *engine, const char *name, const struct type *word, int64_t depth)
{
	engine->design->layers = engine->jobs.data[0].layers;
	struct value *fifo = design_fifo(engine->design, name, word, depth);
	engine->design->layers = 0;
	return fifo;
}

int engine_pe_pairs(const struct engine *engine)
{
	return engine->pes / engine->pes_per_pair;
}

/* Each chain has its own where tokens of many tiles are counted and nearly every adapter is a
 * slice's: a pair of slices takes an f32 for each of its tokens, eight in all, and would take
 * their wires from the die on which scales are multiplied. */
int engine_scalers(const struct engine *engine)
{
	const struct platform *platform = engine->design->context->platform;
	bool per_chain = engine_has_run_time_tiles(engine->design->source->region[0]) &&
	        platform->dies > 1 && engine->ports + OTHERS_LEAST >= platform->ports;
	return per_chain
	        ? (engine_pe_pairs(engine) + engine->pairs_per_chain - 1) / engine->pairs_per_chain
	        : 1;
}

struct scaler_range engine_scaler_range(const struct engine *engine, int scaler)
{
	int pairs = engine_pe_pairs(engine);
	int first = scaler * engine->pairs_per_chain;
	int end = first + engine->pairs_per_chain;
	return engine_scalers(engine) > 1
	        ? (struct scaler_range){ first, end < pairs ? end : pairs }
	        : (struct scaler_range){ 0, pairs };
}

int64_t job_lanes(const struct job *job)
{
	return stream_lanes(job->op->result[0]->type);
}

int64_t job_outputs(const struct engine *engine, const struct job *job)
{
	return job->contract.outputs + job->start - job->part_first * engine->pes;
}

int job_number(const struct engine *engine, const struct job *job)
{
	int number = 0;
	while (engine->jobs.data[number].op != job->op)
		number++;
	return number;
}

int64_t engine_widest_result(const struct engine *engine)
{
	int64_t widest = 0;
	for (int i = 0; i < (int)engine->jobs.count; i++)
		widest = job_lanes(&engine->jobs.data[i]) > widest
		        ? job_lanes(&engine->jobs.data[i])
		        : widest;
	return widest;
}

int64_t engine_rows_per_period(const struct engine *engine, int64_t lanes)
{
	int64_t rows = 1;
	while (rows * engine->pes % lanes)
		rows++;
	return rows;
}

struct value *engine_channel(
        struct process *p, struct value **known, struct value *stream, const char *name)
{
	*known = *known ? *known : process_argument(p, stream_fifo(p->design, stream), name);
	return *known;
}

struct feed {
	int chains, scalers;
	struct value **chain, **scale;       /* channels of the process */
	struct value **group, **group_scale; /* [phases] */
	/* arrays: those of a tile, for other parts of a contraction; NULL: none has any */
	struct value *buffer, *scale_buffer;
};

/* What comes through a channel, or was kept of it. */
static struct value *pop_or_replay(struct process *p, bool replays, bool records,
        struct value **known, struct value *stream, const char *name, struct value *buffer,
        struct value *place)
{
	struct value *word = replays ? make_load(p, buffer, place)
	                             : make_pop(p, NULL, engine_channel(p, known, stream, name));
	if (records && !replays)
		make_store(p, word, buffer, place);
	return word;
}

/* The loops of a phase whose tiles are counted stand in several places, and are one datapath. */
static void mark_job(
        const struct engine *engine, struct process *p, const struct job *job, int loops)
{
	struct op *outermost = p->block->parent;
	int number = (int)(job - engine->jobs.data);
	for (; loops > 1; loops--)
		outermost = outermost->parent->parent;
	if (job->run_time.tiles && number < NEST_DATAPATHS_MOST)
		attr_set(
		        p->module, outermost, KEY_STREAM_DATAPATH, attr_integer(p->module, number));
}

static void feed_job(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct feed *feed = context;
	int number = job_number(engine, job);
	const int64_t trip[2] = { job->contract.groups, job->tile };
	const struct run_time_trip *bound[2] = { NULL, job->run_time.each };
	struct value *counter[2] = { NULL };
	int loops = 1;
	if (job->contract.token_symbol)
		loops = process_nest_run_time(p, 2, trip, bound, 1, counter);
	else
		counter[1] = process_loop(p, job->tile * job->contract.groups);
	process_pipeline(p, 1);
	mark_job(engine, p, job, loops);
	const int64_t pitch[2] = { job->tile, 1 };
	bool replays = job->part_first, records = job->part_rows;
	struct value *place = replays || records ? make_address(p, 2, counter, pitch, 0) : NULL;
	struct value *scale = pop_or_replay(p, replays, records, &feed->group_scale[number],
	        job->op->operand[1], "s", feed->scale_buffer, place);
	for (int i = 0; !job->reuses_activations && i < feed->scalers; i++)
		make_push(p, NULL, scale, feed->scale[i]);
	struct value *group = pop_or_replay(p, replays, records, &feed->group[number],
	        job->op->operand[0], "x", feed->buffer, place);
	for (int i = 0; !job->reuses_activations && i < feed->chains; i++)
		make_push(p, NULL, group, feed->chain[i]);
	process_close(p, loops);
}

/* Numbers of a tile that are given again. */
static int64_t replayed_words(const struct engine *engine)
{
	int64_t most = 0;
	for (int i = 0; i < (int)engine->jobs.count; i++) {
		const struct job *job = &engine->jobs.data[i];
		int64_t words = job->part_first ? job->tile * job->contract.groups : 0;
		most = words > most ? words : most;
	}
	return most;
}

static void feed_chains(const struct engine *engine, int chains, struct value *const *chain)
{
	struct process p = engine_process(engine, "feed");
	struct feed feed = { .chains = chains,
		.scalers = engine_scalers(engine),
		.chain = ARENA_ARRAY(p.module->arena, struct value *, chains + 1) };
	feed.scale = ARENA_ARRAY(p.module->arena, struct value *, feed.scalers);
	for (int i = 0; i < feed.scalers; i++)
		feed.scale[i] = process_argument(&p, engine->scales[i],
		        i ? text_format(p.module->arena, "scale%d", i) : "scale");
	feed.group = ARENA_ARRAY(p.module->arena, struct value *, engine->jobs.count);
	feed.group_scale = ARENA_ARRAY(p.module->arena, struct value *, engine->jobs.count);
	for (int i = 0; i < chains; i++)
		feed.chain[i] = process_argument(&p, chain[i],
		        text_format(p.module->arena, "pe%d",
		                i * engine->pairs_per_chain * engine->pes_per_pair));
	int64_t replays = replayed_words(engine);
	feed.buffer = replays ? make_array(&p, "local_buffer", replays, engine->group, 1) : NULL;
	feed.scale_buffer = replays
	        ? make_array(&p, "scale_buffer", replays, type_float(p.module, 32), 1)
	        : NULL;
	engine_each_job(engine, &p, feed_job, &feed);
	process_finish(&p);
}

/* The first set of each chain is fed; the others get what the one before them hands on. */
static void add_feed(const struct engine *engine)
{
	struct value **chain =
	        ARENA_ARRAY(engine->design->module->arena, struct value *, engine_pe_pairs(engine));
	struct value *pairs;
	int chains = 0;
	for (int i = 0; i < engine_pe_pairs(engine); i += engine->pairs_per_chain)
		chain[chains++] = engine->input[i];
	if (engine->tokens_per_dsp == 1) {
		feed_chains(engine, chains, chain);
		return;
	}
	pairs = engine_fifo(engine, "s_token_pairs", engine->group, GROUP_FIFO_WORDS);
	feed_chains(engine, 1, &pairs);
	lower_operand_correction(engine, pairs, chains, chain);
}

struct scales {
	/* words: [dealt], each with a scale for as many slices */
	struct value **words, **out, **buffer, *in;
	int pairs; /* sets of them */
};

/* An f16 or f32 for each slice of a set. */
static const struct type *word_of(const struct engine *engine, int bits)
{
	const struct type *scalar = type_float(engine->design->module, bits);
	const int64_t lanes = engine->pes_per_pair;
	return lanes > 1 ? type_shaped(engine->design->module, TYPE_VECTOR, 1, &lanes, scalar)
	                 : scalar;
}

/* Those of a set: neighbours in a word, or one of each word, since these are dealt out as the
 * slices' are. */
static struct value *scales_of(
        const struct engine *engine, struct process *p, struct value *const *word, int pair)
{
	struct value *part[PES_PER_PORT_MOST];
	const struct type *half = word_of(engine, 16);
	if (engine->pes_per_port == 1 || engine->pes_per_pair == 1)
		return make_op(p, OP_SPLIT_LANES, half, 2,
		        (struct value *[2]){ word[pair % engine->pes_per_port],
		                make_index(p, pair / engine->pes_per_port) });
	for (int i = 0; i < engine->pes_per_port; i++)
		part[i] = make_op(p, OP_SPLIT_LANES, half->element, 2,
		        (struct value *[2]){ word[i], make_index(p, pair) });
	return make_op(p, OP_JOIN_LANES, half, engine->pes_per_port, part);
}

static void scale_job(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct scales *scales = context;
	struct value *counter[ENGINE_LOOPS];
	const struct type *real = word_of(engine, 32);
	struct value **own =
	        ARENA_ARRAY(p->module->arena, struct value *, engine->tokens_per_cycle);
	struct value **product =
	        ARENA_ARRAY(p->module->arena, struct value *, engine->tokens_per_cycle);
	if (!engine->streams_groups)
		engine_load_first_group(engine, p, job, scales->in, scales->buffer, NULL);
	int loops = engine_job_loops(engine, p, job, counter);
	struct value *word[PES_PER_PORT_MOST];
	struct value *place =
	        engine->streams_groups ? NULL : engine_group_address(engine, p, job, counter);
	for (int i = 0; i < engine->pes_per_port; i++)
		word[i] = engine_pop_word(engine, p, job, counter, -1, scales->words[i]);
	for (int q = 0; q < engine->tokens_per_cycle; q++) {
		own[q] = engine->streams_groups
		        ? engine_stream_group(p, counter, scales->in, scales->buffer[q], NULL)
		        : make_load(p, scales->buffer[q], place);
		own[q] = engine->pes_per_pair > 1 ? make_op(p, OP_BROADCAST, real, 1, &own[q])
		                                  : own[q];
	}
	if (!engine->streams_groups)
		engine_prefetch_group(engine, p, job, counter, scales->in, scales->buffer, NULL);
	for (int i = 0; i < scales->pairs; i++) {
		struct value *lanes = scales_of(engine, p, word, i);
		struct value *wide = make_op(p, OP_EXTF, real, 1, &lanes);
		for (int q = 0; q < engine->tokens_per_cycle; q++)
			product[q] =
			        make_op(p, OP_MULF, real, 2, (struct value *[2]){ own[q], wide });
		make_push(p, NULL,
		        engine->tokens_per_cycle > 1 ? make_op(p, OP_JOIN_LANES, engine->real,
		                                               engine->tokens_per_cycle, product)
		                                     : product[0],
		        scales->out[i]);
	}
	process_close(p, loops);
}

static void add_scaler(const struct engine *engine, struct value *const *words, int number)
{
	struct process p = engine_datapath(engine, "scale");
	struct scaler_range of = engine_scaler_range(engine, number);
	struct scales scales = { .words = ARENA_ARRAY(
		                         p.module->arena, struct value *, engine->pes_per_port),
		.pairs = of.end - of.first,
		.out = ARENA_ARRAY(p.module->arena, struct value *, of.end - of.first) };
	for (int i = 0; i < engine->pes_per_port; i++)
		scales.words[i] = process_argument(
		        &p, words[i], i ? text_format(p.module->arena, "w%d", i) : "w");
	for (int i = of.first; i < of.end; i++)
		scales.out[i - of.first] = process_argument(&p, engine->scale[i],
		        text_format(p.module->arena, "pe%d", i * engine->pes_per_pair));
	scales.buffer = engine_group_buffers(engine, &p, "scales", type_float(p.module, 32));
	scales.in = process_argument(&p, engine->scales[number], "s");
	engine_each_pipeline(engine, &p, scale_job, &scales);
	process_finish(&p);
}

static struct value **fifos(
        const struct engine *engine, const char *name, const struct type *word, int64_t depth)
{
	struct value **fifo =
	        ARENA_ARRAY(engine->design->module->arena, struct value *, engine_pe_pairs(engine));
	for (int i = 0; i < engine_pe_pairs(engine); i++)
		fifo[i] = engine_fifo(engine, name, word, depth);
	return fifo;
}

/* Does a phase sum up its rows in fewer cycles than they are collected in, while the next
 * layer's phases do not wait for its last one? */
static bool sums_outrun(const struct engine *engine)
{
	bool outrun = false;
	for (size_t i = 0; i < engine->jobs.count; i++) {
		const struct job *job = &engine->jobs.data[i];
		int64_t collected = job->tile * engine->pes / job_lanes(job);
		outrun |= job->layer_overlap && job->contract.groups * job->words < collected;
	}
	return outrun;
}

/* Words of sums that wait to be collected: a block's, or more, so that the unit goes on with a
 * phase of longer sums. */
static int64_t sum_fifo_depth(const struct engine *engine)
{
	int64_t block = engine->words_most * engine->block_most;
	if (engine->words_most <= 1)
		return LINK_FIFO_WORDS;
	return block < SUM_FIFO_WORDS && sums_outrun(engine) ? SUM_FIFO_WORDS : block;
}

/* A slice gives one row of a word of results at most. */
static bool has_pes_for_results(const struct engine *engine)
{
	struct design *design = engine->design;
	int64_t lanes = engine_widest_result(engine);
	if (lanes <= engine->pes)
		return true;
	design->context->engine_ports_left = engine->ports;
	diag_error(design->module->diag, NOWHERE,
	        "with the memory ports that remain, the matmul engine has %d processing elements, "
	        "fewer than the %lld lanes of its result",
	        engine->pes, (long long)lanes);
	return diag_note(design->module->diag,
	        "--engine-pes %d, or a larger --on-chip-memory, so that fewer buffers are spilled "
	        "to external memory",
	        engine->ports);
}

bool lower_engine(struct design *design, const struct block *body)
{
	struct module *module = design->module;
	struct engine engine = { .design = design };
	plan_engine(&engine, body);
	if (!engine.jobs.count)
		return true;
	if (!has_pes_for_results(&engine))
		return false;
	for (int i = 0; i < (int)engine.jobs.count; i++)
		if (engine.jobs.data[i].layer_overlap)
			attr_set(module, design->function, KEY_STREAM_LAYER_OVERLAP,
			        attr_unit(module));
	int others = design->block->arguments;
	const struct contract *first = &engine.jobs.data[0].contract;
	engine.group = type_shaped(module, TYPE_VECTOR, 1, &first->size, type_integer(module, 8));
	engine.input = ARENA_ARRAY(module->arena, struct value *, engine_pe_pairs(&engine));
	for (int i = 0; i < engine_pe_pairs(&engine); i++)
		engine.input[i] = i % engine.pairs_per_chain % engine.pairs_per_process
		        ? NULL
		        : engine_fifo(&engine, "s_groups", engine.group, GROUP_FIFO_WORDS);
	const int64_t numbers = engine.pes_per_pair * engine.tokens_per_cycle;
	engine.real = numbers > 1
	        ? type_shaped(module, TYPE_VECTOR, 1, &numbers, type_float(module, 32))
	        : type_float(module, 32);
	engine.scale = fifos(&engine, "s_scale", engine.real, LINK_FIFO_WORDS);
	engine.scales = ARENA_ARRAY(module->arena, struct value *, engine_scalers(&engine));
	for (int i = 0; i < engine_scalers(&engine); i++)
		engine.scales[i] =
		        engine_fifo(&engine, "s_scales", type_float(module, 32), LINK_FIFO_WORDS);
	engine.sums = fifos(&engine, "s_sums", engine.real, sum_fifo_depth(&engine));
	engine.collected = engine.serializes_tokens
	        ? fifos(&engine, "s_token_sums", word_of(&engine, 32), LINK_FIFO_WORDS)
	        : engine.sums;
	lower_weight_loaders(&engine);
	bundle_ports(design, others);
	add_feed(&engine);
	for (int i = 0; i < engine_scalers(&engine); i++)
		add_scaler(&engine, &engine.scale_words[i * engine.pes_per_port], i);
	for (int i = 0; i < engine_pe_pairs(&engine);)
		i = lower_pe(&engine, i);
	for (int i = 0; engine.serializes_tokens && i < engine_pe_pairs(&engine);
	        i += engine.pairs_per_process)
		lower_token_serializer(&engine, i);
	lower_result_collector(&engine);
	return true;
}
