/* Where an output feeds an input: room for the text of a launch behind the input's own numbers, in the buffer that holds them, so that what is done between steps needs no port of its own. */
#include "predict/feedback.h"
#include "process/process.h"

static int buffer_with(const struct design *design, const char *input)
{
	for (size_t b = 0; b < design->buffers.count; b++) {
		const struct attr *segments = attr_item(design->buffers.data[b], "segments");
		for (int s = 0; s < segments->count; s++)
			if (feedback_is_of(segments->items[s].value, input, false))
				return (int)b;
	}
	return -1;
}

static void make_room(struct design *design, const struct attr *entry, const struct attr *next)
{
	struct module *module = design->module;
	int number = buffer_with(design, attr_item_text(entry, "name"));
	bool rows = attr_item(entry, "rows");
	if (number < 0 || (rows && buffer_with(design, attr_item_text(entry, "rows")) < 0))         /* no kernel reads the input */
		return;
	const struct attr **buffer = &design->buffers.data[number];
	const struct type *word = attr_item(*buffer, "word")->type;
	int64_t lanes = type_elements(word), words = attr_item_integer(*buffer, "words", 0), most = attr_item_integer(next, "most", 1);
	int64_t text = feedback_text(most, feedback_rows(entry)) * type_elements(attr_item(entry, "type")->type) / feedback_rows(entry);
	struct named items[] = {
		{"input", attr_item(entry, "name")},
		{"output", attr_item(next, "output")},
		{"buffer", attr_item(*buffer, "name")},
		{"offset", attr_integer(module, words * lanes)},
		{"most", attr_integer(module, most)},
	};
	*buffer = attr_with(module, *buffer, "words", attr_integer(module, words + (text + lanes - 1) / lanes));
	attr_set(module, design->function, "stream.feedback", attr_dictionary(module, 5, items));
}

void lower_feedback(struct design *design)
{
	const struct attr *inputs = attr_get(design->source, "stream.inputs");
	for (int i = 0; i < inputs->count; i++) {
		const struct attr *next = attr_item(inputs->items[i].value, "next");
		if (next)
			make_room(design, inputs->items[i].value, next);
	}
}
