/* Spreads what a launch reads and writes evenly over the memory channels. */
#ifndef STC_BALANCE_CHANNELS_H
#define STC_BALANCE_CHANNELS_H
#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

struct channel_loads {
	int ports, channels;
	const int *buffer;    /* [ports] number of its buffer, below `ports` */
	const int64_t *bytes; /* [ports] of a launch, at most */
	const bool *engine;   /* [ports] it brings the engine's weights */
	const bool *far; /* [ports] may its buffer be in any channel, or only in the next ones? */
	int *channel;    /* [ports] below `channels`; ports of a buffer have the same one */
};

/* Moves buffers from the most laden channels to others, as long as that makes a launch clearly
 * shorter. */
void balance_channels(struct arena *arena, struct channel_loads *loads);
#endif
