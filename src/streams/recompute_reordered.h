/* Recomputes elementwise kernels in the order of their readers. */
#ifndef STC_RECOMPUTE_REORDERED_H
#define STC_RECOMPUTE_REORDERED_H
#include "ir/ir.h"

/* Removes the reorder buffer behind an elementwise kernel, if the kernel can work in its readers'
 * order and its operands come from an array in that order. next: an op that follows, which is
 * advanced if it is removed. false: nothing has changed. */
bool recompute_reordered(
        struct module *module, const struct block *all, struct op *convert, struct op **next);
/* Is there an array for every cast that rereads words (attribute reads_shared_buffer)? */
bool replays_are_buffered(const struct block *block);
#endif
