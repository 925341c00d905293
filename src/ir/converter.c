/* Tells the form of a converter from its attributes.  Spilling comes first: a spilled converter
 * keeps the attributes of the form that it had. */
#include "ir/converter.h"

enum converter_form converter_form(const struct op *op)
{
	static const struct {
		enum attr_key key;
		enum converter_form form;
	} forms[] = {
		{ KEY_SPILLED, CONVERTER_SPILLED },
		{ KEY_LINE_BUFFER, CONVERTER_LINE_BUFFER },
		{ KEY_IN_PRODUCER, CONVERTER_IN_PRODUCER },
		{ KEY_CAUSAL, CONVERTER_CAUSAL },
		{ KEY_IN_CONSUMER, CONVERTER_IN_CONSUMER },
		{ KEY_REPLAY, CONVERTER_REPLAY },
	};
	if (op->code != OP_CONVERT)
		return CONVERTER_NONE;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (attr_get(op, forms[i].key))
			return forms[i].form;
	return CONVERTER_REORDER;
}

int converter_shared_loops(const struct op *op)
{
	return (int)attr_integer_or(op, KEY_SHARED_LOOPS, 0);
}

bool converter_is_reorder(const struct op *op)
{
	enum converter_form form = converter_form(op);
	return form == CONVERTER_REORDER || form == CONVERTER_REPLAY ||
	        form == CONVERTER_IN_CONSUMER;
}

bool converter_holds_tensor(const struct op *op)
{
	bool holds = converter_is_reorder(op) || converter_form(op) == CONVERTER_LINE_BUFFER;
	return holds && !converter_shared_loops(op);
}
