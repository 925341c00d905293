/* Phases of a design: one, or two such as decode and prefill, which are one kernel; a launch runs
 * either. */
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
	struct joined joined;               /* of two phases */
	const char *narrowest[PHASES_MOST]; /* of each phase, as session->narrowest */
};

/* Compiles options.file with half of the platform and options.with with what that leaves.
 * false: a diagnostic. */
bool phases_compile(struct session *session, struct design_phases *design);
/* Does the kernel fit the board and its memory?  false: a diagnostic. */
bool phases_fit(struct session *session, const struct design_phases *design);
/* Starts simulations and forecasts of all phases; both arrays have an entry per phase, as have
 * the arrays of reports below. */
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
