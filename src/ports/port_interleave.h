/* Interleaves the words of a state over loaders with memory ports of their own: word w goes to
 * loader w mod parts. */
#ifndef STC_PORT_INTERLEAVE_H
#define STC_PORT_INTERLEAVE_H
#include "ports/memory_image.h"

/* ports of a loader: up to these, the ports of all loaders of a state are adjacent adapters */
#define FEW_PORTS 2

struct port_interleave {
	int parts;       /* loaders; 1: no interleaving */
	bool half_words; /* each word of the load is two */
	int head_loop;   /* first loop of the image over the words of one head */
	/* words of a head for one iteration of that loop's bound; words before the first head */
	int64_t tile, head_start;
	bool even; /* all loaders have as many words of a tile */
};

/* number of loops outside of an image that repeat all of it: over the tiles of a launch */
int image_repeat_loops(const struct image *image);
/* How the words of `bits` bits of a state that one load reads are interleaved. half_words: they may
 * be split in two of half as many lanes; then the image is changed so. */
struct port_interleave port_interleave_of(struct design *design, struct image *image,
        const char *state, int64_t bits, bool half_words);
/* what loader `number` reads; its `words` are those of its buffer */
struct image port_interleave_part(struct arena *arena, const struct image *image,
        const struct port_interleave *port_interleave, int number);
/* words after a buffer's last one that a loader may read and nobody uses */
int64_t port_interleave_padding(const struct port_interleave *port_interleave);
/* adds the process that takes a word from each loader in rotation; returns the loaders' FIFOs */
struct value **port_interleave_merge(struct design *design, const struct image *image,
        const struct port_interleave *port_interleave, struct value *out);
#endif
