/* Evaluates a condition op by op, each for a whole column of iterations; columns that do not change
 * are computed once. */
#include "predict/condition.h"

struct column {
	const struct value *value;
	bool fixed; /* equal in every iteration */
	const struct affine_map *map;
	column_function *function; /* neither map nor function: a counter, or a constant */
	const int64_t **operand;
	int64_t *at;
};

struct columns {
	struct arena *arena;
	const struct token_loop *loop;
	int low, high;
	int width;         /* iterations of a column */
	int64_t iteration; /* first iteration of the current column */
	int count;
	VEC(struct column *) columns; /* operands before their users */
	size_t made;                  /* number of columns computed for the current iterations */
};

struct columns *columns_new(struct arena *arena, const struct token_loop *loop, int low, int high)
{
	struct columns *columns = ARENA_NEW(arena, struct columns);
	int64_t iterations = 1;
	for (int l = low; l <= high; l++)
		iterations *= loop[l].trips;
	*columns = (struct columns){ .arena = arena,
		.loop = loop,
		.low = low,
		.high = high,
		.width = iterations < COLUMN ? (int)iterations : COLUMN };
	return columns;
}

void columns_begin(struct columns *columns, int64_t iteration, int count)
{
	columns->iteration = iteration;
	columns->count = count;
	columns->made = 0;
}

/* --- computing columns */

static void make_counter(const struct columns *columns, int number, int64_t *at)
{
	const struct token_loop *loop = &columns->loop[number];
	int64_t inside = 1;
	for (int l = number + 1; l <= columns->high; l++)
		inside *= columns->loop[l].trips;
	struct token_loop turn = { loop->trips, columns->iteration / inside % loop->trips,
		loop->skipped };
	int64_t left = inside - columns->iteration % inside;
	for (int i = 0; i < columns->count; i++) {
		at[i] = token_counter_of(&turn);
		if (--left)
			continue;
		left = inside;
		turn.counter = turn.counter + 1 < turn.trips ? turn.counter + 1 : 0;
	}
}

static void compute(const struct columns *columns, const struct column *column, int count)
{
	if (column->map || column->function)
		column_compute(column->function, column->map, column->at, column->operand, count);
	else if (!column->fixed)
		make_counter(columns, column->value->id, column->at);
}

/* --- listing columns */

static const struct column *listed_column(const struct columns *columns, const struct value *value)
{
	for (size_t i = 0; i < columns->columns.count; i++)
		if (columns->columns.data[i]->value == value)
			return columns->columns.data[i];
	return NULL;
}

static const struct column *add_column(struct columns *columns, const struct value *value);

static bool add_operands(struct columns *columns, const struct op *op, struct column *column)
{
	column->operand =
	        ARENA_ARRAY(columns->arena, const int64_t *, op->operands + COLUMN_OPERANDS);
	for (int i = 0; i < op->operands; i++) {
		const struct column *operand = add_column(columns, op->operand[i]);
		if (!operand)
			return false;
		column->operand[i] = operand->at;
		column->fixed &= operand->fixed;
	}
	return true;
}

static bool add_operation(struct columns *columns, const struct op *op, struct column *column)
{
	column->map = column_map_of(op);
	column->function = column_function_of(op);
	return (column->map || column->function) && add_operands(columns, op, column);
}

/* The column of a value, added if new; NULL: it depends on data. */
static const struct column *add_column(struct columns *columns, const struct value *value)
{
	const struct column *other = listed_column(columns, value);
	if (other)
		return other;
	struct column *column = ARENA_NEW(columns->arena, struct column);
	int64_t number;
	bool constant = condition_constant(value, columns->loop, columns->low, &number);
	*column = (struct column){ .value = value,
		.fixed = constant || value->def,
		.at = ARENA_ARRAY(columns->arena, int64_t, columns->width + 1) };
	for (int i = 0; constant && i < columns->width; i++)
		column->at[i] = number;
	if (!constant &&
	        (value->def ? !add_operation(columns, value->def, column)
	                    : value->type->kind != TYPE_INDEX))
		return NULL;
	if (column->fixed)
		compute(columns, column, columns->width);
	VEC_PUSH(columns->arena, &columns->columns, column);
	return column;
}

bool columns_and(struct columns *columns, const struct value *when, bool *active)
{
	const struct column *column = add_column(columns, when);
	for (; column && columns->made < columns->columns.count; columns->made++)
		if (!columns->columns.data[columns->made]->fixed)
			compute(columns, columns->columns.data[columns->made], columns->count);
	for (int i = 0; column && i < columns->count; i++)
		active[i] = active[i] && column->at[i];
	return column;
}
