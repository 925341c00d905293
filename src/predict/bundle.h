/* Memory adapters: arguments of main with one name in stream.bundle share one, each with a load
 * or store unit of its own; an argument without has its own. */
#ifndef STC_BUNDLE_H
#define STC_BUNDLE_H
#include "predict/timing.h"

/* words of a request where words travel one by one: the least that the vendor's compiler takes
 * (UG1399) */
#define BUNDLE_SHORT_BURST 2

const char *bundle_of(const struct op *main, int argument);
int bundle_count(struct arena *arena, const struct op *main);
/* [arguments] which ports share their adapters */
const bool *bundle_shared(struct arena *arena, const struct op *main);
/* words of a request, where the platform's adapters ask for `burst` */
int bundle_burst(const struct op *main, int argument, int burst);
/* requests under way, where there are `outstanding` of the platform's adapters */
int bundle_outstanding(const struct op *main, int argument, int outstanding);
/* Words that a launch moves through a port of main's block, at given extents; layered: only
 * those in loops over layers. */
int64_t bundle_words(const struct module *module, const struct block *main,
        const struct value *port, bool layered, int extents, const struct extent_value *extent);
struct bundle_channel {
	int number, adapters; /* of the memory; that a launch moves words through */
	double cycles;        /* in which it brings all that they ask for */
};

struct bundle_channel bundle_busiest_channel(struct arena *arena, const struct platform *platform,
        const struct module *module, int extents, const struct extent_value *extent);
/* Cycles in which the busiest memory channel, or the busiest adapter of those that move whole
 * bursts, brings all that it has to. */
double bundle_cycles(struct arena *arena, const struct platform *platform,
        const struct module *module, int extents, const struct extent_value *extent);
#endif
