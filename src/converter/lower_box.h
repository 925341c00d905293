/* One side of a buffer in a process: its words, to and from the box. */
#ifndef STC_LOWER_BOX_H
#define STC_LOWER_BOX_H
#include "itensor/box.h"
#include "process/process_builder.h"

struct side {
	const struct box_side *steps;
	int shared;              /* loops that stand outside the box */
	int64_t word;            /* elements of a buffer word: the lanes, or a part of them */
	const struct type *type; /* of the stream's words */
};

/* The loops inside the box, as process_nest opens them. */
int side_loops(struct process *process, const struct side *side, struct value **counter);
struct value *side_read(struct process *process, const struct side *side, struct value *array,
        struct value *const *counter);
void side_write(struct process *process, const struct side *side, struct value *array,
        struct value *const *counter, struct value *word);
/* What a box or a buffer lacks, as a diagnostic at op; `shared` and `buffer` are the op's
 * attributes. */
bool box_is_right(struct design *design, const struct op *op, const struct type *result,
        const struct box *box, bool crossing);
#endif
