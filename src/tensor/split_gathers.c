/* Makes every gather a kernel that only copies rows: an indexed DMA at stream level.
 * Before: k = f(table[index[i], j], ...)      After: rows = table[index[i], j]; k = f(rows, ...)
 * Needs: kernels on whole tensors.
 * Guarantees: a kernel with a gathered operand copies it and does nothing else; loops of the index
 * come first, the others walk one contiguous row.
 * Exact.
 * Ends: each operand is visited once. */
#include "tensor/tensor_passes.h"
#include "ir/kernel_edit.h"

/* Loops of the copy: those of the index, then those of the row with the largest stride first. */
static int order_loops(const struct kernel *kernel, int table, int *order)
{
	const struct access *row = &kernel->operand[table];
	const struct access *index = &kernel->operand[row->index_operand];
	int count = 0;
	for (int l = 0; l < kernel->loops; l++)
		if (index->stride[l])
			order[count++] = l;
	int first = count;
	for (int l = 0; l < kernel->loops; l++) {
		if (index->stride[l] || !row->stride[l])
			continue;
		int at = count++;
		for (; at > first && row->stride[order[at - 1]] < row->stride[l]; at--)
			order[at] = order[at - 1];
		order[at] = l;
	}
	return count;
}

/* Do the loops other than the index's walk one contiguous row, without guards? */
static bool is_contiguous_row(const struct kernel *kernel, int table, const int *order, int count)
{
	const struct access *row = &kernel->operand[table];
	const struct access *index = &kernel->operand[row->index_operand];
	int64_t expected = 1;
	for (int i = count - 1; i >= 0 && !index->stride[order[i]]; i--) {
		if (row->stride[order[i]] != expected)
			return false;
		expected *= kernel->loop[order[i]].extent;
	}
	for (int l = 0; l < kernel->loops; l++)
		if (index->stride[l] && row->stride[l])
			return false;
	return !row->guards && !index->guards;
}

/* The elements of a row that the loops other than the index's reach: `extent` of them behind
 * `*from`.  false: they are no part of one row. */
static bool reach_in_row(const struct kernel *kernel, int table, int64_t *from, int64_t *extent)
{
	const struct access *row = &kernel->operand[table];
	const struct access *index = &kernel->operand[row->index_operand];
	int64_t low = row->offset, high = row->offset;
	for (int l = 0; l < kernel->loops; l++) {
		int64_t way = row->stride[l] * (kernel->loop[l].extent - 1);
		if (index->stride[l] && row->stride[l])
			return false;
		*(way < 0 ? &low : &high) += way;
	}
	*from = low;
	*extent = high - low + 1;
	return !row->guards && !index->guards && low >= 0 && high < row->index_stride;
}

/* The kernel that copies rows of operand `table` to such a tensor, still without strides. */
static struct op *new_copy(
        struct module *module, struct op *op, int table, const struct type *rows, const char *name)
{
	const struct access *row = &op->kernel->operand[table];
	struct value *operand[2] = { op->operand[row->index_operand], op->operand[table] };
	struct op *copy = kernel_new(module, op->location, name, rows->rank, 2, operand, rows);
	struct kernel *to = copy->kernel;
	int64_t pitch = 1;
	for (int i = rows->rank - 1; i >= 0; i--) {
		to->loop[i] = (struct loop){ .extent = rows->shape[i] };
		to->result.stride[i] = pitch;
		pitch *= rows->shape[i];
	}
	to->operand[0].offset = op->kernel->operand[row->index_operand].offset;
	to->operand[1].index_operand = 0;
	to->operand[1].index_stride = row->index_stride;
	to->operand[1].index_limit = row->index_limit;
	to->update.result = body_add(module, &to->update,
	        (struct node){ .kind = NODE_OPERAND, .type = rows->element, .integer = 1 });
	return copy;
}

/* Splits off the gather by operand `table`.  Rows that are read otherwise than element by element
 * are copied from the first to the last element that is read.  false: a diagnostic was given. */
static bool split_gather(struct module *module, struct op *op, int table, int serial)
{
	struct kernel *kernel = op->kernel;
	struct access *row = &kernel->operand[table];
	const struct access *index = &kernel->operand[row->index_operand];
	int *order = ARENA_ARRAY(module->arena, int, kernel->loops + 1);
	int count = order_loops(kernel, table, order), own = count;
	int64_t from = row->offset, extent = 0;
	if (!is_contiguous_row(kernel, table, order, count)) {
		if (!reach_in_row(kernel, table, &from, &extent)) {
			diag_error(module->diag, op->location,
			        "a gather of more than parts of one row for each index");
			return diag_note(module->diag, "accepted is table[index, …]");
		}
		while (own && !index->stride[order[own - 1]])
			own--;
	}
	int loops = own + (extent > 0);
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, loops + 1);
	for (int i = 0; i < own; i++)
		shape[i] = kernel->loop[order[i]].extent;
	if (extent)
		shape[own] = extent;
	const struct type *scalar = type_scalar(op->operand[table]->type);
	struct op *copy =
	        new_copy(module, op, table, type_shaped(module, TYPE_TENSOR, loops, shape, scalar),
	                text_format(module->arena, "%s_rows%d", kernel->name, serial));
	struct kernel *to = copy->kernel;
	struct access plain = { .stride = ARENA_ARRAY(module->arena, int64_t, kernel->loops + 1),
		.offset = row->offset - from,
		.index_operand = -1 };
	to->operand[1].offset = from;
	for (int i = 0; i < own; i++) {
		to->operand[0].stride[i] = index->stride[order[i]];
		to->operand[1].stride[i] = row->stride[order[i]];
		plain.stride[order[i]] = to->result.stride[i];
	}
	if (extent)
		to->operand[1].stride[own] = 1;
	for (int i = own; i < count; i++)
		plain.stride[order[i]] = row->stride[order[i]];
	op_insert_before(op, copy);
	op->operand[table] = copy->result[0];
	*row = plain;
	return true;
}

static bool split_block(struct module *module, struct block *block, int *serial)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->region[0] && op->code == OP_FOR &&
		        !split_block(module, op->region[0], serial))
			return false;
		if (op->code != OP_KERNEL || kernel_is_gather(op))
			continue;
		bool any = false;
		for (int j = 0; j < op->operands; j++) {
			if (op->kernel->operand[j].index_operand < 0)
				continue;
			if (!split_gather(module, op, j, (*serial)++))
				return false;
			any = true;
		}
		if (any)
			kernel_tidy(module, op);
	}
	return true;
}

bool split_gathers(struct pass_context *context, struct module *module)
{
	(void)context;
	int serial = 0;
	return split_block(module, module_main(module)->region[0], &serial);
}
