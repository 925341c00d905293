/* An elementwise kernel whose results come in another order, some of them more than once. */
#ifndef STC_TURNED_KERNEL_H
#define STC_TURNED_KERNEL_H
#include "ir/kernel.h"

/* The kernel with its loops in the order of this type, one number at a time; NULL: the type is
 * no order of its results. */
struct kernel *kernel_reordered(
        struct module *module, const struct op *op, const struct type *type);
/* The types of its ports, operands first; type: [operands + 1].  false: a port has none. */
bool kernel_port_types(struct module *module, const struct op *op, const struct kernel *kernel,
        const struct type **type);

#endif
