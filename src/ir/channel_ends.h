/* Who writes and who reads the channels of main, at hardware level. */
#ifndef STC_CHANNEL_ENDS_H
#define STC_CHANNEL_ENDS_H
#include "ir/ir.h"

struct channel_ends {
	int writers, readers; /* calls of main that write it, and that read it */
	int writer, reader;   /* the last of each, in the order of calls; -1: there is none */
	const struct op *writing, *reading; /* and their processes; NULL: there is none */
};

/* [channels of main, in order]. Lends the ids of the channels' values as indices, so one thread at
 * a time may ask of a module. Takes steps linear in the operations of the module and the
 * arguments of its processes. */
struct channel_ends *channel_ends_of(struct arena *arena, const struct module *module);
/* The channel, an argument of the process, that the operation uses, and whether it writes it; NULL:
 * none, as of a release, which only ends what an acquire began. */
const struct value *channel_used(const struct op *op, bool *writes);

#endif
