/* Parts of the printer that print.c puts together. */
#ifndef STC_PRINT_H
#define STC_PRINT_H
#include "ir/kernel.h"

/* MLIR's IRDL wants one type for all of a variadic operand or result, so the values of an
 * operation that has them of any type are printed in this many segments, each a run of equal
 * types.  0: the operation needs none. */
int operand_segments(enum op_code code);
int result_segments(enum op_code code);
int type_runs(int count, struct value *const *value);

void attr_print(const struct attr *attr, struct text *out);
/* {a = 1 : i64, b} */
void attr_print_items(int count, const struct named *items, struct text *out);
void print_symbol(const char *symbol, struct text *out); /* with @ */

/* A kernel's payload as attributes, and its bodies as private functions. */
const struct attr *kernel_attributes(struct module *module, const struct op *op);
void kernel_print_bodies(struct module *module, const struct op *op, struct text *out);
#endif
