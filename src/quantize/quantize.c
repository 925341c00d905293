/* Quantizes weights to few bits and the KV cache to bytes, as --quant says.
 * Before: y[n] = Σ_k x[k] * w[n, k] in f32
 * After, for groups g of the reduction:
 *         s[g] = max |x| / 127, 1 for zeros;     q = clamp(round half even(x / s))
 *         d[n, g] = Σ q * w' in integers;        y[n] = Σ_g in order: (float)d * (s[g] * s'[n, g])
 *         w' and s' are arguments that the packer makes from w (stream.derived_from).
 *         Gathered tables become rows of integers with a scale; what follows a sum stays f32.
 * Needs: fused kernels, no rolled layers.
 * Guarantees: a weight that only quantized kernels read is no argument of main any more.
 * Approximating: each number is off by at most half a scale.
 * Ends: it visits every kernel once. */
#include "tensor/tensor_passes.h"
#include "quantize/quantize_passes.h"
#include "quantize/quantize.h"

static const struct op *last_contraction(const struct quantizer *q)
{
	const struct op *last = NULL;
	for (struct op *op = q->main->region[0]->first; op; op = op->next) {
		struct contraction c;
		if (op->code == OP_KERNEL && contraction_match(q, op, &c))
			last = op;
	}
	return last;
}

static void quantize_op(struct quantizer *q, struct op *op)
{
	struct contraction c;
	bool contracts = contraction_match(q, op, &c);
	if (contracts && contraction_bits(q, op)) {
		contraction_scheme(q, &c);
		q->made += quantize_contraction(q, &c);
	} else if (!contracts && q->scheme->embedding) {
		q->made += quantize_embeddings(q, op);
	}
}

static void note_names(struct quantizer *q)
{
	q->names = map_new(q->module->arena);
	for (int i = 0; i < q->main->region[0]->arguments; i++) {
		const struct attr *name = function_argument_attr(q->main, i, KEY_STREAM_NAME);
		if (name)
			map_set(&q->names, name->text, q->main);
	}
}

bool quantize(struct pass_context *context, struct module *module)
{
	struct quantizer q = { .module = module,
		.main = module_main(module),
		.scheme = context->quant,
		.for_engine = has_engine(context),
		.softmax = (enum softmax_form)choice_word(&context->choices, CHOICE_SOFTMAX) };
	if (!q.scheme)
		return true;
	struct block *block = q.main->region[0];
	if (!block_is_flat(block)) {
		diag_error(module->diag, q.main->location,
		        "--quant %s on a module whose layers are rolled", q.scheme->text);
		return diag_note(module->diag,
		        "a module as imported, or a dump of a pass before roll_layers");
	}
	note_names(&q);
	q.head = last_contraction(&q);
	if (q.scheme->bf16)
		quantize_weights_bf16(&q);
	if (q.scheme->state == 16)
		quantize_kv_cache_bf16(&q);
	if (q.scheme->state == 8) {
		defer_softmax_division(context, module);
		quantize_kv_cache(&q);
	}
	if (q.scheme->weight) {
		fold_norm_biases(&q);
		defer_norm_factors(&q);
	}
	for (struct op *op = block->first, *next; op && q.scheme->weight; op = next) {
		next = op->next;
		if (op->code == OP_KERNEL)
			quantize_op(&q, op);
	}
	if (!q.made) {
		diag_error(module->diag, q.main->location,
		        "--quant %s: there is no weight to quantize", q.scheme->text);
		return diag_note(module->diag,
		        "needed are f32 matrix arguments of main with stream.role \"weight\" and "
		        "are operands of contractions or embedding tables");
	}
	finish_arguments(&q);
	return true;
}
