/* What an operator of a kernel's body costs. */
#ifndef STC_NODE_COST_H
#define STC_NODE_COST_H
#include "ir/kernel.h"
#include "platform/platform.h"

/* narrow: products are priced by what their factors are extended from, and those with a power of
 * two next to nothing (ir/narrow_product.h). Decode of one token prices them in full but for those
 * of extended integers, since wider kernels would crowd the die next to memory. */
struct operator_cost node_cost(const struct platform *platform, const struct body *body,
        const struct node *node, bool narrow);
/* Is it an integer product with a constant power of two, which is wires only? */
bool node_only_shifts(const struct body *body, const struct node *node);
#endif
