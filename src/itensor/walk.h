/* Internal helpers for building and comparing walks. */
#ifndef STC_WALK_H
#define STC_WALK_H
#include "itensor/itensor.h"

/* a walk with the tiles of `like`, no loops, and room for `loops` */
struct walk walk_new(struct arena *arena, struct walk like, int loops);
/* Adds an innermost loop; its step is `scale` times the vector. */
void walk_push(struct walk *walk, int64_t trip, const struct run_time_trip *run_time,
        const int64_t *vector, int64_t scale);
const struct run_time_trip *walk_run_time(struct walk walk, int loop); /* NULL: fixed */
/* Is `times` steps of `left` the same distance as `trip` steps of `right`? */
bool walk_same_pace(
        int rank, const int64_t *left, int64_t times, const int64_t *right, int64_t trip);

#endif
