/* Chooses banks for a buffer by the words that its sides move at a time, and finds words. */
#include "converter/banks.h"
#include "base/number.h"
#include <stdlib.h>

#define COPIES_BITS_MOST (4 << 20) /* of all copies together; larger buffers are read slowly */

/* --- digits of a word's place: fields between rising limits, each a digit or address bits */

struct field {
	int64_t low, high; /* what it counts: multiples of low, below high */
	int digit;         /* -1: part of the address */
};

struct fields {
	int count;
	struct field field[2 * BANK_DIGITS_MOST + 1];
};

static struct fields fields_of(const struct banks *banks)
{
	struct fields fields = { 0 };
	int64_t low = 1;
	for (int d = 0; d < banks->digits; d++) {
		struct bank_digit digit = banks->digit[d];
		if (digit.pitch > low)
			fields.field[fields.count++] = (struct field){ low, digit.pitch, -1 };
		low = digit.pitch * digit.banks;
		fields.field[fields.count++] = (struct field){ digit.pitch, low, d };
	}
	fields.field[fields.count++] = (struct field){ low, INT64_MAX, -1 };
	return fields;
}

static int64_t part_of(const struct field *field, int64_t place)
{
	int64_t rest = field->high == INT64_MAX ? place : place % field->high;
	return rest / field->low;
}

/* Does a loop of a side count only multiples of the field's low limit below its high one? */
static bool counts_in(const struct field *field, int64_t step, int64_t trip)
{
	return step % field->low == 0 &&
	        (field->high == INT64_MAX || llabs(step) * (trip - 1) < field->high);
}

static int64_t accesses_of(const struct bank_sides *sides, const struct box_side *side)
{
	return side->lanes / sides->word;
}

static int64_t place_of(const struct box_side *side, int64_t access, int64_t word)
{
	return (side->first + side->lane[access * word]) / word;
}

/* The field in which the loop counts; -1: it is in several. */
static int field_of(
        const struct fields *fields, const struct box_side *side, int loop, int64_t word)
{
	int64_t step = side->step[loop] / word;
	for (int f = fields->count - 1; f >= 0; f--)
		if (counts_in(&fields->field[f], step, side->trip[loop]))
			return f;
	return -1;
}

/* Does no sum of a side's counters leave its field, up or down, whatever is accessed? */
static bool adds_without_carry(
        const struct fields *fields, const struct box_side *side, int64_t word)
{
	for (int f = 0; f + 1 < fields->count; f++) {
		const struct field *field = &fields->field[f];
		int64_t most = 0;
		int64_t least = INT64_MAX;
		for (int64_t a = 0; a < side->lanes / word; a++) {
			int64_t own = part_of(field, place_of(side, a, word));
			most = own > most ? own : most;
			least = own < least ? own : least;
		}
		for (int l = 0; l < side->loops; l++) {
			if (!side->step[l] || field_of(fields, side, l, word) != f)
				continue;
			int64_t far = side->step[l] / word / field->low * (side->trip[l] - 1);
			*(far < 0 ? &least : &most) += far;
		}
		if (least < 0 || most >= field->high / field->low)
			return false;
	}
	for (int l = 0; l < side->loops; l++)
		if (side->step[l] && field_of(fields, side, l, word) < 0)
			return false;
	return true;
}

/* Does the digit of an access vary in the loops? */
static bool varies(
        const struct fields *fields, const struct box_side *side, int digit, int64_t word)
{
	for (int l = 0; l < side->loops; l++) {
		int f = side->step[l] ? field_of(fields, side, l, word) : -1;
		if (f >= 0 && fields->field[f].digit == digit)
			return true;
	}
	return false;
}

/* Is each word of an access in a bank of its own, in every iteration? */
static bool are_apart(const struct banks *banks, const struct box_side *side, int64_t word)
{
	struct fields fields = fields_of(banks);
	int64_t accesses = side->lanes / word;
	if (accesses > 1 && !adds_without_carry(&fields, side, word))
		return false;
	for (int64_t a = 1; a < accesses; a++)
		for (int64_t b = 0; b < a; b++) {
			bool apart = false;
			for (int f = 0; f < fields.count; f++) {
				const struct field *field = &fields.field[f];
				apart |= field->digit >= 0 &&
				        part_of(field, place_of(side, a, word)) !=
				                part_of(field, place_of(side, b, word)) &&
				        !varies(&fields, side, field->digit, word);
			}
			if (!apart)
				return false;
		}
	return true;
}

/* --- the choice */

static bool are_powers_of_two(const struct banks *banks)
{
	for (int d = 0; d < banks->digits; d++) {
		int64_t both = banks->digit[d].pitch * banks->digit[d].banks;
		if (both & (both - 1))
			return false;
	}
	return true;
}

/* Adds a digit where it fits between those there are. */
static void add_digit(struct banks *banks, struct bank_digit digit)
{
	int at = 0;
	while (at < banks->digits && banks->digit[at].pitch < digit.pitch)
		at++;
	const struct bank_digit *below = at ? &banks->digit[at - 1] : NULL;
	const struct bank_digit *above = at < banks->digits ? &banks->digit[at] : NULL;
	bool fits = (!below || digit.pitch % (below->pitch * below->banks) == 0) &&
	        (!above || above->pitch % (digit.pitch * digit.banks) == 0);
	if (!fits || banks->digits == BANK_DIGITS_MOST || digit.pitch * digit.banks > banks->words)
		return;
	for (int d = banks->digits++; d > at; d--)
		banks->digit[d] = banks->digit[d - 1];
	banks->digit[at] = digit;
}

/* Digits that tell the words of an access apart: runs of places at a pitch, and runs of runs. */
static void add_digits(struct banks *banks, const struct box_side *side, int64_t word)
{
	int64_t accesses = side->lanes / word;
	for (int64_t inner = 1; inner < accesses;) {
		int64_t first = place_of(side, 0, word);
		int64_t pitch = place_of(side, inner, word) - first;
		int64_t count = 1;
		while ((count + 1) * inner <= accesses &&
		        place_of(side, count * inner, word) == first + count * pitch)
			count++;
		if (pitch <= 0 || count < 2)
			return;
		add_digit(banks, (struct bank_digit){ pitch, count });
		inner *= count;
	}
}

/* May all places of the side be found?  With loops that count in one digit each, or by divisions
 * that are free. */
static bool is_found(
        const struct bank_sides *sides, const struct banks *banks, const struct box_side *side)
{
	struct box_side split = banks_split(sides, banks, side, 0);
	struct fields fields = fields_of(banks);
	return are_powers_of_two(banks) || adds_without_carry(&fields, &split, sides->word);
}

static bool side_is_apart(
        const struct bank_sides *sides, const struct banks *banks, const struct box_side *side)
{
	struct box_side split = banks_split(sides, banks, side, 0);
	return are_apart(banks, &split, sides->word);
}

/* Copies for the reads that are not apart; 0: a place of a side cannot be found. */
static int64_t copies_with(const struct bank_sides *sides, const struct banks *banks)
{
	int64_t copies = 1;
	if (!is_found(sides, banks, sides->fill))
		return 0;
	for (int r = 0; r < sides->drains; r++) {
		int64_t reads = accesses_of(sides, sides->drain[r]);
		if (!is_found(sides, banks, sides->drain[r]))
			return 0;
		if (reads > copies && !side_is_apart(sides, banks, sides->drain[r]))
			copies = reads;
	}
	return copies;
}

struct banks banks_choose(const struct bank_sides *sides)
{
	struct banks both = { .words = sides->words, .copies = 1 };
	add_digits(&both, sides->fill, sides->word);
	struct banks written = both;
	for (int r = 0; r < sides->drains; r++)
		add_digits(&both, sides->drain[r], sides->word);
	if (side_is_apart(sides, &both, sides->fill) && copies_with(sides, &both) == 1)
		return both;
	struct banks none = { .words = sides->words, .copies = 1 };
	bool apart = side_is_apart(sides, &written, sides->fill) && copies_with(sides, &written);
	struct banks best = apart ? written : none;
	int64_t copies = copies_with(sides, &best);
	best.copies = copies * sides->words * sides->bits <= COPIES_BITS_MOST ? copies : 1;
	return best;
}

/* --- loops */

/* Splits the loop in two where it counts in a field and beyond; false: that does not divide it. */
static bool split_loop(const struct fields *fields, struct box_side *side, int loop, int64_t word)
{
	int64_t step = side->step[loop] / word;
	int f = 0;
	while (f < fields->count && step % fields->field[f].low == 0)
		f++;
	int64_t inner = fields->field[f - 1].high / step;
	if (fields->field[f - 1].high % step || side->trip[loop] % inner || inner < 2)
		return false;
	for (int l = side->loops++; l > loop; l--) {
		side->trip[l] = side->trip[l - 1];
		side->step[l] = side->step[l - 1];
		side->run_time[l] = side->run_time[l - 1];
	}
	side->trip[loop] /= inner;
	side->step[loop] *= inner;
	side->trip[loop + 1] = inner;
	return true;
}

struct box_side banks_split(const struct bank_sides *sides, const struct banks *banks,
        const struct box_side *side, int shared)
{
	struct box_side split = *side;
	struct fields fields = fields_of(banks);
	int most = side->loops * fields.count + 1;
	if (sides->whole_loops)
		return split;
	split.trip = ARENA_ARRAY(sides->arena, int64_t, most);
	split.step = ARENA_ARRAY(sides->arena, int64_t, most);
	split.run_time = ARENA_ARRAY(sides->arena, const struct run_time_trip *, most);
	for (int l = 0; l < side->loops; l++) {
		split.trip[l] = side->trip[l];
		split.step[l] = side->step[l];
		split.run_time[l] = side->run_time[l];
	}
	for (int l = shared; l < split.loops; l++)
		while (split.step[l] && !split.run_time[l] &&
		        field_of(&fields, &split, l, sides->word) < 0 &&
		        split_loop(&fields, &split, l, sides->word)) {
		}
	return split;
}

int banks_interval(const struct bank_sides *sides, const struct banks *banks,
        const struct box_side *side, bool write)
{
	int64_t accesses = accesses_of(sides, side);
	bool apart = side_is_apart(sides, banks, side) || (!write && banks->copies >= accesses);
	return apart ? 1 : (int)accesses;
}

/* --- the array */

static int64_t words_of_bank(const struct banks *banks)
{
	struct bank_digit top =
	        banks->digits ? banks->digit[banks->digits - 1] : (struct bank_digit){ 1, 1 };
	int64_t below = 1;
	for (int d = 0; d + 1 < banks->digits; d++)
		below *= banks->digit[d].banks;
	return ceil_div(banks->words, top.pitch * top.banks) * (top.pitch / below);
}

int64_t banks_total(const struct banks *banks)
{
	int64_t total = banks->copies;
	for (int d = 0; d < banks->digits; d++)
		total *= banks->digit[d].banks;
	return total;
}

const struct type *banks_type(
        struct module *module, const struct banks *banks, const struct type *element)
{
	int64_t shape[BANK_DIGITS_MOST + 2];
	int rank = 0;
	if (banks->copies > 1)
		shape[rank++] = banks->copies;
	for (int d = 0; d < banks->digits; d++)
		shape[rank++] = banks->digit[d].banks;
	shape[rank++] = words_of_bank(banks);
	return type_shaped(module, TYPE_MEMREF, rank, shape, element);
}

/* An index of the array: what a word's place counts in some fields, each times its weight. */
struct bank_index {
	int count;
	int field[2 * BANK_DIGITS_MOST + 1];
	int64_t weight[2 * BANK_DIGITS_MOST + 1];
};

/* One index a digit, then the address in the bank. */
static int list_indices(const struct fields *fields, struct bank_index index[BANK_DIMS_MOST])
{
	struct bank_index address = { 0 };
	int64_t below = 1; /* banks of the digits below */
	int count = 0;
	for (int f = 0; f < fields->count; f++) {
		const struct field *field = &fields->field[f];
		if (field->digit >= 0) {
			index[count++] = (struct bank_index){ 1, { f }, { 1 } };
			below *= field->high / field->low;
			continue;
		}
		address.field[address.count] = f;
		address.weight[address.count++] = field->low / below;
	}
	index[count++] = address;
	return count;
}

static int64_t constant_of(
        const struct fields *fields, const struct bank_index *index, int64_t place)
{
	int64_t sum = 0;
	for (int i = 0; i < index->count; i++)
		sum += index->weight[i] * part_of(&fields->field[index->field[i]], place);
	return sum;
}

/* How much more the index is in each iteration of a loop. */
static int64_t stride_of(const struct fields *fields, const struct bank_index *index,
        const struct bank_access *access, int loop)
{
	const struct box_side *side = access->side;
	int own = side->step[loop] ? field_of(fields, side, loop, access->word) : -1;
	for (int i = 0; i < index->count; i++)
		if (index->field[i] == own)
			return index->weight[i] *
			        (side->step[loop] / access->word / fields->field[own].low);
	return 0;
}

/* A number that is `more` above another, or a constant. */
static struct value *add_constant(
        struct process *p, struct value *number, bool fixed, int64_t constant, int64_t more)
{
	const int64_t one = 1;
	if (fixed)
		return make_index(p, constant);
	return more ? make_address(p, 1, &number, &one, more) : number;
}

/* Where sums carry: quotients of the word's place. */
static struct value *divided_index(struct process *p, const struct fields *fields,
        const struct bank_index *index, struct value *place)
{
	struct value *part[2 * BANK_DIGITS_MOST + 1];
	for (int i = 0; i < index->count; i++) {
		const struct field *field = &fields->field[index->field[i]];
		part[i] = field->low > 1 ? make_divided(p, OP_DIVSI, place, field->low) : place;
		if (field->high != INT64_MAX)
			part[i] = make_divided(p, OP_REMSI, part[i], field->high / field->low);
	}
	return make_address(p, index->count, part, index->weight, 0);
}

/* The index of word `number`; `first`: that of word 0, which is made with it. */
static struct value *added_index(struct process *p, const struct bank_access *access,
        const struct bank_index *index, int64_t number, struct value **first)
{
	const struct box_side *side = access->side;
	struct fields fields = fields_of(access->banks);
	int64_t *stride = ARENA_ARRAY(p->module->arena, int64_t, side->loops + 1);
	int64_t begin = constant_of(&fields, index, place_of(side, 0, access->word));
	int64_t constant = constant_of(&fields, index, place_of(side, number, access->word));
	bool fixed = true;
	for (int l = 0; l < side->loops; l++) {
		stride[l] = stride_of(&fields, index, access, l);
		fixed = fixed && !(stride[l] && access->point[l]);
	}
	if (!*first && !fixed)
		*first = make_address(p, side->loops, access->point, stride, begin);
	return add_constant(p, *first, fixed, constant, constant - begin);
}

/* The place of word `number` in the buffer. */
static struct value *place_in(struct process *p, struct bank_access *access, int64_t number)
{
	const struct box_side *side = access->side;
	int64_t begin = place_of(side, 0, access->word);
	int64_t *step = ARENA_ARRAY(p->module->arena, int64_t, side->loops + 1);
	for (int l = 0; l < side->loops; l++)
		step[l] = side->step[l] / access->word;
	if (!access->place)
		access->place = make_address(p, side->loops, access->point, step, begin);
	return add_constant(
	        p, access->place, false, 0, place_of(side, number, access->word) - begin);
}

int banks_indices(struct process *p, struct bank_access *access, int64_t number, int64_t copy,
        struct value *index[BANK_DIMS_MOST])
{
	struct bank_index own[BANK_DIMS_MOST];
	struct fields fields = fields_of(access->banks);
	int count = list_indices(&fields, own);
	bool divides = !adds_without_carry(&fields, access->side, access->word);
	struct value *place = divides ? place_in(p, access, number) : NULL;
	int rank = 0;
	if (access->banks->copies > 1)
		index[rank++] = make_index(p, copy);
	for (int i = 0; i < count; i++)
		index[rank++] = divides
		        ? divided_index(p, &fields, &own[i], place)
		        : added_index(p, access, &own[i], number, &access->first[i]);
	return rank;
}
