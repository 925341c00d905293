/* Helpers for integers. */
#ifndef STC_NUMBER_H
#define STC_NUMBER_H
#include <stdint.h>

/* The largest power of two that divides `extent`, at most `most`. */
static inline int64_t power_of_two_in(int64_t extent, int64_t most)
{
	int64_t lanes = 1;
	while (2 * lanes <= most && extent % (2 * lanes) == 0)
		lanes *= 2;
	return lanes;
}

/* The least power of two that is no less. */
static inline int64_t power_of_two_from(int64_t number)
{
	int64_t power = 1;
	while (power < number)
		power *= 2;
	return power;
}

/* The quotient, rounded up; `by` is above 0. */
static inline int64_t ceil_div(int64_t number, int64_t by)
{
	return number > 0 ? (number + by - 1) / by : number / by;
}

/* The quotient, rounded down; `by` is not 0. */
static inline int64_t floor_div(int64_t number, int64_t by)
{
	return number / by - (number % by != 0 && (number < 0) != (by < 0));
}

/* The number of the digits at `text`; *end stands behind them, at `text` where there are none or
 * they say more than an int64_t holds.  No space, sign or exponent is accepted. */
static inline int64_t whole_number(const char *text, char **end)
{
	int64_t number = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		        __builtin_add_overflow(number, *at - '0', &number)) {
			*end = (char *)(uintptr_t)text;
			return 0;
		}
	*end = (char *)(uintptr_t)at;
	return number;
}

#endif
