/* Computes the closed-form time of processes and designs, and reads run-time trip counts. */
#include "predict/timing.h"
#include "predict/port_run.h"
#include "ir/sliding_window.h"
#include "ir/datapath_sharing.h"
#include "ir/launch_tokens.h"
#include "platform/dot_cost.h"
#include <string.h>

struct timing_walk {
	const struct platform *platform;
	const struct block *entry; /* entry block of the process */
	const double *word_cycles; /* [arguments] cycles per word of a memory port */
	/* loops with this datapath number were seen */
	bool datapath[NEST_DATAPATHS_MOST];
	bool rewinding; /* loops start while those before them drain */
	struct extent_list extents;
	struct process_time time;
};

static int log2_ceil(int64_t n)
{
	int bits = 0;
	while (((int64_t)1 << bits) < n)
		bits++;
	return bits;
}

int operation_latency(const struct platform *platform, const struct op *op)
{
	if (op->code == OP_POP || op->code == OP_PUSH || op->code == OP_WRITE ||
	        op->code == OP_MEMREF_STORE)
		return 1;
	if (op->code == OP_MEMREF_LOAD)
		return type_is_port(op->operand[0]->type) ? platform->memory_latency
		                                          : ARRAY_LOAD_CYCLES;
	if (op->code == OP_TREE) {
		const char *kind = attr_text_or(op, KEY_KIND, "");
		enum op_code code = op_code_of(kind, strlen(kind));
		return log2_ceil(type_elements(op->operand[0]->type)) *
		        platform_operator(platform, code, type_scalar(op->operand[0]->type))
		                .latency;
	}
	struct dot dot;
	if (op->code == OP_DOT && dot_of(op, &dot))
		return dot_cost(platform, &dot).latency;
	if (op->results != 1 || !(op_info[op->code].levels & LEVEL_BODY) ||
	        type_scalar(op->result[0]->type)->kind == TYPE_INDEX)
		return 0;
	return platform_operator(platform, op->code, type_scalar(op->result[0]->type)).latency;
}

int64_t operands_ready(const struct op *op)
{
	int64_t ready = 0;
	for (int i = 0; i < op->operands; i++) {
		const struct value *operand = op->operand[i];
		if (operand->def && operand->def->parent == op->parent && operand->id > ready)
			ready = operand->id;
	}
	return ready;
}

/* value->id: cycle in which a value is ready. */
int64_t timing_depth(const struct platform *platform, const struct block *block)
{
	int64_t depth = 0;
	for (const struct op *op = block->first; op; op = op->next) {
		int64_t ready = operands_ready(op) + operation_latency(platform, op);
		for (int i = 0; i < op->results; i++)
			op->result[i]->id = (int)ready;
		depth = ready > depth ? ready : depth;
	}
	return depth;
}

static int64_t constant_of(const struct value *value)
{
	const struct attr *attr = value->def && value->def->code == OP_CONSTANT
	        ? attr_get(value->def, KEY_VALUE)
	        : NULL;
	return attr ? attr->integer : 0;
}

const char *timing_dim_symbol(const struct attr *dim)
{
	const struct attr *symbol = dim->kind == ATTR_STRING ? dim : attr_item(dim, KEY_SYMBOL);
	return symbol && symbol->kind == ATTR_STRING && *symbol->text ? symbol->text : NULL;
}

bool timing_run_time(const struct op *op, struct run_time_trip *trip, int64_t *times)
{
	const struct attr *attr = attr_get(op, KEY_STREAM_RUN_TIME);
	const struct attr *symbol = attr ? attr_item(attr, KEY_SYMBOL) : NULL;
	const struct attr *plus = attr ? attr_item(attr, KEY_PLUS) : NULL;
	const struct attr *tile = attr ? attr_item(attr, KEY_TILE) : NULL;
	const struct attr *most = attr ? attr_item(attr, KEY_MOST) : NULL;
	const struct attr *over = attr ? attr_item(attr, KEY_TIMES) : NULL;
	if (!symbol || !plus || !tile || !most || !over || symbol->kind != ATTR_STRING ||
	        tile->integer < 1)
		return false;
	*trip = (struct run_time_trip){ symbol->text, plus->integer, tile->integer, most->integer,
		attr_item(attr, KEY_REMAINING), attr_item(attr, KEY_LAST_CHUNK_ONLY),
		attr_item_integer(attr, KEY_AT_LEAST, 0),
		attr_item_integer(attr, KEY_SHARED_BY, 0) };
	*times = over->integer;
	return true;
}

struct symbol_list {
	struct arena *arena;
	VEC(struct extent_value) list;
};

static void add_symbol(struct op *op, void *context)
{
	struct symbol_list *symbols = context;
	struct run_time_trip trip;
	int64_t times;
	if (!timing_run_time(op, &trip, &times) || trip.remaining)
		return;
	int64_t most = trip.most * trip.tile - trip.plus;
	for (size_t i = 0; i < symbols->list.count; i++)
		if (text_same(symbols->list.data[i].symbol, trip.symbol)) {
			symbols->list.data[i].value = most > symbols->list.data[i].value
			        ? most
			        : symbols->list.data[i].value;
			return;
		}
	VEC_PUSH(symbols->arena, &symbols->list, ((struct extent_value){ trip.symbol, most }));
}

int timing_extents(struct arena *arena, const struct module *module, struct extent_value **extent)
{
	struct symbol_list symbols = { .arena = arena };
	ir_walk(module_body(module), add_symbol, &symbols);
	const struct op *main = module_main(module);
	/* the last tile of a loop reaches past the tokens; one token more would mean that another
	 * chunk follows */
	for (size_t i = 0; launch_may_continue(main) && i < symbols.list.count; i++)
		if (text_same(symbols.list.data[i].symbol, token_count_symbol(main)) &&
		        symbols.list.data[i].value > rows_most(main))
			symbols.list.data[i].value = rows_most(main);
	*extent = symbols.list.data;
	return (int)symbols.list.count;
}

bool timing_extent(
        const char *symbol, int extents, const struct extent_value *extent, int64_t *value)
{
	for (int i = 0; i < extents; i++)
		if (text_same(extent[i].symbol, symbol)) {
			*value = extent[i].value;
			return true;
		}
	return false;
}

/* The mean over layers whose sliding windows differ. */
static bool mean_of_layers(const struct op *op, const char *symbol, int extents,
        const struct extent_value *extent, int64_t *value)
{
	struct sliding_window sliding_window;
	int64_t all;
	int64_t sum = 0;
	if (!sliding_window_of(op, symbol, &sliding_window))
		return false;
	if (!timing_extent(sliding_window.symbol, extents, extent, &all))
		all = sliding_window.most;
	for (int i = 0; i < sliding_window.layers; i++)
		sum += sliding_window_value(&sliding_window, i, all);
	*value = sum / sliding_window.layers;
	return true;
}

bool timing_mean_extent(const struct op *op, const char *symbol, int extents,
        const struct extent_value *extent, int64_t *value)
{
	return timing_extent(symbol, extents, extent, value) ||
	        mean_of_layers(op, symbol, extents, extent, value);
}

static int64_t interleaved_trips(const struct run_time_trip *trip, int64_t trips_all)
{
	return trip->interleave > 1 ? (trips_all + trip->interleave - 1) / trip->interleave
	                            : trips_all;
}

int64_t timing_run_time_at(const struct op *op, int extents, const struct extent_value *extent)
{
	struct run_time_trip trip;
	int64_t times;
	int64_t value;
	if (!timing_run_time(op, &trip, &times))
		return -1;
	if (timing_mean_extent(op, trip.symbol, extents, extent, &value))
		return interleaved_trips(&trip, times * run_time_count(&trip, value));
	return interleaved_trips(
	        &trip, times * (trip.remaining && !trip.last_chunk ? 0 : trip.most));
}

int64_t timing_trips(const struct op *loop, int extents, const struct extent_value *extent)
{
	int64_t step = constant_of(loop->operand[2]);
	int64_t span = constant_of(loop->operand[1]) - constant_of(loop->operand[0]);
	int64_t known = timing_run_time_at(loop, extents, extent);
	if (known >= 0)
		return known;
	return step < 1 || span < 0 ? 0 : (span + step - 1) / step;
}

int64_t timing_most_trips(const struct op *loop)
{
	struct run_time_trip trip;
	int64_t times;
	if (!timing_run_time(loop, &trip, &times))
		return timing_trips(loop, 0, NULL);
	int64_t most = trip.most > trip.least ? trip.most : trip.least;
	return interleaved_trips(&trip, times * most);
}

static int argument_of(const struct timing_walk *timing_walk, const struct value *value)
{
	return !value->def && value->block == timing_walk->entry ? value->index : -1;
}

/* Cycles between the starts of two iterations: the scheduled interval, or what memory bandwidth
 * allows. */
static double interval_of(struct timing_walk *timing_walk, const struct op *loop, int64_t trips)
{
	double interval = (double)attr_integer_or(loop, KEY_STREAM_PIPELINE, 1);
	for (const struct op *op = loop->region[0]->first; op; op = op->next) {
		const struct value *value = op_accessed(op);
		int argument = value ? argument_of(timing_walk, value) : -1;
		if (argument < 0 || !type_is_port(timing_walk->entry->argument[argument]->type))
			continue;
		double cycles = timing_walk->word_cycles[argument];
		interval = cycles > interval ? cycles : interval;
		timing_walk->time.memory_bytes += (double)trips *
		        (double)type_bits(timing_walk->entry->argument[argument]->type->element) /
		        8;
	}
	return interval;
}

static void count_multiplies(
        struct timing_walk *timing_walk, const struct op *loop, int64_t trips, bool shared)
{
	int64_t lanes = 0;
	int64_t interval = attr_integer_or(loop, KEY_STREAM_PIPELINE, 1);
	for (const struct op *op = loop->region[0]->first; op; op = op->next)
		if (op->code == OP_DOT)
			lanes += type_elements(op->result[0]->type) *
			        type_elements(op->operand[0]->type);
		else if (op->code == OP_MULF ||
		        (op->code == OP_MULI &&
		                type_scalar(op->result[0]->type)->kind != TYPE_INDEX))
			lanes += type_lanes(op->result[0]->type);
	timing_walk->time.multiplies += lanes * trips;
	timing_walk->time.multipliers += shared ? 0 : (lanes + interval - 1) / interval;
}

struct op *timing_only_loop(const struct block *block)
{
	struct op *loop = port_run_only_loop(block);
	return loop && block->parent && port_run_begins(block->parent, loop) ? NULL : loop;
}

static int64_t block_cycles(
        struct timing_walk *timing_walk, const struct block *block, int64_t repeats);

static int64_t trips_of(const struct timing_walk *timing_walk, const struct op *loop)
{
	return timing_trips(loop, timing_walk->extents.count, timing_walk->extents.value);
}

static int64_t loop_cycles(struct timing_walk *timing_walk, const struct op *loop, int64_t repeats)
{
	int mark = nest_datapath(loop);
	bool shared = mark >= 0 && timing_walk->datapath[mark];
	if (attr_get(loop, KEY_STREAM_CYCLES))
		return attr_integer_or(loop, KEY_STREAM_CYCLES, 0);
	int64_t trips = trips_of(timing_walk, loop);
	if (mark >= 0)
		timing_walk->datapath[mark] = true;
	for (const struct op *inner;
	        !attr_get(loop, KEY_STREAM_PIPELINE) && (inner = timing_only_loop(loop->region[0]));
	        loop = inner)
		trips *= trips_of(timing_walk, inner);
	const int64_t own = timing_walk->rewinding ? 0 : LOOP_CYCLES;
	if (trips == 0)
		return own;
	if (!attr_get(loop, KEY_STREAM_PIPELINE))
		return own + trips * block_cycles(timing_walk, loop->region[0], repeats * trips);
	count_multiplies(timing_walk, loop, trips * repeats, shared);
	double interval = interval_of(timing_walk, loop, trips * repeats);
	if (timing_walk->rewinding)
		return (int64_t)(interval * (double)trips);
	return (int64_t)(interval * (double)(trips - 1)) +
	        timing_depth(timing_walk->platform, loop->region[0]) + own;
}

static int64_t block_cycles(
        struct timing_walk *timing_walk, const struct block *block, int64_t repeats)
{
	int64_t cycles = 0;
	for (const struct op *op = block->first; op; op = op->next)
		cycles += op->code == OP_FOR ? loop_cycles(timing_walk, op, repeats)
		                             : operation_latency(timing_walk->platform, op);
	return cycles;
}

/* Cycles per word of each port, each with a memory channel of its own: a process is never faster
 * than that, and ports that share a channel need not be active at the same time. */
static double *port_cycles(
        struct arena *arena, const struct platform *platform, const struct op *function)
{
	const struct block *body = function->region[0];
	double *cycles = ARENA_ARRAY(arena, double, body->arguments + 1);
	double rate = platform_channel_rate(platform);
	for (int i = 0; i < body->arguments; i++)
		if (type_is_port(body->argument[i]->type))
			cycles[i] = (double)type_bits(body->argument[i]->type->element) / 8 / rate;
	return cycles;
}

/* timing_walk: the platform and the extents; cycles: [main's arguments] */
static struct process_time process_time(struct arena *arena, struct timing_walk timing_walk,
        const double *cycles, const struct process_cost *process)
{
	const struct block *entry = process->function->region[0];
	double *own = ARENA_ARRAY(arena, double, entry->arguments + 1);
	for (int i = 0; i < process->call->operands; i++) {
		const struct value *operand = process->call->operand[i];
		own[i] = operand->def ? 0 : cycles[operand->index];
	}
	timing_walk.entry = entry;
	timing_walk.word_cycles = own;
	timing_walk.rewinding = attr_get(process->function, KEY_STREAM_REWIND);
	timing_walk.time.busy = block_cycles(&timing_walk, entry, 1) + PROCESS_CYCLES;
	return timing_walk.time;
}

struct design_time design_time(struct arena *arena, const struct platform *platform,
        const struct module *module, const struct design_cost *cost, struct extent_list extents)
{
	struct op *function = module_main(module);
	const struct timing_walk timing_walk = { .platform = platform, .extents = extents };
	struct design_time time = { .process = ARENA_ARRAY(
		                            arena, struct process_time, cost->processes) };
	double *cycles = port_cycles(arena, platform, function);
	for (int i = 0; i < cost->processes; i++) {
		struct process_time own = time.process[i] =
		        process_time(arena, timing_walk, cycles, &cost->process[i]);
		time.multiplies += own.multiplies;
		time.multipliers += own.multipliers;
		time.memory_bytes += own.memory_bytes;
		if (own.busy > time.least) {
			time.least = own.busy;
			time.longest = i;
		}
	}
	int64_t chain = longest_chain(arena, platform, cost, time.process);
	time.most = chain < time.least ? time.least : chain;
	return time;
}
