/* Slices of a contraction unit that share multipliers: a word of weights of each a cycle, against the groups of numbers that they keep for a phase. */
#include "pass/unit.h"

struct slice {
	struct value *in, **weights, *scale, *next, *out;     /* channels; next: NULL for the last of its chain */
	struct value *groups, *sums;      /* arrays: those of the phase, or of a tile of it; those of the block */
};

static void keep_groups(const struct unit *unit, struct process *p, const struct phase *phase, const struct slice *s)
{
	int loops;
	struct value *place = unit_groups(unit, p, phase, &loops), *group = make_take(p, NULL, s->in);
	make_store(p, group, s->groups, place);
	if (s->next)
		make_push(p, NULL, group, s->next);
	process_close(p, loops);
}

/* Σ x * w of a group, for each slice. */
static struct value *products(const struct unit *unit, struct process *p, struct value *first_token, struct value *x, struct value *const *weights)
{
	int64_t sums = unit->products;
	const struct type *whole = type_integer(p->module, 32);
	struct value **operand = ARENA_ARRAY(p->module->arena, struct value *, 1 + sums);
	operand[0] = x;
	for (int i = 0; i < sums; i++)
		operand[1 + i] = make_take(p, first_token, weights[i]);
	struct value *sum = make_op(p, OP_DOT, sums > 1 ? type_shaped(p->module, TYPE_VECTOR, 1, &sums, whole) : whole, 1 + (int)sums, operand);
	return make_op(p, OP_SITOFP, unit->real, 1, &sum);
}

/* Where the sum of a row and a token is. */
static struct value *sum_place(const struct unit *unit, struct process *p, struct value *const *counter)
{
	struct value *of[2] = {counter[2], counter[UNIT_LOOPS - 1]};
	const int64_t pitch[2] = {unit->tile_most, 1};
	return make_address(p, 2, of, pitch, 0);
}

static void add_products(const struct unit *unit, struct process *p, const struct phase *phase, const struct slice *s)
{
	struct value *counter[UNIT_LOOPS];
	int loops = unit_loops(unit, p, phase, counter);
	struct value *group = counter[1], *row = sum_place(unit, p, counter), *first = make_equal(p, group, 0), *last = make_same(p, group, make_own_index(p, phase->contract.groups - 1));
	struct value *x = make_load(p, s->groups, unit_group_place(unit, p, counter));
	struct value *factor[2] = {products(unit, p, unit_first_token(p, counter), x, s->weights), make_take(p, NULL, s->scale)};
	struct value *term[2] = {make_select(p, first, make_number(p, 0, unit->real), make_load(p, s->sums, row)), make_op(p, OP_MULF, unit->real, 2, factor)};
	struct value *sum = make_op(p, OP_ADDF, unit->real, 2, term);
	make_store(p, sum, s->sums, row);
	make_push(p, last, sum, s->out);
	process_close(p, loops);
}

static void add_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	int tiles = unit_tiles(p, phase);
	keep_groups(unit, p, phase, context);
	add_products(unit, p, phase, context);
	process_close(p, tiles);
}

void lower_slice(const struct unit *unit, int number, struct value *next)
{
	struct arena *arena = unit->design->module->arena;
	int first = number * unit->products;
	struct process p = unit_process(unit, text_format(arena, "slice%d", first));
	struct slice s = {.weights = ARENA_ARRAY(arena, struct value *, unit->products)};
	s.in = process_argument(&p, unit->input[number], "x");
	for (int i = 0; i < unit->products; i++)
		s.weights[i] = process_argument(&p, unit->weights[first + i], text_format(arena, "w%d", i));
	s.scale = process_argument(&p, unit->scale[number], "scale");
	s.next = next ? process_argument(&p, next, "on") : NULL;
	s.out = process_argument(&p, unit->sums[number], "y");
	s.groups = make_array(&p, "groups", unit->groups_most * unit->tile_most, unit->group, 1);
	s.sums = make_array(&p, "sums", unit->block_most * unit->tile_most, unit->real, 1);
	attr_set(p.module, s.sums->def, "stream.distance", attr_integer(p.module, unit->distance));
	unit_each(unit, &p, add_phase, &s);
	process_finish(&p);
}
