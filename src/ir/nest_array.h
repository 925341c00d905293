/* How the arrays of a sequential nest lie on chip. */
#ifndef STC_NEST_ARRAY_H
#define STC_NEST_ARRAY_H
#include "ir/ir.h"

enum { NEST_DIMS = 16 };

/* Element i of a tensor is at i + margin in each dim. */
struct nest_array {
	int rank;
	int64_t extent[NEST_DIMS]; /* of the tensor */
	int64_t margin[NEST_DIMS];
	int64_t banks[NEST_DIMS];
	int64_t shape[NEST_DIMS]; /* of the array, a multiple of the banks */
};

static inline int64_t nest_array_item(
        const struct op *nest, enum attr_key key, int at, int64_t without)
{
	const struct attr *list = attr_get(nest, key);
	return list && at < list->count ? list->integers[at] : without;
}

/* Array `number` of the nest's body. */
static inline struct nest_array nest_array_of(const struct op *nest, int number)
{
	const struct block *body = nest->region[0];
	struct nest_array array = { .rank = body->argument[number]->type->rank };
	int at = 0;
	for (int i = 0; i < number; i++)
		at += body->argument[i]->type->rank;
	for (int d = 0; d < array.rank; d++) {
		array.shape[d] = body->argument[number]->type->shape[d];
		array.extent[d] = nest_array_item(nest, KEY_STREAM_EXTENTS, at + d, array.shape[d]);
		array.margin[d] = nest_array_item(nest, KEY_STREAM_MARGINS, at + d, 0);
		array.banks[d] = nest_array_item(nest, KEY_STREAM_BANKS, at + d, 1);
	}
	return array;
}

/* Position of a tensor's element, by its place in row-major order, in the array in row-major
 * order. */
static inline int64_t nest_array_place(const struct nest_array *array, int64_t element)
{
	int64_t place = 0;
	int64_t stride = 1;
	for (int d = array->rank - 1; d >= 0; d--) {
		place += stride * (element % array->extent[d] + array->margin[d]);
		element /= array->extent[d];
		stride *= array->shape[d];
	}
	return place;
}
#endif
