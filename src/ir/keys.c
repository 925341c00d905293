/* The table of attribute keys, and their lookup by name. */
#include "ir/ir.h"

#define UNIT (1U << ATTR_UNIT)
#define BOOL (1U << ATTR_BOOL)
#define INTEGER (1U << ATTR_INTEGER)
#define FLOAT (1U << ATTR_FLOAT)
#define STRING (1U << ATTR_STRING)
#define SYMBOL (1U << ATTR_SYMBOL)
#define TYPE (1U << ATTR_TYPE)
#define MAP (1U << ATTR_MAP)
#define ARRAY (1U << ATTR_ARRAY)
#define DICTIONARY (1U << ATTR_DICTIONARY)
#define INTEGERS (1U << ATTR_INTEGERS)
#define DENSE (1U << ATTR_DENSE)

const struct key_info key_info[KEY_COUNT] = {
#define KEY(code, key, kinds, owners, meaning) { key, kinds, owners, meaning },
#include "ir/attrs.def"
#undef KEY
};

struct map key_map(struct arena *arena)
{
	struct map map = map_new(arena);
	for (int key = 0; key < KEY_COUNT; key++)
		map_set(&map, key_info[key].name, (void *)(uintptr_t)&key_info[key]);
	return map;
}
