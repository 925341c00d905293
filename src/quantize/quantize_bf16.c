/* Stores matrices and tables of the model as bf16; arithmetic stays f32.
 *     reader(w: f32)  ->  reader(extend(w.bf16: bf16))
 * Needs: fused kernels, no rolled layers.
 * Guarantees: with --quant bf16, weights of rank 2 and more that only kernels read are bf16.
 * Quantizing: each weight is rounded to 8 bits of mantissa.
 * Ends: it visits every argument once. */
#include "quantize/quantize.h"
#include "quantize/quantize_passes.h"

/* A copy of the body in which operands j with half[j] are extended to f32. */
static struct body widened(
        struct module *module, const struct op *op, const struct body *from, const bool *half)
{
	struct body body = { 0 };
	int *map = ARENA_ARRAY(module->arena, int, op->operands + 1);
	for (int j = 0; j < op->operands; j++) {
		map[j] = -1;
		if (half[j] && body_uses_operand(from, j))
			map[j] = body_op(module, &body, OP_EXTF, type_float(module, 32),
			        body_operand(module, &body, type_bfloat(module), j), 0, 0);
	}
	body.result = body_rewrite(
	        module, &body, from, (struct body_map){ .operand = map, .accumulator = -1 });
	return body;
}

void widen_operands(struct module *module, struct op *op, const bool *half)
{
	op->kernel->update = widened(module, op, &op->kernel->update, half);
	if (op->kernel->post.count)
		op->kernel->post = widened(module, op, &op->kernel->post, half);
}

/* Lets all kernels that read the weight read the bf16 argument instead. */
static void widen_readers(struct quantizer *q, const struct block *block,
        const struct value *weight, struct value *half)
{
	for (struct op *op = block->first; op; op = op->next) {
		bool *reads = ARENA_ARRAY(q->module->arena, bool, op->operands + 1);
		bool any = false;
		if (op->code == OP_FOR)
			widen_readers(q, op->region[0], weight, half);
		for (int j = 0; op->code == OP_KERNEL && j < op->operands; j++) {
			reads[j] = op->operand[j] == weight;
			any = any || reads[j];
		}
		if (!any)
			continue;
		widen_operands(q->module, op, reads);
		for (int j = 0; j < op->operands; j++)
			op->operand[j] = reads[j] ? half : op->operand[j];
	}
}

static bool only_kernels_read(const struct block *block, const struct value *weight)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR && !only_kernels_read(op->region[0], weight))
			return false;
		for (int j = 0; j < op->operands; j++)
			if (op->operand[j] == weight && op->code != OP_KERNEL)
				return false;
	}
	return true;
}

bool quantize_bf16(struct pass_context *context, struct module *module)
{
	struct quantizer q;
	if (!context->quant || !context->quant->bf16)
		return true;
	if (!quantizer_begin(&q, context, module))
		return false;
	struct block *block = q.main->region[0];
	for (int i = 0, count = block->arguments; i < count; i++) {
		const struct value *weight = block->argument[i];
		if (!is_weight(&q, weight) || weight->type->rank < 2 ||
		        !only_kernels_read(block, weight))
			continue;
		struct quantized from = from_weight(&q, weight);
		from.cast = true;
		from.bits = 16;
		const struct type *type = type_shaped(module, TYPE_TENSOR, weight->type->rank,
		        weight->type->shape, type_bfloat(module));
		widen_readers(&q, block, weight, add_weight(&q, &from, "bf16", type));
	}
	quantizer_end(&q);
	return true;
}
