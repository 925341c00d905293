/* What a design at stream level holds on chip, as the budget C_max counts it: converters, buffers with several readers, sums that kernels hold, and FIFOs of
 * two words each; how deep FIFOs really are is decided later. */
#ifndef STC_HELD_H
#define STC_HELD_H
#include "options/pass_context.h"

struct held {                 /* bytes; converters that are cut count nothing */
	struct arena *arena;
	VEC(struct op *) converter;
	int64_t converters, buffers, sums, fifos;
};

struct held held_count(struct arena *arena, struct block *block);
int64_t held_bytes(const struct held *held);              /* all of it */
struct op *held_largest(const struct held *held);         /* the largest converter that can be cut, or NULL */
struct op *held_homeless(const struct platform *platform, const struct held *held);       /* a converter that no die has room for, or NULL */
void held_cut(struct module *module, struct held *held, struct op *convert);       /* it goes through memory, as a whole */
int64_t held_least(struct arena *arena, struct block *block);             /* with every edge cut that can be */
int64_t on_chip_budget(const struct pass_context *context);
#endif
