/* AXI bundles: ports of main with the same name in stream.bundle share a memory adapter, each with
 * a load or store unit of its own; a port without the attribute has its own adapter. */
#ifndef STC_BUNDLE_H
#define STC_BUNDLE_H
#include "predict/timing.h"

/* words of a request where words are accessed one by one: the minimum burst of Vitis HLS
 * (UG1399) */
#define BUNDLE_SHORT_BURST 2

/* name of the adapter of an argument */
const char *bundle_of(const struct op *main, int argument);
/* number of adapters */
int bundle_count(struct arena *arena, const struct op *main);
/* [arguments] is the port's adapter shared? */
const bool *bundle_shared(struct arena *arena, const struct op *main);
/* burst length of a port, at most `burst`, the platform's */
int bundle_burst(const struct op *main, int argument, int burst);
/* Do the words of all ports of the argument's adapter travel one by one? */
bool bundle_is_single(const struct op *main, int argument);
/* outstanding requests of a port; by default the platform's */
int bundle_outstanding(const struct op *main, int argument, int outstanding);
/* Words that a launch moves through a port of main's block, at given extents; layered: only those
 * in layer loops. */
int64_t bundle_words(const struct module *module, const struct block *main,
        const struct value *port, bool layered, struct extent_list extents);
struct bundle_channel {
	/* number of the memory channel; adapters that move words through it */
	int number, adapters;
	double cycles; /* cycles to transfer all their words */
};

struct bundle_channel bundle_busiest_channel(struct arena *arena, const struct platform *platform,
        const struct module *module, int extents, const struct extent_value *extent);
/* Lower bound of a launch by memory bandwidth: cycles of the busiest memory channel, or of the
 * busiest adapter among those with full bursts, which passes a memory word a cycle. */
double bundle_cycles(struct arena *arena, const struct platform *platform,
        const struct module *module, int extents, const struct extent_value *extent);
#endif
