/* Inside raise/: what is known about the statements of a region. */
#ifndef STC_RAISE_INTERNAL_H
#define STC_RAISE_INTERNAL_H
#include "poly/poly_nest.h"
#include "raise/raise.h"

/* Where a statement's kernel keeps the value of an iteration: Σ stride · counter + offset. */
struct raise_layout {
	struct value *value; /* NULL: no kernel yet */
	int64_t stride[POLY_DIMS];
	int64_t offset;
	/* the same by element: Σ stride · subscript + offset; NULL: not made */
	struct value *by_element;
	int64_t element_stride[POLY_DIMS];
	int64_t element_offset;
	/* of a sequential nest: elements that it has not written are those of this instance, or
	 * (-1) the initial values */
	int base;
};
#define RAISE_NO_BASE (-2) /* they have no value */

/* Statements that become one sequential nest. */
struct raise_group {
	bool *inside;           /* [program.statements] */
	struct poly_step *nest; /* NULL: it was merged with another group */
	/* [arrays in C][dims] banks of the arrays on chip: elements are in one bank whose
	 * subscripts are the same numbers modulo these */
	int64_t (*banks)[POLY_DIMS];
	/* elements before the first one of C, and all of them */
	int64_t (*margin)[POLY_DIMS], (*extent)[POLY_DIMS];
	int64_t *words;   /* [arrays in C] that an iteration reads, at most; 0: it is not used */
	int64_t dsp;      /* that its operators may take */
	int64_t used_dsp; /* and those that they take */
};

struct raising {
	struct module *module;
	struct arena *arena;
	const struct region *region;
	const struct raise_options *options;
	struct poly_program program; /* the region's statements, then a reader for each output */
	int statements;              /* without the readers */
	/* what becomes a kernel each: statements or parts of them, then the readers */
	struct poly_instance *instance;
	int instances, readers;
	struct poly_flow *flow; /* [instances] */
	int *output;            /* [outputs] array */
	int outputs;
	int *order; /* [ordered] live statements, writers first; of a group its first one */
	int ordered;
	bool *live; /* [instances] its value is needed for an output */
	int *group; /* [program.statements] number of its group; -1: none */
	VEC(struct raise_group) groups;
	struct raise_layout *layout; /* [instances] */
	struct value **initial;      /* [arrays] argument or constant; NULL: not read */
	struct map names;            /* of kernels */
	struct block *block;
};

/* --- raise_program.c --- */
/* Fills program. */
void raise_make_program(struct raising *r);
const struct poly_statement *raise_statement(const struct raising *r, int instance);
/* NULL: of the reader of an output. */
const struct region_statement *raise_origin(const struct raising *r, int instance);
bool raise_report(struct raising *r, const struct poly_error *error);

/* --- raise_order.c --- */
/* Fills instances, flow and order; statements that depend on each other are split by the counter
 * of a loop. */
bool raise_order(struct raising *r);
bool raise_has_reduction(const struct raising *r, int instance);

/* --- raise_group.c --- */
/* The group of an instance's statement; -1: none. */
int raise_group_of(const struct raising *r, int instance);
/* Makes one group of what is marked ([instances]), and of the groups that this touches. */
void raise_join(struct raising *r, const bool *marked);
/* Lets groups take in what cannot or need not stand outside. Instances are whole statements.
 * false: nothing was taken in. */
bool raise_absorb(struct raising *r, struct poly *poly);
/* Makes one group of two of which the one waits for the other, so that they share operators and
 * arrays. false: there are none. */
bool raise_chain(struct raising *r);

/* --- raise_alike.c --- */
/* [statements]: the first statement of the group that does the same at its counters. */
int *raise_alike(const struct raising *r, int group);

/* --- raise_triangle.c --- */
/* Makes a group of a sum over a triangle for which a nest is faster. false: there is none. */
bool raise_join_triangle(struct raising *r);

/* --- raise_expand.c --- */
/* Changes the region so that scalars of groups have a copy for each iteration. false: none needs
 * one. */
bool raise_expand(struct raising *r, struct poly *poly);

/* --- raise_lanes.c --- */
/* The loops of a group; sets its banks. NULL: they are too complex. */
struct poly_step *raise_nest(struct raising *r, struct poly *poly, int group);

/* --- raise_sequential.c --- */
/* Makes the sequential nest of a group. */
bool raise_sequential(struct raising *r, int group);

/* --- raise_address.c --- */
/* Shape and strides of the result of an instance's kernel, in the array's order where that is
 * possible; its rank. */
int raise_layout_of(
        const struct raising *r, int instance, struct raise_layout *layout, int64_t *shape);
/* The value that holds a source, and the address in it by the reader's counters. */
struct value *raise_source_value(
        struct raising *r, const struct poly_access *read, const struct poly_source *source);
struct poly_form raise_address(
        const struct raising *r, const struct poly_access *read, const struct poly_source *source);
/* Does the address stay inside for all counters from low to high? */
bool raise_stays_inside(const struct poly_form *address, int dims, const int64_t *low,
        const int64_t *high, int64_t elements);
/* Makes a group of an ordered statement that a kernel cannot be, as it reads too much or elements
 * that it cannot address. false: there is none. */
bool raise_join_addresses(struct raising *r);

/* --- raise_condition.c --- */
/* A node of one bit: the counters are in the set. Counter d is INDEX of loop d + low[d]. */
int raise_condition(
        struct module *module, struct body *body, const struct poly_set *set, const int64_t *low);
bool raise_is_always(const struct poly_set *set);

/* --- raise_spread.c --- */
/* Are an instance's subscripts one counter each, so that its result can be spread? */
bool raise_is_spreadable(const struct raising *r, int instance);
/* Where elements are then, and how many. */
int64_t raise_spread_layout(const struct raising *r, int instance, struct raise_layout *layout);
/* Fills by_element of the instance's layout. */
void raise_spread(struct raising *r, int instance);

/* --- raise_reassociate.c --- */
/* Gives a kernel that adds or multiplies in the order of C the form in which the order is free. */
void raise_reassociate(struct raising *r, struct op *op);

/* --- raise_factors.c --- */
/* Multiplies factors of sums in a statement in front of loops. */
void raise_factors(struct raising *r, int statement);

/* --- raise_describe.c --- */
/* What became of the loops of C (stream.transformations), once everything is made. */
const struct attr *raise_describe(struct raising *r);

/* --- raise_points.c --- */
/* Iterations of a statement; 0: they are too many to count, or its domain is no conjunction. */
int64_t raise_points(const struct poly_statement *statement);
/* Cycles of one, if nothing overlaps: loads, the longest chain of operators, the store. */
int64_t raise_point_cycles(
        struct arena *arena, const struct platform *platform, const struct body *body);

/* --- raise_kernel.c --- */
/* A name for a kernel that writes this array, made of a statement in this line. */
const char *raise_kernel_name(struct raising *r, const char *array, int line);
void raise_kernel(struct raising *r, int instance);
#endif
