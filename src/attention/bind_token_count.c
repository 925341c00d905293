/* Bounds all loops over the tokens of a launch by their number at run time.
 * An argument with `stream.token_count` names the input that says how many of its rows, along
 * `stream.axis`, are valid tokens.
 * Before: for token in 0 .. most
 * After:  for tile in 0 .. ceil(n / tile); for token in 0 .. min(n, tile)
 * Forwards from the argument every loop over tokens is bound; backwards, so is what only bound
 * loops read.  Where a tensor is read as a whole, as a KV cache's new rows, it is padded with rows
 * of zeros (OP_PAD_TOKENS), which masks hide.
 * Needs: fused kernels; contractions in the engine.
 * Guarantees: a loop over tokens is bound wherever its tensor has valid rows only.
 * Exact for all rows that results keep.
 * Ends: each operation is visited once in each direction. */
#include "ir/workload.h"
#include "ir/contract.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

/* Points of a kernel that may be duplicated, once for valid rows only. */
#define COPIED_MOST 65536

struct token_binder {
	struct module *module;
	struct op *main;
	const char *symbol;
	int64_t most; /* tokens of the compiled extent */
	bool failed;
};

/* Elements between two rows of a value whose rows beyond the count are invalid; 0: all are valid.
 * It is the `data` of the value. */
static int64_t pitch_of(const struct value *value)
{
	return value->data ? *(const int64_t *)value->data : 0;
}

static void set_pitch(struct token_binder *b, struct value *value, int64_t pitch)
{
	int64_t *data = pitch ? ARENA_NEW(b->module->arena, int64_t) : NULL;
	if (data)
		*data = pitch;
	value->data = data;
}

static void report_unbindable(struct token_binder *b, const struct op *op, const char *why)
{
	if (!b->failed) {
		diag_error(b->module->diag, op->location, "tokens counted by \"%s\" %s", b->symbol,
		        why);
		diag_note(b->module->diag,
		        "accepted are rows that are walked whole, and in contractions alone; "
		        "without stream.token_count all rows of the argument count");
	}
	b->failed = true;
}

/* ---- loops */

/* The loop that walks all rows of the operand, or of the result (operand -1); -1: none. */
static int row_loop(const struct token_binder *b, const struct op *op, int operand, int64_t pitch)
{
	const struct access *access =
	        operand < 0 ? &op->kernel->result : &op->kernel->operand[operand];
	for (int l = 0; l < op->kernel->loops; l++)
		if (access->stride[l] == pitch && op->kernel->loop[l].extent == b->most &&
		        !access_guard(access, l) && access->offset / pitch % b->most == 0)
			return l;
	return -1;
}

/* Is the loop bound by the token count? */
static bool is_bound(const struct token_binder *b, const struct loop *loop)
{
	return loop->run_time && text_same(loop->run_time->symbol, b->symbol);
}

static int bound_loop(const struct token_binder *b, const struct op *op)
{
	for (int l = 0; l < op->kernel->loops; l++)
		if (is_bound(b, &op->kernel->loop[l]))
			return l;
	return -1;
}

static void bind_kernel_loop(struct token_binder *b, struct op *op, int loop)
{
	struct run_time_trip *trip = ARENA_NEW(b->module->arena, struct run_time_trip);
	*trip = (struct run_time_trip){ .symbol = b->symbol, .tile = 1, .most = b->most };
	if (op->kernel->loop[loop].run_time &&
	        !run_time_same(op->kernel->loop[loop].run_time, trip))
		report_unbindable(b, op, "share a loop with another run-time extent");
	else
		op->kernel->loop[loop].run_time = trip;
	if (!op->kernel->loop[loop].reduction)
		set_pitch(b, op->result[0], op->kernel->result.stride[loop]);
}

/* ---- forwards: readers of values with invalid rows */

/* The value with zeros in the invalid rows; all readers share it. */
static struct value *padded(struct token_binder *b, const struct op *reader, struct value *value)
{
	int axis = token_axis(value->type, pitch_of(value), b->most);
	struct op *first = value->def ? value->def->next : value->block->first;
	if (axis < 0) {
		report_unbindable(b, reader, "are not a dimension of the tensor to be padded");
		return value;
	}
	if (first->code == OP_PAD_TOKENS && first->operand[0] == value)
		return first->result[0];
	struct op *pad =
	        op_new(b->module, OP_PAD_TOKENS, reader->location, 1, &value, 1, &value->type);
	attr_set(b->module, pad, KEY_TOKEN_COUNT, attr_string(b->module, b->symbol));
	attr_set(b->module, pad, KEY_AXIS, attr_integer(b->module, axis));
	op_insert_before(first, pad);
	return pad->result[0];
}

/* Does the access read rows other than the first? */
static bool reaches_rows(
        const struct token_binder *b, const struct op *op, int operand, int64_t pitch)
{
	const struct access *access = &op->kernel->operand[operand];
	bool reaches = access->offset / pitch % b->most != 0;
	for (int l = 0; l < op->kernel->loops; l++)
		reaches = reaches ||
		        (access->stride[l] && access->stride[l] < pitch * b->most &&
		                access->stride[l] * (op->kernel->loop[l].extent - 1) >= pitch);
	return reaches;
}

static void bind_kernel(struct token_binder *b, struct op *op)
{
	for (int j = 0; j < op->operands && !b->failed; j++) {
		int64_t pitch = pitch_of(op->operand[j]);
		if (!pitch)
			continue;
		kernel_cut_loops(b->module, op, j, pitch, b->most);
		int loop = row_loop(b, op, j, pitch);
		int bound = bound_loop(b, op);
		if (loop >= 0 && (bound < 0 || bound == loop))
			bind_kernel_loop(b, op, loop);
		else if (loop >= 0 || reaches_rows(b, op, j, pitch))
			op->operand[j] = padded(b, op, op->operand[j]);
	}
	int loop = bound_loop(b, op); /* a cut for another operand may have moved it */
	if (loop >= 0 && !op->kernel->loop[loop].reduction)
		set_pitch(b, op->result[0], op->kernel->result.stride[loop]);
}

static void bind_contraction(struct token_binder *b, struct op *op)
{
	struct contract contract;
	INVARIANT(b->module->guard, contract_of(op, &contract),
	        "a contraction whose operands do not fit together");
	int64_t x = pitch_of(op->operand[0]);
	int64_t s = pitch_of(op->operand[1]);
	if (!x && !s)
		return;
	if (contract.tokens != b->most || token_axis(op->operand[0]->type, x, b->most) < 0 ||
	        token_axis(op->operand[1]->type, s, b->most) < 0) {
		report_unbindable(b, op, "are only a part of a contraction's loop");
		return;
	}
	attr_set(b->module, op, KEY_TOKEN_COUNT, attr_string(b->module, b->symbol));
	set_pitch(b, op->result[0], contract.outputs);
}

/* The value of one layer that a result of main is; the result itself where there is no loop over
 * layers. */
static struct value *row_of(struct value *value)
{
	if (!value->def || value->def->code != OP_LAYER_EXTRACT)
		return value;
	const struct value *stack = value->def->operand[0];
	if (!stack->def || stack->def->code != OP_FOR)
		return value;
	const struct op *last = stack->def->region[0]->last->operand[stack->index]->def;
	return last && last->code == OP_INSERT_LAYER ? last->operand[0] : value;
}

/* Sets stream.dims of a result of main: dim `axis` has as many rows as there are tokens. */
static void set_result_dims(struct token_binder *b, int result, const struct type *type, int axis)
{
	const struct attr *old = attr_get(b->main, KEY_RES_ATTRS);
	const struct attr **items =
	        ARENA_ARRAY(b->module->arena, const struct attr *, old->count + 1);
	for (int i = 0; i < old->count; i++)
		items[i] = old->items[i].value;
	items[result] = attr_with(b->module, items[result], KEY_STREAM_DIMS,
	        token_dims(b->module, type, axis, b->symbol));
	attr_set(b->module, b->main, KEY_RES_ATTRS, attr_array(b->module, old->count, items));
}

static void bind_results(struct token_binder *b, struct op *last)
{
	for (int r = 0; r < last->operands && !b->failed; r++) {
		struct value *row = row_of(last->operand[r]);
		const struct attr *rows = function_result_attr(b->main, r, KEY_STREAM_TOKEN_COUNT);
		const struct attr *axis = function_result_attr(b->main, r, KEY_STREAM_AXIS);
		int own = pitch_of(row) ? token_axis(row->type, pitch_of(row), b->most) : -1;
		if (!pitch_of(row))
			continue;
		if (rows && axis && text_same(rows->text, b->symbol) && own == axis->integer)
			set_result_dims(b, r, row->type, own);
		else if (row == last->operand[r] && row->def)
			last->operand[r] = padded(b, last, row);
		else
			report_unbindable(b, last, "reach a result of main that needs all of them");
	}
}

static void bind_block(struct token_binder *b, struct block *block);

/* A loop over layers. */
static void bind_layers(struct token_binder *b, struct op *op)
{
	struct block *body = op->region[0];
	for (int i = 0; i < op->results; i++)
		body->argument[1 + i]->data = op->operand[3 + i]->data;
	bind_block(b, body);
	for (int i = 0; i < op->results; i++) {
		const struct value *out = body->last->operand[i];
		bool stack = out->def && out->def->code == OP_INSERT_LAYER;
		if (!stack && pitch_of(out) != pitch_of(op->operand[3 + i]))
			report_unbindable(b, op, "are not the same before and after a layer");
		op->result[i]->data = stack ? NULL : out->data;
	}
}

static void bind_block(struct token_binder *b, struct block *block)
{
	for (struct op *op = block->first; op && !b->failed; op = op->next) {
		if (op->code == OP_KERNEL)
			bind_kernel(b, op);
		else if (op->code == OP_CONTRACT)
			bind_contraction(b, op);
		else if (op->code == OP_FOR)
			bind_layers(b, op);
		else if (op->code == OP_LAYER_SELECT)
			op->result[0]->data = op->operand[1]->data;
		else if (op->code == OP_RETURN)
			bind_results(b, op);
	}
}

/* ---- backwards: producers of what only bound loops read */

/* A use of a value, as an operand of op. */
struct token_use {
	struct op *op;
	int operand;
};

struct token_uses {
	const struct value *value;
	VEC(struct token_use) list;
	struct arena *arena;
};

static void note_use(struct op *op, void *context)
{
	struct token_uses *uses = context;
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j] == uses->value)
			VEC_PUSH(uses->arena, &uses->list, ((struct token_use){ op, j }));
}

/* Elements between the rows that a bound loop reads by this use; 0: it reads all, or the same for
 * every row.  A layer select reads what is read of its result. */
static int64_t rows_read(const struct token_binder *b, const struct token_use *use)
{
	if (use->op->code == OP_LAYER_SELECT)
		return pitch_of(use->op->result[0]);
	int loop = use->op->code == OP_KERNEL ? bound_loop(b, use->op) : -1;
	if (loop < 0)
		return 0;
	const struct access *access = &use->op->kernel->operand[use->operand];
	return access_guard(access, loop) ? 0 : access->stride[loop];
}

/* A copy of the kernel for valid rows only. */
static struct op *copy_kernel(struct token_binder *b, struct op *op)
{
	struct kernel *kernel = kernel_clone(b->module, op->kernel, op->operands);
	kernel->name = text_format(b->module->arena, "%s_valid", kernel->name);
	struct op *copy = kernel_new(b->module, op->location, kernel->name, kernel->loops,
	        op->operands, op->operand, op->result[0]->type);
	copy->kernel = kernel;
	op_insert_before(op, copy);
	return copy;
}

static int64_t points_of(const struct kernel *kernel)
{
	int64_t points = 1;
	for (int l = 0; l < kernel->loops; l++)
		points *= kernel->loop[l].extent;
	return points;
}

/* Binds the kernel that produces rows which bound loops read; where other loops read all rows, a
 * copy of it for the bound ones. */
static void bind_producer(struct token_binder *b, struct op *op)
{
	struct token_uses uses = { .value = op->result[0], .arena = b->module->arena };
	ir_walk(b->main->region[0], note_use, &uses);
	int64_t pitch = 0;
	size_t bound = 0;
	for (size_t i = 0; i < uses.list.count; i++) {
		int64_t own = rows_read(b, &uses.list.data[i]);
		pitch = pitch ? pitch : own;
		bound += own && own == pitch;
	}
	if (!pitch || pitch_of(op->result[0]))
		return;
	if (bound < uses.list.count && points_of(op->kernel) > COPIED_MOST) {
		report_unbindable(
		        b, op, "are read by some kernels, while others read the padding too");
		return;
	}
	struct op *producer = bound < uses.list.count ? copy_kernel(b, op) : op;
	for (size_t i = 0; i < uses.list.count; i++)
		if (rows_read(b, &uses.list.data[i]) == pitch)
			uses.list.data[i].op->operand[uses.list.data[i].operand] =
			        producer->result[0];
	kernel_cut_loops(b->module, producer, -1, pitch, b->most);
	int loop = row_loop(b, producer, -1, pitch);
	if (loop < 0)
		report_unbindable(b, producer, "are not traversed completely by their producer");
	else
		bind_kernel_loop(b, producer, loop);
	if (producer != op)
		bind_producer(b, op); /* other loops may be bound as well */
}

/* Elements between the rows if all uses of the value read valid ones only; 0: some read all. */
static int64_t rows_read_by_all(const struct token_binder *b, const struct value *value)
{
	struct token_uses uses = { .value = value, .arena = b->module->arena };
	ir_walk(b->main->region[0], note_use, &uses);
	int64_t pitch = uses.list.count ? rows_read(b, &uses.list.data[0]) : 0;
	for (size_t i = 1; i < uses.list.count; i++)
		pitch = rows_read(b, &uses.list.data[i]) == pitch ? pitch : 0;
	return pitch;
}

static bool can_bind(const struct token_binder *b, const struct op *producer, int64_t pitch)
{
	return producer && producer->code == OP_KERNEL && row_loop(b, producer, -1, pitch) >= 0 &&
	        rows_read_by_all(b, producer->result[0]) == pitch;
}

/* If bound loops alone read the selected tensor, and the select alone the tensors of the layers,
 * these need valid rows only. */
static void bind_layer_select(struct token_binder *b, struct op *layer_select)
{
	if (pitch_of(layer_select->result[0]))
		return;
	int64_t pitch = rows_read_by_all(b, layer_select->result[0]);
	set_pitch(b, layer_select->result[0], pitch); /* rows_read() of its operands uses it */
	for (int j = 1; j < layer_select->operands && pitch; j++)
		if (!can_bind(b, layer_select->operand[j]->def, pitch))
			pitch = 0;
	set_pitch(b, layer_select->result[0], pitch);
}

static void bind_producers(struct token_binder *b, struct block *block)
{
	for (struct op *op = block->last; op && !b->failed; op = op->previous) {
		if (op->code == OP_FOR)
			bind_producers(b, op->region[0]);
		if (op->code == OP_LAYER_SELECT)
			bind_layer_select(b, op);
		if (op->code == OP_KERNEL)
			bind_producer(b, op);
	}
}

/* ---- tiles */

/* Splits a bound loop into one over tiles and one over the tokens of a tile. */
static void tile_loop(struct token_binder *b, struct op *op, int loop)
{
	struct launch_tokens tokens = launch_tokens_of(b->module->arena, b->symbol, b->most);
	op->kernel->loop[loop].run_time = NULL;
	if (tokens.tiles && tokens.each && !kernel_split_loop(b->module, op, loop, tokens.tile)) {
		report_unbindable(b, op, "share a loop with a concat");
		return;
	}
	op->kernel->loop[loop].run_time = tokens.tiles ? tokens.tiles : tokens.each;
	if (tokens.tiles && tokens.each)
		op->kernel->loop[loop + 1].run_time = tokens.each;
}

static void tile_block(struct token_binder *b, struct block *block)
{
	for (struct op *op = block->first; op && !b->failed; op = op->next) {
		if (op->code == OP_FOR)
			tile_block(b, op->region[0]);
		int loop = op->code == OP_KERNEL ? bound_loop(b, op) : -1;
		if (loop >= 0)
			tile_loop(b, op, loop);
	}
}

/* Notes that an argument has only as many valid rows as there are tokens. */
static void bind_argument(struct token_binder *b, int number)
{
	const struct attr *rows = function_argument_attr(b->main, number, KEY_STREAM_TOKEN_COUNT);
	const struct attr *axis = function_argument_attr(b->main, number, KEY_STREAM_AXIS);
	struct value *argument = b->main->region[0]->argument[number];
	if (!rows || argument->type->shape[axis->integer] == 1)
		return;
	int64_t pitch = 1;
	for (int d = (int)axis->integer + 1; d < argument->type->rank; d++)
		pitch *= argument->type->shape[d];
	b->symbol = rows->text;
	b->most = argument->type->shape[axis->integer];
	set_pitch(b, argument, pitch);
}

bool bind_token_count(struct pass_context *context, struct module *module)
{
	(void)context;
	struct token_binder b = { .module = module, .main = module_main(module) };
	struct block *body = b.main->region[0];
	if (!workload_has_many_tokens(workload_of(b.main)))
		return true;
	ir_clear_data(body);
	for (int i = 0; i < body->arguments; i++)
		bind_argument(&b, i);
	if (!b.symbol)
		return true;
	bind_block(&b, body);
	bind_producers(&b, body);
	tile_block(&b, body);
	ir_clear_data(body);
	workload_record(module);
	return !b.failed;
}
