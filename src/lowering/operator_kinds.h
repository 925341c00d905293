/* How often a body needs one kind of operator, which its operations can share. */
#ifndef STC_OPERATOR_KINDS_H
#define STC_OPERATOR_KINDS_H
#include "schedule/node_cost.h"

/* Operations of the body's most frequent kind, of those that DSPs compute; an elementary function
 * has as many as its polynomial. */
int most_of_one_kind(struct arena *arena, const struct platform *platform, const struct body *body);
#endif
