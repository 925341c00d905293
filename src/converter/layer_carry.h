/* What a layer hands to the next one and keeps there for several readers lies in one array: a
 * kernel that holds it until the last term serves the next layer's readers from its sums, before
 * it adds up that layer's.  No ring is needed then, and no second array. */
#ifndef STC_CARRIED_H
#define STC_CARRIED_H
#include "converter/accumulator_drain.h"

struct layer_carry {
	/* over layers; NULL: the kernel makes nothing that is carried so */
	const struct op *loop;
	int number; /* of the values that it carries */
	/* the buffer in the layer, and behind its results what is carried */
	struct accumulator_drain accumulator_drain;
};

struct layer_carry layer_carry_of(struct arena *arena, const struct op *kernel);
bool layer_carry_in_place(struct arena *arena, const struct op *loop, int number);
bool layer_carry_in_producer(struct arena *arena, const struct op *buffer); /* stream.buffer */
/* in front of the layers */
void layer_carry_fill(
        struct process *p, const struct layer_carry *layer_carry, struct value *array);
/* behind them */
void layer_carry_drain(
        struct process *p, const struct layer_carry *layer_carry, struct value *array);
#endif
