/* A slice of a contraction unit: a word of weights a cycle, against the groups of numbers that it keeps for a phase. */
#include "pass/unit.h"

struct slice {
	struct value *in, *weights, *scale, *next, *out;      /* channels; next: NULL for the last of its chain */
	struct value *groups, *sums;      /* arrays: those of the phase; those of the block */
};

static void keep_groups(struct process *p, const struct phase *phase, const struct slice *s)
{
	struct value *g = process_loop(p, phase->contract.groups);
	process_pipeline(p, 1);
	struct value *group = make_take(p, NULL, s->in);
	make_store(p, group, s->groups, g);
	if (s->next)
		make_push(p, NULL, group, s->next);
	process_close(p, 1);
}

static struct value *extended(struct process *p, struct value *word)
{
	int64_t lanes = type_elements(word->type);
	return make_op(p, OP_EXTSI, type_shaped(p->module, TYPE_VECTOR, 1, &lanes, type_integer(p->module, 32)), 1, &word);
}

/* Σ x * w of a group. */
static struct value *products(struct process *p, struct value *x, struct value *w)
{
	struct value *factor[2] = {extended(p, x), extended(p, w)};
	struct value *product = make_op(p, OP_MULI, factor[0]->type, 2, factor);
	struct value *sum = make_op(p, OP_TREE, type_integer(p->module, 32), 1, &product);
	attr_set(p->module, sum->def, "kind", attr_string(p->module, op_info[OP_ADDI].name));
	return make_op(p, OP_SITOFP, type_float(p->module, 32), 1, &sum);
}

static void add_products(struct process *p, const struct phase *phase, const struct slice *s)
{
	const struct type *real = type_float(p->module, 32);
	struct value *counter[3];
	unit_loops(p, phase, counter);
	struct value *group = counter[1], *row = counter[2], *first = make_equal(p, group, 0), *last = make_same(p, group, make_own_index(p, phase->contract.groups - 1));
	struct value *factor[2] = {products(p, make_load(p, s->groups, group), make_take(p, NULL, s->weights)), make_take(p, NULL, s->scale)};
	struct value *term[2] = {make_select(p, first, make_number(p, 0, real), make_load(p, s->sums, row)), make_op(p, OP_MULF, real, 2, factor)};
	struct value *sum = make_op(p, OP_ADDF, real, 2, term);
	make_store(p, sum, s->sums, row);
	make_push(p, last, sum, s->out);
	process_close(p, 3);
}

static void add_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	(void)unit;
	keep_groups(p, phase, context);
	add_products(p, phase, context);
}

void lower_slice(const struct unit *unit, int number, struct value *next)
{
	struct process p = unit_process(unit, text_format(unit->design->module->arena, "slice%d", number));
	struct slice s = {0};
	s.in = process_argument(&p, unit->input[number], "x");
	s.weights = process_argument(&p, unit->weights[number], "w");
	s.scale = process_argument(&p, unit->scale[number], "scale");
	s.next = next ? process_argument(&p, next, "on") : NULL;
	s.out = process_argument(&p, unit->sums[number], "y");
	s.groups = make_array(&p, "groups", unit->groups_most, unit->group, 1);
	s.sums = make_array(&p, "sums", unit->block_most, type_float(p.module, 32), 1);
	unit_each(unit, &p, add_phase, &s);
	process_finish(&p);
}
