/* Which elements the tiles of a walk cover while its first loops stand still. */
#ifndef STC_COVERAGE_H
#define STC_COVERAGE_H
#include "model/itensor.h"

/* NULL: both walks cover the same elements in the loops from `first` on.  Else how they differ, or why that is not known. */
const char *coverage_differs(struct arena *arena, struct walk left, struct walk right, int first);
/* The covered coordinates in each data dim: the least box that holds the elements.  Only where coverage_differs gave NULL. */
void coverage_shape(struct arena *arena, struct walk walk, int first, int64_t *shape);

#endif
