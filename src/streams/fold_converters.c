/* Records which converters need no buffer with a fill and a drain process of their own.
 *
 * Before: stream.convert
 * After:  stream.convert {replay}: one process keeps words and repeats them
 * Only designs whose engine processes one token at a time have replay buffers.
 * Needs: streams with one reader each. Exact. Ends: one walk over the program. */
#include "ir/workload.h"
#include "converter/replay_buffer.h"
#include "streams/streams_passes.h"

bool fold_converters(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	(void)context;
	if (workload_of(module_main(module)) == WORKLOAD_DECODE)
		mark_replay_buffers(module, body);
	return true;
}
