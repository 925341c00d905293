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
#endif
