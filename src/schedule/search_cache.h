/* Caches the answers of the parallelism and loop order searches by a hash of their problem, because
 * fit trials build many designs that share them. */
#ifndef STC_SEARCH_CACHE_H
#define STC_SEARCH_CACHE_H
#include "base/map.h"
#include "schedule/loop_orders.h"
#include "schedule/parallelism.h"

/* Hash of everything that the answer depends on. */
struct search_key {
	char hex[65];
};

struct search_key parallelism_search_key(
        const struct parallelism_space *space, int64_t points, const int *choice);
struct search_key loop_order_search_key(const struct loop_order_graph *graph, int64_t points);
/* The cache maps a hash to choice[count]; NULL: there is no cache. lookup: false if the answer is
 * not cached. */
bool search_cache_lookup(const struct map *search_cache, const struct search_key *search_key,
        int count, int *choice);
void search_cache_store(struct map *search_cache, const struct search_key *search_key, int count,
        const int *choice);

#endif
