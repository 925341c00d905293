/* Marks ops that only the last chunk of a prompt needs.
 *
 * A prompt may be read in several launches (chunks), and only the last one's results are wanted.
 * Before: every launch computes the head of the language model
 * After:  a launch whose token count is one more than the most possible computes all tokens, knows
 *         that more chunks follow, and skips the ops and outputs marked last_chunk_only
 * Needs: streams with one reader each, token count bound. Guarantees: marked ops produce only
 * results without token rows, and none is in a layer. Exact. Ends: two passes over main. */
#include "ir/launch_tokens.h"
#include "streams/streams_passes.h"

static bool has_tokens(const struct value *value, const char *counter)
{
	const struct itensor *order =
	        value->type->kind == TYPE_ITENSOR ? value->type->itensor : NULL;
	bool rows = false;
	for (int i = 0; order && order->run_time && i < order->dims; i++)
		rows = rows ||
		        (order->run_time[i] && text_same(order->run_time[i]->symbol, counter));
	return rows;
}

/* States are stored in every launch. */
static bool is_state(const struct op *main, const struct op *store)
{
	const struct attr *results = attr_get(store, KEY_RESULT);
	const struct attr *outputs = attr_get(main, KEY_STREAM_OUTPUTS);
	bool state = store->operands > 1;
	for (int i = 0; i < results->count; i++)
		state = state ||
		        (results->integers[i] >= 0 &&
		                text_same(attr_item_text(outputs->items[results->integers[i]].value,
		                                  KEY_ROLE),
		                        "state"));
	return state;
}

/* Kernels, and casts in front of them, may read token rows of which their readers use one. */
static bool may_take_tokens(const struct op *op)
{
	return op->code == OP_KERNEL || op->code == OP_CAST;
}

/* Are all of its results streams that only marked ops read? value->data is set for such streams. */
static bool is_last_chunk_only(const struct op *main, const struct op *op, const char *counter)
{
	bool last_chunk = op->code == OP_STORE
	        ? !is_state(main, op)
	        : op->results > 0 && op->code != OP_FOR && op->code != OP_EXTENT;
	for (int j = 0; j < op->operands; j++)
		last_chunk =
		        last_chunk && (may_take_tokens(op) || !has_tokens(op->operand[j], counter));
	for (int r = 0; r < op->results; r++)
		last_chunk = last_chunk && op->result[r]->type->kind == TYPE_ITENSOR &&
		        op->result[r]->data &&
		        (may_take_tokens(op) || !has_tokens(op->result[r], counter));
	return last_chunk;
}

/* Walks backwards, since readers follow what they read; returns the marked contractions. */
static int count_contractions(const struct op *main, const char *counter)
{
	int contractions = 0;
	for (struct op *op = main->region[0]->last; op; op = op->previous) {
		if (!is_last_chunk_only(main, op, counter))
			continue;
		contractions += op->code == OP_CONTRACT;
		for (int j = 0; j < op->operands; j++)
			op->operand[j]->data = op;
	}
	return contractions;
}

static void mark_entry(
        struct module *module, struct op *main, enum attr_key list, int number, enum attr_key mark)
{
	const struct attr *old = attr_get(main, list);
	const struct attr **entry = ARENA_ARRAY(module->arena, const struct attr *, old->count);
	for (int i = 0; i < old->count; i++)
		entry[i] = i == number
		        ? attr_with(module, old->items[i].value, mark, attr_unit(module))
		        : old->items[i].value;
	attr_set(module, main, list, attr_array(module, old->count, entry));
}

static void mark_op(struct module *module, struct op *main, struct op *op)
{
	attr_set(module, op, KEY_LAST_CHUNK_ONLY, attr_unit(module));
	const struct attr *results = op->code == OP_STORE ? attr_get(op, KEY_RESULT) : NULL;
	for (int i = 0; results && i < results->count; i++)
		if (results->integers[i] >= 0)
			mark_entry(module, main, KEY_STREAM_OUTPUTS, (int)results->integers[i],
			        KEY_LAST_CHUNK_ONLY);
}

bool mark_last_chunk_only(struct pass_context *context, struct module *module)
{
	struct op *main = module_main(module);
	const char *counter = token_count_symbol(main);
	(void)context;
	ir_clear_data(main->region[0]);
	if (counter && count_contractions(main, counter)) {
		mark_entry(module, main, KEY_STREAM_INPUTS, counted_token_input(main),
		        KEY_MORE_CHUNKS);
		for (struct op *op = main->region[0]->first; op; op = op->next)
			if (is_last_chunk_only(main, op, counter))
				mark_op(module, main, op);
	}
	ir_clear_data(main->region[0]);
	return true;
}
