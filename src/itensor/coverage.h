/* Coverage: which elements the tiles of a walk touch in one iteration of its first loops, needed to
 * size a converter's buffer and to compare two orders. */
#ifndef STC_COVERAGE_H
#define STC_COVERAGE_H
#include "itensor/itensor.h"

/* NULL: both walks cover the same elements in the loops from `first` on. Else how they differ, or
 * why that is unknown. */
const char *coverage_differs(struct arena *arena, struct walk left, struct walk right, int first);
/* Number of covered coordinates in each data dim. Only valid where coverage_differs returns
 * NULL. */
void coverage_shape(struct arena *arena, struct walk walk, int first, int64_t *shape);

/* How a walk moves along one data dim of its box, for a fixed iteration of the loops before
 * `first`. */
struct axis {
	int64_t low;    /* first data coordinate */
	int64_t extent; /* coordinates of the box */
	int64_t start;  /* box coordinate of the first tile */
	int64_t *step;  /* [loops] box coordinates that a loop moves; 0 before `first` */
};

/* packed: uncovered coordinates take no room in the box; false where the remaining ones are not
 * reached by constant steps. */
bool coverage_axis(
        struct arena *arena, struct walk walk, int first, int dim, bool packed, struct axis *axis);

#endif
