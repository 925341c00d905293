/* Derives access patterns: splits a condition into its conjuncts, groups the loops that one
 * conjunct reads together into a digit, and evaluates the condition for all values of that
 * digit. */
#include "predict/condition.h"
#include <string.h>

#define TESTED_MOST (1 << 22) /* maximum values of a digit */
#define PARTS 64              /* maximum conjuncts of a condition */

/* Digits of single iterations are not divided: division is the slowest step. */
int64_t token_before_digits(const struct token_pattern *pattern, int64_t iteration)
{
	int64_t count = 0;
	for (int i = 0; i < pattern->digits; i++) {
		const struct token_digit *digit = &pattern->digit[i];
		int64_t value = digit->inside == 1 ? iteration : iteration / digit->inside;
		iteration -= value * digit->inside;
		int64_t below = digit->before ? digit->before[value] : value;
		count += below * digit->inside_active;
		bool active = value < digit->trips &&
		        (!digit->before || digit->before[value + 1] > below);
		if (!active)
			return count;
	}
	return count;
}

int64_t token_at_digits(const struct token_pattern *pattern, int64_t access)
{
	int64_t iteration = 0;
	for (int i = 0; i < pattern->digits; i++) {
		const struct token_digit *digit = &pattern->digit[i];
		int64_t number = digit->inside_active == 1 ? access : access / digit->inside_active;
		access -= number * digit->inside_active;
		iteration += (digit->value ? digit->value[number] : number) * digit->inside;
	}
	return iteration;
}

bool token_condition(const struct value *when, const struct token_loop *loop, bool *holds)
{
	int64_t number;
	if (!condition_number(when, loop, &number))
		return false;
	*holds = number != 0;
	return true;
}

/* --- iterations that behave the same */

static bool looks_at_first(const struct value *value, bool *others)
{
	bool looks = !value->def && value->type->kind == TYPE_INDEX && !value->id;
	*others |= !value->def && !looks;
	for (int i = 0; value->def && !attr_get(value->def, KEY_STREAM_RUN_TIME) &&
	        i < value->def->operands;
	        i++)
		looks |= looks_at_first(value->def->operand[i], others);
	return looks;
}

static bool same_number(const struct value *value, const struct token_loop *loop)
{
	struct token_loop whole = { .trips = loop->trips + loop->skipped, .counter = 1 };
	int64_t first;
	int64_t number;
	bool same = condition_number(value, &whole, &first);
	for (whole.counter = 2; same && whole.counter < whole.trips - 1; whole.counter++)
		same = condition_number(value, &whole, &number) && number == first;
	return same;
}

bool token_same_between(const struct value *when, const struct token_loop *loop)
{
	const struct op *op = when->def;
	bool others = false;
	if (!looks_at_first(when, &others))
		return true;
	if (!others)
		return same_number(when, loop);
	bool parts = op &&
	        (op->code == OP_ANDI || op->code == OP_ORI || op->code == OP_XORI ||
	                op->code == OP_SELECT);
	for (int i = 0; parts && i < op->operands; i++)
		parts = token_same_between(op->operand[i], loop);
	return parts;
}

/* --- patterns */

struct conjunct { /* one conjunct */
	const struct value *value;
	int low, high; /* loops that it reads; low > high: none */
};

struct conjunction {
	struct conjunct part[PARTS];
	int parts, first, last;
};

static void note_loops(const struct value *value, struct conjunct *part, int first)
{
	if (!value->def && value->type->kind == TYPE_INDEX && value->id >= first) {
		part->low = value->id < part->low ? value->id : part->low;
		part->high = value->id > part->high ? value->id : part->high;
	}
	bool counts = value->def && attr_get(value->def, KEY_STREAM_RUN_TIME);
	for (int i = 0; value->def && !counts && i < value->def->operands; i++)
		note_loops(value->def->operand[i], part, first);
}

static bool split(struct conjunction *c, const struct value *value)
{
	const struct op *op = value->def;
	if (op && op->code == OP_ANDI && op->result[0]->type->kind == TYPE_INTEGER &&
	        op->result[0]->type->width == 1)
		return split(c, op->operand[0]) && split(c, op->operand[1]);
	if (c->parts == PARTS)
		return false;
	struct conjunct part = { value, c->last + 1, c->first - 1 };
	note_loops(value, &part, c->first);
	c->part[c->parts++] = part;
	return true;
}

/* Do the conjuncts hold that read no loop? */
static bool ever_holds(const struct conjunction *c, const struct token_loop *loop, bool *holds)
{
	*holds = true;
	for (int i = 0; i < c->parts && *holds; i++)
		if (c->part[i].low > c->part[i].high &&
		        !token_condition(c->part[i].value, loop, holds))
			return false;
	return true;
}

static bool looks_at(const struct conjunct *part, struct loop_range range)
{
	return part->low <= range.high && part->high >= range.low;
}

static bool looked_at(const struct conjunction *c, struct loop_range range)
{
	for (int i = 0; i < c->parts; i++)
		if (looks_at(&c->part[i], range))
			return true;
	return false;
}

/* A conjunct is only evaluated where all before it hold, so only there may it not depend on
 * data. */
static bool fill_active(const struct conjunction *c, struct columns *columns,
        struct loop_range range, int count, bool *active)
{
	memset(active, true, (size_t)count);
	for (int i = 0; i < c->parts && memchr(active, true, (size_t)count); i++)
		if (looks_at(&c->part[i], range) && !columns_and(columns, c->part[i].value, active))
			return false;
	return true;
}

/* Lists the values of a digit for which the condition holds. */
static bool list_values(struct arena *arena, struct arena *scratch, const struct conjunction *c,
        struct loop_range range, struct token_digit *digit)
{
	struct columns *columns = columns_new(scratch, range.loop, range.low, range.high);
	bool active[COLUMN];
	digit->value = ARENA_ARRAY(arena, int64_t, digit->trips + 1);
	digit->before = ARENA_ARRAY(arena, int64_t, digit->trips + 1);
	digit->active = 0;
	for (int64_t i = 0; i < digit->trips; i++) {
		int64_t left = digit->trips - i;
		int64_t place = i % COLUMN;
		int count = left < COLUMN ? (int)left : COLUMN;
		if (!place)
			columns_begin(columns, i, count);
		if (!place && !fill_active(c, columns, range, count, active))
			return false;
		digit->before[i] = digit->active;
		if (active[place])
			digit->value[digit->active++] = i;
	}
	digit->before[digit->trips] = digit->active;
	if (digit->active == digit->trips)
		digit->value = digit->before = NULL;
	return true;
}

/* The cache key of a digit: all that its values depend on; NULL: it cannot be written as text. */
static const char *key_of(struct arena *arena, const struct conjunction *c, struct loop_range range)
{
	struct text key = text_new(arena);
	bool known = true;
	token_key_loops(&key, range.loop, range.low, range.high);
	for (int i = 0; i < c->parts && known; i++)
		known = !looks_at(&c->part[i], range) ||
		        token_key_add(&key, c->part[i].value, range.loop, range.low);
	return known ? key.data : NULL;
}

static bool fill_digit(struct map *digits, const struct conjunction *c, struct loop_range range,
        struct token_digit *digit)
{
	digit->trips = 1;
	for (int l = range.low; l <= range.high; l++)
		digit->trips *= range.loop[l].trips;
	digit->active = digit->trips;
	if (!looked_at(c, range))
		return true;
	if (digit->trips > TESTED_MOST)
		return false;
	struct arena *scratch = arena_within(digits->arena);
	const char *key = key_of(scratch, c, range);
	struct token_digit *known = key ? map_get(digits, key) : NULL;
	bool filled = known || list_values(digits->arena, scratch, c, range, digit);
	if (known)
		*digit = *known;
	else if (filled && key)
		map_set(digits, key, arena_copy(digits->arena, digit, sizeof *digit));
	arena_free(scratch);
	return filled;
}

/* The last loop of the group that must share a digit with `low`. */
static int group_end(const struct conjunction *c, int low)
{
	int high = low;
	for (bool grown = true; grown;) {
		grown = false;
		for (int i = 0; i < c->parts; i++)
			if (c->part[i].low <= high && c->part[i].high > high) {
				high = c->part[i].high;
				grown = true;
			}
	}
	return high;
}

/* Neighboring digits that are always active are merged. */
static void add_digit(struct token_pattern *pattern, struct token_digit digit)
{
	struct token_digit *last = pattern->digits ? &pattern->digit[pattern->digits - 1] : NULL;
	bool merges = last && !last->value && !digit.value;
	if (merges && last->active == last->trips && digit.active == digit.trips)
		last->active = last->trips *= digit.trips;
	else
		pattern->digit[pattern->digits++] = digit;
}

bool token_pattern_make(struct arena *arena, struct map *digits, const struct value *when,
        struct loop_range range, struct token_pattern *pattern)
{
	struct conjunction c = { .first = range.low, .last = range.high };
	int most = range.high - range.low + 2;
	bool ever = true;
	*pattern = (struct token_pattern){ .digit = ARENA_ARRAY(arena, struct token_digit, most) };
	if (!split(&c, when) || !ever_holds(&c, range.loop, &ever))
		return false;
	for (int l = range.low, high; l <= range.high; l = high + 1) {
		struct token_digit digit = { 0 };
		high = group_end(&c, l);
		if (!fill_digit(digits, &c, (struct loop_range){ range.loop, l, high }, &digit))
			return false;
		add_digit(pattern, digit);
	}
	int64_t inside = 1;
	int64_t active = 1;
	for (int i = pattern->digits - 1; i >= 0; i--) {
		pattern->digit[i].inside = inside;
		pattern->digit[i].inside_active = active;
		inside *= pattern->digit[i].trips;
		active *= pattern->digit[i].active;
	}
	pattern->accesses = ever ? active : 0;
	pattern->always = pattern->digits == 1 && !pattern->digit->value &&
	        pattern->digit->active == pattern->digit->trips;
	return true;
}
