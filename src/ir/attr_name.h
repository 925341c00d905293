/* Names of attributes in memory: see attr.c. */
#ifndef STC_ATTR_NAME_H
#define STC_ATTR_NAME_H
#include "base/arena.h"

/* the key's own text if the name is a key, else a copy in the arena */
const char *attr_name(struct arena *arena, const char *name);

#endif
