/* Elementwise kernels that work again in their readers' order. */
#ifndef STC_REPEAT_TURNED_H
#define STC_REPEAT_TURNED_H
#include "ir/ir.h"

/* The converter behind an elementwise kernel goes if the kernel can work in the converter's
 * order, and what it takes is in an array that is read in that order.  next: an op behind, which
 * may go too. */
bool recompute_reordered(
        struct module *module, const struct block *all, struct op *convert, struct op **next);
/* of every cast that brings words again (attribute `again`): is there an array that they come
 * from? */
bool replays_are_buffered(const struct block *block);
#endif
