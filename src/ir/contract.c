/* Reads a stream.contract op and checks that its operands match. */
#include "ir/contract.h"
#include <stdint.h>

static bool is_integers(const struct type *type, int least, int most)
{
	return type->kind == TYPE_INTEGER && type->width >= least && type->width <= most;
}

static bool is_float(const struct type *type, int width)
{
	return type->kind == TYPE_FLOAT && type->width == width;
}

/* Elements of a tensor, or of all words of a stream. */
static int64_t element_count(const struct type *type)
{
	return type->kind == TYPE_ITENSOR ? itensor_tiles(type->itensor) * stream_lanes(type)
	                                  : type_elements(type);
}

static bool carries(const struct type *type)
{
	return type->kind == TYPE_ITENSOR || (type->kind == TYPE_TENSOR && type->rank > 0);
}

static bool all_tensors(const struct contract *contract, int count)
{
	int64_t scales = contract->groups * contract->outputs;
	for (int i = 0; i < count; i++) {
		const struct type *weight = contract->weight[i]->type;
		const struct type *scale = contract->scale[i]->type;
		if (weight->kind != TYPE_TENSOR || scale->kind != TYPE_TENSOR ||
		        weight != contract->weight[0]->type || scale != contract->scale[0]->type)
			return false;
		if (!is_integers(weight->element, 4, 8) || !is_float(scale->element, 16) ||
		        type_elements(weight) != scales * contract->size ||
		        type_elements(scale) != scales)
			return false;
		const struct type *zero = contract->zero ? contract->zero[i]->type : NULL;
		if (zero &&
		        (zero != contract->zero[0]->type || zero->kind != TYPE_TENSOR ||
		                zero->element != weight->element || type_elements(zero) != scales))
			return false;
	}
	return true;
}

/* Tensors of a layer: weights, scales and, behind these, zero points. */
static int layer_tensors(const struct op *op)
{
	return is_integers(type_scalar(op->operand[op->operands - 1]->type), 1, 8) ? 3 : 2;
}

int64_t engine_result_lanes(int64_t uses)
{
	return uses >= ENGINE_BASE_LANES ? 4 * ENGINE_BASE_LANES : 2 * ENGINE_BASE_LANES;
}

int64_t contract_lanes(const struct op *op)
{
	int64_t own = engine_result_lanes(attr_integer_or(op, KEY_TOKENS_PER_CYCLE, 1) *
	        attr_integer_or(op, KEY_PES_PER_PORT, 1));
	int64_t most = attr_integer_or(op, KEY_LANES, own);
	return most < own ? most : own;
}

bool contract_of(const struct op *op, struct contract *contract)
{
	int first = op->operands > 2 && op->operand[2]->type->kind == TYPE_INDEX ? 3 : 2;
	int each = op->operands > first + 1 ? layer_tensors(op) : 2;
	int count = (op->operands - first) / each;
	if (count < 1 || op->operands != first + each * count || op->results != 1 ||
	        (first == 2 && count != 1))
		return false;
	const struct type *x = op->operand[0]->type;
	const struct type *s = op->operand[1]->type;
	const struct type *y = op->result[0]->type;
	if (!carries(x) || !carries(s) || !carries(y) || !is_integers(type_scalar(x), 8, 8) ||
	        !is_float(type_scalar(s), 32) || !is_float(type_scalar(y), 32))
		return false;
	*contract = (struct contract){ .layers = first == 3 ? count : 0,
		.layer = first == 3 ? op->operand[2] : NULL,
		.weight = op->operand + first,
		.scale = op->operand + first + count,
		.zero = each > 2 ? op->operand + first + 2 * count : NULL };
	contract->tokens = attr_integer_or(op, KEY_TOKENS, 1);
	contract->tokens_per_cycle = (int)attr_integer_or(op, KEY_TOKENS_PER_CYCLE, 1);
	contract->pes_per_port = (int)attr_integer_or(op, KEY_PES_PER_PORT, 1);
	contract->lanes = contract_lanes(op);
	contract->same_input = attr_get(op, KEY_SAME_INPUT) != NULL;
	contract->second_pass = attr_get(op, KEY_SECOND_PASS) != NULL;
	contract->single_block = attr_get(op, KEY_SINGLE_BLOCK) != NULL;
	contract->token_symbol = attr_text_or(op, KEY_TOKEN_COUNT, NULL);
	contract->size = x->kind == TYPE_ITENSOR ? stream_lanes(x) : x->shape[x->rank - 1];
	contract->groups = contract->size && contract->tokens > 0
	        ? element_count(x) / contract->size / contract->tokens
	        : 0;
	if (contract->groups < 1 ||
	        element_count(x) != contract->tokens * contract->groups * contract->size ||
	        element_count(s) != contract->tokens * contract->groups ||
	        (s->kind == TYPE_ITENSOR && stream_lanes(s) != 1))
		return false;
	if (contract->scale[0]->type->kind != TYPE_TENSOR)
		return false;
	contract->outputs = type_elements(contract->scale[0]->type) / contract->groups;
	int64_t made = element_count(y);
	int64_t wanted = contract->tokens * contract->outputs;
	int64_t lanes = y->kind == TYPE_ITENSOR ? stream_lanes(y) : 1;
	/* the words of a row may be padded to whole words */
	int64_t padded = contract->tokens * ((contract->outputs + lanes - 1) / lanes * lanes);
	return contract->outputs > 0 && contract->pes_per_port > 0 &&
	        contract->pes_per_port <= PES_PER_PORT_MOST && (made == wanted || made == padded) &&
	        all_tensors(contract, count);
}
