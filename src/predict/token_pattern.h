/* Closed form of the iterations of a flattened loop nest that make a conditional access. The
 * iteration number is written in digits, one per loop, or one for several neighboring loops that
 * one condition reads. An access is made where every digit has one of its active values. So
 * counting accesses and finding the k-th one take as many steps as there are digits, however long
 * the loops are. */
#ifndef STC_TOKEN_PATTERN_H
#define STC_TOKEN_PATTERN_H
#include "base/map.h"
#include "base/text.h"
#include "ir/ir.h"

struct token_digit {
	int64_t trips, active;
	int64_t inside, inside_active; /* iterations and accesses per value of this digit */
	int64_t *value;                /* [active] active values, ascending; NULL: all */
	int64_t *before; /* [trips + 1] number of active values below; NULL: all are active */
};

struct token_pattern {
	int digits; /* outermost first */
	struct token_digit *digit;
	int64_t accesses;
	bool always; /* every iteration makes the access */
};

int64_t token_before_digits(const struct token_pattern *pattern, int64_t iteration);
int64_t token_at_digits(const struct token_pattern *pattern, int64_t access);

/* Number of accesses in iterations before this one. */
static inline int64_t token_before(const struct token_pattern *pattern, int64_t iteration)
{
	return pattern->always ? iteration : token_before_digits(pattern, iteration);
}

/* The iteration of access number `access`, from 0. */
static inline int64_t token_at(const struct token_pattern *pattern, int64_t access)
{
	return pattern->always ? access : token_at_digits(pattern, access);
}

struct token_loop { /* a loop of the nest; value->id of its counter is its number */
	int64_t trips, counter;
	int64_t skipped; /* iterations that are skipped before the last one */
};

static inline int64_t token_counter_of(const struct token_loop *loop)
{
	return loop->counter + (loop->counter == loop->trips - 1 ? loop->skipped : 0);
}

/* Appends a text that identifies a condition: conditions of equal text hold in the same iterations.
 * Loops from `low` on are named by position, counters of outer loops by their value. false: it
 * depends on data. */
bool token_key_add(
        struct text *key, const struct value *when, const struct token_loop *loop, int low);
void token_key_loops(struct text *key, const struct token_loop *loop, int low, int high);

/* Loops low … high of a nest, outermost first; the counters of those before `low` are fixed. */
struct loop_range {
	const struct token_loop *loop;
	int low, high;
};

/* The pattern of the condition `when` over these loops. digits: cache of digits by the text of
 * their condition. false: it depends on data, or on too many loops at once. */
bool token_pattern_make(struct arena *arena, struct map *digits, const struct value *when,
        struct loop_range range, struct token_pattern *pattern);
/* does the condition hold at the current counters? Returns false if it depends on data */
bool token_condition(const struct value *when, const struct token_loop *loop, bool *holds);
/* loop: loop 0, which has skipped iterations. Does the condition have the same value in all of them
 * and in the second iteration? */
bool token_same_between(const struct value *when, const struct token_loop *loop);
#endif
