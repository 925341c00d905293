/* Inside raise/: what is known about the statements of a region. */
#ifndef STC_RAISE_INTERNAL_H
#define STC_RAISE_INTERNAL_H
#include "raise/raise.h"

/* Where a statement's kernel keeps the value of an iteration: Σ stride · counter + offset. */
struct raise_layout {
	struct value *value; /* NULL: no kernel yet */
	int64_t stride[POLY_DIMS];
	int64_t offset;
};

struct raising {
	struct module *module;
	struct arena *arena;
	const struct region *region;
	const struct raise_options *options;
	struct poly_program program; /* the region's statements, then one for each output */
	struct poly_flow *flow;      /* [program.statements] */
	int statements;              /* of the region */
	int *output;                 /* [outputs] array */
	int outputs;
	int *order; /* [ordered] live statements, writers first */
	int ordered;
	struct raise_layout *layout; /* [program.statements] */
	struct value **initial;      /* [arrays] argument or constant; NULL: not read */
	struct map names;            /* of kernels */
	struct block *block;
};

/* --- raise_flow.c --- */
/* Fills program and flow. */
bool raise_analyse(struct raising *r);
/* Fills order, or reports statements that depend on each other. */
bool raise_order(struct raising *r);
bool raise_has_reduction(const struct raising *r, int statement);

/* --- raise_condition.c --- */
/* A node of one bit: the counters are in the set. Counter d is INDEX of loop d + low[d]. */
int raise_condition(
        struct module *module, struct body *body, const struct poly_set *set, const int64_t *low);
bool raise_is_always(const struct poly_set *set);

/* --- raise_kernel.c --- */
bool raise_kernel(struct raising *r, int statement);
#endif
