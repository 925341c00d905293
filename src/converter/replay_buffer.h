/* A converter that keeps the order and replays some words, a few at a time, before the next ones
 * come. One process pops each word once, pushes it as it comes, and pushes the stored word in later
 * iterations: nothing waits for a whole block. */
#ifndef STC_REPLAY_BUFFER_H
#define STC_REPLAY_BUFFER_H
#include "itensor/itensor.h"
#include "process/operation_builder.h"

struct replay_buffer {
	struct walk walk; /* the reader's walk */
	int replay_loop;  /* the outermost loop that replays */
	int64_t words;    /* words that are held: those of the loops inside replay_loop */
	int64_t distance; /* least number of iterations between two uses of one word */
};

/* Marks such converters with the attribute replay: all with an engine of one token, which waits for
 * blocks to be passed on; elsewhere those between memory and a register tile alone, since a block
 * takes all that comes at once, which other readers of the stream may wait for. */
void mark_replay_buffers(struct module *module, struct block *block, bool all);
/* false: it is another converter */
bool replay_buffer_of(
        struct arena *arena, const struct op *convert, struct replay_buffer *replay_buffer);
void lower_replay_buffer(
        struct design *design, const struct op *convert, const struct replay_buffer *replay_buffer);

#endif
