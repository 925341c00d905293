/* Folds converters and shared buffers into the kernels beside them, and records it as their form.
 *
 * Before: kernel -> stream.buffer -> readers;    stream.convert -> kernel;    stream.convert
 * After:  {in_producer}: the kernel drains its accumulators to all readers; {in_consumer}: the
 *         kernel fills an array of its own; {replay}: one process keeps words and repeats them
 * Replay buffers: of designs whose engine processes one token at a time, and of words that come
 * from memory for one kernel with unrolled loops.
 * Needs: streams with one reader each. Guarantees: no later pass chooses a form, except that
 * spill_to_budget spills. Exact. Ends: one walk over the program for each form. */
#include "ir/workload.h"
#include "converter/consumer_buffer.h"
#include "converter/layer_carry.h"
#include "converter/replay_buffer.h"
#include "streams/streams_passes.h"

bool fold_converters(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	(void)context;
	mark_buffers_in_producer(module, body);
	mark_replay_buffers(module, body, workload_of(module_main(module)) == WORKLOAD_DECODE);
	mark_consumer_buffers(module, body);
	return true;
}
