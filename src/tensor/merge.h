/* merge_common on one block, for passes that produce equal kernels. */
#ifndef STC_MERGE_H
#define STC_MERGE_H
#include "ir/ir.h"

void merge_block(struct module *module, struct block *block);
#endif
