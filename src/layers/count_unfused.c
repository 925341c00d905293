/* Counts the bytes of a layer's intermediate tensors while every operator is a kernel of its own.
 * The layer is found in a copy that is rolled; the module itself is rolled after fusion.
 * Before: kernels      After: the same, with the attribute stream.unfused = bytes, kernels
 * Needs: kernels.   Guarantees: nothing but the attribute.   Exact.
 * Ends: as roll_layers does. */
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
