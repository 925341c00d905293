/* Turns 64-bit floats into 32-bit ones: values, constants, bodies and main's signature. A function
 * of C keeps them: its author chose them.
 * Before: f64 sums, as PyTorch asks for in variances      After: f32 sums, no conversions
 * Needs: kernels.
 * Guarantees: no f64 is left, except in functions of C; integers keep their width.
 * Approximating: sums are formed in f32.
 * Ends: each operation is visited once. */
#include "ir/kernel_edit.h"
#include "tensor/tensor_passes.h"
#include <string.h>

static const struct type *demoted(struct module *module, const struct type *type)
{
	if (type->kind == TYPE_TENSOR)
		return type_shaped(module, TYPE_TENSOR, type->rank, type->shape,
		        demoted(module, type->element));
	return type->kind == TYPE_FLOAT && type->width == 64 ? type_float(module, 32) : type;
}

static bool is_wide(const struct type *type)
{
	const struct type *scalar = type_scalar(type);
	return scalar->kind == TYPE_FLOAT && scalar->width == 64;
}

/* Conversions between f64 and f32 vanish. */
static void demote_body(struct module *module, struct body *body)
{
	struct body result = { 0 };
	int *place = ARENA_ARRAY(module->arena, int, body->count);
	for (int i = 0; i < body->count; i++) {
		struct node node = body->node[i];
		if (node.kind == NODE_CONSTANT && is_wide(node.type))
			node.real = (double)(float)node.real;
		node.type = demoted(module, node.type);
		for (int k = 0; k < body_arguments(&node); k++)
			node.argument[k] = place[node.argument[k]];
		bool conversion =
		        node.kind == NODE_OP && (node.code == OP_EXTF || node.code == OP_TRUNCF);
		if (conversion && result.node[node.argument[0]].type == node.type)
			place[i] = node.argument[0];
		else
			place[i] = body_add(module, &result, node);
	}
	result.result = body->count ? place[body->result] : 0;
	*body = result;
}

static void demote_constant(struct module *module, struct op *op)
{
	const struct attr *value = attr_get(op, KEY_VALUE);
	if (value->kind != ATTR_DENSE || !is_wide(value->type))
		return;
	size_t count = value->bytes / sizeof(double);
	float *narrow = ARENA_ARRAY(module->arena, float, count);
	for (size_t i = 0; i < count; i++) {
		double wide;
		memcpy(&wide, (const char *)value->data + i * sizeof wide, sizeof wide);
		narrow[i] = (float)wide;
	}
	struct attr *copy = arena_copy(module->arena, value, sizeof *value);
	copy->type = demoted(module, value->type);
	copy->data = narrow;
	copy->bytes = count * sizeof(float);
	attr_set(module, op, KEY_VALUE, copy);
}

static void demote_op(struct op *op, void *context)
{
	struct module *module = context;
	if (op->code == OP_KERNEL) {
		demote_body(module, &op->kernel->update);
		demote_body(module, &op->kernel->post);
		if (is_wide(op->kernel->type))
			op->kernel->init = (double)(float)op->kernel->init;
		op->kernel->type = demoted(module, op->kernel->type);
	}
	if (op->code == OP_CONSTANT)
		demote_constant(module, op);
	for (int i = 0; i < op->results; i++)
		op->result[i]->type = demoted(module, op->result[i]->type);
}

static void demote_signature(struct module *module, struct op *main)
{
	const struct type *old = attr_get(main, KEY_FUNCTION_TYPE)->type;
	const struct type **input = ARENA_ARRAY(module->arena, const struct type *, old->inputs);
	const struct type **output = ARENA_ARRAY(module->arena, const struct type *, old->outputs);
	for (int i = 0; i < old->inputs; i++)
		input[i] = main->region[0]->argument[i]->type = demoted(module, old->input[i]);
	for (int i = 0; i < old->outputs; i++)
		output[i] = demoted(module, old->output[i]);
	attr_set(module, main, KEY_FUNCTION_TYPE,
	        attr_type(module, type_function(module, old->inputs, input, old->outputs, output)));
}

bool demote_f64(struct pass_context *context, struct module *module)
{
	(void)context;
	struct op *main = module_main(module);
	if (attr_get(main, KEY_STREAM_DOUBLE))
		return true;
	ir_walk(main->region[0], demote_op, module);
	demote_signature(module, main);
	return true;
}
