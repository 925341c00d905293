/* A point of the design space being made into a design: what point.c and build_*.c share. */
#ifndef STC_BUILD_H
#define STC_BUILD_H
#include "explore/limits.h"

enum outcome { OUTCOME_BUILT, OUTCOME_CROWDED, OUTCOME_PORTS, OUTCOME_SPACE, OUTCOME_MEMORY, OUTCOME_REFUSED };

enum from { FROM_TENSOR, FROM_COPY, FROM_MADE, FROM_JUDGED };

struct build {
	struct session *session;
	struct module *tensor;    /* what the passes begin at */
	int first, last;
	enum from from;           /* what session->module is already: a copy of `tensor`; what the passes up to make_processes make of it; the same, and `judged` is what has come of it */
	enum outcome judged;
	struct ahead *ahead;      /* what was built beside it; NULL: nothing was */
	bool spares;              /* no FIFO is sized where a die is crowded in any case: OUTCOME_CROWDED */
	bool crowded;             /* a die of the design is, so far as it is built */
	enum limit over;          /* of OUTCOME_SPACE: the limit that is exceeded; LIMITS: the board */
	struct resources used;    /* by the last design that got as far */
	struct design_cost cost;  /* of OUTCOME_BUILT, whole */
	int slices;               /* of the unit in the first attempt that took more than it may; 0: none did */
	double excess;            /* and how many times too much */
	double ms;                /* and modelled, where there is a target */
	struct resources before;  /* what the attempt before took, where that was too much memory */
};

#define NARROW 300            /* thousandths of LUTs and DSPs that kernels get at most where a die would be crowded otherwise */
#define NEAR 1.01             /* ratings that differ by no more are alike */

/* The slices whose kernels are made narrower: any; those of one token; those that take a few counted tokens, which want more DSPs to a LUT; those that take tiles of many counted tokens; those of a prompt's tokens. */
enum beside { BESIDE_ANY, BESIDE_ALONE, BESIDE_FEW, BESIDE_TILES, BESIDE_PROMPT };

struct less {                 /* a way to take less than a crowded design */
	int ports, loaders, slices;       /* 0: as wanted */
	int narrow;               /* thousandths of LUTs for kernels; 0: as wanted */
	enum beside beside;       /* what it is for */
	bool slow;
	bool quick;               /* ends (choices.def) */
	bool done;                /* built, or like one that was */
	bool crowded;             /* some die, when it was built */
	bool measured;            /* it was built, and is rated as it is */
	double rating;
	int64_t lut, dsp;         /* of its processes */
};

struct ahead {                /* a way that is rated beside something else */
	struct session session;   /* as the design's, but for what changes */
	struct build part;
	bool made;                /* as far as it can be rated */
	struct less less, crowded;        /* the way; and what the design itself is rated, if a die of it is crowded.  Of both the rating is 0 until they are compared */
};

struct clock {                /* a slower one (limits_slower) is a wish, and another platform */
	const struct platform *platform;
	int64_t mhz;
};

/* build_attempt.c */
struct build build_part(const struct build *b);      /* as far as a design's cycles can be told */
bool build_is_whole(const struct build *b);
bool build_counts_tokens(const struct build *b);     /* has the unit a few tokens, counted at run time? */
void build_begin(struct build *b);                   /* the user's limits are the first budgets */
enum outcome build_attempt(struct build *b);
void build_narrower(struct build *b, enum outcome outcome, int number);
bool build_fitting(struct build *b);                 /* false: a diagnostic, or a second phase that waits for the first */
int build_slices(const struct build *b, const struct design_cost *cost);

/* build_less.c */
struct clock build_clock(const struct session *session);
void build_set_clock(struct session *session, struct clock clock);
void build_choose(struct build *b, const struct choices *wanted, const struct less *less);
double build_rating(const struct session *session);
void build_rate(const struct session *session, struct less *less);
void build_rate_way(struct build *b, const struct choices *wanted, struct less *less);
bool build_timed(struct build *b);

/* build_ahead.c */
bool ahead_goes(const struct build *b);
void ahead_judge(struct build *b, const struct choices *wanted);
void ahead_compare(struct build *b);                 /* rates the design and the way, side by side */
void ahead_rate(struct build *b, const struct choices *wanted, struct less *less, const struct less *next);
void ahead_take(struct build *b, struct less *less);
void ahead_drop(struct build *b);

/* build_counted.c */
bool build_counted(struct build *b);

/* build_dealt.c */
bool build_dealt(struct build *b);

/* build_fewer.c */
bool build_allowed(struct build *b);
#endif
