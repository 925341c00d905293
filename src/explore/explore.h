/* A search over the choices of the compiler, each point built and timed.  What is known is in a
 * state, which a file keeps between runs (explore_state.c). */
#ifndef STC_EXPLORE_H
#define STC_EXPLORE_H
#include "pipeline/session.h"

struct trial {
	struct choices asked; /* the point */
	struct choices built; /* what it became where it did not fit */
	const char *refused;  /* why there is no design; NULL: there is one */
	int64_t cycles;       /* of a launch, modelled */
	int64_t simulated;    /* 0: not simulated */
	double ms;            /* of a launch: simulated, else modelled */
	double per_second;    /* launches, one begun as soon as the design allows */
	double energy_mj;     /* of a launch, estimated */
	struct resources used;
	int64_t on_chip; /* bytes of FIFOs and converters */
};

struct exploration {
	const char *model; /* hash of the input's text */
	const char *name, *platform, *quant;
	const char *constraints;      /* limits and fixed widths, as given */
	struct choices fixed_choices; /* not searched */
	struct option_list fix;       /* as given */
	double target_ms;             /* 0: none; a slower design counts as refused */
	VEC(struct trial) trials;     /* number: its id */
};

/* The exploration that the options ask for, with no trials; session->choices are what is given. */
bool exploration_begin(struct session *session, struct exploration *exploration);
/* Tries points until there are `trials`, none is left, or the session is asked to stop; `keep`
 * is told after each (NULL: nobody).  Deterministic: the next point follows from those before.
 * session->module: what make_streams begins at.  false: it was stopped, or keep gave false. */
bool explore(struct session *session, struct exploration *exploration, int64_t trials,
        bool (*keep)(struct session *session, const struct exploration *exploration));
/* Is no other trial at least as good in time, DSP slices, memory on chip, energy and launches a
 * second? */
bool exploration_on_front(const struct exploration *exploration, size_t trial);
/* The quickest, or with a target the one with the fewest DSP slices.  -1: no trial became a
 * design. */
int exploration_best(const struct exploration *exploration);

/* Makes the options those of a trial, STATE:ID; false after a diagnostic. */
bool exploration_take(struct session *session, const char *point);

void exploration_json(const struct exploration *exploration, struct text *out);
/* false after a diagnostic: not such a file, or one of another model, platform or wish than
 * `exploration`, whose trials it gives. */
bool exploration_read(struct session *session, const char *path, struct exploration *exploration);
#endif
