/* Spreads the result of a kernel over the elements that its statement writes.
 * Before: for (i = 1; i < 7; i += 2) a[i] = …      a value for each of 3 iterations
 * After:  a value for each of a[1] … a[6], of which those between are not read
 * Readers that do not step in the same way then find an element by its subscripts. */
#include "raise/raise_internal.h"
#include "ir/kernel_edit.h"

struct spread {
	const struct poly_statement *statement;
	const struct poly_flow *flow;
	int rank;
	int loop[POLY_DIMS];       /* [rank] counter of the subscript; -1: it is a number */
	int64_t factor[POLY_DIMS]; /* of that counter */
	int64_t least[POLY_DIMS];  /* smallest subscript */
	int64_t extent[POLY_DIMS]; /* of the result */
};

static bool one_counter(const struct poly_form *form, int dims, int *loop, int64_t *factor)
{
	*loop = -1;
	*factor = 1;
	for (int d = 0; d < dims; d++) {
		if (!form->coefficient[d])
			continue;
		if (*loop >= 0)
			return false;
		*loop = d;
		*factor = form->coefficient[d];
	}
	return true;
}

/* Each subscript has a counter of its own, and no other counter is kept. */
static bool find_subscripts(struct spread *s)
{
	bool used[POLY_DIMS] = { false };
	for (int i = 0; i < s->rank; i++) {
		const struct poly_form *form = &s->statement->write.subscript[i];
		if (!one_counter(form, s->statement->dims, &s->loop[i], &s->factor[i]))
			return false;
		int loop = s->loop[i];
		s->extent[i] = 1;
		s->least[i] = form->constant;
		if (loop < 0)
			continue;
		if (used[loop])
			return false;
		used[loop] = true;
		int64_t factor = s->factor[i];
		s->least[i] += factor * (factor > 0 ? s->flow->low[loop] : s->flow->high[loop]);
		s->extent[i] = (factor > 0 ? factor : -factor) *
		        (s->flow->high[loop] - s->flow->low[loop] + 1);
	}
	for (int d = 0; d < s->statement->dims; d++)
		if (!used[d] && !s->flow->reduced[d] && s->flow->low[d] < s->flow->high[d])
			return false;
	return true;
}

static struct spread spread_of(const struct raising *r, int instance)
{
	struct spread s = { .statement = raise_statement(r, instance), .flow = &r->flow[instance] };
	s.rank = r->program.array[s.statement->write.array].rank;
	return s;
}

bool raise_is_spreadable(const struct raising *r, int instance)
{
	struct spread s = spread_of(r, instance);
	return find_subscripts(&s);
}

static int64_t place(const struct spread *s, struct raise_layout *layout)
{
	int64_t inner = 1;
	layout->element_offset = 0;
	for (int i = s->rank - 1; i >= 0; i--) {
		layout->element_stride[i] = inner;
		layout->element_offset -= inner * s->least[i];
		inner *= s->extent[i];
	}
	return inner;
}

int64_t raise_spread_layout(const struct raising *r, int instance, struct raise_layout *layout)
{
	struct spread s = spread_of(r, instance);
	find_subscripts(&s);
	return place(&s, layout);
}

/* Loop 2 i counts iterations of subscript i, loop 2 i + 1 the elements of each. */
static void fill(const struct spread *s, struct kernel *kernel, const struct raise_layout *layout)
{
	struct access *from = &kernel->operand[0];
	from->offset = layout->offset;
	for (int d = 0; d < s->statement->dims; d++)
		from->offset += layout->stride[d] * s->flow->low[d];
	for (int i = s->rank - 1; i >= 0; i--) {
		int64_t factor = s->factor[i] > 0 ? s->factor[i] : -s->factor[i];
		int64_t sign = s->factor[i] > 0 ? 1 : -1;
		int loop = s->loop[i];
		int64_t inner = layout->element_stride[i];
		kernel->loop[2 * i].extent = s->extent[i] / factor;
		kernel->loop[2 * i + 1].extent = factor;
		kernel->result.stride[2 * i] = factor * inner;
		kernel->result.stride[2 * i + 1] = inner;
		if (loop < 0)
			continue;
		from->stride[2 * i] = sign * layout->stride[loop];
		int64_t last = s->extent[i] / factor - 1;
		from->offset += sign > 0 ? 0 : layout->stride[loop] * last;
	}
}

void raise_spread(struct raising *r, int instance)
{
	struct raise_layout *layout = &r->layout[instance];
	const struct region_statement *origin = raise_origin(r, instance);
	struct spread s = spread_of(r, instance);
	const struct region_array *array = &r->region->arrays.data[s.statement->write.array];
	find_subscripts(&s);
	place(&s, layout);
	const char *name = raise_kernel_name(r, array->name, origin->location.line);
	struct op *op = kernel_new(r->module, origin->location, name, 2 * s.rank, 1, &layout->value,
	        type_shaped(r->module, TYPE_TENSOR, s.rank, s.extent, array->type));
	fill(&s, op->kernel, layout);
	op->kernel->update.result = body_operand(r->module, &op->kernel->update, array->type, 0);
	op_append(r->block, op);
	kernel_tidy(r->module, op);
	layout->by_element = op->result[0];
}
