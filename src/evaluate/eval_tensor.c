/* Evaluates the tensor level's constants, views, slices, padding, scalars, and scalar operations on
 * whole tensors. */
#include "ir/launch_tokens.h"
#include "evaluate/eval_level.h"
#include <string.h>

#define RANK_MOST 16

/* A box of elements between two dense tensors: extents, and element strides on both sides. */
struct copy_box {
	int rank;
	int64_t extent[RANK_MOST], from[RANK_MOST], to[RANK_MOST];
	int64_t from_first, to_first;
};

static void copy_box(const struct copy_box *box, const char *from, char *to, int bytes)
{
	int64_t at[RANK_MOST] = { 0 };
	int64_t source = box->from_first;
	int64_t target = box->to_first;
	for (int d = 0; d < box->rank; d++)
		if (box->extent[d] <= 0)
			return;
	for (;;) {
		memcpy(to + target * bytes, from + source * bytes, (size_t)bytes);
		int d = box->rank - 1;
		for (; d >= 0 && ++at[d] == box->extent[d]; d--) {
			source -= (box->extent[d] - 1) * box->from[d];
			target -= (box->extent[d] - 1) * box->to[d];
			at[d] = 0;
		}
		if (d < 0)
			return;
		source += box->from[d];
		target += box->to[d];
	}
}

static int element_bytes(const struct tensor *tensor)
{
	return scalar_storage_bytes(type_scalar(tensor->type));
}

static void row_major(int64_t *stride, const struct type *type)
{
	int64_t row = 1;
	for (int d = type->rank - 1; d >= 0; d--) {
		stride[d] = row;
		row *= type->shape[d];
	}
}

/* MLIR's mixed static and dynamic numbers of a view op: dynamic ones are its next operands. */
struct mixed_numbers {
	const struct op *op;
	int rank;
	int operand; /* next dynamic one */
};

/* One number a dim: the static one, or the next dynamic operand. */
static bool read_mixed(
        struct evaluation *e, struct mixed_numbers *numbers, enum attr_key key, int64_t *out)
{
	const struct op *op = numbers->op;
	const struct attr *attr = attr_get(op, key);
	int rank = numbers->rank;
	if (!attr || attr->kind != ATTR_INTEGERS || attr->count != rank || rank > RANK_MOST)
		return diag_error(e->module->diag, op->location,
		        "\"%s\" needs %s with one number a dim, of at most %d dims",
		        op_info[op->code].name, key_name(key), RANK_MOST);
	for (int d = 0; d < rank; d++) {
		bool dynamic = attr->integers[d] == INT64_MIN;
		if (dynamic && numbers->operand >= op->operands)
			return diag_error(e->module->diag, op->location,
			        "\"%s\" has too few operands for its %s", op_info[op->code].name,
			        key_name(key));
		out[d] = attr->integers[d];
		if (dynamic)
			out[d] = eval_integer(op->operand[numbers->operand++]);
	}
	return true;
}

/* The slice of `big` that a slice op names, as the `from` side of a box. */
static bool slice_box(struct evaluation *e, struct op *op, const struct type *big, int operand,
        struct copy_box *box)
{
	int64_t offset[RANK_MOST];
	int64_t stride[RANK_MOST];
	int64_t row[RANK_MOST];
	struct mixed_numbers numbers = { op, big->rank, operand };
	box->rank = big->rank;
	if (!read_mixed(e, &numbers, KEY_STATIC_OFFSETS, offset) ||
	        !read_mixed(e, &numbers, KEY_STATIC_SIZES, box->extent) ||
	        !read_mixed(e, &numbers, KEY_STATIC_STRIDES, stride))
		return false;
	row_major(row, big);
	box->from_first = 0;
	int64_t packed = 1;
	for (int d = big->rank - 1; d >= 0; d--) {
		if (offset[d] < 0 ||
		        (box->extent[d] > 0 &&
		                offset[d] + (box->extent[d] - 1) * stride[d] >= big->shape[d]))
			return diag_error(e->module->diag, op->location,
			        "a slice beyond dim %d of %s", d, big->text);
		box->from_first += offset[d] * row[d];
		box->from[d] = stride[d] * row[d];
		box->to[d] = packed;
		packed *= box->extent[d];
	}
	return true;
}

static bool eval_slice(struct evaluation *e, struct op *op)
{
	const struct tensor *source = eval_tensor_of(op->operand[0]);
	struct tensor *out = eval_result(e, op);
	struct copy_box box = { 0 };
	if (!slice_box(e, op, source->type, 1, &box))
		return false;
	copy_box(&box, source->data, out->data, element_bytes(out));
	return true;
}

static bool eval_insert(struct evaluation *e, struct op *op)
{
	const struct tensor *part = eval_tensor_of(op->operand[0]);
	const struct tensor *whole = eval_tensor_of(op->operand[1]);
	struct tensor *out = eval_result(e, op);
	struct copy_box box = { 0 };
	memcpy(out->data, whole->data, tensor_bytes(out->type));
	if (!slice_box(e, op, whole->type, 2, &box))
		return false;
	struct copy_box reversed = box;
	memcpy(reversed.from, box.to, sizeof box.to);
	memcpy(reversed.to, box.from, sizeof box.from);
	reversed.from_first = 0;
	reversed.to_first = box.from_first;
	copy_box(&reversed, part->data, out->data, element_bytes(out));
	return true;
}

static bool eval_same_data(struct evaluation *e, struct op *op)
{
	struct tensor *out = ARENA_NEW(e->arena, struct tensor);
	out->type = op->result[0]->type;
	out->data = eval_tensor_of(op->operand[0])->data;
	op->result[0]->data = out;
	return true;
}

static bool eval_concat(struct evaluation *e, struct op *op)
{
	struct tensor *out = eval_result(e, op);
	int64_t dim = attr_integer_or(op, KEY_DIM, 0);
	int64_t outer = 1;
	int64_t inner = (int64_t)element_bytes(out);
	int64_t at = 0;
	for (int d = 0; d < out->type->rank; d++) {
		outer *= d < dim ? out->type->shape[d] : 1;
		inner *= d > dim ? out->type->shape[d] : 1;
	}
	int64_t row = out->type->shape[dim] * inner;
	for (int i = 0; i < op->operands; i++) {
		const struct tensor *part = eval_tensor_of(op->operand[i]);
		int64_t bytes = part->type->shape[dim] * inner;
		for (int64_t o = 0; o < outer && bytes; o++)
			memcpy((char *)out->data + o * row + at, (char *)part->data + o * bytes,
			        (size_t)bytes);
		at += bytes;
	}
	return true;
}

static void fill_elements(struct tensor *out, const void *element)
{
	int bytes = element_bytes(out);
	for (int64_t i = 0; i < type_elements(out->type); i++)
		memcpy((char *)out->data + i * bytes, element, (size_t)bytes);
}

static bool eval_pad(struct evaluation *e, struct op *op)
{
	const struct tensor *source = eval_tensor_of(op->operand[0]);
	struct tensor *out = eval_result(e, op);
	int64_t low[RANK_MOST];
	struct copy_box box = { .rank = source->type->rank };
	struct mixed_numbers numbers = { op, source->type->rank, 1 };
	if (!read_mixed(e, &numbers, KEY_STATIC_LOW, low) || !eval_block(e, op->region[0]))
		return false;
	fill_elements(out, eval_tensor_of(op->region[0]->last->operand[0])->data);
	row_major(box.from, source->type);
	row_major(box.to, out->type);
	for (int d = 0; d < box.rank; d++) {
		int64_t cut = low[d] < 0 ? -low[d] : 0;
		int64_t at = low[d] < 0 ? 0 : low[d];
		int64_t left = source->type->shape[d] - cut;
		int64_t room = out->type->shape[d] - at;
		box.extent[d] = left < room ? left : room;
		box.from_first += cut * box.from[d];
		box.to_first += at * box.to[d];
	}
	copy_box(&box, source->data, out->data, element_bytes(out));
	return true;
}

static bool eval_extract(struct evaluation *e, struct op *op)
{
	const struct tensor *source = eval_tensor_of(op->operand[0]);
	struct tensor *out = eval_result(e, op);
	int64_t at = 0;
	for (int d = 0; d < source->type->rank; d++) {
		int64_t index = eval_integer(op->operand[1 + d]);
		int64_t extent = source->type->shape[d];
		if (index >= extent)
			index = extent - 1;
		if (index < 0)
			index = 0;
		at = at * extent + index;
	}
	memcpy(out->data, (char *)source->data + at * element_bytes(out),
	        (size_t)element_bytes(out));
	return true;
}

static bool eval_splat(struct evaluation *e, struct op *op)
{
	fill_elements(eval_result(e, op), eval_tensor_of(op->operand[0])->data);
	return true;
}

static bool eval_from_elements(struct evaluation *e, struct op *op)
{
	struct tensor *out = eval_result(e, op);
	for (int i = 0; i < op->operands; i++)
		memcpy((char *)out->data + i * element_bytes(out),
		        eval_tensor_of(op->operand[i])->data, (size_t)element_bytes(out));
	return true;
}

static bool eval_empty(struct evaluation *e, struct op *op)
{
	eval_result(e, op);
	return true;
}

static bool eval_dim(struct evaluation *e, struct op *op)
{
	const struct type *type = op->operand[0]->type;
	int64_t dim = eval_integer(op->operand[1]);
	if (dim < 0 || dim >= type->rank)
		return diag_error(e->module->diag, op->location, "dim %lld of %s", (long long)dim,
		        type->text);
	memcpy(eval_result(e, op)->data, &type->shape[dim], sizeof(int64_t));
	return true;
}

static bool eval_apply(struct evaluation *e, struct op *op)
{
	const struct attr *attr = attr_get(op, KEY_MAP);
	int64_t dims[RANK_MOST];
	if (!attr || attr->kind != ATTR_MAP || attr->map.dims != op->operands ||
	        op->operands > RANK_MOST)
		return diag_error(e->module->diag, op->location,
		        "an affine.apply without a map of its operands");
	for (int i = 0; i < op->operands; i++)
		dims[i] = eval_integer(op->operand[i]);
	int64_t number = affine_apply(attr->map, 0, dims);
	memcpy(eval_result(e, op)->data, &number, sizeof number);
	return true;
}

struct tensor *eval_constant_tensor(struct evaluation *e, const struct type *type,
        const struct attr *attr, struct location location)
{
	const struct type *scalar = type_scalar(type);
	struct tensor *out = eval_new(e, type);
	union scalar value;
	bool number = scalar_of_attr(scalar, attr, &value);
	bool dense = attr && attr->kind == ATTR_DENSE;
	if (!number && (!dense || (!attr->splat && attr->bytes != tensor_bytes(type)))) {
		diag_error(e->module->diag, location, "a constant without the numbers of %s",
		        type->text);
		return NULL;
	}
	if (number)
		scalar_write(scalar, &value, out->data, 0, 0, 1);
	else if (attr->splat)
		fill_elements(out, attr->data);
	else if (attr->bytes)
		memcpy(out->data, attr->data, attr->bytes);
	return out;
}

static bool eval_constant(struct evaluation *e, struct op *op)
{
	op->result[0]->data =
	        eval_constant_tensor(e, op->result[0]->type, attr_get(op, KEY_VALUE), op->location);
	return op->result[0]->data;
}

/* All elements of a tensor in order. */
static struct nest_port whole(struct evaluation *e, const struct tensor *tensor)
{
	struct nest_port port = { .type = type_scalar(tensor->type),
		.data = tensor->data,
		.elements = type_elements(tensor->type),
		.access = { .index_operand = -1 } };
	port.access.stride = ARENA_ARRAY(e->arena, int64_t, 1);
	port.access.stride[0] = port.elements > 1;
	return port;
}

/* A scalar operation, on scalars or element by element on tensors. */
static bool eval_elements(struct evaluation *e, struct op *op)
{
	struct tensor *out = eval_result(e, op);
	struct nest_port result = whole(e, out);
	struct nest nest = { .loops = 1,
		.operands = op->operands,
		.results = 1,
		.extent = &result.elements,
		.result = &result };
	struct step step = { .kind = STEP_OP, .type = result.type, .arguments = op->operands };
	nest.operand = ARENA_ARRAY(e->arena, struct nest_port, op->operands + 1);
	step.argument = ARENA_ARRAY(e->arena, int, op->operands + 1);
	if (!op->operands || op->operands > 3 ||
	        !scalar_op_make(&step.op, op->code, scalar_predicate(op), result.type,
	                type_scalar(op->operand[0]->type)))
		return diag_error(e->module->diag, op->location, "\"%s\" has no value on %s",
		        op_info[op->code].name, op->result[0]->type->text);
	for (int i = 0; i < op->operands; i++) {
		nest.operand[i] = whole(e, eval_tensor_of(op->operand[i]));
		step.argument[i] = program_add(e->arena, &nest.program,
		        (struct step){
		                .kind = STEP_OPERAND, .type = nest.operand[i].type, .number = i });
	}
	nest.yield = (int[]){ program_add(e->arena, &nest.program, step) };
	return nest_run(e->module, e->arena, op, &nest);
}

static bool eval_layer_select(struct evaluation *e, struct op *op)
{
	int64_t layer = eval_integer(op->operand[0]);
	if (layer < 0 || layer >= op->operands - 1)
		return diag_error(e->module->diag, op->location, "layer %lld of %d",
		        (long long)layer, op->operands - 1);
	op->result[0]->data = op->operand[1 + layer]->data;
	return true;
}

static bool eval_layer_row(struct evaluation *e, struct op *op)
{
	int64_t layer = eval_integer(op->operand[0]);
	const struct tensor *stack = eval_tensor_of(op->operand[1]);
	struct tensor *out = eval_result(e, op);
	size_t bytes = tensor_bytes(out->type);
	if (layer < 0 || ((size_t)layer + 1) * bytes > tensor_bytes(stack->type))
		return diag_error(e->module->diag, op->location, "row %lld of %s", (long long)layer,
		        stack->type->text);
	memcpy(out->data, (char *)stack->data + (size_t)layer * bytes, bytes);
	return true;
}

static bool eval_insert_layer(struct evaluation *e, struct op *op)
{
	const struct tensor *row = eval_tensor_of(op->operand[0]);
	const struct tensor *stack = eval_tensor_of(op->operand[1]);
	int64_t layer = eval_integer(op->operand[2]);
	struct tensor *out = eval_result(e, op);
	size_t bytes = tensor_bytes(row->type);
	if (layer < 0 || ((size_t)layer + 1) * bytes > tensor_bytes(out->type))
		return diag_error(e->module->diag, op->location, "layer %lld of %s",
		        (long long)layer, out->type->text);
	memcpy(out->data, stack->data, tensor_bytes(out->type));
	memcpy((char *)out->data + (size_t)layer * bytes, row->data, bytes);
	return true;
}

static bool eval_layer_extract(struct evaluation *e, struct op *op)
{
	const struct tensor *stack = eval_tensor_of(op->operand[0]);
	struct tensor *out = eval_result(e, op);
	size_t index = (size_t)attr_integer_or(op, KEY_INDEX, 0);
	size_t bytes = tensor_bytes(out->type);
	if ((index + 1) * bytes > tensor_bytes(stack->type))
		return diag_error(
		        e->module->diag, op->location, "part %zu of %s", index, stack->type->text);
	memcpy(out->data, (char *)stack->data + index * bytes, bytes);
	return true;
}

/* Tokens that the launch does not have become 0, whatever their rows held. */
static bool eval_pad_tokens(struct evaluation *e, struct op *op)
{
	const struct tensor *from = eval_tensor_of(op->operand[0]);
	struct tensor *to = eval_result(e, op);
	int64_t axis = attr_integer_or(op, KEY_AXIS, 0);
	int64_t outer = 1;
	struct launch_tokens rows = launch_tokens_of(
	        e->arena, attr_text_or(op, KEY_TOKEN_COUNT, NULL), from->type->shape[axis]);
	for (int d = 0; d < axis; d++)
		outer *= from->type->shape[d];
	size_t bytes = tensor_bytes(from->type) / (size_t)(outer * rows.most);
	for (int64_t r = 0; r < outer * rows.most; r++)
		if (eval_row_is_valid(e, &rows, r % rows.most))
			memcpy((char *)to->data + (size_t)r * bytes,
			        (char *)from->data + (size_t)r * bytes, bytes);
	return true;
}

/* clang-format off */
#define SCALARS(X) \
	X(ADDF) X(SUBF) X(MULF) X(DIVF) X(NEGF) X(MAXIMUMF) X(MINIMUMF) X(MAXNUMF) \
	X(MINNUMF) X(CMPF) X(ADDI) X(SUBI) X(MULI) X(DIVSI) X(REMSI) X(FLOORDIVSI) X(ANDI) \
	X(ORI) X(XORI) X(MAXSI) X(MINSI) X(CMPI) X(SELECT) X(EXTF) X(TRUNCF) X(SITOFP) \
	X(UITOFP) X(FPTOSI) X(EXTSI) X(EXTUI) X(TRUNCI) X(INDEX_CAST) X(BITCAST) X(ABSF) \
	X(EXP) X(LOG) X(SQRT) X(RSQRT) X(TANH) X(ERF) X(SIN) X(COS) X(POWF) X(FPOWI) \
	X(FLOOR) X(CEIL) X(ROUNDEVEN) X(REMF) X(DIVUI) X(REMUI) X(MAXUI) X(MINUI) X(SHLI) \
	X(SHRSI) X(SHRUI) X(FPTOUI) X(ABSI) X(LOG1P) X(LOG2) X(LOG10) X(EXPM1) X(TAN) \
	X(SINH) X(COSH) X(ASIN) X(ACOS) X(ATAN) X(ASINH) X(ACOSH) X(ATANH) X(ATAN2)
/* clang-format on */

eval_function *const eval_tensor_functions[OP_COUNT] = {
#define X(code) [OP_##code] = eval_elements,
	SCALARS(X)
#undef X
	        [OP_CONSTANT] = eval_constant,
	[OP_GENERIC] = eval_generic,
	[OP_KERNEL] = eval_tensor_kernel,
	[OP_SEQUENTIAL] = eval_sequential,
	[OP_CONTRACT] = eval_contract,
	[OP_PAD_TOKENS] = eval_pad_tokens,
	[OP_TENSOR_EMPTY] = eval_empty,
	[OP_TENSOR_EXPAND] = eval_same_data,
	[OP_TENSOR_COLLAPSE] = eval_same_data,
	[OP_TENSOR_CAST] = eval_same_data,
	[OP_TENSOR_SLICE] = eval_slice,
	[OP_TENSOR_INSERT] = eval_insert,
	[OP_TENSOR_CONCAT] = eval_concat,
	[OP_TENSOR_PAD] = eval_pad,
	[OP_TENSOR_EXTRACT] = eval_extract,
	[OP_TENSOR_SPLAT] = eval_splat,
	[OP_TENSOR_DIM] = eval_dim,
	[OP_TENSOR_FROM] = eval_from_elements,
	[OP_APPLY] = eval_apply,
	[OP_LAYER_SELECT] = eval_layer_select,
	[OP_LAYER_ROW] = eval_layer_row,
	[OP_INSERT_LAYER] = eval_insert_layer,
	[OP_LAYER_EXTRACT] = eval_layer_extract,
};
