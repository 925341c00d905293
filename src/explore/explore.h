/* Design space exploration over the choices of the compiler: each point is built and timed.  A
 * state file records the trials between runs (explore_state.c). */
#ifndef STC_EXPLORE_H
#define STC_EXPLORE_H
#include "pipeline/session.h"

struct trial {
	struct choices asked; /* the point */
	struct choices built; /* the point after it was changed to fit */
	const char *refused;  /* why there is no design; NULL: there is one */
	int64_t cycles;       /* of a launch, modeled */
	int64_t simulated;    /* cycles of a launch, simulated; 0: not simulated */
	double ms;            /* of a launch: simulated, else modeled */
	double per_second;    /* launches, each begun as soon as the design allows */
	double energy_mj;     /* of a launch, estimated */
	struct resources used;
	int64_t on_chip; /* bytes of FIFOs and converters */
};

struct exploration {
	const char *model; /* hash of the input's text */
	const char *name, *platform, *quant;
	const char *constraints;      /* limits, --fix-kernel and chosen options, as text */
	struct choices fixed_choices; /* chosen by the user: not searched */
	struct option_list fix;       /* --fix-kernel options */
	bool of_c;                    /* the input is C */
	double target_ms;             /* 0: none; a slower design counts as refused */
	VEC(struct trial) trials;     /* the index of a trial is its id */
};

/* The exploration that the options describe, without trials; session->choices are the user's. */
bool exploration_begin(struct session *session, struct exploration *exploration);
/* Tries points until there are `trials`, none is left, or the session is asked to stop.  `keep`, if
 * not NULL, is called after each.  Deterministic: the next point follows from those before.
 * session->module is the input of fold_convolutions.  false: stopped, or `keep` returned
 * false. */
bool explore(struct session *session, struct exploration *exploration, int64_t trials,
        bool (*keep)(struct session *session, const struct exploration *exploration));
/* Is no other trial at least as good in time, DSP slices, on-chip memory, energy and throughput; of
 * C in time, DSP slices, LUTs and block RAMs? */
bool exploration_on_front(const struct exploration *exploration, size_t trial);
/* The fastest trial, or with a target the one with the fewest DSP slices; -1: no design. */
int exploration_best(const struct exploration *exploration);

/* Sets the options to those of a trial, STATE:ID; false after a diagnostic. */
bool exploration_take(struct session *session, const char *point);

void exploration_json(const struct exploration *exploration, struct text *out);
/* Reads trials into `exploration`.  false after a diagnostic: no state file, or one of another
 * model, platform, quantization or set of options. */
bool exploration_read(struct session *session, const char *path, struct exploration *exploration);
#endif
