/* Open addressing with linear probing. */
#include "base/memo.h"
#include <string.h>

#define SLOTS_FIRST 1024
#define MIX UINT64_C(0x9e3779b97f4a7c15)

struct memo memo_new(struct arena *arena, int numbers, size_t value_bytes)
{
	return (struct memo){ .arena = arena,
		.key = sizeof(int) * (size_t)numbers,
		.value_bytes = (value_bytes + 15) / 16 * 16 };
}

static uint64_t hash_of(const struct memo *memo, const int *numbers)
{
	uint64_t hash = MIX;
	for (size_t i = 0; i < memo->key / sizeof *numbers; i++) {
		hash = (hash ^ (uint64_t)(unsigned)numbers[i]) * MIX;
		hash ^= hash >> 29;
	}
	return hash ? hash : 1;
}

/* The slot of the entry, or the free slot where it belongs. */
static size_t find_slot(const struct memo *memo, const int *numbers, uint64_t hash)
{
	size_t slot = hash & (memo->slots - 1);
	while (memo->hash[slot] &&
	        (memo->hash[slot] != hash ||
	                memcmp(memo->entry[slot] + memo->value_bytes, numbers, memo->key) != 0))
		slot = (slot + 1) & (memo->slots - 1);
	return slot;
}

static void grow(struct memo *memo)
{
	struct memo old = *memo;
	memo->slots = old.slots ? 2 * old.slots : SLOTS_FIRST;
	memo->hash = ARENA_ARRAY(memo->arena, uint64_t, memo->slots);
	memo->entry = ARENA_ARRAY(memo->arena, char *, memo->slots);
	for (size_t i = 0; i < old.slots; i++) {
		if (!old.hash[i])
			continue;
		size_t slot = find_slot(memo,
		        (const int *)(const void *)(old.entry[i] + old.value_bytes), old.hash[i]);
		memo->hash[slot] = old.hash[i];
		memo->entry[slot] = old.entry[i];
	}
}

void *memo_at(struct memo *memo, const int *numbers)
{
	if (2 * (memo->entries + 1) > memo->slots)
		grow(memo);
	uint64_t hash = hash_of(memo, numbers);
	size_t slot = find_slot(memo, numbers, hash);
	if (memo->hash[slot])
		return memo->entry[slot];
	memo->entries++;
	memo->hash[slot] = hash;
	memo->entry[slot] = arena_alloc(memo->arena, memo->value_bytes + memo->key);
	memcpy(memo->entry[slot] + memo->value_bytes, numbers, memo->key);
	return memo->entry[slot];
}
