/* A point of the design space being made into a design: what point.c and build_*.c share. */
#ifndef STC_BUILD_H
#define STC_BUILD_H
#include "explore/limits.h"

enum outcome {
	OUTCOME_BUILT,
	OUTCOME_CROWDED,
	OUTCOME_PORTS,
	OUTCOME_SPACE,
	OUTCOME_MEMORY,
	OUTCOME_REFUSED
};

enum from { FROM_TENSOR, FROM_COPY, FROM_MADE, FROM_JUDGED };

struct build {
	struct session *session;
	struct module *tensor; /* what the passes begin at */
	int first, last;
	/* what session->module is already: a copy of `tensor`; what the passes up to
	 * make_processes make of it; the same, and `judged` is what has come of it */
	enum from from;
	enum outcome judged;
	/* what was built beside it; NULL: nothing was */
	struct speculative_trial *speculative_trial;
	/* no FIFO is sized where a die is crowded in any case: OUTCOME_CROWDED */
	bool skips_crowded;
	bool crowded; /* a die of the design is, so far as it is built */
	/* of OUTCOME_SPACE: the limit that is exceeded; LIMITS: the board */
	enum limit over;
	struct resources used;   /* by the last design that got as far */
	struct design_cost cost; /* of OUTCOME_BUILT, whole */
	/* of the unit in the first attempt that took more than it may; 0: none did */
	int pes;
	double excess;           /* and how many times too much */
	double ms;               /* and modelled, where there is a target */
	struct resources before; /* what the attempt before took, where that was too much memory */
};

/* thousandths of LUTs and DSPs that kernels get at most where a die would be crowded otherwise */
#define LUT_SHARE_DEFAULT 300
#define RATING_TOLERANCE 1.01 /* ratings that differ by no more are alike */

/* The slices whose kernels are made narrower: any; those of one token; those that take a few
 * counted tokens, which want more DSPs to a LUT; those that take tiles of many counted tokens;
 * those of a prompt's tokens. */
enum workload {
	WORKLOAD_ANY,
	WORKLOAD_DECODE,
	WORKLOAD_FEW_TOKENS,
	WORKLOAD_TILED_TOKENS,
	WORKLOAD_PREFILL
};

struct fit_trial {               /* a way to take less than a crowded design */
	int ports, loaders, pes; /* 0: as wanted */
	int lut_share;           /* thousandths of LUTs for kernels; 0: as wanted */
	enum workload workload;  /* what it is for */
	bool slow;
	bool paced_ends; /* ends (choices.def) */
	bool done;       /* built, or like one that was */
	bool crowded;    /* some die, when it was built */
	bool measured;   /* it was built, and is rated as it is */
	double rating;
	int64_t lut, dsp; /* of its processes */
};

struct speculative_trial {      /* a way that is rated beside something else */
	struct session session; /* as the design's, but for what changes */
	struct build part;
	bool made; /* as far as it can be rated */
	/* the way; and what the design itself is rated, if a die of it is crowded.  Of both the
	 * rating is 0 until they are compared */
	struct fit_trial fit_trial, crowded;
};

struct clock { /* a slower one (limits_slower) is a wish, and another platform */
	const struct platform *platform;
	int64_t mhz;
};

/* build_attempt.c */
struct build build_part(const struct build *b); /* as far as a design's cycles can be told */
bool build_is_whole(const struct build *b);
/* has the unit a few tokens, counted at run time? */
bool build_counts_tokens(const struct build *b);
void build_begin(struct build *b); /* the user's limits are the first budgets */
enum outcome build_attempt(struct build *b);
void build_narrower(struct build *b, enum outcome outcome, int number);
/* false: a diagnostic, or a second phase that waits for the first */
bool build_fitting(struct build *b);
int build_pes(const struct build *b, const struct design_cost *cost);

/* fit_crowded_die.c */
struct clock build_clock(const struct session *session);
void build_set_clock(struct session *session, struct clock clock);
void build_apply_trial(
        struct build *b, const struct choices *wanted, const struct fit_trial *fit_trial);
double build_rating(const struct session *session);
void build_rate(const struct session *session, struct fit_trial *fit_trial);
void build_rate_trial(struct build *b, const struct choices *wanted, struct fit_trial *fit_trial);
bool build_at_clock(struct build *b);

/* speculative_trial.c */
bool speculation_allowed(const struct build *b);
void speculative_judge(struct build *b, const struct choices *wanted);
/* rates the design and the way, side by side */
void speculative_compare(struct build *b);
void speculative_rate(struct build *b, const struct choices *wanted, struct fit_trial *fit_trial,
        const struct fit_trial *next);
void speculative_adopt(struct build *b, struct fit_trial *fit_trial);
void speculative_drop(struct build *b);

/* build_tokens_per_cycle.c */
bool build_tokens_per_cycle(struct build *b);

/* build_pes_per_port.c */
bool build_pes_per_port(struct build *b);

/* choose_pe_count.c */
bool build_pe_count(struct build *b);
#endif
