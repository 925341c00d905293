/* What the user allows a design to take, and how long: --max-dsp, --max-lut, --max-bram, --max-uram, --target-ms, --clock. */
#ifndef STC_LIMITS_H
#define STC_LIMITS_H
#include "driver/session.h"

extern const char *const limit_option[LIMITS];
extern const char *const limit_unit[LIMITS];

/* Fills session->limit and lowers the clock of session->platform; false after a diagnostic: a wish that is absurd, or that another one contradicts. */
bool limits_read(struct session *session);
bool limits_clock(struct session *session);        /* the clock alone */
int64_t limit_of(struct resources resources, enum limit limit);
/* The first that `used` is over; LIMITS: none. */
enum limit limits_exceeded(const struct session *session, struct resources used);
#endif
