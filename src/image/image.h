/* Memory images: how host tensors are laid out in the buffers that memory ports read and write
 * (docs/ir.md, SEGMENT). Pure functions, used by the evaluator, the packer and, through the
 * manifest, by the runtime. */
#ifndef STC_IMAGE_H
#define STC_IMAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct segment {
	const char *name, *role;
	int64_t offset, base; /* first element in the image and in the host tensor */
	/* `run` elements are contiguous in the image, and runs start `pitch` elements from each
	 * other; 0: all are contiguous */
	int64_t run, pitch;
	int dims;
	const int64_t *trip, *stride; /* [dims] */
	int conditions;
	const int64_t *condition;    /* [conditions][dims + 1] */
	int host_bytes, image_bytes; /* bytes of an element: 1, 2, 4 or 8 */
	/* two elements share a byte of the image, the first in its low half; image_bytes is 1 */
	bool halves;
};

/* bytes of so many image elements */
int64_t segment_bytes(const struct segment *segment, int64_t elements);
int64_t segment_elements(const struct segment *segment); /* number of image elements */
/* position in the image of an element of the segment */
int64_t segment_place(const struct segment *segment, int64_t element);
/* image elements from `offset` to its end, gaps between runs included */
int64_t segment_span(const struct segment *segment);
/* Copies elements first … first + count of the segment from a host tensor to an image. `host` and
 * `image` point to their starts; image_at: image element that `image` points to, for packing in
 * pieces. Integers are sign-extended or truncated where sizes differ. */
void segment_pack(const struct segment *segment, const void *host, void *image, int64_t image_at,
        int64_t first, int64_t count);
/* Copies a whole segment without runs from an image to a host tensor. */
void segment_unpack(const struct segment *segment, const void *image, void *host);
#endif
