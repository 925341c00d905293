/* Sums of tokens abreast, one token after another: beside processes of slices, so that a quarter of the wires cross to the die on which rows are collected.
 * Nothing is asked of a word but of how many tokens it is, so the words of a layer's phases, of all tiles, are one loop. */
#include "pass/unit.h"

struct serial {
	int count;                /* sets of slices */
	struct value *in[SETS_MOST], *out[SETS_MOST]; /* channels */
};

static bool alike(const struct phase *left, const struct phase *right)
{
	return !left->there.each == !right->there.each && left->tile == right->tile && left->contract.tokens == right->contract.tokens;
}

/* Of phases first … end - 1; all are one datapath. */
static void add_words(const struct unit *unit, struct process *p, const struct serial *serial, int first, int end)
{
	const struct phase *phase = &unit->phases.data[first];
	int64_t rows = 0;
	for (int i = first; i < end; i++)
		rows += unit->phases.data[i].blocks * unit->phases.data[i].block;
	unit_loop(p, phase->tiles, phase->there.tiles);
	process_mark(p, NEST_MARK);
	unit_loop(p, rows * phase->words, phase->words_there);
	struct value *token = unit_loop_tokens(unit, p, phase);
	process_pipeline(p, 1);
	for (int i = 0; i < serial->count; i++) {
		struct value *of[2] = {make_take(p, make_equal(p, token, 0), serial->in[i]), token};
		make_push(p, NULL, make_op(p, OP_SPLIT_LANES, serial->out[i]->type->element, 2, of), serial->out[i]);
	}
	process_close(p, 3);
}

void lower_serial(const struct unit *unit, int number)
{
	struct process p = unit_process(unit, "serial");
	struct serial serial = {0};
	for (int i = number; i < unit_sets(unit) && serial.count < unit->together_sets; i++, serial.count++) {
		const char *which = serial.count ? text_format(p.module->arena, "%d", serial.count) : "";
		serial.in[serial.count] = process_argument(&p, unit->sums[i], text_format(p.module->arena, "x%s", which));
		serial.out[serial.count] = process_argument(&p, unit->collected[i], text_format(p.module->arena, "y%s", which));
	}
	for (int first = 0, end; first < (int)unit->phases.count; first = end) {
		end = unit_loop_end(unit, first);
		p.design->layers = unit->phases.data[first].layers;
		process_layers(&p);
		add_words(unit, &p, &serial, first, end);
		process_close(&p, p.design->layers > 0);
		p.design->layers = 0;
		p.layer = NULL;
	}
	process_finish(&p);
}

bool unit_serial_alike(const struct unit *unit)
{
	const struct phase *phase = unit->phases.data;
	bool same = true;
	for (int i = 0; i < (int)unit->phases.count; i++)
		same = same && !phase[i].around && (unit_loop_end(unit, i) == i + 1 || alike(&phase[i], &phase[i + 1]));
	return same;
}
