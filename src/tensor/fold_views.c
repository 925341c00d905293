/* Folds linalg on tensors into kernels over linear addresses.
 * Before: linalg.generic, tensor views (slice, reshape, concat, pad, ...) and constants
 * After:  kernels whose accesses have offsets, strides and guards; views cost nothing
 * What does not fit into strides over split loops (a window over a padded tensor) is copied by a
 * kernel of its own first.
 * Needs: static shapes.
 * Guarantees: main holds kernels, constant tensors that are not splats, the return, and loops whose
 * bodies are the same (fold_loop.c); operands of kernels are arguments, constants or results of
 * kernels; results of main are results of kernels with the declared types; dead code is removed.
 * Exact, but for a reduction that starts from a tensor (a convolution's bias), which is combined
 * after the last point, and for powers with constant exponents (fold_scalar.c).
 * Ends: linear in the number of operations. */
#include "tensor/countable.h"
#include "tensor/fold.h"
#include "tensor/tensor_passes.h"
#include <math.h>
#include <string.h>

bool fold_report(const struct fold *fold, const struct op *op, const char *why)
{
	diag_error(fold->module->diag, op->location, "%s: %s", op_info[op->code].name, why);
	return diag_note(fold->module->diag, "offsets, sizes and shapes must be static");
}

struct view *fold_view(struct value *value)
{
	return value->data;
}

void fold_set_view(struct fold *fold, struct value *value, struct view view)
{
	value->data = arena_copy(fold->module->arena, &view, sizeof view);
}

/* The number of f16 or bf16 bits. */
static double half_value(uint16_t bits, bool brain)
{
	if (brain) {
		uint32_t wide = (uint32_t)bits << 16;
		float value;
		memcpy(&value, &wide, sizeof value);
		return value;
	}
	uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
	uint32_t exponent = (bits >> 10) & 31;
	uint32_t fraction = bits & 1023;
	double magnitude = (double)fraction / 16777216.0;
	if (exponent)
		magnitude = (double)(1024 + fraction) / 33554432.0 * (double)(1u << exponent);
	if (exponent == 31 && !brain)
		magnitude = fraction ? (double)NAN : (double)INFINITY;
	return sign ? -magnitude : magnitude;
}

static double real_element(const struct type *type, const void *data)
{
	float single;
	double number;
	uint16_t half;
	if (type->kind == TYPE_FLOAT && type->width == 32)
		return memcpy(&single, data, sizeof single), (double)single;
	if (type->kind == TYPE_FLOAT && type->width == 64)
		return memcpy(&number, data, sizeof number), number;
	memcpy(&half, data, sizeof half);
	return half_value(half, type->kind == TYPE_BFLOAT);
}

struct node constant_of_attr(const struct attr *attr)
{
	struct node node = { .kind = NODE_CONSTANT,
		.type = type_scalar(attr->type),
		.integer = attr->integer,
		.real = attr->real };
	if (attr->kind != ATTR_DENSE)
		return node;
	if (type_is_real(node.type)) {
		node.real = real_element(node.type, attr->data);
		return node;
	}
	size_t width = attr->bytes < sizeof node.integer ? attr->bytes : sizeof node.integer;
	uint64_t bits = 0;
	memcpy(&bits, attr->data, width);
	unsigned shift = (unsigned)(64 - 8 * width);
	node.integer =
	        node.type->width == 1 ? (int64_t)(bits & 1) : (int64_t)(bits << shift) >> shift;
	return node;
}

bool fold_constant(struct fold *fold, const struct value *value, struct node *constant)
{
	struct module *module = fold->module;
	const struct op *def = value->def;
	if (def && def->code == OP_CONSTANT) {
		*constant = constant_of_attr(attr_get(def, KEY_VALUE));
		return true;
	}
	struct location location = def ? def->location : NOWHERE;
	if (def && def->operands == 1 && (op_info[def->code].levels & LEVEL_BODY)) {
		struct body body = { 0 };
		struct node node = { .kind = NODE_OP, .code = def->code, .type = value->type };
		struct node argument;
		if (!fold_constant(fold, def->operand[0], &argument))
			return false;
		node.argument[0] = body_add(module, &body, argument);
		int folded = fold_scalar(module, &body, &node);
		if (folded >= 0) {
			*constant = body.node[folded];
			return true;
		}
	}
	diag_error(module->diag, location, "a scalar outside linalg bodies is not a constant");
	return diag_note(module->diag,
	        "scalars must be arith.constant; keep values that are computed in tensors");
}

static bool fold_constant_op(struct fold *fold, struct op *op)
{
	const struct attr *value = attr_get(op, KEY_VALUE);
	const struct type *type = op->result[0]->type;
	if (type->kind != TYPE_TENSOR)
		return true;
	bool one = value->kind == ATTR_DENSE && (value->splat || type_elements(type) == 1);
	if (value->kind != ATTR_DENSE)
		return fold_report(fold, op, "the elements are not present here");
	fold_set_view(fold, op->result[0],
	        one ? view_of_constant(fold->module, type, constant_of_attr(value))
	            : view_of_root(fold->module, op->result[0]));
	return true;
}

static bool fold_empty(struct fold *fold, struct op *op)
{
	struct node zero = { .kind = NODE_CONSTANT, .type = type_scalar(op->result[0]->type) };
	fold_set_view(
	        fold, op->result[0], view_of_constant(fold->module, op->result[0]->type, zero));
	return true;
}

static bool fold_cast(struct fold *fold, struct op *op)
{
	fold_set_view(fold, op->result[0], *fold_view(op->operand[0]));
	return true;
}

/* tensor.splat and tensor.from_elements of one constant. */
static bool fold_splat(struct fold *fold, struct op *op)
{
	struct node first;
	struct node next;
	for (int i = 0; i < op->operands; i++) {
		if (!fold_constant(fold, op->operand[i], i ? &next : &first))
			return false;
		if (i &&
		        (next.integer != first.integer ||
		                memcmp(&next.real, &first.real, sizeof next.real)))
			return fold_report(fold, op,
			        "the elements differ; write them as an arith.constant tensor");
	}
	fold_set_view(
	        fold, op->result[0], view_of_constant(fold->module, op->result[0]->type, first));
	return true;
}

/* Reads the attribute `reassociation`: group g has the dims first[g] … first[g + 1] - 1.  A tensor
 * of rank 0 has no group, however many dims of extent 1 the other side has. */
static bool groups_of(const struct op *op, int rank, int *first, int *groups)
{
	const struct attr *reassociation = attr_get(op, KEY_REASSOCIATION);
	if (!reassociation || reassociation->kind != ATTR_ARRAY)
		return false;
	int at = 0;
	for (int g = 0; g < reassociation->count; g++) {
		first[g] = at;
		at += reassociation->items[g].value->count;
	}
	first[ *groups = reassociation->count] = at;
	return at == rank || *groups == 0;
}

static bool fold_collapse(struct fold *fold, struct op *op)
{
	const struct view *view = fold_view(op->operand[0]);
	int groups;
	int *first = ARENA_ARRAY(fold->module->arena, int, view->rank + 2);
	if (!groups_of(op, view->rank, first, &groups))
		return fold_report(fold, op, "the reassociation does not cover the shape");
	fold_set_view(fold, op->result[0], view_collapse(fold->module, view, groups, first));
	return true;
}

/* The view of a copy, where the view itself does not fit. */
static struct view materialize_operand(
        struct fold *fold, const struct op *op, const struct view *view)
{
	return fold_materialize(fold, op->location, view);
}

static bool fold_expand(struct fold *fold, struct op *op)
{
	struct module *module = fold->module;
	const struct type *type = op->result[0]->type;
	struct view view = *fold_view(op->operand[0]);
	int groups;
	int *first = ARENA_ARRAY(module->arena, int, type->rank + 2);
	int *source = ARENA_ARRAY(module->arena, int, type->rank);
	if (!groups_of(op, type->rank, first, &groups))
		return fold_report(fold, op, "the reassociation does not cover the shape");
	for (int g = 0; g < groups; g++)
		for (int r = first[g]; r < first[g + 1]; r++)
			source[r] = g;
	if (groups == 0) {
		int *none = ARENA_ARRAY(module->arena, int, type->rank);
		for (int r = 0; r < type->rank; r++)
			none[r] = -1;
		view = view_permute(module, &view, type->rank, none, type->shape);
	} else if (!view_expand(module, &view, type->rank, source, type->shape)) {
		view = materialize_operand(fold, op, &view);
		view_expand(module, &view, type->rank, source, type->shape);
	}
	fold_set_view(fold, op->result[0], view);
	return true;
}

static bool all_static(const struct attr *list)
{
	for (int i = 0; list && i < list->count; i++)
		if (list->integers[i] == INT64_MIN)
			return false;
	return list != NULL;
}

/* A slice of a tensor, by dim. */
struct slice {
	const int64_t *offset, *size, *stride;
};

static bool slice_all(struct module *module, struct view *view, struct slice slice)
{
	for (int r = 0; r < view->rank; r++)
		if (!view_slice(module, view, r,
		            (struct view_range){ slice.offset[r], slice.size[r], slice.stride[r] }))
			return false;
	return true;
}

/* Drops dims of extent 1 so that the rest has the result's shape. */
static struct view reduce_rank(
        struct module *module, const struct view *view, const struct type *type)
{
	int *dim = ARENA_ARRAY(module->arena, int, type->rank);
	int r = 0;
	for (int d = 0; d < view->rank; d++)
		if (r < type->rank && view_extent(view, d) == type->shape[r])
			dim[r++] = d;
	return view_permute(module, view, type->rank, dim, type->shape);
}

/* The slice, of a copy if need be. */
static struct view sliced(
        struct fold *fold, const struct op *op, const struct view *view, struct slice slice)
{
	struct view part = *view;
	if (!slice_all(fold->module, &part, slice)) {
		part = materialize_operand(fold, op, view);
		slice_all(fold->module, &part, slice);
	}
	return part;
}

static bool fold_slice(struct fold *fold, struct op *op)
{
	struct module *module = fold->module;
	if (op->operands > 1)
		return fold_layer_row(fold, op);
	const struct attr *offset = attr_get(op, KEY_STATIC_OFFSETS);
	const struct attr *size = attr_get(op, KEY_STATIC_SIZES);
	const struct attr *stride = attr_get(op, KEY_STATIC_STRIDES);
	if (!all_static(offset) || !all_static(size) || !all_static(stride))
		return fold_report(fold, op, "an offset, size or stride is not static");
	struct view view = sliced(fold, op, fold_view(op->operand[0]),
	        (struct slice){ offset->integers, size->integers, stride->integers });
	if (op->result[0]->type->rank != view.rank)
		view = reduce_rank(module, &view, op->result[0]->type);
	fold_set_view(fold, op->result[0], view);
	return true;
}

/* Where a part lies in a larger tensor, by dim. */
struct placement {
	const int64_t *offset, *stride;
	const int64_t *shape; /* of the larger tensor */
};

static bool place_all(struct module *module, struct view *view, struct placement at)
{
	for (int r = 0; r < view->rank; r++)
		if (!view_place(module, view, r,
		            (struct view_position){ at.offset[r], at.stride[r], at.shape[r] }))
			return false;
	return true;
}

/* A tensor with `part` at that place and `rest` elsewhere; views that do not fit are copied. */
static struct view insert_part(struct fold *fold, const struct op *op, struct view part,
        struct view rest, struct placement at)
{
	struct module *module = fold->module;
	struct view placed = part;
	if (!place_all(module, &placed, at)) {
		placed = materialize_operand(fold, op, &part);
		place_all(module, &placed, at);
	}
	struct view merged = placed;
	if (view_overlay(module, &merged, &rest))
		return merged;
	rest = materialize_operand(fold, op, &rest);
	if (view_overlay(module, &placed, &rest))
		return placed;
	part = materialize_operand(fold, op, &part);
	place_all(module, &part, at);
	view_overlay(module, &part, &rest);
	return part;
}

/* Gives a part of lower rank than the whole dims of extent 1 where the sizes have them. */
static struct view raise_rank(
        struct module *module, const struct view *view, int rank, const int64_t *size)
{
	int *dim = ARENA_ARRAY(module->arena, int, rank);
	int d = 0;
	for (int r = 0; r < rank; r++) {
		bool present = d < view->rank && view_extent(view, d) == size[r] &&
		        (size[r] != 1 || view->rank - d >= rank - r);
		dim[r] = present ? d++ : -1;
	}
	return view_permute(module, view, rank, dim, size);
}

static bool fold_insert(struct fold *fold, struct op *op)
{
	if (op->operands > 2)
		return fold_insert_layer(fold, op);
	const struct attr *offset = attr_get(op, KEY_STATIC_OFFSETS);
	const struct attr *size = attr_get(op, KEY_STATIC_SIZES);
	const struct attr *stride = attr_get(op, KEY_STATIC_STRIDES);
	if (!all_static(offset) || !all_static(size) || !all_static(stride))
		return fold_report(fold, op, "an offset, size or stride is not static");
	const struct type *type = op->result[0]->type;
	struct view part = *fold_view(op->operand[0]);
	for (int r = 0; r < type->rank; r++)
		if (stride->integers[r] != 1 && size->integers[r] > 1)
			return fold_report(fold, op, "strides other than 1 are not supported");
	if (part.rank != type->rank)
		part = raise_rank(fold->module, &part, type->rank, size->integers);
	const struct placement at = { offset->integers, stride->integers, type->shape };
	fold_set_view(
	        fold, op->result[0], insert_part(fold, op, part, *fold_view(op->operand[1]), at));
	return true;
}

/* Removes elements where a border of the pad has a negative width. */
static bool cut_borders(struct fold *fold, const struct op *op, struct view *view,
        const int64_t *low, const int64_t *high)
{
	struct arena *arena = fold->module->arena;
	int64_t *offset = ARENA_ARRAY(arena, int64_t, view->rank);
	int64_t *size = ARENA_ARRAY(arena, int64_t, view->rank);
	int64_t *stride = ARENA_ARRAY(arena, int64_t, view->rank);
	bool cuts = false;
	for (int r = 0; r < view->rank; r++) {
		stride[r] = 1;
		offset[r] = low[r] < 0 ? -low[r] : 0;
		size[r] = view_extent(view, r) - offset[r] + (high[r] < 0 ? high[r] : 0);
		cuts = cuts || low[r] < 0 || high[r] < 0;
		if (size[r] < 1)
			return fold_report(
			        fold, op, "a negative width takes away all that there is");
	}
	if (cuts)
		*view = sliced(fold, op, view, (struct slice){ offset, size, stride });
	return true;
}

static bool fold_pad(struct fold *fold, struct op *op)
{
	const struct attr *low = attr_get(op, KEY_STATIC_LOW);
	const struct attr *high = attr_get(op, KEY_STATIC_HIGH);
	const struct type *type = op->result[0]->type;
	struct node border;
	if (!all_static(low) || !all_static(high))
		return fold_report(fold, op, "a width is not static");
	if (!fold_constant(fold, op->region[0]->last->operand[0], &border))
		return false;
	int64_t *offset = ARENA_ARRAY(fold->module->arena, int64_t, type->rank);
	int64_t *ones = ARENA_ARRAY(fold->module->arena, int64_t, type->rank);
	struct view part = *fold_view(op->operand[0]);
	for (int r = 0; r < type->rank; r++) {
		ones[r] = 1;
		offset[r] = low->integers[r] > 0 ? low->integers[r] : 0;
	}
	if (!cut_borders(fold, op, &part, low->integers, high->integers))
		return false;
	struct view rest = view_of_constant(fold->module, type, border);
	const struct placement at = { offset, ones, type->shape };
	fold_set_view(fold, op->result[0], insert_part(fold, op, part, rest, at));
	return true;
}

static bool equal_parts(const struct op *op, int dim)
{
	for (int i = 1; i < op->operands; i++)
		if (op->operand[i]->type->shape[dim] != op->operand[0]->type->shape[dim])
			return false;
	return op->operands > 1 && op->operand[0]->type->shape[dim] > 1;
}

/* A concat of equal parts, as a digit over the parts.  false: the digits do not fit. */
static bool concat_equal(struct fold *fold, struct op *op, int dim)
{
	struct module *module = fold->module;
	struct view all = *fold_view(op->operand[0]);
	view_part(module, &all, dim, 0, op->operands);
	for (int i = 1; i < op->operands; i++) {
		struct view part = *fold_view(op->operand[i]);
		view_part(module, &part, dim, i, op->operands);
		if (!view_overlay(module, &all, &part))
			return false;
	}
	fold_set_view(fold, op->result[0], all);
	return true;
}

static bool fold_concat(struct fold *fold, struct op *op)
{
	struct module *module = fold->module;
	const struct type *type = op->result[0]->type;
	int dim = (int)attr_integer_or(op, KEY_DIM, 0);
	if (dim < 0 || dim >= type->rank)
		return fold_report(fold, op, "there is no such dim");
	if (equal_parts(op, dim) && concat_equal(fold, op, dim))
		return true;
	int64_t *offset = ARENA_ARRAY(module->arena, int64_t, type->rank);
	int64_t *stride = ARENA_ARRAY(module->arena, int64_t, type->rank);
	for (int r = 0; r < type->rank; r++)
		stride[r] = 1;
	struct node zero = { .kind = NODE_CONSTANT, .type = type_scalar(type) };
	struct view all = view_of_constant(module, type, zero);
	for (int i = 0; i < op->operands; i++) {
		all = insert_part(fold, op, *fold_view(op->operand[i]), all,
		        (struct placement){ offset, stride, type->shape });
		offset[dim] += op->operand[i]->type->shape[dim];
	}
	if (view_is_covered(&(struct view){
	            all.element, all.rank, all.first, all.extent, all.pieces - 1, all.piece }))
		all.pieces--;
	fold_set_view(fold, op->result[0], all);
	return true;
}

/* Operations without a result to fold. */
static bool fold_nothing(struct fold *fold, struct op *op)
{
	(void)fold, (void)op;
	return true;
}

static bool (*const folds[OP_COUNT])(struct fold *fold, struct op *op) = {
	[OP_GENERIC] = fold_generic,
	[OP_CONSTANT] = fold_constant_op,
	[OP_TENSOR_EMPTY] = fold_empty,
	[OP_TENSOR_CAST] = fold_cast,
	[OP_TENSOR_SPLAT] = fold_splat,
	[OP_TENSOR_FROM] = fold_splat,
	[OP_TENSOR_COLLAPSE] = fold_collapse,
	[OP_TENSOR_EXPAND] = fold_expand,
	[OP_TENSOR_SLICE] = fold_slice,
	[OP_TENSOR_INSERT] = fold_insert,
	[OP_TENSOR_PAD] = fold_pad,
	[OP_TENSOR_CONCAT] = fold_concat,
	[OP_ASSERT] = fold_nothing,
	[OP_RETURN] = fold_nothing,
	[OP_YIELD] = fold_nothing,
	[OP_FOR] = fold_loop,
};

static void mark_operands(struct op *op, void *context)
{
	(void)context;
	for (int i = 0; i < op->operands; i++)
		op->operand[i]->uses++;
}

/* Sets uses > 0 for the results that something reads from which the end of the block depends. */
static void mark_live(struct block *block)
{
	for (struct op *op = block->first; op; op = op->next)
		for (int r = 0; r < op->results; r++)
			op->result[r]->uses = 0;
	for (struct op *op = block->last; op; op = op->previous) {
		bool live = op == block->last;
		for (int r = 0; r < op->results; r++)
			live |= op->result[r]->uses > 0;
		if (!live)
			continue;
		mark_operands(op, NULL);
		for (int i = 0; i < 2; i++)
			if (op->region[i])
				ir_walk(op->region[i], mark_operands, NULL);
	}
}

static bool is_static(const struct type *type)
{
	for (int r = 0; r < type->rank; r++)
		if (type->shape[r] < 1)
			return false;
	return type->kind == TYPE_TENSOR;
}

static bool is_empty(const struct type *type)
{
	return type->kind == TYPE_TENSOR && type_elements(type) == 0;
}

/* Parts without elements, such as an empty cache, add nothing to a concat. */
static void drop_empty_parts(struct module *module, struct op *op)
{
	struct value **part = ARENA_ARRAY(module->arena, struct value *, op->operands + 1);
	int count = 0;
	for (int i = 0; i < op->operands; i++)
		if (!is_empty(op->operand[i]->type))
			part[count++] = op->operand[i];
	op_set_operands(module, op, count, part);
}

static bool fold_op(struct fold *fold, struct op *op)
{
	bool live = op == op->parent->last;
	for (int r = 0; r < op->results; r++)
		live |= op->result[r]->uses > 0;
	if (!live)
		return true;
	if (op->code == OP_TENSOR_CONCAT)
		drop_empty_parts(fold->module, op);
	for (int i = 0; i < op->operands; i++)
		if (is_empty(op->operand[i]->type))
			return fold_report(fold, op, "an operand without elements");
	for (int r = 0; r < op->results; r++)
		if (op->result[r]->type->kind == TYPE_TENSOR && !is_static(op->result[r]->type))
			return fold_report(fold, op,
			        text_format(fold->module->arena, "result of type %s",
			                op->result[r]->type->text));
	bool scalar = op->results == 1 && op->result[0]->type->kind != TYPE_TENSOR &&
	        (op_info[op->code].levels & LEVEL_BODY);
	if (scalar)
		return true;
	if (!folds[op->code])
		return fold_report(fold, op, "this operation is not supported here");
	fold->before = op;
	return folds[op->code](fold, op);
}

bool fold_block(struct fold *fold, struct block *block)
{
	mark_live(block);
	for (struct op *op = block->first; op; op = op->next)
		if (op->code != OP_KERNEL && op->code != OP_LAYER_ROW &&
		        op->code != OP_INSERT_LAYER && !fold_op(fold, op))
			return false;
	return true;
}

/* The kernel result that a result of main is, with the declared type; other views are copied where
 * they were formed.  uses -1: it is a result of main already. */
static struct value *returned_value(
        struct fold *fold, const struct op *ret, int index, const struct type *type)
{
	struct view view = view_merge(fold->module, fold_view(ret->operand[index]));
	struct value *root = view.piece[0].root;
	struct op *def = ret->operand[index]->def;
	fold->before = def ? def : ret->parent->first;
	if (def && (def->code == OP_FOR || def->code == OP_CONSTANT))
		fold->before = def->next;
	bool direct = view_is_identity(&view) && root->def && root->def->code == OP_KERNEL &&
	        (root->type == type || root->uses >= 0);
	if (!direct)
		root = fold_materialize(fold, ret->location, &view).piece[0].root;
	root->type = type;
	root->uses = -1;
	return root;
}

static void set_results(struct fold *fold, struct op *main, struct op *ret)
{
	const struct type *type = attr_get(main, KEY_FUNCTION_TYPE)->type;
	struct value **result = ARENA_ARRAY(fold->module->arena, struct value *, ret->operands);
	for (int i = 0; i < ret->operands; i++)
		result[i] = returned_value(fold, ret, i, type->output[i]);
	op_set_operands(fold->module, ret, ret->operands, result);
}

/* Does the operation stay in main? */
static bool stays(const struct op *op)
{
	if (op->code == OP_CONSTANT || op->code == OP_TENSOR_EMPTY)
		return op->result[0]->uses > 0;
	return op == op->parent->last || op->code == OP_KERNEL || op->code == OP_FOR ||
	        op->code == OP_LAYER_ROW || op->code == OP_INSERT_LAYER;
}

/* Removes dead kernels and all operations that are views now, last first. */
static void remove_folded(struct block *block)
{
	for (struct op *op = block->first; op; op = op->next)
		for (int r = 0; r < op->results; r++)
			op->result[r]->uses = 0;
	struct op *previous;
	for (struct op *op = block->last; op; op = previous) {
		previous = op->previous;
		bool dead = op->code == OP_KERNEL || op->code == OP_FOR;
		for (int r = 0; r < op->results; r++)
			dead = dead && !op->result[r]->uses;
		if (!stays(op) || dead) {
			op_remove(op);
			continue;
		}
		mark_operands(op, NULL);
		if (op->code == OP_FOR)
			remove_folded(op->region[0]);
	}
}

/* Does main consist of kernels already, as in a dump of a later pass?  Then nothing is folded. */
static bool has_kernels(const struct block *body)
{
	for (const struct op *op = body->first; op; op = op->next)
		if (op->code == OP_KERNEL || op->code == OP_SEQUENTIAL ||
		        (op->code == OP_FOR && has_kernels(op->region[0])))
			return true;
	return false;
}

static bool only_kernels(struct module *module, const struct block *body)
{
	for (const struct op *op = body->first; op; op = op->next) {
		bool view = op->code == OP_GENERIC ||
		        (op->code >= OP_TENSOR_EXPAND && op->code <= OP_TENSOR_FROM);
		if (!view)
			continue;
		diag_error(module->diag, op->location, "%s beside kernels", op_info[op->code].name);
		return diag_note(module->diag, "a module of linalg and views, or one of kernels");
	}
	return true;
}

bool fold_views(struct pass_context *context, struct module *module)
{
	const struct block *body = module_main(module)->region[0];
	if (has_kernels(body))
		return only_kernels(module, body);
	(void)context;
	struct op *main = module_main(module);
	struct block *block = main->region[0];
	struct fold fold = { .module = module };
	for (int i = 0; i < block->arguments; i++) {
		if (is_empty(block->argument[i]->type))
			continue; /* only a concat may name it */
		if (!is_static(block->argument[i]->type)) {
			diag_error(module->diag, main->location, "argument %d of main has type %s",
			        i, block->argument[i]->type->text);
			return diag_note(module->diag, "arguments must be tensors of static shape");
		}
		fold_set_view(&fold, block->argument[i], view_of_root(module, block->argument[i]));
	}
	if (!fold_block(&fold, block))
		return false;
	set_results(&fold, main, block->last);
	remove_folded(block);
	return is_countable(module, block, MASKED_BITS);
}
