/* What the files about walks share. */
#ifndef STC_WALK_H
#define STC_WALK_H
#include "itensor/itensor.h"

/* the tiles of `like`, no loops, room for so many */
struct walk walk_new(struct arena *arena, struct walk like, int loops);
/* A loop inside those that are there: `scale` times the vector. */
void walk_push(struct walk *walk, int64_t trip, const struct run_time_trip *run_time,
        const int64_t *vector, int64_t scale);
const struct run_time_trip *walk_run_time(struct walk walk, int loop); /* NULL: fixed */
/* Do `times` steps of `left` lead as far as `trip` steps of `right`? */
bool walk_same_pace(
        int rank, const int64_t *left, int64_t times, const int64_t *right, int64_t trip);

#endif
