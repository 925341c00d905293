/* Counts the bytes of a layer's intermediate tensors after fusion.
 * Before: a rolled module      After: the same, with the attribute stream.fused = bytes, kernels
 * Needs: rolled layers.   Guarantees: nothing but the attribute.   Exact.
 * Ends: one walk over the module. */
#include "predict/intermediates.h"
#include "layers/layers_passes.h"

bool count_fused(struct pass_context *context, struct module *module)
{
	(void)context;
	intermediates_note(module, KEY_STREAM_FUSED, intermediates_count(module));
	return true;
}
