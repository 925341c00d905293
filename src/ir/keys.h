/* The keys of attributes as an enumeration, made from the table attrs.def. */
#ifndef STC_KEYS_H
#define STC_KEYS_H

enum attr_key {
#define KEY(code, key, kinds, owners, meaning) KEY_##code,
#include "ir/attrs.def"
#undef KEY
	KEY_COUNT
};

struct key_info {
	const char *name; /* as it stands in the text of a module */
	unsigned kinds;   /* of enum attr_kind, a bit each */
	const char *owners, *meaning;
};
extern const struct key_info key_info[KEY_COUNT];

static inline const char *key_name(enum attr_key key)
{
	return key_info[key].name;
}

/* KEY_COUNT: no attribute of ours is called so. */
enum attr_key key_find(const char *name);

#endif
