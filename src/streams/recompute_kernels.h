/* An elementwise kernel whose result is read several times works several times where that keeps
 * less. */
#ifndef STC_REPEAT_KERNELS_H
#define STC_REPEAT_KERNELS_H
#include "streams/share_buffers.h"
#include "streams/stream_builder.h"

/* every reader makes many products of each number */
bool is_reused_enough(const struct stream_readers *readers);
/* while forks are placed, after plan_shared_buffers */
void recompute_kernels(struct module *module, struct block *block);
/* without the outermost loop, if that sends the same again; else NULL */
const struct type *type_without_replay(struct module *module, const struct type *stream);
/* At each point of the loop the words come again. */
bool is_replay_dim(const struct itensor *order, int loop);
/* The same loops behind `first` more, of `times` turns, or without so many. */
const struct type *shift_loops(struct module *module, const struct type *stream, int first,
        int64_t times, const struct run_time_trip *trips);
#endif
