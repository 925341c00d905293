/* Memory adapters: arguments of main with one name in stream.bundle share one, each with a load or store unit of its own; an argument without has its own. */
#ifndef STC_BUNDLE_H
#define STC_BUNDLE_H
#include "ir/ir.h"

const char *bundle_of(const struct op *main, int argument);
int bundle_count(struct arena *arena, const struct op *main);
int bundle_burst(const struct op *main, int argument, int burst);      /* words of a request, where the platform's adapters ask for `burst` */
#endif
