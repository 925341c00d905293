/* Inside fold_views: from linalg bodies (fold_body.c, fold_generic.c) and views (view.h) to kernels
 * (fold_kernel.c). */
#ifndef STC_FOLD_H
#define STC_FOLD_H
#include "ir/kernel_edit.h"
#include "tensor/view.h"

/* State of the pass. */
struct fold {
	struct module *module;
	struct op *before; /* kernels are inserted before this op */
	int kernels;       /* number of kernels made, for their names */
};

/* A tensor that a nest reads. */
struct input {
	struct view view;
	int64_t *row;    /* [rank][loops + 1]: data index as an affine form of the loops */
	int index_dim;   /* a gather: data dim that the value of index_input selects; -1: none */
	int index_input; /* number of that input */
};

/* A kernel before its loops are split: its body names inputs and unsplit loops. */
struct fold_nest {
	struct location location;
	int loops;
	int64_t *extent; /* [loops] */
	bool *reduction; /* [loops] */
	VEC(struct input) inputs;
	struct body update, post; /* as those of a kernel */
	double init;              /* of the accumulator */
	int64_t *result_row;      /* [result rank][loops + 1] */
	const struct type *result;
};

/* Makes the kernel of a nest; returns its result. */
struct value *fold_kernel(struct fold *fold, struct fold_nest *nest);
/* Makes a kernel that copies the view; returns the view of its result. */
struct view fold_materialize(struct fold *fold, struct location location, const struct view *view);

/* Gives every live result (uses > 0) of a linalg.generic a view.  false: a diagnostic was given. */
bool fold_generic(struct fold *fold, struct op *op);
/* The view of a tensor value that was folded already; it is the `data` of the value. */
struct view *fold_view(struct value *value);
void fold_set_view(struct fold *fold, struct value *value, struct view view);

/* Gives the results of all live operations of a block their views. */
bool fold_block(struct fold *fold, struct block *block);
/* Reports that an operation cannot be folded, and why; returns false. */
bool fold_report(const struct fold *fold, const struct op *op, const char *why);
/* Folds a loop over the rows of tensors: its counter is only the index of a row that is read
 * (tensor.extract_slice), and of one that is written into a carried tensor
 * (tensor.insert_slice). */
bool fold_loop(struct fold *fold, struct op *op);
bool fold_layer_row(struct fold *fold, struct op *op);
bool fold_insert_layer(struct fold *fold, struct op *op);

/* A scalar outside any body: false after a diagnostic unless it is a constant. */
bool fold_constant(struct fold *fold, const struct value *value, struct node *constant);
/* A number, or the first element of a dense tensor. */
struct node constant_of_attr(const struct attr *attr);

/* Simplifies a node: conversions of constants, powers with small constant exponents as products
 * and roots, quotients by powers of two as products.  Returns the new node; -1: nothing to do. */
int fold_scalar(struct module *module, struct body *body, const struct node *node);

/* Imports the scalar body of a generic for its result `result`; the inputs that it needs are
 * appended to the nest. */
bool fold_body(struct fold *fold, struct op *op, int result, struct fold_nest *nest);
/* Number of operands that are `ins`; the rest are `outs`. */
int generic_inputs(const struct op *op);
/* The indexing map of an operand. */
struct affine_map generic_map(const struct op *op, int operand);
#endif
