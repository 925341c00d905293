/* A point of the design space while it is made into a design: state and functions shared by
 * point.c, build_attempt.c, choose_*.c, fit_crowded_die.c and speculative_trial.c. */
#ifndef STC_BUILD_H
#define STC_BUILD_H
#include "explore/limits.h"
#include "ir/workload.h"

enum outcome {
	OUTCOME_BUILT,
	OUTCOME_CROWDED, /* a die is crowded whatever the FIFO depths; FIFOs are not sized */
	OUTCOME_PORTS,   /* too many memory ports */
	OUTCOME_SPACE,   /* too many LUTs, DSPs ... of a limit or the board */
	OUTCOME_MEMORY,  /* too much on-chip memory */
	OUTCOME_REFUSED  /* any other diagnostic; or stopped */
};

/* Which work an attempt finds done: session->module is */
enum from {
	FROM_TENSOR, /* anything: begin with a new copy of `tensor` */
	FROM_COPY,   /* a copy of `tensor` */
	FROM_MADE,   /* the result of the passes up to assign_axi_bundles */
	FROM_JUDGED  /* the same, and `judged` is the outcome of these passes */
};

struct build {
	struct session *session;
	struct module *tensor; /* input of the passes */
	int first, last;       /* passes to run */
	enum from from;
	enum outcome judged;
	struct speculative_trial *speculative_trial; /* built in parallel, or NULL */
	/* stop with OUTCOME_CROWDED before FIFOs are sized where a die is crowded anyway */
	bool skips_crowded;
	bool crowded;            /* a die is crowded by what has been built */
	enum limit over;         /* OUTCOME_SPACE: the exceeded limit; LIMITS: the board */
	struct resources used;   /* by the last design that could be counted */
	struct design_cost cost; /* OUTCOME_BUILT: of the whole design */
	/* of the first attempt that took too much: PEs of the engine (0: no such attempt), and
	 * the factor by which it exceeded its limit */
	int pes;
	double excess;
	double ms;               /* modeled time of a launch, if there is a target */
	struct resources before; /* memory of the previous attempt, where that was too much */
};

/* share of LUTs and DSPs for kernels, in thousandths, that a first trial for a crowded die takes */
#define LUT_SHARE_DEFAULT 300
#define RATING_TOLERANCE 1.01 /* ratings within this factor count as equal */

struct fit_trial {               /* a cheaper variant of a design with a crowded die */
	int ports, loaders, pes; /* KV ports, KV loaders, PEs; 0: unchanged */
	int lut_share;           /* thousandths of LUTs for kernels; 0: unchanged */
	enum workload workload;  /* that it is meant for */
	bool slow;               /* at the slower clock */
	bool paced_ends;         /* --prologue paced (choices.def) */
	bool done;               /* built, or equal to one that was */
	bool crowded;            /* it was built, and a die is crowded */
	bool measured;           /* `rating` is that of the built design, not an estimate */
	double rating;
	int64_t lut, dsp; /* of its processes */
};

struct speculative_trial {      /* a trial that is made in parallel to other work */
	struct session session; /* its own copy */
	struct build part;
	bool made; /* far enough to be rated */
	/* the trial, and the rating of the design itself if a die of that is crowded; both
	 * ratings are 0 until they are compared */
	struct fit_trial fit_trial, crowded;
};

struct clock { /* a clock is an option and a platform with that clock (limits_slower) */
	const struct platform *platform;
	int64_t mhz;
};

/* build_attempt.c */
/* A build up to assign_axi_bundles: far enough to model the cycles of a launch. */
struct build build_part(const struct build *b);
bool build_is_whole(const struct build *b);
/* Did the last passes end where the platform lacks room for the processes? */
bool build_lacks_room(const struct session *session);
/* Does the engine take a few tokens, counted at run time? */
bool build_counts_tokens(const struct build *b);
/* Lowers the budgets of kernels to the user's limits. */
void build_begin(struct build *b);
/* Runs the passes once with session->choices. */
enum outcome build_attempt(struct build *b);
/* Lowers the choice that failed attempt `number` exceeded. */
void build_narrower(struct build *b, enum outcome outcome, int number);
/* Attempts with lower and lower budgets until one fits.  false: a diagnostic, or a second phase
 * that has to wait for the first to be built with fewer ports. */
bool build_fitting(struct build *b);
/* PEs of the engine in a design. */
int build_pes(const struct build *b, const struct design_cost *cost);

/* fit_crowded_die.c */
struct clock build_clock(const struct session *session);
void build_set_clock(struct session *session, struct clock clock);
/* Sets session->choices to `wanted` with the changes of the trial. */
void build_apply_trial(
        struct build *b, const struct choices *wanted, const struct fit_trial *fit_trial);
/* Rating of session->module by the token model: milliseconds at the largest run-time extents times
 * milliseconds at a fraction of them; smaller is better, INFINITY: it cannot be modeled. */
double build_rating(const struct session *session);
/* Fills the trial's rating and operators from session->module. */
void build_rate(const struct session *session, struct fit_trial *fit_trial);
/* Makes the trial far enough to be rated, and rates it. */
void build_rate_trial(struct build *b, const struct choices *wanted, struct fit_trial *fit_trial);
/* Builds a design that fits, and if a die of it is crowded, the best trial with no crowded die. */
bool build_at_clock(struct build *b);

/* speculative_trial.c */
bool speculation_allowed(const struct build *b);
/* Makes the design up to assign_axi_bundles and, in parallel, the first trial for a crowded die. */
void speculative_judge(struct build *b, const struct choices *wanted);
/* Rates the design and the trial in parallel. */
void speculative_compare(struct build *b);
/* Rates the trial and, in parallel, the next one. */
void speculative_rate(struct build *b, const struct choices *wanted, struct fit_trial *fit_trial,
        const struct fit_trial *next);
/* Makes the speculative trial's module the session's. */
void speculative_adopt(struct build *b, struct fit_trial *fit_trial);
void speculative_drop(struct build *b);

/* Each chooses one parameter of the engine and builds the design with the others chosen by the
 * next; false: a diagnostic. */
bool build_tokens_per_cycle(struct build *b); /* choose_tokens_per_cycle.c */
bool build_pes_per_port(struct build *b);     /* choose_pes_per_port.c */
bool build_pe_count(struct build *b);         /* choose_pe_count.c */
#endif
