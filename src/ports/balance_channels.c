/* Spreads what a launch reads and writes evenly over the memory channels.
 * Before: ports that share an adapter share a channel, so two ports of long caches that found no
 * adapters of their own take twice as long as the other ports of their loaders, which wait.
 * After: one of the buffers is in the channel that has least to do; the adapter reaches both. */
#include "ports/balance_channels.h"
#include <stdlib.h>

#define SHORTER 32 /* a move has to save one part in so many of the time */

struct move {
	int buffer, to;
	int64_t most; /* bytes of the most laden channel after it */
};

static int most_laden(const int64_t *bytes, int channels)
{
	int most = 0;
	for (int c = 1; c < channels; c++)
		most = bytes[c] > bytes[most] ? c : most;
	return most;
}

/* The channel with least bytes, and of equal ones the nearest: fewer switches lie between. */
static int least_laden(const int64_t *bytes, int channels, int from)
{
	int best = from;
	for (int c = 0; c < channels; c++) {
		int64_t less = bytes[best] - bytes[c];
		if (less > 0 || (!less && abs(c - from) < abs(best - from)))
			best = c;
	}
	return best;
}

/* Moves all ports of the buffer. */
static void move_buffer(struct channel_loads *loads, int64_t *bytes, int buffer, int to)
{
	for (int i = 0; i < loads->ports; i++) {
		if (loads->buffer[i] != buffer)
			continue;
		bytes[loads->channel[i]] -= loads->bytes[i];
		bytes[to] += loads->bytes[i];
		loads->channel[i] = to;
	}
}

/* The move out of the most laden channel after which the most laden one has least. */
static struct move best_move(struct channel_loads *loads, int64_t *bytes)
{
	int from = most_laden(bytes, loads->channels);
	int to = least_laden(bytes, loads->channels, from);
	struct move best = { -1, to, bytes[from] };
	for (int i = 0; i < loads->ports; i++) {
		if (loads->channel[i] != from)
			continue;
		move_buffer(loads, bytes, loads->buffer[i], to);
		int64_t most = bytes[most_laden(bytes, loads->channels)];
		if (most < best.most)
			best = (struct move){ loads->buffer[i], to, most };
		move_buffer(loads, bytes, loads->buffer[i], from);
	}
	return best;
}

void balance_channels(struct arena *arena, struct channel_loads *loads)
{
	int64_t *bytes = ARENA_ARRAY(arena, int64_t, loads->channels);
	for (int i = 0; i < loads->ports; i++)
		bytes[loads->channel[i]] += loads->bytes[i];
	for (int moves = 0; moves < loads->ports; moves++) {
		int64_t now = bytes[most_laden(bytes, loads->channels)];
		struct move best = best_move(loads, bytes);
		if (best.buffer < 0 || best.most > now - now / SHORTER)
			return;
		move_buffer(loads, bytes, best.buffer, best.to);
	}
}
