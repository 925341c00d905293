/* Evaluates conditions over loop counters for many iterations at once: each op of a condition
 * computes a column, its values in a run of iterations. */
#ifndef STC_CONDITION_H
#define STC_CONDITION_H
#include "predict/token_pattern.h"

/* The value if it is a constant, a counter of a loop before `low`, or a run-time count; false: it
 * is none of these. */
bool condition_constant(
        const struct value *value, const struct token_loop *loop, int low, int64_t *number);
/* the value at the current counters; false: it depends on data */
bool condition_number(const struct value *value, const struct token_loop *loop, int64_t *number);

/* out[i] = f(a[i], b[i], c[i]) */
typedef void column_function(
        int64_t *restrict out, const int64_t *a, const int64_t *b, const int64_t *c, int count);

/* The function of an integer op; NULL: it has none, or is OP_APPLY. */
column_function *column_function_of(const struct op *op);
/* the map of an OP_APPLY with one result; NULL: the op is none */
const struct affine_map *column_map_of(const struct op *op);
/* minimum size of an operand array: a function reads only its own operands */
#define COLUMN_OPERANDS 3
/* Computes a column by the function, or by the map if function is NULL. */
void column_compute(column_function *function, const struct affine_map *map, int64_t *out,
        const int64_t *const *operand, int count);

#define COLUMN 256 /* iterations of a column */

struct columns;

/* Columns over the iterations of loops low … high, outermost first; the counters of outer loops are
 * fixed. */
struct columns *columns_new(struct arena *arena, const struct token_loop *loop, int low, int high);
/* starts the column of `count` iterations (at most COLUMN) from `iteration` on */
void columns_begin(struct columns *columns, int64_t iteration, int count);
/* active[i] &= condition. false: it depends on data */
bool columns_and(struct columns *columns, const struct value *when, bool *active);
#endif
