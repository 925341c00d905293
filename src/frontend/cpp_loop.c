/* Loops of HLS C++: which pragmas and pipelines unroll, and which stay with a counter. */
#include "frontend/cpp_internal.h"

enum { COPIES_MOST = 65536 };

struct for_loop {
	CXCursor cursor, body;
	CXCursor counter; /* its declaration */
	struct cpp_variable *variable;
	struct cpp_form first;
	int64_t step, trips;
	bool varies, given;
};

/* --- variables that a statement assigns --- */

static void note_changed(struct cpp_changed *changed, CXCursor target)
{
	struct cpp_reader *reader = changed->reader;
	target = cpp_strip(reader, target);
	while (clang_getCursorKind(target) == CXCursor_CallExpr &&
	        text_same(c_name(reader->c.arena, target), "operator[]"))
		target = cpp_strip(reader, clang_Cursor_getArgument(target, 0));
	struct cpp_variable *variable = cpp_variable(reader, target);
	if (!variable || variable->value.kind == CPP_PLACE)
		return;
	for (size_t i = 0; i < changed->list.count; i++)
		if (changed->list.data[i] == variable)
			return;
	VEC_PUSH(reader->c.arena, &changed->list, variable);
}

static enum CXChildVisitResult find_changed(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct cpp_changed *changed = data;
	(void)parent;
	enum CXCursorKind kind = clang_getCursorKind(cursor);
	struct c_cursors parts = { 0 };
	bool assigns = kind == CXCursor_CompoundAssignOperator ||
	        (kind == CXCursor_BinaryOperator &&
	                clang_getCursorBinaryOperatorKind(cursor) == CXBinaryOperator_Assign);
	if (kind == CXCursor_UnaryOperator)
		assigns = clang_getCursorUnaryOperatorKind(cursor) <= CXUnaryOperator_PreDec;
	if (assigns)
		parts = c_children(changed->reader->c.arena, cursor);
	if (assigns && parts.list.count)
		note_changed(changed, parts.list.data[0]);
	int arguments = kind == CXCursor_CallExpr ? clang_Cursor_getNumArguments(cursor) : 0;
	for (int i = 0; i < arguments; i++) { /* by reference */
		CXCursor argument = clang_Cursor_getArgument(cursor, (unsigned)i);
		if (clang_getCursorKind(argument) == CXCursor_DeclRefExpr)
			note_changed(changed, argument);
	}
	return CXChildVisit_Recurse;
}

struct cpp_changed cpp_changed_in(struct cpp_reader *reader, CXCursor cursor)
{
	struct cpp_changed changed = { .reader = reader };
	clang_visitChildren(cursor, find_changed, &changed);
	return changed;
}

/* --- the head --- */

static bool refuse_head(struct cpp_reader *reader, CXCursor cursor)
{
	return c_refuse(&reader->c, cursor, "the loop's head is not understood",
	        "accepted is for (int i = FIRST; i < BOUND; i += STEP) with a constant step");
}

static bool read_first(struct cpp_reader *reader, CXCursor cursor, struct for_loop *loop)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	CXCursor counter = parts.list.count ? parts.list.data[0] : clang_getNullCursor();
	bool declares = clang_getCursorKind(cursor) == CXCursor_DeclStmt;
	if (!cpp_statement(reader, cursor))
		return false;
	if (!declares)
		counter = clang_getCursorReferenced(cpp_strip(reader, counter));
	loop->counter = counter;
	loop->variable = clang_Cursor_isNull(counter)
	        ? NULL
	        : map_get(&reader->variables, c_key(reader->c.arena, counter));
	if (!loop->variable)
		return refuse_head(reader, loop->cursor);
	loop->first = loop->variable->value.form;
	return true;
}

static bool read_step(struct cpp_reader *reader, CXCursor cursor, struct for_loop *loop)
{
	struct cpp_form before = cpp_constant(0);
	loop->variable->value.form = before;
	loop->variable->value.operation = CPP_NONE;
	if (cpp_evaluate(reader, cursor).kind == CPP_REFUSED)
		return false;
	loop->step = loop->variable->value.form.constant;
	return (cpp_is_constant(&loop->variable->value.form) && loop->step) ||
	        refuse_head(reader, loop->cursor);
}

static int64_t quotient_up(int64_t distance, int64_t step)
{
	return distance <= 0 ? 0 : (distance + step - 1) / step;
}

/* Mean of the form over the loops around, in halves. */
static double mean_of(const struct cpp_reader *reader, const struct cpp_form *form)
{
	double mean = (double)form->constant;
	for (int i = 0; i < reader->depth; i++)
		mean += (double)form->coefficient[i] * (double)(reader->trips[i] - 1) / 2;
	return mean;
}

static bool read_bound(struct cpp_reader *reader, CXCursor cursor, struct for_loop *loop)
{
	struct c_cursors parts = c_children(reader->c.arena, cursor);
	enum CXBinaryOperatorKind which = clang_getCursorBinaryOperatorKind(cursor);
	if (parts.list.count != 2 || which < CXBinaryOperator_LT || which > CXBinaryOperator_NE ||
	        which == CXBinaryOperator_EQ)
		return refuse_head(reader, loop->cursor);
	struct cpp_value bound = cpp_evaluate(reader, parts.list.data[1]);
	if (bound.kind == CPP_REFUSED)
		return false;
	struct cpp_form distance = cpp_add(bound.form, loop->first, -1);
	if (loop->step < 0)
		distance = cpp_add(cpp_constant(0), distance, -1);
	if (which == CXBinaryOperator_LE || which == CXBinaryOperator_GE)
		distance.constant++;
	int64_t step = loop->step < 0 ? -loop->step : loop->step;
	if (cpp_is_constant(&distance)) {
		loop->trips = quotient_up(distance.constant, step);
		return true;
	}
	const struct cpp_pragma *given = cpp_find_pragma(reader, loop->cursor, "LOOP_TRIPCOUNT");
	int64_t most = cpp_pragma_number(given, "max", -1);
	loop->varies = distance.known;
	loop->trips = cpp_pragma_number(given, "avg",
	        most < 0 ? -1 : (most + cpp_pragma_number(given, "min", most) + 1) / 2);
	loop->given = loop->trips >= 0;
	if (!loop->given && distance.known) {
		double mean = mean_of(reader, &distance) / (double)step;
		loop->trips = mean < 0 ? 0 : (int64_t)(mean + 0.5);
	}
	return loop->trips >= 0 ||
	        c_refuse(&reader->c, cursor, "the number of iterations is not known",
	                "accepted are bounds of constants and outer counters, or a pragma as "
	                "#pragma HLS LOOP_TRIPCOUNT min=1 max=64 inside of the loop");
}

static bool read_head(struct cpp_reader *reader, struct for_loop *loop)
{
	struct c_cursors parts = c_children(reader->c.arena, loop->cursor);
	if (parts.list.count != 4)
		return refuse_head(reader, loop->cursor);
	loop->body = parts.list.data[3];
	loop->trips = -1;
	return read_first(reader, parts.list.data[0], loop) &&
	        read_step(reader, parts.list.data[2], loop) &&
	        read_bound(reader, parts.list.data[1], loop);
}

/* --- bodies --- */

/* Copies of the body, in the current one; the counter begins at `first`. */
static bool copies(struct cpp_reader *reader, const struct for_loop *loop, struct cpp_form first,
        int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		loop->variable->value.form = cpp_add(first, cpp_constant(i), loop->step);
		loop->variable->value.form.known = first.known;
		loop->variable->value.operation = CPP_NONE;
		if (!cpp_statement(reader, loop->body))
			return false;
	}
	return true;
}

static void carry(struct cpp_reader *reader, CXCursor cursor, struct cpp_value *value)
{
	if (value->kind == CPP_LANES) {
		struct cpp_value *lane =
		        ARENA_ARRAY(reader->c.arena, struct cpp_value, value->lanes);
		for (int i = 0; i < value->lanes; i++) {
			lane[i] = value->lane[i];
			carry(reader, cursor, &lane[i]);
		}
		value->lane = lane;
		return;
	}
	struct cpp_operation carried = { .kind = CPP_CARRIED,
		.operands = 1,
		.bits = value->bits,
		.is_double = value->is_double };
	carried.operand = ARENA_NEW(reader->c.arena, int);
	*carried.operand = CPP_NONE;
	value->operation = cpp_add_operation(reader, cursor, carried);
	value->form = (struct cpp_form){ 0 };
}

static void close_carried(
        struct cpp_reader *reader, const struct cpp_value *carried, const struct cpp_value *value)
{
	if (carried->kind == CPP_LANES && value->kind == CPP_LANES) {
		for (int i = 0; i < carried->lanes && i < value->lanes; i++)
			close_carried(reader, &carried->lane[i], &value->lane[i]);
		return;
	}
	if (carried->kind == CPP_SCALAR && value->kind == CPP_SCALAR &&
	        carried->operation != CPP_NONE)
		*reader->design->operations.data[carried->operation].operand = value->operation;
}

/* The loop's body, with what one iteration leaves to the next. */
static bool read_loop_body(struct cpp_reader *reader, const struct for_loop *loop,
        struct cpp_form first, int64_t count)
{
	struct cpp_changed changed = cpp_changed_in(reader, loop->cursor);
	struct cpp_value *carried =
	        ARENA_ARRAY(reader->c.arena, struct cpp_value, changed.list.count + 1);
	for (size_t i = 0; i < changed.list.count; i++) {
		struct cpp_variable *variable = changed.list.data[i];
		if (variable == loop->variable)
			continue;
		carry(reader, loop->cursor, &variable->value);
		carried[i] = variable->value;
	}
	if (!copies(reader, loop, first, count))
		return false;
	for (size_t i = 0; i < changed.list.count; i++)
		if (changed.list.data[i] != loop->variable)
			close_carried(reader, &carried[i], &changed.list.data[i]->value);
	return true;
}

/* The least iterations for which loops are pipelined without a pragma. */
#define AUTOMATIC_LEAST 64

struct inner_loops {
	struct cpp_reader *reader;
	bool any, pipelined; /* loops inside; one of them is pipelined by a pragma */
};

static enum CXChildVisitResult find_inner(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct inner_loops *inner = data;
	(void)parent;
	if (clang_getCursorKind(cursor) != CXCursor_ForStmt)
		return CXChildVisit_Recurse;
	inner->any = true;
	inner->pipelined |= cpp_find_pragma(inner->reader, cursor, "PIPELINE") != NULL;
	return CXChildVisit_Recurse;
}

/* Iterations of the nest inside, as far as its bounds are constants; at most AUTOMATIC_LEAST. */
struct nest_size {
	struct cpp_reader *reader;
	int64_t iterations;
};

static enum CXChildVisitResult find_size(CXCursor cursor, CXCursor parent, CXClientData data)
{
	struct nest_size *size = data;
	(void)parent;
	int64_t bound;
	if (clang_getCursorKind(cursor) != CXCursor_ForStmt)
		return CXChildVisit_Recurse;
	struct c_cursors parts = c_children(size->reader->c.arena, cursor);
	struct nest_size inner = { size->reader, 1 };
	if (parts.list.count != 4)
		return CXChildVisit_Continue;
	struct c_cursors sides = c_children(size->reader->c.arena, parts.list.data[1]);
	bool known = sides.list.count == 2 && c_integer(sides.list.data[1], &bound);
	if (find_size(parts.list.data[3], cursor, &inner) == CXChildVisit_Recurse)
		clang_visitChildren(parts.list.data[3], find_size, &inner);
	inner.iterations *= known && bound < AUTOMATIC_LEAST ? bound : AUTOMATIC_LEAST;
	if (inner.iterations > size->iterations)
		size->iterations = inner.iterations;
	return CXChildVisit_Continue;
}

/* Without a pragma: the innermost loop whose nest has iterations enough. */
static bool pipelined_by_itself(struct cpp_reader *reader, const struct for_loop *loop)
{
	struct nest_size inner = { reader, 1 };
	struct inner_loops loops = { .reader = reader };
	if (find_size(loop->body, loop->cursor, &inner) == CXChildVisit_Recurse)
		clang_visitChildren(loop->body, find_size, &inner);
	find_inner(loop->body, loop->cursor, &loops);
	clang_visitChildren(loop->body, find_inner, &loops);
	return !loops.pipelined && inner.iterations < AUTOMATIC_LEAST &&
	        loop->trips * inner.iterations >= AUTOMATIC_LEAST;
}

static const char *name_of(struct cpp_reader *reader, const char *label, int line)
{
	return label ? label : text_format(reader->c.arena, "L%d", line);
}

static struct cpp_loop describe(
        struct cpp_reader *reader, const struct for_loop *loop, const char *label)
{
	const struct cpp_pragma *pipeline = cpp_find_pragma(reader, loop->cursor, "PIPELINE");
	const struct cpp_pragma *flatten = cpp_find_pragma(reader, loop->cursor, "LOOP_FLATTEN");
	bool off = pipeline && cpp_pragma_has(pipeline, "off");
	struct cpp_loop result = { .location = c_place(&reader->c, loop->cursor),
		.depth = reader->depth,
		.trips = loop->trips,
		.trips_given = loop->given,
		.varies = loop->varies,
		.asked = pipeline && !off,
		.interval = cpp_pragma_number(pipeline, "ii", 0),
		.unrolled = 1,
		.rewind = pipeline && cpp_pragma_has(pipeline, "rewind"),
		.no_flatten = flatten && cpp_pragma_has(flatten, "off"),
		.dataflow = cpp_find_pragma(reader, loop->cursor, "DATAFLOW") != NULL };
	result.name = name_of(reader, label, result.location.line);
	result.pipelined =
	        result.asked || (!off && !result.dataflow && pipelined_by_itself(reader, loop));
	return result;
}

static bool stays(
        struct cpp_reader *reader, struct for_loop *loop, struct cpp_loop result, int64_t factor)
{
	int outer = reader->body;
	bool pipelined = reader->pipelined;
	if (reader->depth == CPP_DEPTH)
		return c_refuse(&reader->c, loop->cursor, "loops are nested too deeply",
		        "accepted are up to 16 loops");
	result.unrolled = factor;
	result.trips = (loop->trips + factor - 1) / factor;
	reader->trips[reader->depth++] = result.trips;
	result.body = cpp_new_body(reader);
	VEC_PUSH(reader->c.arena, &reader->design->loops, result);
	cpp_add_item(reader, outer, CPP_LOOP, (int)reader->design->loops.count - 1);
	struct cpp_form first = loop->first;
	first.coefficient[result.depth] = loop->step * factor;
	reader->body = result.body;
	reader->pipelined = result.pipelined;
	cpp_forget(reader);
	bool good = read_loop_body(reader, loop, first, factor);
	cpp_forget(reader);
	reader->body = outer;
	reader->pipelined = pipelined;
	reader->depth--;
	loop->variable->value.form = (struct cpp_form){ 0 };
	return good;
}

bool cpp_for(struct cpp_reader *reader, CXCursor cursor, const char *label)
{
	struct for_loop loop = { .cursor = cursor };
	if (!read_head(reader, &loop))
		return false;
	const struct cpp_pragma *unroll = cpp_find_pragma(reader, cursor, "UNROLL");
	bool off = unroll && cpp_pragma_has(unroll, "off");
	int64_t factor = unroll && !off ? cpp_pragma_number(unroll, "factor", loop.trips) : 1;
	bool whole = reader->pipelined || (unroll && !off && factor >= loop.trips);
	if ((whole ? loop.trips : factor) > COPIES_MOST)
		return c_refuse(&reader->c, cursor, "too many iterations are unrolled",
		        "accepted are up to 65536");
	if (whole)
		return copies(reader, &loop, loop.first, loop.trips);
	if (!loop.trips)
		return true;
	return stays(reader, &loop, describe(reader, &loop, label), factor < 1 ? 1 : factor);
}
