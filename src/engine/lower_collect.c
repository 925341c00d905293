/* The process behind a unit's slices: it puts the rows of all of them in order, as words of the phases' results. */
#include "engine/unit.h"

struct collect {
	struct value **sums, *kept;       /* channels; array of a tile's words, where a word of the result is narrower than what a set gives, else NULL */
	struct value **out;       /* channels of the phases; at once, where they are collected by one datapath */
	int64_t wide, narrow;     /* lanes of most words then, and of those of the others */
	bool starts;              /* some phase has no first row of some slices */
	bool short_turns;         /* a slice gives fewer rows in the last turn of some phase */
};

/* Where a word of the result stands among those of its row: the turn, the part of it, the word of tokens, the token in it; NULL: the only one. */
struct turn {
	struct value *number, *part, *word, *token;
	int64_t tokens;           /* of a word */
	struct value **there;     /* [rows in turn] is there such a row of each slice?  NULL: there are all */
};

/* A row of the token whose turn it is. */
static struct value *row_of(const struct unit *unit, struct process *p, const struct turn *turn, struct value *word, int64_t slice)
{
	struct value *row = word;
	const int64_t tokens = unit->serial ? 1 : turn->tokens;
	for (int64_t q = 0; unit->products * unit->abreast > 1 && q < tokens; q++) {
		struct value *part[2] = {word, make_index(p, q * unit->products + slice % unit->products)}, *own = make_op(p, OP_SPLIT_LANES, type_float(p->module, 32), 2, part);
		row = q ? make_select(p, make_equal(p, turn->token, q), own, row) : own;
	}
	return row;
}

/* The word of a set, taken for the first of its tokens, or for each. */
static struct value *take_sums(const struct unit *unit, struct process *p, const struct turn *turn, struct value *mine, struct value *sums)
{
	struct value *first = make_and(p, turn->part ? make_equal(p, turn->part, 0) : NULL, turn->token && !unit->serial ? make_equal(p, turn->token, 0) : NULL);
	struct value *word = make_take(p, make_and(p, mine, first), sums);
	attr_set(p->module, word->def, KEY_STREAM_VALUE_NOT_HELD, attr_unit(p->module));
	return word;
}

/* One row: the word of a set is taken in the turn of its first slice, and kept for those of the others. */
static struct value *turn_row(const struct unit *unit, struct process *p, const struct collect *c, const struct turn *turn)
{
	struct value *slice = make_divided(p, OP_REMSI, turn->number, unit->products);
	struct value *place = turn->word ? turn->word : make_index(p, 0), *word = make_load(p, c->kept, place), *row = NULL;
	for (int i = 0; i < unit_sets(unit); i++) {
		struct value *mine = make_equal(p, turn->number, i * unit->products);
		word = make_select(p, mine, take_sums(unit, p, turn, mine, c->sums[i]), word);
	}
	make_store(p, word, c->kept, place);
	for (int s = 0; s < unit->products; s++)
		row = s ? make_select(p, make_equal(p, slice, s), row_of(unit, p, turn, word, s), row) : row_of(unit, p, turn, word, s);
	return row;
}

/* Is it the turn in which a slice gives one of its rows?  NULL: it is always. */
static struct value *turn_of(const struct unit *unit, struct process *p, const struct turn *turn, int64_t slice, int64_t lanes)
{
	int64_t rows = unit_rows_in_turn(unit, lanes);
	struct value *mine = NULL;
	if (rows * unit->slices == lanes)
		return NULL;
	for (int64_t r = 0; r < rows; r++) {
		struct value *own = make_and(p, make_equal(p, turn->number, (r * unit->slices + slice) / lanes), turn->there ? turn->there[r] : NULL);
		mine = mine ? make_op(p, OP_ORI, own->type, 2, (struct value *[2]){mine, own}) : own;
	}
	return mine;
}

/* One word of the result: `lanes` slices in turn.  Each slice gives its row in one of the turns. */
static struct value *turn_word(const struct unit *unit, struct process *p, const struct collect *c, const struct turn *turn, int64_t lanes)
{
	int64_t rows = unit_rows_in_turn(unit, lanes);
	const struct type *real = type_float(p->module, 32), *word = type_shaped(p->module, TYPE_VECTOR, 1, &lanes, real);
	struct value **row = ARENA_ARRAY(p->module->arena, struct value *, lanes), **own = ARENA_ARRAY(p->module->arena, struct value *, unit->slices), *taken = NULL;
	for (int64_t s = 0; s < unit->slices; s++) {
		if (s % unit->products == 0)
			taken = take_sums(unit, p, turn, turn_of(unit, p, turn, s, lanes), c->sums[s / unit->products]);
		own[s] = row_of(unit, p, turn, taken, s);
	}
	for (int64_t n = 0; n < rows * unit->slices; n++)
		row[n % lanes] = n < lanes ? own[n % unit->slices] : make_select(p, make_equal(p, turn->number, n / lanes), own[n % unit->slices], row[n % lanes]);
	return lanes > 1 ? make_op(p, OP_JOIN_LANES, word, (int)lanes, row) : row[0];
}

/* Turns of so many rows each in which a slice gives all of its rows. */
static int64_t turns_of_rows(const struct phase *phase, int64_t each)
{
	return (phase->blocks * phase->block + each - 1) / each;
}

/* Where some phase has fewer rows in its last turn. */
static struct value **rows_there(const struct collect *c, struct process *p, const struct phase *phase, struct value *turn, int64_t each)
{
	const int64_t pitch[1] = {each};
	struct value **there = c->short_turns ? ARENA_ARRAY(p->module->arena, struct value *, each) : NULL, *rows = there ? make_own_index(p, phase->blocks * phase->block) : NULL;
	for (int64_t r = 1; there && r < each; r++)
		there[r] = make_below(p, make_address(p, 1, &turn, pitch, r), rows);
	return there;
}

/* NULL: all words are. */
static struct value *behind_start(struct process *p, const struct phase *phase, struct value *place)
{
	return phase->start ? make_compare(p, 5, place, phase->start) : NULL;
}

/* Each slice gives a row for all tokens of a tile; rows beyond the outputs, and tokens beyond the tile, are dropped. */
static void collect_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct collect *c = context;
	const struct value *result = phase->op->result[0];
	int64_t lanes = stream_lanes(result->type), each = unit_rows_in_turn(unit, lanes), turns = unit->slices * each / lanes, rows = turns_of_rows(phase, each);
	struct value *counter[2] = {process_loop(p, rows), process_loop(p, turns)}, *inside = NULL;
	const int64_t pitch[2] = {unit->slices * each, lanes};
	struct turn turn = {.number = counter[1], .tokens = phase->tile < unit->abreast ? phase->tile : unit->abreast};
	turn.word = phase->words > 1 ? process_loop_to(p, phase->words, phase->words_there) : NULL;
	turn.token = turn.tokens > 1 ? process_loop_to(p, turn.tokens, unit_abreast_there(p, phase, turn.tokens)) : NULL;
	process_pipeline(p, 1);
	turn.there = rows_there(c, p, phase, counter[0], each);
	struct value *word = lanes < unit->products ? turn_row(unit, p, c, &turn) : turn_word(unit, p, c, &turn, lanes);
	if (phase->contract.tokens * rows * turns > itensor_tiles(result->type->itensor))
		inside = make_compare(p, 2, make_address(p, 2, counter, pitch, 0), phase_outputs(unit, phase));
	if (phase->words * turn.tokens > phase->tile || phase->words_there) {
		struct value *token[2] = {turn.word, turn.token};
		const int64_t tokens_each[2] = {turn.tokens, 1};
		struct value *tokens = phase->words_there ? process_count(p, phase->there.each, 1) : make_index(p, phase->tile);
		inside = make_and(p, inside, make_below(p, make_address(p, 2, token, tokens_each, 0), tokens));
	}
	inside = make_and(p, inside, behind_start(p, phase, make_address(p, 2, counter, pitch, 0)));
	make_push(p, inside, word, unit_channel(p, &c->out[phase_number(unit, phase)], phase->op->result[0], "y"));
	process_close(p, 2 + (turn.word != NULL) + (turn.token != NULL));
}

/* May all phases be collected by one datapath?  Its words are as wide as the widest; where a phase has one token, they may fall into parts. */
static bool collects_alike(const struct unit *unit, struct collect *c)
{
	c->wide = unit_widest(unit);
	c->narrow = 0;
	for (int i = 0; i < (int)unit->phases.count; i++) {
		const struct phase *phase = &unit->phases.data[i];
		int64_t lanes = phase_lanes(phase);
		if (lanes == c->wide)
			continue;
		if (phase->contract.tokens > 1 || c->wide % lanes || (c->narrow && c->narrow != lanes))
			return false;
		c->narrow = lanes;
	}
	return c->wide >= unit->products && unit->phases.count > 1;
}

/* All loops have the same channels: a word goes to the phase at hand. */
static void push_to_phase(const struct unit *unit, struct process *p, const struct collect *c, const struct turn *turn, struct value *number, struct value *inside, struct value *word)
{
	const struct type *part = type_float(p->module, 32);
	if (c->narrow > 1)
		part = type_shaped(p->module, TYPE_VECTOR, 1, &c->narrow, part);
	struct value *of[2] = {word, turn->part}, *some = c->narrow ? make_op(p, OP_SPLIT_LANES, part, 2, of) : NULL;
	for (int i = 0; i < (int)unit->phases.count; i++)
		if (!unit->phases.data[i].from)
			make_push(p, make_and(p, inside, make_equal(p, number, i)), phase_lanes(&unit->phases.data[i]) < c->wide ? some : word, c->out[i]);
}

/* The same for phases that share a datapath: loops that only some need are there for all. */
static void collect_alike(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct collect *c = context;
	int64_t rows = unit_rows_in_turn(unit, c->wide), turns = unit->slices * rows / c->wide;
	int loops = 2;
	struct value *number = make_own_index(p, phase_number(unit, phase)), *outputs = make_own_index(p, phase_outputs(unit, phase));
	struct value *tokens = phase->words_there ? process_count(p, phase->there.each, 1) : make_own_index(p, phase->tile);
	struct turn turn = {.tokens = unit->abreast};
	struct value *row = process_loop_of(p, make_own_index(p, turns_of_rows(phase, rows)));
	process_mark(p, KEY_STREAM_DATAPATH);
	turn.number = process_loop(p, turns);
	if (c->narrow && loops++)
		turn.part = process_loop_of(p, make_own_index(p, c->wide / phase_lanes(phase)));
	if (unit->words_most > 1 && loops++)
		turn.word = unit_loop(p, phase->words, phase->words_there);
	if (unit->abreast > 1 && loops++)
		turn.token = unit_loop_tokens(unit, p, phase);
	process_pipeline(p, 1);
	turn.there = rows_there(c, p, phase, row, rows);
	struct value *place[3] = {row, turn.number, turn.part}, *token[2] = {turn.word, turn.token};
	const int64_t pitch[3] = {unit->slices * rows, c->wide, c->narrow}, each[2] = {unit->abreast, 1};
	struct value *number_of = make_address(p, 3, place, pitch, 0), *inside = make_below(p, number_of, outputs);
	if (c->starts)
		inside = make_and(p, inside, make_below(p, make_own_index(p, phase->start - 1), number_of));
	if (unit->abreast > 1)
		inside = make_and(p, inside, make_below(p, make_address(p, 2, token, each, 0), tokens));
	push_to_phase(unit, p, c, &turn, number, inside, turn_word(unit, p, c, &turn, c->wide));
	process_close(p, loops);
}

bool unit_has_narrow_words(const struct unit *unit)
{
	for (int i = 0; i < (int)unit->phases.count; i++)
		if (stream_lanes(unit->phases.data[i].op->result[0]->type) < unit->products)
			return true;
	return false;
}

/* lanes: of all phases' words; 0: each has its own. */
static bool has_short_turns(const struct unit *unit, int64_t lanes)
{
	for (int i = 0; i < (int)unit->phases.count; i++) {
		const struct phase *phase = &unit->phases.data[i];
		if (phase->blocks * phase->block % unit_rows_in_turn(unit, lanes ? lanes : phase_lanes(phase)))
			return true;
	}
	return false;
}

void lower_collect(const struct unit *unit)
{
	struct process p = unit_process(unit, "collect");
	struct collect c = {.sums = ARENA_ARRAY(p.module->arena, struct value *, unit_sets(unit))};
	for (int i = 0; i < unit_sets(unit); i++)
		c.sums[i] = process_argument(&p, unit->collected[i], text_format(p.module->arena, "slice%d", i * unit->products));
	bool alike = collects_alike(unit, &c);
	for (int i = 0; i < (int)unit->phases.count; i++)
		c.starts |= unit->phases.data[i].start > 0;
	c.short_turns = has_short_turns(unit, alike ? c.wide : 0);
	c.out = ARENA_ARRAY(p.module->arena, struct value *, unit->phases.count);
	for (int i = 0; alike && i < (int)unit->phases.count; i++) {
		if (unit->phases.data[i].from)
			continue;
		p.design->layers = unit->phases.data[i].layers;
		c.out[i] = process_argument(&p, stream_fifo(p.design, unit->phases.data[i].op->result[0]), text_format(p.module->arena, "y%d", i));
	}
	p.design->layers = 0;
	c.kept = !alike && unit_has_narrow_words(unit) ? make_array(&p, "kept", unit->words_most, unit->real, 1) : NULL;
	unit_each(unit, &p, alike ? collect_alike : collect_phase, &c);
	process_finish(&p);
}
