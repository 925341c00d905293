/* The user's limits of a design's resources, time and clock: --max-dsp, --max-lut, --max-bram,
 * --max-uram, --target-ms, --clock. */
#ifndef STC_LIMITS_H
#define STC_LIMITS_H
#include "pipeline/session.h"
#include "predict/resource.h"

extern const char *const limit_option[LIMITS];
extern const char *const limit_unit[LIMITS];

/* Fills session->limit and lowers the clock of session->platform; false after a diagnostic: a
 * malformed limit, or two that contradict each other. */
bool limits_read(struct session *session);
bool limits_clock(struct session *session); /* --clock only */
/* Is a die fuller than the platform's threshold for its full clock? */
bool limits_crowded(const struct session *session, const struct design_cost *cost);
/* Lowers the clock to that of a crowded design, whether or not it is crowded. */
bool limits_slower(struct session *session);
/* Where a die is crowded and the user has chosen no clock, lowers the clock by the platform's
 * factor.  true: it was lowered, so the design has to be built again. */
bool limits_slow_down(struct session *session, const struct design_cost *cost);
int64_t limit_of(struct resources resources, enum limit limit);
/* The first limit that `used` exceeds; LIMITS: none. */
enum limit limits_exceeded(const struct session *session, struct resources used);
#endif
