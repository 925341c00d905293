/* Spreads what a launch reads and writes evenly over the memory channels.
 * Before: ports that share an adapter share a channel, so two ports of long caches that found no
 * adapters of their own take twice as long as the other ports of their loaders, which wait.
 * After: each of these buffers is in another channel; the adapter reaches both.
 * The engine's weights and all other operands are needed at different times, so the time of a
 * launch is about the sum of what the most laden channel has of the one and of the other. Each of
 * the two is spread by itself: the largest buffer goes first, each to the channel that has least. */
#include "ports/balance_channels.h"
#include <stdlib.h>

#define SHORTER 32 /* another order has to save one part in so many of the time */

struct balance {
	const struct channel_loads *loads;
	bool engine;     /* what is spread: the engine's weights, or all others */
	int64_t *size;   /* [ports] bytes of the buffers that are spread, of all their ports */
	int64_t *bytes;  /* [channels] */
	int *channel_of; /* [ports] of buffers */
};

static int64_t largest(const int64_t *number, int count)
{
	int64_t most = 0;
	for (int i = 0; i < count; i++)
		most = number[i] > most ? number[i] : most;
	return most;
}

/* Bytes of the most laden channel, of the engine's weights or of all others. */
static int64_t most_bytes(struct arena *arena, const struct channel_loads *loads, bool engine)
{
	int64_t *bytes = ARENA_ARRAY(arena, int64_t, loads->channels);
	for (int i = 0; i < loads->ports; i++)
		bytes[loads->channel[i]] += loads->engine[i] == engine ? loads->bytes[i] : 0;
	return largest(bytes, loads->channels);
}

/* The channel with least bytes, and of equal ones the nearest to where the buffer is. */
static int least_laden(const struct balance *b, int from)
{
	int best = from;
	for (int c = 0; c < b->loads->channels; c++) {
		int64_t less = b->bytes[best] - b->bytes[c];
		if (less > 0 || (!less && abs(c - from) < abs(best - from)))
			best = c;
	}
	return best;
}

static int largest_buffer(const struct balance *b)
{
	int best = 0;
	for (int i = 1; i < b->loads->ports; i++)
		best = b->size[i] > b->size[best] ? i : best;
	return best;
}

static void spread(struct balance *b)
{
	const struct channel_loads *loads = b->loads;
	for (int i = 0; i < loads->ports; i++) {
		b->channel_of[loads->buffer[i]] = loads->channel[i];
		b->size[loads->buffer[i]] += loads->engine[i] == b->engine ? loads->bytes[i] : 0;
	}
	for (int left = loads->ports; left > 0; left--) {
		int buffer = largest_buffer(b);
		if (!b->size[buffer])
			return;
		int to = least_laden(b, b->channel_of[buffer]);
		b->channel_of[buffer] = to;
		b->bytes[to] += b->size[buffer];
		b->size[buffer] = 0;
	}
}

void balance_channels(struct arena *arena, struct channel_loads *loads)
{
	int64_t time = most_bytes(arena, loads, false) + most_bytes(arena, loads, true);
	for (int engine = 0; engine < 2; engine++) {
		struct balance b = { .loads = loads,
			.engine = engine,
			.size = ARENA_ARRAY(arena, int64_t, loads->ports + 1),
			.bytes = ARENA_ARRAY(arena, int64_t, loads->channels),
			.channel_of = ARENA_ARRAY(arena, int, loads->ports + 1) };
		int64_t before = most_bytes(arena, loads, engine);
		spread(&b);
		if ((before - largest(b.bytes, loads->channels)) * SHORTER < time)
			continue;
		for (int i = 0; i < loads->ports; i++)
			loads->channel[i] = b.channel_of[loads->buffer[i]];
	}
}
