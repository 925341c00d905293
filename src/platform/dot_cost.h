/* Cost of a stream.dot, by its packing (ir/dot.h). */
#ifndef STC_DOT_COST_H
#define STC_DOT_COST_H
#include "ir/dot.h"
#include "platform/platform.h"

/* One DSP per lane for one word or two (27 by 18 bits are one DSP, with its registers: UG579), an
 * adder tree with adders as wide as their sums, and for two words the logic that packs them and
 * splits the sums. Four products take a tree each, and one for each count of borrows. */
struct operator_cost dot_cost(const struct platform *platform, const struct dot *dot);
#endif
