/* Run-time trip counts in processes.  A process that needs one takes the symbol's value once a launch, as the first thing it does, from a control FIFO of its
 * own; one control process per symbol sends it to all of them.  So a launch scalar reaches every process in one way. */
#include "pass/process.h"

#define CONTROL_DEPTH 2

/* What is made belongs before the first loop of the process, behind the constants. */
static struct block *begin_head(struct process *p, struct block *head)
{
	struct block *open = p->block;
	*head = (struct block){.parent = p->function};
	p->block = head;
	return open;
}

static void end_head(struct process *p, struct block *open)
{
	struct op *loop = p->entry->first;
	while (loop && loop->code != OP_FOR && loop->code != OP_ACQUIRE)
		loop = loop->next;
	for (struct op *op = p->block->first, *next; op; op = next) {
		next = op->next;
		op->previous = op->next = NULL;
		if (loop)
			op_insert_before(loop, op);
		else
			op_append(p->entry, op);
	}
	p->block = open;
}

/* The symbol's value, as an index. */
static struct value *symbol_value(struct process *p, const char *symbol)
{
	struct design *design = p->design;
	const struct type *index = type_index(p->module);
	struct value *known = map_get(&p->constants, symbol);
	if (known)
		return known;
	struct control *control = map_get(&design->controls, symbol);
	INVARIANT(p->module->guard, control, "nothing brings the run-time extent \"%s\"", symbol);
	struct value *fifo = design_fifo(design, text_format(p->module->arena, "s_%s", symbol), control->word, CONTROL_DEPTH);
	VEC_PUSH(p->module->arena, &control->fifo, fifo);
	struct value *word = make_take(p, NULL, process_argument(p, fifo, symbol));
	struct value *low[2] = {word->type == index ? word : make_op(p, OP_INDEX_CAST, index, 1, &word), make_index(p, 0)};
	struct value *value = make_op(p, OP_MAXSI, index, 2, low);
	map_set(&p->constants, symbol, value);
	return value;
}

struct value *process_count(struct process *p, const struct run_time_trip *trip, int64_t times)
{
	const char *key = text_format(p->module->arena, "%s+%lld/%lld<%lldx%lld", trip->symbol, (long long)trip->plus, (long long)trip->tile, (long long)trip->most, (long long)times);
	struct value *known = map_get(&p->constants, key);
	if (known)
		return known;
	struct block head, *open = begin_head(p, &head);
	const struct type *index = type_index(p->module);
	const int64_t one = 1;
	struct value *symbol = symbol_value(p, trip->symbol);
	struct value *count = make_address(p, 1, &symbol, &one, trip->plus + trip->tile - 1);
	struct value *low[2] = {count, make_index(p, 0)};
	if (trip->plus + trip->tile < 1)
		count = make_op(p, OP_MAXSI, index, 2, low);
	if (trip->tile > 1) {
		struct value *parts[2] = {count, make_index(p, trip->tile)};
		count = make_op(p, OP_DIVSI, index, 2, parts);
	}
	struct value *high[2] = {count, make_index(p, trip->most)};
	count = make_op(p, OP_MINSI, index, 2, high);
	count = make_address(p, 1, &count, &times, 0);
	attr_set(p->module, count->def, "stream.run_time", run_time_attr(p->module, trip, times));
	end_head(p, open);
	map_set(&p->constants, key, count);
	return count;
}

const struct attr *run_time_attr(struct module *module, const struct run_time_trip *trip, int64_t times)
{
	struct named items[] = {{"symbol", attr_string(module, trip->symbol)}, {"plus", attr_integer(module, trip->plus)}, {"tile", attr_integer(module, trip->tile)},
				{"most", attr_integer(module, trip->most)}, {"times", attr_integer(module, times)}};
	return attr_dictionary(module, 5, items);
}

void lower_extent(struct design *design, const struct op *op)
{
	struct control *control = ARENA_NEW(design->module->arena, struct control);
	control->in = stream_fifo(design, op->operand[0]);
	control->word = stream_word(design->module, op->operand[0]->type);
	map_set(&design->controls, attr_text_or(op, "name", ""), control);
}

void lower_controls(struct design *design)
{
	for (size_t i = 0; i < design->controls.entries.count; i++) {
		const struct map_entry *entry = &design->controls.entries.data[i];
		struct control *control = entry->value;
		struct process p = process_new(design, text_format(design->module->arena, "control_%s", entry->key));
		struct value *in = process_argument(&p, control->in, "x"), *counter;
		int opened = process_nest(&p, 0, NULL, 1, &counter);
		struct value *word = make_take(&p, NULL, in);
		for (size_t k = 0; k < control->fifo.count; k++)
			make_push(&p, NULL, word, process_argument(&p, control->fifo.data[k], text_format(design->module->arena, "y%zu", k)));
		process_close(&p, opened);
		process_finish(&p);
	}
}
