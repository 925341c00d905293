/* Open addressing with linear probing. */
#include "base/map.h"
#include <string.h>

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed)
{
	const unsigned char *byte = data;
	uint64_t hash = seed ^ 0xcbf29ce484222325u;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3u;
	return hash;
}

struct map map_new(struct arena *arena)
{
	return (struct map){ .arena = arena };
}

/* The slot of the key, or the free slot where it belongs. */
static uint32_t *find_slot(const struct map *map, const char *key, uint64_t hash)
{
	for (size_t i = hash & (map->slots - 1);; i = (i + 1) & (map->slots - 1)) {
		uint32_t *slot = &map->slot[i];
		if (!*slot)
			return slot;
		const struct map_entry *entry = &map->entries.data[*slot - 1];
		if (entry->hash == hash && !strcmp(entry->key, key))
			return slot;
	}
}

static void grow(struct map *map)
{
	map->slots = map->slots ? 2 * map->slots : 16;
	map->slot = ARENA_ARRAY(map->arena, uint32_t, map->slots);
	for (size_t i = 0; i < map->entries.count; i++) {
		const struct map_entry *entry = &map->entries.data[i];
		*find_slot(map, entry->key, entry->hash) = (uint32_t)i + 1;
	}
}

void *map_get(const struct map *map, const char *key)
{
	if (!map->slots)
		return NULL;
	uint32_t index = *find_slot(map, key, hash_bytes(key, strlen(key), 0));
	return index ? map->entries.data[index - 1].value : NULL;
}

void map_set(struct map *map, const char *key, void *value)
{
	uint64_t hash = hash_bytes(key, strlen(key), 0);
	if (4 * (map->entries.count + 1) > 3 * map->slots)
		grow(map);
	uint32_t *slot = find_slot(map, key, hash);
	if (*slot) {
		map->entries.data[*slot - 1].value = value;
		return;
	}
	struct map_entry entry = {
		.key = arena_copy(map->arena, key, strlen(key) + 1), .value = value, .hash = hash
	};
	VEC_PUSH(map->arena, &map->entries, entry);
	*slot = (uint32_t)map->entries.count;
}
