/* What a design would do on its platform: report.json (stable keys), report.txt and report.html
 * (for people), timing.json (what differs between runs). */
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
	int64_t bytes, most_depth;
	/* bytes of the depths that were asked for; memories are a little deeper */
	int64_t needed;
};

#define LAUNCHES 3

struct launch {               /* as modelled */
	int64_t tokens, past; /* so many, behind so many */
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
	struct design_cost cost;
	struct design_time time;
	struct memories fifos, converters;
	bool least;                          /* the depths needed are the least that were found */
	struct intermediates unfused, fused; /* of a layer; kernels 0: unknown */
	struct on_chip on_chip;
	bool decodes;      /* it has states: a launch adds a token to them, or several */
	int64_t tokens;    /* of a sequence, at most */
	int64_t sequences; /* of one launch */
	/* rows of its states, at a run-time extent with the row that is made; 0: none */
	int64_t context;
	/* only the rows that there are are read; times are those of the whole context */
	bool run_time;
	const char *quant; /* --quant, or none */
	double host_bytes; /* weights and states, each once; of tables, what is gathered */
	struct bundle_channel channel; /* the busiest of the memory */
	bool memory_least;             /* time.least is that channel's, not a process's */
	/* bounds; the model's two ends with the launch */
	double memory_ms, mac_ms, model_ms, least_ms;
	/* of fewer tokens, or behind fewer, than the one that is reported; of designs of several
	 * tokens a launch */
	struct launches launches;
	/* time.most is the token model's; else nothing overlaps along the longest chain */
	bool predicted;
	bool simulated; /* the next four are there: the simulation was short enough */
	/* processes and channels as in cost; without a simulation only its events are there */
	struct cycle_result cycle_result;
	int64_t cycles, first_output; /* first_output -1: nothing is written */
	const char *deadlock;         /* who waits for whom; NULL: it ends */
	/* by what is shown that launches end; NULL: by nothing */
	const char *termination_proof;
	double latency_ms;    /* simulated, else as modelled */
	struct energy energy; /* of a launch of so long */
	/* text tokens that a launch is taken to be where the design chooses them itself; 0: it
	 * does not */
	int64_t tokens_per_launch;
	double token_ms; /* then: of one of them, with its part of the launch */
	struct energy token_energy;
	/* JSON members about a kernel of several phases; NULL: there is one phase */
	const char *kernel;
};

struct simulation {                    /* of a design as built: one launch */
	struct arena *arena;           /* its own */
	struct cycle_network *network; /* NULL: it cannot be simulated */
	struct cycle_options options;
	enum cycle_outcome outcome;
	struct cycle_result cycle_result;
};

struct forecast {            /* of a design's modelled cycles */
	struct arena *arena; /* its own */
	struct guard guard;
	struct session *session; /* of the platform and of a copy of the module */
	const struct module *of;
	int64_t cycles;
	struct launches launches;
};

struct report_answer {
	const char *limit;   /* what limits the design */
	const char **advice; /* what would change that, the most useful first */
	int count;
};

/* of a sequence, that a launch adds to the states at most; 0: it has none */
int64_t report_tokens(const struct module *module);
struct report report_make(struct session *session, const char *name);
/* Modelled cycles of a launch: those of the token model, in which ports that share an adapter do
 * not wait for each other, and no fewer than the busiest adapter takes.  0: the design is not in
 * the model. */
int64_t report_cycles(const struct session *session, struct token_detail detail);
/* For report_make, beside what uses the scratch fields of the module's values. */
struct forecast *forecast_open(struct session *session);
void forecast_run(void *forecast, struct arena *scratch); /* a job (base/parallel.h) */
struct launches forecast_take(struct session *session, struct forecast *forecast);

/* arena: for what is needed meanwhile. */
struct launches launches_modelled(const struct session *session, struct arena *arena);
void launches_text(const struct report *report, struct text *out);
void launches_json(const struct report *report, struct text *out);
/* simulated to the end: times are that one's, else the model's */
bool report_ends(const struct report *report);
double report_products(const struct report *report); /* made a cycle of a launch */
/* If it takes few iterations (options.events).  Opening uses the scratch fields of the module's
 * values; running looks at the network alone, and may go on beside what uses them next. */
struct simulation simulation_open(struct session *session);
void simulation_run(void *simulation, struct arena *scratch); /* a job (base/parallel.h) */
void report_simulated(
        struct session *session, const struct simulation *simulation, struct report *report);
void report_simulate(struct session *session, struct report *report); /* the three at once */
/* false: diagnostics name the resource, by how much, and what helps */
bool report_fits(struct session *session, const struct design_cost *cost);
/* a JSON member */
void report_resources(struct text *out, const char *key, struct resources r);
void report_table(
        struct text *out, const char *name, struct resources used, struct resources available);
void report_json(const struct report *report, struct text *out);
struct report_answer report_answer(struct arena *arena, const struct report *report);
void report_graph(const struct report *report, struct text *out); /* JSON */
/* false: a diagnostic, the template cannot be read */
bool report_page(const struct report *report, struct diag *diag, struct text *out);
void report_text(const struct report *report, struct text *out);
/* what a layer keeps on chip, and why; in report_layer.c */
void report_layer_json(const struct report *report, struct text *out);
void report_layer_text(const struct report *report, struct text *out);
void report_timing(const struct session *session, double packed_bytes, struct text *out);
#endif
