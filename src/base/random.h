/* Reproducible pseudo-random numbers: 64-bit xorshift (Marsaglia 2003). */
#ifndef STC_RANDOM_H
#define STC_RANDOM_H
#include <stdint.h>

#define RANDOM_SEED 88172645463325252u

/* *state: any number but 0. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
#endif
