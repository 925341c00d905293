/* A prompt may come in several launches, of which only the last one's results are asked for.
 * The input that counts rows says one more than there may be, then all are there and others
 * follow: what nothing needs but results without rows is left out, the head of a language model
 * above all, and what chooses the row that it is for. Needs: streams with one reader each, rows
 * bound.  Guarantees: such ops have the attribute `final`, and so have such outputs; none of
 * them is in a layer. */
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

/* A state is for launches to come. */
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

/* Kernels, and words of other widths in front of them, may take rows of which their readers
 * leave one. */
static bool may_take_tokens(const struct op *op)
{
	return op->code == OP_KERNEL || op->code == OP_CAST;
}

/* Are its results streams whose readers are final?  The data of such is set. */
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

/* Backwards: readers come behind what they read. */
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
