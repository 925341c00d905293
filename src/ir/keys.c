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

enum attr_key key_find(const char *name)
{
	int key = 0;
	while (key < KEY_COUNT && !text_same(key_info[key].name, name))
		key++;
	return (enum attr_key)key;
}
