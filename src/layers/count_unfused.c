/* Says what a layer's intermediates take as long as every operator of the model is a kernel of
 * its own.  The layer is found in a copy that is rolled; the module itself is rolled after
 * fusion.
 * Needs: kernels.  Guarantees: the module's attribute stream.unfused = bytes, kernels.  Exact:
 * no op changes. */
#include "predict/intermediates.h"
#include "layers/layers_passes.h"

bool count_unfused(struct pass_context *context, struct module *module)
{
	struct module *copy = module_clone(module, module->arena);
	if (!roll_layers(context, copy))
		return false;
	intermediates_note(module, KEY_STREAM_UNFUSED, intermediates_count(copy));
	return true;
}
