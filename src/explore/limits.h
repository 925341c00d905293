/* What the user allows a design to take, and how long: --max-dsp, --max-lut, --max-bram,
 * --max-uram, --target-ms, --clock. */
#ifndef STC_LIMITS_H
#define STC_LIMITS_H
#include "pipeline/session.h"
#include "predict/resource.h"

extern const char *const limit_option[LIMITS];
extern const char *const limit_unit[LIMITS];

/* Fills session->limit and lowers the clock of session->platform; false after a diagnostic: a
 * wish that is absurd, or that another one contradicts. */
bool limits_read(struct session *session);
bool limits_clock(struct session *session); /* the clock alone */
/* Is a die fuller than the platform calls crowded? */
bool limits_crowded(const struct session *session, const struct design_cost *cost);
/* the clock of a crowded design, whatever the design is */
bool limits_slower(struct session *session);
/* The clock's rule: where a die is fuller than the platform calls crowded and the user has not
 * said a clock, it is slower by the platform's factor.  true: it has just been lowered, so the
 * design is to be built again. */
bool limits_slow_down(struct session *session, const struct design_cost *cost);
int64_t limit_of(struct resources resources, enum limit limit);
/* The first that `used` is over; LIMITS: none. */
enum limit limits_exceeded(const struct session *session, struct resources used);
#endif
