/* Which iterations of a flattened loop nest make an access, in closed form.
 * The iteration number is written in digits, one per loop, or one for several neighbouring loops
 * that a test looks at together.  An access is made where every digit is one of its active
 * values; so counting accesses and finding the k-th takes as many steps as there are digits,
 * however long the loops are. */
#ifndef STC_TOKEN_PATTERN_H
#define STC_TOKEN_PATTERN_H
#include "base/map.h"
#include "base/text.h"
#include "ir/ir.h"

struct token_digit {
	int64_t trips, active;
	int64_t inside, inside_active; /* iterations and accesses for one value of this digit */
	int64_t *value;                /* [active] rising; NULL: all are active */
	int64_t *before;               /* [trips + 1] active values below; NULL: all */
};

struct token_pattern {
	int digits; /* outermost first */
	struct token_digit *digit;
	int64_t accesses;
	bool always; /* every iteration makes the access */
};

int64_t token_before_digits(const struct token_pattern *pattern, int64_t iteration);
int64_t token_at_digits(const struct token_pattern *pattern, int64_t access);

/* Accesses in earlier iterations. */
static inline int64_t token_before(const struct token_pattern *pattern, int64_t iteration)
{
	return pattern->always ? iteration : token_before_digits(pattern, iteration);
}

/* The iteration that makes it; access counts from 0. */
static inline int64_t token_at(const struct token_pattern *pattern, int64_t access)
{
	return pattern->always ? access : token_at_digits(pattern, access);
}

struct token_loop { /* a loop around an access: its counter's value->id is its number */
	int64_t trips, counter;
	int64_t skipped; /* iterations that are left out in front of the last one */
};

static inline int64_t token_counter_of(const struct token_loop *loop)
{
	return loop->counter + (loop->counter == loop->trips - 1 ? loop->skipped : 0);
}

/* What a condition asks: conditions of equal text hold in the same iterations.  Loops from `low`
 * on are told by their place, counters of those before them by what they are.  false: it depends
 * on data. */
bool token_key_add(
        struct text *key, const struct value *when, const struct token_loop *loop, int low);
void token_key_loops(struct text *key, const struct token_loop *loop, int low, int high);

/* The pattern of `when` over loops first … last; the counters of the loops before them hold.
 * digits: those that are listed already, by what they ask; patterns share them.  false: it
 * depends on data, or on too many loops at once. */
bool token_pattern_make(struct arena *arena, struct map *digits, const struct value *when,
        struct token_loop *loop, int first, int last, struct token_pattern *pattern);
/* at the counters as they are; false: it depends on data */
bool token_condition(const struct value *when, const struct token_loop *loop, bool *holds);
/* loop: number 0, of which iterations are skipped.  Does the condition look at its counter in a
 * way that tells none of those from another, nor from the second iteration? */
bool token_same_between(const struct value *when, const struct token_loop *loop);
#endif
