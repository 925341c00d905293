/* A cache of a search: maps arrays of numbers, all of one length, to values of one size. */
#ifndef STC_MEMO_H
#define STC_MEMO_H
#include "base/arena.h"
#include <stdint.h>

struct memo {
	struct arena *arena;
	size_t key, value_bytes; /* bytes */
	size_t entries, slots;
	uint64_t *hash; /* [slots] hash of the entry; 0: free */
	char **entry;   /* [slots] the value, then its key */
};

struct memo memo_new(struct arena *arena, int numbers, size_t value_bytes);
/* The value of these numbers, zeroed at its first use. Its address does not change. */
void *memo_at(struct memo *memo, const int *numbers);

#endif
