/* Caches the answers of the searches for parallelism, loop orders and register tiles by a hash of
 * their problem, because fit trials build many designs that share them. */
#ifndef STC_SEARCH_CACHE_H
#define STC_SEARCH_CACHE_H
#include "base/map.h"
#include "schedule/loop_orders.h"
#include "schedule/parallelism.h"
#include "schedule/register_tile.h"

/* Hash of everything that the answer depends on. */
struct search_key {
	char hex[65];
};

struct search_key parallelism_search_key(
        const struct parallelism_space *space, int64_t points, const int *choice);
struct search_key loop_order_search_key(const struct loop_order_graph *graph, int64_t points);
struct search_key register_tile_search_key(
        const struct tile_kernel *kernel, const struct tile_limits *limits);
/* The cache maps a hash to choice[count]; NULL: there is no cache. lookup: false if the answer is
 * not cached. */
bool search_cache_lookup(const struct map *search_cache, const struct search_key *search_key,
        int count, int *choice);
void search_cache_store(struct map *search_cache, const struct search_key *search_key, int count,
        const int *choice);
/* The same for a register tile. */
bool search_cache_lookup_tile(const struct map *search_cache, const struct search_key *search_key,
        struct tile_choice *choice);
void search_cache_store_tile(struct map *search_cache, const struct search_key *search_key,
        const struct tile_kernel *kernel, const struct tile_choice *choice);

#endif
