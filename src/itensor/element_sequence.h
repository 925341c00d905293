/* The order in which a tensor's elements flow, on the tensor's linear addresses: what an itensor
 * type denotes for a given tensor. */
#ifndef STC_SEQUENCE_H
#define STC_SEQUENCE_H
#include "ir/ir.h"

struct sequence {
	int64_t offset; /* address of the first element */
	int dims;
	int64_t *trip, *stride; /* [dims], outermost first; stride 0: sent again */
	const struct run_time_trip *const *run_time; /* [dims], NULL: fixed; NULL: all are */
	int64_t lanes;                               /* elements of a word */
	int64_t lane_stride;                         /* addresses between lanes; 0 if lanes is 1 */
	/* an element is padding unless every Σ c[i] counter[i] + c[dims] lane < c[dims + 1] */
	int conditions;
	int64_t *condition; /* [conditions][dims + 2] */
};

struct sequence sequence_of_type(
        struct arena *arena, const struct type *tensor, const struct type *stream);
/* Normal form: lanes become the innermost loop, loops of one trip vanish, neighbours merge.
 * Equal normal forms: the same elements in the same order. */
struct sequence sequence_flat(struct arena *arena, struct sequence sequence);
/* The same words with neighbouring loops merged; lanes stay. */
struct sequence sequence_merged(struct arena *arena, struct sequence sequence);
bool sequence_same(struct sequence left, struct sequence right);
int64_t sequence_words(struct sequence sequence);
/* The type whose words are `lanes` wide for the same elements; `type` must have another width,
 * one dividing the other.  NULL if the type's innermost dim does not allow it. */
const struct type *type_regroup(struct module *module, const struct type *stream, int64_t lanes);
/* An itensor in canonical form: dims of one trip are dropped and neighbours that continue each
 * other are merged, so that equal sequences over the same data dims have the same type.
 * run_time: NULL, or [dims] with NULL for a fixed trip count; the other dims stay as they are.
 * trip, step and rows are overwritten. */
const struct type *type_canonical(struct module *module, const struct type *tile, int dims,
        int64_t *trip, const struct run_time_trip *const *run_time, int64_t *step, int results,
        int64_t *rows);
/* vector<16xf32>, or the scalar */
const struct type *stream_word(struct module *module, const struct type *stream);
#endif
