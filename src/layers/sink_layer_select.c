/* Moves a computation into the layers where each selects between results of equal kernels.
 * Before: m0 = f(a0); m1 = f(a1); loop { m = select(m0, m1) }
 * After:  loop { m = f(select(a0, a1)) }
 * So the masks of layers with and without a sliding window are computed in each layer.  Before the
 * loop both would be buffered as a whole through all layers, and the first layer would wait for
 * the last of them.
 * Needs: rolled layers.
 * Guarantees: what layers select on chip is small, or computed in different ways.
 * Exact: the same operations.
 * Ends: each step removes a select; those that replace it select earlier results. */
#include "ir/kernel_edit.h"
#include "ir/kernel_signature.h"
#include "layers/layers_passes.h"
#include <string.h>

/* Least bytes of a result: smaller ones are cheap to buffer, and the kernel runs in every layer. */
#define SINK_BYTES_LEAST 65536

/* A select that is replaced. */
struct sink {
	struct module *module;
	struct op *loop, *layer_select;
	const struct op *first; /* the kernel of layer 0 */
	bool *own;              /* [nodes of its body]: constants that differ between layers */
};

static const struct op *producer(const struct sink *s, int layer)
{
	return s->layer_select->operand[1 + layer]->def;
}

static int layers_of(const struct sink *s)
{
	return s->layer_select->operands - 1;
}

static bool is_sinkable(const struct sink *s, const struct op *op)
{
	return op && op->code == OP_KERNEL && op->parent == s->loop->parent &&
	        !kernel_has_reduction(op->kernel) && !op->kernel->ordered &&
	        !op->kernel->tile_outermost;
}

static bool is_storable(const struct node *node)
{
	const struct type *type = node->type;
	return (type->kind == TYPE_FLOAT && type->width == 32) ||
	        (type->kind == TYPE_INTEGER && type->width >= 8 && type->width % 8 == 0);
}

/* Signature of the kernel without the constants that differ between layers. */
static const char *signature(const struct sink *s, const struct op *op)
{
	struct op bare = *op;
	bare.kernel = kernel_clone(s->module, op->kernel, op->operands);
	struct body *body = &bare.kernel->update;
	for (int n = 0; n < body->count; n++)
		if (s->own[n]) {
			body->node[n].integer = 0;
			body->node[n].real = 0;
		}
	struct text text = text_new(s->module->arena);
	kernel_signature(&bare, NULL, &text);
	return text.data;
}

/* Notes constants that differ from those of layer 0.  false: the bodies differ otherwise, too. */
static bool note_constants(const struct sink *s, const struct op *op)
{
	const struct body *body = &op->kernel->update;
	const struct body *first = &s->first->kernel->update;
	if (op->operands != s->first->operands || body->count != first->count ||
	        op->result[0]->type != s->first->result[0]->type)
		return false;
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		const struct node *other = &first->node[n];
		bool both = node->kind == NODE_CONSTANT && other->kind == NODE_CONSTANT &&
		        node->type == other->type;
		bool differs = both &&
		        (node->integer != other->integer ||
		                memcmp(&node->real, &other->real, sizeof node->real) != 0);
		if (differs && !is_storable(node))
			return false;
		s->own[n] |= differs;
	}
	return true;
}

static bool reads_alike(const struct sink *s, const struct op *op)
{
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j]->type != s->first->operand[j]->type)
			return false;
	return true;
}

/* Are the selected values results of several kernels that are equal but for constants? */
static bool are_alike(struct sink *s)
{
	bool several = false;
	bool alike = true;
	s->first = producer(s, 0);
	if (!is_sinkable(s, s->first) ||
	        type_elements(s->first->result[0]->type) * type_bits(s->first->kernel->type) / 8 <
	                SINK_BYTES_LEAST)
		return false;
	s->own = ARENA_ARRAY(s->module->arena, bool, s->first->kernel->update.count + 1);
	for (int l = 1; l < layers_of(s) && alike; l++) {
		several |= producer(s, l) != s->first;
		alike = producer(s, l) == s->first ||
		        (is_sinkable(s, producer(s, l)) && note_constants(s, producer(s, l)) &&
		                reads_alike(s, producer(s, l)));
	}
	const char *form = several && alike ? signature(s, s->first) : NULL;
	for (int l = 1; l < layers_of(s) && several && alike; l++)
		alike = producer(s, l) == s->first || producer(s, l) == producer(s, l - 1) ||
		        text_same(form, signature(s, producer(s, l)));
	return several && alike;
}

static struct op *first_after_selects(const struct block *body)
{
	struct op *op = body->first;
	while (op->code == OP_LAYER_SELECT)
		op = op->next;
	return op;
}

/* The value of the current layer: a select of value[layers], an existing one if there is one. */
static struct value *select_of_layers(const struct sink *s, struct value *const *value)
{
	struct block *body = s->loop->region[0];
	struct value **operand = ARENA_ARRAY(s->module->arena, struct value *, layers_of(s) + 1);
	bool same = true;
	for (int l = 0; l < layers_of(s); l++) {
		operand[1 + l] = value[l];
		same = same && value[l] == value[0];
	}
	if (same)
		return value[0];
	operand[0] = body->argument[0];
	for (struct op *op = body->first; op->code == OP_LAYER_SELECT; op = op->next)
		if (!memcmp(op->operand, operand, sizeof *operand * (size_t)(layers_of(s) + 1)))
			return op->result[0];
	struct op *layer_select = op_new(s->module, OP_LAYER_SELECT, s->layer_select->location,
	        layers_of(s) + 1, operand, 1, &value[0]->type);
	op_insert_before(body->first, layer_select);
	return layer_select->result[0];
}

/* A tensor constant with the number of the node. */
static struct value *stored(const struct sink *s, const struct node *node)
{
	const int64_t one = 1;
	const struct type *type = type_shaped(s->module, TYPE_TENSOR, 1, &one, node->type);
	size_t bytes = (size_t)node->type->width / 8;
	const float real = (float)node->real;
	unsigned char *data = arena_alloc(s->module->arena, sizeof node->integer);
	for (size_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)((uint64_t)node->integer >> (8 * i));
	if (node->type->kind == TYPE_FLOAT)
		memcpy(data, &real, sizeof real);
	struct attr *value = ARENA_NEW(s->module->arena, struct attr);
	*value = (struct attr){ .kind = ATTR_DENSE, .type = type, .data = data, .bytes = bytes };
	struct op *op =
	        op_new(s->module, OP_CONSTANT, s->layer_select->location, 0, NULL, 1, &type);
	attr_set(s->module, op, KEY_VALUE, value);
	op_insert_before(s->loop->parent->first, op);
	return op->result[0];
}

/* A constant that differs between layers, as a select of tensors. */
static struct value *constant_of_layers(const struct sink *s, int n)
{
	struct value **value = ARENA_ARRAY(s->module->arena, struct value *, layers_of(s));
	for (int l = 0; l < layers_of(s); l++) {
		for (int k = 0; k < l && !value[l]; k++)
			if (producer(s, k) == producer(s, l))
				value[l] = value[k];
		if (!value[l])
			value[l] = stored(s, &producer(s, l)->kernel->update.node[n]);
	}
	return select_of_layers(s, value);
}

static struct value *operand_of_layers(const struct sink *s, int j)
{
	struct value **value = ARENA_ARRAY(s->module->arena, struct value *, layers_of(s));
	for (int l = 0; l < layers_of(s); l++)
		value[l] = producer(s, l)->operand[j];
	return select_of_layers(s, value);
}

/* Replaces the select by a kernel in the layers. */
static void sink_select(struct sink *s)
{
	struct module *module = s->module;
	const struct body *from = &s->first->kernel->update;
	int operands = s->first->operands;
	int all = operands;
	struct value **operand =
	        ARENA_ARRAY(module->arena, struct value *, operands + from->count + 1);
	for (int j = 0; j < operands; j++)
		operand[j] = operand_of_layers(s, j);
	for (int n = 0; n < from->count; n++)
		if (s->own[n])
			operand[all++] = constant_of_layers(s, n);
	struct op *op = op_new(
	        module, OP_KERNEL, s->first->location, all, operand, 1, &s->first->result[0]->type);
	op->kernel = kernel_clone(module, s->first->kernel, operands);
	struct access *access = ARENA_ARRAY(module->arena, struct access, all + 1);
	memcpy(access, op->kernel->operand, sizeof *access * (size_t)operands);
	op->kernel->operand = access;
	op->kernel->name = text_format(module->arena, "%s_selected", s->first->kernel->name);
	struct body *body = &op->kernel->update;
	for (int n = 0, next = operands; n < from->count; n++)
		if (s->own[n]) {
			access[next] = access_empty(module, op->kernel->loops);
			body->node[n] = (struct node){
				.kind = NODE_OPERAND, .type = from->node[n].type, .integer = next++
			};
		}
	op_insert_before(first_after_selects(s->loop->region[0]), op);
	ir_replace(s->loop->region[0], s->layer_select->result[0], op->result[0]);
	op_remove(s->layer_select);
}

/* Replaces the last such select of the loop, so that selects of its operands are shared.  false:
 * there is none. */
static bool sink_last_select(struct module *module, struct op *loop)
{
	for (struct op *op = loop->region[0]->last; op; op = op->previous) {
		struct sink s = { .module = module, .loop = loop, .layer_select = op };
		if (op->code != OP_LAYER_SELECT || !are_alike(&s))
			continue;
		sink_select(&s);
		return true;
	}
	return false;
}

bool sink_layer_select(struct pass_context *context, struct module *module)
{
	(void)context;
	struct block *block = module_main(module)->region[0];
	bool sunk = false;
	for (struct op *op = block->first; op; op = op->next)
		while (op->code == OP_FOR && sink_last_select(module, op))
			sunk = true;
	if (sunk)
		ir_drop_unread_kernels(block);
	return true;
}
