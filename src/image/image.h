/* Memory images: how host tensors lie in the buffers that memory ports read and write
 * (docs/ir.md, SEGMENT).  Pure functions; used by the evaluator, the packer and, through the
 * manifest, by the runtime. */
#ifndef STC_IMAGE_H
#define STC_IMAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct segment {
	const char *name, *role;
	int64_t offset, base; /* elements: in the image; in the host tensor */
	/* so many stand side by side in the image, the next ones `pitch` behind their first; 0:
	 * all stand side by side */
	int64_t run, pitch;
	int dims;
	const int64_t *trip, *stride; /* [dims] */
	int conditions;
	const int64_t *condition;    /* [conditions][dims + 1] */
	int host_bytes, image_bytes; /* of one element: 1, 2, 4, 8 */
	/* image_bytes is 1, but two elements share a byte of the image, the first in its low
	 * half */
	bool halves;
};

/* of that many image elements */
int64_t segment_bytes(const struct segment *segment, int64_t elements);
int64_t segment_elements(const struct segment *segment); /* image elements */
/* the image element that it is */
int64_t segment_place(const struct segment *segment, int64_t element);
/* image elements from `offset` on, those between runs included */
int64_t segment_span(const struct segment *segment);
/* Host tensor to image and back, elements first … first + count of the segment; `image` and
 * `host` point at the start of the image / host tensor (image_at: element of the image that
 * `image` points at, for streamed packing). Integers are sign-extended or truncated where widths
 * differ. */
void segment_pack(const struct segment *segment, const void *host, void *image, int64_t image_at,
        int64_t first, int64_t count);
/* Of a segment without runs. */
void segment_unpack(const struct segment *segment, const void *image, void *host);
#endif
