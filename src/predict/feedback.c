/* Reads the feedback attribute and counts the memory accesses between two steps. */
#include "predict/feedback.h"
#include "platform/platform.h"

int64_t feedback_chunk_tokens(const struct attr *entry)
{
	return attr_item(entry, KEY_TOKEN_COUNT)
	        ? attr_item(entry, KEY_TYPE)->type->shape[attr_item_integer(entry, KEY_AXIS, 0)]
	        : 1;
}

bool feedback_read(const struct op *main, struct feedback *feedback)
{
	const struct attr *attr = attr_get(main, KEY_STREAM_FEEDBACK);
	if (!attr)
		return false;
	*feedback = (struct feedback){ .input = attr_item_text(attr, KEY_INPUT),
		.output = attr_item_text(attr, KEY_OUTPUT),
		.buffer = attr_item_text(attr, KEY_BUFFER),
		.offset = attr_item_integer(attr, KEY_OFFSET, 0),
		.most = attr_item_integer(attr, KEY_MOST, 1) };
	const struct attr *entry = attr_entry(attr_get(main, KEY_STREAM_INPUTS), feedback->input);
	const struct type *type = attr_item(entry, KEY_TYPE)->type;
	feedback->rows =
	        attr_item(entry, KEY_TOKEN_COUNT) ? attr_item_text(entry, KEY_TOKEN_COUNT) : NULL;
	feedback->chunk_tokens = feedback_chunk_tokens(entry);
	feedback->elements = type_elements(type) / feedback->chunk_tokens;
	feedback->pitch = 1;
	for (int d = (int)attr_item_integer(entry, KEY_AXIS, 0) + 1;
	        feedback->rows && d < type->rank; d++)
		feedback->pitch *= type->shape[d];
	return true;
}

int64_t feedback_text_tokens(int64_t steps, int64_t chunk_tokens)
{
	return (steps - 1) * chunk_tokens + 2;
}

int64_t feedback_text_index(const struct feedback *feedback, int64_t element)
{
	int64_t row = element / feedback->pitch % feedback->chunk_tokens;
	int64_t of_row = element / (feedback->pitch * feedback->chunk_tokens) * feedback->pitch +
	        element % feedback->pitch;
	return row * feedback->elements + of_row;
}

int64_t feedback_increment(const struct attr *entry)
{
	return attr_item_integer(entry, KEY_STEP, 0);
}

bool feedback_is_of(const struct attr *segment, const char *name, bool output)
{
	return text_same(attr_item_text(segment, KEY_NAME), name) &&
	        text_same(attr_item_text(segment, KEY_ROLE), output ? "output" : "input");
}

/* Memory accesses to a segment of so many elements between two steps of so many tokens. */
static int64_t accesses_of(const struct op *main, const struct feedback *feedback,
        const struct attr *segment, int64_t elements, int64_t rows)
{
	if (feedback_is_of(segment, feedback->input, false))
		return elements < rows * feedback->elements ? elements : rows * feedback->elements;
	if (feedback_is_of(segment, feedback->output, true))
		return elements;
	if (!text_same(attr_item_text(segment, KEY_ROLE), "input"))
		return 0;
	const char *name = attr_item_text(segment, KEY_NAME);
	return text_same(name, feedback->rows) ||
	                feedback_increment(attr_entry(attr_get(main, KEY_STREAM_INPUTS), name))
	        ? 2 * elements
	        : 0;
}

static int64_t accesses_in(const struct op *main, const struct feedback *feedback,
        const struct attr *buffer, int64_t rows)
{
	const struct attr *segments = attr_item(buffer, KEY_SEGMENTS);
	int64_t sum = text_same(attr_item_text(buffer, KEY_NAME), feedback->buffer)
	        ? (1 + rows) * feedback->elements
	        : 0;
	for (int s = 0; s < segments->count; s++) {
		const struct attr *segment = segments->items[s].value;
		const struct attr *trips = attr_item(segment, KEY_TRIPS);
		int64_t elements = 1;
		for (int d = 0; d < trips->count; d++)
			elements *= trips->integers[d];
		sum += accesses_of(main, feedback, segment, elements, rows);
	}
	return sum;
}

bool feedback_touches(const struct op *main, const char *buffer)
{
	struct feedback feedback;
	return feedback_read(main, &feedback) &&
	        accesses_in(main, &feedback, attr_entry(attr_get(main, KEY_STREAM_BUFFERS), buffer),
	                1) > 0;
}

/* All reads are pipelined, then all writes: one memory latency each. */
int64_t feedback_cycles(const struct platform *platform, const struct op *main, int64_t rows)
{
	const struct attr *buffers = attr_get(main, KEY_STREAM_BUFFERS);
	struct feedback feedback;
	if (!feedback_read(main, &feedback))
		return 0;
	int64_t cycles = 2 * (int64_t)platform->memory_latency;
	for (int b = 0; b < buffers->count; b++)
		cycles += accesses_in(main, &feedback, buffers->items[b].value, rows);
	return cycles;
}
