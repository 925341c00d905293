/* Reads a segment of a memory image from attributes. */
#include "image/segment.h"
#include <string.h>

const char *segment_read(struct arena *arena, const struct attr *attr, struct segment *segment)
{
	const struct attr *trips = attr_item(attr, KEY_TRIPS);
	const struct attr *strides = attr_item(attr, KEY_STRIDES);
	const struct attr *conditions = attr_item(attr, KEY_CONDITIONS);
	int count = conditions ? conditions->count : 0;
	*segment = (struct segment){ .name = attr_item_text(attr, KEY_NAME),
		.role = attr_item_text(attr, KEY_ROLE),
		.offset = attr_item_integer(attr, KEY_OFFSET, 0),
		.base = attr_item_integer(attr, KEY_BASE, 0) };
	segment->run = attr_item_integer(attr, KEY_RUN, 0);
	segment->pitch = attr_item_integer(attr, KEY_PITCH, 0);
	if (segment->run < 0 || segment->pitch < segment->run)
		return "runs that overlap, in segment";
	if (!trips || !strides || trips->count != strides->count)
		return "not one trip and one stride a loop in segment";
	int row = trips->count + 1;
	int64_t *rows = ARENA_ARRAY(arena, int64_t, count *row + 1);
	for (int c = 0; c < count; c++) {
		const struct attr *condition = conditions->items[c].value;
		if (condition->kind != ATTR_INTEGERS || condition->count != row)
			return "a condition that has not one number a loop and a limit, in segment";
		memcpy(rows + c * row, condition->integers, sizeof *rows * (size_t)row);
	}
	segment->dims = trips->count;
	segment->trip = trips->integers;
	segment->stride = strides->integers;
	segment->conditions = count;
	segment->condition = rows;
	return NULL;
}
