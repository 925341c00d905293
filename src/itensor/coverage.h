/* Which elements the tiles of a walk cover while its first loops stand still. */
#ifndef STC_COVERAGE_H
#define STC_COVERAGE_H
#include "itensor/itensor.h"

/* NULL: both walks cover the same elements in the loops from `first` on.  Else how they differ,
 * or why that is not known. */
const char *coverage_differs(struct arena *arena, struct walk left, struct walk right, int first);
/* The covered coordinates in each data dim: the least box that holds the elements.  Only where
 * coverage_differs gave NULL. */
void coverage_shape(struct arena *arena, struct walk walk, int first, int64_t *shape);

/* How a walk moves along one data dim of its box while the loops before `first` stand still. */
struct axis {
	int64_t low;    /* the first data coordinate */
	int64_t extent; /* coordinates of the box */
	int64_t start;  /* box coordinate of the first tile */
	int64_t *step;  /* [loops] box coordinates that a loop moves; 0 before `first` */
};

/* packed: coordinates that are not covered are left out; false where no straight steps lead over
 * what is left. */
bool coverage_axis(
        struct arena *arena, struct walk walk, int first, int dim, bool packed, struct axis *axis);

#endif
