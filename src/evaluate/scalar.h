/* Scalar operations (level B of ops.def) on arrays of registers, one per element or lane.  All
 * levels of the evaluator compute with these, so that a number has the same bits at each level.
 *
 * A register holds float for f32, f16 and bf16 (rounded to the type after every operation),
 * double for f64, int64_t for integers and index.  Integers are sign-extended from their width, so
 * the true of i1 is -1. */
#ifndef STC_SCALAR_H
#define STC_SCALAR_H
#include "ir/ir.h"

union scalar {
	float f32;
	double f64;
	int64_t integer;
};

struct scalar_op;
typedef void scalar_function(
        const struct scalar_op *op, void *out, const void *const *in, int64_t count);

struct scalar_op {
	scalar_function *run;
	/* rounds or wraps to the result type; NULL: not needed */
	void (*finish)(const struct scalar_op *op, void *out, int64_t count);
	int64_t predicate;     /* cmpf, cmpi: mask of the relations for which it holds */
	int width, from_width; /* bits of the result and of operand 0, if they are integers */
	int size;              /* bytes of a result register */
};

/* Selects the function of an operation.  `predicate` is MLIR's number for cmpf and cmpi, else 0;
 * `operand` is the type of operand 0; both types are scalar.  false: no such operation. */
bool scalar_op_make(struct scalar_op *op, enum op_code code, int64_t predicate,
        const struct type *result, const struct type *operand);
static inline void scalar_run(
        const struct scalar_op *op, void *out, const void *const *in, int64_t count)
{
	op->run(op, out, in, count);
	if (op->finish)
		op->finish(op, out, count);
}
/* One value.  For a select, value[0] is the condition, and the op was made with the type of
 * value[1]. */
union scalar scalar_eval(const struct scalar_op *op, const union scalar *value);
int64_t scalar_predicate(const struct op *op); /* attribute of cmpf and cmpi, else 0 */

int scalar_register_bytes(const struct type *type); /* of a scalar type */
/* Bytes of a scalar in tensors, arrays and memory images. */
int scalar_storage_bytes(const struct type *type);
/* A number rounded or wrapped to the type. */
union scalar scalar_constant(const struct type *type, double real, int64_t integer);
bool scalar_of_attr(const struct type *type, const struct attr *attr, union scalar *value);
void scalar_fill(const struct type *type, void *registers, union scalar value, int64_t count);
union scalar scalar_get(const struct type *type, const void *registers, int64_t at);

/* Copies `count` elements between storage (elements first, first + stride, …) and registers. */
void scalar_read(const struct type *type, void *registers, const void *storage, int64_t first,
        int64_t stride, int64_t count);
void scalar_write(const struct type *type, const void *registers, void *storage, int64_t first,
        int64_t stride, int64_t count);

/* Balanced tree over `count` registers, in place: (a0·a1)·(a2·a3) …; an odd last register moves up
 * a level unchanged.  The result is work[0]. */
void scalar_tree(const struct scalar_op *op, void *work, int64_t count);

/* acc = acc · term for one term after the other; acc_first: acc is operand 0. */
void scalar_fold(
        const struct scalar_op *op, bool acc_first, void *acc, const void *terms, int64_t count);

#endif
