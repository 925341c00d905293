/* The phases of a design on their way through the compiler.  Two of them, such as decode and
 * prefill, are one kernel: a launch runs either. */
#ifndef STC_PHASES_H
#define STC_PHASES_H
#include "explore/join_phases.h"
#include "report/report.h"
#include "emit/emit.h"

#define PHASES_MOST 2

struct design_phases {
	const char *name; /* of the design */
	struct phases phases;
	struct phase phase[PHASES_MOST];
	struct joined joined;               /* where there are two */
	const char *narrowest[PHASES_MOST]; /* of each, as session->narrowest */
};

/* options.file and options.with through all passes: the first with half of the platform, the
 * second with what that leaves. */
bool phases_compile(struct session *session, struct design_phases *design);
/* false: a diagnostic */
bool phases_fit(struct session *session, const struct design_phases *design);
/* [phases], [phases] */
void phases_open(struct session *session, const struct design_phases *design,
        struct simulation *simulation, struct forecast **forecast);
void phases_make(struct session *session, const struct design_phases *design,
        struct forecast *const *forecast, struct report *report);
void phases_simulated(struct session *session, const struct design_phases *design,
        const struct simulation *simulation, struct report *report);
/* writes report.json, report.txt, report.html */
bool phases_report(
        struct session *session, const struct design_phases *design, const struct report *report);

#endif
