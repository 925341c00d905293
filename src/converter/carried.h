/* What a layer hands to the next one and keeps there for several readers lies in one array: a kernel that holds it until the last term serves the next layer's readers from its sums, before it
 * adds up that layer's.  No ring is needed then, and no second array. */
#ifndef STC_CARRIED_H
#define STC_CARRIED_H
#include "converter/served.h"

struct carried {
	const struct op *loop;    /* over layers; NULL: the kernel makes nothing that is carried so */
	int number;               /* of the values that it carries */
	struct served served;     /* the buffer in the layer, and behind its results what is carried */
};

struct carried carried_of(struct arena *arena, const struct op *kernel);
bool carried_in_place(struct arena *arena, const struct op *loop, int number);
bool carried_by_maker(struct arena *arena, const struct op *buffer);     /* stream.buffer */
void carried_fill(struct process *p, const struct carried *carried, struct value *array);        /* in front of the layers */
void carried_give(struct process *p, const struct carried *carried, struct value *array);        /* behind them */
#endif
