/* Translates a process of the hardware level into a flat program for eval_network.c.
 * Before: nested scf.for with scalar, vector, memref and channel ops.
 * After:  a list of instructions: values are registers, loops are jumps, channels and arrays are
 *         bound. */
#include "ir/dot.h"
#include "ir/datapath_sharing.h"
#include "predict/timing.h"
#include "evaluate/eval_network.h"
#include <string.h>

struct translator {
	struct network *network;
	struct kahn_process *process;
	struct arena *arena;
	bool rewinding; /* loops of the process do not wait until the one before has drained */
};

typedef bool translate_function(struct translator *t, struct op *op);

static const char *text_attr(const struct op *op, enum attr_key key)
{
	const char *text = attr_text_or(op, key, NULL);
	return text ? text : attr_text_or(op, KEY_STREAM_NAME, "(no name)");
}

struct array *array_new(
        struct arena *arena, const char *name, const struct type *memref, int64_t words, char *data)
{
	struct array *array = ARENA_NEW(arena, struct array);
	*array = (struct array){ .name = name,
		.scalar = type_scalar(memref),
		.lanes = type_lanes(memref->element),
		.words = words,
		.rank = memref->rank,
		.shape = memref->shape };
	array->data = data;
	return array;
}

static int64_t memref_words(const struct type *memref)
{
	int64_t words = 1;
	for (int d = 0; d < memref->rank; d++)
		words *= memref->shape[d];
	return words;
}

static int64_t memref_bytes(const struct type *memref)
{
	return memref_words(memref) * type_lanes(memref->element) *
	        scalar_storage_bytes(type_scalar(memref));
}

struct channel *channel_new(struct network *network, const struct op *op)
{
	const struct type *type = op->result[0]->type;
	const struct type *scalar = type_scalar(type);
	struct channel *channel = ARENA_NEW(network->e->arena, struct channel);
	channel->name = text_attr(op, KEY_NAME);
	channel->depth = type->depth;
	channel->blocks = type->kind == TYPE_BLOCKS;
	channel->slot_bytes = channel->blocks
	        ? memref_bytes(type->element)
	        : type_lanes(type->element) * scalar_register_bytes(scalar);
	channel->data =
	        arena_alloc(network->e->arena, (size_t)(channel->depth * channel->slot_bytes));
	VEC_PUSH(network->e->arena, &network->channels, channel);
	return channel;
}

static void *registers(struct translator *t, const struct type *type, int64_t lanes)
{
	return arena_alloc(t->arena, (size_t)(lanes * scalar_register_bytes(type_scalar(type))));
}

static struct instruction instruction_of(
        struct translator *t, struct op *op, instruction_function *run)
{
	struct instruction made = { .run = run, .source = op };
	for (int i = 0; i < op->operands && i < 3; i++)
		made.in[i] = op->operand[i]->data;
	if (op->results) {
		made.count = type_lanes(op->result[0]->type);
		made.type = type_scalar(op->result[0]->type);
		made.out = op->result[0]->data = registers(t, op->result[0]->type, made.count);
	}
	return made;
}

static bool emit(struct translator *t, struct instruction made)
{
	VEC_PUSH(t->arena, &t->process->program, made);
	return true;
}

static bool translate_error(struct translator *t, const struct op *op, const char *why)
{
	return diag_error(t->network->e->module->diag, op->location, "\"%s\" in process %s: %s",
	        op_info[op->code].name, t->process->name, why);
}

static bool bind_side(
        struct translator *t, const struct op *op, struct channel *channel, enum side side)
{
	if (!channel)
		return translate_error(t, op, "no channel");
	if (channel->process[side] && channel->process[side] != t->process)
		return translate_error(t, op,
		        text_format(t->arena, "channel %s has two processes on its %s side",
		                channel->name, side == SIDE_READ ? "reading" : "writing"));
	channel->process[side] = t->process;
	return true;
}

/* Broadcasts a scalar operand of an operation on words to all lanes. */
static const void *widened(struct translator *t, const struct value *value, int64_t lanes)
{
	if (lanes == 1 || type_lanes(value->type) == lanes)
		return value->data;
	struct instruction wide = { .run = do_broadcast,
		.type = type_scalar(value->type),
		.in = { value->data },
		.count = lanes };
	wide.out = registers(t, value->type, lanes);
	emit(t, wide);
	return wide.out;
}

static bool translate_scalar(struct translator *t, struct op *op)
{
	struct instruction made = instruction_of(t, op, do_scalar);
	if (!op->operands || op->operands > 3 ||
	        !scalar_op_make(&made.op, op->code, scalar_predicate(op), made.type,
	                type_scalar(op->operand[0]->type)))
		return translate_error(t, op, "no value on these types");
	for (int i = 0; i < op->operands; i++)
		made.in[i] = widened(t, op->operand[i], made.count);
	return emit(t, made);
}

static bool translate_constant(struct translator *t, struct op *op)
{
	const struct attr *attr = attr_get(op, KEY_VALUE);
	const struct type *type = op->result[0]->type;
	const struct type *scalar = type_scalar(type);
	int64_t lanes = type_lanes(type);
	union scalar value;
	op->result[0]->data = registers(t, type, lanes);
	if (scalar_of_attr(scalar, attr, &value)) {
		scalar_fill(scalar, op->result[0]->data, value, lanes);
		return true;
	}
	if (!attr || attr->kind != ATTR_DENSE)
		return translate_error(t, op, "no number");
	if (!attr->splat && attr->bytes != (size_t)(lanes * scalar_storage_bytes(scalar)))
		return translate_error(t, op, "not one number per lane");
	char *copy = arena_copy(t->arena, attr->data, attr->bytes);
	scalar_read(scalar, op->result[0]->data, copy, 0, attr->splat ? 0 : 1, lanes);
	return true;
}

static bool translate_tree(struct translator *t, struct op *op)
{
	const char *kind = attr_text_or(op, KEY_KIND, "");
	struct instruction made = instruction_of(t, op, do_tree);
	made.count = type_lanes(op->operand[0]->type);
	made.out = op->result[0]->data = registers(t, op->operand[0]->type, made.count);
	if (!scalar_op_make(&made.op, op_code_of(kind, strlen(kind)), 0, made.type, made.type))
		return translate_error(t, op, "no such kind of tree");
	return emit(t, made);
}

static const void **parts_from(struct translator *t, const struct op *op, int first)
{
	const void **part = ARENA_ARRAY(t->arena, const void *, op->operands + 1);
	for (int i = first; i < op->operands; i++)
		part[i - first] = op->operand[i]->data;
	return part;
}

static bool translate_dot(struct translator *t, struct op *op)
{
	struct dot dot;
	if (!dot_of(op, &dot))
		return translate_error(t, op, "no sums of products on these types");
	struct instruction made = instruction_of(t, op, dot.columns ? do_dot_across : do_dot);
	made.count = dot.lanes;
	if (dot.columns) {
		made.parts = (int)dot.columns;
		made.in[0] = op->operand[0]->data;
		made.in[1] = op->operand[1]->data;
		return emit(t, made);
	}
	made.parts = dot.words;
	for (int i = 0; i < dot.words; i++)
		made.in[1 + i] = op->operand[dot_x_count(&dot) + i]->data;
	for (int j = 0; j < dot_x_count(&dot); j++) {
		made.in[0] = op->operand[j]->data;
		made.part = j % 2 ? parts_from(t, op, j - 1) : NULL;
		emit(t, made);
		made.out = (int64_t *)made.out + dot.words;
	}
	return true;
}

static bool translate_apply(struct translator *t, struct op *op)
{
	const struct attr *attr = attr_get(op, KEY_MAP);
	struct instruction made = instruction_of(t, op, do_apply);
	if (!attr || attr->kind != ATTR_MAP || attr->map.dims != op->operands ||
	        attr->map.results != 1)
		return translate_error(t, op, "no map of its operands with one result");
	made.parts = op->operands;
	made.part = parts_from(t, op, 0);
	made.factor = attr->map.coefficient;
	return emit(t, made);
}

static bool translate_broadcast(struct translator *t, struct op *op)
{
	return emit(t, instruction_of(t, op, do_broadcast));
}

static bool translate_join(struct translator *t, struct op *op)
{
	struct instruction made = instruction_of(t, op, do_join);
	int64_t *lanes = ARENA_ARRAY(t->arena, int64_t, op->operands + 1);
	int64_t sum = 0;
	for (int i = 0; i < op->operands; i++)
		sum += lanes[i] = type_lanes(op->operand[i]->type);
	if (sum != made.count)
		return translate_error(
		        t, op, "the lanes of its operands are not those of its result");
	made.parts = op->operands;
	made.part = parts_from(t, op, 0);
	made.factor = lanes;
	return emit(t, made);
}

static bool translate_split(struct translator *t, struct op *op)
{
	struct instruction made = instruction_of(t, op, do_split);
	int64_t *lanes = ARENA_ARRAY(t->arena, int64_t, 1);
	lanes[0] = type_lanes(op->operand[0]->type);
	made.factor = lanes;
	return emit(t, made);
}

static bool translate_set_lane(struct translator *t, struct op *op)
{
	return emit(t, instruction_of(t, op, do_set_lane));
}

static bool translate_pop(struct translator *t, struct op *op)
{
	struct instruction made = instruction_of(t, op, do_pop);
	made.channel = op->operand[1]->data;
	return bind_side(t, op, made.channel, SIDE_READ) && emit(t, made);
}

static bool translate_push(struct translator *t, struct op *op)
{
	struct instruction made = instruction_of(t, op, do_push);
	made.channel = op->operand[2]->data;
	return bind_side(t, op, made.channel, SIDE_WRITE) && emit(t, made);
}

static enum side side_of(const struct op *op)
{
	return text_same(attr_text_or(op, KEY_SIDE, ""), "write") ? SIDE_WRITE : SIDE_READ;
}

static bool translate_acquire(struct translator *t, struct op *op)
{
	const struct type *block = op->result[0]->type;
	struct instruction made = { .run = do_acquire,
		.source = op,
		.channel = op->operand[0]->data,
		.side = side_of(op) };
	if (!bind_side(t, op, made.channel, made.side))
		return false;
	made.array = op->result[0]->data =
	        array_new(t->arena, made.channel->name, block, memref_words(block), NULL);
	return emit(t, made);
}

static bool translate_release(struct translator *t, struct op *op)
{
	const struct op *acquire = op->operand[0]->def;
	if (!acquire || acquire->code != OP_ACQUIRE)
		return translate_error(t, op, "releases what no stream.acquire gave");
	return emit(t,
	        (struct instruction){ .run = do_release,
	                .source = op,
	                .channel = op->operand[1]->data,
	                .side = side_of(acquire) });
}

static bool translate_alloca(struct translator *t, struct op *op)
{
	const struct type *type = op->result[0]->type;
	char *data = arena_alloc(t->arena, (size_t)memref_bytes(type));
	struct array *array =
	        array_new(t->arena, text_attr(op, KEY_STREAM_NAME), type, memref_words(type), data);
	array->distance_claim = claim_new(t->network, t->process, op, array->words);
	op->result[0]->data = array;
	return true;
}

/* Binds the array that is read or written, and its indices. */
static bool use_array(struct translator *t, struct op *op, struct instruction *made)
{
	int place = op_access(op);
	made->array = op->operand[place]->data;
	made->parts = op->operands - place - 1;
	made->part = parts_from(t, op, place + 1);
	if (made->parts != made->array->rank)
		return translate_error(t, op, "not one index a dim");
	made->count = made->array->lanes;
	made->type = made->array->scalar;
	return true;
}

static bool translate_load(struct translator *t, struct op *op)
{
	struct instruction made = instruction_of(t, op, do_load);
	return use_array(t, op, &made) && emit(t, made);
}

static bool translate_store(struct translator *t, struct op *op)
{
	struct instruction made = instruction_of(t, op, do_store);
	return use_array(t, op, &made) && emit(t, made);
}

static bool translate_write(struct translator *t, struct op *op)
{
	struct instruction made = instruction_of(t, op, do_write);
	return use_array(t, op, &made) && emit(t, made);
}

static bool translate_block(struct translator *t, struct block *block);

/* Is the loop part of the same pipeline as its parent?  A nest of loops that each hold only the
 * next one is one pipeline (simulate/cycle_sim.h); a shared datapath is a function of its own. */
static bool is_inside_pipeline(const struct op *loop)
{
	const struct op *parent = loop->parent->parent;
	return parent->code == OP_FOR && nest_datapath(loop) < 0 &&
	        timing_only_loop(parent->region[0]) == loop;
}

static bool translate_for(struct translator *t, struct op *op)
{
	struct value *counter = op->region[0]->argument[0];
	struct instruction loop = instruction_of(t, op, do_loop);
	if (op->operands != 3 || op->results)
		return translate_error(t, op, "a loop of a process carries no values");
	loop.out = counter->data = registers(t, counter->type, 1);
	if (!t->rewinding && !is_inside_pipeline(op))
		emit(t, (struct instruction){ .run = do_drain });
	int start = (int)t->process->program.count;
	emit(t, loop);
	if (attr_get(op, KEY_STREAM_PIPELINE))
		emit(t, (struct instruction){ .run = do_iterate });
	if (!translate_block(t, op->region[0]))
		return false;
	loop.run = do_next;
	loop.target = start + 1;
	emit(t, loop);
	t->process->program.data[start].target = (int)t->process->program.count;
	return true;
}

static bool translate_nothing(struct translator *t, struct op *op)
{
	(void)t;
	(void)op;
	return true;
}

static translate_function *const functions[OP_COUNT] = {
	[OP_FOR] = translate_for,
	[OP_YIELD] = translate_nothing,
	[OP_RETURN] = translate_nothing,
	[OP_SEQUENTIAL_YIELD] = translate_nothing,
	[OP_CONSTANT] = translate_constant,
	[OP_POP] = translate_pop,
	[OP_PUSH] = translate_push,
	[OP_ACQUIRE] = translate_acquire,
	[OP_RELEASE] = translate_release,
	[OP_TREE] = translate_tree,
	[OP_DOT] = translate_dot,
	[OP_JOIN_LANES] = translate_join,
	[OP_SPLIT_LANES] = translate_split,
	[OP_LANE] = translate_split,
	[OP_SET_LANE] = translate_set_lane,
	[OP_BROADCAST] = translate_broadcast,
	[OP_ALLOCA] = translate_alloca,
	[OP_MEMREF_LOAD] = translate_load,
	[OP_MEMREF_STORE] = translate_store,
	[OP_WRITE] = translate_write,
	[OP_APPLY] = translate_apply,
};

static bool translate_op(struct translator *t, struct op *op)
{
	if (functions[op->code])
		return functions[op->code](t, op);
	return op_info[op->code].levels & LEVEL_BODY
	        ? translate_scalar(t, op)
	        : translate_error(t, op, "no operation of a process");
}

static bool translate_block(struct translator *t, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next)
		if (!translate_op(t, op))
			return false;
	return true;
}

static bool translate_process(struct translator *t, struct block *body)
{
	if (!translate_block(t, body))
		return false;
	emit(t, (struct instruction){ .run = do_end });
	t->process->at = t->process->program.data;
	VEC_PUSH(t->arena, &t->network->processes, t->process);
	return true;
}

bool network_add_nest(struct network *network, const struct op *nest)
{
	struct translator t = { .network = network,
		.process = ARENA_NEW(network->e->arena, struct kahn_process),
		.arena = network->e->arena };
	t.process->name = attr_text_or(nest, KEY_STREAM_NAME, "");
	return translate_process(&t, nest->region[0]);
}

bool network_add_process(struct network *network, const struct op *call)
{
	const char *name = attr_text_or(call, KEY_CALLEE, "");
	const struct op *function = module_find(network->e->module, name);
	struct kahn_process *process = ARENA_NEW(network->e->arena, struct kahn_process);
	struct translator t = { .network = network,
		.process = process,
		.arena = network->e->arena,
		.rewinding = function && attr_get(function, KEY_STREAM_REWIND) };
	if (!function || function->region[0]->arguments != call->operands)
		return diag_error(network->e->module->diag, call->location,
		        "a call of \"%s\", which is no process with %d arguments", name,
		        call->operands);
	process->name = name;
	for (int i = 0; i < call->operands; i++)
		function->region[0]->argument[i]->data = call->operand[i]->data;
	return translate_process(&t, function->region[0]);
}
