/* Sums of tokens abreast, one token after another: beside processes of slices, so that a quarter of the wires cross to the die on which rows are collected.
 * Nothing is asked of a word but of how many tokens it is, so the words of a layer's phases, of all tiles, are one loop. */
#include "engine/unit.h"

struct serial {
	const struct unit *unit;
	int count;                /* sets of slices */
	struct value *in[SETS_MOST], *out[SETS_MOST]; /* channels */
};

static bool alike(const struct phase *left, const struct phase *right)
{
	return !left->there.each == !right->there.each && left->tile == right->tile && left->contract.tokens == right->contract.tokens;
}

/* All are one datapath. */
static void add_words(struct process *p, struct unit_stretch stretch, void *context)
{
	const struct serial *serial = context;
	const struct unit *unit = serial->unit;
	const struct phase *phase = &unit->phases.data[stretch.first];
	int64_t rows = 0;
	for (int i = stretch.first; i < stretch.end; i++)
		rows += unit->phases.data[i].blocks * unit->phases.data[i].block;
	unit_loop(p, stretch.tiles, stretch.there);
	process_mark(p, KEY_STREAM_DATAPATH);
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
	struct serial serial = {.unit = unit};
	for (int i = number; i < unit_sets(unit) && serial.count < unit->together_sets; i++, serial.count++) {
		const char *which = serial.count ? text_format(p.module->arena, "%d", serial.count) : "";
		serial.in[serial.count] = process_argument(&p, unit->sums[i], text_format(p.module->arena, "x%s", which));
		serial.out[serial.count] = process_argument(&p, unit->collected[i], text_format(p.module->arena, "y%s", which));
	}
	for (int first = 0; first < (int)unit->phases.count; first = unit_loop_end(unit, first))
		unit_each_stretch(unit, &p, first, add_words, &serial);
	process_finish(&p);
}

bool unit_serial_alike(const struct unit *unit)
{
	const struct phase *phase = unit->phases.data;
	bool same = true;
	for (int i = 0; i < (int)unit->phases.count; i++)
		same = same && (!phase[i].around || phase[i].there.tiles) && (unit_loop_end(unit, i) == i + 1 || alike(&phase[i], &phase[i + 1]));
	return same;
}
