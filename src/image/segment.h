/* A segment as attributes of a module have it (docs/ir.md, SEGMENT, and stream.derived_from). */
#ifndef STC_SEGMENT_H
#define STC_SEGMENT_H
#include "ir/ir.h"
#include "image/image.h"

/* NULL, or what is wrong.  What `attr` does not say is 0 or ""; bytes of elements are the
 * caller's. */
const char *segment_read(struct arena *arena, const struct attr *attr, struct segment *segment);
#endif
