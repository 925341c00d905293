/* Slices of a contraction unit that share multipliers: a word of weights of each a cycle, against the groups of numbers that they keep for a phase. */
#include "pass/unit.h"

struct slice {
	int first;                /* of those of the process */
	struct value *in, **weights, *scale, *next, *out;     /* channels; next: NULL for the last of its chain */
	struct value **groups, *sums;     /* arrays: those of the phase, or of a tile of it, [abreast]; those of the block */
};

/* Σ x * w of a group, for each slice, for each token abreast. */
static struct value *products(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, struct value *const *x, const struct slice *s)
{
	const int common = unit->common > 1 ? unit->abreast : 1, words = unit->products, dots = unit->abreast / common;
	const int64_t sums = words * common, all = words * unit->abreast;
	const struct type *whole = type_integer(p->module, 32), *row = sums > 1 ? type_shaped(p->module, TYPE_VECTOR, 1, &sums, whole) : whole;
	struct value **operand = ARENA_ARRAY(p->module->arena, struct value *, common + words), **sum = ARENA_ARRAY(p->module->arena, struct value *, dots);
	for (int i = 0; i < words; i++)
		operand[common + i] = unit_take_word(unit, p, phase, counter, s->first + i, s->weights[i]);
	for (int q = 0; q < dots; q++) {
		for (int j = 0; j < common; j++)
			operand[j] = x[q * common + j];
		sum[q] = make_op(p, OP_DOT, row, common + words, operand);
		if (common > 1)
			attr_set(p->module, sum[q]->def, "common", attr_integer(p->module, common));
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

static void add_products(const struct unit *unit, struct process *p, const struct phase *phase, const struct slice *s)
{
	struct value *counter[UNIT_LOOPS];
	int loops = unit_loops(unit, p, phase, counter);
	struct value *group = counter[1], *row = sum_place(unit, p, counter), *first = make_equal(p, group, 0), *last = make_same(p, group, make_own_index(p, phase->contract.groups - 1));
	struct value **x = ARENA_ARRAY(p->module->arena, struct value *, unit->abreast), *place = unit->streams ? NULL : unit_group_place(unit, p, phase, counter);
	for (int q = 0; q < unit->abreast; q++)
		x[q] = unit->streams ? unit_stream(p, counter, s->in, s->groups[q], s->next) : make_load(p, s->groups[q], place);
	if (!unit->streams)
		unit_ahead(unit, p, phase, counter, s->in, s->groups, s->next);
	struct value *factor[2] = {products(unit, p, phase, counter, x, s), make_take(p, NULL, s->scale)};
	struct value *term[2] = {make_select(p, first, make_number(p, 0, unit->real), make_load(p, s->sums, row)), make_op(p, OP_MULF, unit->real, 2, factor)};
	struct value *sum = make_op(p, OP_ADDF, unit->real, 2, term);
	make_store(p, sum, s->sums, row);
	make_push(p, last, sum, s->out);
	process_close(p, loops);
}

static void add_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct slice *s = context;
	if (!unit->streams)
		unit_begin(unit, p, phase, s->in, s->groups, s->next);
	add_products(unit, p, phase, context);
}

void lower_slice(const struct unit *unit, int number, struct value *next)
{
	struct arena *arena = unit->design->module->arena;
	int first = number * unit->products;
	struct process p = unit_process(unit, text_format(arena, "slice%d", first));
	struct slice s = {.first = first, .weights = ARENA_ARRAY(arena, struct value *, unit->products)};
	s.in = process_argument(&p, unit->input[number], "x");
	for (int i = 0; i < unit->products; i++)
		s.weights[i] = process_argument(&p, unit->weights[first + i], text_format(arena, "w%d", i));
	s.scale = process_argument(&p, unit->scale[number], "scale");
	s.next = next ? process_argument(&p, next, "on") : NULL;
	s.out = process_argument(&p, unit->sums[number], "y");
	s.groups = unit_arrays(unit, &p, "groups", unit->group);
	s.sums = make_array(&p, "sums", unit->block_most * unit->words_most, unit->real, 1);
	attr_set(p.module, s.sums->def, "stream.distance", attr_integer(p.module, unit->distance));
	unit_each_joined(unit, &p, add_phase, &s);
	process_finish(&p);
}
