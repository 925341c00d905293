/* Where values are that a statement reads, and what is to become of statements that cannot find
 * them. A kernel finds an element by an affine function of its counters that stays inside while
 * each loop runs over all of its values; a sequential nest holds arrays as C does, and finds any.
 * So a statement that reads in another way is in a nest, and, if its elements are where no
 * function of the counters says, what writes them as well. */
#include "raise/raise_internal.h"

/* The counter that a subscript is, apart from a constant; -1: it is a number; -2: another form. */
static int counter_of(const struct poly_form *form, int dims)
{
	int found = -1;
	for (int d = 0; d < dims; d++) {
		if (!form->coefficient[d])
			continue;
		if (found >= 0 || form->coefficient[d] != 1)
			return -2;
		found = d;
	}
	return found;
}

static int64_t extent_of(const struct poly_flow *flow, int dim)
{
	return flow->high[dim] - flow->low[dim] + 1;
}

/* The loop behind each dim of the array, if the subscripts are different counters and all counters
 * of more than one iteration that are not reduced. */
static bool array_order(const struct raising *r, int instance, int rank, int *loop)
{
	bool used[POLY_DIMS] = { false };
	const struct poly_statement *statement = raise_statement(r, instance);
	const struct poly_flow *flow = &r->flow[instance];
	int dims = statement->dims;
	for (int i = 0; i < rank; i++) {
		loop[i] = counter_of(&statement->write.subscript[i], dims);
		if (loop[i] == -2 || (loop[i] >= 0 && used[loop[i]]))
			return false;
		if (loop[i] >= 0)
			used[loop[i]] = true;
	}
	for (int d = 0; d < dims; d++)
		if (!used[d] && !flow->reduced[d] && extent_of(flow, d) > 1)
			return false;
	return true;
}

int raise_layout_of(
        const struct raising *r, int instance, struct raise_layout *layout, int64_t *shape)
{
	const struct poly_statement *statement = raise_statement(r, instance);
	const struct poly_flow *flow = &r->flow[instance];
	int array = statement->write.array;
	int loop[POLY_DIMS];
	int rank = array < 0 ? statement->dims : r->program.array[array].rank;
	bool by_array = array >= 0 && array_order(r, instance, rank, loop);
	if (!by_array) {
		rank = 0;
		for (int d = 0; d < statement->dims; d++)
			if (!flow->reduced[d])
				loop[rank++] = d;
	}
	int64_t stride = 1;
	for (int i = rank - 1; i >= 0; i--) {
		shape[i] = loop[i] < 0 ? 1 : extent_of(flow, loop[i]);
		if (loop[i] >= 0) {
			layout->stride[loop[i]] = stride;
			layout->offset -= stride * flow->low[loop[i]];
		}
		stride *= shape[i];
	}
	return rank;
}

/* --- addresses */

/* Is the source's element found by its writer's counters? Else by its subscripts. */
static bool is_direct(const struct raising *r, const struct poly_source *source)
{
	return source->instance >= 0 && source->is_affine &&
	        raise_group_of(r, source->instance) < 0;
}

static struct poly_form address_in(const struct raising *r, const struct poly_access *read,
        const struct poly_source *source, const struct raise_layout *layout)
{
	struct poly_form address = { 0 };
	if (is_direct(r, source)) {
		int dims = raise_statement(r, source->instance)->dims;
		address.constant = layout->offset;
		for (int d = 0; d < dims; d++) {
			for (int l = 0; l < POLY_DIMS; l++)
				address.coefficient[l] +=
				        layout->stride[d] * source->counter[d].coefficient[l];
			address.constant += layout->stride[d] * source->counter[d].constant;
		}
		return address;
	}
	const struct poly_array *array = &r->program.array[read->array];
	int64_t inner = 1;
	address.constant = layout ? layout->element_offset : 0;
	for (int i = array->rank - 1; i >= 0; i--) {
		int64_t stride = layout ? layout->element_stride[i] : inner;
		for (int l = 0; l < POLY_DIMS; l++)
			address.coefficient[l] += stride * read->subscript[i].coefficient[l];
		address.constant += stride * read->subscript[i].constant;
		inner *= array->extent[i];
	}
	return address;
}

struct poly_form raise_address(
        const struct raising *r, const struct poly_access *read, const struct poly_source *source)
{
	return address_in(
	        r, read, source, source->instance < 0 ? NULL : &r->layout[source->instance]);
}

bool raise_stays_inside(const struct poly_form *address, int dims, const int64_t *low,
        const int64_t *high, int64_t elements)
{
	int64_t least = address->constant;
	int64_t most = address->constant;
	for (int d = 0; d < dims; d++) {
		int64_t a = address->coefficient[d] * low[d];
		int64_t b = address->coefficient[d] * high[d];
		least += a < b ? a : b;
		most += a < b ? b : a;
	}
	return least >= 0 && most < elements;
}

struct value *raise_source_value(
        struct raising *r, const struct poly_access *read, const struct poly_source *source)
{
	if (source->instance < 0)
		return r->initial[read->array];
	struct raise_layout *layout = &r->layout[source->instance];
	if (is_direct(r, source))
		return layout->value;
	if (!layout->by_element)
		raise_spread(r, source->instance);
	return layout->by_element;
}

/* --- statements that read in another way */

static int64_t elements_of(const struct raising *r, int array)
{
	int64_t elements = 1;
	for (int d = 0; d < r->program.array[array].rank; d++)
		elements *= r->program.array[array].extent[d];
	return elements;
}

/* Elements of the value that holds the source, and where they are (before any is made). */
static int64_t find_layout(const struct raising *r, const struct poly_access *read,
        const struct poly_source *source, struct raise_layout *layout)
{
	int64_t shape[POLY_DIMS];
	int64_t elements = 1;
	if (source->instance >= 0 && raise_group_of(r, source->instance) < 0) {
		int rank = raise_layout_of(r, source->instance, layout, shape);
		for (int i = 0; i < rank; i++)
			elements *= shape[i];
		return is_direct(r, source) ? elements
		                            : raise_spread_layout(r, source->instance, layout);
	}
	elements = elements_of(r, read->array);
	int64_t inner = 1;
	for (int d = r->program.array[read->array].rank - 1; d >= 0; d--) {
		layout->element_stride[d] = inner;
		inner *= r->program.array[read->array].extent[d];
	}
	return elements;
}

/* Has the source's value a place for each element that does not depend on the reader? */
static bool has_place(const struct raising *r, const struct poly_source *source)
{
	return source->instance < 0 || raise_group_of(r, source->instance) >= 0 ||
	        is_direct(r, source) || raise_is_spreadable(r, source->instance);
}

static bool is_inside(const struct raising *r, int reader, const struct poly_access *read,
        const struct poly_source *source)
{
	struct raise_layout layout = { 0 };
	int64_t elements = find_layout(r, read, source, &layout);
	struct poly_form address = address_in(r, read, source, &layout);
	return raise_stays_inside(
	        &address, raise_statement(r, reader)->dims, source->low, source->high, elements);
}

/* A nest holds all elements that a computed subscript may mean. */
static bool mark_computed(
        const struct raising *r, int reader, const struct poly_source *source, bool *marked)
{
	int own = raise_group_of(r, reader);
	bool inside = source->instance < 0 || source->instance == reader ||
	        raise_group_of(r, source->instance) == own;
	if (own >= 0 && inside)
		return false;
	marked[reader] = true;
	if (source->instance >= 0)
		marked[source->instance] = true;
	return true;
}

/* Marks what has to be in a nest so that the reader finds the source. */
static bool mark_source(const struct raising *r, int reader, const struct poly_access *read,
        const struct poly_source *source, bool *marked)
{
	bool output = reader >= r->readers;
	bool nested = !output && raise_group_of(r, reader) >= 0;
	if (poly_is_computed(read))
		return mark_computed(r, reader, source, marked);
	bool placed = has_place(r, source);
	if (source->instance == reader || (placed && nested) ||
	        (placed && is_inside(r, reader, read, source)))
		return false;
	if (!output)
		marked[reader] = true;
	if (source->instance >= 0 && (output || !placed))
		marked[source->instance] = true;
	return true;
}

bool raise_join_addresses(struct raising *r)
{
	for (int o = 0; o < r->ordered; o++) {
		int i = r->order[o];
		bool nested = raise_group_of(r, i) >= 0;
		bool *marked = ARENA_ARRAY(r->arena, bool, r->instances);
		bool any = false;
		for (int k = 0; k < r->instances; k++) {
			if (k != i && (!nested || raise_group_of(r, k) != raise_group_of(r, i)))
				continue;
			const struct poly_statement *statement = raise_statement(r, k);
			for (int j = 0; j < statement->reads; j++) {
				const struct poly_read_flow *read = &r->flow[k].read[j];
				for (int s = 0; s < read->sources; s++)
					any |= mark_source(r, k, &statement->read[j],
					        &read->source[s], marked);
			}
			if (k < r->readers && !nested && statement->reads > KERNEL_OPERANDS)
				any = marked[k] = true;
		}
		if (any) {
			raise_join(r, marked);
			return true;
		}
	}
	return false;
}
