/* Builds the cycle simulator's network from a hardware-level module.
 * Before: main with stream.fifo ops and calls of processes.
 * After:  channels, ports, and for each process a list of steps: waits, loops, accesses,
 *         pipelined loops. */
#include "ir/sliding_window.h"
#include "ir/datapath_sharing.h"
#include "predict/crossing.h"
#include "simulate/cycle_network.h"
#include <string.h>

struct cycle_builder {
	struct cycle_network *network;
	struct cycle_process *process;
};

bool cycle_trips(const struct cycle_network *network, const struct op *loop, int64_t *trips)
{
	*trips = timing_run_time_at(loop, network->extents, network->extent);
	if (*trips >= 0)
		return true;
	const struct value *bound = loop->operand[1];
	const struct attr *attr = bound->def && bound->def->code == OP_CONSTANT
	        ? attr_get(bound->def, KEY_VALUE)
	        : NULL;
	*trips = attr ? attr->integer : 0;
	if (attr && attr->kind == ATTR_INTEGER && *trips >= 0)
		return true;
	diag_error(network->module->diag, loop->location,
	        attr ? "a loop of %lld iterations"
	             : "the number of iterations of a loop is not known",
	        (long long)*trips);
	return diag_note(network->module->diag, "a constant that is not negative");
}

int64_t cycle_multiply_counts(int64_t left, int64_t right)
{
	return right && left > COUNT_MOST / right ? COUNT_MOST : left * right;
}

int64_t cycle_add_counts(int64_t left, int64_t right)
{
	return left > COUNT_MOST - right ? COUNT_MOST : left + right;
}

void cycle_add_words(struct cycle_channel *channel, int64_t words)
{
	channel->words_most = cycle_add_counts(channel->words_most, words);
}

/* --- accesses */

bool cycle_is_access(const struct op *op)
{
	const struct value *value = op_accessed(op);
	return value && (value->type->kind != TYPE_MEMREF || type_is_port(value->type));
}

static enum access_kind kind_of(const struct op *op)
{
	static const enum access_kind kinds[OP_COUNT] = { [OP_POP] = ACCESS_TAKE,
		[OP_PUSH] = ACCESS_PUSH,
		[OP_MEMREF_LOAD] = ACCESS_LOAD,
		[OP_MEMREF_STORE] = ACCESS_STORE,
		[OP_WRITE] = ACCESS_STORE };
	const struct op *acquire = op->code == OP_RELEASE ? op->operand[0]->def : op;
	if (op->code != OP_ACQUIRE && op->code != OP_RELEASE)
		return kinds[op->code];
	bool write = text_same(attr_text_or(acquire, KEY_SIDE, ""), "write");
	if (op->code == OP_ACQUIRE)
		return write ? ACCESS_ACQUIRE_WRITE : ACCESS_ACQUIRE_READ;
	return write ? ACCESS_RELEASE_WRITE : ACCESS_RELEASE_READ;
}

struct cycle_access cycle_access_of(const struct op *op)
{
	struct cycle_access access = { .kind = kind_of(op), .bit = -1 };
	void *data = op_accessed(op)->data;
	if (!type_is_port(op_accessed(op)->type)) {
		access.channel = data;
		return access;
	}
	access.port = data;
	access.port->write = access.kind == ACCESS_STORE;
	return access;
}

/* --- processes */

static void clear_values(struct op *op, void *context)
{
	(void)context;
	for (int i = 0; i < op->results; i++)
		op->result[i]->data = NULL;
	for (int i = 0; op->region[0] && i < op->region[0]->arguments; i++)
		op->region[0]->argument[i]->data = NULL;
}

static void bind_ends(struct op *op, void *process)
{
	if (!cycle_is_access(op) || type_is_port(op_accessed(op)->type))
		return;
	struct cycle_channel *channel = op_accessed(op)->data;
	channel->process[cycle_side_of(kind_of(op))] = process;
}

static struct cycle_step *add_step(struct cycle_builder *b, struct cycle_step step)
{
	VEC_PUSH(b->network->arena, &b->process->steps, step);
	return &b->process->steps.data[b->process->steps.count - 1];
}

static void add_wait(struct cycle_builder *b, int64_t cycles)
{
	if (cycles)
		add_step(b, (struct cycle_step){ .kind = STEP_WAIT, .cycles = cycles });
}

static void end_loop(struct cycle_builder *b)
{
	add_wait(b, b->process->rewinding ? 0 : LOOP_CYCLES);
}

static bool build_block(struct cycle_builder *b, const struct block *block, int64_t repeats);

/* --- layers */

static void find_lookback(struct op *op, void *context)
{
	struct run_time_trip trip;
	struct sliding_window sliding_window;
	int64_t times;
	bool *found = context;
	*found = *found ||
	        (timing_run_time(op, &trip, &times) &&
	                sliding_window_of(op, trip.symbol, &sliding_window) &&
	                sliding_window.layers > 1);
}

/* Do trip counts in the layer loop depend on the layer, by a sliding window? */
static bool layers_differ(const struct op *loop)
{
	bool found = false;
	if (attr_get(loop, KEY_STREAM_LAYER))
		ir_walk(loop->region[0], find_lookback, &found);
	return found;
}

/* Puts the extents of this layer's sliding windows before those of the network. */
static void enter_layer(struct cycle_network *network, int layer)
{
	const struct attr *list = attr_get(network->module->op, KEY_STREAM_SLIDING_WINDOW);
	struct extent_value *extent =
	        ARENA_ARRAY(network->arena, struct extent_value, network->extents + list->count);
	int count = 0;
	for (int i = 0; i < list->count; i++) {
		struct sliding_window sliding_window;
		if (!sliding_window_named(network->module,
		            attr_item_text(list->items[i].value, KEY_NAME), &sliding_window) ||
		        layer >= sliding_window.layers)
			continue;
		int64_t value = sliding_window.most;
		timing_extent(sliding_window.symbol, network->extents, network->extent, &value);
		extent[count++] = (struct extent_value){ sliding_window.name,
			sliding_window_value(&sliding_window, layer, value) };
	}
	for (int i = 0; i < network->extents; i++)
		extent[count++] = network->extent[i];
	network->extent = extent;
	network->extents = count;
}

/* Unrolls the layer loop. */
static bool build_layers(
        struct cycle_builder *b, const struct op *loop, int64_t layers, int64_t repeats)
{
	struct cycle_network *network = b->network;
	const struct extent_value *extent = network->extent;
	int extents = network->extents;
	bool built = true;
	for (int i = 0; built && i < layers; i++) {
		int64_t *counter = ARENA_NEW(network->arena, int64_t);
		*counter = i;
		loop->region[0]->argument[0]->data = counter;
		enter_layer(network, i);
		built = build_block(b, loop->region[0], repeats);
		network->extent = extent;
		network->extents = extents;
	}
	end_loop(b);
	return built;
}

static bool build_loop(struct cycle_builder *b, const struct op *loop, int64_t repeats)
{
	int64_t trips;
	int64_t *counter = ARENA_NEW(b->network->arena, int64_t);
	if (!cycle_trips(b->network, loop, &trips))
		return false;
	if (layers_differ(loop))
		return build_layers(b, loop, trips, repeats);
	loop->region[0]->argument[0]->data = counter;
	size_t start = b->process->steps.count;
	add_step(b, (struct cycle_step){ .kind = STEP_LOOP, .counter = counter, .trips = trips });
	if (!build_block(b, loop->region[0], cycle_multiply_counts(repeats, trips)))
		return false;
	add_step(b,
	        (struct cycle_step){ .kind = STEP_NEXT,
	                .counter = counter,
	                .trips = trips,
	                .target = (int)start + 1 });
	b->process->steps.data[start].target = (int)b->process->steps.count;
	end_loop(b);
	return true;
}

/* A nest is one pipelined loop if every body down to the pipelined one holds only the next loop. */
static bool flattens(const struct op *loop)
{
	while (loop && !attr_get(loop, KEY_STREAM_PIPELINE))
		loop = timing_only_loop(loop->region[0]);
	return loop != NULL;
}

static bool build_access(struct cycle_builder *b, const struct op *op, int64_t repeats)
{
	struct cycle_step step = { .kind = STEP_ACCESS, .access = cycle_access_of(op) };
	if (op_is_conditional(op)) {
		step.condition = ARENA_NEW(b->network->arena, struct cycle_condition);
		if (!cycle_condition_add(b->network, step.condition, op, &step.access.bit))
			return false;
		cycle_condition_finish(b->network->arena, step.condition);
	}
	if (step.access.port)
		step.access.requests = cycle_requests_of(
		        step.access.port, op, b->network->platform->memory_latency, NULL);
	add_step(b, step);
	if (step.access.kind == ACCESS_PUSH || step.access.kind == ACCESS_RELEASE_WRITE)
		cycle_add_words(step.access.channel, repeats);
	if (step.access.kind == ACCESS_STORE)
		add_step(b, (struct cycle_step){ .kind = STEP_ARRIVAL, .access = step.access });
	return true;
}

static bool build_op(struct cycle_builder *b, const struct op *op, int64_t repeats)
{
	if (attr_get(op, KEY_STREAM_CYCLES)) {
		add_wait(b, attr_integer_or(op, KEY_STREAM_CYCLES, 0));
		return true;
	}
	if (op->code == OP_FOR && flattens(op))
		return cycle_pipe_build(b->network, b->process, op, repeats);
	if (op->code == OP_FOR)
		return build_loop(b, op, repeats);
	int64_t count = timing_run_time_at(op, b->network->extents, b->network->extent);
	if (count >= 0) { /* conditions may compare with it */
		int64_t *slot = ARENA_NEW(b->network->arena, int64_t);
		*slot = count;
		op->result[0]->data = slot;
	}
	if (cycle_is_access(op) && !build_access(b, op, repeats))
		return false;
	add_wait(b, operation_latency(b->network->platform, op));
	return true;
}

static bool build_block(struct cycle_builder *b, const struct block *block, int64_t repeats)
{
	for (const struct op *op = block->first; op; op = op->next)
		if (!build_op(b, op, repeats))
			return false;
	return true;
}

static void bind_arguments(struct cycle_builder *b, const struct op *call)
{
	struct arena *arena = b->network->arena;
	const struct block *entry = b->process->function->region[0];
	for (int i = 0; i < call->operands; i++) {
		const struct value *operand = call->operand[i];
		if (operand->def) {
			entry->argument[i]->data = operand->data;
			VEC_PUSH(arena, &b->process->channels, operand->data);
			continue;
		}
		entry->argument[i]->data = cycle_port_new(b->network, b->process, operand->index);
	}
}

static bool build_process(struct cycle_network *network, const struct op *call)
{
	struct cycle_process *process = ARENA_NEW(network->arena, struct cycle_process);
	struct cycle_builder b = { network, process };
	process->number = (int)network->processes.count;
	process->name = attr_text_or(call, KEY_CALLEE, "");
	size_t built = network->processes.count;
	process->function = module_find_after(network->module,
	        built ? network->processes.data[built - 1]->function : network->main,
	        process->name);
	process->flushes =
	        text_same(attr_text_or(process->function, KEY_STREAM_STYLE, "stp"), "flp");
	process->rewinding = attr_get(process->function, KEY_STREAM_REWIND);
	ir_walk(process->function->region[0], clear_values, NULL);
	bind_arguments(&b, call);
	ir_walk(process->function->region[0], bind_ends, process);
	add_wait(&b, PROCESS_CYCLES / 2);
	if (!build_block(&b, process->function->region[0], 1))
		return false;
	if (process->rewinding)
		add_step(&b, (struct cycle_step){ .kind = STEP_DRAIN });
	add_wait(&b, PROCESS_CYCLES - PROCESS_CYCLES / 2);
	add_step(&b, (struct cycle_step){ .kind = STEP_END });
	VEC_PUSH(network->arena, &network->processes, process);
	return true;
}

/* --- main */

static void build_channel(struct cycle_network *network, struct op *op)
{
	const struct type *type = op->result[0]->type;
	struct cycle_channel *channel = ARENA_NEW(network->arena, struct cycle_channel);
	channel->name = attr_text_or(op, KEY_NAME, "(no name)");
	channel->blocks = op->code == OP_BLOCK_CHANNEL;
	channel->built = type->depth;
	channel->between = crossing_words(crossings_of(op));
	channel->passes = 1 + crossing_latency(crossings_of(op));
	channel->number = (int)network->channels.count;
	channel->mask = -1;
	op->result[0]->data = channel;
	VEC_PUSH(network->arena, &network->channels, channel);
}

bool cycle_build(struct cycle_network *network)
{
	network->memory =
	        ARENA_ARRAY(network->arena, struct cycle_memory, network->platform->channels);
	network->tail = feedback_cycles(network->platform, network->main, 1);
	for (struct op *op = network->main->region[0]->first; op; op = op->next)
		if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
			build_channel(network, op);
	for (struct op *op = network->main->region[0]->first; op; op = op->next)
		if (op->code == OP_CALL && !build_process(network, op))
			return false;
	cycle_images_build(network);
	return cycle_memory_build(network);
}
