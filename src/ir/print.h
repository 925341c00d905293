/* Internal interface of the IR printer: print.c uses the printers of attributes and kernels. */
#ifndef STC_PRINT_H
#define STC_PRINT_H
#include "ir/kernel.h"

/* MLIR's IRDL wants one type for all values of a variadic operand or result. Operations with values
 * of any type are therefore printed with segments, each a run of equal types: this is the number of
 * segments; 0: the operation needs none. */
int operand_segments(enum op_code code);
int result_segments(enum op_code code);
int type_runs(int count, struct value *const *value);

void attr_print(const struct attr *attr, struct text *out);
/* {a = 1 : i64, b} */
void attr_print_items(int count, const struct named *items, struct text *out);
void print_string(const char *string, struct text *out); /* with its quotation marks */
void print_symbol(const char *symbol, struct text *out); /* with @ */

/* A kernel's fields as attributes, and its bodies as private functions. */
const struct attr *kernel_attributes(struct module *module, const struct op *op);
void kernel_print_bodies(struct module *module, const struct op *op, struct text *out);
#endif
