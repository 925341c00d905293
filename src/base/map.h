/* A hash map from text to pointer that is walked in the order of insertion, so that output is
 * deterministic. */
#ifndef STC_MAP_H
#define STC_MAP_H
#include "base/arena.h"
#include <stdint.h>

struct map_entry {
	const char *key;
	void *value;
	uint64_t hash;
};

struct map {
	struct arena *arena;
	VEC(struct map_entry) entries; /* insertion order */
	uint32_t *slot;                /* open addressing: entry index + 1, 0 = free */
	size_t slots;
};

struct map map_new(struct arena *arena);
void *map_get(const struct map *map, const char *key);       /* NULL if absent */
void map_set(struct map *map, const char *key, void *value); /* key is copied */
/* FNV-1a, the same on every machine */
uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);

#endif
