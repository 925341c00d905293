/* stream.kernel on dense memory (kernel.h): a nest that accumulates into the result, then one over the parallel loops for `post`. */
#include "sim/eval_level.h"
#include <string.h>

struct nest eval_kernel_nest(struct evaluation *e, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	struct nest nest = {.loops = kernel->loops, .operands = op->operands, .results = 1};
	nest.extent = ARENA_ARRAY(e->arena, int64_t, kernel->loops + 1);
	nest.operand = ARENA_ARRAY(e->arena, struct port, op->operands + 1);
	nest.result = ARENA_ARRAY(e->arena, struct port, 1);
	nest.yield = ARENA_ARRAY(e->arena, int, 1);
	for (int l = 0; l < kernel->loops; l++)
		nest.extent[l] = eval_trips(e, kernel->loop[l].extent, kernel->loop[l].run_time);
	for (int i = 0; i < op->operands; i++)
		nest.operand[i] = (struct port){.type = type_scalar(op->operand[i]->type), .access = kernel->operand[i]};
	nest.result[0] = (struct port){.type = kernel->type, .access = kernel->result};
	return nest;
}

/* Index operands first, then the body; the nest yields the body's result. */
static bool use_body(struct evaluation *e, const struct op *op, struct nest *nest, const struct body *body)
{
	nest->program = (struct program){0};
	for (int i = 0; i < op->operands; i++) {
		int index = op->kernel->operand[i].index_operand;
		if (index >= 0)
			program_add(e->arena, &nest->program, (struct step){.kind = STEP_OPERAND, .type = nest->operand[index].type, .number = index});
	}
	nest->yield[0] = (int)nest->program.steps.count + body->result;
	return program_add_body(e->module, e->arena, op->location, &nest->program, body);
}

static bool use_tree(struct evaluation *e, const struct op *op, struct nest *nest)
{
	const struct kernel *kernel = op->kernel;
	int term;
	nest->tree = true;
	if (kernel_combine(kernel, &term) == OP_NONE || !scalar_op_make(&nest->combine, kernel->combine, 0, kernel->type, kernel->type))
		return diag_error(e->module->diag, op->location, "a reduction over lanes that is no combine(accumulator, term)");
	nest->yield[0] += term - kernel->update.result;
	return true;
}

static bool run_post(struct evaluation *e, const struct op *op, struct nest *nest)
{
	nest->tree = false;
	for (int l = 0; l < nest->loops; l++)
		nest->extent[l] = op->kernel->loop[l].reduction ? 1 : nest->extent[l];
	return use_body(e, op, nest, &op->kernel->post) && nest_run(e->module, e->arena, op, nest);
}

bool eval_kernel_run(struct evaluation *e, const struct op *op, struct nest *nest)
{
	const struct kernel *kernel = op->kernel;
	bool reduction = kernel_has_reduction(kernel);
	bool lanes_reduced = kernel->scheduled && kernel->lanes > 1 && kernel->loop[kernel->loops - 1].reduction;
	if (reduction) {
		union scalar init = scalar_constant(kernel->type, kernel->init, (int64_t)kernel->init);
		for (int64_t i = 0; i < nest->result[0].elements; i++)
			scalar_write(kernel->type, &init, nest->result[0].data, i, 0, 1);
	}
	if (!use_body(e, op, nest, &kernel->update))
		return false;
	if (lanes_reduced && !use_tree(e, op, nest))
		return false;
	if (!nest_run(e->module, e->arena, op, nest))
		return false;
	return !reduction || !kernel->post.count || run_post(e, op, nest);
}

bool eval_tensor_kernel(struct evaluation *e, struct op *op)
{
	struct nest nest = eval_kernel_nest(e, op);
	struct tensor *out = eval_result(e, op);
	for (int i = 0; i < op->operands; i++) {
		const struct tensor *tensor = op->operand[i]->data;
		nest.operand[i].data = tensor->data;
		nest.operand[i].elements = type_elements(tensor->type);
	}
	nest.result[0].data = out->data;
	nest.result[0].elements = type_elements(out->type);
	return eval_kernel_run(e, op, &nest);
}
