/* A map from MLIR pointers to what was read for them. It is only looked up, never walked, so that
 * addresses cannot influence the result. */
#include "import/read.h"

#define SLOTS_FIRST 256

static size_t slot_of(const struct pointer_map *map, const void *key)
{
	uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
	size_t slot = (size_t)(hash >> 20) & (map->slots - 1);
	while (map->entry[slot].key && map->entry[slot].key != key)
		slot = (slot + 1) & (map->slots - 1);
	return slot;
}

const struct pointer_entry *pointer_find(const struct pointer_map *map, const void *key)
{
	if (!map->slots)
		return NULL;
	const struct pointer_entry *entry = &map->entry[slot_of(map, key)];
	return entry->key ? entry : NULL;
}

static void grow(struct pointer_map *map)
{
	struct pointer_map larger = { .arena = map->arena,
		.slots = map->slots ? map->slots * 4 : SLOTS_FIRST,
		.count = map->count };
	larger.entry = ARENA_ARRAY(map->arena, struct pointer_entry, larger.slots);
	for (size_t i = 0; i < map->slots; i++)
		if (map->entry[i].key)
			larger.entry[slot_of(&larger, map->entry[i].key)] = map->entry[i];
	*map = larger;
}

void pointer_set(struct pointer_map *map, const void *key, const void *value)
{
	if (map->count * 2 >= map->slots)
		grow(map);
	struct pointer_entry *entry = &map->entry[slot_of(map, key)];
	map->count += entry->key == NULL;
	*entry = (struct pointer_entry){ .key = key, .value = value };
}
