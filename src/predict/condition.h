/* Conditions over loop counters, a column of iterations at a time: of every operation the values
 * in many iterations, one after the other. */
#ifndef STC_CONDITION_H
#define STC_CONDITION_H
#include "predict/token_pattern.h"

/* Known whatever the counters of the loops from `low` on are, without an operation. */
bool condition_constant(
        const struct value *value, const struct token_loop *loop, int low, int64_t *number);
/* at the counters as they are; false: it depends on data */
bool condition_number(const struct value *value, const struct token_loop *loop, int64_t *number);

/* out[i] = a[i] … b[i] … c[i] */
typedef void column_function(
        int64_t *restrict out, const int64_t *a, const int64_t *b, const int64_t *c, int count);

/* What an operation on whole numbers computes; NULL: it is none, or OP_APPLY. */
column_function *column_function_of(const struct op *op);
/* of OP_APPLY with one result; NULL: it is none */
const struct affine_map *column_map_of(const struct op *op);
/* pointers, at least, where operands are: a function looks at none beyond its own */
#define COLUMN_OPERANDS 3
/* function: NULL: the map */
void column_compute(column_function *function, const struct affine_map *map, int64_t *out,
        const int64_t *const *operand, int count);

#define COLUMN 256 /* iterations */

struct columns;

/* The iterations of the loops low … high, outermost first; the counters of the loops before them
 * hold. */
struct columns *columns_new(struct arena *arena, const struct token_loop *loop, int low, int high);
/* of the next column; count: at most COLUMN */
void columns_begin(struct columns *columns, int64_t iteration, int count);
/* active[i] &= the condition holds.  false: it depends on data */
bool columns_and(struct columns *columns, const struct value *when, bool *active);
#endif
