/* Splits a convolution by channels of its result into stages beside one another. */
#ifndef STC_SPLIT_STAGE_H
#define STC_SPLIT_STAGE_H
#include "folding/fold_channels.h"

/* Can the convolution be split: does every part have weights of its own, and is the result a tensor
 * of one kernel's channels? */
bool stage_splits(const struct folded_kernel *folded);
/* Splits it into so many equal parts. What reads the result reads all parts, channels of one after
 * those of the other. The kernel is removed. */
void split_stage(struct module *module, const struct folded_kernel *folded, int parts);

#endif
