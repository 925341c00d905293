/* Inside fold_views: from linalg bodies and views to kernels. */
#ifndef STC_FOLD_H
#define STC_FOLD_H
#include "ir/kernel_edit.h"
#include "tensor/view.h"

struct fold {
	struct module *module;
	struct op *before; /* kernels are put before this op */
	int kernels;       /* made so far, for names */
};

struct input {
	struct view view;
	int64_t *row;  /* [rank][loops + 1]: data index as an affine form of the loops */
	int index_dim; /* data dim that another input's value selects, or -1 */
	int index_input;
};

/* a kernel before loops are split: its body names inputs and unsplit loops */
struct nest {
	struct location location;
	int loops;
	int64_t *extent;
	bool *reduction;
	VEC(struct input) inputs;
	struct body update, post;
	double init;
	int64_t *result_row; /* [result rank][loops + 1] */
	const struct type *result;
};

/* makes the kernel, returns its result */
struct value *fold_kernel(struct fold *fold, struct nest *nest);
/* a copy kernel; the view of its result */
struct view fold_materialize(struct fold *fold, struct location location, const struct view *view);

/* gives every live result (uses > 0) a view in value->data */
bool fold_generic(struct fold *fold, struct op *op);
/* view of a tensor value that was folded already */
struct view *fold_view(struct value *value);
void fold_set_view(struct fold *fold, struct value *value, struct view view);

/* A scalar outside any body: false after a diagnostic unless it is a constant. */
bool fold_constant(struct fold *fold, const struct value *value, struct node *constant);
/* number, or dense splat */
struct node constant_of_attr(const struct attr *attr);

/* Conversions of constants, powers with small constant exponents as products and roots,
 * quotients by powers of two as products; else -1. */
int fold_scalar(struct module *module, struct body *body, const struct node *node);

/* Imports the scalar body of a generic for its result `result`; the inputs that it needs are
 * appended to the nest. */
bool fold_body(struct fold *fold, struct op *op, int result, struct nest *nest);
/* ins; the rest are outs */
int generic_inputs(const struct op *op);
struct affine_map generic_map(const struct op *op, int operand);
#endif
