/* A converter that changes no order: its reader wants some words again, a few at a time, before
 * the next ones come.  One process takes each word once, sends it on as it comes, and sends what
 * it keeps in the turns behind: nothing waits for a whole block, and no block is handed over. */
#ifndef STC_AGAIN_H
#define STC_AGAIN_H
#include "itensor/itensor.h"
#include "process/process_builder.h"

struct replay_buffer {
	struct walk walk; /* of the reader */
	int replay_loop;  /* the first loop that sends words again */
	int64_t words;    /* that are kept: those of the loops inside `outer` */
	int64_t distance; /* turns between two of the same word, at least */
};

/* Says of converters that they are such (`again`).  Beside a unit of one token, which waits for
 * what hands a block on; elsewhere a block takes all that comes at once, and what else reads it
 * may wait for that. */
void mark_replay_buffers(struct module *module, struct block *block);
/* false: it is another converter. */
bool replay_buffer_of(
        struct arena *arena, const struct op *convert, struct replay_buffer *replay_buffer);
void lower_replay_buffer(
        struct design *design, const struct op *convert, const struct replay_buffer *replay_buffer);

#endif
