/* What a design at stream level holds on chip, as the budget C_max counts it: converters,
 * buffers with several readers, sums that kernels hold, and FIFOs of two words each; how deep
 * FIFOs really are is decided later. */
#ifndef STC_HELD_H
#define STC_HELD_H
#include "options/pass_context.h"

struct on_chip_bytes { /* bytes; converters that are cut count nothing */
	struct arena *arena;
	VEC(struct op *) converter;
	int64_t converters, buffers, sums, fifos;
};

struct on_chip_bytes on_chip_bytes_of_block(struct arena *arena, struct block *block);
int64_t on_chip_bytes_total(const struct on_chip_bytes *on_chip_bytes); /* all of it */
/* the largest converter that can be cut, or NULL */
struct op *largest_spillable(const struct on_chip_bytes *on_chip_bytes);
/* a converter that no die has room for, or NULL */
struct op *unplaceable_converter(
        const struct platform *platform, const struct on_chip_bytes *on_chip_bytes);
/* it goes through memory, as a whole */
void spill_converter(
        struct module *module, struct on_chip_bytes *on_chip_bytes, struct op *convert);
/* with every edge cut that can be */
int64_t on_chip_bytes_least(struct arena *arena, struct block *block);
int64_t on_chip_budget(const struct pass_context *context);
#endif
