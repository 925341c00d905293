/* Statements of HLS C++. */
#include "frontend/cpp_internal.h"

int cpp_new_body(struct cpp_reader *reader)
{
	struct cpp_body body = { .depth = reader->depth };
	VEC_PUSH(reader->c.arena, &reader->design->bodies, body);
	return (int)reader->design->bodies.count - 1;
}

void cpp_add_item(struct cpp_reader *reader, int body, enum cpp_item_kind kind, int index)
{
	struct cpp_item item = { kind, index };
	VEC_PUSH(reader->c.arena, &reader->design->bodies.data[body].items, item);
}

static bool declare_place(
        struct cpp_reader *reader, CXCursor declaration, struct cpp_variable *variable)
{
	const char *name = c_name(reader->c.arena, declaration);
	int array = cpp_declare_array(reader, declaration, name);
	if (array == CPP_NONE)
		return false;
	variable->value = (struct cpp_value){ .kind = CPP_PLACE, .array = array };
	cpp_array_pragmas(reader, array, name, 0);
	return true;
}

bool cpp_declare(struct cpp_reader *reader, CXCursor declaration)
{
	struct cpp_variable *variable = ARENA_NEW(reader->c.arena, struct cpp_variable);
	CXType declared = clang_getCanonicalType(clang_getCursorType(declaration));
	CXType type = cpp_plain(declared);
	bool refers = declared.kind == CXType_LValueReference || declared.kind == CXType_Pointer;
	bool array = type.kind == CXType_ConstantArray || type.kind == CXType_VariableArray ||
	        type.kind == CXType_IncompleteArray || cpp_is_stream(reader, type);
	CXCursor initial = clang_Cursor_getVarDeclInitializer(declaration);
	map_set(&reader->variables, c_key(reader->c.arena, declaration), variable);
	if (refers && !clang_Cursor_isNull(initial)) {
		variable->value = cpp_place(reader, initial);
		return variable->value.kind != CPP_REFUSED;
	}
	if (array)
		return declare_place(reader, declaration, variable);
	variable->value = cpp_blank(reader, type, CPP_NONE);
	if (clang_Cursor_isNull(initial) || clang_getCursorKind(initial) == CXCursor_InitListExpr)
		return true;
	struct cpp_value value = cpp_evaluate(reader, initial);
	if (value.kind == CPP_REFUSED)
		return false;
	bool real = variable->value.real;
	if (variable->value.kind == CPP_LANES && value.kind == CPP_SCALAR) {
		for (int i = 0; i < variable->value.lanes; i++)
			variable->value.lane[i] = value;
		return true;
	}
	int bits = variable->value.bits;
	variable->value = value;
	if (value.kind == CPP_SCALAR) {
		variable->value.real = real;
		variable->value.bits = bits;
	}
	return true;
}

static bool declarations(struct cpp_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	for (size_t i = 0; i < parts.list.count; i++)
		if (clang_getCursorKind(parts.list.data[i]) == CXCursor_VarDecl &&
		        !cpp_declare(reader, parts.list.data[i]))
			return false;
	return true;
}

static bool block(struct cpp_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	for (size_t i = 0; i < parts.list.count; i++)
		if (!cpp_statement(reader, parts.list.data[i]))
			return false;
	return true;
}

/* Both branches; what they assign is selected. */
static bool branches(struct cpp_reader *reader, CXCursor cursor, const struct cpp_value *condition,
        const struct c_cursors *parts)
{
	struct cpp_changed changed = cpp_changed_in(reader, cursor);
	size_t count = changed.list.count;
	struct cpp_value *before = ARENA_ARRAY(reader->c.arena, struct cpp_value, count + 1);
	struct cpp_value *yes = ARENA_ARRAY(reader->c.arena, struct cpp_value, count + 1);
	for (size_t i = 0; i < count; i++)
		before[i] = changed.list.data[i]->value;
	reader->conditions++;
	bool good = cpp_statement(reader, parts->list.data[1]);
	for (size_t i = 0; i < count; i++) {
		yes[i] = changed.list.data[i]->value;
		changed.list.data[i]->value = before[i];
	}
	if (good && parts->list.count > 2)
		good = cpp_statement(reader, parts->list.data[2]);
	reader->conditions--;
	for (size_t i = 0; good && i < count; i++)
		changed.list.data[i]->value =
		        cpp_select(reader, cursor, *condition, yes[i], changed.list.data[i]->value);
	return good;
}

static bool if_statement(struct cpp_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	if (parts.list.count < 2)
		return c_refuse(&reader->c, cursor, "it is not understood",
		        "accepted is if (CONDITION) STATEMENT else STATEMENT");
	struct cpp_value condition = cpp_evaluate(reader, parts.list.data[0]);
	if (condition.kind == CPP_REFUSED)
		return false;
	if (!cpp_is_constant(&condition.form))
		return branches(reader, cursor, &condition, &parts);
	size_t taken = condition.form.constant ? 1 : 2;
	return taken >= parts.list.count || cpp_statement(reader, parts.list.data[taken]);
}

static bool return_statement(struct cpp_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	if (!parts.list.count)
		return true;
	*reader->result = cpp_evaluate(reader, parts.list.data[0]);
	return reader->result->kind != CPP_REFUSED;
}

static bool refuse_statement(struct cpp_reader *reader, CXCursor cursor)
{
	return c_refuse(&reader->c, cursor, "this statement is not modelled",
	        "accepted are declarations, assignments, calls, if, return, and for with a "
	        "counter, a bound and a constant step");
}

/* A label names the loop behind it. */
static bool labelled(struct cpp_reader *reader, CXCursor cursor)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	CXCursor inner =
	        parts.list.count ? parts.list.data[parts.list.count - 1] : clang_getNullCursor();
	if (clang_getCursorKind(inner) == CXCursor_ForStmt)
		return cpp_for(reader, inner, c_name(reader->c.arena, cursor));
	return clang_Cursor_isNull(inner) || cpp_statement(reader, inner);
}

static bool expression_statement(struct cpp_reader *reader, CXCursor cursor)
{
	return cpp_evaluate(reader, cursor).kind != CPP_REFUSED;
}

bool cpp_statement(struct cpp_reader *reader, CXCursor cursor)
{
	if (reader->design->operations.count >= CPP_OPERATIONS_MOST)
		return c_refuse(&reader->c, cursor, "the unrolled design has too many operations",
		        "accepted are up to 400000");
	bool good;
	if (!c_enter(&reader->c, cursor))
		return false;
	switch (clang_getCursorKind(cursor)) {
	case CXCursor_CompoundStmt: good = block(reader, cursor); break;
	case CXCursor_DeclStmt: good = declarations(reader, cursor); break;
	case CXCursor_ForStmt: good = cpp_for(reader, cursor, NULL); break;
	case CXCursor_IfStmt: good = if_statement(reader, cursor); break;
	case CXCursor_ReturnStmt: good = return_statement(reader, cursor); break;
	case CXCursor_LabelStmt: good = labelled(reader, cursor); break;
	case CXCursor_NullStmt: good = true; break;
	case CXCursor_WhileStmt:
	case CXCursor_DoStmt:
	case CXCursor_GotoStmt:
	case CXCursor_SwitchStmt:
	case CXCursor_BreakStmt:
	case CXCursor_ContinueStmt: good = refuse_statement(reader, cursor); break;
	default: good = expression_statement(reader, cursor);
	}
	c_leave(&reader->c);
	return good;
}
