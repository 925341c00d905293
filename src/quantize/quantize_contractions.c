/* Contracts quantized weights in integers, as --quant says.
 * Before: y[n] = Σ_k x[k] * w[n, k] in f32
 * After, for groups g of the reduction:
 *         s[g] = max |x| / 127, 1 for zeros;     q = clamp(round half even(x / s))
 *         d[n, g] = Σ q * w' in integers;        y[n] = Σ_g in order: (float)d * (s[g] * s'[n, g])
 *         w' and s' are arguments that the packer makes from w (stream.derived_from).
 *         What follows a sum stays f32.
 * Needs: fused kernels, no rolled layers.
 * Guarantees: a weight that only quantized kernels read is no argument of main any more.
 * Quantizing: each number is off by at most half a scale.
 * Ends: it visits every kernel once. */
#include "quantize/quantize.h"
#include "quantize/quantize_passes.h"

static void quantize_op(struct quantizer *q, struct op *op)
{
	struct contraction c;
	if (!contraction_match(q, op, &c) || !contraction_bits(q, &c))
		return;
	contraction_scheme(q, &c);
	take_deferred_factor(q, &c);
	quantize_contraction(q, &c);
}

/* Is there anything that this pass or one before it has quantized? */
static bool has_quantized_arguments(const struct op *main)
{
	for (int i = 0; i < main->region[0]->arguments; i++) {
		const struct attr *role = function_argument_attr(main, i, KEY_STREAM_ROLE);
		bool state = role && text_same(role->text, "state");
		if (function_argument_attr(main, i, KEY_STREAM_DERIVED_FROM) ||
		        (state && type_bits(type_scalar(main->region[0]->argument[i]->type)) < 32))
			return true;
	}
	return false;
}

bool quantize_contractions(struct pass_context *context, struct module *module)
{
	struct quantizer q;
	if (!context->quant)
		return true;
	if (!quantizer_begin(&q, context, module) || !layers_are_known(&q))
		return false;
	for (struct op *op = q.main->region[0]->first, *next; op && q.scheme->weights; op = next) {
		next = op->next;
		if (op->code == OP_KERNEL)
			quantize_op(&q, op);
	}
	quantizer_end(&q);
	if (has_quantized_arguments(q.main))
		return true;
	diag_error(module->diag, q.main->location, "--quant %s: there is no weight to quantize",
	        q.scheme->text);
	return diag_note(module->diag,
	        "needed are f32 matrix arguments of main with stream.role \"weight\" and are "
	        "operands "
	        "of contractions or embedding tables");
}
