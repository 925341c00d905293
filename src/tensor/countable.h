/* Limits of sizes: what later sums of bits and cycles can hold. */
#ifndef STC_COUNTABLE_H
#define STC_COUNTABLE_H
#include "ir/ir.h"

/* Bits of the iterations of a kernel, beyond which no launch ends and sums of bits would overflow;
 * and of masked sums, before they are scans. */
#define COUNTABLE_BITS 50
#define MASKED_BITS 53

/* Has each kernel of the block at most 2^bits iterations, and tensors that streams can pass? false
 * after a diagnostic. */
bool is_countable(struct module *module, const struct block *block, int bits);
#endif
