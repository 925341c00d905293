/* Rows of a launch that are not there.  An argument with `stream.token_count` names the input
 * that says how many of its rows, along `stream.axis`, count; with a unit every loop over them
 * is bound by that number, from the argument on and back to what only such loops read, so that
 * one token costs one token's work. What a bound loop is not alone with, the rows in front of a
 * cache's, is filled up with rows of zeros; masks hide those from the rows that count. Rows go
 * in tiles as the unit takes them (ir/launch_tokens.h): each bound loop becomes two.
 * Needs: fused kernels, contractions in a unit.  Guarantees: a loop over rows is bound wherever
 * its tensor is.  Exact for all that results keep. */
#include "ir/workload.h"
#include "ir/contract.h"
#include "ir/kernel_edit.h"
#include "attention/attention_passes.h"

/* points of a kernel that is made twice, once for rows that are there */
#define COPIED_MOST 65536

struct binder {
	struct module *module;
	struct op *main;
	const char *symbol;
	int64_t most; /* rows */
	bool failed;
};

/* At value->data: elements between two rows; NULL: all of it is there. */
static int64_t pitch_of(const struct value *value)
{
	return value->data ? *(const int64_t *)value->data : 0;
}

static void set_pitch(struct binder *b, struct value *value, int64_t pitch)
{
	int64_t *data = pitch ? ARENA_NEW(b->module->arena, int64_t) : NULL;
	if (data)
		*data = pitch;
	value->data = data;
}

static void report_unbindable(struct binder *b, const struct op *op, const char *why)
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

/* The loop that walks all rows; -1: none does. */
static int row_loop(const struct binder *b, const struct op *op, int operand, int64_t pitch)
{
	const struct access *access =
	        operand < 0 ? &op->kernel->result : &op->kernel->operand[operand];
	for (int l = 0; l < op->kernel->loops; l++)
		if (access->stride[l] == pitch && op->kernel->loop[l].extent == b->most &&
		        !access_guard(access, l) && access->offset / pitch % b->most == 0)
			return l;
	return -1;
}

static bool is_bound(const struct binder *b, const struct loop *loop)
{
	return loop->run_time && text_same(loop->run_time->symbol, b->symbol);
}

static int bound_loop(const struct binder *b, const struct op *op)
{
	for (int l = 0; l < op->kernel->loops; l++)
		if (is_bound(b, &op->kernel->loop[l]))
			return l;
	return -1;
}

static void bind(struct binder *b, struct op *op, int loop)
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

/* ---- forwards: what is read is not there */

/* The value with zeros for the rows that are not there; made once. */
static struct value *padded(struct binder *b, const struct op *reader, struct value *value)
{
	int axis = token_axis(value->type, pitch_of(value), b->most);
	struct op *first = value->def ? value->def->next : value->block->first;
	if (axis < 0) {
		report_unbindable(b, reader, "are not a dimension of the tensor to be padded");
		return value;
	}
	if (first->code == OP_PAD_TOKENS && first->operand[0] == value)
		return first->result[0];
	struct op *fill =
	        op_new(b->module, OP_PAD_TOKENS, reader->location, 1, &value, 1, &value->type);
	attr_set(b->module, fill, KEY_TOKEN_COUNT, attr_string(b->module, b->symbol));
	attr_set(b->module, fill, KEY_AXIS, attr_integer(b->module, axis));
	op_insert_before(first, fill);
	return fill->result[0];
}

/* Does the access reach rows beyond the first? */
static bool reaches_rows(const struct binder *b, const struct op *op, int operand, int64_t pitch)
{
	const struct access *access = &op->kernel->operand[operand];
	bool reaches = access->offset / pitch % b->most != 0;
	for (int l = 0; l < op->kernel->loops; l++)
		reaches = reaches ||
		        (access->stride[l] && access->stride[l] < pitch * b->most &&
		                access->stride[l] * (op->kernel->loop[l].extent - 1) >= pitch);
	return reaches;
}

static void bind_kernel(struct binder *b, struct op *op)
{
	for (int j = 0; j < op->operands && !b->failed; j++) {
		int64_t pitch = pitch_of(op->operand[j]);
		if (!pitch)
			continue;
		kernel_cut_loops(b->module, op, j, pitch, b->most);
		int loop = row_loop(b, op, j, pitch);
		int bound = bound_loop(b, op);
		if (loop >= 0 && (bound < 0 || bound == loop))
			bind(b, op, loop);
		else if (loop >= 0 || reaches_rows(b, op, j, pitch))
			op->operand[j] = padded(b, op, op->operand[j]);
	}
	int loop = bound_loop(b, op); /* later cuts may have moved it */
	if (loop >= 0 && !op->kernel->loop[loop].reduction)
		set_pitch(b, op->result[0], op->kernel->result.stride[loop]);
}

static void bind_contraction(struct binder *b, struct op *op)
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

/* The row that a result of main is, in a stack of layers too. */
static struct value *row_of(struct value *value)
{
	if (!value->def || value->def->code != OP_LAYER_EXTRACT)
		return value;
	const struct value *stack = value->def->operand[0];
	const struct op *last = stack->def && stack->def->code == OP_FOR
	        ? stack->def->region[0]->last->operand[stack->index]->def
	        : NULL;
	return last && last->code == OP_INSERT_LAYER ? last->operand[0] : value;
}

static void set_result_dims(struct binder *b, int result, const struct type *type, int axis)
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

static void bind_results(struct binder *b, struct op *last)
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

static void bind_block(struct binder *b, struct block *block);

static void bind_loop(struct binder *b, struct op *op)
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

static void bind_block(struct binder *b, struct block *block)
{
	for (struct op *op = block->first; op && !b->failed; op = op->next) {
		if (op->code == OP_KERNEL)
			bind_kernel(b, op);
		else if (op->code == OP_CONTRACT)
			bind_contraction(b, op);
		else if (op->code == OP_FOR)
			bind_loop(b, op);
		else if (op->code == OP_LAYER_SELECT)
			op->result[0]->data = op->operand[1]->data;
		else if (op->code == OP_RETURN)
			bind_results(b, op);
	}
}

/* ---- backwards: what only bound loops read need not be made */

struct use {
	struct op *op;
	int operand;
};

struct uses {
	const struct value *value;
	VEC(struct use) list;
	struct arena *arena;
};

static void note_use(struct op *op, void *context)
{
	struct uses *uses = context;
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j] == uses->value)
			VEC_PUSH(uses->arena, &uses->list, ((struct use){ op, j }));
}

/* Elements between the rows that a bound loop reads, of a pick those that are read of what it
 * picks; 0: it reads all, or the same for every row. */
static int64_t rows_read(const struct binder *b, const struct use *use)
{
	if (use->op->code == OP_LAYER_SELECT)
		return pitch_of(use->op->result[0]);
	int loop = use->op->code == OP_KERNEL ? bound_loop(b, use->op) : -1;
	const struct access *access = loop < 0 ? NULL : &use->op->kernel->operand[use->operand];
	return access && !access_guard(access, loop) ? access->stride[loop] : 0;
}

static struct op *copy_of(struct binder *b, struct op *op)
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

/* Binds what makes the rows; where others want all of them, a copy of it. */
static void bind_maker(struct binder *b, struct op *op)
{
	struct uses uses = { .value = op->result[0], .arena = b->module->arena };
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
	struct op *maker = bound < uses.list.count ? copy_of(b, op) : op;
	for (size_t i = 0; i < uses.list.count; i++)
		if (rows_read(b, &uses.list.data[i]) == pitch)
			uses.list.data[i].op->operand[uses.list.data[i].operand] = maker->result[0];
	kernel_cut_loops(b->module, maker, -1, pitch, b->most);
	int loop = row_loop(b, maker, -1, pitch);
	if (loop < 0)
		report_unbindable(b, maker, "are not traversed completely by their producer");
	else
		bind(b, maker, loop);
	if (maker != op)
		bind_maker(b, op); /* other loops may be bound as well */
}

/* Elements between the rows that all who use the value read; 0: some read all. */
static int64_t rows_wanted(const struct binder *b, const struct value *value)
{
	struct uses uses = { .value = value, .arena = b->module->arena };
	ir_walk(b->main->region[0], note_use, &uses);
	int64_t pitch = uses.list.count ? rows_read(b, &uses.list.data[0]) : 0;
	for (size_t i = 1; i < uses.list.count; i++)
		pitch = rows_read(b, &uses.list.data[i]) == pitch ? pitch : 0;
	return pitch;
}

static bool can_bind(const struct binder *b, const struct op *maker, int64_t pitch)
{
	return maker && maker->code == OP_KERNEL && row_loop(b, maker, -1, pitch) >= 0 &&
	        rows_wanted(b, maker->result[0]) == pitch;
}

/* Where the pick is all that reads what it picks from, none of that need be made whole. */
static void bind_pick(struct binder *b, struct op *pick)
{
	if (pitch_of(pick->result[0]))
		return;
	int64_t pitch = rows_wanted(b, pick->result[0]);
	set_pitch(b, pick->result[0], pitch); /* so much is read of what it picks from */
	for (int j = 1; j < pick->operands && pitch; j++)
		if (!can_bind(b, pick->operand[j]->def, pitch))
			pitch = 0;
	set_pitch(b, pick->result[0], pitch);
}

static void bind_back(struct binder *b, struct block *block)
{
	for (struct op *op = block->last; op && !b->failed; op = op->previous) {
		if (op->code == OP_FOR)
			bind_back(b, op->region[0]);
		if (op->code == OP_LAYER_SELECT)
			bind_pick(b, op);
		if (op->code == OP_KERNEL)
			bind_maker(b, op);
	}
}

/* ---- tiles */

static void tile_loop(struct binder *b, struct op *op, int loop)
{
	struct launch_tokens rows = launch_tokens_of(b->module->arena, b->symbol, b->most);
	op->kernel->loop[loop].run_time = NULL;
	if (rows.tiles && rows.each && !kernel_split_loop(b->module, op, loop, rows.tile)) {
		report_unbindable(b, op, "share a loop with a concat");
		return;
	}
	op->kernel->loop[loop].run_time = rows.tiles ? rows.tiles : rows.each;
	if (rows.tiles && rows.each)
		op->kernel->loop[loop + 1].run_time = rows.each;
}

static void tile_block(struct binder *b, struct block *block)
{
	for (struct op *op = block->first; op && !b->failed; op = op->next) {
		if (op->code == OP_FOR)
			tile_block(b, op->region[0]);
		int loop = op->code == OP_KERNEL ? bound_loop(b, op) : -1;
		if (loop >= 0)
			tile_loop(b, op, loop);
	}
}

static void bind_argument(struct binder *b, int number)
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
	struct binder b = { .module = module, .main = module_main(module) };
	struct block *body = b.main->region[0];
	if (!engine_has_many_tokens(body))
		return true;
	ir_clear_data(body);
	for (int i = 0; i < body->arguments; i++)
		bind_argument(&b, i);
	if (!b.symbol)
		return true;
	bind_block(&b, body);
	bind_back(&b, body);
	tile_block(&b, body);
	ir_clear_data(body);
	return !b.failed;
}
