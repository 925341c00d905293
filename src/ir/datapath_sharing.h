/* Loop nests of one process that are the same but for numbers: they stand for one datapath,
 * which is built once (loops with the attribute stream.datapath). */
#ifndef STC_DATAPATH_SHARING_H
#define STC_DATAPATH_SHARING_H
#include "ir/ir.h"

/* index constants, or counts of run time, outside of both nests, in the same place */
struct nest_number {
	struct value *left, *right;
};

struct nest_numbers {
	VEC(struct nest_number) list; /* each left once; it may be the right as well */
};

/* What a number of the first nest is in each of the others; those that always are the same
 * number are one column. */
struct nest_column {
	struct value **number; /* [nests] */
};

struct nest_parameter {
	struct value *value; /* of the first nest */
	int column;
};

struct nest_columns {
	VEC(struct nest_parameter) parameters;
	VEC(struct nest_column) list;
};

/* Loops of a process with the same number stand for one datapath; a mark without one is 0. */
#define NEST_DATAPATHS_MOST 16
/* a loop outside of pipelines that has one turn, or none: whether it has is known before it */
bool nest_is_branch(const struct op *op);
int nest_datapath(const struct op *op); /* -1: none */
/* false: they differ in something else, or a constant of the left stands for two of the right. */
bool nest_match(struct arena *arena, const struct op *left, const struct op *right,
        struct nest_numbers *numbers);
/* Numbers that differ from nest to nest, and counts of run time, which a function would not know
 * otherwise.  Returns the first nest that is not of the datapath of those before it, or `nests`. */
size_t nest_columns(
        struct arena *arena, struct op *const *nest, size_t nests, struct nest_columns *columns);

/* A process of marked loops, outside of which it only counts: each begins when the last
 * iteration of the one before it has entered, so its pipeline never drains between them. */
#endif
