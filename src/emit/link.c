/* link.cfg for v++: one compute unit, a memory channel for every port, the die where all processes stand on one. */
#include "emit/emit.h"
#include "model/platform.h"

/* -1: processes stand on several dies. */
static int64_t only_die(const struct phases *phases)
{
	int64_t die = -2;
	for (int p = 0; p < phases->count; p++)
		for (const struct op *op = module_body(phases->phase[p].module)->first; op; op = op->next) {
			if (op->code != OP_FUNC || !attr_get(op, "stream.process"))
				continue;
			int64_t here = attr_integer_or(op, "stream.die", 0);
			die = die == -2 || die == here ? here : -1;
		}
	return die < 0 ? -1 : die;
}

/* Buffers of an adapter that are larger than a channel take the channels that follow as well. */
void emit_link(const struct phases *phases, const struct platform *platform, const char *top, struct text *out)
{
	const struct kernel_port *kernel;
	int64_t die = only_die(phases);
	int ports = emit_kernel_ports(out->arena, phases, &kernel);
	text_add(out, "[connectivity]\nnk=%s:1:%s_1\n", top, top);
	for (int i = 0; i < ports; i++) {
		struct memory_port port = kernel[i].port;
		int64_t bytes = kernel[i].adapter_bytes, more = bytes > 0 ? (bytes - 1) / platform->channel_bytes : 0, last = port.channel + more;
		text_add(out, "sp=%s_1.%s:HBM[%lld", top, port.name, (long long)(last < platform->channels ? port.channel : platform->channels - 1 - more));
		if (more)
			text_add(out, ":%lld", (long long)(last < platform->channels ? last : platform->channels - 1));
		text_add(out, "]\n");
	}
	if (die >= 0 && platform->dies > 1)
		text_add(out, "slr=%s_1:SLR%lld\n", top, (long long)die);
	text_add(out,
		 "\n[vivado]\n"
		 "prop=run.impl_1.STEPS.OPT_DESIGN.ARGS.DIRECTIVE=ExploreWithRemap\n"
		 "prop=run.impl_1.STEPS.PLACE_DESIGN.ARGS.DIRECTIVE=Explore\n"
		 "prop=run.impl_1.STEPS.PHYS_OPT_DESIGN.IS_ENABLED=true\n"
		 "prop=run.impl_1.STEPS.PHYS_OPT_DESIGN.ARGS.DIRECTIVE=Explore\n"
		 "prop=run.impl_1.STEPS.ROUTE_DESIGN.ARGS.DIRECTIVE=Explore\n");
}
