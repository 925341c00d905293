/* Spreads what a launch reads and writes evenly over the memory channels. */
#ifndef STC_BALANCE_CHANNELS_H
#define STC_BALANCE_CHANNELS_H
#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

struct channel_port {
	int buffer;    /* the first port of its buffer */
	int channel;   /* ports of a buffer have the same one */
	int64_t bytes; /* of a launch, at most */
	bool engine;   /* it brings the engine's weights */
	bool far;      /* may its buffer be in any channel, or only in the next ones? */
};

/* Changes the channels of ports, below `channels`, where that makes a launch clearly shorter. */
void balance_channels(struct arena *arena, struct channel_port *port, int ports, int channels);
#endif
