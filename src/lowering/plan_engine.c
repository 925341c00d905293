/* Chooses the memory ports of the matmul engine, and with them its PEs.
 *
 * Before: func main, with contractions
 * After:  func main {stream.engine = {ports = 26, first_ports = 0, ports_per_loader = 1}}
 * PEs get the ports that all others leave. Which these are is found by making the other processes
 * of a copy.
 * Needs: forms of converters, reduction schedules, spills. Guarantees: main with contractions has
 * the attribute. Exact. Ends: one copy. */
#include "engine/lower_engine.h"
#include "ir/workload.h"
#include "lowering/lowering_internal.h"
#include "lowering/lowering_passes.h"

bool plan_engine(struct pass_context *context, struct module *module)
{
	struct op *main = module_main(module);
	attr_set(module, main, KEY_STREAM_ENGINE, NULL);
	if (workload_of(main) == WORKLOAD_NONE)
		return true;
	struct module *copy = module_clone(module, module->arena);
	struct design design;
	if (!lower_streams(context, copy, &design))
		return false;
	attr_set(module, main, KEY_STREAM_ENGINE,
	        engine_choose_ports(&design, design.source->region[0], module));
	return true;
}
