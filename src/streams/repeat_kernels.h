/* An elementwise kernel whose result is read several times works several times where that keeps less. */
#ifndef STC_REPEAT_KERNELS_H
#define STC_REPEAT_KERNELS_H
#include "streams/buffer_readers.h"
#include "streams/streams.h"

bool is_read_enough(const struct readers_of *readers);    /* every reader makes many products of each number */
void repeat_kernels(struct module *module, struct block *block);           /* while forks are placed, after plan_buffers */
const struct type *type_once(struct module *module, const struct type *stream);          /* without the outermost loop, if that sends the same again; else NULL */
/* At each point of the loop the words come again. */
bool stands_still(const struct itensor *order, int loop);
/* The same loops behind `first` more, of `times` turns, or without so many. */
const struct type *moved_loops(struct module *module, const struct type *stream, int first, int64_t times, const struct run_time_trip *trips);
#endif
