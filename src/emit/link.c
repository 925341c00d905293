/* Writes link.cfg for v++: one compute unit, the memory channels of every port, and the die if all
 * processes are on one. */
#include "emit/emit.h"
#include "platform/platform.h"

int64_t emit_only_die(const struct phases *phases)
{
	int64_t die = -2;
	for (int p = 0; p < phases->count; p++)
		for (const struct op *op = module_body(phases->phase[p].module)->first; op;
		        op = op->next) {
			if (op->code != OP_FUNC || !attr_get(op, KEY_STREAM_PROCESS))
				continue;
			int64_t own = attr_integer_or(op, KEY_STREAM_DIE, 0);
			die = die == -2 || die == own ? own : -1;
		}
	return die < 0 ? -1 : die;
}

struct channel_range emit_channels(const struct kernel_port *kernel, int ports,
        const struct kernel_port *port, const struct platform *platform)
{
	int64_t more =
	        port->adapter_bytes > 0 ? (port->adapter_bytes - 1) / platform->channel_bytes : 0;
	int64_t first = port->port.channel;
	int64_t last = first;
	for (int i = 0; i < ports; i++) {
		if (kernel[i].adapter != port->adapter)
			continue;
		first = kernel[i].port.channel < first ? kernel[i].port.channel : first;
		last = kernel[i].port.channel > last ? kernel[i].port.channel : last;
	}
	last = last < first + more ? first + more : last;
	if (last >= platform->channels) {
		last = platform->channels - 1;
		first = last - more < first ? last - more : first;
	}
	return (struct channel_range){ first, last };
}

void emit_link(const struct phases *phases, const struct platform *platform, const char *top,
        struct text *out)
{
	const struct kernel_port *kernel;
	int64_t die = emit_only_die(phases);
	int ports = emit_kernel_ports(out->arena, phases, &kernel);
	text_add(out, "[connectivity]\nnk=%s:1:%s_1\n", top, top);
	for (int i = 0; i < ports; i++) {
		struct channel_range range = emit_channels(kernel, ports, &kernel[i], platform);
		text_add(out, "sp=%s_1.%s:%s[%lld", top, kernel[i].port.name, platform->memory_tag,
		        (long long)range.first);
		if (range.last > range.first)
			text_add(out, ":%lld", (long long)range.last);
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
