/* Begins and ends the passes of --quant: what each of them knows of main, and the new arguments. */
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

static void note_names(struct quantizer *q)
{
	q->names = map_new(q->module->arena);
	for (int i = 0; i < q->main->region[0]->arguments; i++) {
		const struct attr *name = function_argument_attr(q->main, i, KEY_STREAM_NAME);
		if (name)
			map_set(&q->names, name->text, q->main);
	}
}

bool quantizer_begin(struct quantizer *q, const struct pass_context *context, struct module *module)
{
	*q = (struct quantizer){ .module = module,
		.main = module_main(module),
		.scheme = context->quant,
		.for_engine = engine_allowed(context),
		.softmax = (enum softmax_form)choice_word(&context->choices, CHOICE_SOFTMAX) };
	if (!block_is_flat(q->main->region[0])) {
		diag_error(module->diag, q->main->location,
		        "--quant %s on a module whose layers are rolled", q->scheme->text);
		return diag_note(module->diag,
		        "a module as imported, or a dump of a pass before roll_layers");
	}
	note_names(q);
	q->head = last_contraction(q);
	return true;
}

void quantizer_end(struct quantizer *q)
{
	struct module *module = q->module;
	struct block *block = q->main->region[0];
	const struct attr *old = attr_get(q->main, KEY_ARG_ATTRS);
	int count = 0;
	int old_count = block->arguments - (int)q->attributes.count;
	const struct attr **attributes =
	        ARENA_ARRAY(module->arena, const struct attr *, block->arguments + 1);
	const struct type **types =
	        ARENA_ARRAY(module->arena, const struct type *, block->arguments + 1);
	ir_count_uses(block);
	for (int i = 0; i < block->arguments; i++) {
		struct value *argument = block->argument[i];
		if (i < old_count && !argument->uses && is_weight(q, argument))
			continue;
		attributes[count] =
		        i < old_count ? old->items[i].value : q->attributes.data[i - old_count];
		types[count] = argument->type;
		block->argument[count++] = argument;
	}
	block->arguments = count;
	for (int i = 0; i < count; i++)
		block->argument[i]->index = i;
	const struct type *type = attr_get(q->main, KEY_FUNCTION_TYPE)->type;
	attr_set(module, q->main, KEY_ARG_ATTRS, attr_array(module, count, attributes));
	attr_set(module, q->main, KEY_FUNCTION_TYPE,
	        attr_type(
	                module, type_function(module, count, types, type->outputs, type->output)));
}
