/* What a process of a contraction unit keeps of what comes to it, groups of numbers or their scales: an array for each token abreast.
 * With one token a group is taken when it is first worked on.  With several those of a tile come group by group, the next one's while one is worked on, a token in the first turn of a row;
 * so the first group alone is waited for.  A phase that does its rows in one block needs each group once, and keeps two. */
#include "engine/unit.h"

#define LUTRAM_WORDS 17       /* fewer, stored and used in one loop, would be registers (allocate_memory.c): of eight tokens abreast as many LUTs again as a slice has */

struct value *unit_stream(struct process *p, struct value *const *counter, struct value *in, struct value *kept, struct value *next)
{
	const int64_t pitch = 1;
	struct value *fresh = make_equal(p, counter[0], 0), *first = make_and(p, fresh, make_equal(p, counter[2], 0));
	struct value *word = make_take(p, first, in), *place = make_address(p, 1, &counter[1], &pitch, 0);
	struct value *now = make_select(p, fresh, word, make_load(p, kept, place));
	make_store(p, now, kept, place);          /* after the first block the same again, so that only what the first one stores has to have arrived */
	if (next)
		make_push(p, first, word, next);
	return now;
}

/* Behind the slots one that nobody reads: a token is stored there in all arrays but its own. */
static int64_t no_place(const struct unit *unit)
{
	return unit->slots * unit->words_most;
}

struct value **unit_arrays(const struct unit *unit, struct process *p, const char *name, const struct type *word)
{
	struct value **array = ARENA_ARRAY(p->module->arena, struct value *, unit->abreast);
	int64_t words = no_place(unit) + (unit->streams ? 0 : unit->words_most);
	words = unit->abreast > 1 && words < LUTRAM_WORDS ? LUTRAM_WORDS : words;
	for (int q = 0; q < unit->abreast; q++) {
		array[q] = make_array(p, q ? text_format(p->module->arena, "%s%d", name, q) : name, words, word, 1);
		if (unit->streams)
			attr_set(p->module, array[q]->def, KEY_STREAM_DISTANCE, attr_integer(p->module, unit->distance));
	}
	return array;
}

/* Where the tokens of a group are. */
static struct value *slot_of(const struct unit *unit, struct process *p, const struct phase *phase, struct value *group)
{
	struct value *odd = make_divided(p, OP_REMSI, group, 2), *once = make_equal(p, make_own_index(p, phase->takers), 1);
	struct value *slot = make_select(p, once, odd, group), *wide = make_address(p, 1, &slot, &unit->words_most, 0);
	return unit->words_most > 1 ? make_select(p, make_equal(p, make_own_index(p, phase->tile), 1), slot, wide) : slot;
}

struct value *unit_group_place(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter)
{
	struct value *part[2] = {slot_of(unit, p, phase, counter[1]), counter[UNIT_LOOPS - 1]};
	const int64_t pitch[2] = {1, 1};
	return make_address(p, 2, part, pitch, 0);
}

/* Token `number` of a tile, in the slot that begins at `base`; NULL: the first. */
static void keep_token(const struct unit *unit, struct process *p, struct value *word, struct value *const *kept, struct value *number, struct value *base)
{
	const int64_t pitch = 1;
	struct value **slot = ARENA_ARRAY(p->module->arena, struct value *, unit->words_most);
	for (int64_t v = 0; v < unit->words_most; v++)
		slot[v] = base ? make_address(p, 1, &base, &pitch, v) : make_index(p, v);
	for (int q = 0; q < unit->abreast; q++) {
		struct value *place = make_index(p, no_place(unit));
		for (int64_t v = unit->words_most - 1; v >= 0; v--)
			place = make_select(p, make_equal(p, number, v * unit->abreast + q), slot[v], place);
		make_store(p, word, kept[q], place);
	}
}

void unit_begin(const struct unit *unit, struct process *p, const struct phase *phase, struct value *in, struct value *const *kept, struct value *next)
{
	if (phase->kept)
		return;
	struct value *number = unit_loop(p, phase->tile, phase->there.each);
	attr_set(p->module, p->block->parent, KEY_STREAM_DATAPATH, attr_integer(p->module, UNIT_BEGIN));
	process_pipeline(p, 1);
	struct value *word = make_take(p, NULL, in);
	keep_token(unit, p, word, kept, number, NULL);
	if (next)
		make_push(p, NULL, word, next);
	process_close(p, 1);
}

void unit_ahead(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, struct value *in, struct value *const *kept, struct value *next)
{
	const int64_t one = 1;
	struct value *token = counter[UNIT_LOOPS - 1], *tokens = phase->there.each ? process_count(p, phase->there.each, 1) : make_own_index(p, phase->tile);
	if (token && unit->abreast == 1)          /* in all phases the number that the loop over tokens ends at */
		tokens = token->block->parent->operand[1];
	struct value *more = make_and(p, make_equal(p, counter[0], 0), make_below(p, counter[1], make_own_index(p, phase->kept ? 0 : phase->contract.groups - 1)));
	struct value *when = make_and(p, make_and(p, more, make_below(p, counter[2], tokens)), token ? make_equal(p, token, 0) : NULL);
	struct value *word = make_take(p, when, in), *base = slot_of(unit, p, phase, make_address(p, 1, &counter[1], &one, 1));
	attr_set(p->module, word->def, KEY_STREAM_VALUE_NOT_HELD, attr_unit(p->module));
	keep_token(unit, p, word, kept, counter[2], make_select(p, when, base, make_index(p, no_place(unit))));
	if (next)
		make_push(p, when, word, next);
}
