/* One point of the design space made into a design: where it does not fit the board or the
 * user's limits, narrower ones in its place. */
#ifndef STC_POINT_H
#define STC_POINT_H
#include "pipeline/session.h"

/* session->choices as the options say them. */
bool point_choose(struct session *session);
/* Runs passes `first` to `last` on copies of session->module, which they begin at; leaves
 * session->module and session->choices as they were built.  false after a diagnostic. */
bool point_build(struct session *session, int first, int last);
#endif
