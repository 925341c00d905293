/* Says what a layer's intermediates take now that elementwise operators stand inside other kernels.
 * Needs: rolled layers.  Guarantees: the module's attribute stream.fused = bytes, kernels.
 * Exact: no op changes. */
#include "predict/intermediates.h"
#include "layers/layers_passes.h"

bool count_fused(struct pass_context *context, struct module *module)
{
	(void)context;
	intermediates_note(module, KEY_STREAM_FUSED, intermediates_count(module));
	return true;
}
