/* Datapath sharing: loop nests of one process that are equal except for numbers (loops with the
 * attribute stream.datapath) are built as one datapath, with the differing numbers as
 * parameters. */
#ifndef STC_DATAPATH_SHARING_H
#define STC_DATAPATH_SHARING_H
#include "ir/ir.h"

/* A pair of numbers in the same place of two nests, defined outside both: index constants or
 * run-time counts. */
struct nest_number {
	struct value *left, *right;
};

struct nest_numbers {
	/* each left number once; left and right may be the same value */
	VEC(struct nest_number) list;
};

/* The value of one parameter in each of the nests. Numbers that are equal in all nests share a
 * column. */
struct nest_column {
	struct value **number; /* [nests] */
};

struct nest_parameter {
	struct value *value; /* the number in the first nest */
	int column;
};

struct nest_columns {
	VEC(struct nest_parameter) parameters;
	VEC(struct nest_column) list;
};

/* Nests of a process with the same datapath number share a datapath; a mark without a number means
 * 0. */
#define NEST_DATAPATHS_MOST 16
/* a loop outside pipelines with at most one iteration by a run-time count: a branch */
bool nest_is_branch(const struct op *op);
int nest_datapath(const struct op *op); /* number of the datapath; -1: the loop is not marked */
/* Are words of a channel read outside of nests, such as run-time counts?  block: of a process */
bool nests_read_channels(const struct block *block);
/* Compares two nests and lists their numbers. false: they differ in something else, or one left
 * constant corresponds to two right ones. */
bool nest_match(struct arena *arena, const struct op *left, const struct op *right,
        struct nest_numbers *numbers);
/* Finds the parameters of a shared datapath: numbers that differ between nests, and run-time
 * counts, which a function would not know otherwise. Returns `nests`, or the index of the first
 * nest that differs in something else. */
size_t nest_columns(
        struct arena *arena, struct op *const *nest, size_t nests, struct nest_columns *columns);

#endif
