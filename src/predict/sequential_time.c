/* Schedules the pipelined loops of a nest on arrays.
 * An operation starts when its operands are ready. A read that may find what an earlier iteration
 * wrote starts no earlier than that write ends: start(read) + II distance >= end(write). The least
 * II for which such starts exist is found by longest paths. */
#include "base/number.h"
#include "predict/sequential_time.h"
#include <string.h>

struct time_edge {
	int from, to;
	int64_t latency, distance; /* start(to) >= start(from) + latency - II distance */
};

struct loop_body {
	struct arena *arena;
	const struct platform *platform;
	VEC(const struct op *) ops;
	VEC(struct time_edge) edges;
	int64_t *start; /* [ops] */
	int64_t copies; /* of an array, at most */
};

static bool is_register(const struct value *array)
{
	return type_elements(array->type) == 1;
}

static int64_t latency_of(const struct loop_body *body, const struct op *op)
{
	if (op->code == OP_MEMREF_LOAD && is_register(op->operand[0]))
		return 0;
	return operation_latency(body->platform, op);
}

static void add_edge(struct loop_body *body, int from, int to, int64_t latency, int64_t distance)
{
	VEC_PUSH(body->arena, &body->edges, ((struct time_edge){ from, to, latency, distance }));
}

static void add_operands(struct loop_body *body, int at)
{
	const struct op *op = body->ops.data[at];
	for (int i = 0; i < op->operands; i++) {
		const struct op *def = op->operand[i]->def;
		for (int j = at - 1; def && j >= 0; j--)
			if (body->ops.data[j] == def)
				add_edge(body, j, at, latency_of(body, def), 0);
	}
}

/* Order of two accesses to one array, the first of which comes first in the body. */
static void add_order(struct loop_body *body, int first, int second, bool pipelined)
{
	const struct op *a = body->ops.data[first];
	const struct op *b = body->ops.data[second];
	bool a_writes = op_writes(a, op_accessed(a));
	bool b_writes = op_writes(b, op_accessed(b));
	if (a_writes)
		add_edge(body, first, second, latency_of(body, a), 0);
	if (!pipelined || (!a_writes && !b_writes))
		return;
	if (a_writes && b_writes) {
		add_edge(body, second, first, latency_of(body, b), 1);
		return;
	}
	if (a_writes) {
		add_edge(body, second, first, 0, 1);
		return;
	}
	int64_t distance = attr_integer_or(a, KEY_STREAM_DISTANCE, 1);
	if (distance < SEQUENTIAL_NEVER)
		add_edge(body, second, first, latency_of(body, b), distance);
}

static void add_accesses(struct loop_body *body, int at, bool pipelined)
{
	const struct value *array = op_accessed(body->ops.data[at]);
	for (int j = 0; array && j < at; j++)
		if (op_accessed(body->ops.data[j]) == array)
			add_order(body, j, at, pipelined);
}

static bool is_inner_loop(const struct op *op)
{
	return op->code == OP_FOR && !attr_get(op, KEY_STREAM_LANES);
}

/* Lanes do the same at once. */
static void add_ops(struct loop_body *body, const struct op *first, bool pipelined)
{
	for (const struct op *op = first; op && !is_inner_loop(op); op = op->next) {
		if (op->code == OP_FOR) {
			add_ops(body, op->region[0]->first, pipelined);
			continue;
		}
		VEC_PUSH(body->arena, &body->ops, op);
		add_operands(body, (int)body->ops.count - 1);
		add_accesses(body, (int)body->ops.count - 1, pipelined);
	}
}

static struct loop_body body_of(struct arena *arena, const struct platform *platform,
        const struct op *first, bool pipelined)
{
	struct loop_body body = { .arena = arena, .platform = platform };
	add_ops(&body, first, pipelined);
	body.start = ARENA_ARRAY(arena, int64_t, body.ops.count + 1);
	return body;
}

/* Finds the starts at this interval; false: there are none. */
static bool settle(struct loop_body *body, int64_t interval)
{
	memset(body->start, 0, sizeof *body->start * body->ops.count);
	for (size_t round = 0; round <= body->ops.count; round++) {
		bool moved = false;
		for (size_t i = 0; i < body->edges.count; i++) {
			const struct time_edge *edge = &body->edges.data[i];
			int64_t least =
			        body->start[edge->from] + edge->latency - interval * edge->distance;
			if (least <= body->start[edge->to])
				continue;
			body->start[edge->to] = least;
			moved = true;
		}
		if (!moved)
			return true;
	}
	return false;
}

static int64_t depth_of(const struct loop_body *body)
{
	int64_t depth = 0;
	for (size_t i = 0; i < body->ops.count; i++) {
		int64_t end = body->start[i] + latency_of(body, body->ops.data[i]);
		depth = end > depth ? end : depth;
	}
	return depth;
}

static int64_t reads_of(const struct loop_body *body, const struct value *array)
{
	int64_t reads = 0;
	for (size_t i = 0; i < body->ops.count; i++) {
		const struct op *op = body->ops.data[i];
		reads += op_accessed(op) == array && !op_writes(op, array);
	}
	return reads;
}

/* An array takes one word a cycle, and gives one from each copy. */
static int64_t least_interval(const struct loop_body *body)
{
	int64_t most = 1;
	for (size_t i = 0; i < body->ops.count; i++) {
		const struct value *array = op_accessed(body->ops.data[i]);
		int64_t writes = 0;
		for (size_t j = 0; array && j < body->ops.count; j++)
			writes += op_writes(body->ops.data[j], array);
		if (!array || is_register(array))
			continue;
		int64_t turns = (reads_of(body, array) + body->copies - 1) / body->copies;
		most = writes > most ? writes : most;
		most = turns > most ? turns : most;
	}
	return most;
}

static int64_t find_interval(struct loop_body *body)
{
	int64_t low = least_interval(body);
	int64_t high = low;
	while (!settle(body, high))
		high *= 2;
	while (low < high) {
		int64_t middle = (low + high) / 2;
		if (settle(body, middle))
			high = middle;
		else
			low = middle + 1;
	}
	settle(body, low);
	return low;
}

/* --- counting */

struct timed_loop {
	const struct op *loop;
	bool pipelined, varies; /* its cycles depend on counters around */
	bool flattened;         /* one pipeline with the only loop inside */
	bool has_rows; /* flattened, and trips of the loop inside follow from its counter */
	int64_t interval, depth;
	int64_t straight; /* cycles of operations between the loops of the body */
	VEC(struct timed_loop *) inner;
};

struct nest_timer {
	struct arena *arena;
	const struct platform *platform;
	struct module *module;
	int64_t copies; /* of an array, at most */
};

static bool has_loop(const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next)
		if (is_inner_loop(op))
			return true;
	return false;
}

/* Does the value follow from the counter?  Without counters of loops further inside. */
static bool follows_from(const struct value *value, const struct value *counter)
{
	if (value == counter)
		return true;
	for (int i = 0; value->def && i < value->def->operands; i++)
		if (follows_from(value->def->operand[i], counter))
			return true;
	return false;
}

/* The loop in the block, if all else in it are numbers; else NULL. */
static struct op *only_loop(const struct block *block)
{
	struct op *loop = NULL;
	for (struct op *op = block->first; op; op = op->next) {
		const struct type *type = op->results == 1 ? op->result[0]->type : NULL;
		bool number = type && !op_accessed(op) && !op->region[0] &&
		        (type->kind == TYPE_INDEX || type->width == 1);
		if (!number && op->code != OP_YIELD && (loop || op->code != OP_FOR))
			return NULL;
		loop = op->code == OP_FOR ? op : loop;
	}
	return loop;
}

struct op *sequential_rows(const struct op *loop)
{
	struct op *inner = only_loop(loop->region[0]);
	bool rows = inner && attr_get(loop, KEY_STREAM_FLATTENED) &&
	        attr_get(inner, KEY_STREAM_PIPELINE) &&
	        (!timing_only_loop(loop->region[0]) ||
	                follows_from(inner->operand[1], loop->region[0]->argument[0]));
	return rows ? inner : NULL;
}

/* Is the loop's body numbers and one loop, both parallel, with bounds that stay the same?  A
 * pipelined loop's bound may follow from the counter: rows that are shorter than it takes to know
 * their length cost some iterations, which is less than to drain behind each. */
static bool may_flatten(const struct op *loop, const struct timed_loop *inner)
{
	if (!attr_get(loop, KEY_STREAM_PARALLEL) || !attr_get(inner->loop, KEY_STREAM_PARALLEL) ||
	        inner->has_rows)
		return false;
	if (inner->pipelined && inner->depth >= SEQUENTIAL_ROW &&
	        only_loop(loop->region[0]) == inner->loop)
		return true;
	bool good = (inner->pipelined || inner->flattened) &&
	        timing_only_loop(loop->region[0]) == inner->loop;
	for (const struct timed_loop *at = inner; good && at;
	        at = at->flattened ? at->inner.data[0] : NULL)
		good = attr_get(at->loop, KEY_STREAM_PARALLEL) &&
		        !follows_from(at->loop->operand[1], loop->region[0]->argument[0]);
	return good;
}

static struct timed_loop *time_loop(struct nest_timer *c, struct op *loop)
{
	struct timed_loop *timed = ARENA_NEW(c->arena, struct timed_loop);
	struct block *block = loop->region[0];
	timed->loop = loop;
	timed->pipelined = !has_loop(block);
	if (timed->pipelined) {
		struct loop_body body = body_of(c->arena, c->platform, block->first, true);
		body.copies = c->copies;
		timed->interval = find_interval(&body);
		timed->depth = depth_of(&body);
		attr_set(c->module, loop, KEY_STREAM_PIPELINE,
		        attr_integer(c->module, timed->interval));
		return timed;
	}
	for (struct op *op = block->first; op;) {
		struct loop_body body = body_of(c->arena, c->platform, op, false);
		settle(&body, 1);
		timed->straight += depth_of(&body);
		while (op && !is_inner_loop(op))
			op = op->next;
		if (op) {
			VEC_PUSH(c->arena, &timed->inner, time_loop(c, op));
			op = op->next;
		}
	}
	timed->flattened = timed->inner.count == 1 && may_flatten(loop, timed->inner.data[0]);
	if (timed->flattened) {
		timed->interval = timed->inner.data[0]->interval;
		timed->depth = timed->inner.data[0]->depth;
		attr_set(c->module, loop, KEY_STREAM_FLATTENED, attr_unit(c->module));
		timed->has_rows = sequential_rows(loop);
	}
	return timed;
}

/* --- copies of arrays */

/* What a nest reads of an array. */
struct read_array {
	const struct value *array;
	struct nest_memory copy;
	int64_t reads; /* in an iteration of a pipelined loop, at most */
};

struct read_arrays {
	struct arena *arena;
	const struct platform *platform;
	VEC(struct read_array) arrays;
};

static struct nest_memory copy_of(const struct platform *platform, const struct value *array)
{
	const struct type *type = array->type;
	int64_t words = type->shape[type->rank - 1];
	return sequential_array(type_bits(type->element), words, type_elements(type) / words,
	        platform->die[0].uram > 0);
}

static void add_reads(struct read_arrays *found, const struct loop_body *body)
{
	for (size_t i = 0; i < body->ops.count; i++) {
		const struct value *array = op_accessed(body->ops.data[i]);
		int64_t reads = array ? reads_of(body, array) : 0;
		size_t at = 0;
		while (at < found->arrays.count && found->arrays.data[at].array != array)
			at++;
		if (!array || is_register(array))
			continue;
		if (at == found->arrays.count)
			VEC_PUSH(found->arena, &found->arrays,
			        ((struct read_array){ array, copy_of(found->platform, array), 1 }));
		struct read_array *entry = &found->arrays.data[at];
		entry->reads = reads > entry->reads ? reads : entry->reads;
	}
}

static void find_reads(struct read_arrays *found, const struct op *loop)
{
	const struct block *block = loop->region[0];
	if (!has_loop(block)) {
		struct loop_body body = body_of(found->arena, found->platform, block->first, true);
		add_reads(found, &body);
		return;
	}
	for (const struct op *op = block->first; op; op = op->next)
		if (is_inner_loop(op))
			find_reads(found, op);
}

/* Copies of an array for which a die has room, at most; one that is read less has fewer. */
static int64_t find_copies(
        struct arena *arena, const struct platform *platform, const struct op *first)
{
	struct read_arrays found = { .arena = arena, .platform = platform };
	int64_t copies = 1;
	for (const struct op *op = first; op; op = op->next)
		if (op->code == OP_FOR)
			find_reads(&found, op);
	for (size_t i = 0; i < found.arrays.count; i++) {
		int64_t reads = found.arrays.data[i].reads;
		copies = reads > copies ? reads : copies;
	}
	int count = (int)found.arrays.count;
	struct nest_memory *memory = ARENA_ARRAY(arena, struct nest_memory, count + 1);
	for (; copies > 1; copies--) {
		for (int i = 0; i < count; i++) {
			const struct read_array *array = &found.arrays.data[i];
			memory[i] = sequential_copies(
			        &array->copy, copies < array->reads ? copies : array->reads);
		}
		if (sequential_is_held(platform, count, memory))
			break;
	}
	return copies;
}

struct nest_memory sequential_array(int64_t bits, int64_t words, int64_t banks, bool has_uram)
{
	struct resources bank = storage_cost(storage_choose(bits, words, has_uram), bits, words);
	struct resources other = storage_cost(storage_choose(bits, words, false), bits, words);
	return (struct nest_memory){ bank.lut * banks, bank.bram18 * banks, bank.uram * banks,
		bank.uram ? other.bram18 * banks : 0 };
}

struct nest_memory sequential_copies(const struct nest_memory *array, int64_t copies)
{
	return (struct nest_memory){ array->lut * copies, array->bram18 * copies,
		array->uram * copies, array->instead * copies };
}

/* The largest array whose place is not chosen; NULL: there is none. */
static struct nest_memory *largest_left(int count, struct nest_memory *array)
{
	struct nest_memory *found = NULL;
	for (int i = 0; i < count; i++)
		if (array[i].uram && (!found || array[i].instead > found->instead))
			found = &array[i];
	return found;
}

/* As bind_storage does: each array takes the kind of which it uses the smaller share of what is
 * left. */
bool sequential_is_held(const struct platform *platform, int count, struct nest_memory *array)
{
	const struct resources *die = &platform->die[0];
	int64_t uram = die->uram * 19 / 20;
	int64_t bram = die->bram18 * 9 / 10;
	int64_t lut = die->lut / 4;
	for (int i = 0; i < count; i++) {
		lut -= array[i].lut;
		bram -= array[i].bram18;
	}
	for (struct nest_memory *next; (next = largest_left(count, array)); next->uram = 0) {
		bool moves = next->uram > uram ||
		        (next->instead <= bram &&
		                (double)next->instead * (double)uram <
		                        (double)next->uram * (double)bram);
		uram -= moves ? 0 : next->uram;
		bram -= moves ? next->instead : 0;
	}
	return lut >= 0 && bram >= 0;
}

static bool bounds_follow(const struct timed_loop *timed, const struct value *counter)
{
	if (follows_from(timed->loop->operand[1], counter))
		return true;
	for (size_t i = 0; i < timed->inner.count; i++)
		if (bounds_follow(timed->inner.data[i], counter))
			return true;
	return false;
}

static void find_varying(struct timed_loop *timed)
{
	const struct value *counter = timed->loop->region[0]->argument[0];
	for (size_t i = 0; i < timed->inner.count; i++) {
		timed->varies = timed->varies || bounds_follow(timed->inner.data[i], counter);
		find_varying(timed->inner.data[i]);
	}
}

static int64_t compare(int64_t predicate, int64_t a, int64_t b)
{
	switch (predicate) {
	case CMPI_EQ: return a == b;
	case CMPI_NE: return a != b;
	case CMPI_SLT: return a < b;
	case CMPI_SLE: return a <= b;
	case CMPI_SGT: return a > b;
	default: return a >= b;
	}
}

static int64_t number_of(const struct value *value);

static int64_t apply(const struct op *op)
{
	const struct attr *map = attr_get(op, KEY_MAP);
	int64_t sum = affine_constant(map->map, 0);
	for (int i = 0; i < op->operands; i++)
		sum += affine_at(map->map, 0, i) * number_of(op->operand[i]);
	return sum;
}

/* A bound or what it follows from; counters hold their numbers in value->data. */
static int64_t number_of(const struct value *value)
{
	const struct op *op = value->def;
	if (!op)
		return *(const int64_t *)value->data;
	if (op->code == OP_CONSTANT)
		return attr_get(op, KEY_VALUE)->integer;
	if (op->code == OP_APPLY)
		return apply(op);
	int64_t a = number_of(op->operand[0]);
	if (op->code == OP_SELECT)
		return number_of(op->operand[a ? 1 : 2]);
	int64_t b = number_of(op->operand[1]);
	switch (op->code) {
	case OP_CMPI: return compare(attr_integer_or(op, KEY_PREDICATE, 0), a, b);
	case OP_MINSI: return a < b ? a : b;
	case OP_MAXSI: return a > b ? a : b;
	case OP_ADDI: return a + b;
	case OP_SUBI: return a - b;
	case OP_MULI: return a * b;
	case OP_FLOORDIVSI: return b ? floor_div(a, b) : 0;
	case OP_REMSI: return b ? a % b : 0;
	case OP_ANDI: return a & b;
	case OP_ORI: return a | b;
	default: return a ^ b;
	}
}

/* Iterations of rows whose lengths follow from the counter, in front of which the first length is
 * computed. */
static int64_t row_iterations(const struct timed_loop *timed, int64_t rows)
{
	int64_t counter = 0;
	int64_t sum = SEQUENTIAL_ROW;
	timed->loop->region[0]->argument[0]->data = &counter;
	for (; counter < rows; counter++) {
		int64_t row = number_of(timed->inner.data[0]->loop->operand[1]);
		sum += row > SEQUENTIAL_ROW ? row : SEQUENTIAL_ROW;
	}
	return sum;
}

static int64_t cycles_of(const struct timed_loop *timed);

static int64_t turn_of(const struct timed_loop *timed)
{
	int64_t cycles = timed->straight;
	for (size_t i = 0; i < timed->inner.count; i++)
		cycles += cycles_of(timed->inner.data[i]);
	return cycles;
}

static int64_t cycles_of(const struct timed_loop *timed)
{
	int64_t trips = number_of(timed->loop->operand[1]);
	int64_t cycles = LOOP_CYCLES;
	int64_t counter = 0;
	if (trips <= 0)
		return cycles;
	if (timed->has_rows)
		return cycles + timed->depth + timed->interval * (row_iterations(timed, trips) - 1);
	for (const struct timed_loop *at = timed; at->flattened;
	        trips *= number_of(at->loop->operand[1]))
		at = at->inner.data[0];
	if (trips <= 0)
		return cycles;
	if (timed->pipelined || timed->flattened)
		return cycles + timed->depth + timed->interval * (trips - 1);
	timed->loop->region[0]->argument[0]->data = &counter;
	if (!timed->varies)
		return cycles + trips * turn_of(timed);
	for (; counter < trips; counter++)
		cycles += turn_of(timed);
	return cycles;
}

void sequential_schedule(struct module *module, const struct platform *platform, struct op *first)
{
	struct arena *arena = arena_within(module->arena);
	struct nest_timer timer = { arena, platform, module, find_copies(arena, platform, first) };
	for (struct op *nest = first; nest; nest = nest->next) {
		if (nest->code != OP_FOR)
			continue;
		struct timed_loop *timed = time_loop(&timer, nest);
		find_varying(timed);
		attr_set(module, nest, KEY_STREAM_CYCLES, attr_integer(module, cycles_of(timed)));
	}
	arena_free(arena);
}

/* Words of the array that the lanes around a load read from a bank in a cycle. */
static int64_t words_of(const struct op *load)
{
	int64_t words = 1;
	for (const struct op *loop = load->parent->parent; attr_get(loop, KEY_STREAM_LANES);
	        loop = loop->parent->parent) {
		const struct value *counter = loop->region[0]->argument[0];
		bool bank = false;
		for (int i = 1; i + 1 < load->operands; i++)
			bank = bank || follows_from(load->operand[i], counter);
		if (!bank && follows_from(load->operand[load->operands - 1], counter))
			words *= number_of(loop->operand[1]);
	}
	return words;
}

static const struct attr *bank_of(const struct op *load, int dim)
{
	const struct op *def = load->operand[dim]->def;
	return def && def->code == OP_CONSTANT ? attr_get(def, KEY_VALUE) : NULL;
}

/* Are the words of two loads in different banks, whatever the counters are? */
static bool is_apart(const struct op *load, const struct op *other)
{
	for (int i = 1; i + 1 < load->operands; i++)
		if (bank_of(load, i) && bank_of(other, i) &&
		        bank_of(load, i)->integer != bank_of(other, i)->integer)
			return true;
	return false;
}

struct load_list {
	struct arena *arena;
	const struct value *array;
	VEC(const struct op *) loads;
};

static void list_loads(struct load_list *list, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next)
		if (op->code == OP_FOR)
			list_loads(list, op->region[0]);
		else if (op->code == OP_MEMREF_LOAD && op->operand[0] == list->array)
			VEC_PUSH(list->arena, &list->loads, op);
}

/* Words that a bank gives for an iteration, at most. */
static int64_t reads_in(struct arena *arena, const struct block *block, const struct value *array)
{
	struct load_list list = { .arena = arena, .array = array };
	int64_t most = 0;
	list_loads(&list, block);
	for (size_t i = 0; i < list.loads.count; i++) {
		int64_t words = 0;
		for (size_t j = 0; j < list.loads.count; j++)
			words += is_apart(list.loads.data[i], list.loads.data[j])
			        ? 0
			        : words_of(list.loads.data[j]);
		most = words > most ? words : most;
	}
	return most;
}

int64_t sequential_reads(struct arena *arena, const struct block *block, const struct value *array)
{
	int64_t most = 0;
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code != OP_FOR)
			continue;
		int64_t interval = attr_integer_or(op, KEY_STREAM_PIPELINE, 0);
		int64_t reads = interval ? reads_in(arena, op->region[0], array)
		                         : sequential_reads(arena, op->region[0], array);
		reads = interval ? (reads + interval - 1) / interval : reads;
		most = reads > most ? reads : most;
	}
	return most;
}
