/* Expressions of C as nodes of a statement's body. clang has made every conversion a node of its
 * own, so both sides of an operator have one type, except for compound assignments. */
#include "frontend/c_reader.h"
#include "ir/kernel_edit.h"
#include <string.h>

#define ACCEPTED                                                                                   \
	"accepted are + - * / % << >> & | ^ ~, comparisons, && || !, ?:, casts, calls of math.h, " \
	"constants, counters, scalars and elements of arrays"

static const struct c_value refused = { .node = -1 };

static struct c_value refuse_expression(struct c_reader *reader, CXCursor cursor, const char *why)
{
	c_refuse(reader, cursor, why, ACCEPTED);
	return refused;
}

static struct body *body_of(struct c_reader *reader)
{
	return &reader->statement->body;
}

static struct c_value constant(struct c_reader *reader, CXCursor cursor)
{
	struct c_type type = c_type_of(reader, clang_getCursorType(cursor));
	struct node node = { .kind = NODE_CONSTANT, .type = type.type };
	bool known = type.type &&
	        (type_is_real(type.type) ? c_real(cursor, &node.real)
	                                 : c_integer(cursor, &node.integer));
	if (!known)
		return refuse_expression(
		        reader, cursor, "this expression has no counterpart in a design");
	return (struct c_value){ body_add(reader->module, body_of(reader), node), type };
}

/* Counters as data. */
static struct c_value form_value(
        struct c_reader *reader, const struct poly_form *form, struct c_type type)
{
	struct module *module = reader->module;
	bool number = true;
	for (int d = 0; d < reader->loops; d++)
		number = number && !form->coefficient[d];
	struct node node = { .kind = NODE_CONSTANT, .type = type.type, .integer = form->constant };
	if (number)
		return (struct c_value){ body_add(module, body_of(reader), node), type };
	int index = body_affine(
	        module, body_of(reader), reader->loops, form->coefficient, form->constant);
	index = body_op(module, body_of(reader), OP_INDEX_CAST, type.type, index, 0, 0);
	return (struct c_value){ index, type };
}

/* --- elements of arrays --- */

static bool is_pointer(CXType type)
{
	return clang_getCanonicalType(type).kind == CXType_Pointer;
}

/* The pointer of *p; false: the expression is another. */
static bool dereferenced(struct c_reader *reader, CXCursor cursor, CXCursor *pointer)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	bool star = clang_getCursorKind(cursor) == CXCursor_UnaryOperator &&
	        clang_getCursorUnaryOperatorKind(cursor) == CXUnaryOperator_Deref;
	if (star && parts.list.count == 1)
		*pointer = c_strip(reader->arena, parts.list.data[0]);
	return star && parts.list.count == 1;
}

/* The variable below all subscripts; the subscripts, innermost first. */
static CXCursor base_of(struct c_reader *reader, CXCursor cursor, struct c_cursors *subscripts)
{
	cursor = c_strip(reader->arena, cursor);
	while (clang_getCursorKind(cursor) == CXCursor_ArraySubscriptExpr) {
		struct c_cursors parts = c_children(reader->arena, cursor);
		if (parts.list.count != 2)
			break;
		VEC_PUSH(reader->arena, &subscripts->list, parts.list.data[1]);
		cursor = c_strip(reader->arena, parts.list.data[0]);
	}
	return cursor;
}

static bool refuse_variable(struct c_reader *reader, CXCursor cursor, CXCursor base)
{
	bool named = clang_getCursorKind(base) == CXCursor_DeclRefExpr;
	if (named && is_pointer(clang_getCursorType(clang_getCursorReferenced(base))))
		return c_refuse(reader, cursor, "this is reached through a pointer",
		        "accepted are elements of arrays whose extents are known, as float "
		        "A[64][32]");
	return c_refuse(reader, cursor, "this is no element of an array or scalar",
	        "accepted are arguments and local variables, as x or A[i][j + 1]");
}

/* A subscript that is no affine form, as idx[i] or i / 2: its number among those that the current
 * statement computes; 0 after a diagnostic. */
static int computed_subscript(struct c_reader *reader, CXCursor cursor)
{
	struct region_statement *statement = reader->statement;
	struct c_type wide = { type_integer(reader->module, 64), false };
	struct c_value value = c_expression(reader, cursor);
	if (value.node < 0)
		return 0;
	value = c_convert(reader, value, wide);
	size_t size = sizeof *statement->index;
	struct body *index = ARENA_ARRAY(reader->arena, struct body, statement->indices + 1);
	if (statement->indices)
		memcpy(index, statement->index, size * (size_t)statement->indices);
	struct body *own = &index[statement->indices];
	own->count = statement->body.count;
	own->node = arena_copy(
	        reader->arena, statement->body.node, sizeof *own->node * (size_t)own->count);
	own->result = body_op(
	        reader->module, own, OP_INDEX_CAST, type_index(reader->module), value.node, 0, 0);
	body_remove_dead(reader->module, own);
	statement->index = index;
	return ++statement->indices;
}

/* computed: [POLY_DIMS] where subscripts need not be affine; NULL: they must be. */
static bool part_of(struct c_reader *reader, CXCursor cursor, struct c_symbol *part, int *computed)
{
	struct c_cursors subscripts = { .arena = reader->arena };
	CXCursor base = base_of(reader, cursor, &subscripts);
	bool star = dereferenced(reader, base, &base);
	const struct c_symbol *symbol =
	        clang_getCursorKind(base) == CXCursor_DeclRefExpr ? c_symbol(reader, base) : NULL;
	if (symbol && symbol->kind == C_SYMBOL_REFUSED)
		return false;
	if (!symbol || symbol->kind != C_SYMBOL_ARRAY)
		return refuse_variable(reader, cursor, base);
	int own = (int)subscripts.list.count;
	if (star && !symbol->element)
		return refuse_variable(reader, cursor, base);
	*part = *symbol;
	part->element = symbol->element && !star;
	part->given = symbol->given + own;
	struct poly_form *form = ARENA_ARRAY(reader->arena, struct poly_form, part->given + 1);
	part->subscript = form;
	for (int d = 0; d < symbol->given; d++)
		form[d] = symbol->subscript[d];
	for (int d = 0; d < own; d++) {
		CXCursor subscript = subscripts.list.data[own - 1 - d];
		int dim = symbol->given + d;
		if (c_affine(reader, subscript, &form[dim]))
			continue;
		form[dim] = (struct poly_form){ 0 };
		if (!computed || c_unknown_size(reader, subscript) || dim >= POLY_DIMS)
			return c_refuse_affine(reader, subscript,
			        "this subscript is not affine in the counters of the loops",
			        "accepted are sums of counters times constants, as 2 * i + j - 1");
		computed[dim] = computed_subscript(reader, subscript);
		if (!computed[dim])
			return false;
	}
	return true;
}

bool c_part(struct c_reader *reader, CXCursor cursor, struct c_symbol *part)
{
	return part_of(reader, cursor, part, NULL);
}

bool c_element(struct c_reader *reader, CXCursor cursor, struct poly_access *access)
{
	struct c_symbol part;
	int computed[POLY_DIMS] = { 0 };
	if (!part_of(reader, cursor, &part, computed))
		return false;
	const struct region_array *array = &reader->region->arrays.data[part.array];
	*access = (struct poly_access){ .array = part.array, .when = reader->when };
	memcpy(access->computed, computed, sizeof computed);
	if (part.element)
		return c_refuse(reader, cursor, "this is a pointer, not an element",
		        "accepted is what it points to, as *p");
	if (part.given != array->rank)
		return c_refuse(reader, cursor, "this is a whole array, not an element",
		        "accepted are as many subscripts as the array has dimensions");
	for (int d = 0; d < array->rank; d++)
		access->subscript[d] = part.subscript[d];
	return true;
}

static bool same_access(const struct poly_access *left, const struct poly_access *right, int rank)
{
	if (left->array != right->array || left->when != right->when ||
	        memcmp(left->computed, right->computed, sizeof left->computed))
		return false;
	for (int r = 0; r < rank; r++) {
		const struct poly_form *a = &left->subscript[r];
		const struct poly_form *b = &right->subscript[r];
		for (int d = 0; d < POLY_DIMS; d++)
			if (a->coefficient[d] != b->coefficient[d])
				return false;
		if (a->constant != b->constant)
			return false;
	}
	return true;
}

/* The number of the statement's read of this element, which is added where it is new. */
static int read_number(
        struct c_reader *reader, CXCursor cursor, const struct poly_access *access, int rank)
{
	struct region_statement *statement = reader->statement;
	struct poly_statement *affine = &statement->affine;
	for (int r = 0; r < affine->reads; r++)
		if (same_access(&affine->read[r], access, rank))
			return r;
	size_t count = (size_t)affine->reads;
	struct poly_access *reads = ARENA_ARRAY(reader->arena, struct poly_access, count + 1);
	struct location *places = ARENA_ARRAY(reader->arena, struct location, count + 1);
	for (size_t r = 0; r < count; r++) {
		reads[r] = affine->read[r];
		places[r] = statement->read_location[r];
	}
	reads[count] = *access;
	places[count] = c_place(reader, cursor);
	affine->read = reads;
	statement->read_location = places;
	return affine->reads++;
}

void c_note_read(struct c_reader *reader, CXCursor cursor, const struct poly_access *access)
{
	read_number(reader, cursor, access, reader->region->arrays.data[access->array].rank);
}

struct c_value c_read_element(
        struct c_reader *reader, CXCursor cursor, const struct poly_access *access)
{
	const struct region_array *array = &reader->region->arrays.data[access->array];
	int number = read_number(reader, cursor, access, array->rank);
	bool is_unsigned = c_type_of(reader, clang_getCursorType(cursor)).is_unsigned;
	return (struct c_value){ body_operand(reader->module, body_of(reader), array->type, number),
		{ array->type, is_unsigned } };
}

static struct c_value element(struct c_reader *reader, CXCursor cursor)
{
	struct poly_access access;
	return c_element(reader, cursor, &access) ? c_read_element(reader, cursor, &access)
	                                          : refused;
}

static struct c_value reference(struct c_reader *reader, CXCursor cursor)
{
	CXCursor declaration = clang_getCursorReferenced(cursor);
	if (clang_getCursorKind(declaration) == CXCursor_EnumConstantDecl)
		return constant(reader, cursor);
	const struct c_symbol *symbol = c_symbol(reader, cursor);
	if (symbol && symbol->kind == C_SYMBOL_FORM)
		return form_value(
		        reader, &symbol->form, c_type_of(reader, clang_getCursorType(cursor)));
	if (symbol && symbol->kind == C_SYMBOL_VALUE)
		return symbol->value;
	return element(reader, cursor);
}

/* --- operators --- */

static struct c_value unary(struct c_reader *reader, CXCursor cursor)
{
	struct module *module = reader->module;
	struct c_cursors parts = c_children(reader->arena, cursor);
	struct c_type type = c_type_of(reader, clang_getCursorType(cursor));
	enum CXUnaryOperatorKind which = clang_getCursorUnaryOperatorKind(cursor);
	if (which == CXUnaryOperator_Deref)
		return element(reader, cursor);
	bool known = which == CXUnaryOperator_Plus || which == CXUnaryOperator_Minus ||
	        which == CXUnaryOperator_Not || which == CXUnaryOperator_LNot;
	if (!known || parts.list.count != 1 || !type.type)
		return refuse_expression(
		        reader, cursor, "this operator has no counterpart in a design");
	struct c_value value = c_expression(reader, parts.list.data[0]);
	if (value.node < 0 || which == CXUnaryOperator_Plus)
		return value;
	struct body *body = body_of(reader);
	if (which == CXUnaryOperator_LNot) {
		int bit = c_as_condition(reader, value);
		int one = body_integer(module, body, body->node[bit].type, 1);
		bit = body_op(module, body, OP_XORI, body->node[bit].type, bit, one, 0);
		return c_from_condition(reader, bit, type);
	}
	if (type_is_real(type.type))
		return (struct c_value){
			body_op(module, body, OP_NEGF, type.type, value.node, 0, 0), type
		};
	bool minus = which == CXUnaryOperator_Minus;
	int other = body_integer(module, body, type.type, minus ? 0 : -1);
	int node =
	        body_op(module, body, minus ? OP_SUBI : OP_XORI, type.type, other, value.node, 0);
	return (struct c_value){ node, type };
}

struct operation {
	enum op_code real, is_signed, is_unsigned;
};

static const struct operation operations[] = {
	[CXBinaryOperator_Mul] = { OP_MULF, OP_MULI, OP_MULI },
	[CXBinaryOperator_Div] = { OP_DIVF, OP_DIVSI, OP_DIVUI },
	[CXBinaryOperator_Rem] = { OP_NONE, OP_REMSI, OP_REMUI },
	[CXBinaryOperator_Add] = { OP_ADDF, OP_ADDI, OP_ADDI },
	[CXBinaryOperator_Sub] = { OP_SUBF, OP_SUBI, OP_SUBI },
	[CXBinaryOperator_Shl] = { OP_NONE, OP_SHLI, OP_SHLI },
	[CXBinaryOperator_Shr] = { OP_NONE, OP_SHRSI, OP_SHRUI },
	[CXBinaryOperator_And] = { OP_NONE, OP_ANDI, OP_ANDI },
	[CXBinaryOperator_Xor] = { OP_NONE, OP_XORI, OP_XORI },
	[CXBinaryOperator_Or] = { OP_NONE, OP_ORI, OP_ORI },
};

struct comparison {
	int real, is_signed, is_unsigned;
};

static const struct comparison comparisons[] = {
	[CXBinaryOperator_LT] = { CMPF_OLT, CMPI_SLT, CMPI_ULT },
	[CXBinaryOperator_GT] = { CMPF_OGT, CMPI_SGT, CMPI_UGT },
	[CXBinaryOperator_LE] = { CMPF_OLE, CMPI_SLE, CMPI_ULE },
	[CXBinaryOperator_GE] = { CMPF_OGE, CMPI_SGE, CMPI_UGE },
	[CXBinaryOperator_EQ] = { CMPF_OEQ, CMPI_EQ, CMPI_EQ },
	[CXBinaryOperator_NE] = { CMPF_UNE, CMPI_NE, CMPI_NE },
};

struct c_value c_binary(struct c_reader *reader, CXCursor cursor, enum CXBinaryOperatorKind which,
        struct c_value left, struct c_value right)
{
	int row = (int)which;
	int rows = (int)(sizeof operations / sizeof *operations);
	struct operation operation =
	        row >= 0 && row < rows ? operations[row] : (struct operation){ 0 };
	enum op_code code = left.type.is_unsigned ? operation.is_unsigned : operation.is_signed;
	if (type_is_real(left.type.type))
		code = operation.real;
	if (code == OP_NONE)
		return refuse_expression(
		        reader, cursor, "this operator has no counterpart in a design");
	int node = body_op(
	        reader->module, body_of(reader), code, left.type.type, left.node, right.node, 0);
	return (struct c_value){ node, left.type };
}

static struct c_value compare(
        struct c_reader *reader, CXCursor cursor, struct c_value left, struct c_value right)
{
	enum CXBinaryOperatorKind which = clang_getCursorBinaryOperatorKind(cursor);
	struct comparison row = comparisons[which];
	bool real = type_is_real(left.type.type);
	struct node node = { .kind = NODE_OP,
		.code = real ? OP_CMPF : OP_CMPI,
		.type = type_integer(reader->module, 1),
		.argument = { left.node, right.node },
		.integer = left.type.is_unsigned ? row.is_unsigned : row.is_signed };
	if (real)
		node.integer = row.real;
	int bit = body_add(reader->module, body_of(reader), node);
	return c_from_condition(reader, bit, c_type_of(reader, clang_getCursorType(cursor)));
}

/* An expression that is evaluated only under an affine condition, or its opposite; NULL: always. */
static struct c_value expression_when(
        struct c_reader *reader, CXCursor cursor, const struct poly_condition *condition)
{
	const struct poly_condition *saved = reader->when;
	reader->when = c_and(reader->arena, saved, condition);
	struct c_value value = c_expression(reader, cursor);
	reader->when = saved;
	return value;
}

static struct c_value logical(struct c_reader *reader, CXCursor cursor, bool all)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	const struct poly_condition *when = c_affine_condition(reader, parts.list.data[0]);
	struct c_value left = c_expression(reader, parts.list.data[0]);
	if (left.node < 0)
		return refused;
	if (when && !all)
		when = c_not(reader->arena, when);
	struct c_value right = expression_when(reader, parts.list.data[1], when);
	if (right.node < 0)
		return refused;
	int first = c_as_condition(reader, left);
	int second = c_as_condition(reader, right);
	int bit = body_op(reader->module, body_of(reader), all ? OP_ANDI : OP_ORI,
	        type_integer(reader->module, 1), first, second, 0);
	return c_from_condition(reader, bit, c_type_of(reader, clang_getCursorType(cursor)));
}

static bool is_comparison(enum CXBinaryOperatorKind which)
{
	return which >= CXBinaryOperator_LT && which <= CXBinaryOperator_NE;
}

static struct c_value binary(struct c_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	enum CXBinaryOperatorKind which = clang_getCursorBinaryOperatorKind(cursor);
	if (parts.list.count != 2)
		return refuse_expression(
		        reader, cursor, "this expression has no counterpart in a design");
	if (which == CXBinaryOperator_LAnd || which == CXBinaryOperator_LOr)
		return logical(reader, cursor, which == CXBinaryOperator_LAnd);
	if (which == CXBinaryOperator_Assign)
		return refuse_expression(reader, cursor, "this assigns inside an expression");
	struct c_value left = c_expression(reader, parts.list.data[0]);
	if (left.node < 0)
		return refused;
	struct c_value right = c_expression(reader, parts.list.data[1]);
	if (right.node < 0)
		return refused;
	if (which == CXBinaryOperator_Shl || which == CXBinaryOperator_Shr)
		right = c_convert(reader, right, left.type);
	if (is_comparison(which))
		return compare(reader, cursor, left, right);
	return c_binary(reader, cursor, which, left, right);
}

static struct c_value conditional(struct c_reader *reader, CXCursor cursor)
{
	struct arena *arena = reader->arena;
	struct c_cursors parts = c_children(arena, cursor);
	if (parts.list.count != 3)
		return refuse_expression(
		        reader, cursor, "this expression has no counterpart in a design");
	const struct poly_condition *when = c_affine_condition(reader, parts.list.data[0]);
	struct c_value condition = c_expression(reader, parts.list.data[0]);
	if (condition.node < 0)
		return refused;
	struct c_value yes = expression_when(reader, parts.list.data[1], when);
	if (yes.node < 0)
		return refused;
	struct c_value no =
	        expression_when(reader, parts.list.data[2], when ? c_not(arena, when) : NULL);
	if (no.node < 0)
		return refused;
	int bit = c_as_condition(reader, condition);
	int node = body_op(
	        reader->module, body_of(reader), OP_SELECT, yes.type.type, bit, yes.node, no.node);
	return (struct c_value){ node, yes.type };
}

/* Conversions, parentheses and the like: the last child's value in the expression's type. */
static struct c_value wrapper(struct c_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->arena, cursor);
	struct c_type type = c_type_of(reader, clang_getCursorType(cursor));
	if (!parts.list.count)
		return constant(reader, cursor);
	if (!type.type)
		return refuse_expression(
		        reader, cursor, "this type has no counterpart in a design");
	struct c_value value = c_expression(reader, parts.list.data[parts.list.count - 1]);
	return value.node < 0 ? refused : c_convert(reader, value, type);
}

static struct c_value expression(struct c_reader *reader, CXCursor cursor)
{
	switch (clang_getCursorKind(cursor)) {
	case CXCursor_DeclRefExpr: return reference(reader, cursor);
	case CXCursor_ArraySubscriptExpr: return element(reader, cursor);
	case CXCursor_UnaryOperator: return unary(reader, cursor);
	case CXCursor_BinaryOperator: return binary(reader, cursor);
	case CXCursor_ConditionalOperator: return conditional(reader, cursor);
	case CXCursor_CallExpr: return c_call(reader, cursor);
	case CXCursor_UnexposedExpr:
	case CXCursor_ParenExpr:
	case CXCursor_CStyleCastExpr: return wrapper(reader, cursor);
	case CXCursor_MemberRefExpr:
		return refuse_expression(reader, cursor, "this is a member of a struct or union");
	case CXCursor_CompoundAssignOperator:
		return refuse_expression(reader, cursor, "this assigns inside an expression");
	default: return constant(reader, cursor);
	}
}

struct c_value c_expression(struct c_reader *reader, CXCursor cursor)
{
	struct c_value value = c_enter(reader, cursor) ? expression(reader, cursor) : refused;
	c_leave(reader);
	return value;
}
