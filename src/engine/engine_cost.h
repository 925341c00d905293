/* What slices of a contraction unit take of the platform, and how many of them it has room for. */
#ifndef STC_UNIT_COST_H
#define STC_UNIT_COST_H
#include "ir/workload.h"
#include "options/pass_context.h"

/* a contraction unit has a multiple of this as slices, which share multipliers in pairs, */
#define ENGINE_PE_STEP 2
#define ENGINE_PES_LEAST 4 /* and at least so many */

/* What multipliers of the unit make with weights of so many bits, of tokens abreast: as many
 * slices share one as it takes weights. */
struct dot engine_dot(const struct pass_context *context, int bits, int tokens_per_cycle);
/* Of the slices of a port, with so many uses of a word: words of products of weights of so many
 * bits, and what scales and adds them. */
int64_t pe_dsp(const struct pass_context *context, struct module *module, int bits, int uses);
/* The same with their loader, about. */
int64_t pe_lut(const struct pass_context *context, struct module *module, int bits, int uses);
/* Ports that bring weights are a multiple of it. */
int engine_port_step(int uses, bool counted);
/* As many of these as there are ports, as the point allows, as a quarter of the LUTs is enough
 * for and as the memory die has DSPs for; half of the wires between dies may bring weights to
 * some more. */
int engine_port_limit(const struct pass_context *context, struct module *module, int bits, int uses,
        bool counted, int ports);
/* Does a phase do the rows of a slice in one block, so that no group is needed twice?  words:
 * cycles that a tile of its tokens takes. */
bool engine_single_block(double rows, int64_t groups, double words);
/* Ports are a multiple of it, where slices' results are a whole number of words. */
int64_t whole_words(int64_t uses);
bool pes_fit(const struct pass_context *context, struct module *module, int bits, int uses,
        int64_t ports);
/* words of a slice of a unit that its loader reads ahead */
int64_t weight_prefetch_words(const struct platform *platform);
#endif
