/* Rewrites the loops of an elementwise kernel so that it produces its results in another order,
 * some of them several times. */
#ifndef STC_KERNEL_REORDERED_H
#define STC_KERNEL_REORDERED_H
#include "ir/kernel.h"

/* The kernel with its loops in the order of `type`, one element at a time; NULL: the type is no
 * order of its results. */
struct kernel *kernel_reordered(
        struct module *module, const struct op *op, const struct type *type);
/* The types of the kernel's ports, operands first; type: [operands + 1]. false: a port has no
 * type. */
bool kernel_port_types(struct module *module, const struct op *op, const struct kernel *kernel,
        const struct type **type);

#endif
