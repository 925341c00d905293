/* Images of tensors in memory: segments of a buffer. */
#ifndef STC_MEMORY_H
#define STC_MEMORY_H
#include "process/process_builder.h"

/* The moving part of a sequence: what lies in memory, in order; re-accessed dims are not stored
 * twice. */
struct image {
	struct sequence order;
	/* [order.dims] image words between neighbours; 0 where the dim sends again */
	int64_t *pitch;
	int64_t words;
	/* elements that stand side by side in the buffer, and from the first of them to the next
	 * ones'; 0: all do */
	int64_t run, run_pitch;
};

struct image image_of(struct arena *arena, struct sequence order);
/* `lanes` lanes of every word, the first at lane `from`, as a segment of signature entry `index`
 * at image element `offset`. */
const struct attr *image_segment(struct design *design, bool output, int index,
        const struct image *image, int64_t from, int64_t lanes, int64_t offset);
/* Elements base … base + elements - 1 of a tensor as it is, row-major. */
const struct attr *plain_segment(struct design *design, bool output, int index, int64_t base,
        int64_t elements, int64_t offset);
/* What a store writes: its words, at most as wide as a memory port, and the FIFO that brings
 * them. */
const struct type *store_words(struct design *design, const struct op *store);
struct value *store_fifo(struct design *design, const struct op *store);
const struct attr *strided_segment(struct design *design, int input, int64_t base, int dims,
        const int64_t *trip, const int64_t *stride, int64_t offset);
bool is_state(struct design *design, int input);
const char *signature_name(struct design *design, bool output, int index);

/* One process and one memory port, an element or a full word wide, that serve many loads, or
 * many stores, in program order. */
struct shared_port {
	const struct type *scalar;
	int64_t lanes; /* of the memory port's words */
	bool writes;
	/* is the op one of them? */
	bool (*accepts)(const struct op *op, const struct type *scalar);
	/* adds its nest and its segments */
	void (*lower_access)(struct shared_port *shared, const struct op *op);
	struct process process;
	struct value *port; /* as the process sees it */
	int64_t elements;   /* of the image so far */
	VEC(const struct attr *) segments;
	/* casts that stand between elements and wider words */
	VEC(struct value *) from, to;
	VEC(const struct type *) stream; /* of their wider sides */
	VEC(int64_t) layers;
	VEC(const struct run_time_trip *) last_chunk;
};

void shared_port_lower(struct design *design, const struct block *body, const char *name,
        struct shared_port *shared);
/* stream: the type of the wider side */
void shared_port_cast(struct shared_port *shared, struct value *from, struct value *to,
        const struct type *stream);

/* of one lane: the scalar */
const struct type *vector_of(struct module *module, const struct type *scalar, int64_t lanes);
/* that the loader of operands without ports of their own gives a cycle, where their order has
 * such words */
int64_t shared_load_lanes(const struct type *scalar, bool full);
/* Can the channel of small operands, which has `beside` to bring, bring as much more while a
 * channel brings a layer's part of the weights? */
bool channel_has_time(int64_t engine_words, int64_t operand_words, int64_t extra_words);
#endif
