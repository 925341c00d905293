/* Internal interface of the verifier, whose checks are spread over the files verify_*.c. */
#ifndef STC_VERIFY_H
#define STC_VERIFY_H
#include "ir/kernel.h"

struct verifier {
	struct module *module;
	/* levels whose ops the current function may hold: the module's level, or LEVEL_BODY */
	int level;
	struct map symbols;      /* functions and kernel bodies by name */
	const struct op *called; /* the function that the last call names; NULL: there was none */
	bool failed;
};

/* Reports an error at op. */
void verify_fail(struct verifier *verifier, const struct op *op, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* types of results and block arguments */
void verify_types(struct verifier *verifier, const struct op *op);
/* types of operands against those of results */
void verify_op_types(struct verifier *verifier, const struct op *op);
void verify_kernel(struct verifier *verifier, const struct op *op);
void verify_sequential(struct verifier *verifier, const struct op *op);
/* stream types of a valid kernel's operands and result, at stream level */
void verify_ports(struct verifier *verifier, const struct op *op);
/* Does the name denote an input of one integer? */
bool verify_symbol(const struct verifier *verifier, const char *name);
/* the signature attributes of main, below tensor level */
void verify_signature(struct verifier *verifier);
/* rules of stream level */
void verify_streams(struct verifier *verifier);
/* rules of hardware level */
void verify_hardware(struct verifier *verifier);

/* Says what is wrong with the types of a scalar operation; NULL if nothing is. */
const char *scalar_type_error(
        enum op_code code, const struct type *const *operand, const struct type *result);
#endif
