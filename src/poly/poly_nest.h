/* Loops that run the iterations of some statements. */
#ifndef STC_POLY_NEST_H
#define STC_POLY_NEST_H
#include "poly/poly_schedule.h"

enum poly_expression_kind {
	POLY_NUMBER,  /* number */
	POLY_COUNTER, /* of loop `number` */
	POLY_ADD,
	POLY_SUBTRACT,
	POLY_MULTIPLY,
	POLY_FLOOR_DIVIDE, /* by a positive number, towards minus infinity */
	POLY_REMAINDER,    /* of a number that is not negative */
	POLY_MINIMUM,
	POLY_MAXIMUM,
	POLY_EQUAL, /* conditions: 1 or 0 */
	POLY_AT_MOST,
	POLY_BELOW,
	POLY_BOTH,
	POLY_EITHER,
	POLY_CHOICE /* part 0 ? part 1 : part 2 */
};

struct poly_expression {
	enum poly_expression_kind kind;
	int64_t number;
	const struct poly_expression *part[3];
};

enum poly_step_kind {
	POLY_STEP_BLOCK,    /* its parts one after the other */
	POLY_STEP_LOOP,     /* part 0 for the counter from `first` to `last` by `by` */
	POLY_STEP_BRANCH,   /* part 0 where the condition holds, or (is_else) does not */
	POLY_STEP_STATEMENT /* an iteration of a statement */
};

struct poly_step {
	enum poly_step_kind kind;
	int loop;      /* the number of the loop */
	bool parallel; /* its iterations are independent */
	int64_t lanes; /* so many at once, the counters from 0 on; 0: one after the other */
	int64_t by;
	const struct poly_expression *first, *last, *condition;
	bool is_else;
	int statement;
	const struct poly_expression **counter; /* [dims] of the statement in C */
	/* Of a statement in an innermost loop, by read: iterations of that loop since the nearest
	 * one that wrote what is read; 0: in the same iteration; INT64_MAX: none of them. */
	int64_t *distance;
	int parts;
	struct poly_step **part;
};

/* Runs the statements that are `inside` ([statements]), in the order of C if there is no schedule.
 * NULL: it is too complex. */
struct poly_step *poly_nest(
        struct poly *poly, const bool *inside, const struct poly_schedule *schedule);
/* Outer loops that all accesses to the array share, of which no iteration reads what another one
 * wrote, and none what was there before. */
int poly_private_loops(const struct poly *poly, int array);
/* Is what read j of the statement finds replaced later, by a statement that is inside?  Only
 * values of such statements count. */
bool poly_is_replaced(struct poly *poly, const bool *inside, int statement, int read);

#endif
