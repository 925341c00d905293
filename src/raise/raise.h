/* From a C function to kernels at tensor level. */
#ifndef STC_RAISE_H
#define STC_RAISE_H
#include "frontend/region.h"
#include "platform/platform.h"

struct raise_options {
	bool reassociate; /* sums may be formed in another order than in C */
	const struct platform *platform;
	int64_t dsp, lut; /* that the operators of a sequential nest may take, at most */
};

/* Gives the module its function main. Each statement becomes a kernel over the box around its
 * domain, whose result holds a value for every iteration that other statements read; counters over
 * which it only accumulates are reduction loops. Arrays that the function reads before it writes
 * them are inputs, those that it writes are outputs, by their names in C. false: a diagnostic. */
bool raise_region(
        struct module *module, const struct region *region, const struct raise_options *options);

#endif
