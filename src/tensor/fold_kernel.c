/* From a nest to a kernel: loops are split where digits of the operands begin, and pieces become
 * guarded operands.
 *     input[4 * i + j] of a dim [i, j]  ->  loops i, j with strides of their own
 * An input that does not fit (windows over a padded tensor, digits that do not nest) is copied to a
 * tensor of its own first. */
#include "tensor/fold.h"
#include <math.h>
#include <string.h>

/* Where an unsplit loop is split: ascending, each divides the next one and the extent. */
struct units {
	int64_t *unit;
	int count;
};

/* The loops of the kernel. */
struct split {
	int loops;
	struct loop *loop;
	int64_t *unit; /* [loops] weight in the unsplit counter */
	int *parent;   /* [loops] unsplit loop */
};

/* The affine form of the loops that is the index in a data dim. */
static int64_t *row_of(const struct fold_nest *nest, const struct input *input, int dim)
{
	return input->row + dim * (nest->loops + 1);
}

/* The only loop of a row; -1: a constant; -2: a sum, or a negative factor. */
static int row_loop(const struct fold_nest *nest, const int64_t *row)
{
	int found = -1;
	for (int l = 0; l < nest->loops; l++) {
		if (!row[l])
			continue;
		if (found != -1 || row[l] < 0)
			return -2;
		found = l;
	}
	return found;
}

/* Moves factor and offset of a row into the view, so that the row is one loop or 0.  false: the
 * view does not allow it. */
static bool settle_dim(
        struct module *module, const struct fold_nest *nest, struct input *input, int dim)
{
	int64_t *row = row_of(nest, input, dim);
	int loop = row_loop(nest, row);
	if (dim == input->index_dim || loop == -2)
		return view_is_plain(&input->view, dim);
	struct view_range range = { row[nest->loops], 1, 1 };
	if (loop >= 0)
		range = (struct view_range){ row[nest->loops], nest->extent[loop], row[loop] };
	if (!view_slice(module, &input->view, dim, range))
		return false;
	row[nest->loops] = 0;
	if (loop >= 0)
		row[loop] = 1;
	return true;
}

static void settle_input(struct fold *fold, const struct fold_nest *nest, struct input *input)
{
	input->view = view_merge(fold->module, &input->view);
	for (int r = 0; r < input->view.rank; r++) {
		if (settle_dim(fold->module, nest, input, r))
			continue;
		input->view = fold_materialize(fold, nest->location, &input->view);
		settle_dim(fold->module, nest, input, r);
	}
	input->view = view_merge(fold->module, &input->view);
}

/* Merges units into the list.  false: they would not divide each other; nothing is changed. */
static bool add_units(
        struct module *module, struct units *units, int64_t extent, int count, const int64_t *unit)
{
	int64_t *all = ARENA_ARRAY(module->arena, int64_t, units->count + count + 1);
	int n = 0;
	int a = 0;
	int b = 0;
	int64_t last = 1;
	while (a < units->count || b < count) {
		bool left = b == count || (a < units->count && units->unit[a] <= unit[b]);
		int64_t next = left ? units->unit[a++] : unit[b++];
		if (next == last)
			continue;
		if (next % last || extent % next)
			return false;
		all[n++] = last = next;
	}
	*units = (struct units){ all, n };
	return true;
}

static bool add_input_units(struct module *module, const struct fold_nest *nest,
        const struct input *input, struct units *units)
{
	struct units *saved = arena_copy(module->arena, units, sizeof *units * (size_t)nest->loops);
	int64_t *unit = ARENA_ARRAY(module->arena, int64_t, view_digits(&input->view));
	for (int r = 0; r < input->view.rank; r++) {
		int loop = row_loop(nest, row_of(nest, input, r));
		if (loop < 0 || r == input->index_dim)
			continue;
		int count = view_units(&input->view, r, unit);
		if (add_units(module, &units[loop], nest->extent[loop], count, unit))
			continue;
		memcpy(units, saved, sizeof *units * (size_t)nest->loops);
		return false;
	}
	return true;
}

/* Units of all loops; inputs whose digits do not nest with those of others are copied. */
static struct units *units_of_nest(struct fold *fold, struct fold_nest *nest)
{
	struct units *units = ARENA_ARRAY(fold->module->arena, struct units, nest->loops);
	for (size_t i = 0; i < nest->inputs.count; i++) {
		struct input *input = &nest->inputs.data[i];
		settle_input(fold, nest, input);
		if (add_input_units(fold->module, nest, input, units))
			continue;
		input->view = fold_materialize(fold, nest->location, &input->view);
		add_input_units(fold->module, nest, input, units);
	}
	return units;
}

static struct split split_loops(
        struct module *module, const struct fold_nest *nest, const struct units *units)
{
	int most = 0;
	for (int l = 0; l < nest->loops; l++)
		most += units[l].count + 1;
	struct split split = { .loop = ARENA_ARRAY(module->arena, struct loop, most),
		.unit = ARENA_ARRAY(module->arena, int64_t, most),
		.parent = ARENA_ARRAY(module->arena, int, most) };
	for (int l = 0; l < nest->loops; l++) {
		int64_t above = nest->extent[l];
		for (int u = units[l].count; u >= 0; u--) {
			int64_t unit = u ? units[l].unit[u - 1] : 1;
			if (above != unit) {
				split.loop[split.loops] = (struct loop){ .extent = above / unit,
					.reduction = nest->reduction[l] };
				split.unit[split.loops] = unit;
				split.parent[split.loops++] = l;
			}
			above = unit;
		}
	}
	return split;
}

/* Does the piece hold for some values of the digit only? */
static bool is_partial(const struct view *view, const struct piece *piece, int digit)
{
	return piece->low[digit] > 0 || piece->high[digit] < view->extent[digit];
}

/* Adds stride times the row to the access. */
static void add_row(const struct fold_nest *nest, const struct split *split, const int64_t *row,
        int64_t stride, struct access *access)
{
	access->offset += stride * row[nest->loops];
	for (int l = 0; l < split->loops; l++)
		access->stride[l] += stride * row[split->parent[l]] * split->unit[l];
}

/* How the split loops walk a piece of an input. */
static struct access access_of(struct module *module, const struct fold_nest *nest,
        const struct split *split, const struct input *input, const struct piece *piece)
{
	struct access access = access_empty(module, split->loops);
	const struct view *view = &input->view;
	access.offset = piece->offset;
	for (int r = 0; r < view->rank; r++) {
		int digit = view->first[r];
		int end = view->first[r + 1];
		const int64_t *row = row_of(nest, input, r);
		int loop = row_loop(nest, row);
		if (r == input->index_dim) {
			access.index_stride = digit < end ? piece->stride[digit] : 0;
			access.index_limit = digit < end ? view->extent[digit] : 1;
			continue;
		}
		if (loop == -2 && digit < end)
			add_row(nest, split, row, piece->stride[digit], &access);
		for (int l = 0; loop >= 0 && l < split->loops; l++) {
			if (split->parent[l] != loop)
				continue;
			access.stride[l] += piece->stride[digit];
			if (is_partial(view, piece, digit))
				access_add_guard(module, &access,
				        (struct guard_range){ .loop = l,
				                .low = piece->low[digit],
				                .high = piece->high[digit] });
			digit++;
		}
	}
	return access;
}

/* A kernel while it is made of a nest. */
struct nest_kernel {
	struct module *module;
	const struct fold_nest *nest;
	struct split split;
	int **number; /* [inputs][pieces]: operand of the kernel, -1 for constants */
	VEC(struct value *) values;
	VEC(struct access) accesses;
};

static struct access piece_access(const struct nest_kernel *k, int input, int piece)
{
	const struct input *from = &k->nest->inputs.data[input];
	return access_of(k->module, k->nest, &k->split, from, &from->view.piece[piece]);
}

/* Makes operands of the pieces of an input; an index of a gather is an earlier input. */
static void add_operands(struct nest_kernel *k, int number)
{
	const struct input *input = &k->nest->inputs.data[number];
	k->number[number] = ARENA_ARRAY(k->module->arena, int, input->view.pieces);
	for (int p = 0; p < input->view.pieces; p++) {
		const struct piece *piece = &input->view.piece[p];
		k->number[number][p] = -1;
		if (!piece->root)
			continue;
		struct access access = piece_access(k, number, p);
		if (input->index_dim >= 0)
			access.index_operand = k->number[input->index_input][0];
		k->number[number][p] = (int)k->values.count;
		VEC_PUSH(k->module->arena, &k->values, piece->root);
		VEC_PUSH(k->module->arena, &k->accesses, access);
	}
}

/* Node: whether a piece holds, by its operand's ACTIVE, or for a constant by the ranges. */
static int piece_holds(const struct nest_kernel *k, struct body *body, int input, int piece)
{
	if (k->number[input][piece] >= 0)
		return body_active(k->module, body, k->number[input][piece]);
	struct access access = piece_access(k, input, piece);
	return body_guard_condition(k->module, body, &access);
}

static bool is_zero(const struct body *body, int node)
{
	const struct node *n = &body->node[node];
	if (n->kind != NODE_CONSTANT)
		return false;
	if (type_is_real(n->type))
		return n->real == 0 && !signbit(n->real);
	return n->integer == 0;
}

/* Node: the number that a piece has. */
static int piece_value(const struct nest_kernel *k, struct body *body, int input, int piece)
{
	const struct view *view = &k->nest->inputs.data[input].view;
	if (k->number[input][piece] < 0)
		return body_add(k->module, body, view->piece[piece].constant);
	return body_operand(k->module, body, view->element, k->number[input][piece]);
}

/* Node: the number that an input has, selected from its pieces.  An operand reads 0 outside its
 * guard, so a border of zeros needs no selection. */
static int input_value(const struct nest_kernel *k, struct body *body, int input)
{
	const struct view *view = &k->nest->inputs.data[input].view;
	int last = view->pieces - 1;
	int value = -1;
	if (last >= 0 && view_is_covered(view))
		value = piece_value(k, body, input, last--);
	else
		value = body_integer(k->module, body, view->element, 0);
	for (int p = last; p >= 0; p--) {
		int own = piece_value(k, body, input, p);
		bool border = k->number[input][p] >= 0 && is_zero(body, value);
		if (!border)
			own = body_op(k->module, body, OP_SELECT, view->element,
			        piece_holds(k, body, input, p), own, value);
		value = own;
	}
	return value;
}

/* A body of the nest by operands and split loops. */
static struct body body_of(const struct nest_kernel *k, const struct body *from)
{
	struct module *module = k->module;
	struct body body = { 0 };
	if (!from->count)
		return body;
	int *operand = ARENA_ARRAY(module->arena, int, k->nest->inputs.count);
	int *index = ARENA_ARRAY(module->arena, int, k->nest->loops);
	for (size_t i = 0; i < k->nest->inputs.count; i++)
		operand[i] = body_uses_operand(from, (int)i) ? input_value(k, &body, (int)i) : -1;
	for (int l = 0; l < k->nest->loops; l++) {
		int64_t *factor = ARENA_ARRAY(module->arena, int64_t, k->split.loops);
		for (int s = 0; s < k->split.loops; s++)
			factor[s] = k->split.parent[s] == l ? k->split.unit[s] : 0;
		index[l] = body_affine(module, &body, k->split.loops, factor, 0);
	}
	body.result = body_rewrite(module, &body, from,
	        (struct body_map){ .operand = operand, .index = index, .accumulator = -1 });
	return body;
}

static struct access result_access(
        struct module *module, const struct fold_nest *nest, const struct split *split)
{
	struct access access = access_empty(module, split->loops);
	int64_t stride = 1;
	for (int r = nest->result->rank - 1; r >= 0; r--) {
		add_row(nest, split, nest->result_row + r * (nest->loops + 1), stride, &access);
		stride *= nest->result->shape[r];
	}
	return access;
}

/* Copies indices of gathers that are not one whole tensor: a gather reads its index unchanged. */
static void settle_indices(struct fold *fold, struct fold_nest *nest)
{
	for (size_t i = 0; i < nest->inputs.count; i++) {
		if (nest->inputs.data[i].index_dim < 0)
			continue;
		struct view *view = &nest->inputs.data[nest->inputs.data[i].index_input].view;
		if (view->pieces != 1 || !view->piece[0].root ||
		        !piece_is_total(view, &view->piece[0]))
			*view = fold_materialize(fold, nest->location, view);
	}
}

/* Copies the last half of the pieces of the input that has most, where a kernel would have too many
 * operands.  false: all inputs are whole tensors. */
static bool copy_half_of_pieces(struct fold *fold, struct fold_nest *nest)
{
	struct view *most = &nest->inputs.data[0].view;
	for (size_t i = 1; i < nest->inputs.count; i++)
		if (nest->inputs.data[i].view.pieces > most->pieces)
			most = &nest->inputs.data[i].view;
	if (most->pieces < 2)
		return false;
	struct view front = *most;
	struct view back = *most;
	front.pieces = most->pieces / 2;
	back.pieces -= front.pieces;
	back.piece += front.pieces;
	struct view made = fold_materialize(fold, nest->location, &back);
	view_overlay(fold->module, &front, &made);
	*most = front;
	return true;
}

struct value *fold_kernel(struct fold *fold, struct fold_nest *nest)
{
	struct module *module = fold->module;
	settle_indices(fold, nest);
	struct units *units = units_of_nest(fold, nest);
	struct nest_kernel k = { .module = module,
		.nest = nest,
		.split = split_loops(module, nest, units),
		.number = ARENA_ARRAY(module->arena, int *, nest->inputs.count) };
	for (size_t i = 0; i < nest->inputs.count; i++) {
		struct input *input = &nest->inputs.data[i];
		for (int r = 0; r < input->view.rank; r++) {
			int loop = row_loop(nest, row_of(nest, input, r));
			if (loop >= 0 && r != input->index_dim)
				view_refine(module, &input->view, r, units[loop].count,
				        units[loop].unit);
		}
		add_operands(&k, (int)i);
	}
	if (k.values.count > KERNEL_OPERANDS && copy_half_of_pieces(fold, nest))
		return fold_kernel(fold, nest);
	char *name = text_format(module->arena, "k%d", fold->kernels++);
	struct op *op = kernel_new(module, nest->location, name, k.split.loops, (int)k.values.count,
	        k.values.data, nest->result);
	op->kernel->loop = k.split.loop;
	op->kernel->operand = k.accesses.data;
	op->kernel->result = result_access(module, nest, &k.split);
	op->kernel->init = nest->init;
	op->kernel->update = body_of(&k, &nest->update);
	op->kernel->post = body_of(&k, &nest->post);
	kernel_tidy(module, op);
	op_insert_before(fold->before, op);
	fold_set_view(fold, op->result[0], view_of_root(module, op->result[0]));
	return op->result[0];
}

struct view fold_materialize(struct fold *fold, struct location location, const struct view *view)
{
	struct arena *arena = fold->module->arena;
	struct fold_nest nest = { .location = location, .loops = view->rank };
	nest.extent = ARENA_ARRAY(arena, int64_t, view->rank);
	nest.reduction = ARENA_ARRAY(arena, bool, view->rank);
	int64_t *row = ARENA_ARRAY(arena, int64_t, view->rank *(view->rank + 1));
	for (int r = 0; r < view->rank; r++) {
		nest.extent[r] = view_extent(view, r);
		row[r * (view->rank + 1) + r] = 1;
	}
	nest.result_row = row;
	nest.result =
	        type_shaped(fold->module, TYPE_TENSOR, view->rank, nest.extent, view->element);
	struct input input = { .view = *view,
		.row = arena_copy(
		        arena, row, sizeof *row * (size_t)(view->rank * (view->rank + 1))),
		.index_dim = -1 };
	VEC_PUSH(arena, &nest.inputs, input);
	nest.update.result = body_operand(fold->module, &nest.update, view->element, 0);
	return view_of_root(fold->module, fold_kernel(fold, &nest));
}
