/* Estimates the energy of a launch. A board draws its idle power, plus up to its limit in
 * proportion to the mean of three utilizations: LUTs and DSP slices active per cycle, and memory
 * bandwidth. It is not calibrated by a vendor tool: use it to compare designs on one board. */
#ifndef STC_ENERGY_H
#define STC_ENERGY_H
#include "predict/resource.h"

struct energy {
	double watts; /* mean power of the launch */
	double launch_mj;
	/* energy at the board's power limit, as published comparisons count it */
	double limit_mj;
};

/* What a launch does. */
struct activity {
	int64_t cycles;
	const int64_t *busy; /* [processes] of these, the cycles in which a process is active */
	double bytes;        /* through all memory ports */
};

/* ms: of the launch, including the host's part. */
struct energy energy_of(const struct platform *platform, const struct design_cost *cost,
        const struct activity *activity, double ms);
#endif
