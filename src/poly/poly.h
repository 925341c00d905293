/* Dataflow of affine programs: which iteration of a statement wrote the value that another one
 * reads. This room is the only one that knows isl. */
#ifndef STC_POLY_H
#define STC_POLY_H
#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

enum { POLY_DIMS = 12 }; /* maximum loops around a statement, and dims of an array */

/* Σ coefficient[d] · counter d + constant */
struct poly_form {
	int64_t coefficient[POLY_DIMS], constant;
};

enum poly_operator { POLY_ALWAYS, POLY_NOT_NEGATIVE, POLY_ZERO, POLY_NOT, POLY_AND, POLY_OR };

/* A condition on counters. */
struct poly_condition {
	enum poly_operator kind;
	struct poly_form form;                /* of POLY_NOT_NEGATIVE and POLY_ZERO */
	const struct poly_condition *part[2]; /* of POLY_NOT (the first), POLY_AND, POLY_OR */
};

struct poly_array {
	int rank;
	int64_t extent[POLY_DIMS];
	bool initial; /* it has a value before the first statement */
};

struct poly_access {
	int array; /* -1: no access */
	struct poly_form subscript[POLY_DIMS];
	/* Not 0: the subscript is no form but a number by which the caller knows it, and any
	 * element of the dim may be meant. What writes so keeps the others, which it also reads. */
	int computed[POLY_DIMS];
	/* of a read: further condition under which it happens; NULL: none */
	const struct poly_condition *when;
};

static inline bool poly_is_computed(const struct poly_access *access)
{
	for (int d = 0; d < POLY_DIMS; d++)
		if (access->computed[d])
			return true;
	return false;
}

/* An iteration for every point of its domain. It reads, then writes. */
struct poly_statement {
	int dims;
	const struct poly_condition *domain;
	/* order: position[0], counter 0, position[1], counter 1, …, position[dims] */
	int position[POLY_DIMS + 1];
	int reads;
	struct poly_access *read;
	struct poly_access write;
};

struct poly_program {
	int arrays, statements;
	struct poly_array *array;
	struct poly_statement *statement;
};

/* ⌊Σ coefficient · (counters, earlier divisions, 1) / denominator⌋ */
struct poly_division {
	const int64_t *coefficient;
	int64_t denominator;
};

struct poly_row { /* Σ coefficient · (counters, divisions, 1) = 0, or ≥ 0 */
	bool equality;
	const int64_t *coefficient;
};

struct poly_part { /* all rows hold */
	int divisions, rows;
	struct poly_division *division;
	struct poly_row *row;
};

struct poly_set { /* some part holds; no parts: never */
	int dims, parts;
	struct poly_part *part;
};

/* The iterations of a statement whose counters have these values. Iterations of a statement in one
 * instance become one kernel. */
struct poly_instance {
	int statement;
	bool is_fixed[POLY_DIMS];
	int64_t value[POLY_DIMS];
};

/* One origin of the values of a read. */
struct poly_source {
	int instance;        /* the last writer; -1: the array's initial value */
	struct poly_set set; /* iterations of the reader, as conditions inside its domain */
	int64_t low[POLY_DIMS], high[POLY_DIMS]; /* the box around them, inclusive */
	/* of the writer's iteration, by the reader's; not if they need a division */
	bool is_affine;
	struct poly_form counter[POLY_DIMS];
};

struct poly_read_flow {
	int sources;
	struct poly_source *source;
};

struct poly_flow {                               /* of an instance */
	bool empty;                              /* it has no iteration */
	int64_t low[POLY_DIMS], high[POLY_DIMS]; /* the box around its domain, inclusive */
	struct poly_set domain;                  /* inside the box */
	struct poly_read_flow *read;
	/* it reads the value of an earlier iteration of its own that differs in this counter */
	bool reduced[POLY_DIMS];
	/* another instance reads the value of an iteration that is not the last one over the
	 * reduced counters */
	bool read_before_end;
};

enum poly_fault {
	POLY_NO_FAULT,
	POLY_TOO_COMPLEX,  /* the limit of operations was reached */
	POLY_OUTSIDE,      /* an access outside its array */
	POLY_UNINITIALISED /* a read of what nothing wrote */
};

struct poly_error {
	enum poly_fault fault;
	int statement, read; /* read -1: the write */
	int dims;
	int64_t subscript[POLY_DIMS]; /* an element for which it happens */
};

struct poly;

/* Finds which iteration wrote what each read finds. NULL: *error says why. */
struct poly *poly_new(
        struct arena *arena, const struct poly_program *program, struct poly_error *error);
void poly_free(struct poly *poly);
/* The flow of each instance; every iteration is in one instance. NULL: it is too complex. */
struct poly_flow *poly_flow(struct poly *poly, int instances, const struct poly_instance *instance);

#endif
