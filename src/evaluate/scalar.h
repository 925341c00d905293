/* Scalar operations (level B of ops.def) on arrays of registers, one element or one lane each.
 * Every level of the evaluator computes through here, so that a number has the same bits at each
 * of them.
 *
 * A register holds float for f32, f16 and bf16 (rounded to the type after every operation),
 * double for f64, int64_t for integers and index. Integers are kept sign-extended from their
 * width; so i1's true is -1. */
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
	/* rounds or wraps to the result type; NULL: nothing to do */
	void (*finish)(const struct scalar_op *op, void *out, int64_t count);
	int64_t predicate;     /* cmpf, cmpi: the relations for which it holds */
	int width, from_width; /* bits of the result and of operand 0, if they are integers */
	int size;              /* bytes of a result register */
};

/* predicate: of cmpf and cmpi, MLIR's number, else 0.  operand: type of operand 0; scalar types.
 * false: there is no such operation on these types. */
bool scalar_op_make(struct scalar_op *op, enum op_code code, int64_t predicate,
        const struct type *result, const struct type *operand);
static inline void scalar_run(
        const struct scalar_op *op, void *out, const void *const *in, int64_t count)
{
	op->run(op, out, in, count);
	if (op->finish)
		op->finish(op, out, count);
}
/* One value; select: value[0] is the condition and operand the type of value[1]. */
union scalar scalar_eval(const struct scalar_op *op, const union scalar *value);
int64_t scalar_predicate(const struct op *op); /* of cmpf and cmpi, else 0 */

int scalar_register_bytes(const struct type *type); /* of a scalar type */
/* in tensors, arrays and memory images */
int scalar_storage_bytes(const struct type *type);
/* rounded or wrapped to the type */
union scalar scalar_constant(const struct type *type, double real, int64_t integer);
bool scalar_of_attr(const struct type *type, const struct attr *attr, union scalar *value);
void scalar_fill(const struct type *type, void *registers, union scalar value, int64_t count);
union scalar scalar_get(const struct type *type, const void *registers, int64_t at);

/* Between storage (elements first, first + stride, …) and registers. */
void scalar_read(const struct type *type, void *registers, const void *storage, int64_t first,
        int64_t stride, int64_t count);
void scalar_write(const struct type *type, const void *registers, void *storage, int64_t first,
        int64_t stride, int64_t count);

/* Balanced tree over count registers, in place of `work`: (a0·a1)·(a2·a3) …; an odd last one
 * goes up unchanged.  The result is work[0]. */
void scalar_tree(const struct scalar_op *op, void *work, int64_t count);

/* acc = acc · term, one term after the other; acc_first: acc is operand 0. */
void scalar_fold(
        const struct scalar_op *op, bool acc_first, void *acc, const void *terms, int64_t count);

#endif
