/* Folds a linalg.generic: copies, transposes, broadcasts and fills become views, anything else one
 * kernel per live result. */
#include "tensor/fold.h"
#include <math.h>
#include <string.h>

static bool report_generic(const struct fold *fold, const struct op *op, const char *why)
{
	diag_error(fold->module->diag, op->location, "linalg.generic: %s", why);
	return diag_note(fold->module->diag,
	        "maps may hold sums of loops with constant factors over static shapes; loops are "
	        "parallel or reduction");
}

static bool is_reduction(const struct op *op, int loop)
{
	const struct attr *kind = attr_get(op, KEY_ITERATOR_TYPES)->items[loop].value;
	return kind->text && strstr(kind->text, "reduction");
}

/* The loop that a result of the map is; -1: it is something else. */
static int single_loop(struct affine_map map, int result)
{
	int found = -1;
	for (int l = 0; l < map.dims; l++) {
		if (!affine_at(map, result, l))
			continue;
		if (found >= 0 || affine_at(map, result, l) != 1)
			return -1;
		found = l;
	}
	return affine_constant(map, result) ? -1 : found;
}

/* Takes the extents of loops from the shapes of the operands. */
static bool set_extents(const struct fold *fold, const struct op *op, struct fold_nest *nest)
{
	for (int i = 0; i < op->operands; i++) {
		struct affine_map map = generic_map(op, i);
		const struct type *type = op->operand[i]->type;
		for (int r = 0; r < map.results && type->kind == TYPE_TENSOR; r++) {
			int loop = single_loop(map, r);
			if (loop >= 0)
				nest->extent[loop] = type->shape[r];
		}
	}
	for (int l = 0; l < nest->loops; l++)
		if (nest->extent[l] < 1)
			return report_generic(fold, op, "no operand gives the extent of a loop");
	return true;
}

static bool nest_of(const struct fold *fold, const struct op *op, struct fold_nest *nest)
{
	struct arena *arena = fold->module->arena;
	const struct attr *iterators = attr_get(op, KEY_ITERATOR_TYPES);
	const struct attr *maps = attr_get(op, KEY_INDEXING_MAPS);
	if (!iterators || !maps || maps->count != op->operands)
		return report_generic(fold, op, "indexing_maps or iterator_types are missing");
	for (int i = 0; i < maps->count; i++)
		if (maps->items[i].value->kind != ATTR_MAP ||
		        maps->items[i].value->map.dims != iterators->count)
			return report_generic(
			        fold, op, "an indexing map is not affine in the loops");
	*nest = (struct fold_nest){ .location = op->location, .loops = iterators->count };
	nest->extent = ARENA_ARRAY(arena, int64_t, nest->loops);
	nest->reduction = ARENA_ARRAY(arena, bool, nest->loops);
	for (int l = 0; l < nest->loops; l++)
		nest->reduction[l] = is_reduction(op, l);
	return set_extents(fold, op, nest);
}

/* The neutral element of a combination. */
static double neutral(enum op_code code)
{
	static const double value[OP_COUNT] = {
		[OP_MULF] = 1,
		[OP_MULI] = 1,
		[OP_ANDI] = -1,
		[OP_MAXIMUMF] = -INFINITY,
		[OP_MAXNUMF] = -INFINITY,
		[OP_MINIMUMF] = INFINITY,
		[OP_MINNUMF] = INFINITY,
		[OP_MAXSI] = (double)INT64_MIN,
	};
	return value[code];
}

/* The operation that combines accumulator and term; OP_NONE: a bias cannot be combined last. */
static enum op_code combine_of(struct module *module, const struct fold_nest *nest)
{
	struct kernel kernel = { .loops = nest->loops,
		.loop = ARENA_ARRAY(module->arena, struct loop, nest->loops),
		.update = nest->update };
	for (int l = 0; l < nest->loops; l++)
		kernel.loop[l] =
		        (struct loop){ .extent = nest->extent[l], .reduction = nest->reduction[l] };
	int term;
	enum op_code code = kernel_combine(&kernel, &term);
	return code == OP_MINSI ? OP_NONE : code;
}

/* Lets the update read the initial tensor in place of the accumulator at the first point. */
static void start_from(
        struct module *module, struct fold_nest *nest, const struct type *type, int input)
{
	const struct type *bit = type_integer(module, 1);
	const struct type *index = type_index(module);
	struct body body = { 0 };
	int first = body_integer(module, &body, bit, 1);
	int zero = body_integer(module, &body, index, 0);
	for (int l = 0; l < nest->loops; l++) {
		if (!nest->reduction[l])
			continue;
		struct node test = { .kind = NODE_OP,
			.code = OP_CMPI,
			.type = bit,
			.argument = { body_index(module, &body, l), zero },
			.integer = CMPI_EQ };
		first = body_op(
		        module, &body, OP_ANDI, bit, first, body_add(module, &body, test), 0);
	}
	int running =
	        body_add(module, &body, (struct node){ .kind = NODE_ACCUMULATOR, .type = type });
	int start = body_op(module, &body, OP_SELECT, type, first,
	        body_operand(module, &body, type, input), running);
	body.result = body_rewrite(
	        module, &body, &nest->update, (struct body_map){ .accumulator = start });
	nest->update = body;
}

/* Sets the initial value of a reduction: a constant; or a tensor (a bias), which the post body
 * combines after the last point. */
static void set_init(struct fold *fold, const struct op *op, int operand, struct fold_nest *nest)
{
	struct module *module = fold->module;
	const struct view *view = fold_view(op->operand[operand]);
	if (view_is_constant(view)) {
		const struct node *constant = &view->piece[0].constant;
		nest->init =
		        type_is_real(constant->type) ? constant->real : (double)constant->integer;
		return;
	}
	struct affine_map map = generic_map(op, operand);
	int64_t *row = affine_rows(module->arena, map.dims, map.results);
	memcpy(row, map.coefficient, sizeof *row * (size_t)(map.results * (map.dims + 1)));
	struct input input = { .view = *view, .row = row, .index_dim = -1 };
	int number = (int)nest->inputs.count;
	VEC_PUSH(module->arena, &nest->inputs, input);
	enum op_code combine = combine_of(module, nest);
	if (combine == OP_NONE) {
		start_from(module, nest, view->element, number);
		return;
	}
	nest->init = neutral(combine);
	struct body *post = &nest->post;
	int sum = body_add(
	        module, post, (struct node){ .kind = NODE_ACCUMULATOR, .type = view->element });
	post->result = body_op(module, post, combine, view->element, sum,
	        body_operand(module, post, view->element, number), 0);
}

static bool has_reduction(const struct fold_nest *nest)
{
	for (int l = 0; l < nest->loops; l++)
		if (nest->reduction[l])
			return true;
	return false;
}

/* By loop: the data dim of the input that it walks, or -1.  false: a dim is walked by no single
 * loop. */
static bool copied_dims(const struct fold_nest *nest, struct affine_map map, int *dim_of_loop)
{
	for (int l = 0; l < nest->loops; l++)
		dim_of_loop[l] = -1;
	for (int r = 0; r < map.results; r++) {
		int loop = single_loop(map, r);
		bool constant = loop < 0;
		for (int l = 0; l < map.dims; l++)
			constant &= affine_at(map, r, l) == 0;
		if (constant)
			continue;
		if (loop < 0 || dim_of_loop[loop] >= 0)
			return false;
		dim_of_loop[loop] = r;
	}
	return true;
}

/* Takes the index where a dim of the input has a constant one. */
static bool slice_constants(struct module *module, struct affine_map map, struct view *view)
{
	for (int r = 0; r < map.results; r++)
		if (single_loop(map, r) < 0 &&
		        !view_slice(module, view, r,
		                (struct view_range){ affine_constant(map, r), 1, 1 }))
			return false;
	return true;
}

/* Gives the result a view if the generic only moves elements.  false: it computes. */
static bool fold_copy(struct fold *fold, struct op *op, int result, const struct fold_nest *nest)
{
	struct module *module = fold->module;
	const struct node *node = &nest->update.node[nest->update.result];
	struct affine_map out = generic_map(op, generic_inputs(op) + result);
	int rank = out.results;
	int *dim = ARENA_ARRAY(module->arena, int, rank);
	int *dim_of_loop = ARENA_ARRAY(module->arena, int, nest->loops);
	int64_t *extent = ARENA_ARRAY(module->arena, int64_t, rank);
	if (node->kind == NODE_CONSTANT) {
		fold_set_view(fold, op->result[result],
		        view_of_constant(module, op->result[result]->type, *node));
		return true;
	}
	if (node->kind != NODE_OPERAND || nest->inputs.data[node->integer].index_dim >= 0 ||
	        rank != nest->loops)
		return false;
	const struct input *input = &nest->inputs.data[node->integer];
	struct affine_map map = { nest->loops, input->view.rank, input->row };
	struct view view = input->view;
	if (!copied_dims(nest, map, dim_of_loop) || !slice_constants(module, map, &view))
		return false;
	for (int r = 0; r < rank; r++) {
		int loop = single_loop(out, r);
		if (loop < 0)
			return false;
		dim[r] = dim_of_loop[loop];
		extent[r] = nest->extent[loop];
		if (dim[r] >= 0 && view_extent(&view, dim[r]) != extent[r])
			return false;
	}
	fold_set_view(fold, op->result[result], view_permute(module, &view, rank, dim, extent));
	return true;
}

static bool fold_result(struct fold *fold, struct op *op, int result)
{
	struct fold_nest nest;
	if (!nest_of(fold, op, &nest) || !fold_body(fold, op, result, &nest))
		return false;
	if (nest.inputs.count > KERNEL_OPERANDS)
		return report_generic(fold, op,
		        text_format(fold->module->arena, "%zu inputs; at most %d are supported",
		                nest.inputs.count, KERNEL_OPERANDS));
	int out = generic_inputs(op) + result;
	bool reduction = has_reduction(&nest);
	if (!reduction && fold_copy(fold, op, result, &nest))
		return true;
	struct affine_map map = generic_map(op, out);
	int64_t *row = affine_rows(fold->module->arena, map.dims, map.results);
	memcpy(row, map.coefficient, sizeof *row * (size_t)(map.results * (map.dims + 1)));
	nest.result_row = row;
	nest.result = op->result[result]->type;
	if (reduction)
		set_init(fold, op, out, &nest);
	struct value *made = fold_kernel(fold, &nest);
	fold_set_view(fold, op->result[result], view_of_root(fold->module, made));
	return true;
}

bool fold_generic(struct fold *fold, struct op *op)
{
	for (int r = 0; r < op->results; r++)
		if (op->result[r]->uses && !fold_result(fold, op, r))
			return false;
	return true;
}
