/* When two accesses of an array name the same element: equations between the counters of the loops
 * that run as one pipeline. */
#include "hls_model/hls_model_internal.h"

/* --- one iteration --- */

bool model_same_element(const struct cpp_array *array, const struct cpp_operation *left,
        const struct cpp_operation *right)
{
	for (int d = 0; d < array->rank; d++) {
		const struct cpp_form *a = &left->subscript[d];
		const struct cpp_form *b = &right->subscript[d];
		bool equal = a->known && b->known;
		for (int i = 0; equal && i < CPP_DEPTH; i++)
			equal = a->coefficient[i] == b->coefficient[i];
		if (equal && a->constant != b->constant)
			return false;
	}
	return true;
}

/* --- later iterations --- */

struct steps {
	bool known[CPP_DEPTH];
	int64_t by[CPP_DEPTH]; /* iterations of each loop from the write to the read */
};

/* One dimension: sum of coefficient * step = constant. false: it cannot hold. */
static bool solve_dimension(const struct flat_nest *nest, int level, const struct cpp_form *write,
        const struct cpp_form *read, struct steps *steps)
{
	int unknown = CPP_NONE;
	int64_t rest = write->constant - read->constant;
	if (!write->known || !read->known)
		return true;
	for (int i = 0; i < CPP_DEPTH; i++)
		if (write->coefficient[i] != read->coefficient[i])
			return true;
	for (int i = level; i <= nest->last; i++) {
		if (!read->coefficient[i])
			continue;
		if (unknown != CPP_NONE)
			return true;
		unknown = i;
	}
	if (unknown == CPP_NONE)
		return rest == 0;
	int64_t factor = read->coefficient[unknown];
	if (rest % factor)
		return false;
	int64_t step = rest / factor;
	int64_t most = nest->trips[unknown] - 1;
	bool within = step <= most && -step <= most && (unknown != level || step > 0);
	if (!within || (steps->known[unknown] && steps->by[unknown] != step))
		return false;
	steps->known[unknown] = true;
	steps->by[unknown] = step;
	return true;
}

static int64_t iterations_of(const struct flat_nest *nest, int level, const struct steps *steps)
{
	int64_t total = 0;
	for (int i = level; i <= nest->last; i++) {
		int64_t least = i == level ? 1 : 1 - nest->trips[i];
		total = total * nest->trips[i] + (steps->known[i] ? steps->by[i] : least);
	}
	return total < 1 ? 1 : total;
}

int64_t model_distance(const struct flat_nest *nest, const struct cpp_array *array,
        const struct cpp_operation *write, const struct cpp_operation *read)
{
	int64_t least = DEPENDENCE_NEVER;
	for (int level = nest->last; level >= nest->first; level--) {
		struct steps steps = { 0 };
		bool possible = nest->trips[level] > 1;
		for (int d = 0; possible && d < array->rank; d++)
			possible = solve_dimension(
			        nest, level, &write->subscript[d], &read->subscript[d], &steps);
		int64_t distance = possible ? iterations_of(nest, level, &steps) : least;
		least = distance < least ? distance : least;
	}
	return least;
}
