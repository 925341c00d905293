/* A contraction unit at hardware level: what lower_unit.c and lower_slice.c share.
 *
 *   groups of numbers ── feed ──┬─► slice 0 ─► slice 1 ─► …       every slice: its memory port's words, an array of products, the sums of a block of rows
 *                               └─► slice k ─► …                          │
 *   their scales ── scale ──► every slice                            collect: the rows of all slices in order
 *
 * Row n of a phase is row n / slices of slice n mod slices.  A slice takes its rows in blocks: for each group, every row of the block, so that a sum has as many
 * cycles as the block has rows to be added to. */
#ifndef STC_UNIT_H
#define STC_UNIT_H
#include "ir/contract.h"
#include "ir/nest.h"
#include "model/platform.h"
#include "pass/memory.h"

struct phase {
	const struct op *op;
	struct contract contract;
	int64_t layers;           /* of the rolled layer around it; 0: outside */
	int64_t blocks, block;    /* of a slice; rows of a block */
};

struct unit {
	struct design *design;
	int slices;
	VEC(struct phase) phases; /* in program order, which is the order of work */
	const struct type *group; /* a word: the numbers of a group */
	int64_t groups_most, block_most;
	struct value **input, **weights, **scale, **sums;  /* [slices] FIFOs */
};

/* Calls `add` for every phase, inside the loop over the layers where it has one. */
typedef void unit_add(const struct unit *unit, struct process *p, const struct phase *phase, void *context);
void unit_each(const struct unit *unit, struct process *p, unit_add *add, void *context);
struct process unit_process(const struct unit *unit, const char *name);
/* Opens the loops of a phase: blocks, groups, rows of a block.  Those of all phases are one datapath. */
void unit_loops(struct process *p, const struct phase *phase, struct value *counter[3]);
/* next: FIFO to the slice behind it, or NULL. */
void lower_slice(const struct unit *unit, int slice, struct value *next);
#endif
