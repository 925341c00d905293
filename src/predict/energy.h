/* An estimate of a launch's energy.  A board takes what it takes at rest, and up to its limit in
 * proportion to the mean of three parts: of its LUTs and of its DSP slices that work in a cycle,
 * and of its memory's bandwidth that is used.  No vendor tool has seen the design: figures
 * compare designs on one board rather than predict a meter. */
#ifndef STC_ENERGY_H
#define STC_ENERGY_H
#include "predict/resource.h"

struct energy {
	double watts; /* mean over the launch */
	double launch_mj;
	/* at the board's limit all the time, as published comparisons count */
	double limit_mj;
};

/* busy: cycles that each process of `cost` works, of `cycles`; bytes: through all memory ports;
 * ms: of the launch, with the host's part. */
struct energy energy_of(const struct platform *platform, const struct design_cost *cost,
        const int64_t *busy, double bytes, int64_t cycles, double ms);
#endif
