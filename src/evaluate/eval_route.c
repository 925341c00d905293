/* Evaluates the stream-level ops that pass words on: width conversion, fork, chunk selection, layer
 * multiplexer, and interleaving of several streams. */
#include "evaluate/eval_level.h"
#include <string.h>

static size_t word_bytes(const struct words *words)
{
	return (size_t)(words->lanes * scalar_storage_bytes(type_scalar(words->type)));
}

bool route_cast(struct evaluation *e, struct op *op)
{
	const struct words *from = op->operand[0]->data;
	struct words *to = eval_words(e, op->result[0]->type);
	if (from->elements != to->elements)
		return diag_error(e->module->diag, op->location,
		        "%lld elements come, %lld are sent on", (long long)from->elements,
		        (long long)to->elements);
	to->data = from->data;
	op->result[0]->data = to;
	return true;
}

bool route_fork(struct evaluation *e, struct op *op)
{
	for (int i = 0; i < op->results; i++) {
		if (op->result[i]->type != op->operand[0]->type)
			return diag_error(e->module->diag, op->location, "a fork from %s to %s",
			        op->operand[0]->type->text, op->result[i]->type->text);
		op->result[i]->data = op->operand[0]->data;
	}
	return true;
}

bool route_layer_mux(struct evaluation *e, struct op *op)
{
	const struct attr *table = attr_get(op, KEY_TABLE);
	const struct op *loop = op->parent->parent;
	int64_t layer = loop->code == OP_FOR ? eval_integer(loop->region[0]->argument[0]) : -1;
	if (!table || table->kind != ATTR_INTEGERS || layer < 0 || layer >= table->count ||
	        table->integers[layer] < 0 || table->integers[layer] >= op->operands)
		return diag_error(e->module->diag, op->location,
		        "a choice without an operand for layer %lld", (long long)layer);
	op->result[0]->data = op->operand[table->integers[layer]]->data;
	return true;
}

/* The words of a stack that are the current layer's row; NULL after a diagnostic. */
static char *layer_part(struct evaluation *e, const struct op *op, const struct words *stack,
        const struct words *row)
{
	int64_t layer = eval_integer(op->operand[op->code == OP_LAYER_ROW ? 0 : 2]);
	if (layer >= 0 && (layer + 1) * row->elements <= stack->elements &&
	        stack->lanes == row->lanes)
		return stack->data + (size_t)(layer * row->elements / row->lanes) * word_bytes(row);
	diag_error(e->module->diag, op->location, "layer %lld of a stack of %lld elements",
	        (long long)layer, (long long)stack->elements);
	return NULL;
}

static size_t all_bytes(const struct words *words)
{
	return (size_t)(words->elements / words->lanes) * word_bytes(words);
}

bool route_layer_row(struct evaluation *e, struct op *op)
{
	const struct words *stack = op->operand[1]->data;
	struct words *to = eval_words(e, op->result[0]->type);
	const char *from = layer_part(e, op, stack, to);
	if (!from)
		return false;
	memcpy(to->data, from, all_bytes(to));
	op->result[0]->data = to;
	return true;
}

bool route_insert_layer(struct evaluation *e, struct op *op)
{
	const struct words *row = op->operand[0]->data;
	const struct words *stack = op->operand[1]->data;
	struct words *to = eval_words(e, op->result[0]->type);
	char *at = layer_part(e, op, to, row);
	if (!at)
		return false;
	memcpy(to->data, stack->data, all_bytes(to));
	memcpy(at, row->data, all_bytes(row));
	op->result[0]->data = to;
	return true;
}

bool route_empty_stack(struct evaluation *e, struct op *op)
{
	op->result[0]->data = eval_words(e, op->result[0]->type);
	return true;
}

/* The words whose counters lie in low … high - 1; trip counts are those of this run. */
bool route_chunk(struct evaluation *e, struct op *op)
{
	const struct words *from = op->operand[0]->data;
	const struct itensor *order = from->type->itensor;
	const struct attr *low = attr_get(op, KEY_LOW);
	const struct attr *high = attr_get(op, KEY_HIGH);
	struct words *to = eval_words(e, op->result[0]->type);
	int64_t *counter = ARENA_ARRAY(e->arena, int64_t, order->dims + 1);
	int64_t *trip = ARENA_ARRAY(e->arena, int64_t, order->dims + 1);
	int64_t words = from->elements / from->lanes;
	char *next = to->data;
	for (int i = 0; i < order->dims; i++)
		trip[i] =
		        eval_trips(e, order->trip[i], order->run_time ? order->run_time[i] : NULL);
	for (int64_t w = 0; w < words; w++) {
		bool inside = true;
		for (int i = 0; i < order->dims; i++)
			inside = inside && counter[i] >= low->integers[i] &&
			        counter[i] < high->integers[i];
		if (inside)
			next = (char *)memcpy(next, from->data + (size_t)w * word_bytes(from),
			               word_bytes(from)) +
			        word_bytes(from);
		for (int i = order->dims - 1; i >= 0 && ++counter[i] == trip[i]; i--)
			counter[i] = 0;
	}
	op->result[0]->data = to;
	return true;
}

/* In every round, words[i] words of operand i, until the operands are used up. */
static bool interleave(struct evaluation *e, struct op *op, const int64_t *words)
{
	struct words *to = eval_words(e, op->result[0]->type);
	const struct words *first = op->operand[0]->data;
	int64_t iterations = first->elements / first->lanes / words[0];
	char *next = to->data;
	for (int64_t t = 0; t < iterations; t++)
		for (int i = 0; i < op->operands; i++) {
			const struct words *from = op->operand[i]->data;
			size_t bytes = (size_t)words[i] * word_bytes(from);
			next = (char *)memcpy(next, from->data + (size_t)t * bytes, bytes) + bytes;
		}
	op->result[0]->data = to;
	return true;
}

bool route_concat(struct evaluation *e, struct op *op)
{
	return interleave(e, op, attr_get(op, KEY_WORDS)->integers);
}

bool route_join(struct evaluation *e, struct op *op)
{
	int64_t *words = ARENA_ARRAY(e->arena, int64_t, op->operands);
	for (int i = 0; i < op->operands; i++)
		words[i] = 1;
	return interleave(e, op, words);
}
