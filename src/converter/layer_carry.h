/* A loop-carried buffer: the tensor that a layer passes to the next one, and that a stream.buffer
 * in the next layer holds for several readers, is one array. The kernel that produces it drains its
 * sums to the next layer's readers before it adds up that layer's. So there is no feedback by FIFOs
 * and no second array. */
#ifndef STC_LAYER_CARRY_H
#define STC_LAYER_CARRY_H
#include "converter/accumulator_drain.h"

struct layer_carry {
	/* the loop over layers; NULL: the kernel makes nothing that is carried so */
	const struct op *loop;
	int number; /* number of the loop's carried value */
	/* drain to the results of the buffer in the layer, followed by the carried value itself */
	struct accumulator_drain accumulator_drain;
};

/* the carry that this kernel produces */
struct layer_carry layer_carry_of(struct arena *arena, const struct op *kernel);
/* Is this carried value of the loop such a buffer? */
bool layer_carry_in_place(struct arena *arena, const struct op *loop, int number);
/* Sets in_producer of each stream.buffer in the block that is drained by the kernel that writes it,
 * or by the one that writes it for the next layer. */
void mark_buffers_in_producer(struct module *module, struct block *block);
/* false after a diagnostic: it has in_producer, and the kernel cannot drain it */
bool check_buffer_in_producer(struct design *design, const struct op *buffer);
/* before the layers: stores the first layer's input */
void layer_carry_fill(
        struct process *p, const struct layer_carry *layer_carry, struct value *array);
/* after them: pushes the result of the loop */
void layer_carry_drain(
        struct process *p, const struct layer_carry *layer_carry, struct value *array);
#endif
