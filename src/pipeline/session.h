/* One run of the program or of the API: its memory, diagnostics, options, module and times. */
#ifndef STC_SESSION_H
#define STC_SESSION_H
#include "options/options.h"
#include "pipeline/passes.h"
#include "emit/emit.h"
#include "platform/platform.h"
#include "options/pass_context.h"
#include "streamtensor.h"
#include <signal.h>

struct stage {
	const char *name;
	double seconds;
};

struct output;
struct weights;

struct session {
	struct arena *own;     /* holds this */
	struct arena *arena;   /* everything else */
	struct arena *scratch; /* of a stress check; else NULL */
	struct guard guard;
	struct diag diag;
	struct options options;
	const struct platform *platform;
	const struct quant_scheme *quant; /* NULL: none */
	struct module *module;
	enum level read;                /* that it was read at */
	const struct module *predicted; /* whose cycles predicted_cycles is; NULL: nobody's */
	int64_t predicted_cycles;
	struct weights *weights; /* NULL: none were given */
	struct choices choices;  /* the point that is compiled */
	/* what the design may take: the platform, or less where options.limit says so */
	struct resources limit;
	double target_ms; /* 0: none */
	/* what the first design lacked, where the one at hand is as narrow as can be; else NULL */
	const char *narrowest;
	struct pass_context context; /* of the pass that runs, or ran last */
	/* of the weights that the first of several phases reads (pass_context); NULL: there is
	 * only one phase */
	struct map *parallelism_table;
	struct map search_cache; /* of searches (pass_context) */
	bool follows;            /* the phase at hand is not the first */
	struct arena *attempt;   /* holds the module where it is one of several attempts */
	struct text lp;          /* the linear program of FIFO depths, where options.lp wants it */
	struct output *output;   /* being written; NULL before and after */
	struct text out;         /* for standard output */
	struct text notices;     /* for standard error, beside the diagnostics */
	char last_words[640];    /* why the guard was left; "" */
	void (*on_stage)(void *user, const char *name);
	/* of a long stage; NULL: nobody wants to know */
	void (*on_progress)(void *user, const char *what, int percent);
	void *on_stage_user;      /* of both */
	VEC(struct stage) stages; /* in order; the last one may still run */
	double stage_began;
	volatile sig_atomic_t stop;
};

struct session *session_new(void); /* NULL: out of memory */
void session_free(struct session *session);
/* why the guard was left, for last_words */
void session_note_last_words(struct session *session);
/* Runs `work` under the guard. */
enum stc_status session_guarded(struct session *session, bool (*work)(struct session *session));
/* Ends the stage that runs and begins another (NULL: none).  false: the session was asked to
 * stop, and there is a diagnostic. */
bool session_stage(struct session *session, const char *name);
/* notices and diagnostics; false: there are none */
bool session_messages(struct session *session, struct text *out);

bool run_passes(struct session *session, int first, int last);
bool load_module(struct session *session, const char *file); /* → module, verified */
/* of hardware level: every channel gets what is read from it, and, with `depths`, a launch ends */
bool check_words(struct session *session, bool depths);
bool load_platform(struct session *session);

/* In stress mode: print, read and print again gives the same bytes; the values before and after
 * a pass agree as its numeric class says. */
bool stress_on(void);
struct stress;
struct stress *stress_begin(struct session *session); /* evaluates the module */
void stress_check(struct session *session, struct stress *stress, const struct pass *pass);

#endif
