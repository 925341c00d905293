/* Makes one point of the design space into a design; where that does not fit the board or the
 * user's limits, a narrower one in its place. */
#ifndef STC_POINT_H
#define STC_POINT_H
#include "pipeline/session.h"

/* Fills session->choices from the options; false after a diagnostic. */
bool point_choose(struct session *session);
/* Runs passes `first` to `last` on copies of session->module; session->module and session->choices
 * become those of the design.  false after a diagnostic. */
bool point_build(struct session *session, int first, int last);
#endif
