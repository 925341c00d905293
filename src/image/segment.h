/* Reads a segment of a memory image from the attributes of a module (docs/ir.md, SEGMENT, and
 * stream.derived_from). */
#ifndef STC_SEGMENT_H
#define STC_SEGMENT_H
#include "ir/ir.h"
#include "image/image.h"

/* NULL, or what is wrong. Items that `attr` lacks are 0 or ""; the caller sets the bytes of
 * elements. */
const char *segment_read(struct arena *arena, const struct attr *attr, struct segment *segment);
#endif
