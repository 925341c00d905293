/* Runs: how a loop nest that loads from a memory port is spelled so that the HLS compiler finds
 * bursts. It finds them in a loop whose own counter addresses consecutive words (UG1399), not in a
 * nest whose counters the loop advances itself (emit/hls_nest.c). So where trip counts are known at
 * run time, the innermost loops over consecutive words are one loop, and the others stand around
 * it: each run waits for memory once. */
#ifndef STC_PORT_RUN_H
#define STC_PORT_RUN_H
#include "ir/ir.h"

#define PORT_RUN_LEAST 16 /* words: a burst; for shorter runs waiting takes longer than it saves */

/* The only loop of a block with nothing else but constants and addresses; NULL: there is none. */
struct op *port_run_only_loop(const struct block *block);
/* Does a run begin with `inner`, the only loop of `outer`? Then they are no single pipeline. */
bool port_run_begins(const struct op *outer, const struct op *inner);
/* Is the whole nest a run with a trip count that is known at run time? */
bool port_run_is(const struct op *nest);
/* Does the loop advance the counters of its nest itself? nest: the outermost loop of the
 * pipeline. */
bool port_run_counts_by_hand(const struct op *nest);
/* Does some loop of the process access consecutive words of an argument, so that they travel in
 * bursts? */
bool port_run_bursts(const struct op *process, int argument);

#endif
