/* What schedules do with the loops of C, for reports. */
#ifndef STC_DESCRIBE_SCHEDULES_H
#define STC_DESCRIBE_SCHEDULES_H
#include "ir/ir.h"

/* stream.transformations of main, with order, tiles and partitions of every kernel that has a
 * schedule; NULL: it has none. */
const struct attr *describe_schedules(struct module *module);

#endif
