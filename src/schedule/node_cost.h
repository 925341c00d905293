/* What an operator of a kernel's body costs. */
#ifndef STC_NODE_COST_H
#define STC_NODE_COST_H
#include "ir/kernel.h"
#include "platform/platform.h"

/* A product of integers costs as much as that of its factors without their extension, and one with
 * a power of two next to nothing. narrow: a float product with an extended half is priced as the
 * one multiplier that it takes (ir/narrow_product.h). Decode of one token prices it in full, since
 * wider kernels would crowd the die next to memory. */
struct operator_cost node_cost(const struct platform *platform, const struct body *body,
        const struct node *node, bool narrow);
#endif
