/* Predicted time, resources and energy of a design on its platform: report.json (stable keys),
 * report.txt and report.html (for people), timing.json (times of the compilation, which differ
 * between runs). */
#ifndef STC_REPORT_H
#define STC_REPORT_H
#include "pipeline/session.h"
#include "predict/bundle.h"
#include "predict/energy.h"
#include "predict/intermediates.h"
#include "predict/timing.h"
#include "predict/token.h"
#include "simulate/cycle_sim.h"

struct memories { /* channels of one kind */
	int count;
	int64_t bytes, most_depth; /* as built */
	int64_t needed;            /* bytes of the depths needed: memories are a little deeper */
};

#define LAUNCHES 3

struct launch {               /* a modeled launch */
	int64_t tokens, past; /* tokens of the launch; tokens in the KV cache before it */
	int64_t cycles;
};

struct launches {
	int count;
	struct launch launch[LAUNCHES];
};

struct report {
	const char *name; /* of the design */
	const struct module *module;
	const struct platform *platform;
	/* of the reported launch: headline_extents */
	struct extent_list extents;
	struct design_cost cost;
	struct design_time time;
	struct memories fifos, converters;
	bool least;                          /* the depths needed are minimal (--fifo minimal) */
	struct intermediates unfused, fused; /* of a layer; kernels 0: unknown */
	struct on_chip on_chip;
	bool decodes;             /* it has states: a launch adds one token to them, or several */
	int64_t tokens;           /* that a launch adds to a sequence, at most */
	int64_t sequences;        /* of a launch: the batch */
	int64_t images;           /* of a launch; 0: its inputs are no images */
	struct image_times image; /* simulated, else modeled */
	const char *numbers;      /* type of most weights, else of most inputs: int8, f32 */
	/* rows of its states, with a run-time extent including the new row; 0: no states */
	int64_t context;
	/* a launch reads only the valid rows of a state */
	bool run_time;
	const char *quant;             /* --quant, or none */
	double host_bytes;             /* moved in a launch: all inputs, results */
	struct bundle_channel channel; /* the busiest memory channel */
	bool memory_least;             /* time.least is that of the channel, not of a process */
	/* lower bounds by memory and by multipliers; time.most and time.least in milliseconds */
	double memory_ms, mac_ms, model_ms, least_ms;
	/* other launches than the reported one, of designs with several tokens a launch */
	struct launches launches;
	/* time.most is the token model's; else the sum along the longest chain, without overlap */
	bool predicted;
	bool simulated; /* cycle_result, cycles, first_output and deadlock are valid */
	/* processes and channels as in cost; without a simulation only its events are valid */
	struct cycle_result cycle_result;
	int64_t cycles, first_output; /* first_output -1: nothing is written */
	const char *deadlock;         /* the cycle of waits; NULL: it ends */
	/* method that proves that every launch ends; NULL: no proof */
	const char *termination_proof;
	double latency_ms;    /* of a launch: simulated, else modeled */
	struct energy energy; /* of a launch */
	/* tokens assumed for a launch of a design that feeds tokens back itself; 0: it does not */
	int64_t tokens_per_launch;
	double token_ms; /* then: of one token, with its part of the launch overhead */
	struct energy token_energy;
	/* JSON members about a kernel of several phases; NULL: there is one phase */
	const char *kernel;
};

struct simulation {                    /* of one launch of a design */
	struct arena *arena;           /* its own */
	struct cycle_network *network; /* NULL: the design cannot be simulated */
	struct cycle_options options;
	enum cycle_outcome outcome;
	struct cycle_result cycle_result;
};

struct forecast {            /* the modeled cycles of a design, computed in parallel */
	struct arena *arena; /* its own */
	struct guard guard;
	struct session *session; /* only the platform and a copy of the module */
	const struct module *of;
	int64_t cycles;
	struct image_times image;
	struct launches launches;
};

struct report_answer {
	const char *limit;   /* the bottleneck, as text */
	const char **advice; /* [count] what would help, the most useful first */
	int count;
};

/* Tokens that a launch adds to a sequence, at most; 0: the design has no states. */
int64_t report_tokens(const struct module *module);
/* The figures of session->module by the models. */
struct report report_make(struct session *session, const char *name);
/* Modeled cycles of a launch: those of the token model, in which ports that share an adapter do
 * not wait for each other, but at least those of the busiest adapter.  0: the token model does not
 * cover the design. */
int64_t report_cycles(const struct session *session, struct token_detail detail);
/* Computes the cycles that report_make needs on a copy of the module, so that it can run in
 * parallel with users of the scratch fields of the module's values. */
struct forecast *forecast_open(struct session *session);
void forecast_run(void *forecast, struct arena *scratch); /* a task (base/parallel.h) */
struct launches forecast_take(struct session *session, struct forecast *forecast);

/* Run-time extents of the launch that a report is about.  Several tokens a launch: the most tokens,
 * with an empty KV cache, as the first launch of a prompt; one token: the full context (the list
 * is empty, because all extents have their maximum). */
struct extent_list headline_extents(struct arena *arena, const struct module *module);
/* Other modeled launches; `arena` is scratch. */
struct launches launches_modeled(const struct session *session, struct arena *arena);
void launches_text(const struct report *report, struct text *out);
void launches_json(const struct report *report, struct text *out);
void images_text(const struct report *report, struct text *out);
void images_json(const struct report *report, struct text *out);
/* Was the launch simulated to its end?  Then times are simulated, else modeled. */
bool report_ends(const struct report *report);
/* Cycles in which a process works or waits for memory. */
int64_t report_active(const struct report *report, int process);
double report_products(const struct report *report); /* products per cycle of a launch */
/* Simulates a launch of at most options.events iterations.  simulation_open uses the scratch fields
 * of the module's values; simulation_run only the network, so it can run in parallel with others
 * that use them. */
struct simulation simulation_open(struct session *session);
void simulation_run(void *simulation, struct arena *scratch); /* a task (base/parallel.h) */
void report_simulated(
        struct session *session, const struct simulation *simulation, struct report *report);
void report_simulate(struct session *session, struct report *report); /* these three in one */
/* Does the design fit the platform?  false: diagnostics name the resource, the excess, and what
 * helps. */
bool report_fits(struct session *session, const struct design_cost *cost);
/* Adds a JSON member. */
void report_resources(struct text *out, const char *key, struct resources r);
void report_table(
        struct text *out, const char *name, struct resources used, struct resources available);
void report_json(const struct report *report, struct text *out);
struct report_answer report_answer(struct arena *arena, const struct report *report);
void report_graph(const struct report *report, struct text *out); /* JSON */
/* false: a diagnostic, the template cannot be read. */
bool report_page(const struct report *report, struct diag *diag, struct text *out);
void report_text(const struct report *report, struct text *out);
/* Intermediate results on chip and converters (report_layer.c). */
void report_layer_json(const struct report *report, struct text *out);
void report_layer_text(const struct report *report, struct text *out);
void report_timing(const struct session *session, double packed_bytes, struct text *out);
#endif
