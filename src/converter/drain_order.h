/* A kernel that holds all its sums until the last term gives them in any order: a converter behind it is a nest over the sums, and has no buffer of its own. */
#ifndef STC_GIVEN_H
#define STC_GIVEN_H
#include "converter/lower_box.h"

struct drain_order {
	const struct op *convert; /* NULL: there is none */
	struct box box;
	int64_t *stride;          /* [loops] words of the box from one point of the kernel's loop to the next */
};

bool can_drain_in_order(struct arena *arena, const struct op *writer, const struct type *tensor, const struct type *type);      /* the result of a scheduled kernel, in the order of this stream */
struct drain_order drain_order_of(struct arena *arena, const struct op *kernel);     /* by the converter behind it that says so (attribute `given`) */
bool check_drain_order(struct design *design, const struct op *convert);           /* false after a diagnostic: its writer cannot */
void emit_drain(struct process *p, const struct drain_order *drain_order, struct value *array);
#endif
