/* Times and resources of a design in HLS C++ whose pragmas fix it, in closed form: the interval of
 * each pipelined loop from recurrences and memory ports, its depth from the operators' latencies,
 * and from these the latency of loops, functions and the whole. */
#ifndef STC_HLS_MODEL_H
#define STC_HLS_MODEL_H
#include "frontend/frontend.h"
#include "platform/platform.h"

struct model_row {
	const char *name;
	struct location location;
	int level;                           /* nesting in the table */
	bool is_loop;                        /* else a function */
	bool pipelined, dataflow, estimated; /* estimated: the trips are a mean */
	int64_t trips;                       /* of all loops that run as one */
	int64_t interval;                    /* between iterations, or starts of a function */
	int64_t asked;                       /* interval by pragma; 0: none */
	int64_t depth;                       /* cycles of one iteration */
	int64_t latency;
	struct resources cost;
	const char *limit; /* what keeps the interval up; NULL: nothing */
};

struct model {
	const struct cpp_design *design;
	const struct platform *platform;
	double period;              /* ns */
	VEC(struct model_row) rows; /* the first one is the top function */
	struct resources cost;
};

struct model_options {
	double period;    /* ns */
	bool reassociate; /* sums are trees, and of a chain of them one stays in the recurrence */
};

/* The design is prepared as the vendor's tool does: arrays partitioned, sums balanced. */
struct model *model_design(struct arena *arena, struct cpp_design *design,
        const struct platform *platform, const struct model_options *options);
void model_table(const struct model *model, struct text *out);
void model_json(const struct model *model, struct text *out);

#endif
