/* Where layers pick between what two kernels in front of them make alike (the masks of sliding
 * and of other layers), one such kernel in the layers makes it of what they pick among what
 * these read. The results would wait on chip through all layers, whole, and the first layer for
 * the last of them: two masks of 128 tokens by 1,151 keys are 1.2 MB, and come a number a cycle.
 * Needs: rolled layers.  Guarantees: what layers pick on chip is small, or made in different
 * ways.  Exact: the same operations.  Ends: each turn takes a pick away, and what replaces it
 * picks among what was made earlier. */
#include "ir/kernel_edit.h"
#include "ir/kernel_signature.h"
#include "layers/layers_passes.h"
#include <string.h>

/* bytes of a result from which on it pays: less waits for nobody, and the kernel would work in
 * every layer for it */
#define SINK_BYTES_LEAST 65536

struct sink {
	struct module *module;
	struct op *loop, *layer_select;
	const struct op *first; /* the kernel of the first layer */
	bool *own;              /* [nodes of its body] constants that are another in some layer */
};

static const struct op *maker(const struct sink *s, int layer)
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

/* The kernel without the constants that layers have of their own. */
static const char *signature(const struct sink *s, const struct op *op)
{
	struct op bare = *op;
	bare.kernel = kernel_clone(s->module, op->kernel, op->operands);
	struct body *body = &bare.kernel->update;
	for (int n = 0; n < body->count; n++)
		if (s->own[n])
			body->node[n].integer = 0, body->node[n].real = 0;
	struct text text = text_new(s->module->arena);
	kernel_signature(&bare, NULL, &text);
	return text.data;
}

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

static bool are_alike(struct sink *s)
{
	bool several = false, alike = true;
	s->first = maker(s, 0);
	if (!is_sinkable(s, s->first) ||
	        type_elements(s->first->result[0]->type) * type_bits(s->first->kernel->type) / 8 <
	                SINK_BYTES_LEAST)
		return false;
	s->own = ARENA_ARRAY(s->module->arena, bool, s->first->kernel->update.count + 1);
	for (int l = 1; l < layers_of(s) && alike; l++) {
		several |= maker(s, l) != s->first;
		alike = maker(s, l) == s->first ||
		        (is_sinkable(s, maker(s, l)) && note_constants(s, maker(s, l)) &&
		                reads_alike(s, maker(s, l)));
	}
	const char *form = several && alike ? signature(s, s->first) : NULL;
	for (int l = 1; l < layers_of(s) && several && alike; l++)
		alike = maker(s, l) == s->first || maker(s, l) == maker(s, l - 1) ||
		        text_same(form, signature(s, maker(s, l)));
	return several && alike;
}

static struct op *first_after_selects(const struct block *body)
{
	struct op *op = body->first;
	while (op->code == OP_LAYER_SELECT)
		op = op->next;
	return op;
}

/* Of each layer its own; `value` has one for each. */
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

/* A constant that layers have of their own; equal ones of several layers are one tensor. */
static struct value *constant_of_layers(const struct sink *s, int n)
{
	struct value **value = ARENA_ARRAY(s->module->arena, struct value *, layers_of(s));
	for (int l = 0; l < layers_of(s); l++) {
		for (int k = 0; k < l && !value[l]; k++)
			value[l] = maker(s, k) == maker(s, l) ? value[k] : NULL;
		value[l] = value[l] ? value[l] : stored(s, &maker(s, l)->kernel->update.node[n]);
	}
	return select_of_layers(s, value);
}

static struct value *operand_of_layers(const struct sink *s, int j)
{
	struct value **value = ARENA_ARRAY(s->module->arena, struct value *, layers_of(s));
	for (int l = 0; l < layers_of(s); l++)
		value[l] = maker(s, l)->operand[j];
	return select_of_layers(s, value);
}

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

/* The last one first: what several pick among comes in front of them, and is sunk once. */
static bool sink_one(struct module *module, struct op *loop)
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

static void drop_unread(struct block *block)
{
	ir_count_uses(block);
	struct op *before;
	for (struct op *op = block->last; op; op = before) {
		before = op->previous;
		if (op->code != OP_KERNEL || op->result[0]->uses)
			continue;
		for (int j = 0; j < op->operands; j++)
			op->operand[j]->uses--;
		op_remove(op);
	}
}

bool sink_layer_select(struct pass_context *context, struct module *module)
{
	(void)context;
	struct block *block = module_main(module)->region[0];
	bool sunk = false;
	for (struct op *op = block->first; op; op = op->next)
		while (op->code == OP_FOR && sink_one(module, op))
			sunk = true;
	if (sunk)
		drop_unread(block);
	return true;
}
