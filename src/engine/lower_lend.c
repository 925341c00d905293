/* Tokens in pairs as the multipliers of slices want them: of each group the second of a pair, less one where the first is negative (ir/dot.h).  Done once, in front of all slices. */
#include "engine/unit.h"

#define PREDICATE_LESS 2      /* of arith.cmpi: signed */

struct lend {
	struct value *in, *before, **out;         /* channel; array of a word: the token before; channels */
	int chains;
};

static struct value *lent(const struct unit *unit, struct process *p, struct value *before, struct value *token, struct value *word)
{
	const struct type *bits = type_shaped(p->module, TYPE_VECTOR, 1, &unit->phases.data[0].contract.size, type_integer(p->module, 1));
	struct value *only = make_index(p, 0), *second = make_equal(p, make_divided(p, OP_REMSI, token, 2), 1);
	struct value *sign[2] = {make_load(p, before, only), make_number(p, 0, unit->group)}, *negative = make_op(p, OP_CMPI, bits, 2, sign);
	attr_set(p->module, negative->def, KEY_PREDICATE, attr_integer(p->module, PREDICATE_LESS));
	struct value *less[2] = {word, make_op(p, OP_EXTUI, unit->group, 1, &negative)};
	make_store(p, word, before, only);
	return make_select(p, second, make_op(p, OP_SUBI, unit->group, 2, less), word);
}

static void lend_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct lend *lend = context;
	if (phase->kept)
		return;
	process_loop_of(p, make_own_index(p, phase->contract.groups));
	process_mark(p, KEY_STREAM_DATAPATH);
	struct value *token = unit_loop(p, phase->tile, phase->there.each);
	process_pipeline(p, 1);
	struct value *word = lent(unit, p, lend->before, token, make_take(p, NULL, lend->in));
	for (int i = 0; i < lend->chains; i++)
		make_push(p, NULL, word, lend->out[i]);
	process_close(p, 2);
}

void lower_lend(const struct unit *unit, struct value *in, int chains, struct value *const *chain)
{
	struct process p = unit_process(unit, "lend");
	struct lend lend = {.in = process_argument(&p, in, "x"), .out = ARENA_ARRAY(p.module->arena, struct value *, chains + 1), .chains = chains};
	for (int i = 0; i < chains; i++)
		lend.out[i] = process_argument(&p, chain[i], text_format(p.module->arena, "chain%d", i));
	lend.before = make_array(&p, "before", 1, unit->group, 1);
	unit_each(unit, &p, lend_phase, &lend);
	process_finish(&p);
}
