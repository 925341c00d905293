/* Small exact changes to one kernel, shared by the tensor passes. */
#ifndef STC_KERNEL_EDIT_H
#define STC_KERNEL_EDIT_H
#include "ir/kernel.h"

/* What replaces the leaves of a body: nodes of the body that is written to.  A NULL table, or a
 * negative entry, keeps the leaf as it is. */
struct body_map {
	const int *operand; /* by operand */
	const int *active;  /* by operand: its ACTIVE */
	const int *index;   /* by loop: its INDEX */
	int accumulator;
};

/* returns the result's node */
int body_rewrite(
        struct module *module, struct body *into, const struct body *from, struct body_map map);
int body_arguments(const struct node *node);
int body_operand(struct module *module, struct body *body, const struct type *type, int operand);
int body_active(struct module *module, struct body *body, int operand);
int body_index(struct module *module, struct body *body, int loop);
int body_integer(struct module *module, struct body *body, const struct type *type, int64_t value);
int body_op(struct module *module, struct body *body, enum op_code code, const struct type *type,
        int a, int b, int c);
/* Σ factor[l] * counter l + constant, on index. */
int body_affine(struct module *module, struct body *body, int loops, const int64_t *factor,
        int64_t constant);
/* its guards, as comparisons of counters */
int body_guard_condition(struct module *module, struct body *body, const struct access *access);

/* NULL: unguarded in that loop */
const struct guard_range *access_guard(const struct access *access, int loop);
/* no guards, no gather */
bool access_is_plain(const struct access *access);
/* some operand is, in that loop */
bool kernel_is_guarded(const struct op *op, int loop);
/* intersects with what is there */
void access_add_guard(struct module *module, struct access *access, struct guard_range guard);
bool access_same(const struct access *left, const struct access *right, int loops);
struct access access_copy(struct module *module, const struct access *access, int loops);
struct access access_empty(struct module *module, int loops);
/* Where a reader of the result of `from`, by its operand `through`, finds what operand `operand`
 * of `from` was there.  A loop of the reader runs inside the digit of one of `from`, or that
 * cannot be told.  false: that, or it depends on a reduction of the reader. */
bool access_compose(struct module *module, const struct kernel *from, int operand,
        const struct kernel *reader, int through, struct access *to);

/* Loop l of extent e becomes l of e / inner and l + 1 of inner.  False, and nothing is changed,
 * if inner does not divide e, the loop has a run-time trip count, or a guard cannot be written
 * as ranges of the two loops. */
bool kernel_split_loop(struct module *module, struct op *op, int loop, int64_t inner);

/* The reverse, where every operand and the result allow it and no body asks for the counters:
 * loop `loop` is left with one point, the one behind it has all.  False: nothing is changed. */
bool kernel_join_loops(struct module *module, struct op *op, int loop);

/* Loop `from` becomes loop `to`; those between move up. */
void kernel_move_loop(struct module *module, struct op *op, int from, int to);

/* Cuts the loops that walk more, or less, than `extent` points `stride` apart of an operand (-1:
 * of the result), so that one of them walks just these; not where its loops are guarded. */
void kernel_cut_loops(
        struct module *module, struct op *op, int operand, int64_t stride, int64_t extent);

/* Drops loops of extent 1, operands that nothing reads, second copies of operands, dead nodes. */
void kernel_tidy(struct module *module, struct op *op);

/* A reduction's sums joined with another operand, sum first, before what else follows them. */
void kernel_join_sum(struct module *module, struct op *op, enum op_code code, struct value *with,
        struct access access);

/* The post body becomes an elementwise kernel that reads the sums; it must not ask for counters
 * or guards. */
void kernel_split_epilogue(struct module *module, struct op *op);

bool kernel_is_gather(const struct op *op); /* result = one gathered operand, nothing else */

/* No rolled layers, which a dump of ours may already have: passes over flat functions then have
 * nothing to do. */
bool block_is_flat(const struct block *block);

#endif
