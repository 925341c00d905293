/* Reserves room for the tokens of a launch where an output feeds an input: after the input's own
 * numbers, in the same buffer, so that the steps of a launch need no port of their own. */
#include "lowering/lowering_internal.h"
#include "predict/feedback.h"
#include "process/operation_builder.h"

static int buffer_with(const struct design *design, const char *input)
{
	for (size_t b = 0; b < design->buffers.count; b++) {
		const struct attr *segments = attr_item(design->buffers.data[b], KEY_SEGMENTS);
		for (int s = 0; s < segments->count; s++)
			if (feedback_is_of(segments->items[s].value, input, false))
				return (int)b;
	}
	return -1;
}

static void make_room(struct design *design, const struct attr *entry, const struct attr *next)
{
	struct module *module = design->module;
	int number = buffer_with(design, attr_item_text(entry, KEY_NAME));
	bool rows = attr_item(entry, KEY_TOKEN_COUNT);
	/* no kernel reads the input */
	if (number < 0 || (rows && buffer_with(design, attr_item_text(entry, KEY_TOKEN_COUNT)) < 0))
		return;
	const struct attr **buffer = &design->buffers.data[number];
	const struct type *word = attr_item(*buffer, KEY_WORD)->type;
	int64_t lanes = type_elements(word);
	int64_t words = attr_item_integer(*buffer, KEY_WORDS, 0);
	int64_t most = attr_item_integer(next, KEY_MOST, 1);
	int64_t text = feedback_text_tokens(most, feedback_chunk_tokens(entry)) *
	        type_elements(attr_item(entry, KEY_TYPE)->type) / feedback_chunk_tokens(entry);
	struct named items[] = {
		{ key_name(KEY_INPUT), attr_item(entry, KEY_NAME) },
		{ key_name(KEY_OUTPUT), attr_item(next, KEY_OUTPUT) },
		{ key_name(KEY_BUFFER), attr_item(*buffer, KEY_NAME) },
		{ key_name(KEY_OFFSET), attr_integer(module, words * lanes) },
		{ key_name(KEY_MOST), attr_integer(module, most) },
	};
	*buffer = attr_with(module, *buffer, KEY_WORDS,
	        attr_integer(module, words + (text + lanes - 1) / lanes));
	attr_set(module, design->function, KEY_STREAM_FEEDBACK, attr_dictionary(module, 5, items));
}

void lower_feedback(struct design *design)
{
	const struct attr *inputs = attr_get(design->source, KEY_STREAM_INPUTS);
	for (int i = 0; i < inputs->count; i++) {
		const struct attr *next = attr_item(inputs->items[i].value, KEY_NEXT);
		if (next)
			make_room(design, inputs->items[i].value, next);
	}
}
