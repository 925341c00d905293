/* One side of a buffer in a process: writes words of a stream to a box, or reads them. */
#ifndef STC_LOWER_BOX_H
#define STC_LOWER_BOX_H
#include "converter/banks.h"

struct side {
	const struct box_side *steps;
	int shared;              /* loops around the box */
	int64_t word;            /* elements of a buffer word: the lanes, or a part of them */
	const struct type *type; /* type of the stream's words */
	/* how the array's words lie; NULL: one after the other, and each access is of one word */
	const struct banks *banks;
	int interval; /* cycles of an iteration; 0: one */
};

/* Makes the side one of an array in banks: its loops are split where that finds the banks. */
void side_use_banks(
        struct side *side, const struct bank_sides *sides, const struct banks *banks, bool write);
/* opens the loops inside the box, as process_nest does */
int side_loops(struct process *process, const struct side *side, struct value **counter);
struct value *side_read(struct process *process, const struct side *side, struct value *array,
        struct value *const *counter);
void side_write(struct process *process, const struct side *side, struct value *array,
        struct value *const *counter, struct value *word);
/* False after a diagnostic at op: the box is impossible, or the op's attributes `shared` and
 * `buffer` do not fit it. into_layers: the stream comes from
 * outside of the layers that the op is in. */
bool box_is_right(struct design *design, const struct op *op, const struct type *result,
        const struct box *box, bool into_layers);
#endif
