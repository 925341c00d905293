/* Spreads what a launch reads and writes evenly over the memory channels.
 * Before: ports that share an adapter share a channel, so two ports of long caches that found no
 * adapters of their own take twice as long as the other ports of their loaders, which wait.
 * After: one of these buffers is in the next channel; the adapter reaches both.
 * What an adapter reads and writes word by word may be in any channel.
 * The engine's weights stay where they are. All else is needed at other times than these, so it is
 * spread by itself: the largest buffer first, each to the channel that has least of it. */
#include "ports/balance_channels.h"
#include <stdlib.h>

#define SHORTER 8 /* the new places have to save one part in so many of the time */

struct balance {
	int ports, channels;
	int64_t *size;      /* [ports] bytes of the buffers that are spread, of all their ports */
	int64_t *own, *all; /* [channels] bytes of what is spread, and of all */
	int *place;         /* [ports] channels of the buffers */
	bool *near;         /* [ports] may the buffer be in the next channels only? */
};

static int64_t largest(const int64_t *number, int count)
{
	int64_t most = 0;
	for (int i = 0; i < count; i++)
		most = number[i] > most ? number[i] : most;
	return most;
}

/* The channel with least of what is spread; of equal ones the buffer's own, else that with least in
 * all. near: only the next ones are asked. */
static int least_laden(const struct balance *b, int from, bool near)
{
	int best = from;
	for (int c = 0; c < b->channels; c++) {
		int64_t less = b->own[best] - b->own[c];
		bool fewer = best != from && b->all[c] < b->all[best];
		bool better = less > 0 || (!less && fewer);
		if (better && (!near || abs(c - from) <= 1))
			best = c;
	}
	return best;
}

static int largest_buffer(const struct balance *b)
{
	int best = 0;
	for (int i = 1; i < b->ports; i++)
		best = b->size[i] > b->size[best] ? i : best;
	return best;
}

static void spread(struct balance *b)
{
	for (int left = b->ports; left > 0; left--) {
		int buffer = largest_buffer(b);
		if (!b->size[buffer])
			return;
		int to = least_laden(b, b->place[buffer], b->near[buffer]);
		b->place[buffer] = to;
		b->own[to] += b->size[buffer];
		b->all[to] += b->size[buffer];
		b->size[buffer] = 0;
	}
}

void balance_channels(struct arena *arena, struct channel_port *port, int ports, int channels)
{
	struct balance b = { .ports = ports,
		.channels = channels,
		.size = ARENA_ARRAY(arena, int64_t, ports + 1),
		.own = ARENA_ARRAY(arena, int64_t, channels),
		.all = ARENA_ARRAY(arena, int64_t, channels),
		.place = ARENA_ARRAY(arena, int, ports + 1),
		.near = ARENA_ARRAY(arena, bool, ports + 1) };
	int64_t *before = ARENA_ARRAY(arena, int64_t, channels);
	for (int i = 0; i < ports; i++) {
		b.place[port[i].buffer] = port[i].channel;
		b.near[port[i].buffer] |= !port[i].far;
		before[port[i].channel] += port[i].bytes;
		b.size[port[i].buffer] += port[i].engine ? 0 : port[i].bytes;
		b.all[port[i].channel] += port[i].engine ? port[i].bytes : 0;
	}
	spread(&b);
	int64_t time = largest(before, channels);
	if ((time - largest(b.all, channels)) * SHORTER < time)
		return;
	for (int i = 0; i < ports; i++)
		port[i].channel = b.place[port[i].buffer];
}
