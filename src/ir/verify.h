/* Parts of the verifier. */
#ifndef STC_VERIFY_H
#define STC_VERIFY_H
#include "ir/kernel.h"

struct verifier {
	struct module *module;
	/* what may stand in the function at hand: the module's level, or LEVEL_BODY */
	int level;
	struct map symbols; /* functions and kernels' bodies */
	bool failed;
};

/* A diagnostic at op. */
void verify_fail(struct verifier *verifier, const struct op *op, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* of the results and the block arguments */
void verify_types(struct verifier *verifier, const struct op *op);
/* operands against results */
void verify_op_types(struct verifier *verifier, const struct op *op);
void verify_kernel(struct verifier *verifier, const struct op *op);
/* of a valid kernel, at stream level */
void verify_ports(struct verifier *verifier, const struct op *op);
/* is it an input of one integer? */
bool verify_symbol(const struct verifier *verifier, const char *name);
/* of main, below tensor level */
void verify_signature(struct verifier *verifier);
/* stream level */
void verify_streams(struct verifier *verifier);
/* hardware level */
void verify_hardware(struct verifier *verifier);

/* What is wrong with the types of a scalar operation, NULL if nothing is. */
const char *scalar_type_error(
        enum op_code code, const struct type *const *operand, const struct type *result);
#endif
