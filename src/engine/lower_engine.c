/* Makes the processes of the matmul engine: the feed of activations, the multipliers of scales, and
 * by other files of this folder loaders, PEs and the collector.
 * All that the engine reads from memory is packed in the order of use, so its loaders prefetch,
 * whatever the current job waits for. Activations and results pass through FIFOs that hold all of a
 * job, and no job waits for a later one (engine_job_order.c); so the engine adds no wait cycles. */
#include "ports/lower_ports.h"
#include "engine/lower_engine.h"
#include "ir/workload.h"
#include "engine/engine.h"

#define LINK_FIFO_WORDS 32  /* depth of FIFOs inside of the engine: one LUT per bit */
#define SUM_FIFO_WORDS 512  /* depth of FIFOs of sums: that of a block RAM */
#define OTHERS_LEAST 2      /* AXI adapters besides the PEs': of scales and of small operands */
#define GROUP_FIFO_WORDS 16 /* depth of FIFOs of groups: half a LUT per bit */

struct process engine_process(const struct engine *engine, const char *name)
{
	struct process p = process_new(engine->design, name);
	/* a flushing pipeline: its next input may depend on results that are still in it */
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

struct job_nest engine_open_job(
        const struct engine *engine, struct process *p, const struct job *job)
{
	const int64_t trip[ENGINE_LOOPS] = { job->blocks, job->contract.groups, job->block,
		job->token_steps };
	struct job_nest nest = { .engine = engine,
		.p = p,
		.job = job,
		.loops = engine->token_steps_most > 1 ? ENGINE_LOOPS : ENGINE_LOOPS - 1 };
	for (int i = 0; i < nest.loops; i++) {
		nest.counter[i] = engine_loop(
		        p, trip[i], i == ENGINE_LOOPS - 1 ? job->token_steps_run_time : NULL);
		if (!i)
			process_mark(p, KEY_STREAM_DATAPATH);
	}
	process_pipeline(p, 1);
	return nest;
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

static bool some_job_lacks_row(const struct engine *engine, int pe)
{
	bool some = false;
	for (int i = 0; i < (int)engine->jobs.count; i++)
		some |= job_lacks_first_row(engine, &engine->jobs.data[i], pe);
	return some;
}

/* Has some job's last block fewer rows in memory than other blocks for this PE? */
static bool has_short_rows(const struct engine *engine, int pe)
{
	for (int i = 0; i < (int)engine->jobs.count; i++)
		if (job_last_block_rows(&engine->jobs.data[i], pe) < engine->jobs.data[i].block)
			return true;
	return false;
}

static struct value *row_below_end(const struct job_nest *nest, int pe)
{
	struct process *p = nest->p;
	const struct job *job = nest->job;
	struct value *rows = NULL;
	for (int i = 0; i < nest->engine->end_count_most; i++) {
		const struct job_end *end = &job->end[i < job->end_count ? i : 0];
		struct value *last = make_equal_values(
		        p, nest->counter[0], make_unshared_index(p, end->blocks - 1));
		struct value *own =
		        make_unshared_index(p, rows_of_pe(end->rows, end->last_row_pes, pe));
		rows = make_select(p, last, own, rows ? rows : make_unshared_index(p, job->block));
	}
	return make_below(p, nest->counter[2], rows);
}

static struct value *row_from_start(const struct job_nest *nest, int pe)
{
	struct process *p = nest->p;
	const int64_t one[2] = { 1, 1 };
	struct value *lacks =
	        make_unshared_index(p, job_lacks_first_row(nest->engine, nest->job, pe));
	struct value *place[2] = { nest->counter[0], nest->counter[2] };
	return make_below(p, lacks, make_address(p, 2, place, one, 1));
}

/* false in the rows between two jobs of a stack for which memory has no words of this PE */
static struct value *row_outside_gaps(const struct job_nest *nest, struct value *row_valid, int pe)
{
	const struct engine *engine = nest->engine;
	struct process *p = nest->p;
	int64_t gap[GAPS_MOST];
	int gaps = engine_row_gaps(engine, nest->job->stack, pe, gap);
	for (int i = 0; pe >= 0 && i < engine->gaps_most; i++)
		row_valid = make_and(p, row_valid,
		        make_not_equal(p, nest->counter[2],
		                make_unshared_index(p, i < gaps ? gap[i] : engine->block_most)));
	return row_valid;
}

struct value *engine_pop_word(const struct job_nest *nest, int pe, struct value *fifo)
{
	const struct engine *engine = nest->engine;
	struct process *p = nest->p;
	int first = engine_loader_first_pe(engine, pe);
	struct value *token = nest->counter[ENGINE_LOOPS - 1];
	struct value *inside = has_short_rows(engine, first) ? row_below_end(nest, first) : NULL;
	struct value *when = make_and(p, token ? make_equal(p, token, 0) : NULL, inside);
	bool lacks = some_job_lacks_row(engine, first);
	if (lacks)
		when = make_and(p, when, row_from_start(nest, first));
	when = row_outside_gaps(nest, when, first);
	struct value *word = make_pop(p, when, fifo);
	/* the value of rows without words is not used */
	if (lacks || engine->gaps_most || (when && !token))
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

/* One process multiplies scales, or one per chain. The latter with dynamic tiles on several dies,
 * when nearly every adapter is a PE's: a pair takes an f32 for each of its tokens per cycle, and
 * these wires would all leave the die of a single process. */
int engine_scalers(const struct engine *engine)
{
	const struct platform *platform = engine->design->context->platform;
	bool per_chain = engine->workload == WORKLOAD_TILED_COUNTED_TOKENS && platform->dies > 1 &&
	        engine->ports + OTHERS_LEAST >= platform->ports;
	return per_chain
	        ? (engine_pe_pairs(engine) + engine->pairs_per_chain - 1) / engine->pairs_per_chain
	        : 1;
}

struct scaler_range engine_scaler_range(const struct engine *engine, int scaler)
{
	int pairs = engine_pe_pairs(engine);
	int first = scaler * engine->pairs_per_chain;
	int end = first + engine->pairs_per_chain;
	if (engine_scalers(engine) <= 1)
		return (struct scaler_range){ 0, pairs };
	return (struct scaler_range){ first, end < pairs ? end : pairs };
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
	for (int i = 0; i < (int)engine->jobs.count; i++) {
		int64_t lanes = job_lanes(&engine->jobs.data[i]);
		widest = lanes > widest ? lanes : widest;
	}
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

/* An operand of all jobs that the feed passes to the PEs: groups, or their scales. */
struct feed_source {
	const char *name;
	/* operand of the contraction */
	int operand;
	/* [jobs] channels; NULL until engine_channel is asked for one */
	struct value **channel;
	/* array of the words of a tile, for later parts of a job; NULL: no job has parts */
	struct value *buffer;
};

struct feed {
	int chains, scalers;
	struct value **chain, **scale; /* channels of the process */
	struct value **sum;            /* the same for sums of groups; NULL: nobody needs them */
	struct feed_source group, group_scale;
};

/* Σ x of a group, in i32 */
static struct value *group_sum(struct process *p, struct value *group)
{
	const struct type *whole = type_integer(p->module, 32);
	const int64_t lanes = type_lanes(group->type);
	struct value *wide = make_op(
	        p, OP_EXTSI, type_shaped(p->module, TYPE_VECTOR, 1, &lanes, whole), 1, &group);
	struct value *sum = make_op(p, OP_TREE, whole, 1, &wide);
	attr_set(p->module, sum->def, KEY_KIND, attr_string(p->module, op_info[OP_ADDI].name));
	return sum;
}

/* pops a word, or reads one that an earlier part of the same contraction has stored */
static struct value *pop_or_replay(struct process *p, const struct feed_source *source,
        const struct job *job, int number, struct value *place)
{
	if (job->part_first)
		return make_load(p, source->buffer, place);
	struct value *channel = engine_channel(
	        p, &source->channel[number], job->op->operand[source->operand], source->name);
	struct value *word = make_pop(p, NULL, channel);
	if (job->part_rows)
		make_store(p, word, source->buffer, place);
	return word;
}

/* With dynamic tiles the loops of a job stand in several places: the mark makes them one
 * datapath. */
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
		loops = process_nest_run_time(
		        p, (struct loop_bounds){ 2, trip, bound }, 1, counter);
	else
		counter[1] = process_loop(p, job->tile * job->contract.groups);
	process_pipeline(p, 1);
	mark_job(engine, p, job, loops);
	const int64_t pitch[2] = { job->tile, 1 };
	struct value *place = NULL;
	if (job->part_first || job->part_rows)
		place = make_address(p, 2, counter, pitch, 0);
	/* Words are sent after all that an iteration waits for: what they cause comes back. */
	struct value *scale = pop_or_replay(p, &feed->group_scale, job, number, place);
	struct value *group = pop_or_replay(p, &feed->group, job, number, place);
	for (int i = 0; !job->reuses_activations && i < feed->scalers; i++)
		make_push(p, NULL, scale, feed->scale[i]);
	struct value *sum = feed->sum && !job->reuses_activations ? group_sum(p, group) : NULL;
	for (int i = 0; sum && i < feed->scalers; i++)
		make_push(p, NULL, sum, feed->sum[i]);
	for (int i = 0; !job->reuses_activations && i < feed->chains; i++)
		make_push(p, NULL, group, feed->chain[i]);
	process_close(p, loops);
}

/* the most words that later parts of a job replay */
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
		feed.scale[i] = process_argument(&p, engine->activation_scales[i],
		        i ? text_format(p.module->arena, "scale%d", i) : "scale");
	if (engine->activation_sums)
		feed.sum = ARENA_ARRAY(p.module->arena, struct value *, feed.scalers);
	for (int i = 0; feed.sum && i < feed.scalers; i++)
		feed.sum[i] = process_argument(&p, engine->activation_sums[i],
		        i ? text_format(p.module->arena, "sum%d", i) : "sum");
	feed.group = (struct feed_source){ .name = "x",
		.operand = 0,
		.channel = ARENA_ARRAY(p.module->arena, struct value *, engine->jobs.count) };
	feed.group_scale = (struct feed_source){ .name = "s",
		.operand = 1,
		.channel = ARENA_ARRAY(p.module->arena, struct value *, engine->jobs.count) };
	for (int i = 0; i < chains; i++)
		feed.chain[i] = process_argument(&p, chain[i],
		        text_format(p.module->arena, "pe%d",
		                i * engine->pairs_per_chain * engine->pes_per_pair));
	int64_t replays = replayed_words(engine);
	if (replays) {
		feed.group.buffer = make_array(&p, "local_buffer", replays, engine->group, 1);
		feed.group_scale.buffer =
		        make_array(&p, "scale_buffer", replays, type_float(p.module, 32), 1);
	}
	engine_each_job(engine, &p, feed_job, &feed);
	process_finish(&p);
}

/* The feed sends groups to the first pair of each chain; a process passes them on to the next. */
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
	/* channels: [pes_per_port] words with a scale per port each; [pairs] products */
	struct value **words, **out;
	struct group_source source;
	int pairs; /* pairs that the process has scales for */
	/* zero points, what becomes of them, and the sums of groups; NULL: there are none */
	struct value **zeros, **corrections;
	struct group_source sums;
};

static const struct type *pair_of(const struct engine *engine, const struct type *scalar)
{
	return vector_of(engine->design->module, scalar, engine->pes_per_pair);
}

/* an f16 or f32 for each PE of a pair */
static const struct type *pair_word(const struct engine *engine, int bits)
{
	return pair_of(engine, type_float(engine->design->module, bits));
}

/* The scales or zero points of a pair: neighbours in one word, or one of each word if the PEs of a
 * pair share a port, since words go to these in rotation. */
static struct value *pair_lanes(
        const struct engine *engine, struct process *p, struct value *const *word, int pair)
{
	struct value *part[PES_PER_PORT_MOST];
	const struct type *scalar = type_scalar(word[0]->type);
	const struct type *own = pair_of(engine, scalar);
	if (engine->pes_per_port == 1 || engine->pes_per_pair == 1)
		return make_op(p, OP_SPLIT_LANES, own, 2,
		        (struct value *[2]){ word[pair % engine->pes_per_port],
		                make_index(p, pair / engine->pes_per_port) });
	for (int i = 0; i < engine->pes_per_port; i++)
		part[i] = make_op(p, OP_SPLIT_LANES, scalar, 2,
		        (struct value *[2]){ word[i], make_index(p, pair) });
	return make_op(p, OP_JOIN_LANES, own, engine->pes_per_port, part);
}

/* [tokens_per_cycle] scales or sums of the current group of activations, for each PE of a pair */
static struct value **group_numbers(
        struct job_nest *nest, const struct group_source *source, struct value *place)
{
	const struct engine *engine = nest->engine;
	struct process *p = nest->p;
	struct value **number =
	        ARENA_ARRAY(p->module->arena, struct value *, engine->tokens_per_cycle);
	for (int q = 0; q < engine->tokens_per_cycle; q++) {
		number[q] = engine->streams_groups ? engine_stream_group(nest, source)
		                                   : make_load(p, source->buffer[q], place);
		if (engine->pes_per_pair > 1)
			number[q] = make_op(
			        p, OP_BROADCAST, pair_of(engine, number[q]->type), 1, &number[q]);
	}
	return number;
}

/* scales of weights times scales of activations, for the tokens of a cycle */
static struct value *scale_products(
        const struct job_nest *nest, struct value *const *own, struct value *lanes)
{
	const struct engine *engine = nest->engine;
	struct process *p = nest->p;
	const struct type *real = pair_word(engine, 32);
	struct value **product =
	        ARENA_ARRAY(p->module->arena, struct value *, engine->tokens_per_cycle);
	struct value *wide = make_op(p, OP_EXTF, real, 1, &lanes);
	for (int q = 0; q < engine->tokens_per_cycle; q++)
		product[q] = make_op(p, OP_MULF, real, 2, (struct value *[2]){ own[q], wide });
	if (engine->tokens_per_cycle == 1)
		return product[0];
	return make_op(p, OP_JOIN_LANES, engine->real, engine->tokens_per_cycle, product);
}

/* zero points times sums of activations, for the tokens of a cycle */
static struct value *zero_products(
        const struct job_nest *nest, struct value *const *sum, struct value *lanes)
{
	const struct engine *engine = nest->engine;
	struct process *p = nest->p;
	const struct type *whole = pair_of(engine, type_integer(p->module, 32));
	struct value **product =
	        ARENA_ARRAY(p->module->arena, struct value *, engine->tokens_per_cycle);
	struct value *wide = make_op(p, OP_EXTSI, whole, 1, &lanes);
	for (int q = 0; q < engine->tokens_per_cycle; q++)
		product[q] = make_op(p, OP_MULI, whole, 2, (struct value *[2]){ sum[q], wide });
	if (engine->tokens_per_cycle == 1)
		return product[0];
	return make_op(p, OP_JOIN_LANES, engine->whole, engine->tokens_per_cycle, product);
}

static void correct_sums(struct job_nest *nest, const struct scales *scales, struct value *place)
{
	const struct engine *engine = nest->engine;
	struct value *word[PES_PER_PORT_MOST];
	for (int i = 0; i < engine->pes_per_port; i++)
		word[i] = engine_pop_word(nest, -1, scales->zeros[i]);
	struct value **sum = group_numbers(nest, &scales->sums, place);
	if (!engine->streams_groups)
		engine_prefetch_group(nest, &scales->sums);
	for (int i = 0; i < scales->pairs; i++)
		make_push(nest->p, NULL,
		        zero_products(nest, sum, pair_lanes(engine, nest->p, word, i)),
		        scales->corrections[i]);
}

static void scale_job(
        const struct engine *engine, struct process *p, const struct job *job, void *context)
{
	const struct scales *scales = context;
	if (!engine->streams_groups)
		engine_load_first_group(engine, p, job, &scales->source);
	if (!engine->streams_groups && scales->zeros)
		engine_load_first_group(engine, p, job, &scales->sums);
	struct job_nest nest = engine_open_job(engine, p, job);
	struct value *word[PES_PER_PORT_MOST];
	struct value *place = engine->streams_groups ? NULL : engine_group_address(&nest);
	for (int i = 0; i < engine->pes_per_port; i++)
		word[i] = engine_pop_word(&nest, -1, scales->words[i]);
	struct value **own = group_numbers(&nest, &scales->source, place);
	if (!engine->streams_groups)
		engine_prefetch_group(&nest, &scales->source);
	for (int i = 0; i < scales->pairs; i++)
		make_push(p, NULL, scale_products(&nest, own, pair_lanes(engine, p, word, i)),
		        scales->out[i]);
	if (scales->zeros)
		correct_sums(&nest, scales, place);
	process_close(p, nest.loops);
}

/* What a scaler needs for zero points. */
static void add_correction(
        const struct engine *engine, struct process *p, struct scales *scales, int number)
{
	struct arena *arena = p->module->arena;
	struct scaler_range of = engine_scaler_range(engine, number);
	scales->zeros = ARENA_ARRAY(arena, struct value *, engine->pes_per_port);
	scales->corrections = ARENA_ARRAY(arena, struct value *, scales->pairs);
	for (int i = 0; i < engine->pes_per_port; i++)
		scales->zeros[i] =
		        process_argument(p, engine->zeros[number * engine->pes_per_port + i],
		                i ? text_format(arena, "z%d", i) : "z");
	for (int i = of.first; i < of.end; i++)
		scales->corrections[i - of.first] = process_argument(p, engine->corrections[i],
		        text_format(arena, "zero%d", i * engine->pes_per_pair));
	scales->sums.buffer = engine_group_buffers(engine, p, "sums", type_integer(p->module, 32));
	scales->sums.number = 1;
	scales->sums.in = process_argument(p, engine->activation_sums[number], "x");
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
		scales.out[i - of.first] = process_argument(&p, engine->scale_products[i],
		        text_format(p.module->arena, "pe%d", i * engine->pes_per_pair));
	scales.source.buffer = engine_group_buffers(engine, &p, "scales", type_float(p.module, 32));
	scales.source.in = process_argument(&p, engine->activation_scales[number], "s");
	if (engine->zeros)
		add_correction(engine, &p, &scales, number);
	engine_each_pipeline(engine, &p, scale_job, &scales);
	process_finish(&p);
}

static struct value **add_pair_fifos(
        const struct engine *engine, const char *name, const struct type *word, int64_t depth)
{
	struct value **fifo =
	        ARENA_ARRAY(engine->design->module->arena, struct value *, engine_pe_pairs(engine));
	for (int i = 0; i < engine_pe_pairs(engine); i++)
		fifo[i] = engine_fifo(engine, name, word, depth);
	return fifo;
}

/* Does a job make a block of sums in fewer cycles than these are collected in, while the next
 * layer's jobs do not wait for its last one? */
static bool sums_outrun(const struct engine *engine)
{
	bool outrun = false;
	for (size_t i = 0; i < engine->jobs.count; i++) {
		const struct job *job = &engine->jobs.data[i];
		int64_t collected = job->tile * engine->pes / job_lanes(job);
		outrun |= job->layer_overlap && job->contract.groups * job->token_steps < collected;
	}
	return outrun;
}

/* Depth of the FIFOs of sums: a block, or more, so that the engine goes on with a job of longer
 * reductions while sums are collected. */
static int64_t sum_fifo_depth(const struct engine *engine)
{
	int64_t block = engine->token_steps_most * engine->block_most;
	if (engine->token_steps_most <= 1)
		return LINK_FIFO_WORDS;
	return block < SUM_FIFO_WORDS && sums_outrun(engine) ? SUM_FIFO_WORDS : block;
}

/* A word of results takes at most one row of each PE. */
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

/* FIFOs of what is subtracted from the sums because of zero points */
static void add_correction_fifos(struct engine *engine)
{
	struct module *module = engine->design->module;
	const struct type *whole = type_integer(module, 32);
	engine->whole = vector_of(module, whole, engine->pes_per_pair * engine->tokens_per_cycle);
	if (!engine->jobs.data[0].contract.zero)
		return;
	engine->corrections =
	        add_pair_fifos(engine, "s_correction", engine->whole, LINK_FIFO_WORDS);
	engine->activation_sums =
	        ARENA_ARRAY(module->arena, struct value *, engine_scalers(engine));
	for (int i = 0; i < engine_scalers(engine); i++)
		engine->activation_sums[i] =
		        engine_fifo(engine, "s_group_sums", whole, LINK_FIFO_WORDS);
}

/* types and FIFOs between the processes of the engine, but for those of weights */
static void add_fifos(struct engine *engine)
{
	struct module *module = engine->design->module;
	const struct contract *first = &engine->jobs.data[0].contract;
	const struct type *scalar = type_float(module, 32);
	engine->group = type_shaped(module, TYPE_VECTOR, 1, &first->size, type_integer(module, 8));
	engine->input = ARENA_ARRAY(module->arena, struct value *, engine_pe_pairs(engine));
	for (int i = 0; i < engine_pe_pairs(engine); i++)
		if (i % engine->pairs_per_chain % engine->pairs_per_process == 0)
			engine->input[i] =
			        engine_fifo(engine, "s_groups", engine->group, GROUP_FIFO_WORDS);
	const int64_t numbers = engine->pes_per_pair * engine->tokens_per_cycle;
	engine->real = numbers > 1 ? type_shaped(module, TYPE_VECTOR, 1, &numbers, scalar) : scalar;
	engine->scale_products = add_pair_fifos(engine, "s_scale", engine->real, LINK_FIFO_WORDS);
	engine->activation_scales =
	        ARENA_ARRAY(module->arena, struct value *, engine_scalers(engine));
	for (int i = 0; i < engine_scalers(engine); i++)
		engine->activation_scales[i] =
		        engine_fifo(engine, "s_scales", scalar, LINK_FIFO_WORDS);
	add_correction_fifos(engine);
	engine->sums = add_pair_fifos(engine, "s_sums", engine->real, sum_fifo_depth(engine));
	engine->collected = engine->serializes_tokens
	        ? add_pair_fifos(engine, "s_token_sums", pair_word(engine, 32), LINK_FIFO_WORDS)
	        : engine->sums;
}

/* all processes of the engine but the loaders */
static void add_processes(const struct engine *engine)
{
	add_feed(engine);
	for (int i = 0; i < engine_scalers(engine); i++)
		add_scaler(engine, &engine->weight_scales[i * engine->pes_per_port], i);
	for (int i = 0; i < engine_pe_pairs(engine);)
		i = lower_pe(engine, i);
	for (int i = 0; engine->serializes_tokens && i < engine_pe_pairs(engine);
	        i += engine->pairs_per_process)
		lower_token_serializer(engine, i);
	lower_result_collector(engine);
}

/* Records what assign_axi_bundles has to know, because main has no contractions any more. */
static void note_engine(struct design *design)
{
	struct module *module = design->module;
	const struct block *body = design->source->region[0];
	struct named items[] = { { key_name(KEY_TOKENS),
		                         attr_integer(module, engine_tokens(body, NULL)) },
		{ key_name(KEY_PES_PER_PORT),
		        attr_integer(module, engine_shape(body).pes_per_port) } };
	attr_set(module, design->function, KEY_STREAM_ENGINE, attr_dictionary(module, 2, items));
}

bool lower_engine(struct design *design, const struct block *body)
{
	struct module *module = design->module;
	struct engine engine = { .design = design, .workload = workload_of(design->source) };
	if (!engine_plan_jobs(&engine, body))
		return false;
	if (!engine.jobs.count)
		return true;
	if (!has_pes_for_results(&engine))
		return false;
	for (int i = 0; i < (int)engine.jobs.count; i++)
		if (engine.jobs.data[i].layer_overlap)
			attr_set(module, design->function, KEY_STREAM_LAYER_OVERLAP,
			        attr_unit(module));
	note_engine(design);
	add_fifos(&engine);
	lower_weight_loaders(&engine);
	add_processes(&engine);
	return true;
}
