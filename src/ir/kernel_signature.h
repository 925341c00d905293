/* A kernel's structure as text, for finding equal kernels: loops, accesses, bodies and types,
 * without its name, the identity of its operands and their shapes. Equal texts compute the same. */
#ifndef STC_KERNEL_SIGNATURE_H
#define STC_KERNEL_SIGNATURE_H
#include "ir/kernel.h"

void kernel_signature(const struct op *op, const struct module *module, struct text *out);
/* one operand whose elements are passed unchanged, without guards or gathers */
bool kernel_is_copy(const struct op *op);
/* a copy in which every element stays at its address */
bool kernel_is_identity(const struct op *op);
#endif
