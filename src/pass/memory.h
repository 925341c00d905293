/* Images of tensors in memory: segments of a buffer. */
#ifndef STC_MEMORY_H
#define STC_MEMORY_H
#include "pass/process.h"

/* The moving part of a sequence: what lies in memory, in order; re-accessed dims are not stored twice. */
struct image {
	struct sequence order;
	int64_t *pitch;           /* [order.dims] image words between neighbours; 0 where the dim sends again */
	int64_t words;
};

struct image image_of(struct arena *arena, struct sequence order);
/* `lanes` lanes of every word, the first at lane `from`, as a segment of signature entry `index` at image element `offset`. */
const struct attr *image_segment(struct design *design, bool output, int index, const struct image *image, int64_t from, int64_t lanes, int64_t offset);
/* A tensor as it is, row-major. */
const struct attr *plain_segment(struct design *design, bool output, int index, int64_t elements, int64_t offset);
bool is_state(struct design *design, int input);
const char *signature_name(struct design *design, bool output, int index);
#endif
