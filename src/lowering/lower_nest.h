/* Inside lowering/: arrays of a sequential nest in banks. */
#ifndef STC_LOWER_NEST_H
#define STC_LOWER_NEST_H
#include "ir/nest_array.h"
#include "lowering/lowering_internal.h"
#include "process/operation_builder.h"

enum { NEST_LANES_MOST = 1024 };

/* Where an element is. */
struct nest_element {
	int indices;
	struct value *index[NEST_DIMS + 1];
};

/* old: the subscripts in the nest, or NULL; made: the same in the process */
struct nest_element nest_element_of(struct process *p, const struct nest_array *layout,
        struct value *const *old, struct value *const *made);
/* Loops that move a tensor between its array and a FIFO. */
void nest_fill(
        struct process *p, const struct nest_array *array, struct value *held, struct value *fifo);
void nest_send(
        struct process *p, const struct nest_array *array, struct value *held, struct value *fifo);

/* --- share_numbers.c --- */
void nest_share_numbers(struct block *block);
/* What an iteration reads of what it has read or written before. */
void nest_share_words(struct module *module, struct block *block);
#endif
