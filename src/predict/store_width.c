/* Width of the words in which a result leaves through its memory ports: narrow words take many
 * cycles, and words that are padded much take the time of memory. */
#include "predict/store_width.h"
#include "base/number.h"

struct store_width store_width(
        const struct platform *platform, int64_t lanes, int64_t bits, int ports)
{
	struct store_width best = { 0 };
	double rate = platform_channel_rate(platform);
	for (int64_t port_lanes = lanes / ports; port_lanes >= 1; port_lanes--) {
		double bytes = (double)(power_of_two_from(port_lanes) * bits) / 8;
		double word = bytes > rate ? bytes / rate : 1;
		double cycles = word / (double)(port_lanes * ports);
		if (lanes % (port_lanes * ports) || port_lanes * bits > PORT_BITS ||
		        (best.lanes && cycles >= best.cycles))
			continue;
		best = (struct store_width){ port_lanes, cycles };
	}
	return best;
}
