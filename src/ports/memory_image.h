/* Images of tensors in memory: what a buffer holds, in which order, as segments of it. */
#ifndef STC_MEMORY_IMAGE_H
#define STC_MEMORY_IMAGE_H
#include "process/operation_builder.h"

/* The words of a sequence that are in memory, in order: loops that read words repeatedly do not
 * store them twice. */
struct image {
	struct sequence order;
	/* [order.dims] words between two iterations of a loop; 0 where it repeats */
	int64_t *pitch;
	int64_t words;
	/* elements that follow each other in the buffer, and the distance from the start of such a
	 * run to the next; 0: all are one run */
	int64_t run, run_pitch;
	int64_t padding; /* elements of each word in the buffer behind those of the tensor */
};

struct image image_of(struct arena *arena, struct sequence order);
/* Where a segment belongs: an entry of the function's signature, and the first element of the
 * segment in the buffer. */
struct segment_place {
	bool output; /* an output; else an input */
	int index;
	int64_t offset;
};
/* The elements of a tensor that a segment has: base + Σ index * stride, in the order of a
 * loop nest. */
struct segment_walk {
	int64_t base;
	int dims;
	const int64_t *trip, *stride; /* [dims] */
	/* rows of dims + 1 numbers: an element is padding unless Σ index * row < the last number */
	int conditions;
	const struct attr *const *condition;
	int64_t run, run_pitch; /* those of struct image */
};
const struct attr *walk_segment(
        struct design *design, const struct segment_place *place, const struct segment_walk *walk);
/* `lanes` lanes of each word of an image, from lane `from` on, and its padding */
const struct attr *image_segment(struct design *design, const struct segment_place *place,
        const struct image *image, int64_t from, int64_t lanes);
/* elements base … base + elements - 1 of a tensor, row-major */
const struct attr *plain_segment(
        struct design *design, const struct segment_place *place, int64_t base, int64_t elements);
/* Lanes of the memory words for words of so many: a power of two, the others are padding. */
int64_t memory_lanes(int64_t lanes);
/* The word with fewer lanes, or with zeros behind its own. */
struct value *word_of_lanes(struct process *p, struct value *word, const struct type *wanted);
/* What a store writes: the type of its words, at most as wide as a memory port, and the FIFO that
 * brings them. */
const struct type *store_words(struct design *design, const struct op *store);
struct value *store_fifo(struct design *design, const struct op *store);
bool is_state(struct design *design, int input);
const char *signature_name(struct design *design, bool output, int index);

/* One process and one memory port, an element or a full word wide, that many loads or many stores
 * share in program order. */
struct shared_port {
	const struct type *scalar;
	int64_t lanes; /* lanes of the port's words */
	bool writes;
	/* does the op share the port? */
	bool (*accepts)(const struct shared_port *shared, const struct op *op);
	/* adds the op's loop nest and its segments */
	void (*lower_access)(struct shared_port *shared, const struct op *op);
	struct process process;
	struct value *port; /* as an argument of the process */
	int64_t elements;   /* elements of the image so far */
	VEC(const struct attr *) segments;
	/* casts between elements and wider words: FIFOs in and out */
	VEC(struct value *) from, to;
	VEC(const struct type *) stream; /* types of their wider sides */
	VEC(int64_t) layers;
	VEC(const struct run_time_trip *) last_chunk;
};

void shared_port_lower(struct design *design, const struct block *body, const char *name,
        struct shared_port *shared);
/* adds a cast after the process; stream: the type of the wider side */
void shared_port_cast(struct shared_port *shared, struct value *from, struct value *to,
        const struct type *stream);

/* a vector type, or the scalar if lanes is 1 */
const struct type *vector_of(struct module *module, const struct type *scalar, int64_t lanes);
/* Lanes of the words that the shared loader reads per cycle, where a load's order has such words.
 * full: as wide as the port. */
int64_t shared_load_lanes(const struct type *scalar, bool full);
/* Has the channel of small operands, with operand_words to bring, time for extra_words more while a
 * channel brings engine_words of weights? */
bool channel_has_time(int64_t engine_words, int64_t operand_words, int64_t extra_words);
#endif
