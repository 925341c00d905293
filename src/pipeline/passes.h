/* The pipeline as a table of passes; run_passes.c runs it. */
#ifndef STC_PASSES_H
#define STC_PASSES_H
#include "options/pass_context.h"

/* What a pass may change in the numbers.  Reassociating: the order of sums; approximating: also the
 * operations or types; quantizing: the numbers are rounded as --quant says, without it none. */
enum numeric_class {
	NUMERIC_EXACT,
	NUMERIC_REASSOCIATING,
	NUMERIC_APPROXIMATING,
	NUMERIC_QUANTIZING
};

struct pass {
	const char *name;
	bool (*run)(struct pass_context *context, struct module *module);
	enum level needed, produced;
	enum numeric_class numeric;
	const char *needs, *guarantees;
};

extern const struct pass passes[];
extern const int pass_count;
extern const char *const numeric_name[];

int pass_choosing(void);          /* the first pass whose result depends on choices */
int pass_find(const char *name);  /* index in the table; -1: none */
int pass_first(enum level level); /* the first pass that needs `level` */
int pass_last(enum level level);  /* the last pass that produces it; -1: none */

#endif
