/* What a stream.dot costs. */
#ifndef STC_DOT_COST_H
#define STC_DOT_COST_H
#include "ir/dot.h"
#include "platform/platform.h"

/* A DSP a lane for one word or two (27 by 18 bits are one, with its registers: UG579), an adder
 * tree as wide at each level as its sums are, and for two words what joins them in front and
 * takes the sums apart behind. With four products a tree for each, and one for each count of
 * borrows. */
struct operator_cost dot_cost(const struct platform *platform, const struct dot *dot);
#endif
