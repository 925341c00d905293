/* Words of a state that are dealt out to loaders, each with memory ports of its own, one word to
 * each in turn. */
#ifndef STC_DEALT_H
#define STC_DEALT_H
#include "ports/memory_image.h"

/* of a loader: then what all loaders of a state bring stands side by side */
#define FEW_PORTS 2

struct port_interleave {
	int parts;          /* loaders; 1: one has all words */
	bool half_words;    /* each word of the load is two */
	int head_loop;      /* the image's first loop over words of one head */
	int64_t tile, lead; /* words for one turn of it; in front of a head's first */
	bool even;          /* all loaders have as many words of a tile */
};

/* Loops outside of an image, in which all of it comes again: of the tiles of a launch. */
int image_repeat_loops(const struct image *image);
/* How the words of `bits` bits of a state that one load reads are dealt out.  halves: they may
 * come as two of half as many lanes, which the image has then. */
struct port_interleave port_interleave_of(struct design *design, struct image *image,
        const char *state, int64_t bits, bool half_words);
/* what loader `number` reads; its `words` are those of its buffer */
struct image port_interleave_part(struct arena *arena, const struct image *image,
        const struct port_interleave *port_interleave, int number);
/* words behind a buffer's last that a loader may read, which nobody takes */
int64_t port_interleave_padding(const struct port_interleave *port_interleave);
/* the loaders' FIFOs, and the process that takes a word from each in turn */
struct value **port_interleave_merge(struct design *design, const struct image *image,
        const struct port_interleave *port_interleave, struct value *out);
#endif
