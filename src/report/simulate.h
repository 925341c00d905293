/* What `stc simulate` prints and writes. */
#ifndef STC_SIMULATE_H
#define STC_SIMULATE_H
#include "pipeline/session.h"
#include "predict/timing.h"
#include "simulate/cycle_sim.h"

/* over time; what is shorter than one shows as what fills most of it */
#define TRACE_POINTS 2000

struct simulated {
	const char *name; /* of the design, as given */
	const struct cycle_result *cycle_result;
	int64_t wanted, total; /* launches; events of all of them */
	bool stopped;
	/* --tokens: of the launch, of which `flow` is the last; how many were simulated.  0: it
	 * is not asked for */
	int64_t steps, sampled;
	int64_t tokens, cycles; /* that all of them read, and take */
};

/* it bounds a loop, or names a dim */
bool simulate_is_extent(const struct module *module, const char *symbol);
/* that the input may be: rows of what it counts, or one more where others may follow, or places
 * in what it names; INT64_MAX: it is neither */
int64_t simulate_extent_most(const struct module *module, const char *symbol);
/* `most`, or where rows count, as many as all steps of a launch take */
int64_t tokens_rows_most(
        const struct module *module, const char *symbol, int64_t tokens, int64_t most);
/* false: a diagnostic says why --tokens cannot be */
bool tokens_check(struct session *session, int extents, const struct extent_value *extent);
/* of that token of a launch */
void tokens_extents(const struct module *module, int64_t token, int extents,
        const struct extent_value *from, struct extent_value *extent);
/* its tokens and flow are there */
bool tokens_simulate(struct session *session, const struct cycle_options *options, int extents,
        const struct extent_value *extent, struct simulated *simulated);

void simulated_json(struct session *session, const struct simulated *simulated);
void simulated_text(struct session *session, const struct simulated *simulated);
/* .json: trace events; .vcd: value changes; false: a diagnostic */
bool simulated_trace(struct session *session, const struct simulated *simulated, const char *path);
bool trace_has_format(const char *path);
#endif
