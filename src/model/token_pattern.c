#include "model/token_pattern.h"

#define TESTED_MOST (1 << 18) /* iterations of the loops that one test looks at together */
#define PARTS 64              /* of a condition */

/* The last digit's values are single iterations: nothing is divided for it. */
int64_t token_before_digits(const struct token_pattern *pattern, int64_t iteration)
{
	int64_t count = 0;
	for (int i = 0; i < pattern->digits; i++) {
		const struct token_digit *digit = &pattern->digit[i];
		int64_t value = digit->inside == 1 ? iteration : iteration / digit->inside;
		iteration -= value * digit->inside;
		int64_t below = digit->before ? digit->before[value] : value;
		count += below * digit->inside_active;
		bool active = value < digit->trips && (!digit->before || digit->before[value + 1] > below);
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

/* --- conditions */

static int64_t floor_quotient(int64_t a, int64_t b)
{
	return b ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0;
}

static int64_t compare(int64_t predicate, int64_t a, int64_t b)
{
	const bool holds[] = {a == b, a != b, a < b, a <= b, a > b, a >= b};
	return predicate >= 0 && predicate < 6 && holds[predicate];
}

static bool evaluate(const struct value *value, const struct token_loop *loop, int64_t *result);

static bool evaluate_map(const struct op *op, const struct token_loop *loop, int64_t *result)
{
	const struct attr *attr = attr_get(op, "map");
	if (!attr || attr->kind != ATTR_MAP || attr->map.dims != op->operands || attr->map.results != 1)
		return false;
	*result = affine_constant(attr->map, 0);
	for (int i = 0; i < op->operands; i++) {
		int64_t number;
		if (!evaluate(op->operand[i], loop, &number))
			return false;
		*result += affine_at(attr->map, 0, i) * number;
	}
	return true;
}

static bool evaluate_op(const struct op *op, const struct token_loop *loop, int64_t *result)
{
	int64_t in[3] = {0};
	if (op->results != 1 || op->operands > 3 || !type_is_whole(op->result[0]->type))
		return false;
	for (int i = 0; i < op->operands; i++)
		if (!type_is_whole(op->operand[i]->type) || !evaluate(op->operand[i], loop, &in[i]))
			return false;
	bool known = true;
	switch (op->code) {
	case OP_ADDI: *result = in[0] + in[1]; break;
	case OP_SUBI: *result = in[0] - in[1]; break;
	case OP_MULI: *result = in[0] * in[1]; break;
	case OP_DIVSI: *result = in[1] ? in[0] / in[1] : 0; break;
	case OP_REMSI: *result = in[1] ? in[0] % in[1] : 0; break;
	case OP_FLOORDIVSI: *result = floor_quotient(in[0], in[1]); break;
	case OP_ANDI: *result = in[0] & in[1]; break;
	case OP_ORI: *result = in[0] | in[1]; break;
	case OP_XORI: *result = in[0] ^ in[1]; break;
	case OP_MAXSI: *result = in[0] > in[1] ? in[0] : in[1]; break;
	case OP_MINSI: *result = in[0] < in[1] ? in[0] : in[1]; break;
	case OP_CMPI: *result = compare(attr_integer_or(op, "predicate", -1), in[0], in[1]); break;
	case OP_SELECT: *result = in[0] ? in[1] : in[2]; break;
	default: known = false;
	}
	return known;
}

static bool evaluate(const struct value *value, const struct token_loop *loop, int64_t *result)
{
	if (!value->def) {
		*result = value->type->kind == TYPE_INDEX ? token_counter_of(&loop[value->id]) : 0;
		return value->type->kind == TYPE_INDEX;
	}
	if (value->def->code != OP_CMPI && attr_get(value->def, "stream.run_time")) {
		*result = value->id;
		return true;
	}
	if (value->def->code == OP_APPLY)
		return evaluate_map(value->def, loop, result);
	if (value->def->code != OP_CONSTANT)
		return evaluate_op(value->def, loop, result);
	const struct attr *attr = attr_get(value->def, "value");
	if (!attr || (attr->kind != ATTR_INTEGER && attr->kind != ATTR_BOOL))
		return false;
	*result = attr->kind == ATTR_BOOL ? attr->integer != 0 : attr->integer;
	return true;
}

bool token_condition(const struct value *when, const struct token_loop *loop, bool *holds)
{
	int64_t number;
	if (!evaluate(when, loop, &number))
		return false;
	*holds = number != 0;
	return true;
}

/* --- iterations that do the same */

static bool looks_at_first(const struct value *value, bool *others)
{
	bool looks = !value->def && value->type->kind == TYPE_INDEX && !value->id;
	*others |= !value->def && !looks;
	for (int i = 0; value->def && !attr_get(value->def, "stream.run_time") && i < value->def->operands; i++)
		looks |= looks_at_first(value->def->operand[i], others);
	return looks;
}

static bool same_number(const struct value *value, const struct token_loop *loop)
{
	struct token_loop whole = {.trips = loop->trips + loop->skipped, .counter = 1};
	int64_t first, number;
	bool same = evaluate(value, &whole, &first);
	for (whole.counter = 2; same && whole.counter < whole.trips - 1; whole.counter++)
		same = evaluate(value, &whole, &number) && number == first;
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
	bool parts = op && (op->code == OP_ANDI || op->code == OP_ORI || op->code == OP_XORI || op->code == OP_SELECT);
	for (int i = 0; parts && i < op->operands; i++)
		parts = token_same_between(op->operand[i], loop);
	return parts;
}

/* --- patterns */

struct part {                 /* of a conjunction */
	const struct value *value;
	int low, high;            /* the loops it looks at; low > high: none of them */
};

struct conjunction {
	struct part part[PARTS];
	int parts, first, last;
	bool *seen;               /* [loops] a part looks at it */
};

static void find_loops(const struct value *value, struct part *part, int first, bool *seen)
{
	if (!value->def && value->id >= first) {
		seen[value->id] = true;
		part->low = value->id < part->low ? value->id : part->low;
		part->high = value->id > part->high ? value->id : part->high;
	}
	bool counts = value->def && attr_get(value->def, "stream.run_time");
	for (int i = 0; value->def && !counts && i < value->def->operands; i++)
		find_loops(value->def->operand[i], part, first, seen);
}

static bool split(struct conjunction *c, const struct value *value)
{
	const struct op *op = value->def;
	if (op && op->code == OP_ANDI && op->result[0]->type->kind == TYPE_INTEGER && op->result[0]->type->width == 1)
		return split(c, op->operand[0]) && split(c, op->operand[1]);
	if (c->parts == PARTS)
		return false;
	struct part part = {value, c->last + 1, c->first - 1};
	find_loops(value, &part, c->first, c->seen);
	c->part[c->parts++] = part;
	return true;
}

/* Sets the counters of loops low … high to one of their combinations, outermost first. */
static void set_counters(struct token_loop *loop, int low, int high, int64_t number)
{
	for (int l = high; l >= low; l--) {
		loop[l].counter = loop[l].trips ? number % loop[l].trips : 0;
		number = loop[l].trips ? number / loop[l].trips : 0;
	}
}

static bool is_active(const struct conjunction *c, const struct token_loop *loop, int low, int high, bool *active)
{
	bool holds = true;
	*active = true;
	for (int i = 0; i < c->parts && *active; i++) {
		bool looks = low > high ? c->part[i].low > c->part[i].high : c->part[i].low <= high && c->part[i].high >= low;
		if (looks && !token_condition(c->part[i].value, loop, &holds))
			return false;
		*active = holds;
	}
	return true;
}

static bool looked_at(const struct conjunction *c, int low, int high)
{
	for (int i = 0; i < c->parts; i++)
		if (c->part[i].low <= high && c->part[i].high >= low)
			return true;
	return false;
}

/* The first combination that differs from the one at hand in loops alone that nothing looks at. */
static int64_t first_alike(const struct conjunction *c, const struct token_loop *loop, int low, int high)
{
	int64_t number = 0;
	for (int l = low; l <= high; l++)
		number = number * loop[l].trips + (c->seen[l] ? loop[l].counter : 0);
	return number;
}

/* Lists the values of loops low … high at which the condition holds. */
static bool list_values(struct arena *arena, const struct conjunction *c, struct token_loop *loop, int low, int high, struct token_digit *digit)
{
	digit->value = ARENA_ARRAY(arena, int64_t, digit->trips + 1);
	digit->before = ARENA_ARRAY(arena, int64_t, digit->trips + 1);
	digit->active = 0;
	for (int64_t i = 0; i < digit->trips; i++) {
		set_counters(loop, low, high, i);
		int64_t alike = first_alike(c, loop, low, high);
		bool active = alike < i && digit->before[alike + 1] > digit->before[alike];
		if (alike == i && !is_active(c, loop, low, high, &active))
			return false;
		digit->before[i] = digit->active;
		if (active)
			digit->value[digit->active++] = i;
	}
	digit->before[digit->trips] = digit->active;
	if (digit->active == digit->trips)
		digit->value = digit->before = NULL;
	return true;
}

/* What the values of a digit go with; NULL: no text says all of it. */
static const char *key_of(struct arena *arena, const struct conjunction *c, const struct token_loop *loop, int low, int high)
{
	struct text key = text_new(arena);
	bool known = true;
	token_key_loops(&key, loop, low, high);
	for (int i = 0; i < c->parts && known; i++)
		known = c->part[i].low > high || c->part[i].high < low || token_key_add(&key, c->part[i].value, loop, low);
	return known ? key.data : NULL;
}

static bool fill_digit(struct map *digits, const struct conjunction *c, struct token_loop *loop, int low, int high, struct token_digit *digit)
{
	digit->trips = 1;
	for (int l = low; l <= high; l++)
		digit->trips *= loop[l].trips;
	digit->active = digit->trips;
	if (!looked_at(c, low, high))
		return true;
	if (digit->trips > TESTED_MOST)
		return false;
	struct arena *scratch = arena_within(digits->arena);
	const char *key = key_of(scratch, c, loop, low, high);
	struct token_digit *known = key ? map_get(digits, key) : NULL;
	bool filled = known || list_values(digits->arena, c, loop, low, high, digit);
	if (known)
		*digit = *known;
	else if (filled && key)
		map_set(digits, key, arena_copy(digits->arena, digit, sizeof *digit));
	arena_free(scratch);
	return filled;
}

/* The last loop that is looked at together with `low`. */
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

/* Neighbours without a table are one digit. */
static void add_digit(struct token_pattern *pattern, struct token_digit digit)
{
	struct token_digit *last = pattern->digits ? &pattern->digit[pattern->digits - 1] : NULL;
	if (last && !last->value && !digit.value && last->active == last->trips && digit.active == digit.trips)
		last->active = last->trips *= digit.trips;
	else
		pattern->digit[pattern->digits++] = digit;
}

bool token_pattern_make(struct arena *arena, struct map *digits, const struct value *when, struct token_loop *loop, int first, int last, struct token_pattern *pattern)
{
	struct conjunction c = {.first = first, .last = last, .seen = ARENA_ARRAY(arena, bool, last + 2)};
	bool ever = true;
	*pattern = (struct token_pattern){.digit = ARENA_ARRAY(arena, struct token_digit, last - first + 2)};
	if (!split(&c, when) || !is_active(&c, loop, 0, -1, &ever))
		return false;
	for (int l = first, high; l <= last; l = high + 1) {
		struct token_digit digit = {0};
		high = group_end(&c, l);
		if (!fill_digit(digits, &c, loop, l, high, &digit))
			return false;
		add_digit(pattern, digit);
	}
	int64_t inside = 1, active = 1;
	for (int i = pattern->digits - 1; i >= 0; i--) {
		pattern->digit[i].inside = inside;
		pattern->digit[i].inside_active = active;
		inside *= pattern->digit[i].trips;
		active *= pattern->digit[i].active;
	}
	pattern->accesses = ever ? active : 0;
	return true;
}
