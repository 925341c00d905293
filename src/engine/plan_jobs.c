/* Plans the matmul engine: its memory ports, which plan_engine records; and from these its jobs:
 * how many rows the PEs work on at a time, which jobs share activations, loops or blocks, and what
 * PEs hold. */
#include "ports/lower_ports.h"
#include "ir/workload.h"
#include "engine/engine_cost.h"
#include "engine/engine.h"
#include "engine/lower_engine.h"
#include "predict/timing.h"

#define DRAINED 50 /* cycles in which a PE's pipeline drains */
/* percent by which collecting the last block counts, where memory brings words slower than a PE
 * takes them: prefetching goes on meanwhile */
#define MEMORY_WAITS 60
#define PORTS_PER_LOADER 8 /* ports of a loader process, if its loops are many */
/* loaders at most that leave out ports with keys and values: each has loops of its own */
#define STATE_LOADERS_MOST 6
/* pairs of a chain, times the PEs that share a port */
#define PAIRS_PER_CHAIN 6
/* rows between storing the last token of a group and using it */
#define BUFFER_LATENCY_ROWS 4
#define QUERY_PARTS 3 /* parts of queries at most */
/* rows of a PE in each part but the last, at least; the first part has no more */
#define QUERY_ROWS 16
int64_t job_rows_per_pe(const struct engine *engine, const struct job *job)
{
	return (job_outputs(engine, job) + engine->pes - 1) / engine->pes;
}

/* A block has a row for every cycle from reading a sum to having stored it, so that all jobs start
 * an iteration every cycle, and for every token of the next group, which come one per row. Rows
 * that a job lacks are padding. */
int64_t job_block_rows_least(const struct engine *engine, const struct job *job)
{
	int latency = platform_operator(engine->design->context->platform, OP_ADDF,
	                      type_float(engine->design->module, 32))
	                      .latency +
	        ARRAY_UPDATE_CYCLES;
	if (job->reuses_activations)
		return (latency + job->token_steps - 1) / job->token_steps;
	if (job->tile > 1 && job->tile + BUFFER_LATENCY_ROWS > latency)
		return job->tile + BUFFER_LATENCY_ROWS;
	return latency;
}

static void set_last_row_pes(const struct engine *engine, struct job *job, bool exact)
{
	int64_t last = job->contract.outputs % engine->pes;
	job->last_row_pes =
	        (int)(exact && last && job->rows > 1 && !job->part_rows ? last : engine->pes);
}

/* Chooses the block with which a job takes the fewest cycles: those of its words (in the PE, or in
 * memory where that is slower), and those in which the last block is collected, unless other tiles
 * are worked on meanwhile. If a second block would need too many groups held, a single block has
 * all rows. */
static void choose_block(const struct engine *engine, struct job *job)
{
	const struct contract *contract = &job->contract;
	int64_t rows = job->part_rows ? job->part_rows : job_rows_per_pe(engine, job);
	int64_t lanes = stream_lanes(job->op->result[0]->type);
	int64_t best = INT64_MAX;
	const struct platform *platform = engine->design->context->platform;
	double channel_bytes = platform_channel_rate(platform);
	int64_t word_percent = (int64_t)(ENGINE_WORD_BITS / 8 * 100 / channel_bytes);
	int64_t collecting_percent = word_percent > 100 ? MEMORY_WAITS : 100;
	int64_t least = job_block_rows_least(engine, job);
	bool few = engine->streams_groups && rows < least;
	for (int64_t block = least;
	        block <= (least > ENGINE_BLOCK_MOST ? least : ENGINE_BLOCK_MOST); block++) {
		int64_t blocks = (rows + block - 1) / block;
		int64_t words = few ? rows : blocks * block;
		int64_t collecting = job->behind_causal ? 0 : block * engine->pes / lanes;
		int64_t cycles = engine->streams_groups
		        ? words * contract->groups * word_percent + collecting * collecting_percent
		        : words * contract->groups + collecting;
		if (cycles >= best)
			continue;
		best = cycles;
		job->block = block;
		job->blocks = blocks;
	}
	/* jobs of one token, which wait for memory: no words for padding */
	bool few_words = engine->streams_groups || job->run_time.tiles;
	job->rows = few_words ? rows - (job->blocks - 1) * job->block : job->block;
	if (job->tile > 1 && job->blocks > 1 &&
	        (contract->single_block ||
	                engine_single_block(
	                        (double)rows, contract->groups, (double)job->token_steps))) {
		job->block = rows > least ? rows : least;
		job->rows = job->block;
		job->blocks = 1;
	}
	set_last_row_pes(
	        engine, job, few_words && (job->blocks - 1) * job->block + job->rows == rows);
}

/* A job of a stack has exactly its rows; the last one adds padding, where the whole stack has
 * too few. */
static void choose_stacked(const struct engine *engine, int i)
{
	struct job *job = &engine->jobs.data[i];
	job->blocks = 1;
	job->block = job->rows = job_rows_per_pe(engine, job);
	job->reuses_activations = job->rows_stacked;
	set_last_row_pes(engine, job, true);
	int first = i;
	while (engine->jobs.data[first].rows_stacked)
		first--;
	if (engine_stack_end(engine, i) > i + 1)
		return;
	int64_t rows = engine_stack_rows(engine, first);
	int64_t least = job_block_rows_least(engine, job);
	job->block += rows < least ? least - rows : 0;
}

/* Jobs of the same activations share loops, in blocks of as many rows, if that adds no padding. */
static void join_job(const struct job *before, struct job *job)
{
	int64_t rows = job->blocks * job->block;
	int64_t blocks = (rows + before->block - 1) / before->block;
	job->shares_pipeline = job->reuses_activations && !job->contract.token_symbol &&
	        job->token_steps == before->token_steps &&
	        job->contract.groups == before->contract.groups && blocks * before->block <= rows;
	if (!job->shares_pipeline)
		return;
	job->block = job->rows = before->block;
	job->blocks = blocks;
}

/* The same for one token: the last block of each job may have fewer rows, and padding may cost as
 * much as the pipeline's drain that it saves. */
static void join_stream(struct job *before, struct job *job, int pipeline_jobs)
{
	int64_t rows = (job->blocks - 1) * job->block + job->rows;
	int64_t blocks = (rows + before->block - 1) / before->block;
	int64_t more = (blocks * before->block - job->blocks * job->block) * job->contract.groups;
	job->shares_pipeline = job->reuses_activations = job->contract.same_input &&
	        job->contract.groups == before->contract.groups && more <= DRAINED &&
	        pipeline_jobs < JOB_ENDS_MOST;
	if (!job->shares_pipeline)
		return;
	job->block = before->block;
	job->blocks = blocks;
	job->rows = rows - (blocks - 1) * before->block;
}

/* Rows of a PE in a part of queries that would be one block: few in the first, half of the rest in
 * others, in whole words of results. 0: all that are left. */
static int64_t rows_of_part(const struct engine *engine, const struct job *job)
{
	int64_t rows = job_rows_per_pe(engine, job);
	int64_t period = engine_rows_per_period(engine, engine_widest_result(engine));
	int64_t least = job_block_rows_least(engine, job);
	int64_t part = job->part_first ? (rows + 1) / 2 : 1;
	part = part < QUERY_ROWS ? QUERY_ROWS : part;
	part = part < least ? least : part;
	part = (part + period - 1) / period * period;
	return part < rows ? part : 0;
}

static void insert_job(struct engine *engine, int at, struct job job)
{
	VEC_PUSH(engine->design->module->arena, &engine->jobs, job);
	for (int i = (int)engine->jobs.count - 1; i > at; i--)
		engine->jobs.data[i] = engine->jobs.data[i - 1];
	engine->jobs.data[at] = job;
}

static bool is_of_stack(const struct engine *engine, int i)
{
	return engine->jobs.data[i].rows_stacked || engine_stack_end(engine, i) > i + 1;
}

/* The first part precedes values, which attention needs next; the other parts follow them. */
static void split_queries(struct engine *engine)
{
	for (int i = 0; i < (int)engine->jobs.count; i++) {
		struct job *job = &engine->jobs.data[i];
		struct job rest = *job;
		if (is_of_stack(engine, i) || !job->queries || job->part_first ||
		        !engine_single_block((double)job_rows_per_pe(engine, job),
		                job->contract.groups, (double)job->token_steps))
			continue;
		int at = i + 1;
		while (at < (int)engine->jobs.count && engine->jobs.data[at].contract.same_input)
			at++;
		rest.contract.same_input = true;
		for (int part = 0;
		        part < QUERY_PARTS - 1 && rows_of_part(engine, part ? &rest : job);
		        part++) {
			struct job *before =
			        part ? &engine->jobs.data[at - 1] : &engine->jobs.data[i];
			before->part_rows = rows_of_part(engine, before);
			rest.part_first += before->part_rows;
			insert_job(engine, at++, rest);
		}
	}
}

/* dynamic bound of job.token_steps: words of the tokens that a tile has */
static const struct run_time_trip *token_steps_run_time(struct arena *arena,
        const struct launch_tokens *run_time, int tokens_per_cycle, int64_t words)
{
	struct run_time_trip *trip = run_time->each ? ARENA_NEW(arena, struct run_time_trip) : NULL;
	if (trip)
		*trip = (struct run_time_trip){
			.symbol = run_time->each->symbol, .tile = tokens_per_cycle, .most = words
		};
	return trip;
}

static void collect_jobs(struct engine *engine, const struct block *block, int64_t layers)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			collect_jobs(engine, op->region[0],
			        attr_get(op->operand[1]->def, KEY_VALUE)->integer);
		if (op->code != OP_CONTRACT)
			continue;
		struct job job = { .op = op, .layers = layers };
		INVARIANT(engine->design->module->guard, contract_of(op, &job.contract),
		        "a contraction whose operands do not fit together");
		VEC_PUSH(engine->design->module->arena, &engine->jobs, job);
	}
}

/* May PEs hold the groups of a tile for later jobs of the same activations, and not only for the
 * job's own blocks? */
static bool may_reuse_groups(const struct job *job)
{
	return job->tile > 1 && !job->contract.token_symbol &&
	        !engine_single_block(1, job->contract.groups, (double)job->token_steps);
}

static void count_gaps(struct engine *engine)
{
	int64_t row[GAPS_MOST];
	for (int first = 0; first < (int)engine->jobs.count;
	        first = engine_stack_end(engine, first))
		for (int pe = 0; pe < engine->pes; pe++) {
			int gaps = engine_row_gaps(engine, first, pe, row);
			engine->gaps_most = gaps > engine->gaps_most ? gaps : engine->gaps_most;
		}
}

/* blocks of all jobs that use the groups which one of them has popped */
static void count_consumer_blocks(struct engine *engine)
{
	struct job *job = engine->jobs.data;
	for (int first = 0, end, count = (int)engine->jobs.count; first < count; first = end) {
		int64_t consumer_blocks = 0;
		for (end = first; end == first || (end < count && job[end].reuses_activations);
		        end++)
			consumer_blocks += job[end].rows_stacked ? 0 : job[end].blocks;
		for (int i = first; i < end; i++)
			job[i].consumer_blocks = consumer_blocks;
	}
}

/* Groups of a tile to hold: all, if a second block uses them, else two. With one token per cycle
 * groups of one token lie in consecutive words. */
static int64_t group_slots_of(const struct engine *engine, const struct job *job)
{
	if (engine->tokens_per_cycle > 1 && job->consumer_blocks == 1)
		return 2;
	return job->tile > 1
	        ? job->contract.groups
	        : (job->contract.groups + engine->token_steps_most - 1) / engine->token_steps_most;
}

/* words of weights of a port, if every port of the board had a PE */
static int64_t estimate_pe_words(const struct engine *engine)
{
	int64_t words = 0;
	for (int i = 0; i < (int)engine->jobs.count; i++) {
		const struct job *job = &engine->jobs.data[i];
		words += job->contract.groups * job->contract.outputs *
		        (job->layers ? job->layers : 1);
	}
	return words / engine->design->context->platform->ports;
}

/* With dynamic tiles a loader's loops and their bounds take as many LUTs as a PE's scaling, so
 * one loader serves several ports. Its ports advance in step, so one that also brings rows of
 * the KV cache holds up the others. If some ports bring such rows, each group of these that is
 * read in the same cycle has a loader, and one more serves the first ports, which bring none. If
 * all do, there are as few loaders as possible, and the first serves the remainder, whose PEs
 * have the rows that not all PEs have. */
static void plan_loaders(struct engine *engine)
{
	engine->ports_per_loader = 1;
	if (engine->workload != WORKLOAD_TILED_COUNTED_TOKENS)
		return;
	int parallel_ports;
	int state_ports = wide_state_ports(engine->design, &parallel_ports);
	bool separate = state_ports && state_ports < engine->ports &&
	        state_ports % parallel_ports == 0 &&
	        state_ports / parallel_ports <= STATE_LOADERS_MOST;
	engine->ports_per_loader = separate ? parallel_ports : PORTS_PER_LOADER;
	if (separate)
		engine->first_ports = engine->ports - state_ports;
	else if (state_ports >= engine->ports)
		engine->first_ports = engine->ports % PORTS_PER_LOADER;
	else
		engine->first_ports = 0;
}

/* words that a port brings of a job for one row */
static int64_t words_of_row(const struct job *job)
{
	return job->contract.groups * (job->layers ? job->layers : 1);
}

static void set_start(const struct engine *engine, struct job *job, int64_t start)
{
	int64_t last = (job->contract.outputs + start) % engine->pes;
	job->start = (int)start;
	job->last_row_pes = job->end[0].last_row_pes = (int)(last ? last : engine->pes);
}

/* The most words of all loaders: `load` so far and those of the job. add: update `load`. */
static int64_t loaded_most(
        const struct engine *engine, const struct job *job, int64_t *load, bool add)
{
	int64_t most = 0;
	for (int pe = 0; pe < engine->pes; pe++) {
		int64_t words = load[pe] +
		        words_of_row(job) *
		                (job_last_block_rows(job, pe) -
		                        job_lacks_first_row(engine, job, pe));
		if (engine_loader_first_pe(engine, pe) != pe)
			continue;
		load[pe] = add ? words : load[pe];
		most = words > most ? words : most;
	}
	return most;
}

/* Only a job whose last row not all PEs have may start elsewhere, and only if it gets no
 * more rows. */
static bool may_start(const struct engine *engine, const struct job *job, int64_t start)
{
	int64_t last = job->contract.outputs % engine->pes;
	return job->last_row_pes < engine->pes && !job->part_rows && !job->part_first &&
	        last + start <= engine->pes;
}

/* the start with which the loader of most words has the fewest */
static int64_t start_of_fewest(const struct engine *engine, struct job *job, int64_t *load)
{
	int64_t lanes = engine_widest_result(engine);
	int64_t best = 0;
	int64_t least = loaded_most(engine, job, load, false);
	for (int64_t start = lanes; may_start(engine, job, start); start += lanes) {
		set_start(engine, job, start);
		int64_t most = loaded_most(engine, job, load, false);
		best = most < least ? start : best;
		least = most < least ? most : least;
		set_start(engine, job, 0);
	}
	return best;
}

/* the job of most words that is not done; NULL: all are done */
static struct job *job_of_most_words(struct engine *engine, const bool *done)
{
	struct job *most = NULL;
	for (size_t i = 0; i < engine->jobs.count; i++) {
		struct job *job = &engine->jobs.data[i];
		if (!done[i] && (!most || words_of_row(job) > words_of_row(most)))
			most = job;
	}
	return most;
}

/* Chooses the PE at which each job starts. Outputs that are no multiple of the PEs leave a last row
 * that only some PEs have; its words would all come from one loader, which the others wait for.
 * Jobs are placed by falling number of words, after those that have no choice. */
static void choose_starts(struct engine *engine)
{
	struct arena *arena = engine->design->module->arena;
	int64_t *load = ARENA_ARRAY(arena, int64_t, engine->pes);
	int64_t lanes = engine_widest_result(engine);
	bool *done = ARENA_ARRAY(arena, bool, engine->jobs.count);
	for (size_t i = 0; i < engine->jobs.count; i++) {
		done[i] = !may_start(engine, &engine->jobs.data[i], lanes);
		if (done[i])
			loaded_most(engine, &engine->jobs.data[i], load, true);
	}
	struct job *job;
	while ((job = job_of_most_words(engine, done))) {
		set_start(engine, job, start_of_fewest(engine, job, load));
		loaded_most(engine, job, load, true);
		done[job - engine->jobs.data] = true;
	}
}

static void set_end(struct job *job, int stack)
{
	job->stack = stack;
	job->end_count = 1;
	job->end[0] = (struct job_end){ job->blocks, job->rows, job->last_row_pes };
}

static bool states_load_all_ports(const struct engine *engine)
{
	int parallel_ports;
	int state_ports = wide_state_ports(engine->design, &parallel_ports);
	return !state_ports || state_ports >= engine->ports;
}

/* how many cycles two additions to a sum are apart, and the largest block */
static void measure_blocks(struct engine *engine)
{
	for (int first = 0, end; first < (int)engine->jobs.count; first = end) {
		const struct job *job = &engine->jobs.data[first];
		end = engine_stack_end(engine, first);
		int64_t rows = engine_stack_rows(engine, first);
		int64_t words = job->token_steps_run_time ? 1 : job->token_steps;
		int64_t distance = rows * words;
		engine->distance =
		        first && engine->distance < distance ? engine->distance : distance;
		engine->block_most = rows > engine->block_most ? rows : engine->block_most;
		for (int i = first; i < end; i++)
			set_end(&engine->jobs.data[i], first);
	}
}

/* pipeline_jobs: jobs that share the loops so far; returns their number with this one. */
static int choose_rows(struct engine *engine, int i, int pipeline_jobs)
{
	struct job *job = &engine->jobs.data[i];
	if (is_of_stack(engine, i)) {
		choose_stacked(engine, i);
		return 1;
	}
	job->reuses_activations = job->contract.same_input && may_reuse_groups(job);
	choose_block(engine, job);
	if (i && engine->streams_groups)
		join_stream(job - 1, job, pipeline_jobs);
	else if (i && !is_of_stack(engine, i - 1))
		join_job(job - 1, job);
	pipeline_jobs = job->shares_pipeline ? pipeline_jobs + 1 : 1;
	engine->end_count_most = engine->streams_groups && pipeline_jobs > engine->end_count_most
	        ? pipeline_jobs
	        : engine->end_count_most;
	return pipeline_jobs;
}

/* what a PE does per cycle; returns how PEs use their port */
static struct port_pes plan_shape(struct engine *engine, const struct block *body)
{
	struct engine_shape shape = engine_shape(body);
	int bits = engine->jobs.data[0].contract.weight[0]->type->element->width;
	engine->tokens_per_cycle = shape.tokens_per_cycle;
	engine->pes_per_port = shape.pes_per_port;
	struct dot dot = engine_dot(engine->design->context, bits, engine->tokens_per_cycle);
	engine->pes_per_pair = dot.words;
	engine->tokens_per_dsp = dot.x_per_dsp;
	return (struct port_pes){ bits, engine_word_uses(shape) };
}

const struct attr *engine_choose_ports(
        struct design *design, const struct block *body, struct module *module)
{
	struct engine engine = { .design = design, .workload = workload_of(design->source) };
	collect_jobs(&engine, body, 0);
	if (!engine.jobs.count)
		return NULL;
	struct port_pes pes = plan_shape(&engine, body);
	int ports = design->context->platform->ports - adapters_outside_engine(design) -
	        state_adapters(design, estimate_pe_words(&engine)) - 1;
	bool counted = engine.jobs.data[0].contract.token_symbol;
	engine.ports = engine_port_limit(design->context, design->module, pes, counted, ports);
	plan_loaders(&engine);
	struct named items[4] = {
		{ key_name(KEY_PORTS), attr_integer(module, engine.ports) },
		{ key_name(KEY_FIRST_PORTS), attr_integer(module, engine.first_ports) },
		{ key_name(KEY_PORTS_PER_LOADER), attr_integer(module, engine.ports_per_loader) },
		{ key_name(KEY_EVEN_LOADS), attr_unit(module) },
	};
	bool even =
	        engine.workload == WORKLOAD_TILED_COUNTED_TOKENS && states_load_all_ports(&engine);
	return attr_dictionary(module, even ? 4 : 3, items);
}

/* The ports that plan_engine has recorded; false after a diagnostic. */
static bool read_ports(struct engine *engine, struct port_pes pes)
{
	struct diag *diag = engine->design->module->diag;
	const struct op *main = engine->design->source;
	const struct attr *attr = attr_get(main, KEY_STREAM_ENGINE);
	bool counted = engine->jobs.data[0].contract.token_symbol;
	int step = (int)engine_port_step(pes.uses, counted);
	engine->ports = (int)attr_item_integer(attr, KEY_PORTS, 0);
	engine->first_ports = (int)attr_item_integer(attr, KEY_FIRST_PORTS, 0);
	engine->ports_per_loader = (int)attr_item_integer(attr, KEY_PORTS_PER_LOADER, 0);
	engine->evens_loads = attr_item(attr, KEY_EVEN_LOADS);
	engine->pes = engine->ports * engine->pes_per_port;
	if (engine->ports > 0 && engine->ports % step == 0 && engine->ports_per_loader > 0 &&
	        engine->first_ports >= 0 && engine->first_ports <= engine->ports)
		return true;
	diag_error(diag, main->location,
	        "the contractions of '%s' have an engine of %d ports, %d of them first, %d to a "
	        "loader",
	        attr_text_or(main, KEY_SYM_NAME, ""), engine->ports, engine->first_ports,
	        engine->ports_per_loader);
	return diag_note(diag,
	        "stream.engine has to say a multiple of %d ports, no more first ones, and at least "
	        "one to a loader; --from plan_engine chooses them",
	        step);
}

static void plan_tokens(struct engine *engine)
{
	struct arena *arena = engine->design->module->arena;
	for (int i = 0; i < (int)engine->jobs.count; i++) {
		struct job *job = &engine->jobs.data[i];
		job->run_time =
		        launch_tokens_of(arena, job->contract.token_symbol, job->contract.tokens);
		job->tile = job->run_time.tile;
		job->tiles = job->contract.tokens / job->tile;
		job->token_steps =
		        (job->tile + engine->tokens_per_cycle - 1) / engine->tokens_per_cycle;
		job->token_steps_run_time = token_steps_run_time(
		        arena, &job->run_time, engine->tokens_per_cycle, job->token_steps);
		if (job->token_steps > engine->token_steps_most)
			engine->token_steps_most = job->token_steps;
	}
	engine->streams_groups = engine->token_steps_most == 1 && engine->tokens_per_cycle == 1;
}

static void plan_blocks(struct engine *engine)
{
	engine->end_count_most = 1;
	for (int i = 0, pipeline_jobs = 0; i < (int)engine->jobs.count; i++)
		pipeline_jobs = choose_rows(engine, i, pipeline_jobs);
	measure_blocks(engine);
	if (engine->evens_loads)
		choose_starts(engine);
	count_gaps(engine);
	count_consumer_blocks(engine);
	for (int i = 0; i < (int)engine->jobs.count; i++) {
		int64_t group_slots = group_slots_of(engine, &engine->jobs.data[i]);
		if (group_slots > engine->group_slots)
			engine->group_slots = group_slots;
	}
}

bool engine_plan_jobs(struct engine *engine, const struct block *body)
{
	collect_jobs(engine, body, 0);
	if (!engine->jobs.count)
		return true;
	if (!read_ports(engine, plan_shape(engine, body)))
		return false;
	plan_tokens(engine);
	engine_join_queries(engine);
	engine_stack_jobs(engine);
	split_queries(engine);
	plan_blocks(engine);
	engine_find_wavefronts(engine);
	bool counts = engine->workload == WORKLOAD_TILED_COUNTED_TOKENS;
	engine->pairs_per_process = counts ? PAIRS_PER_PROCESS * engine->pes_per_port : 1;
	engine->pairs_per_chain = PAIRS_PER_CHAIN * engine->pes_per_port;
	engine->serializes_tokens = engine->tokens_per_cycle > 1 && counts &&
	        engine->design->context->platform->dies > 1 && engine_can_serialize(engine) &&
	        !engine_has_narrow_results(engine);
	return true;
}
