/* What `stc simulate` prints and writes. */
#ifndef STC_SIMULATE_H
#define STC_SIMULATE_H
#include "driver/session.h"
#include "sim/flow.h"

#define TRACE_POINTS 2000     /* over time; what is shorter than one shows as what fills most of it */

struct simulated {
	const char *name;         /* of the design, as given */
	const struct flow_result *flow;
	int64_t wanted, total;    /* launches; events of all of them */
	bool stopped;
};

void simulated_json(struct session *session, const struct simulated *simulated);
void simulated_text(struct session *session, const struct simulated *simulated);
bool simulated_trace(struct session *session, const struct simulated *simulated, const char *path);      /* .json: trace events; .vcd: value changes; false: a diagnostic */
bool trace_has_format(const char *path);
#endif
