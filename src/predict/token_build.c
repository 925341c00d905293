/* Builds the token network of a hardware-level module: steps of each process, access patterns of
 * pipelined loops, and times of memory ports. Outer loops that hold more than the next loop are
 * unrolled. */
#include "ir/datapath_sharing.h"
#include "ir/launch_tokens.h"
#include "predict/bundle.h"
#include "predict/crossing.h"
#include "predict/token.h"

/* maximum steps of a process: enough for 16 layers of 128 tokens, walked one by one */
#define STEPS_MOST (1 << 19)
#define LEVELS 48          /* maximum loop depth */
#define STRETCHES_LEAST 16 /* minimum per pipelined loop of a process with many, */
/* and of all those of a process: with more of them, as of blocks of a long context, each is one
 * stretch or a few */
#define STRETCHES_PROCESS 8192

struct built_pipe {
	const struct op *loop;
	struct token_pipe *pipe;
};

struct built_access {
	const struct op *op;
	struct token_access *access;
};

struct token_builder {
	struct arena *arena;
	const struct platform *platform;
	const struct module *module;
	struct token_network *network;
	struct token_process *process;
	const struct op *call, *function; /* function: of the current process, or main */
	bool flushes;
	/* the process has attribute stream.rewind: loops start while those before them drain */
	bool rewinding;
	const struct token_pipe *before; /* the previous pipe of this process; NULL: none */
	struct token_loop loop[LEVELS];
	int loops;
	/* pipes of this process that do not depend on outer counters */
	VEC(struct built_pipe) pipes;
	/* accesses of this process outside pipelined loops, equal in every iteration of outer
	 * loops */
	VEC(struct built_access) accesses;
	struct token_detail detail;
	int64_t stretches;  /* approximate number per pipelined loop of the process */
	const bool *shared; /* [arguments of main] does the port share its adapter? */
	bool uneven;        /* layer loops of different lengths, or several in a process */
};

/* --- accesses */

static const struct value *accessed(const struct op *op)
{
	const struct value *value = op_accessed(op);
	return value && (value->type->kind != TYPE_MEMREF || type_is_port(value->type)) ? value
	                                                                                : NULL;
}

static enum token_side side_of(const struct op *op)
{
	const struct op *acquire = op->code == OP_RELEASE ? op->operand[0]->def : op;
	bool writes = op->code == OP_PUSH ||
	        (acquire->code == OP_ACQUIRE &&
	                text_same(attr_text_or(acquire, KEY_SIDE, ""), "write"));
	return writes ? TOKEN_WRITER : TOKEN_READER;
}

/* --- memory */

/* Adds the coefficient of each loop counter in an address to sum[loop]. false: the address also
 * depends on a value that is unknown when the loop starts. */
static bool add_terms(const struct value *value, const struct block *body, int64_t factor,
        int first, int64_t *sum)
{
	const struct attr *map =
	        value->def && value->def->code == OP_APPLY ? attr_get(value->def, KEY_MAP) : NULL;
	if (!value->def && value->type->kind == TYPE_INDEX && value->id >= first)
		sum[value->id] += factor;
	if (!value->def || value->def->parent != body ||
	        attr_get(value->def, KEY_STREAM_WINDOW_GAP))
		return true;
	if (!map || map->kind != ATTR_MAP || map->map.results != 1 ||
	        map->map.dims != value->def->operands)
		return false;
	bool known = true;
	for (int i = 0; i < value->def->operands; i++)
		known &= add_terms(value->def->operand[i], body, factor * affine_at(map->map, 0, i),
		        first, sum);
	return known;
}

/* Consecutive words per burst: the product of the innermost trip counts, as long as each loop
 * continues where the one inside it ends. */
static int64_t words_in_a_row(
        const struct token_builder *b, const struct op *op, int first, bool *known)
{
	int64_t factor[LEVELS] = { 0 };
	int64_t run = 1;
	int place = op_access(op) + 1;
	if (op->code == OP_WRITE)
		return *known = true; /* conditional writes form no burst */
	*known = op->operands <= place ||
	        add_terms(op->operand[place], op->parent, 1, first, factor);
	for (int l = b->loops - 1; l >= first; l--) {
		if (b->loop[l].trips > 1 && factor[l] != run)
			break;
		run *= b->loop[l].trips;
	}
	return run < 1 ? 1 : run;
}

/* Sets the times of a memory access. A word takes its share of the channel's bandwidth, and at most
 * so many bursts as the port allows are outstanding, each for the memory latency. Loads with
 * addresses known in advance are prefetched, unless the adapter is shared. */
static void set_memory(struct token_builder *b, const struct op *op, int first,
        struct token_access *access, struct token_pipe *pipe)
{
	bool known, load = op->code == OP_MEMREF_LOAD;
	const struct value *port = b->call->operand[accessed(op)->index];
	int64_t under_way =
	        bundle_outstanding(module_main(b->module), port->index, b->platform->outstanding);
	int64_t most = bundle_burst(module_main(b->module), port->index, b->platform->burst);
	int64_t run = words_in_a_row(b, op, first, &known);
	int64_t burst = run < most ? run : most;
	double rate = platform_channel_rate(b->platform);
	double cycles = (double)((type_bits(accessed(op)->type->element) + 7) / 8) / rate;
	access->word = (int64_t)(cycles * TOKEN_PARTS + 0.5);
	access->credit = load && !known ? 0 : burst * under_way;
	access->prefetched = load && !b->shared[port->index] ? access->credit : 0;
	access->round = b->platform->memory_latency + burst +
	        (load ? -1 : (int64_t)((double)burst * cycles + 1));
	access->credit = access->round > access->credit ? access->credit : 0;
	if (load)
		return;
	/* the loop ends when the words of the last burst have arrived */
	int64_t last = run % most ? run % most : most;
	int64_t arrived = access->offset + 1 + (int64_t)((double)last * cycles + 1) +
	        b->platform->memory_latency;
	pipe->depth = arrived > pipe->depth ? arrived : pipe->depth;
}

static struct token_access access_of(const struct token_builder *b, const struct op *op)
{
	struct token_access access = { .channel = -1, .port = -1, .pattern = { .accesses = 1 } };
	int argument = accessed(op)->index;
	const struct value *channel = b->call->operand[argument];
	if (type_is_port(accessed(op)->type)) {
		access.port = argument;
		return access;
	}
	access.channel = channel->id;
	access.side = side_of(op);
	access.waits = op->code != OP_RELEASE;
	access.moves = op->code != OP_ACQUIRE;
	return access;
}

static void note_end(struct token_builder *b, const struct token_access *access)
{
	if (access->channel < 0)
		return;
	b->network->channels.data[access->channel].process[access->side] =
	        (int)b->network->processes.count;
	b->process->feeds |= access->side == TOKEN_WRITER;
}

/* --- steps */

static void count_words(struct token_builder *b, const struct token_access *access)
{
	struct token_channel *channel = access->channel >= 0 && access->moves
	        ? &b->network->channels.data[access->channel]
	        : NULL;
	if (channel)
		*(access->side == TOKEN_WRITER ? &channel->words : &channel->read) +=
		        access->pattern.accesses;
}

static bool add_step(struct token_builder *b, struct token_step step)
{
	if (step.access)
		count_words(b, step.access);
	for (int i = 0; step.pipe && i < step.pipe->accesses; i++)
		count_words(b, &step.pipe->access[i]);
	bool inside = (b->loops && b->loop[0].skipped) || (step.pipe && step.pipe->layer);
	b->process->works_after_layers |=
	        b->process->rolled && !inside && (step.access || step.pipe);
	VEC_PUSH(b->arena, &b->process->steps, step);
	return b->process->steps.count < STEPS_MOST;
}

static bool add_wait(struct token_builder *b, int64_t cycles)
{
	struct token_step *last = b->process->steps.count
	        ? &b->process->steps.data[b->process->steps.count - 1]
	        : NULL;
	if (!cycles)
		return true;
	if (!last || last->access || last->pipe)
		return add_step(b, (struct token_step){ .cycles = cycles });
	last->cycles += cycles;
	return true;
}

static bool looks_outside(const struct value *value, int first)
{
	if (!value->def)
		return value->type->kind == TYPE_INDEX && value->id < first;
	for (int i = 0; i < value->def->operands; i++)
		if (looks_outside(value->def->operand[i], first))
			return true;
	return false;
}

/* Compares conditions of skipped layers; the layer loop is the outermost one. */
static void compare_layers(struct token_builder *b, const struct op *op)
{
	if (b->loops && b->loop[0].skipped && op_is_conditional(op))
		b->network->alike &= token_same_between(op->operand[0], &b->loop[0]);
}

/* The pattern of a conditional access; accesses under one condition share it. A memory write whose
 * condition depends on data counts as always executed. */
static bool set_pattern(struct token_builder *b, const struct op *op, int first,
        const struct token_pipe *pipe, struct token_access *access)
{
	const struct token_access *made = pipe->access;
	for (const struct op *other = op->parent->first; other != op; other = other->next) {
		if (!accessed(other))
			continue;
		if (op_is_conditional(other) && other->operand[0] == op->operand[0]) {
			access->pattern = made->pattern;
			return true;
		}
		made++;
	}
	const struct token_pattern always = access->pattern;
	bool known = token_pattern_make(b->arena, b->detail.digits, op->operand[0],
	        (struct loop_range){ b->loop, first, b->loops - 1 }, &access->pattern);
	if (!known && op->code == OP_WRITE)
		access->pattern = always;
	return known || op->code == OP_WRITE;
}

/* Lists the accesses of a loop body with their pipeline stage, the sum of latencies before them.
 * value->id of results: cycle in which the value is ready. */
static bool add_accesses(struct token_builder *b, struct token_pipe *pipe, const struct block *body,
        int first, bool *fixed)
{
	for (const struct op *op = body->first; op; op = op->next)
		pipe->accesses += accessed(op) != NULL;
	pipe->access = ARENA_ARRAY(b->arena, struct token_access, pipe->accesses + 1);
	struct token_access *access = pipe->access;
	const struct token_pattern always = { .digits = 1,
		.digit = ARENA_NEW(b->arena, struct token_digit),
		.accesses = pipe->iterations,
		.always = true };
	*always.digit =
	        (struct token_digit){ pipe->iterations, pipe->iterations, 1, 1, NULL, NULL };
	for (const struct op *op = body->first; op; op = op->next) {
		int64_t ready = operands_ready(op);
		if (accessed(op)) {
			*access = access_of(b, op);
			access->offset = ready;
			access->pattern = always;
			if (access->channel < 0)
				set_memory(b, op, first, access, pipe);
			bool conditional = op_is_conditional(op);
			if (conditional && !set_pattern(b, op, first, pipe, access))
				return false;
			compare_layers(b, op);
			*fixed &= !conditional || !looks_outside(op->operand[0], first);
			note_end(b, access++);
		}
		ready += operation_latency(b->platform, op);
		for (int i = 0; i < op->results; i++)
			op->result[i]->id = (int)ready;
		pipe->depth = ready > pipe->depth ? ready : pipe->depth;
	}
	return true;
}

/* In a pipeline that stalls as a whole an access happens a number of windows after its iteration
 * started, and what delays one access delays all. In a flushing pipeline it happens a number of
 * cycles later, whatever later iterations wait for. */
static void set_windows(const struct token_builder *b, struct token_pipe *pipe)
{
	int64_t most = 0;
	pipe->span = pipe->interval;
	for (int i = 0; i < pipe->accesses; i++) {
		struct token_access *access = &pipe->access[i];
		if (!b->flushes) {
			access->lag = access->offset / pipe->interval;
			access->offset %= pipe->interval;
		}
		most = access->lag > most ? access->lag : most;
		pipe->span = access->offset + 1 > pipe->span ? access->offset + 1 : pipe->span;
	}
	pipe->windows = pipe->iterations + most;
	b->network->freezes |= most > 0;
	b->network->alike &= !most || !pipe->layer;
}

/* Stretch length: a whole number of inner loops if possible. */
static int64_t grid_of(const struct token_builder *b, int first, int64_t iterations)
{
	int64_t least = (iterations + b->stretches - 1) / b->stretches;
	int64_t whole = 1;
	for (int l = b->loops - 1; l > first && whole * b->loop[l].trips <= least; l--)
		whole *= b->loop[l].trips ? b->loop[l].trips : 1;
	return (least + whole - 1) / whole * whole;
}

static bool is_layers(const struct op *loop)
{
	return attr_get(loop, KEY_STREAM_LAYER) != NULL;
}

/* Iterations of the loops outside the layer loop: they select a variant, so all but one have
 * none. */
static int64_t outer_trips(const struct token_builder *b)
{
	int64_t trips = 1;
	for (int i = 0; i < b->loops; i++)
		trips *= b->loop[i].trips;
	return trips;
}

/* Reduces a layer loop to the layers that are walked. */
static void open_layers(struct token_builder *b, const struct op *loop, struct token_loop *own)
{
	int64_t outside = attr_get(loop, KEY_STREAM_LAYER_OVERLAP) ? 1 : 0;
	int64_t layers = own->trips + outside;
	int64_t times = outer_trips(b);
	if (layers <= b->detail.layers || !b->detail.layers)
		return;
	own->skipped = layers - b->detail.layers;
	own->trips = b->detail.layers - outside;
	b->process->overlaps_layers = outside;
	b->network->overlaps_layers |= outside;
	b->uneven |= times > 1 || (times && b->process->rolled++) ||
	        (b->network->skipped && own->skipped != b->network->skipped);
	b->network->skipped = own->skipped;
	b->network->layers = b->detail.layers;
}

static void open_loop(struct token_builder *b, const struct op *loop)
{
	struct token_loop *own = &b->loop[b->loops];
	*own = (struct token_loop){ .trips = timing_trips(
		                            loop, b->detail.extents, b->detail.extent) };
	if (is_layers(loop))
		open_layers(b, loop, own);
	loop->region[0]->argument[0]->id = b->loops++;
}

static struct token_pipe *make_pipe(struct token_builder *b, const struct op *loop, bool *fixed)
{
	struct token_pipe *pipe = ARENA_NEW(b->arena, struct token_pipe);
	int first = b->loops;
	pipe->iterations = 1;
	for (const struct op *inner = loop; inner; inner = attr_get(inner, KEY_STREAM_PIPELINE)
	                ? NULL
	                : timing_only_loop(inner->region[0])) {
		if (b->loops == LEVELS)
			return NULL;
		open_loop(b, inner);
		pipe->iterations *= b->loop[b->loops - 1].trips;
		pipe->layer = is_layers(inner) ? 1 : pipe->layer * b->loop[b->loops - 1].trips;
		loop = inner;
	}
	pipe->interval = attr_integer_or(loop, KEY_STREAM_PIPELINE, 1);
	if (pipe->iterations && !add_accesses(b, pipe, loop->region[0], first, fixed))
		return NULL;
	pipe->grid = grid_of(b, first, pipe->iterations);
	set_windows(b, pipe);
	return pipe;
}

static bool end_loop(struct token_builder *b)
{
	return add_wait(b, b->rewinding ? 0 : LOOP_CYCLES);
}

/* Adds a pipelined loop. In a process with stream.rewind it starts while the previous one
 * drains. */
static bool build_pipe(struct token_builder *b, const struct op *loop)
{
	struct token_pipe *pipe = NULL;
	bool fixed = true;
	int loops = b->loops;
	for (size_t i = 0; i < b->pipes.count; i++)
		if (b->pipes.data[i].loop == loop)
			pipe = b->pipes.data[i].pipe;
	if (!pipe) {
		pipe = make_pipe(b, loop, &fixed);
		b->loops = loops;
		if (!pipe)
			return false;
		if (fixed)
			VEC_PUSH(b->arena, &b->pipes, ((struct built_pipe){ loop, pipe }));
	}
	if (!pipe->iterations)
		return end_loop(b);
	int64_t drain = b->rewinding && b->before ? b->before->depth - b->before->interval : 0;
	b->before = pipe;
	return add_wait(b, -drain) && add_step(b, (struct token_step){ .pipe = pipe }) &&
	        end_loop(b);
}

static bool flattens(const struct op *loop)
{
	while (loop && !attr_get(loop, KEY_STREAM_PIPELINE))
		loop = timing_only_loop(loop->region[0]);
	return loop != NULL;
}

static bool build_block(struct token_builder *b, const struct block *block);

static bool build_loop(struct token_builder *b, const struct op *loop)
{
	if (b->loops == LEVELS)
		return false;
	open_loop(b, loop);
	struct token_loop *own = &b->loop[b->loops - 1];
	bool built = true;
	for (own->counter = 0; built && own->counter < own->trips; own->counter++) {
		if (is_layers(loop) && own->counter)
			VEC_PUSH(b->arena, &b->process->layer, b->process->steps.count);
		built = build_block(b, loop->region[0]);
	}
	b->loops--;
	return built && end_loop(b);
}

static struct token_access *single_access(struct token_builder *b, const struct op *op)
{
	for (size_t i = 0; i < b->accesses.count; i++)
		if (b->accesses.data[i].op == op)
			return b->accesses.data[i].access;
	struct token_access own = access_of(b, op);
	struct token_access *access = arena_copy(b->arena, &own, sizeof own);
	struct token_pipe single_access_pipe = { 0 };
	if (access->channel < 0)
		set_memory(b, op, b->loops, access, &single_access_pipe);
	note_end(b, access);
	compare_layers(b, op);
	VEC_PUSH(b->arena, &b->accesses, ((struct built_access){ op, access }));
	return access;
}

static bool build_access(struct token_builder *b, const struct op *op)
{
	struct token_access *access = single_access(b, op);
	bool made = true;
	if (op_is_conditional(op) && !token_condition(op->operand[0], b->loop, &made) &&
	        op->code != OP_WRITE)
		return false;
	return !made || add_step(b, (struct token_step){ .access = access });
}

/* Latency of an op outside pipelined loops; a written word has to arrive. */
static int64_t latency_of(const struct token_builder *b, const struct op *op)
{
	bool writes = accessed(op) && op_writes(op, accessed(op));
	return operation_latency(b->platform, op) + (writes ? b->platform->memory_latency + 1 : 0);
}

static bool build_block(struct token_builder *b, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (attr_get(op, KEY_STREAM_CYCLES)) {
			if (!add_wait(b, attr_integer_or(op, KEY_STREAM_CYCLES, 0)))
				return false;
		} else if (op->code == OP_FOR) {
			if (!(flattens(op) ? build_pipe : build_loop)(b, op))
				return false;
		} else if ((accessed(op) && !build_access(b, op)) ||
		        !add_wait(b, latency_of(b, op))) {
			return false;
		}
	}
	return true;
}

/* Conditions compare with run-time trip counts: the operations that make them hold their numbers
 * in value->id. */
static void number_counts(struct token_builder *b, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		int64_t count = op->code == OP_FOR
		        ? -1
		        : timing_run_time_at(op, b->detail.extents, b->detail.extent);
		if (count >= 0)
			op->result[0]->id = (int)(count < INT32_MAX ? count : INT32_MAX);
		if (op->code == OP_FOR)
			number_counts(b, op->region[0]);
	}
}

/* Pipelined loops that are run one after the other. */
static int64_t count_pipes(const struct token_builder *b, const struct block *block)
{
	int64_t count = 0;
	for (const struct op *op = block->first; op; op = op->next)
		if (op->code == OP_FOR && !attr_get(op, KEY_STREAM_CYCLES))
			count += flattens(op)
			        ? 1
			        : timing_trips(op, b->detail.extents, b->detail.extent) *
			                count_pipes(b, op->region[0]);
	return count;
}

/* Stretches of each of so many pipelined loops. */
static int64_t stretches_of(int64_t wanted, int64_t pipes)
{
	int64_t each = 2 * wanted / (1 + pipes);
	int64_t least = STRETCHES_PROCESS / (1 + pipes);
	least = least < STRETCHES_LEAST ? least : STRETCHES_LEAST;
	least = least > 1 ? least : 1;
	return each > least ? each : least;
}

static bool build_process(struct token_builder *b)
{
	const struct op *function =
	        module_find_after(b->module, b->function, attr_text_or(b->call, KEY_CALLEE, ""));
	b->function = function;
	b->process = ARENA_NEW(b->arena, struct token_process);
	b->flushes = text_same(attr_text_or(function, KEY_STREAM_STYLE, "stp"), "flp");
	b->rewinding = attr_get(function, KEY_STREAM_REWIND);
	b->before = NULL;
	b->pipes.count = b->accesses.count = 0;
	b->process->ports = b->call->operands;
	number_counts(b, function->region[0]);
	b->stretches = stretches_of(b->detail.stretches, count_pipes(b, function->region[0]));
	if (!add_wait(b, PROCESS_CYCLES / 2) || !build_block(b, function->region[0]) ||
	        !add_wait(b, PROCESS_CYCLES - PROCESS_CYCLES / 2))
		return false;
	VEC_PUSH(b->arena, &b->network->processes, b->process);
	return true;
}

/* --- main */

static void add_channel(struct token_builder *b, const struct op *op)
{
	struct token_channel channel = { .blocks = op->code == OP_BLOCK_CHANNEL,
		.depth = op->result[0]->type->depth,
		.between = crossing_words(crossings_of(op)),
		.latency = crossing_latency(crossings_of(op)),
		.process = { -1, -1 } };
	op->result[0]->id = (int)b->network->channels.count;
	VEC_PUSH(b->arena, &b->network->channels, channel);
}

static struct token_network *build_network(struct arena *arena, const struct platform *platform,
        const struct module *module, struct token_detail detail, bool *uneven)
{
	struct token_builder b = { .arena = arena,
		.platform = platform,
		.module = module,
		.network = ARENA_NEW(arena, struct token_network),
		.detail = detail };
	const struct op *function = module_main(module);
	b.function = function;
	b.shared = bundle_shared(arena, function);
	b.network->alike = true;
	b.network->counts = token_count_symbol(function);
	for (const struct op *op = function->region[0]->first; op; op = op->next)
		if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
			add_channel(&b, op);
	for (const struct op *op = function->region[0]->first; op; op = op->next) {
		b.call = op;
		if (op->code == OP_CALL && !build_process(&b))
			return NULL;
	}
	*uneven = b.uneven;
	for (size_t i = 0; i < b.network->channels.count; i++)
		*uneven |= b.network->channels.data[i].words != b.network->channels.data[i].read;
	return b.network;
}

struct token_network *token_network_new(struct arena *arena, const struct platform *platform,
        const struct module *module, struct token_detail detail)
{
	bool uneven = false;
	struct map own = map_new(arena);
	detail.digits = detail.digits ? detail.digits : &own;
	struct token_network *network = build_network(arena, platform, module, detail, &uneven);
	if (!detail.layers || (network && !uneven))
		return network;
	detail.layers = 0;
	return build_network(arena, platform, module, detail, &uneven);
}
