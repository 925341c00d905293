/* Counts the on-chip memory of a design at stream level for the budget C_max: converters, buffers
 * with several readers, accumulators of kernels, and FIFOs of two words each; the real FIFO depths
 * are chosen later. */
#ifndef STC_ON_CHIP_FOOTPRINT_H
#define STC_ON_CHIP_FOOTPRINT_H
#include "options/pass_context.h"

/* in bytes; spilled converters do not count */
struct on_chip_bytes {
	struct arena *arena;
	VEC(struct op *) converter;
	int64_t converters, buffers, sums, fifos;
};

struct on_chip_bytes on_chip_bytes_of_block(struct arena *arena, struct block *block);
int64_t on_chip_bytes_total(const struct on_chip_bytes *on_chip_bytes); /* their sum */
/* the largest converter that can be spilled, or NULL */
struct op *largest_spillable(const struct on_chip_bytes *on_chip_bytes);
/* a converter that fits no die, or NULL */
struct op *unplaceable_converter(
        const struct platform *platform, const struct on_chip_bytes *on_chip_bytes);
/* Spills a converter: all of its tensor goes through external memory. */
void spill_converter(
        struct module *module, struct on_chip_bytes *on_chip_bytes, struct op *convert);
/* Bytes on chip with every possible converter spilled. */
int64_t on_chip_bytes_least(struct arena *arena, struct block *block);
int64_t on_chip_budget(const struct pass_context *context);
#endif
