/* Registers of a FIFO whose writer and reader are on different dies.
 *
 *     writer ─► exit │ entry ─► queue ─► FIFO ─► reader
 *               boundary of two dies
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
	return crossings ? 2 * crossings + 1 : 0;
}

/* Words of the queue: a shift register, which takes half a LUT a bit up to 16 words. */
static inline int64_t crossing_queue(int64_t crossings)
{
	return crossings > 1 ? 32 : 16;
}

/* Words that it takes before the writer waits, however many are on their way. */
static inline int64_t crossing_words(int64_t crossings)
{
	return crossings ? crossing_queue(crossings) - 4 * crossings : 0;
}

/* What the registers of a channel take. */
struct crossing_parts {
	int64_t side; /* flip-flops on each side of a boundary */
	/* on the reader's die, if the channel crosses one boundary or several */
	struct resources queue, far_queue;
};

struct crossing_parts crossing_parts(const struct platform *platform, int64_t bits);

/* Adds it to what its dies use; with sign -1, subtracts it. */
static inline void crossing_add(const struct crossing_parts *parts, int writer, int reader,
        int sign, struct resources *used)
{
	int low = writer < reader ? writer : reader;
	int high = writer + reader - low;
	const struct resources *queue = high - low > 1 ? &parts->far_queue : &parts->queue;
	if (low == high)
		return;
	for (int die = low; die <= high; die++)
		used[die].ff += sign * parts->side * (die > low && die < high ? 2 : 1);
	used[reader].lut += sign * queue->lut;
	used[reader].ff += sign * queue->ff;
}
#endif
