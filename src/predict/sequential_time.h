/* Time of a nest that accesses arrays alone: initiation intervals of its pipelined loops from the
 * dependences through arrays, and cycles by counting its iterations. */
#ifndef STC_SEQUENTIAL_TIME_H
#define STC_SEQUENTIAL_TIME_H
#include "predict/timing.h"

/* What an array of a nest takes of a die. */
struct nest_memory {
	int64_t lut, bram18, uram;
	int64_t instead; /* BRAM18 if it is not in URAM */
};

/* Iterations of the pipelined loop from a write of an element to a read of it, at least, by the
 * load's stream.distance; this much: none of them. */
#define SEQUENTIAL_NEVER INT32_MAX

/* Least iterations of a row: a run of a loop whose trips follow from the counter of the loop
 * around, where both are one pipeline. So many iterations ahead the next row's trips are known. */
#define SEQUENTIAL_ROW 8

/* The loop inside that is one pipeline with this one, if its trips follow from this one's counter;
 * else NULL. */
struct op *sequential_rows(const struct op *loop);

/* Pipelines each innermost loop of the nests from this op on with the least interval that its
 * dependences and copies of its arrays allow, and records the cycles of each whole nest
 * (stream.cycles). */
void sequential_schedule(struct module *module, const struct platform *platform, struct op *first);
struct nest_memory sequential_array(int64_t bits, int64_t words, int64_t banks, bool has_uram);
struct nest_memory sequential_copies(const struct nest_memory *array, int64_t copies);
/* Do the arrays of a nest fit on a die, with room for the rest? Their uram becomes 0. */
bool sequential_is_held(const struct platform *platform, int count, struct nest_memory *array);
/* Reads of the array in a cycle of some pipelined loop below, at most. */
int64_t sequential_reads(struct arena *arena, const struct block *block, const struct value *array);

#endif
