/* Matches kernels that are contractions with a weight, post(Σ x * w), and describes their loops:
 * those of tokens (they move x only), of outputs (w only) and of the reduction (both). */
#include "quantize/quantize.h"
#include <fnmatch.h>
#include <string.h>

/* Activations that share a scale where a whole row of weights has one. */
#define GROUP 128
/* Names of layers in a message. */
#define NAMES_LISTED 12

/* Is the kernel a sum, from 0, of products of two operands? */
static bool is_product_of_operands(const struct kernel *kernel, int *x, int *w)
{
	int term;
	if (kernel->init != 0.0 || kernel_combine(kernel, &term) != OP_ADDF)
		return false;
	const struct body *body = &kernel->update;
	const struct node *product = &body->node[term];
	if (product->kind != NODE_OP || product->code != OP_MULF)
		return false;
	const struct node *left = &body->node[product->argument[0]];
	const struct node *right = &body->node[product->argument[1]];
	if (left->kind != NODE_OPERAND || right->kind != NODE_OPERAND ||
	        left->integer == right->integer)
		return false;
	*x = (int)left->integer;
	*w = (int)right->integer;
	return true;
}

/* The digits of the reduction by falling stride of x; loops that continue each other in both x
 * and w are merged. */
static bool reduction_digits(
        struct arena *arena, const struct kernel *kernel, struct contraction *c)
{
	c->digit = ARENA_ARRAY(arena, struct digit, kernel->loops + 2);
	for (int l = 0; l < kernel->loops; l++) {
		struct digit digit = { kernel->loop[l].extent, kernel->operand[c->x].stride[l],
			kernel->operand[c->w].stride[l] };
		if (!kernel->loop[l].reduction)
			continue;
		if (!digit.x || !digit.w)
			return false;
		int at = c->digits++;
		for (; at > 0 && c->digit[at - 1].x < digit.x; at--)
			c->digit[at] = c->digit[at - 1];
		c->digit[at] = digit;
	}
	int count = 0;
	for (int i = 0; i < c->digits; i++) {
		struct digit *last = &c->digit[count - 1];
		struct digit next = c->digit[i];
		if (count && last->x == next.x * next.extent && last->w == next.w * next.extent)
			*last = (struct digit){ last->extent * next.extent, next.x, next.w };
		else
			c->digit[count++] = next;
	}
	c->digits = count;
	return count > 0;
}

/* Divides the parallel loops into tokens and outputs; none may move both. */
static bool parallel_loops(struct arena *arena, const struct kernel *kernel, struct contraction *c)
{
	c->token = ARENA_ARRAY(arena, int, kernel->loops + 1);
	c->output = ARENA_ARRAY(arena, int, kernel->loops + 1);
	for (int l = 0; l < kernel->loops; l++) {
		bool x = kernel->operand[c->x].stride[l];
		bool w = kernel->operand[c->w].stride[l];
		if (kernel->loop[l].reduction)
			continue;
		if (x && w)
			return false;
		if (!w) {
			c->token[c->tokens++] = l;
			continue;
		}
		int at = c->outputs++;
		for (; at > 0 &&
		        kernel->result.stride[c->output[at - 1]] < kernel->result.stride[l];
		        at--)
			c->output[at] = c->output[at - 1];
		c->output[at] = l;
	}
	return c->outputs > 0;
}

/* May the last output loop be cut?  Nothing may depend on its counter. */
static bool post_fits(const struct op *op, int last)
{
	for (int j = 0; j < op->operands; j++)
		if (op->kernel->operand[j].index_operand >= 0)
			return false;
	return !kernel_is_guarded(op, last) && !body_uses_counters(&op->kernel->post);
}

bool contraction_match(const struct quantizer *q, struct op *op, struct contraction *c)
{
	const struct kernel *kernel = op->kernel;
	*c = (struct contraction){ .op = op };
	if (!kernel_has_reduction(kernel) || kernel->ordered || kernel->result.offset ||
	        !is_product_of_operands(kernel, &c->x, &c->w))
		return false;
	if (!is_weight(q, op->operand[c->w])) {
		int other = c->x;
		c->x = c->w;
		c->w = other;
	}
	if (!is_weight(q, op->operand[c->w]) || is_weight(q, op->operand[c->x]) ||
	        kernel->type != type_float(q->module, 32))
		return false;
	if (!access_is_plain(&kernel->operand[c->x]) || !access_is_plain(&kernel->operand[c->w]))
		return false;
	struct arena *arena = q->module->arena;
	return reduction_digits(arena, kernel, c) && parallel_loops(arena, kernel, c) &&
	        post_fits(op, c->output[c->outputs - 1]);
}

bool is_weight(const struct quantizer *q, const struct value *value)
{
	if (value->def || value->block != q->main->region[0] ||
	        type_scalar(value->type) != type_float(q->module, 32))
		return false;
	if (value->index >= attr_get(q->main, KEY_ARG_ATTRS)->count)
		return false; /* an argument that this pass added */
	const struct attr *role = function_argument_attr(q->main, value->index, KEY_STREAM_ROLE);
	return role && text_same(role->text, "weight") &&
	        !function_argument_attr(q->main, value->index, KEY_STREAM_DERIVED_FROM);
}

/* What the user calls the weight of a contraction; NULL: it has no name. */
static const char *weight_name(const struct quantizer *q, const struct contraction *c)
{
	int index = c->op->operand[c->w]->index;
	const struct attr *name = function_argument_attr(q->main, index, KEY_STREAM_NAME);
	return name ? name->text : NULL;
}

/* The layer fc1 for the weight fc1.weight. */
static char *layer_name(const struct quantizer *q, const char *weight)
{
	static const char ending[] = ".weight";
	size_t length = strlen(weight), end = sizeof ending - 1;
	bool ends = length > end && !strcmp(weight + length - end, ending);
	return text_copy(q->module->arena, weight, ends ? length - end : length);
}

static bool matches(const char *pattern, const char *weight, const char *layer)
{
	return !fnmatch(pattern, layer, 0) || !fnmatch(pattern, weight, 0);
}

int contraction_bits(const struct quantizer *q, const struct contraction *c)
{
	const struct quant_scheme *scheme = q->scheme;
	const char *name = scheme->layers ? weight_name(q, c) : NULL;
	const char *layer = name ? layer_name(q, name) : NULL;
	for (int i = 0; layer && i < scheme->layers; i++)
		if (matches(scheme->layer[i].pattern, name, layer))
			return scheme->layer[i].bits;
	return c->op == q->head ? scheme->head : scheme->weight;
}

static bool unknown_layer(const struct quantizer *q, const char *pattern, const char *known)
{
	struct diag *diag = q->module->diag;
	diag_error(diag, NOWHERE, "--quant %s: there is no layer '%s'", q->scheme->text, pattern);
	return diag_note(diag, "layers with a weight that is multiplied: %s", known);
}

/* Adds a layer's name to the list, which ends with an ellipsis where it would be long. */
static void list_layer(struct text *list, int *count, const char *name)
{
	if (++*count < NAMES_LISTED)
		text_add(list, "%s%s", *count > 1 ? ", " : "", name);
	else if (*count == NAMES_LISTED)
		text_add_literal(list, ", …");
}

bool layers_are_known(const struct quantizer *q)
{
	struct arena *arena = q->module->arena;
	struct text known = text_new(arena);
	struct map listed = map_new(arena);
	int count = 0;
	bool *found = ARENA_ARRAY(arena, bool, q->scheme->layers + 1);
	for (struct op *op = q->main->region[0]->first; op && q->scheme->layers; op = op->next) {
		struct contraction c;
		const char *name = NULL, *layer;
		if (op->code == OP_KERNEL && contraction_match(q, op, &c))
			name = weight_name(q, &c);
		if (!name || map_get(&listed, name))
			continue;
		map_set(&listed, name, op);
		layer = layer_name(q, name);
		list_layer(&known, &count, layer);
		for (int i = 0; i < q->scheme->layers; i++)
			found[i] = found[i] || matches(q->scheme->layer[i].pattern, name, layer);
	}
	for (int i = 0; i < q->scheme->layers; i++)
		if (!found[i])
			return unknown_layer(
			        q, q->scheme->layer[i].pattern, count ? known.data : "none");
	return true;
}

void contraction_scheme(const struct quantizer *q, struct contraction *c)
{
	c->bits = contraction_bits(q, c);
	c->group = q->scheme->group || q->scheme->per_token ? q->scheme->group : GROUP;
	c->row_scale = !q->scheme->group && !q->scheme->per_token;
	c->per_token = q->scheme->per_token;
	c->zeros = q->scheme->zeros;
}
