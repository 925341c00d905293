/* A C function as statements over arrays: what the front end reads and raise/ turns into kernels.
 * Affine parts are structs of poly/, bodies are those of kernels. */
#ifndef STC_REGION_H
#define STC_REGION_H
#include "ir/kernel.h"
#include "poly/poly.h"

struct region_array { /* an array, or a scalar of rank 0 */
	const char *name;
	struct location location;
	const struct type *type; /* of an element */
	int rank;
	int64_t extent[POLY_DIMS];
	bool argument;
	const struct attr *value; /* of a constant table: dense; else NULL */
	const char *partition;    /* what pragmas ask for, as `cyclic factor=4 dim=1`; or NULL */
};

struct region_statement {
	struct location location;
	const char *text; /* as the user wrote it */
	struct poly_statement affine;
	/* Operand j is read j, and INDEX of loop d counter d. */
	struct body body;
	/* [indices] bodies with the same operands: computed subscript n is the value of
	 * index[n - 1], which uses only reads before its own */
	int indices;
	struct body *index;
	struct location *read_location; /* [affine.reads] */
	const char *counter[POLY_DIMS]; /* [affine.dims] names of the counters */
	int64_t trips[POLY_DIMS];       /* [affine.dims] iterations of each loop; 0: they vary */
	int64_t interval;               /* that a pragma asks for; 0: none does */
};

struct region_note { /* what the user should know */
	struct location location;
	const char *message;
};

struct region {
	const char *name; /* of the function */
	struct location location;
	VEC(struct region_array) arrays;
	VEC(struct region_statement) statements;
	VEC(struct region_note) notes;
	VEC(const char *) unrolls; /* KERNEL:lanes=COUNT, which pragmas ask for */
};

#endif
