/* What searches have answered, by the problem that they were given: designs that are tried one
 * after the other pose many of the same. */
#ifndef STC_ANSWERS_H
#define STC_ANSWERS_H
#include "base/map.h"
#include "schedule/loop_orders.h"
#include "schedule/parallelism.h"

/* All that the answer depends on, as a hash. */
struct search_key {
	char hex[65];
};

struct search_key parallelism_search_key(
        const struct parallelism_space *space, int64_t points, const int *choice);
struct search_key loop_order_search_key(const struct loop_order_graph *graph, int64_t points);
/* answers: hash → choice[count]; NULL: none are kept. */
bool search_cache_lookup(const struct map *search_cache, const struct search_key *search_key,
        int count, int *choice);
void search_cache_store(struct map *search_cache, const struct search_key *search_key, int count,
        const int *choice);

#endif
