/* What a search already knows: from arrays of numbers, all of one length, to whatever is kept
 * about them. */
#ifndef STC_MEMO_H
#define STC_MEMO_H
#include "base/arena.h"
#include <stdint.h>

struct memo {
	struct arena *arena;
	size_t key, value_bytes; /* bytes */
	size_t entries, slots;
	uint64_t *hash; /* [slots] of the entry there; 0: free */
	char **entry;   /* [slots] what is kept, then its key */
};

struct memo memo_new(struct arena *arena, int numbers, size_t value_bytes);
/* What is kept about these numbers; zeroed when they are first asked for.  Stays where it is. */
void *memo_at(struct memo *memo, const int *numbers);

#endif
