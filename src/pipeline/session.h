/* One run of the program or of the API: memory, diagnostics, options, module and times. */
#ifndef STC_SESSION_H
#define STC_SESSION_H
#include "options/options.h"
#include "pipeline/passes.h"
#include "emit/emit.h"
#include "platform/platform.h"
#include "options/pass_context.h"
#include "predict/images.h"
#include "streamtensor.h"
#include <signal.h>

struct stage {
	const char *name;
	double seconds;
	int64_t steps; /* of work (base/guard.h) */
};

struct output;
struct weights;

struct session {
	struct arena *own;     /* holds this struct */
	struct arena *arena;   /* holds everything else */
	struct arena *scratch; /* of a stress check, or NULL */
	struct guard guard;
	struct diag diag;
	struct options options;
	const struct platform *platform;
	const struct quant_scheme *quant; /* NULL: none */
	struct module *module;
	enum level read;                /* level of the input */
	const struct module *predicted; /* the module of predicted_cycles; or NULL */
	int64_t predicted_cycles;
	struct image_times predicted_image; /* of that module's launch */
	struct weights *weights;            /* NULL: no --weights */
	struct choices choices;             /* the point of the design space that is compiled */
	/* what the design may take: the platform, or less by options.limit */
	struct resources limit;
	double target_ms; /* 0: none */
	/* if the design is the narrowest possible: why the first attempt did not fit; or NULL */
	const char *narrowest;
	struct pass_context context; /* of the current or last pass */
	/* parallelism of the weights that the first of two phases reads (pass_context); NULL:
	 * there is one phase */
	struct map *parallelism_table;
	struct map search_cache; /* memo of searches (pass_context) */
	bool follows;            /* the current phase is the second */
	struct arena *attempt;   /* holds the module of the current attempt */
	struct text lp;          /* the linear program of FIFO depths, if options.lp */
	struct output *output;   /* being written, or NULL */
	struct text out;         /* for standard output */
	struct text notices;     /* for standard error, in addition to diagnostics */
	char last_words[640];    /* why the guard was left, or "" */
	void (*on_stage)(void *user, const char *name);
	/* progress of a long stage; or NULL */
	void (*on_progress)(void *user, const char *what, int percent);
	void *on_stage_user;      /* of both callbacks */
	VEC(struct stage) stages; /* in order; the last one may still run */
	double stage_began;
	int64_t stage_steps; /* of work when it began */
	volatile sig_atomic_t stop;
};

struct session *session_new(void); /* NULL: out of memory */
void session_free(struct session *session);
/* Fills last_words with why the guard was left. */
void session_note_last_words(struct session *session);
/* Runs `work` under the guard. */
enum stc_status session_guarded(struct session *session, bool (*work)(struct session *session));
/* Ends the current stage and begins another (NULL: none).  false: the session was asked to stop; a
 * diagnostic. */
bool session_stage(struct session *session, const char *name);
/* Appends notices and diagnostics; false: there are none. */
bool session_messages(struct session *session, struct text *out);

/* Runs passes first … last on session->module.  false: a diagnostic. */
bool run_passes(struct session *session, int first, int last);
bool load_module(struct session *session, const char *file); /* fills session->module */
/* Checks at hardware level that every channel is written as often as read and, with `depths`, that
 * a launch ends. */
bool check_words(struct session *session, bool depths);
bool load_platform(struct session *session);

/* Stress mode checks after each pass that print, read, print gives the same bytes, and that values
 * before and after the pass agree within its numeric class. */
bool stress_on(void);
struct stress;
struct stress *stress_begin(struct session *session); /* evaluates the module */
void stress_check(struct session *session, struct stress *stress, const struct pass *pass);

#endif
