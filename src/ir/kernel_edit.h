/* Rewrites of one kernel that keep its results bit-identical, shared by the tensor passes. */
#ifndef STC_KERNEL_EDIT_H
#define STC_KERNEL_EDIT_H
#include "ir/kernel.h"

/* Replacements for the leaves of a body: node numbers of the body that is written to. A NULL table
 * or a negative entry leaves the leaf unchanged. */
struct body_map {
	const int *operand; /* NODE_OPERAND, by operand */
	const int *active;  /* ACTIVE, by operand */
	const int *index;   /* INDEX, by loop */
	int accumulator;
};

/* copies `from` with replaced leaves; returns the node of its result */
int body_rewrite(
        struct module *module, struct body *into, const struct body *from, struct body_map map);
int body_operand(struct module *module, struct body *body, const struct type *type, int operand);
int body_active(struct module *module, struct body *body, int operand);
int body_index(struct module *module, struct body *body, int loop);
int body_integer(struct module *module, struct body *body, const struct type *type, int64_t value);
int body_op(struct module *module, struct body *body, enum op_code code, const struct type *type,
        int a, int b, int c);
/* Σ factor[l] * counter l + constant, on index. */
int body_affine(struct module *module, struct body *body, int loops, const int64_t *factor,
        int64_t constant);
/* the guards of an access as a condition on counters */
int body_guard_condition(struct module *module, struct body *body, const struct access *access);

/* NULL if the access has no guard on that loop */
const struct guard_range *access_guard(const struct access *access, int loop);
/* Points of a loop of the kernel within the access's guard on it. */
int64_t access_extent(const struct kernel *kernel, const struct access *access, int loop);
/* The only kernel that reads the value, and with which operand; NULL: none, several, or something
 * else reads it, or one outside the block. Needs ir_count_uses. */
struct op *only_reader(const struct block *block, const struct value *value, int *operand);
/* has no guards and is no gather */
bool access_is_plain(const struct access *access);
/* some operand has a guard on that loop */
bool kernel_is_guarded(const struct op *op, int loop);
/* intersects with an existing guard on the same loop */
void access_add_guard(struct module *module, struct access *access, struct guard_range guard);
bool access_same(const struct access *left, const struct access *right, int loops);
struct access access_copy(struct module *module, const struct access *access, int loops);
struct access access_empty(struct module *module, int loops);
/* Composes two accesses: a reader takes the result of `from` by its operand `through`; *to becomes
 * the access by which the reader would read operand `operand` of `from` directly. A loop of the
 * reader must run inside one digit of one loop of `from`. false: it does not, or the address
 * depends on a reduction of the reader. */
bool access_compose(struct module *module, const struct kernel *from, int operand,
        const struct kernel *reader, int through, struct access *to);

/* Splits loop l of extent e into l of e / inner and l + 1 of inner. false, and nothing changes, if
 * inner does not divide e, the loop has a run-time trip count, or a guard cannot be written as
 * ranges of the two loops. */
bool kernel_split_loop(struct module *module, struct op *op, int loop, int64_t inner);

/* Joins `loop` and `loop` + 1, where every access allows it and no body reads the counters: the
 * first is left with one point, the second has all. false: nothing changes. */
bool kernel_join_loops(struct module *module, struct op *op, int loop);

/* Moves loop `from` to position `to`; those in between shift by one. */
void kernel_move_loop(struct module *module, struct op *op, int from, int to);

/* Splits the loops over an operand (-1: the result) so that one of them walks exactly `extent`
 * points `stride` elements from each other. Loops with guards stay as they are. */
void kernel_cut_loops(
        struct module *module, struct op *op, int operand, int64_t stride, int64_t extent);

/* Removes loops of extent 1, operands that nothing reads, duplicate operands and dead nodes. */
void kernel_tidy(struct module *module, struct op *op);

/* Combines a reduction's sum with another operand at the start of post: op `code`, sum first. */
void kernel_join_sum(struct module *module, struct op *op, enum op_code code, struct value *with,
        struct access access);

/* Moves the post body into an elementwise kernel of its own that reads the sums; post must not use
 * counters or guards. */
void kernel_split_epilogue(struct module *module, struct op *op);

bool kernel_is_gather(const struct op *op); /* the result is one gathered operand, unchanged */

/* No rolled layer loop is in the block, only loops over rows. A resumed dump may have some; passes
 * over flat functions leave it as it is. */
bool block_is_flat(const struct block *block);
bool block_has_loop(const struct block *block);

#endif
