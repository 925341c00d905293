/* A view: a tensor as the elements of other tensors, by linear address.
 * Each data dim is a list of digits (a mixed radix number), so that reshapes regroup or cut
 * digits and never divide. A view has pieces; an element is given by the first piece whose
 * ranges hold it (a concat: one piece per part). */
#ifndef STC_VIEW_H
#define STC_VIEW_H
#include "ir/kernel.h"

struct piece {
	struct value *root;   /* NULL: every element is `constant` */
	struct node constant; /* a NODE_CONSTANT */
	int64_t offset;
	int64_t *stride;     /* [digits], elements of the root */
	int64_t *low, *high; /* [digits], holds where low <= digit < high */
};

struct view {
	const struct type *element;
	int rank;
	/* [rank + 1]: data dim d has digits first[d] … first[d + 1] - 1, outermost first */
	int *first;
	int64_t *extent; /* [digits], none is 1 */
	int pieces;
	struct piece *piece;
};

static inline int view_digits(const struct view *view)
{
	return view->first[view->rank];
}
int64_t view_extent(const struct view *view, int dim);

struct view view_of_root(struct module *module, struct value *root);
struct view view_of_constant(struct module *module, const struct type *type, struct node constant);
/* Data dim r of the result is data dim dim[r] of the view, or, where dim[r] is -1, repeats it
 * extent[r] times. */
struct view view_permute(struct module *module, const struct view *view, int rank, const int *dim,
        const int64_t *extent);
/* group g: dims first[g] … first[g + 1] - 1 */
struct view view_collapse(
        struct module *module, const struct view *view, int groups, const int *first);

/* the fewest digits */
struct view view_merge(struct module *module, const struct view *view);

/* These fail (false, *view unchanged) where the digits do not fit; the caller then makes the
 * tensor and views that. */
/* result dim r is cut from dim source[r] */
bool view_expand(struct module *module, struct view *view, int dims, const int *source,
        const int64_t *extent);
bool view_slice(struct module *module, struct view *view, int dim, int64_t offset, int64_t count,
        int64_t step);
/* digits begin at these units, too */
bool view_refine(struct module *module, struct view *view, int dim, int units, const int64_t *unit);
/* inside a larger dim; nothing elsewhere */
bool view_place(struct module *module, struct view *view, int dim, int64_t offset, int64_t step,
        int64_t extent);
/* as part i of a dim of equal parts */
void view_part(struct module *module, struct view *view, int dim, int part, int parts);
/* front where it holds, else back */
bool view_overlay(struct module *module, struct view *front, const struct view *back);

/* where its digits begin, ascending, without 1; returns how many */
int view_units(const struct view *view, int dim, int64_t *unit);
/* at most one digit, and no piece ends inside it */
bool view_is_plain(const struct view *view, int dim);
bool view_is_constant(const struct view *view);
/* every element of one root, in its order */
bool view_is_identity(const struct view *view);
bool piece_is_total(const struct view *view, const struct piece *piece);
/* Whether some piece holds every element: then the last needs no test. */
bool view_is_covered(const struct view *view);
#endif
