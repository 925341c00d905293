/* Slices of a contraction unit, in sets that share multipliers: a word of weights of each a cycle, against the groups of numbers that they keep for a phase. */
#include "engine/unit.h"

struct set {                  /* of slices that share multipliers */
	int first;
	struct value **weights, *scale, *out;     /* channels */
	struct value *sums;       /* array: those of the block */
};

struct slice {
	int count;                /* sets of the process */
	struct set set[SETS_MOST];
	struct value *in, *next;  /* channels; next: NULL for the last of its chain */
	struct value **groups;    /* arrays: those of the phase, or of a tile of it, [abreast] */
};

/* Σ x * w of a group, for each slice, for each token abreast. */
static struct value *products(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, struct value *const *x, const struct set *set)
{
	const int common = unit->common > 1 ? unit->abreast : 1, words = unit->products, dots = unit->abreast / common;
	const int64_t sums = words * common, all = words * unit->abreast;
	const struct type *whole = type_integer(p->module, 32), *row = sums > 1 ? type_shaped(p->module, TYPE_VECTOR, 1, &sums, whole) : whole;
	struct value **operand = ARENA_ARRAY(p->module->arena, struct value *, common + words), **sum = ARENA_ARRAY(p->module->arena, struct value *, dots);
	for (int i = 0; i < words; i++)
		operand[common + i] = unit_take_word(unit, p, phase, counter, set->first + i, set->weights[i]);
	for (int q = 0; q < dots; q++) {
		for (int j = 0; j < common; j++)
			operand[j] = x[q * common + j];
		sum[q] = make_op(p, OP_DOT, row, common + words, operand);
		if (common > 1)
			attr_set(p->module, sum[q]->def, KEY_INPUT_WORDS, attr_integer(p->module, common));
	}
	struct value *word = dots > 1 ? make_op(p, OP_JOIN_LANES, type_shaped(p->module, TYPE_VECTOR, 1, &all, whole), dots, sum) : sum[0];
	return make_op(p, OP_SITOFP, unit->real, 1, &word);
}

/* Where the sum of a row and a token is. */
static struct value *sum_place(const struct unit *unit, struct process *p, struct value *const *counter)
{
	struct value *of[2] = {counter[2], counter[UNIT_LOOPS - 1]};
	const int64_t pitch[2] = {unit->words_most, 1};
	return make_address(p, 2, of, pitch, 0);
}

/* first, last: group of the row. */
static void add_set(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, struct value *const *x, const struct set *set, struct value *first, struct value *last)
{
	struct value *row = sum_place(unit, p, counter), *factor[2] = {products(unit, p, phase, counter, x, set), make_take(p, NULL, set->scale)};
	struct value *term[2] = {make_select(p, first, make_number(p, 0, unit->real), make_load(p, set->sums, row)), make_op(p, OP_MULF, unit->real, 2, factor)};
	struct value *sum = make_op(p, OP_ADDF, unit->real, 2, term);
	make_store(p, sum, set->sums, row);
	make_push(p, last, sum, set->out);
}

static void add_products(const struct unit *unit, struct process *p, const struct phase *phase, const struct slice *s)
{
	struct value *counter[UNIT_LOOPS];
	int loops = unit_loops(unit, p, phase, counter);
	struct value *group = counter[1], *first = make_equal(p, group, 0), *last = make_same(p, group, make_own_index(p, phase->contract.groups - 1));
	struct value **x = ARENA_ARRAY(p->module->arena, struct value *, unit->abreast), *place = unit->streams ? NULL : unit_group_place(unit, p, phase, counter);
	for (int q = 0; q < unit->abreast; q++)
		x[q] = unit->streams ? unit_stream(p, counter, s->in, s->groups[q], s->next) : make_load(p, s->groups[q], place);
	if (!unit->streams)
		unit_ahead(unit, p, phase, counter, s->in, s->groups, s->next);
	for (int i = 0; i < s->count; i++)
		add_set(unit, p, phase, counter, x, &s->set[i], first, last);
	process_close(p, loops);
}

static void add_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct slice *s = context;
	if (!unit->streams)
		unit_begin(unit, p, phase, s->in, s->groups, s->next);
	add_products(unit, p, phase, context);
}

static void add_operands(const struct unit *unit, struct process *p, struct set *set, int number, bool only)
{
	struct arena *arena = p->module->arena;
	*set = (struct set){.first = number * unit->products, .weights = ARENA_ARRAY(arena, struct value *, unit->products)};
	for (int i = 0; i < unit->products; i++)
		set->weights[i] = process_argument(p, unit->weights[set->first + i], text_format(arena, "w%d", set->first % (unit->products * unit->together_sets) + i));
	set->scale = process_argument(p, unit->scale[number], only ? "scale" : text_format(arena, "scale%d", number % unit->together_sets));
}

int lower_slice(const struct unit *unit, int number)
{
	struct arena *arena = unit->design->module->arena;
	int left = unit->chain - number % unit->chain, all = unit_sets(unit) - number, most = left < all ? left : all;
	struct process p = unit_datapath(unit, text_format(arena, "slice%d", number * unit->products));
	struct slice s = {.count = most < unit->together_sets ? most : unit->together_sets};
	s.in = process_argument(&p, unit->input[number], "x");
	for (int i = 0; i < s.count; i++)
		add_operands(unit, &p, &s.set[i], number + i, s.count == 1);
	s.next = s.count < left && s.count < all ? process_argument(&p, unit->input[number + s.count], "on") : NULL;
	for (int i = 0; i < s.count; i++)
		s.set[i].out = process_argument(&p, unit->sums[number + i], s.count == 1 ? "y" : text_format(arena, "y%d", i));
	s.groups = unit_arrays(unit, &p, "groups", unit->group);
	for (int i = 0; i < s.count; i++) {
		s.set[i].sums = make_array(&p, i ? text_format(arena, "sums%d", i) : "sums", unit->block_most * unit->words_most, unit->real, 1);
		attr_set(p.module, s.set[i].sums->def, KEY_STREAM_DISTANCE, attr_integer(p.module, unit->distance));
	}
	unit_each_joined(unit, &p, add_phase, &s);
	process_finish(&p);
	return number + s.count;
}
