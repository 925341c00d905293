/* Computes an elementwise kernel several times where that needs less memory than replaying its
 * result. */
#ifndef STC_RECOMPUTE_KERNELS_H
#define STC_RECOMPUTE_KERNELS_H
#include "streams/shared_buffer_plan.h"
#include "streams/stream_builder.h"

/* Does every reader compute many products of each element? */
bool is_reused_enough(const struct stream_readers *readers);
/* The type without its outermost loop, if that is a replay loop; else NULL. */
const struct type *type_without_replay(struct module *module, const struct type *stream);
/* Does every iteration of the loop repeat the same words? */
bool is_replay_dim(const struct itensor *order, int loop);
/* The same loops inside `first` more, of `times` iterations; first < 0: without so many outer
 * loops. */
const struct type *shift_loops(struct module *module, const struct type *stream, int first,
        int64_t times, const struct run_time_trip *trips);
#endif
