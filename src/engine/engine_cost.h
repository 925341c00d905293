/* Estimates what the PEs of the matmul engine take of the board, and how many of them fit. */
#ifndef STC_ENGINE_COST_H
#define STC_ENGINE_COST_H
#include "ir/workload.h"
#include "options/pass_context.h"

/* the number of PEs is a multiple of it: PEs share multipliers in pairs */
#define ENGINE_PE_STEP 2
#define ENGINE_PES_LEAST 4 /* the fewest PEs */

/* The packed dot product of weights of so many bits, with tokens_per_cycle tokens: `words` of it
 * are the PEs that share multipliers. */
struct dot engine_dot(const struct pass_context *context, int bits, int tokens_per_cycle);
/* the PEs that share a memory port */
struct port_pes {
	/* bits of a weight; uses of a word: tokens per cycle x PEs of the port */
	int bits, uses;
};
/* DSPs for dot products, scaling and summation */
int64_t pe_dsp(const struct pass_context *context, struct module *module, struct port_pes pes);
/* LUTs of the same, with their loader; an estimate */
int64_t pe_lut(const struct pass_context *context, struct module *module, struct port_pes pes);
/* the number of weight ports is a multiple of it; counted: the token count is dynamic */
int engine_port_step(int uses, bool counted);
/* Number of weight ports: at most `ports`, as many as --engine-pes allows, as have LUTs
 * (PES_LUT), and as have DSPs on the memory die; half of the wires between dies may bring weights
 * to some more. */
int engine_port_limit(const struct pass_context *context, struct module *module,
        struct port_pes pes, bool counted, int ports);
/* Is one block of all rows better than holding groups for a second block? rows: of a PE;
 * token_steps: of a tile (engine.h). */
bool engine_single_block(double rows, int64_t groups, double token_steps);
/* the number of ports is a multiple of it, so that a whole number of words has all their rows */
int64_t engine_port_multiple(int64_t uses);
/* Do PEs of so many ports leave LUTs and DSPs for the other kernels? */
bool pes_fit(const struct pass_context *context, struct module *module, struct port_pes pes,
        int64_t ports);
/* words of weights that a loader prefetches for each PE */
int64_t weight_prefetch_words(const struct platform *platform);
#endif
