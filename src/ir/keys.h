/* Attribute keys as an enumeration, generated from the table attrs.def, so that a misspelled key
 * does not compile. */
#ifndef STC_KEYS_H
#define STC_KEYS_H
#include "base/map.h"

enum attr_key {
#define KEY(code, key, kinds, owners, meaning) KEY_##code,
#include "ir/attrs.def"
#undef KEY
	KEY_COUNT
};

struct key_info {
	const char *name; /* spelling in the text of a module */
	unsigned kinds;   /* bit mask of 1 << enum attr_kind */
	const char *owners, *meaning;
};
extern const struct key_info key_info[KEY_COUNT];

static inline const char *key_name(enum attr_key key)
{
	return key_info[key].name;
}

/* name -> row of key_info */
struct map key_map(struct arena *arena);

#endif
