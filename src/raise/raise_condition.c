/* Conditions on counters as nodes of a kernel's body. */
#include "raise/raise_internal.h"
#include "ir/kernel_edit.h"

struct builder {
	struct module *module;
	struct body *body;
	const int64_t *low;
	int dims;
	int *division; /* nodes */
};

bool raise_is_always(const struct poly_set *set)
{
	for (int p = 0; p < set->parts; p++)
		if (!set->part[p].rows)
			return true;
	return false;
}

static int bit_op(struct builder *b, enum op_code code, int left, int right)
{
	return body_op(b->module, b->body, code, type_integer(b->module, 1), left, right, 0);
}

static int compare(struct builder *b, enum integer_predicate predicate, int left, int64_t right)
{
	struct node node = { .kind = NODE_OP,
		.code = OP_CMPI,
		.type = type_integer(b->module, 1),
		.integer = predicate };
	node.argument[0] = left;
	node.argument[1] = body_integer(b->module, b->body, type_index(b->module), right);
	return body_add(b->module, b->body, node);
}

/* Σ coefficient · counters in terms of the kernel's loops, and of divisions; the constant apart. */
static int row_sum(struct builder *b, const int64_t *coefficient, int divisions, int64_t *constant)
{
	const struct type *index = type_index(b->module);
	int64_t last = coefficient[b->dims + divisions];
	bool any = false;
	for (int d = 0; d < b->dims; d++) {
		last += coefficient[d] * b->low[d];
		any = any || coefficient[d];
	}
	int sum = any ? body_affine(b->module, b->body, b->dims, coefficient, 0) : -1;
	for (int i = 0; i < divisions; i++) {
		if (!coefficient[b->dims + i])
			continue;
		int factor = body_integer(b->module, b->body, index, coefficient[b->dims + i]);
		int term = body_op(b->module, b->body, OP_MULI, index, b->division[i], factor, 0);
		sum = sum < 0 ? term : body_op(b->module, b->body, OP_ADDI, index, sum, term, 0);
	}
	*constant = last;
	return sum;
}

/* The only counter of the row, if its factor is 1 or -1 and no division is in it; else -1. */
static int only_counter(const struct builder *b, const int64_t *coefficient, int divisions)
{
	int found = -1;
	for (int i = 0; i < b->dims + divisions; i++) {
		if (!coefficient[i])
			continue;
		bool plain = found < 0 && i < b->dims && coefficient[i] * coefficient[i] == 1;
		if (!plain)
			return -1;
		found = i;
	}
	return found;
}

static int row_condition(struct builder *b, const struct poly_row *row, int divisions)
{
	int64_t constant;
	int counter = only_counter(b, row->coefficient, divisions);
	if (counter < 0) {
		int sum = row_sum(b, row->coefficient, divisions, &constant);
		return compare(b, row->equality ? CMPI_EQ : CMPI_SGE, sum, -constant);
	}
	int64_t sign = row->coefficient[counter];
	int64_t bound = -sign * row->coefficient[b->dims + divisions] - b->low[counter];
	int index = body_index(b->module, b->body, counter);
	if (row->equality)
		return compare(b, CMPI_EQ, index, bound);
	return compare(b, sign > 0 ? CMPI_SGE : CMPI_SLE, index, bound);
}

static int part_condition(struct builder *b, const struct poly_part *part)
{
	const struct type *index = type_index(b->module);
	int all = -1;
	b->division = ARENA_ARRAY(b->module->arena, int, part->divisions);
	for (int i = 0; i < part->divisions; i++) {
		int64_t constant;
		int sum = row_sum(b, part->division[i].coefficient, i, &constant);
		int last = body_integer(b->module, b->body, index, constant);
		int by = body_integer(b->module, b->body, index, part->division[i].denominator);
		sum = sum < 0 ? last : body_op(b->module, b->body, OP_ADDI, index, sum, last, 0);
		b->division[i] = body_op(b->module, b->body, OP_FLOORDIVSI, index, sum, by, 0);
	}
	for (int i = 0; i < part->rows; i++) {
		int row = row_condition(b, &part->row[i], part->divisions);
		all = all < 0 ? row : bit_op(b, OP_ANDI, all, row);
	}
	return all;
}

int raise_condition(
        struct module *module, struct body *body, const struct poly_set *set, const int64_t *low)
{
	struct builder b = { module, body, low, set->dims, NULL };
	int any = -1;
	for (int p = 0; p < set->parts; p++) {
		int part = part_condition(&b, &set->part[p]);
		any = any < 0 ? part : bit_op(&b, OP_ORI, any, part);
	}
	return any;
}
