/* A view: a tensor whose elements are those of other tensors, given by linear address.
 * The counter of each data dim is a mixed radix number, a list of digits, so that reshapes regroup
 * or cut digits and never divide.  A view has pieces; an element is read from the first piece whose
 * ranges hold it (a concat: one piece per part). */
#ifndef STC_VIEW_H
#define STC_VIEW_H
#include "ir/kernel.h"

/* The elements of one root tensor, or a constant, within a box of the digits. */
struct piece {
	struct value *root;   /* NULL: every element is `constant` */
	struct node constant; /* a NODE_CONSTANT */
	int64_t offset;       /* in the root, where all digits are 0 */
	int64_t *stride;      /* [digits], in elements of the root */
	int64_t *low, *high;  /* [digits]: it holds where low <= digit < high */
};

struct view {
	const struct type *element;
	int rank; /* data dims */
	/* [rank + 1]: data dim d has digits first[d] … first[d + 1] - 1, outermost first */
	int *first;
	int64_t *extent; /* [digits]; digits of extent 1 are left out */
	int pieces;
	struct piece *piece;
};

static inline int view_digits(const struct view *view)
{
	return view->first[view->rank];
}
/* Extent of a data dim. */
int64_t view_extent(const struct view *view, int dim);

/* All of a tensor in its own order. */
struct view view_of_root(struct module *module, struct value *root);
/* A tensor of that type, all of whose elements are the constant. */
struct view view_of_constant(struct module *module, const struct type *type, struct node constant);
/* Data dim r of the result is data dim dim[r] of the view, or, where dim[r] is -1, repeats it
 * extent[r] times. */
struct view view_permute(struct module *module, const struct view *view, int rank, const int *dim,
        const int64_t *extent);
/* Data dim g of the result is the dims first[g] … first[g + 1] - 1 of the view as one. */
struct view view_collapse(
        struct module *module, const struct view *view, int groups, const int *first);

/* The same elements with the fewest digits. */
struct view view_merge(struct module *module, const struct view *view);

/* Indices first, first + step, … of a dim. */
struct view_range {
	int64_t first, count, step;
};

/* The next ones fail (false, *view unchanged) where the digits do not fit; the caller then copies
 * the view to a tensor and views that. */
/* Result dim r, of that extent, is cut from dim source[r]. */
bool view_expand(struct module *module, struct view *view, int dims, const int *source,
        const int64_t *extent);
/* Keeps those indices of a dim. */
bool view_slice(struct module *module, struct view *view, int dim, struct view_range range);
/* Cuts digits so that they begin at these units, too (a unit: the product of the extents of all
 * digits further inside). */
bool view_refine(struct module *module, struct view *view, int dim, int units, const int64_t *unit);
/* Places a dim at offset, offset + step, … of a larger dim; no piece holds elsewhere. */
struct view_position {
	int64_t offset, step, extent;
};
bool view_place(struct module *module, struct view *view, int dim, struct view_position position);
/* Places a dim as one of several equal parts of a larger dim. */
void view_part(struct module *module, struct view *view, int dim, int part, int parts);
/* Elements of front where it has a piece, else those of back. */
bool view_overlay(struct module *module, struct view *front, const struct view *back);

/* Units at which the digits of a dim begin, ascending, without 1; returns their number. */
int view_units(const struct view *view, int dim, int64_t *unit);
/* Has the dim at most one digit, inside which no piece ends? */
bool view_is_plain(const struct view *view, int dim);
/* Is it one constant everywhere? */
bool view_is_constant(const struct view *view);
/* Is it all of one tensor in its own order? */
bool view_is_identity(const struct view *view);
/* Does the piece hold everywhere? */
bool piece_is_total(const struct view *view, const struct piece *piece);
/* Does every element lie in a piece?  Then the last piece needs no test. */
bool view_is_covered(const struct view *view);
#endif
