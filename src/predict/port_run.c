/* Finds the loops over consecutive words of a memory port (port_run.h). */
#include "predict/port_run.h"
#include "ir/datapath_sharing.h"
#include "predict/timing.h"

#define RUN_LOOPS 16

/* A nest, and the address of one of its loads as a linear form in its counters. */
struct run_nest {
	const struct op *loop[RUN_LOOPS]; /* outermost first */
	int loops;
	int64_t factor[RUN_LOOPS];
	bool other; /* the address has a term that is not linear */
};

static bool is_run_time(const struct op *loop)
{
	return attr_get(loop, KEY_STREAM_RUN_TIME);
}

struct op *port_run_only_loop(const struct block *block)
{
	struct op *loop = NULL;
	for (struct op *op = block->first; op; op = op->next) {
		bool idle = op->code == OP_CONSTANT || op->code == OP_APPLY || op->code == OP_YIELD;
		if (!idle && (loop || op->code != OP_FOR))
			return NULL;
		loop = op->code == OP_FOR ? op : loop;
	}
	return loop;
}

/* false: the loops are no nest around one pipeline, or the HLS compiler sees the inner ones in a
 * function of their own */
static bool read_nest(struct run_nest *nest, const struct op *loop)
{
	*nest = (struct run_nest){ .loops = 0 };
	while (loop && nest->loops < RUN_LOOPS && (!nest->loops || nest_datapath(loop) < 0)) {
		nest->loop[nest->loops++] = loop;
		if (attr_get(loop, KEY_STREAM_PIPELINE))
			return true;
		loop = port_run_only_loop(loop->region[0]);
	}
	return false;
}

static bool is_inside(const struct run_nest *nest, const struct block *block)
{
	for (int i = 0; i < nest->loops; i++)
		if (nest->loop[i]->region[0] == block)
			return true;
	return false;
}

static void add_terms(struct run_nest *nest, const struct value *value, int64_t factor)
{
	const struct op *def = value->def;
	for (int i = 0; !def && i < nest->loops; i++)
		nest->factor[i] += value == nest->loop[i]->region[0]->argument[0] ? factor : 0;
	if (!def || def->code == OP_CONSTANT || !is_inside(nest, def->parent))
		return;
	const struct attr *map = def->code == OP_APPLY ? attr_get(def, KEY_MAP) : NULL;
	nest->other |= !map;
	for (int i = 0; map && i < def->operands; i++)
		add_terms(nest, def->operand[i], factor * affine_at(map->map, 0, i));
}

/* The outermost loop of the run of consecutive words; the number of loops: there is none. */
static int first_of_run(const struct run_nest *nest, int64_t *words)
{
	int first = nest->loops;
	bool open = !nest->other; /* a loop with a run-time count ends the run */
	*words = 1;
	for (int i = nest->loops - 1; i >= 0 && open; i--) {
		int64_t trips = timing_trips(nest->loop[i], 0, NULL);
		if (nest->factor[i] != *words && (trips > 1 || is_run_time(nest->loop[i])))
			break;
		*words *= trips;
		open = !is_run_time(nest->loop[i]);
		first = i;
	}
	return first;
}

/* The address of all loads from ports in the pipelined body. NULL: it has none, or several, or does
 * more than to pass words on. */
static const struct value *only_address(const struct op *loop)
{
	const struct value *address = NULL;
	for (const struct op *op = loop->region[0]->first; op; op = op->next) {
		bool load = op->code == OP_MEMREF_LOAD && type_is_port(op->operand[0]->type) &&
		        op->operands == 2;
		bool idle = op->code == OP_PUSH || op->code == OP_JOIN_LANES ||
		        op->code == OP_YIELD || op_info[op->code].levels & LEVEL_BODY;
		if ((!load && !idle && op->code != OP_APPLY && op->code != OP_CONSTANT) ||
		        (load && address && address != op->operand[1]))
			return NULL;
		address = load ? op->operand[1] : address;
	}
	return address;
}

/* Does the body use the counters of the run for anything but the address? */
static bool uses_place(const struct run_nest *nest, int first)
{
	const struct block *body = nest->loop[nest->loops - 1]->region[0];
	for (const struct op *op = body->first; op; op = op->next)
		for (int k = 0; op->code != OP_APPLY && k < op->operands; k++) {
			const struct value *value = op->operand[k];
			bool address = op->code == OP_MEMREF_LOAD && k == 1;
			bool counter = value->def && value->def->code == OP_APPLY &&
			        is_inside(nest, value->def->parent);
			for (int i = first; i < nest->loops; i++)
				counter |= value == nest->loop[i]->region[0]->argument[0];
			if (counter && !address)
				return true;
		}
	return false;
}

/* The outermost loop of the nest's run; -1: the nest is none of a run, or a shared datapath, whose
 * loops are one. */
static int run_of(struct run_nest *nest, const struct op *loop)
{
	int64_t words;
	const struct value *address;
	if (nest_datapath(loop) >= 0 || !read_nest(nest, loop) ||
	        !(address = only_address(nest->loop[nest->loops - 1])))
		return -1;
	add_terms(nest, address, 1);
	int first = first_of_run(nest, &words);
	return first < nest->loops && words >= PORT_RUN_LEAST && !uses_place(nest, first) ? first
	                                                                                  : -1;
}

bool port_run_begins(const struct op *outer, const struct op *inner)
{
	struct run_nest nest;
	if (outer->code != OP_FOR || attr_get(outer, KEY_STREAM_LAYER) ||
	        run_of(&nest, outer) != 1 || nest.loop[1] != inner)
		return false;
	for (int i = 1; i < nest.loops; i++)
		if (is_run_time(nest.loop[i]))
			return true;
	return is_run_time(outer) && outer->parent->parent->code == OP_FOR &&
	        port_run_only_loop(outer->parent) == outer;
}

/* The outermost loop of the pipeline that op stands in. */
static const struct op *pipeline_of(const struct op *op)
{
	const struct op *loop = op->parent->parent;
	while (loop->parent->parent->code == OP_FOR &&
	        timing_only_loop(loop->parent->parent->region[0]) == loop)
		loop = loop->parent->parent;
	return loop;
}

struct burst_search {
	const struct value *port;
	bool found;
};

static void find_burst(struct op *op, void *context)
{
	struct burst_search *search = context;
	int64_t words = 1;
	struct run_nest nest;
	const int access = op_access(op);
	if ((op->code != OP_MEMREF_LOAD && op->code != OP_MEMREF_STORE) ||
	        op->operand[access] != search->port || op->operands <= access + 1 ||
	        op->parent->parent->code != OP_FOR || search->found)
		return;
	const struct op *loop = pipeline_of(op);
	if (port_run_counts_by_hand(loop) || !read_nest(&nest, loop))
		return;
	add_terms(&nest, op->operand[access + 1], 1);
	search->found = first_of_run(&nest, &words) < nest.loops && words > 1;
}

bool port_run_bursts(const struct op *process, int argument)
{
	struct burst_search search = { .port = process->region[0]->argument[argument] };
	ir_walk(process->region[0], find_burst, &search);
	return search.found;
}

bool port_run_is(const struct op *loop)
{
	struct run_nest nest;
	return run_of(&nest, loop) == 0 && nest.loops > 1 && is_run_time(nest.loop[0]);
}

bool port_run_counts_by_hand(const struct op *loop)
{
	bool by_hand = false;
	if (port_run_is(loop))
		return false;
	for (const struct op *inner = loop; inner && !attr_get(inner, KEY_STREAM_PIPELINE);) {
		inner = port_run_only_loop(inner->region[0]);
		by_hand |= inner && (is_run_time(inner) || nest_datapath(loop) >= 0);
	}
	return by_hand;
}
