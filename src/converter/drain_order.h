/* A kernel that holds all its sums until the last term gives them in any order: a converter
 * behind it is a nest over the sums, and has no buffer of its own. */
#ifndef STC_GIVEN_H
#define STC_GIVEN_H
#include "converter/lower_box.h"

struct drain_order {
	const struct op *convert; /* NULL: there is none */
	struct box box;
	/* [loops] words of the box from one point of the kernel's loop to the next */
	int64_t *stride;
};

/* the result of a scheduled kernel, in the order of this stream */
bool can_drain_in_order(struct arena *arena, const struct op *writer, const struct type *tensor,
        const struct type *type);
/* by the converter behind it that says so (attribute `given`) */
struct drain_order drain_order_of(struct arena *arena, const struct op *kernel);
/* false after a diagnostic: its writer cannot */
bool check_drain_order(struct design *design, const struct op *convert);
void emit_drain(struct process *p, const struct drain_order *drain_order, struct value *array);
#endif
