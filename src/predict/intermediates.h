/* Counts the intermediate results of a layer before and after fusion, and the on-chip memory that a
 * design uses instead. In bytes, tensors with 4 bytes per element. */
#ifndef STC_INTERMEDIATES_H
#define STC_INTERMEDIATES_H
#include "ir/kernel.h"
#include "predict/resource.h"

/* Results of the kernels of one layer (of main where no layer loop exists), each counted once.
 * Copies and results that depend only on weights and constants are not counted. */
struct intermediates {
	int64_t bytes;
	int kernels;
};
struct intermediates intermediates_count(const struct module *module); /* at tensor level */
void intermediates_note(struct module *module, enum attr_key key, struct intermediates count);
/* zeros where nothing was noted */
struct intermediates intermediates_noted(const struct module *module, enum attr_key key);

/* On-chip memory of one layer (of the design where no layer loop exists) at hardware level, in
 * bytes. */
struct on_chip {
	bool rolled;
	int64_t converters; /* converter buffers, all halves */
	/* accumulators of reductions that are not the innermost loop */
	int64_t accumulators;
	int64_t fifos;          /* between kernels */
	int64_t buffers;        /* shared buffers of several readers */
	int64_t layer_feedback; /* feedback from a layer to the next */
	int64_t bytes;          /* sum of the above */
	int64_t prefetch;       /* prefetch FIFOs of loaders, not in the sum */
};
struct on_chip on_chip_count(const struct design_cost *cost);
#endif
