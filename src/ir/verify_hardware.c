/* Rules of hardware level: form of main and of processes, pipelined loops, one writer and one
 * reader per channel. */
#include "base/map.h"
#include "ir/channel_ends.h"
#include "ir/datapath_sharing.h"
#include "ir/verify.h"
#include <stdlib.h>

/* The channel that an operation accesses, else NULL. */
static const struct value *channel_of(const struct op *op)
{
	bool memory =
	        op->code == OP_MEMREF_LOAD || op->code == OP_MEMREF_STORE || op->code == OP_WRITE;
	return memory ? NULL : op_accessed(op);
}

static bool is_constant(const struct value *value, int64_t number)
{
	const struct attr *attr = value->def && value->def->code == OP_CONSTANT
	        ? attr_get(value->def, KEY_VALUE)
	        : NULL;
	return attr && attr->kind == ATTR_INTEGER && attr->integer == number;
}

static void check_pipelined(struct verifier *verifier, const struct op *loop)
{
	if (attr_integer_or(loop, KEY_STREAM_PIPELINE, 0) < 1)
		verify_fail(verifier, loop, "stream.pipeline is not positive");
	for (const struct op *op = loop->region[0]->first; op; op = op->next) {
		bool lanes = op->code == OP_FOR && attr_get(op, KEY_STREAM_LANES);
		if ((op->code == OP_FOR && !lanes) || op->code == OP_ACQUIRE ||
		        op->code == OP_RELEASE)
			verify_fail(verifier, op, "does not belong in a pipelined loop");
		for (const struct op *other = loop->region[0]->first; channel_of(op) && other != op;
		        other = other->next)
			if (channel_of(other) == channel_of(op))
				verify_fail(verifier, op, "a pipelined loop accesses a FIFO twice");
	}
}

static void check_process_op(struct op *op, void *context)
{
	struct verifier *verifier = context;
	if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL || op->code == OP_CALL)
		verify_fail(verifier, op, "belongs to main");
	if (op->code == OP_ALLOCA && op->parent->parent->code != OP_FUNC)
		verify_fail(verifier, op, "arrays have to be declared at the top of a process");
	if (op->code != OP_FOR)
		return;
	if (op->results || !is_constant(op->operand[0], 0) || !is_constant(op->operand[2], 1))
		verify_fail(verifier, op,
		        "a loop of a process counts from 0 by 1 and carries no values");
	if (attr_get(op, KEY_STREAM_PIPELINE))
		check_pipelined(verifier, op);
}

struct datapath_check {
	struct verifier *verifier;
	/* first nest of each datapath, NULL until it is met */
	const struct op *first[NEST_DATAPATHS_MOST];
};

/* A constant above 0, or a choice between such. */
static bool is_positive(const struct value *value)
{
	const struct op *def = value->def;
	const struct attr *number = def ? attr_get(def, KEY_VALUE) : NULL;
	if (def && def->code == OP_SELECT)
		return is_positive(def->operand[1]) && is_positive(def->operand[2]);
	return number && number->kind == ATTR_INTEGER && number->integer > 0;
}

/* Does the pop happen in the first iteration of its loops? Its condition must be constant, or that
 * counters are 0 or below a positive number. Then it never repeats a word of an earlier nest. */
static bool pops_in_first_iteration(const struct value *when)
{
	const struct op *def = when->def;
	if (def && def->code == OP_ANDI)
		return pops_in_first_iteration(def->operand[0]) &&
		        pops_in_first_iteration(def->operand[1]);
	bool counter = def && def->code == OP_CMPI && !def->operand[0]->def &&
	        def->operand[0]->type->kind == TYPE_INDEX;
	int64_t predicate = counter ? attr_integer_or(def, KEY_PREDICATE, -1) : -1;
	return (def && def->code == OP_CONSTANT) ||
	        (predicate == CMPI_EQ && is_constant(def->operand[1], 0)) ||
	        (predicate == CMPI_SLT && is_positive(def->operand[1]));
}

/* Nests of a shared datapath must be equal except for numbers, and may not reuse a word that the
 * nest before them popped. */
static void check_datapath(struct op *op, void *context)
{
	struct datapath_check *path = context;
	struct nest_numbers numbers;
	int mark = nest_datapath(op);
	if (op->code == OP_POP && !pops_in_first_iteration(op->operand[0]) &&
	        !attr_get(op, KEY_STREAM_VALUE_NOT_HELD)) {
		for (const struct op *loop = op->parent->parent; loop->code == OP_FOR;
		        loop = loop->parent->parent)
			if (nest_datapath(loop) >= 0)
				verify_fail(path->verifier, op,
				        "takes on a condition in loops that share a datapath: "
				        "counters must be 0 there, so that none begins with a word "
				        "of another");
	}
	if (mark < 0)
		return;
	if (path->first[mark] &&
	        !nest_match(path->verifier->module->arena, path->first[mark], op, &numbers))
		verify_fail(path->verifier, op,
		        "is not the datapath of the first loop of its process that has "
		        "stream.datapath");
	path->first[mark] = path->first[mark] ? path->first[mark] : op;
}

static bool is_in_nest(const struct op *op)
{
	while (op->code != OP_FUNC && nest_datapath(op) < 0)
		op = op->parent->parent;
	return op->code != OP_FUNC;
}

struct channel_use {
	const struct value *channel;
	bool inside; /* a nest of a shared datapath uses it */
};

static void note_inside(struct op *op, void *context)
{
	struct channel_use *use = context;
	use->inside |= op_accessed(op) == use->channel && is_in_nest(op);
}

static bool counts_outside(const struct value *value)
{
	const struct op *loop = value->def ? NULL : value->block->parent;
	return loop && loop->code == OP_FOR && !is_in_nest(loop);
}

/* Nests of shared datapaths use only arrays and numbers from outside; values that outer loops count
 * arrive through channels of their own. */
static void check_rewind(struct op *op, void *context)
{
	struct verifier *verifier = context;
	const struct value *accessed = op_accessed(op);
	bool inside = is_in_nest(op);
	struct channel_use use = { accessed, false };
	if (!inside && op->code == OP_POP && !accessed->def)
		ir_walk(accessed->block, note_inside, &use);
	if (use.inside)
		verify_fail(verifier, op,
		        "takes from a channel that loops with stream.datapath use too, in a "
		        "process with stream.rewind");
	for (int i = 0; inside && i < op->operands; i++)
		if (counts_outside(op->operand[i]))
			verify_fail(verifier, op,
			        "uses the counter of a loop around a nest, in a process with "
			        "stream.rewind");
	if (attr_integer_or(op, KEY_STREAM_PIPELINE, 1) != 1)
		verify_fail(verifier, op,
		        "does not begin an iteration every cycle, in a process with stream.rewind");
	if (!inside && attr_get(op, KEY_STREAM_PIPELINE))
		verify_fail(verifier, op,
		        "is in no loop with stream.datapath, in a process with stream.rewind");
	if (accessed && accessed->type->kind == TYPE_MEMREF &&
	        (type_is_port(accessed->type) || !inside))
		verify_fail(verifier, op,
		        "a process with stream.rewind has no memory ports, and uses its arrays in "
		        "loops with stream.datapath alone");
	if (!inside && (op->code == OP_PUSH || op->code == OP_ACQUIRE))
		verify_fail(verifier, op,
		        "in a process with stream.rewind this stands in a loop with "
		        "stream.datapath");
}

static void check_process(struct verifier *verifier, struct op *function)
{
	const char *style = attr_text_or(function, KEY_STREAM_STYLE, "");
	if (!text_same(attr_text_or(function, KEY_SYM_VISIBILITY, NULL), "private"))
		verify_fail(verifier, function, "a process is not private");
	if (!text_same(style, "stp") && !text_same(style, "flp"))
		verify_fail(
		        verifier, function, "stream.style is '%s', neither 'stp' nor 'flp'", style);
	if (attr_get(function, KEY_FUNCTION_TYPE)->type->outputs)
		verify_fail(verifier, function, "a process has results");
	ir_walk(function->region[0], check_process_op, verifier);
	struct datapath_check path = { .verifier = verifier };
	ir_walk(function->region[0], check_datapath, &path);
	if (!attr_get(function, KEY_STREAM_REWIND))
		return;
	if (!text_same(style, "flp"))
		verify_fail(verifier, function,
		        "a process with stream.rewind is of another style than 'flp'");
	ir_walk(function->region[0], check_rewind, verifier);
}

/* A function of the module and how main uses it. */
struct callee {
	struct op *function;
	int calls;
};

static struct callee *callee_of(const struct map *callees, const struct op *call)
{
	return map_get(callees, attr_text_or(call, KEY_CALLEE, ""));
}

static struct callee *callee_new(struct arena *arena, struct op *function)
{
	struct callee *callee = ARENA_NEW(arena, struct callee);
	callee->function = function;
	return callee;
}

static struct map collect_callees(struct arena *arena, const struct module *module)
{
	struct map callees = map_new(arena);
	for (struct op *op = module_body(module)->first; op; op = op->next)
		if (op->code == OP_FUNC)
			map_set(&callees, attr_text_or(op, KEY_SYM_NAME, ""),
			        callee_new(arena, op));
	return callees;
}

static void check_main(struct verifier *verifier, const struct op *main, const struct map *callees)
{
	for (const struct op *op = main->region[0]->first; op; op = op->next) {
		if (op->code != OP_FIFO && op->code != OP_BLOCK_CHANNEL && op->code != OP_CALL &&
		        op->code != OP_RETURN)
			verify_fail(verifier, op,
			        "main makes channels and starts processes, nothing else");
		struct callee *callee = op->code == OP_CALL ? callee_of(callees, op) : NULL;
		if (callee && !attr_get(callee->function, KEY_STREAM_PROCESS))
			verify_fail(verifier, op, "the callee is no process");
		if (callee)
			callee->calls++;
	}
}

/* Every boundary between the dies of both ends has registers. */
static void check_crossings(
        struct verifier *verifier, const struct op *channel, const struct channel_ends *ends)
{
	int64_t from = attr_integer_or(ends->writing, KEY_STREAM_DIE, -1);
	int64_t to = attr_integer_or(ends->reading, KEY_STREAM_DIE, -1);
	int64_t expected = from >= 0 && to >= 0 ? llabs(from - to) : 0;
	int64_t crossings = attr_integer_or(channel, KEY_STREAM_CROSSINGS, 0);
	if (channel->code == OP_BLOCK_CHANNEL && expected)
		verify_fail(verifier, channel, "blocks of '%s' cross from die %lld to die %lld",
		        attr_text_or(channel, KEY_NAME, ""), (long long)from, (long long)to);
	else if (crossings != expected)
		verify_fail(verifier, channel,
		        "'%s' has registers for %lld boundaries between dies, and crosses %lld",
		        attr_text_or(channel, KEY_NAME, ""), (long long)crossings,
		        (long long)expected);
}

static void check_channel(
        struct verifier *verifier, const struct op *channel, const struct channel_ends *ends)
{
	if (ends->writers != 1 || ends->readers != 1)
		verify_fail(verifier, channel,
		        "'%s' is written by %d processes and read by %d, where one each is "
		        "expected",
		        attr_text_or(channel, KEY_NAME, ""), ends->writers, ends->readers);
	else
		check_crossings(verifier, channel, ends);
}

static void check_channels(struct verifier *verifier, struct arena *arena, const struct op *main)
{
	const struct channel_ends *ends = channel_ends_of(arena, verifier->module);
	for (const struct op *op = main->region[0]->first; !verifier->failed && op; op = op->next)
		if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
			check_channel(verifier, op, ends++);
}

void verify_hardware(struct verifier *verifier)
{
	const struct op *main = module_main(verifier->module);
	struct arena *arena = arena_within(verifier->module->arena);
	struct map callees = collect_callees(arena, verifier->module);
	check_main(verifier, main, &callees);
	for (struct op *op = module_body(verifier->module)->first; op; op = op->next) {
		if (!attr_get(op, KEY_STREAM_PROCESS))
			continue;
		check_process(verifier, op);
		const struct callee *callee = map_get(&callees, attr_text_or(op, KEY_SYM_NAME, ""));
		if (callee->calls != 1)
			verify_fail(verifier, op, "is started %d times, not once", callee->calls);
	}
	if (!verifier->failed)
		check_channels(verifier, arena, main);
	arena_free(arena);
}
