/* The algebra of views: each operation moves, cuts or joins digits, and changes the strides and
 * ranges of all pieces accordingly. */
#include "tensor/view.h"
#include <string.h>

/* A copy of the piece with room for that many digits, all 0. */
static struct piece piece_new(struct module *module, const struct piece *like, int digits)
{
	struct piece piece = *like;
	piece.stride = ARENA_ARRAY(module->arena, int64_t, digits);
	piece.low = ARENA_ARRAY(module->arena, int64_t, digits);
	piece.high = ARENA_ARRAY(module->arena, int64_t, digits);
	return piece;
}

static void copy_digit(struct piece *to, int at, const struct piece *from, int digit)
{
	to->stride[at] = from->stride[digit];
	to->low[at] = from->low[digit];
	to->high[at] = from->high[digit];
}

static struct view view_copy(struct module *module, const struct view *view)
{
	struct view copy = *view;
	int digits = view_digits(view);
	copy.first = arena_copy(module->arena, view->first, sizeof(int) * (size_t)(view->rank + 1));
	copy.extent = ARENA_ARRAY(module->arena, int64_t, digits);
	copy.piece = ARENA_ARRAY(module->arena, struct piece, view->pieces);
	for (int d = 0; d < digits; d++)
		copy.extent[d] = view->extent[d];
	for (int p = 0; p < view->pieces; p++) {
		copy.piece[p] = piece_new(module, &view->piece[p], digits);
		for (int d = 0; d < digits; d++)
			copy_digit(&copy.piece[p], d, &view->piece[p], d);
	}
	return copy;
}

int64_t view_extent(const struct view *view, int dim)
{
	int64_t extent = 1;
	for (int d = view->first[dim]; d < view->first[dim + 1]; d++)
		extent *= view->extent[d];
	return extent;
}

static struct view view_of_shape(struct module *module, const struct type *type)
{
	struct arena *arena = module->arena;
	struct view view = { .element = type_scalar(type),
		.rank = type->kind == TYPE_TENSOR ? type->rank : 0 };
	view.first = ARENA_ARRAY(arena, int, view.rank + 1);
	view.extent = ARENA_ARRAY(arena, int64_t, view.rank);
	view.piece = ARENA_ARRAY(arena, struct piece, 1);
	view.pieces = 1;
	int digits = 0;
	for (int r = 0; r < view.rank; r++) {
		if (type->shape[r] != 1)
			view.extent[digits++] = type->shape[r];
		view.first[r + 1] = digits;
	}
	view.piece[0] = piece_new(module, &view.piece[0], digits);
	memcpy(view.piece[0].high, view.extent, sizeof(int64_t) * (size_t)digits);
	return view;
}

struct view view_of_root(struct module *module, struct value *root)
{
	struct view view = view_of_shape(module, root->type);
	int64_t stride = 1;
	for (int d = view_digits(&view) - 1; d >= 0; d--) {
		view.piece[0].stride[d] = stride;
		stride *= view.extent[d];
	}
	view.piece[0].root = root;
	return view;
}

struct view view_of_constant(struct module *module, const struct type *type, struct node constant)
{
	struct view view = view_of_shape(module, type);
	view.piece[0].constant = constant;
	return view;
}

struct view view_permute(struct module *module, const struct view *view, int rank, const int *dim,
        const int64_t *extent)
{
	struct arena *arena = module->arena;
	struct view result = { .element = view->element, .rank = rank, .pieces = view->pieces };
	result.first = ARENA_ARRAY(arena, int, rank + 1);
	int most = view_digits(view) + rank;
	result.extent = ARENA_ARRAY(arena, int64_t, most);
	result.piece = ARENA_ARRAY(arena, struct piece, view->pieces);
	for (int p = 0; p < view->pieces; p++)
		result.piece[p] = piece_new(module, &view->piece[p], most);
	int digits = 0;
	for (int r = 0; r < rank; r++) {
		if (dim[r] < 0 && extent[r] != 1) {
			for (int p = 0; p < view->pieces; p++)
				result.piece[p].high[digits] = extent[r];
			result.extent[digits++] = extent[r];
		}
		for (int d = dim[r] < 0 ? 0 : view->first[dim[r]];
		        dim[r] >= 0 && d < view->first[dim[r] + 1]; d++) {
			for (int p = 0; p < view->pieces; p++)
				copy_digit(&result.piece[p], digits, &view->piece[p], d);
			result.extent[digits++] = view->extent[d];
		}
		result.first[r + 1] = digits;
	}
	return result;
}

struct view view_collapse(
        struct module *module, const struct view *view, int groups, const int *first)
{
	struct view result = view_copy(module, view);
	result.rank = groups;
	result.first = ARENA_ARRAY(module->arena, int, groups + 1);
	for (int g = 0; g <= groups; g++)
		result.first[g] = view->first[first[g]];
	return result;
}

/* Does every piece walk this digit and the next one as one number? */
static bool can_merge(const struct view *view, int digit)
{
	int64_t inner = view->extent[digit + 1];
	for (int p = 0; p < view->pieces; p++) {
		const struct piece *piece = &view->piece[p];
		if (piece->root && piece->stride[digit] != piece->stride[digit + 1] * inner)
			return false;
		bool whole = piece->low[digit + 1] == 0 && piece->high[digit + 1] == inner;
		bool one = piece->high[digit] - piece->low[digit] == 1;
		if (!whole && !one)
			return false;
	}
	return true;
}

static void remove_digit(struct view *view, int digit)
{
	int digits = view_digits(view);
	for (int d = digit; d + 1 < digits; d++) {
		view->extent[d] = view->extent[d + 1];
		for (int p = 0; p < view->pieces; p++)
			copy_digit(&view->piece[p], d, &view->piece[p], d + 1);
	}
	for (int r = 0; r <= view->rank; r++)
		view->first[r] -= view->first[r] > digit;
}

static void merge_digits(struct view *view, int digit)
{
	int64_t inner = view->extent[digit + 1];
	for (int p = 0; p < view->pieces; p++) {
		struct piece *piece = &view->piece[p];
		int64_t low = piece->low[digit] * inner + piece->low[digit + 1];
		int64_t high = (piece->high[digit] - 1) * inner + piece->high[digit + 1];
		piece->low[digit + 1] = low;
		piece->high[digit + 1] = high;
	}
	view->extent[digit + 1] *= inner == 0 ? 0 : view->extent[digit];
	remove_digit(view, digit);
}

/* Merges what can be merged in one data dim.  Works in place on a view that the caller owns. */
static void merge_dim(struct view *view, int dim)
{
	for (int d = view->first[dim + 1] - 2; d >= view->first[dim]; d--)
		if (can_merge(view, d))
			merge_digits(view, d);
}

static bool piece_is_empty(const struct view *view, const struct piece *piece)
{
	for (int d = 0; d < view_digits(view); d++)
		if (piece->low[d] >= piece->high[d])
			return true;
	return false;
}

bool piece_is_total(const struct view *view, const struct piece *piece)
{
	for (int d = 0; d < view_digits(view); d++)
		if (piece->low[d] > 0 || piece->high[d] < view->extent[d])
			return false;
	return true;
}

/* Drops pieces that hold nowhere, those after one that holds everywhere, and digits of extent 1. */
static void tidy_view(struct view *view)
{
	int count = 0;
	for (int p = 0; p < view->pieces; p++) {
		if (piece_is_empty(view, &view->piece[p]))
			continue;
		view->piece[count++] = view->piece[p];
		if (piece_is_total(view, &view->piece[p]))
			break;
	}
	view->pieces = count;
	for (int d = view_digits(view) - 1; d >= 0; d--)
		if (view->extent[d] == 1)
			remove_digit(view, d);
}

/* A box of the (quotient, remainder) of a digit by the inner extent. */
struct digit_box {
	int64_t low[2], high[2];
};

/* Where a digit is cut in two: the inner one gets the extent `inner`. */
struct digit_cut {
	int digit;
	int64_t inner;
};

/* The range low … high - 1 of a digit as at most three such boxes; returns their number. */
static int cut_range(int64_t low, int64_t high, int64_t inner, struct digit_box box[3])
{
	int boxes = 0;
	int64_t first = low / inner;
	int64_t last = high / inner;
	if (first == last) {
		box[0] = (struct digit_box){ { first, low - first * inner },
			{ first + 1, high - first * inner } };
		return 1;
	}
	if (low % inner) {
		box[boxes++] = (struct digit_box){ { first, low % inner }, { first + 1, inner } };
		first++;
	}
	if (first < last)
		box[boxes++] = (struct digit_box){ { first, 0 }, { last, inner } };
	if (high % inner)
		box[boxes++] = (struct digit_box){ { last, 0 }, { last + 1, high % inner } };
	return boxes;
}

static struct piece cut_piece(struct module *module, const struct piece *piece, int digits,
        struct digit_cut at, struct digit_box box)
{
	int digit = at.digit;
	struct piece cut = piece_new(module, piece, digits + 1);
	for (int d = 0; d < digits; d++)
		copy_digit(&cut, d + (d > digit), piece, d);
	cut.stride[digit] = piece->stride[digit] * at.inner;
	cut.stride[digit + 1] = piece->stride[digit];
	for (int k = 0; k < 2; k++) {
		cut.low[digit + k] = box.low[k];
		cut.high[digit + k] = box.high[k];
	}
	return cut;
}

/* Cuts a digit in two, and its range in each piece into boxes. */
static void cut_digit(struct module *module, struct view *view, int digit, int64_t inner)
{
	int digits = view_digits(view);
	VEC(struct piece) pieces = { 0 };
	for (int p = 0; p < view->pieces; p++) {
		struct digit_box box[3];
		int boxes = cut_range(
		        view->piece[p].low[digit], view->piece[p].high[digit], inner, box);
		for (int b = 0; b < boxes; b++)
			VEC_PUSH(module->arena, &pieces,
			        cut_piece(module, &view->piece[p], digits,
			                (struct digit_cut){ digit, inner }, box[b]));
	}
	view->piece = pieces.data;
	view->pieces = (int)pieces.count;
	int64_t *extent = ARENA_ARRAY(module->arena, int64_t, digits + 1);
	for (int d = 0; d < digits; d++)
		extent[d + (d > digit)] = view->extent[d];
	extent[digit] = view->extent[digit] / inner;
	extent[digit + 1] = inner;
	view->extent = extent;
	for (int r = 0; r <= view->rank; r++)
		view->first[r] += view->first[r] > digit;
}

/* Cuts the digit inside which the unit falls.  false: the unit does not divide it. */
static bool refine_at(struct module *module, struct view *view, int dim, int64_t unit)
{
	int64_t below = 1;
	for (int d = view->first[dim + 1] - 1; d >= view->first[dim]; d--) {
		int64_t extent = view->extent[d];
		if (unit <= below)
			return unit == below || unit == 1;
		if (unit < below * extent) {
			if (unit % below || extent % (unit / below))
				return false;
			cut_digit(module, view, d, unit / below);
			return true;
		}
		below *= extent;
	}
	return unit <= 1 || unit == below;
}

bool view_refine(struct module *module, struct view *view, int dim, int units, const int64_t *unit)
{
	struct view copy = view_copy(module, view);
	for (int u = 0; u < units; u++)
		if (!refine_at(module, &copy, dim, unit[u]))
			return false;
	*view = copy;
	return true;
}

int view_units(const struct view *view, int dim, int64_t *unit)
{
	int count = 0;
	int64_t below = 1;
	for (int d = view->first[dim + 1] - 1; d > view->first[dim]; d--) {
		below *= view->extent[d];
		unit[count++] = below;
	}
	return count;
}

struct view view_merge(struct module *module, const struct view *view)
{
	struct view copy = view_copy(module, view);
	for (int r = 0; r < copy.rank; r++)
		merge_dim(&copy, r);
	tidy_view(&copy);
	return copy;
}

bool view_expand(struct module *module, struct view *view, int dims, const int *source,
        const int64_t *extent)
{
	struct view copy = view_copy(module, view);
	for (int r = 0; r < copy.rank; r++)
		merge_dim(&copy, r);
	int64_t *below = ARENA_ARRAY(module->arena, int64_t, dims);
	for (int r = dims - 1; r >= 0; r--) {
		bool innermost = r == dims - 1 || source[r] != source[r + 1];
		below[r] = innermost ? 1 : below[r + 1] * extent[r + 1];
		if (!refine_at(module, &copy, source[r], below[r]))
			return false;
	}
	int *first = ARENA_ARRAY(module->arena, int, dims + 1);
	first[dims] = view_digits(&copy);
	for (int r = dims - 1; r >= 0; r--) {
		int64_t size = 1;
		first[r] = first[r + 1];
		while (size < extent[r])
			size *= copy.extent[--first[r]];
	}
	copy.first = first;
	copy.rank = dims;
	*view = copy;
	return true;
}

static int64_t ceiling(int64_t a, int64_t b)
{
	return a <= 0 ? 0 : (a + b - 1) / b;
}

static void slice_digit(struct view *view, int digit, int64_t offset, int64_t count, int64_t step)
{
	for (int p = 0; p < view->pieces; p++) {
		struct piece *piece = &view->piece[p];
		int64_t high = ceiling(piece->high[digit] - offset, step);
		piece->offset += piece->stride[digit] * offset;
		piece->stride[digit] *= step;
		piece->low[digit] = ceiling(piece->low[digit] - offset, step);
		piece->high[digit] = high < count ? high : count;
	}
	view->extent[digit] = count;
}

/* Slices from the outermost digit inwards, until a digit takes the rest of the slice. */
static bool slice_dim(struct view *view, int dim, struct view_range range)
{
	int64_t offset = range.first;
	int64_t count = range.count;
	int64_t step = range.step;
	int64_t inner = view_extent(view, dim);
	for (int d = view->first[dim]; d < view->first[dim + 1]; d++) {
		if (offset == 0 && step == 1 && count == inner)
			return true;
		inner /= view->extent[d];
		if (inner == 1) {
			slice_digit(view, d, offset, count, step);
			return true;
		}
		bool whole = offset % inner == 0 && step == 1 && count % inner == 0;
		bool strided = offset % inner == 0 && step % inner == 0 && count > 0;
		if (whole) {
			slice_digit(view, d, offset / inner, count / inner, 1);
			return true;
		}
		if (strided) {
			slice_digit(view, d, offset / inner, count, step / inner);
			for (int k = d + 1; k < view->first[dim + 1]; k++)
				slice_digit(view, k, 0, 1, 1);
			return true;
		}
		if (offset / inner != (offset + (count - 1) * step) / inner)
			return false;
		slice_digit(view, d, offset / inner, 1, 1);
		offset %= inner;
	}
	return count == 1;
}

bool view_slice(struct module *module, struct view *view, int dim, struct view_range range)
{
	if (range.first == 0 && range.step == 1 && range.count == view_extent(view, dim))
		return true;
	struct view copy = view_copy(module, view);
	merge_dim(&copy, dim);
	if (!slice_dim(&copy, dim, range))
		return false;
	tidy_view(&copy);
	*view = copy;
	return true;
}

/* Gives a data dim an outermost digit of that extent and of stride 0. */
static void insert_digit(struct module *module, struct view *view, int dim, int64_t extent)
{
	int digits = view_digits(view);
	int at = view->first[dim];
	for (int p = 0; p < view->pieces; p++) {
		struct piece old = view->piece[p];
		view->piece[p] = piece_new(module, &old, digits + 1);
		for (int d = 0; d < digits; d++)
			copy_digit(&view->piece[p], d + (d >= at), &old, d);
		view->piece[p].low[at] = 0;
		view->piece[p].high[at] = extent;
	}
	int64_t *larger = ARENA_ARRAY(module->arena, int64_t, digits + 1);
	for (int d = 0; d < digits; d++)
		larger[d + (d >= at)] = view->extent[d];
	larger[at] = extent;
	view->extent = larger;
	for (int r = dim + 1; r <= view->rank; r++)
		view->first[r]++;
}

bool view_place(struct module *module, struct view *view, int dim, struct view_position position)
{
	int64_t offset = position.offset;
	int64_t size = view_extent(view, dim);
	if (offset == 0 && size == position.extent)
		return true;
	if (position.step != 1 && size > 1)
		return false;
	struct view copy = view_copy(module, view);
	merge_dim(&copy, dim);
	if (copy.first[dim] == copy.first[dim + 1])
		insert_digit(module, &copy, dim, 1);
	if (copy.first[dim + 1] - copy.first[dim] != 1)
		return false;
	int digit = copy.first[dim];
	for (int p = 0; p < copy.pieces; p++) {
		copy.piece[p].low[digit] += offset;
		copy.piece[p].high[digit] += offset;
		copy.piece[p].offset -= offset * copy.piece[p].stride[digit];
	}
	copy.extent[digit] = position.extent;
	*view = copy;
	return true;
}

void view_part(struct module *module, struct view *view, int dim, int part, int parts)
{
	struct view copy = view_copy(module, view);
	merge_dim(&copy, dim);
	insert_digit(module, &copy, dim, parts);
	for (int p = 0; p < copy.pieces; p++) {
		copy.piece[p].low[copy.first[dim]] = part;
		copy.piece[p].high[copy.first[dim]] = part + 1;
	}
	*view = copy;
}

/* Cuts both views so that the dim has the same digits in them. */
static bool align_dim(struct module *module, struct view *left, struct view *right, int dim)
{
	int64_t *unit = ARENA_ARRAY(module->arena, int64_t, view_digits(left) + view_digits(right));
	int count = view_units(left, dim, unit);
	if (!view_refine(module, right, dim, count, unit))
		return false;
	count = view_units(right, dim, unit);
	return view_refine(module, left, dim, count, unit);
}

bool view_overlay(struct module *module, struct view *front, const struct view *back)
{
	struct view left = view_copy(module, front);
	struct view right = view_copy(module, back);
	for (int r = 0; r < left.rank; r++)
		if (!align_dim(module, &left, &right, r))
			return false;
	struct piece *piece = ARENA_ARRAY(module->arena, struct piece, left.pieces + right.pieces);
	memcpy(piece, left.piece, sizeof *piece * (size_t)left.pieces);
	memcpy(piece + left.pieces, right.piece, sizeof *piece * (size_t)right.pieces);
	left.piece = piece;
	left.pieces += right.pieces;
	tidy_view(&left);
	*front = left;
	return true;
}

bool view_is_plain(const struct view *view, int dim)
{
	int digit = view->first[dim];
	if (view->first[dim + 1] - digit > 1)
		return false;
	for (int p = 0; p < view->pieces && view->first[dim + 1] > digit; p++)
		if (view->piece[p].low[digit] > 0 ||
		        view->piece[p].high[digit] < view->extent[digit])
			return false;
	return true;
}

bool view_is_constant(const struct view *view)
{
	return view->pieces == 1 && !view->piece[0].root && piece_is_total(view, &view->piece[0]);
}

bool view_is_identity(const struct view *view)
{
	if (view->pieces != 1 || !view->piece[0].root || view->piece[0].offset ||
	        !piece_is_total(view, &view->piece[0]))
		return false;
	int64_t stride = 1;
	for (int d = view_digits(view) - 1; d >= 0; d--) {
		if (view->extent[d] != 1 && view->piece[0].stride[d] != stride)
			return false;
		stride *= view->extent[d];
	}
	return stride == type_elements(view->piece[0].root->type);
}

/* Is there no element that both pieces hold? */
static bool disjoint(const struct view *view, const struct piece *left, const struct piece *right)
{
	for (int d = 0; d < view_digits(view); d++)
		if (left->high[d] <= right->low[d] || right->high[d] <= left->low[d])
			return true;
	return false;
}

bool view_is_covered(const struct view *view)
{
	int64_t all = 1;
	int64_t covered = 0;
	for (int d = 0; d < view_digits(view); d++)
		all *= view->extent[d];
	for (int p = 0; p < view->pieces; p++) {
		int64_t volume = 1;
		for (int d = 0; d < view_digits(view); d++)
			volume *= view->piece[p].high[d] - view->piece[p].low[d];
		covered += volume;
		for (int q = 0; q < p; q++)
			if (!disjoint(view, &view->piece[p], &view->piece[q]))
				return piece_is_total(view, &view->piece[view->pieces - 1]);
	}
	return covered == all;
}
