/* Words of a state that are dealt out to loaders, each with memory ports of its own, one word to each in turn. */
#ifndef STC_DEALT_H
#define STC_DEALT_H
#include "ports/memory.h"

#define FEW_PORTS 2           /* of a loader: then what all loaders of a state bring stands side by side */

struct dealt {
	int parts;                /* loaders; 1: one has all words */
	bool halves;              /* each word of the load is two */
	int inside;               /* the image's first loop over words of one head */
	int64_t tile, lead;       /* words for one turn of it; in front of a head's first */
	bool even;                /* all loaders have as many words of a tile */
};

/* Loops outside of an image, in which all of it comes again: of the tiles of a launch. */
int loops_again(const struct image *image);
/* How the words of `bits` bits of a state that one load reads are dealt out.  halves: they may come as two of half as many lanes, which the image has then. */
struct dealt dealt_of(struct design *design, struct image *image, const char *state, int64_t bits, bool halves);
struct image dealt_part(struct arena *arena, const struct image *image, const struct dealt *dealt, int number);      /* what loader `number` reads; its `words` are those of its buffer */
int64_t dealt_beyond(const struct dealt *dealt);          /* words behind a buffer's last that a loader may read, which nobody takes */
struct value **dealt_join(struct design *design, const struct image *image, const struct dealt *dealt, struct value *out);       /* the loaders' FIFOs, and the process that takes a word from each in turn */
#endif
