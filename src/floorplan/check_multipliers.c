/* Refuses a design whose processes need more multipliers than the platform has, before FIFOs are
 * sized: their depths change nothing about it, and many processes take long.
 * Before: processes and their ports. After: the same.
 * Needs: processes. Guarantees: the platform has their DSPs. Exact. Ends: one walk. */
#include "floorplan/floorplan_passes.h"
#include "floorplan/floorplan.h"
#include "predict/resource.h"
#include <string.h>

bool report_shortage(
        struct module *module, const char *what, const struct shortage *shortage, const char *where)
{
	struct diag *diag = module->diag;
	bool memory = strstr(shortage->name, "BRAM") || strstr(shortage->name, "URAM");
	diag_error(diag, module_main(module)->location, "%s %lld %s, %lld more than the %lld of %s",
	        what, (long long)shortage->need, shortage->name,
	        (long long)(shortage->need - shortage->have), (long long)shortage->have, where);
	return diag_note(diag,
	        "%sa smaller model, or another --platform (`stc platforms` lists them)",
	        memory ? "a smaller --on-chip-memory spills more to external memory; or " : "");
}

bool check_multipliers(struct pass_context *context, struct module *module)
{
	const struct platform *platform = context->platform;
	const struct design_cost cost = design_cost(module->arena, platform, module);
	const int64_t have = platform_total(platform).dsp;
	const struct shortage shortage = { "DSP slices", cost.total.dsp, have };
	return shortage.need <= shortage.have ||
	        report_shortage(module, "the design needs", &shortage, platform->name);
}
