/* Stores gathered tables, as embeddings, as rows of integers with one f16 scale for each row:
 *     table[index, :]  ->  (float)q[index, :] * (float)scale[index]
 * Needs: fused kernels, no rolled layers.
 * Guarantees: with embeddings in the scheme, no kernel gathers from an f32 weight of rank 2.
 * Quantizing: each number is off by at most half a scale.
 * Ends: it visits every operand once. */
#include "quantize/quantize.h"
#include "quantize/quantize_passes.h"

/* Is operand j a weight [rows, numbers] of which the index selects a row? */
static bool is_table(
        const struct quantizer *q, const struct op *op, int j, int64_t *rows, int64_t *numbers)
{
	const struct access *access = &op->kernel->operand[j];
	const struct type *type = op->operand[j]->type;
	if (access->index_operand < 0 || access->offset || !is_weight(q, op->operand[j]) ||
	        type->rank != 2)
		return false;
	*rows = type->shape[0];
	*numbers = type->shape[1];
	return access->index_stride == *numbers && *numbers > 1;
}

/* The argument with the integers, or with the scales. */
static struct value *table_argument(
        struct quantizer *q, const struct value *table, int64_t numbers, bool scales)
{
	struct module *module = q->module;
	int64_t rows = table->type->shape[0];
	struct quantized from = from_weight(q, table);
	from.scales = scales;
	from.bits = q->scheme->embedding;
	from.axis = 1;
	from.group = numbers;
	if (scales)
		return add_weight(q, &from, "scale",
		        type_shaped(module, TYPE_TENSOR, 1, &rows, type_float(module, 16)));
	return add_weight(q, &from, "q",
	        type_shaped(module, TYPE_TENSOR, 2, table->type->shape,
	                type_integer(module, q->scheme->embedding)));
}

/* Replaces operand j in the body by (float)j * (float)scale; the scale is the last operand. */
static void scale_table_rows(struct module *module, struct op *op, int j, int bits)
{
	const struct type *real = type_float(module, 32);
	struct kernel *kernel = op->kernel;
	int count = op->operands;
	struct body body = { 0 };
	int *map = ARENA_ARRAY(module->arena, int, count);
	for (int i = 0; i < count; i++)
		map[i] = -1;
	int integers = body_op(module, &body, OP_SITOFP, real,
	        body_operand(module, &body, type_integer(module, bits), j), 0, 0);
	int scale = body_op(module, &body, OP_EXTF, real,
	        body_operand(module, &body, type_float(module, 16), count - 1), 0, 0);
	map[j] = body_op(module, &body, OP_MULF, real, integers, scale, 0);
	body.result = body_rewrite(module, &body, &kernel->update,
	        (struct body_map){ .operand = map, .accumulator = -1 });
	kernel->update = body;
}

/* Operand j becomes the integers, an added operand their scale; both use the same index. */
static void quantize_table(struct quantizer *q, struct op *op, int j, int64_t numbers)
{
	struct module *module = q->module;
	struct kernel *kernel = op->kernel;
	int count = op->operands + 1;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, count);
	struct access *access = ARENA_ARRAY(module->arena, struct access, count);
	for (int i = 0; i < op->operands; i++) {
		operand[i] = op->operand[i];
		access[i] = kernel->operand[i];
	}
	operand[j] = table_argument(q, op->operand[j], numbers, false);
	operand[count - 1] = table_argument(q, op->operand[j], numbers, true);
	access[count - 1] = access_copy(module, &access[j], kernel->loops);
	for (int l = 0; l < kernel->loops; l++)
		access[count - 1].stride[l] = 0;
	access[count - 1].index_stride = 1;
	op_set_operands(module, op, count, operand);
	kernel->operand = access;
	scale_table_rows(module, op, j, q->scheme->embedding);
}

static void quantize_tables(struct quantizer *q, struct op *op)
{
	for (int j = op->operands - 1; j >= 0; j--) {
		int64_t rows;
		int64_t numbers;
		if (!is_table(q, op, j, &rows, &numbers) || kernel_is_post_operand(op->kernel, j))
			continue;
		quantize_table(q, op, j, numbers);
	}
}

bool quantize_embeddings(struct pass_context *context, struct module *module)
{
	struct quantizer q;
	if (!context->quant || !context->quant->embedding)
		return true;
	if (!quantizer_begin(&q, context, module))
		return false;
	for (struct op *op = q.main->region[0]->first; op; op = op->next)
		if (op->code == OP_KERNEL)
			quantize_tables(&q, op);
	quantizer_end(&q);
	return true;
}
