/* What a model's layer keeps between its operators, before and after fusion, and what the design
 * keeps on chip instead.  Bytes; tensors at 4 bytes an element. */
#ifndef STC_INTERMEDIATES_H
#define STC_INTERMEDIATES_H
#include "ir/kernel.h"
#include "predict/resource.h"

/* Results of the kernels of one layer (of main where no layer is rolled), each once.  Not
 * counted: copies, and what depends on weights and constants alone. */
struct intermediates {
	int64_t bytes;
	int kernels;
};
struct intermediates intermediates_count(const struct module *module); /* tensor level */
void intermediates_note(struct module *module, enum attr_key key, struct intermediates count);
/* zeros where it was not counted */
struct intermediates intermediates_noted(const struct module *module, enum attr_key key);

/* Memories of one layer (of the design where no layer is rolled) at hardware level. */
struct on_chip {
	bool rolled;
	int64_t converters; /* re-ordering buffers, all halves */
	/* sums that a kernel holds because a reduction is not its innermost loop */
	int64_t accumulators;
	int64_t fifos;          /* between kernels */
	int64_t buffers;        /* read by several kernels at different times */
	int64_t layer_feedback; /* what a layer hands to the next one */
	int64_t bytes;          /* the sum of the above */
	int64_t prefetch;       /* words on their way from memory, not in the sum */
};
struct on_chip on_chip_count(const struct design_cost *cost);
#endif
