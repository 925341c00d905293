/* Ties the recorded proof that launches end to the channel depths that it is about: a dump may be
 * edited after the proof. */
#include "fifo/fifo.h"

static bool is_channel(const struct op *op)
{
	return op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL;
}

void fifo_note_proof(struct module *module, enum fifo_evidence evidence)
{
	struct op *main = module_main(module);
	VEC(int64_t) depths = { 0 };
	for (const struct op *op = main->region[0]->first; op; op = op->next)
		if (is_channel(op))
			VEC_PUSH(module->arena, &depths, op->result[0]->type->depth);
	attr_set(module, main, KEY_STREAM_TERMINATION_PROOF,
	        attr_string(module, fifo_evidence_name[evidence]));
	attr_set(module, main, KEY_STREAM_PROVED_DEPTHS,
	        attr_integers(module, (int)depths.count, depths.data));
}

/* A network that ends with some depths ends with larger ones as well. */
static bool is_deep_enough(const struct op *main)
{
	const struct attr *depths = attr_get(main, KEY_STREAM_PROVED_DEPTHS);
	int channels = 0;
	bool deep = depths && depths->kind == ATTR_INTEGERS;
	for (const struct op *op = main->region[0]->first; deep && op; op = op->next) {
		if (!is_channel(op))
			continue;
		deep = channels < depths->count &&
		        op->result[0]->type->depth >= depths->integers[channels];
		channels++;
	}
	return deep && channels == depths->count;
}

const char *fifo_proof(const struct module *module)
{
	const struct op *main = module_main(module);
	const char *by = attr_text_or(main, KEY_STREAM_TERMINATION_PROOF, NULL);
	bool proven = by && !text_same(by, fifo_evidence_name[FIFO_UNPROVEN]);
	return proven && is_deep_enough(main) ? by : NULL;
}
