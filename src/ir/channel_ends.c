/* Finds who writes and who reads each channel by one walk over each process, since a search for the
 * uses of each channel would look through all processes for each. */
#include "ir/channel_ends.h"

struct end_search {
	struct channel_ends *ends;
	const struct op *call, *process;
	int number;           /* of the call */
	bool *written, *read; /* [arguments of the process] */
};

static bool is_channel(const struct value *value)
{
	return value->type->kind == TYPE_FIFO || value->type->kind == TYPE_BLOCKS;
}

const struct value *channel_used(const struct op *op, bool *writes)
{
	const struct value *used = op->code == OP_RELEASE ? NULL : op_accessed(op);
	if (!used || used->def || !is_channel(used))
		return NULL;
	*writes = op->code == OP_PUSH || text_same(attr_text_or(op, KEY_SIDE, NULL), "write");
	return used;
}

static void note_use(struct op *op, void *context)
{
	struct end_search *s = context;
	bool writes;
	const struct value *used = channel_used(op, &writes);
	if (used)
		*(writes ? &s->written[used->index] : &s->read[used->index]) = true;
}

static void add_call(struct end_search *s)
{
	ir_walk(s->process->region[0], note_use, s);
	for (int i = 0; i < s->call->operands; i++) {
		const struct value *channel = s->call->operand[i];
		if (!channel->def)
			continue;
		struct channel_ends *ends = &s->ends[channel->id];
		if (s->written[i]) {
			ends->writers++;
			ends->writer = s->number;
			ends->writing = s->process;
		}
		if (s->read[i]) {
			ends->readers++;
			ends->reader = s->number;
			ends->reading = s->process;
		}
	}
}

static bool makes_channel(const struct op *op)
{
	return op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL;
}

/* Lends the ids of the channels' values as indices; returns the ids that they had. */
static int *number_channels(struct arena *arena, const struct block *main, int *channels)
{
	int *before;
	for (const struct op *op = main->first; op; op = op->next)
		*channels += makes_channel(op);
	before = ARENA_ARRAY(arena, int, *channels + 1);
	*channels = 0;
	for (const struct op *op = main->first; op; op = op->next)
		if (makes_channel(op)) {
			before[*channels] = op->result[0]->id;
			op->result[0]->id = (*channels)++;
		}
	return before;
}

struct channel_ends *channel_ends_of(struct arena *arena, const struct module *module)
{
	const struct op *main = module_main(module);
	struct end_search s = { .process = main };
	int channels = 0;
	const int *before = number_channels(arena, main->region[0], &channels);
	s.ends = ARENA_ARRAY(arena, struct channel_ends, channels + 1);
	for (int i = 0; i < channels; i++)
		s.ends[i].writer = s.ends[i].reader = -1;
	for (const struct op *op = main->region[0]->first; op; op = op->next) {
		if (op->code != OP_CALL)
			continue;
		s.call = op;
		s.process = module_find_after(module, s.process, attr_text_or(op, KEY_CALLEE, ""));
		s.written = ARENA_ARRAY(arena, bool, op->operands + 1);
		s.read = ARENA_ARRAY(arena, bool, op->operands + 1);
		add_call(&s);
		s.number++;
	}
	for (const struct op *op = main->region[0]->first; op; op = op->next)
		if (makes_channel(op))
			op->result[0]->id = *before++;
	return s.ends;
}
