/* What `stc simulate` prints and writes, run-time extents as its options, and launches of several
 * tokens. */
#ifndef STC_SIMULATE_H
#define STC_SIMULATE_H
#include "pipeline/session.h"
#include "predict/timing.h"
#include "simulate/cycle_sim.h"

/* points over time; each shows the state that takes most of it */
#define TRACE_POINTS 2000

struct simulated {
	const char *name; /* of the design, as the command line has it */
	const struct cycle_result *cycle_result;
	int64_t wanted, total; /* launches; events of all launches */
	bool stopped;
	/* --tokens: steps of the launch, of which cycle_result is the last, and how many of them
	 * were simulated; 0: without --tokens */
	int64_t steps, sampled;
	int64_t tokens, cycles; /* of all steps: tokens read, cycles */
};

/* Is the symbol a run-time extent: does it bound a loop, or name a dim? */
bool simulate_is_extent(const struct module *module, const char *symbol);
/* The largest value of a run-time extent: of a token count, the tokens of a launch, or one more to
 * say that another chunk follows; of a length or position, the rows of the tensor.  INT64_MAX: it
 * is neither. */
int64_t simulate_extent_most(const struct module *module, const char *symbol);
/* `most`, or for a token count, the tokens of all steps of a launch. */
int64_t tokens_rows_most(
        const struct module *module, const char *symbol, int64_t tokens, int64_t most);
/* Can the launch take --tokens steps?  false: a diagnostic. */
bool tokens_check(struct session *session, int extents, const struct extent_value *extent);
/* Run-time extents of step `token` of a launch that begins with `from`. */
void tokens_extents(const struct module *module, int64_t token, int extents,
        const struct extent_value *from, struct extent_value *extent);
/* Fills cycles, sampled and tokens of a launch whose steps and last step's result are known. */
bool tokens_simulate(struct session *session, const struct cycle_options *options, int extents,
        const struct extent_value *extent, struct simulated *simulated);

void simulated_json(struct session *session, const struct simulated *simulated);
void simulated_images_text(struct session *session, const struct simulated *simulated);
void simulated_images_json(struct session *session, const struct simulated *simulated);
void simulated_text(struct session *session, const struct simulated *simulated);
/* Writes .json (trace events) or .vcd (value changes); false: a diagnostic. */
bool simulated_trace(struct session *session, const struct simulated *simulated, const char *path);
bool trace_has_format(const char *path);
#endif
