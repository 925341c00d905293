/* Makes all FIFOs minimal. Such a design is never run; if it cannot be placed, no design can. */
#include "fifo/fifo.h"

/* Gives a process's arguments the current types of main's channels. */
void fifo_set_arguments(struct module *module, const struct op *call)
{
	struct op *process = module_find(module, attr_text_or(call, KEY_CALLEE, ""));
	const struct block *body = process->region[0];
	const struct type **types =
	        ARENA_ARRAY(module->arena, const struct type *, body->arguments);
	for (int a = 0; a < body->arguments; a++)
		types[a] = body->argument[a]->type = call->operand[a]->type;
	attr_set(module, process, KEY_FUNCTION_TYPE,
	        attr_type(module, type_function(module, body->arguments, types, 0, NULL)));
}

void fifo_shallow(struct module *module)
{
	for (struct op *op = module_main(module)->region[0]->first; op; op = op->next) {
		const struct type *type = op->code == OP_FIFO ? op->result[0]->type : NULL;
		if (type && type->depth > FIFO_LEAST && !attr_get(op, KEY_STREAM_FIXED_DEPTH))
			op->result[0]->type =
			        type_channel(module, TYPE_FIFO, type->element, FIFO_LEAST);
		else if (op->code == OP_CALL)
			fifo_set_arguments(module, op);
	}
}
