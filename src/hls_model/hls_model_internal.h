/* Inside the model: what its files offer each other. */
#ifndef STC_HLS_MODEL_INTERNAL_H
#define STC_HLS_MODEL_INTERNAL_H
#include "hls_model/hls_model.h"

struct modeller {
	struct arena *arena;
	const struct cpp_design *design;
	const struct platform *platform;
	const struct model_options *options;
	struct model *model;
	struct map banks; /* scratch: a bank's key -> its number */
};

/* Loops that run as one pipeline: those of depth first … last around the body. */
struct flat_nest {
	int body;
	int first, last;
	int64_t trips[CPP_DEPTH]; /* by depth */
	int64_t interval;         /* that is asked for; 0: the least */
};

struct pipeline {
	int64_t interval, depth;
	bool fabric; /* its adders are made of LUTs */
	const char *limit;
};

/* --- prepare.c --- */
void model_prepare(struct arena *arena, struct cpp_design *design, bool reassociate);

/* --- operator_cost.c --- */
struct operator_cost model_operator(
        const struct modeller *modeller, const struct cpp_operation *operation);
/* Cycles until the result can be used; of an adder of fewer stages where `quick`. */
int64_t model_latency(
        const struct modeller *modeller, const struct cpp_operation *operation, bool quick);
bool model_is_register(const struct cpp_array *array);

/* --- dependence.c --- */
enum { DEPENDENCE_NEVER = 1 << 30 };
/* Iterations from a write to the first later read of the same element; DEPENDENCE_NEVER: none. */
int64_t model_distance(const struct flat_nest *nest, const struct cpp_array *array,
        const struct cpp_operation *write, const struct cpp_operation *read);
/* May both name the same element in one iteration? */
bool model_same_element(const struct cpp_array *array, const struct cpp_operation *left,
        const struct cpp_operation *right);

/* --- bank.c --- */
/* Numbers the bank of every access of the body; the least interval for their ports, and which
 * array it comes from. */
struct port_demand {
	int64_t interval;
	int array; /* CPP_NONE: no array */
	int *bank; /* by item of the body; CPP_NONE: it takes no port */
	int banks;
};
struct port_demand model_ports(struct modeller *modeller, const struct cpp_body *body);
/* Accesses that a bank takes in a cycle. */
int64_t model_bank_ports(const struct cpp_array *array, bool writes);

/* --- pipeline.c --- */
struct pipeline model_pipeline(struct modeller *modeller, const struct flat_nest *nest);

/* --- storage.c --- */
enum { POOL_ADDERS, POOL_MULTIPLIERS, POOL_OTHERS, POOL_CALLED, POOLS };
/* Operators: all they take, and the DSPs of each kind, which loops lend each other; those of
 * functions that a pipelined loop calls stay there. */
struct operators {
	struct resources all;
	int64_t dsp[POOLS];
};
struct resources model_array_cost(const struct modeller *modeller, const struct cpp_array *array);
struct operators model_operation_cost(
        const struct modeller *modeller, int body, int64_t interval, bool fabric);
struct operators model_both(struct operators left, struct operators right);

/* --- access_set.c --- */
struct access_set {
	bool *reads, *writes; /* by array */
};
struct access_set model_accesses(struct modeller *modeller, struct cpp_item item);
bool model_conflict(const struct modeller *modeller, const struct access_set *first,
        const struct access_set *second);
#endif
