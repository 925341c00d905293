/* A kernel's structure as text: loops, accesses, bodies, types; not its name, operands'
 * identities or shapes.  Equal texts: the same computation. */
#ifndef STC_KERNEL_SIGNATURE_H
#define STC_KERNEL_SIGNATURE_H
#include "ir/kernel.h"

void kernel_signature(const struct op *op, const struct module *module, struct text *out);
/* one operand, unchanged elements, no guard, no gather */
bool kernel_is_copy(const struct op *op);
bool kernel_is_identity(const struct op *op); /* … each at its own address */
#endif
