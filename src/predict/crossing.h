/* Registers of a FIFO whose writer and reader are on different dies.
 *
 *     writer ─► near ─► exit │ entry ─► queue ─► FIFO ─► reader
 *                       boundary of two dies
 *
 * Every boundary has a register on each of its sides, for words and, the other way, for the signal
 * that the queue has room. The queue takes the words that are on their way when the writer learns
 * that it has none, so a word a cycle passes; the FIFO is where its reader is. They are Verilog
 * (runtime/hls/st_crossing.v), put in after synthesis (runtime/hls/crossings.py), as AutoBridge and
 * TAPA do: C++ has no registers in the handshake of a channel, and a process that relays words has
 * to know how many come. */
#ifndef STC_CROSSING_H
#define STC_CROSSING_H
#include "predict/resource.h"

/* Boundaries between dies that the channel crosses. */
static inline int64_t crossings_of(const struct op *channel)
{
	return attr_integer_or(channel, KEY_STREAM_CROSSINGS, 0);
}

/* Cycles that a word takes to its FIFO. */
static inline int64_t crossing_latency(int64_t crossings)
{
	return crossings ? 2 * crossings + 2 : 0;
}

/* Words of the queue: a shift register, which takes half a LUT a bit up to 16 words. */
static inline int64_t crossing_queue(int64_t crossings)
{
	return crossings > 1 ? 32 : 16;
}

/* Words that it takes before the writer waits, however many are on their way. */
static inline int64_t crossing_words(int64_t crossings)
{
	return crossings ? crossing_queue(crossings) - (4 * crossings + 1) : 0;
}

struct resources crossing_cost(const struct platform *platform, int64_t bits, int64_t crossings);
#endif
