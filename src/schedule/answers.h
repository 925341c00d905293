/* What searches have answered, by the problem that they were given: designs that are tried one after the other pose many of the same. */
#ifndef STC_ANSWERS_H
#define STC_ANSWERS_H
#include "base/map.h"
#include "schedule/orders.h"
#include "schedule/widths.h"

/* All that the answer depends on, as a hash. */
struct problem {
	char hex[65];
};

struct problem problem_of_widths(const struct width_space *space, int64_t points, const int *choice);
struct problem problem_of_orders(const struct orders_graph *graph, int64_t points);
/* answers: hash → choice[count]; NULL: none are kept. */
bool answer_known(const struct map *answers, const struct problem *problem, int count, int *choice);
void answer_keep(struct map *answers, const struct problem *problem, int count, const int *choice);

#endif
