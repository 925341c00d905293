/* The sequence of linear addresses that an itensor type denotes for a given tensor: streams of
 * different types match if their sequences do. */
#ifndef STC_ELEMENT_SEQUENCE_H
#define STC_ELEMENT_SEQUENCE_H
#include "ir/ir.h"

struct sequence {
	int64_t offset; /* address of the first element */
	int dims;
	int64_t *trip, *stride; /* [dims], outermost first; stride 0: a replay */
	const struct run_time_trip *const *run_time; /* [dims], NULL: fixed; NULL: all are */
	int64_t lanes;                               /* elements of a word */
	int64_t lane_stride;                         /* addresses between lanes; 0 if lanes is 1 */
	/* a word holds rows of equal length, one after the other, in a nest of so many loops */
	int row_dims;
	int64_t *row_trip, *row_stride; /* [row_dims], outermost first */
	/* an element is padding unless all Σ c[i] counter[i] < c[dims + row_dims + 1], over the
	 * loops, the rows of a word and the lanes of a row */
	int conditions;
	int64_t *condition; /* [conditions][dims + row_dims + 2] */
};

struct sequence sequence_of_type(
        struct arena *arena, const struct type *tensor, const struct type *stream);
/* Lanes of a row of a word. */
int64_t sequence_row_lanes(const struct sequence *sequence);

/* Normal form: lanes become the innermost loop, loops of one iteration are dropped, neighbors that
 * continue each other are merged. Equal normal forms denote the same elements in the same order. */
struct sequence sequence_flat(struct arena *arena, struct sequence sequence);
/* The same words with neighboring loops merged; lanes stay. */
struct sequence sequence_merged(struct arena *arena, struct sequence sequence);
bool sequence_same(struct sequence left, struct sequence right);
int64_t sequence_words(struct sequence sequence);
/* The type of the same elements in words of `lanes` elements, another number than now; one divides
 * the other. NULL if the type's innermost dim does not allow it. */
const struct type *type_regroup(struct module *module, const struct type *stream, int64_t lanes);
/* Do its words hold several rows of a tensor? */
bool type_has_rows(const struct type *stream);
/* An itensor in canonical form: dims of one iteration are dropped and neighbors that continue each
 * other are merged, so that equal sequences over the same data dims have the same type. Dims with
 * a run-time trip count stay as they are. */
const struct type *type_canonical(
        struct module *module, const struct type *tile, const struct itensor *order);
/* the type of a word: a vector, or the scalar for one lane */
const struct type *stream_word(struct module *module, const struct type *stream);
#endif
