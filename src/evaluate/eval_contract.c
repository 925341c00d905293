/* Evaluates stream.contract, the quantized matmul: y[t][n] is the sum over groups g of the integer
 * dot product of x and of w less its zero point, times the scales of both.  Stream level receives
 * tensors and calls it. */
#include "ir/contract.h"
#include "evaluate/eval_level.h"

struct numbers {
	const struct type *weight, *scale; /* scalar types of w and own */
	const int8_t *x;                   /* [tokens][groups][size] */
	const float *s;                    /* [tokens][groups] scales of x */
	const void *w, *own, *zero; /* [groups][outputs][size]; [groups][outputs] scales, zeros */
	float *y;                   /* [tokens][outputs] */
};

/* y[t][n]; `w` is scratch for the weights of a group. */
static float output(
        const struct contract *c, const struct numbers *numbers, int64_t t, int64_t n, int64_t *w)
{
	const int8_t *x = numbers->x + t * c->groups * c->size;
	float sum = 0;
	float own;
	int64_t zero = 0;
	for (int64_t g = 0; g < c->groups; g++) {
		int64_t at = g * c->outputs + n;
		int64_t products = 0;
		scalar_read(numbers->weight, w, numbers->w, at * c->size, 1, c->size);
		scalar_read(numbers->scale, &own, numbers->own, at, 1, 1);
		if (numbers->zero)
			scalar_read(numbers->weight, &zero, numbers->zero, at, 1, 1);
		for (int64_t k = 0; k < c->size; k++)
			products += x[g * c->size + k] * (w[k] - zero);
		float scale = numbers->s[t * c->groups + g] * own;
		sum = sum + (float)(int32_t)products * scale;
	}
	return sum;
}

struct tensor *eval_contraction(struct evaluation *e, const struct op *op, const struct tensor *x,
        const struct tensor *s, const struct type *result)
{
	struct contract c;
	int64_t layer = 0;
	INVARIANT(e->module->guard, contract_of(op, &c),
	        "a contraction whose operands do not fit together");
	if (c.layer)
		layer = eval_integer(c.layer);
	if (layer < 0 || layer >= (c.layers ? c.layers : 1)) {
		diag_error(e->module->diag, op->location, "layer %lld of %d", (long long)layer,
		        c.layers);
		return NULL;
	}
	const struct tensor *w = eval_tensor_of(c.weight[layer]);
	const struct tensor *own = eval_tensor_of(c.scale[layer]);
	struct tensor *y = eval_new(e, result);
	int64_t *row = ARENA_ARRAY(e->arena, int64_t, c.size + 1);
	struct numbers numbers = { type_scalar(w->type), type_scalar(own->type), x->data, s->data,
		w->data, own->data, c.zero ? eval_tensor_of(c.zero[layer])->data : NULL, y->data };
	struct launch_tokens rows = launch_tokens_of(e->arena, c.token_symbol, c.tokens);
	for (int64_t t = 0; t < c.tokens; t++) {
		if (!eval_row_is_valid(e, &rows, t))
			continue;
		for (int64_t n = 0; n < c.outputs; n++)
			numbers.y[t * c.outputs + n] = output(&c, &numbers, t, n, row);
	}
	return y;
}

bool eval_contract(struct evaluation *e, struct op *op)
{
	struct tensor *y = eval_contraction(e, op, eval_tensor_of(op->operand[0]),
	        eval_tensor_of(op->operand[1]), op->result[0]->type);
	op->result[0]->data = y;
	return y != NULL;
}
