/* Evaluates the energy formula of energy.h. */
#include "predict/energy.h"

struct energy energy_of(const struct platform *platform, const struct design_cost *cost,
        const struct activity *activity, double ms)
{
	struct resources all = platform_total(platform);
	double lut = 0;
	double dsp = 0;
	double whole = activity->cycles > 0 ? (double)activity->cycles : 1;
	for (int i = 0; i < cost->processes; i++) {
		double part = (double)activity->busy[i] / whole;
		lut += part * (double)cost->process[i].resources.lut;
		dsp += part * (double)cost->process[i].resources.dsp;
	}
	/* maximum bytes per cycle */
	double rate = platform->channels * platform->channel_gbps * 1e3 / platform->clock_mhz;
	double used = (lut / (double)all.lut + (all.dsp ? dsp / (double)all.dsp : 0) +
	                      activity->bytes / whole / rate) /
	        3;
	/* fraction of the launch in which the device works */
	double working = whole / (platform->clock_mhz * 1e3) / (ms > 0 ? ms : 1);
	struct energy energy = { .limit_mj = platform->watts * ms };
	energy.watts =
	        platform->idle_watts + (platform->watts - platform->idle_watts) * used * working;
	energy.launch_mj = energy.watts * ms;
	return energy;
}
