#include "model/segment.h"
#include <string.h>

static const char *text_of(const struct attr *attr, const char *name)
{
	const struct attr *item = attr_item(attr, name);
	return item && item->text ? item->text : "";
}

static int64_t integer_of(const struct attr *attr, const char *name)
{
	const struct attr *item = attr_item(attr, name);
	return item ? item->integer : 0;
}

const char *segment_read(struct arena *arena, const struct attr *attr, struct segment *segment)
{
	const struct attr *trips = attr_item(attr, "trips"), *strides = attr_item(attr, "strides"), *conditions = attr_item(attr, "conditions");
	int count = conditions ? conditions->count : 0;
	*segment = (struct segment){.name = text_of(attr, "name"), .role = text_of(attr, "role"), .offset = integer_of(attr, "offset"), .base = integer_of(attr, "base")};
	if (!trips || !strides || trips->count != strides->count)
		return "not one trip and one stride a loop in segment";
	int row = trips->count + 1;
	int64_t *rows = ARENA_ARRAY(arena, int64_t, count * row + 1);
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
