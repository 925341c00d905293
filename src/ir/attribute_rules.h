/* What the table attrs.def says of attributes, checked where a module is read. */
#ifndef STC_ATTRIBUTE_RULES_H
#define STC_ATTRIBUTE_RULES_H
#include "ir/ir.h"

/* Are the op's attributes, and the entries of their dictionaries, of the kinds and of the owners
 * that the table says? keys: key_map. whole: all keys of the table are checked, as in a dump; else
 * only those that begin with `stream.`, since a model may have attributes that mean nothing here.
 * false: after a diagnostic. */
bool attributes_are_legal(
        struct module *module, const struct op *op, const struct map *keys, bool whole);

#endif
