/* What a process of a contraction unit keeps of what comes to it, groups of numbers or their
 * scales: an array for each token abreast. With one token a group is taken when it is first
 * worked on.  With several those of a tile come group by group, the next one's while one is
 * worked on, a token in the first turn of a row; so the first group alone is waited for.  A
 * phase that does its rows in one block needs each group once, and keeps two. */
#include "engine/engine.h"

/* fewer, stored and used in one loop, would be registers (bind_storage.c): of eight tokens
 * abreast as many LUTs again as a slice has */
#define LUTRAM_WORDS 17

struct value *engine_stream_group(struct process *p, struct value *const *counter, struct value *in,
        struct value *buffer, struct value *next)
{
	const int64_t pitch = 1;
	struct value *fresh = make_equal(p, counter[0], 0);
	struct value *first = make_and(p, fresh, make_equal(p, counter[2], 0));
	struct value *word = make_pop(p, first, in);
	struct value *place = make_address(p, 1, &counter[1], &pitch, 0);
	struct value *now = make_select(p, fresh, word, make_load(p, buffer, place));
	/* after the first block the same again, so that only what the first one stores has to
	 * have arrived */
	make_store(p, now, buffer, place);
	if (next)
		make_push(p, first, word, next);
	return now;
}

/* Behind the slots one that nobody reads: a token is stored there in all arrays but its own. */
static int64_t dummy_address(const struct engine *engine)
{
	return engine->group_slots * engine->words_most;
}

struct value **engine_group_buffers(
        const struct engine *engine, struct process *p, const char *name, const struct type *word)
{
	struct value **array =
	        ARENA_ARRAY(p->module->arena, struct value *, engine->tokens_per_cycle);
	int64_t words = dummy_address(engine) + (engine->streams_groups ? 0 : engine->words_most);
	words = engine->tokens_per_cycle > 1 && words < LUTRAM_WORDS ? LUTRAM_WORDS : words;
	for (int q = 0; q < engine->tokens_per_cycle; q++) {
		array[q] = make_array(p, q ? text_format(p->module->arena, "%s%d", name, q) : name,
		        words, word, 1);
		if (engine->streams_groups)
			attr_set(p->module, array[q]->def, KEY_STREAM_DISTANCE,
			        attr_integer(p->module, engine->distance));
	}
	return array;
}

/* Where the tokens of a group are. */
static struct value *slot_of(
        const struct engine *engine, struct process *p, const struct job *job, struct value *group)
{
	struct value *odd = make_divided(p, OP_REMSI, group, 2);
	struct value *once = make_equal(p, make_unshared_index(p, job->consumer_blocks), 1);
	struct value *slot = make_select(p, once, odd, group);
	struct value *wide = make_address(p, 1, &slot, &engine->words_most, 0);
	return engine->words_most > 1
	        ? make_select(p, make_equal(p, make_unshared_index(p, job->tile), 1), slot, wide)
	        : slot;
}

struct value *engine_group_address(const struct engine *engine, struct process *p,
        const struct job *job, struct value *const *counter)
{
	struct value *part[2] = { slot_of(engine, p, job, counter[1]), counter[ENGINE_LOOPS - 1] };
	const int64_t pitch[2] = { 1, 1 };
	return make_address(p, 2, part, pitch, 0);
}

/* Token `number` of a tile, in the slot that begins at `base`; NULL: the first. */
static void store_token(const struct engine *engine, struct process *p, struct value *word,
        struct value *const *buffer, struct value *number, struct value *base)
{
	const int64_t pitch = 1;
	struct value **slot = ARENA_ARRAY(p->module->arena, struct value *, engine->words_most);
	for (int64_t v = 0; v < engine->words_most; v++)
		slot[v] = base ? make_address(p, 1, &base, &pitch, v) : make_index(p, v);
	for (int q = 0; q < engine->tokens_per_cycle; q++) {
		struct value *place = make_index(p, dummy_address(engine));
		for (int64_t v = engine->words_most - 1; v >= 0; v--)
			place = make_select(p,
			        make_equal(p, number, v * engine->tokens_per_cycle + q), slot[v],
			        place);
		make_store(p, word, buffer[q], place);
	}
}

void engine_load_first_group(const struct engine *engine, struct process *p, const struct job *job,
        struct value *in, struct value *const *buffer, struct value *next)
{
	if (job->reuses_activations)
		return;
	struct value *number = engine_loop(p, job->tile, job->run_time.each);
	attr_set(p->module, p->block->parent, KEY_STREAM_DATAPATH,
	        attr_integer(p->module, FIRST_GROUP_MARK));
	process_pipeline(p, 1);
	struct value *word = make_pop(p, NULL, in);
	store_token(engine, p, word, buffer, number, NULL);
	if (next)
		make_push(p, NULL, word, next);
	process_close(p, 1);
}

void engine_prefetch_group(const struct engine *engine, struct process *p, const struct job *job,
        struct value *const *counter, struct value *in, struct value *const *buffer,
        struct value *next)
{
	const int64_t one = 1;
	struct value *token = counter[ENGINE_LOOPS - 1];
	struct value *tokens = job->run_time.each ? process_trip_count(p, job->run_time.each, 1)
	                                          : make_unshared_index(p, job->tile);
	/* in all phases the number that the loop over tokens ends at */
	if (token && engine->tokens_per_cycle == 1)
		tokens = token->block->parent->operand[1];
	struct value *more = make_and(p, make_equal(p, counter[0], 0),
	        make_below(p, counter[1],
	                make_unshared_index(
	                        p, job->reuses_activations ? 0 : job->contract.groups - 1)));
	struct value *when = make_and(p, make_and(p, more, make_below(p, counter[2], tokens)),
	        token ? make_equal(p, token, 0) : NULL);
	struct value *word = make_pop(p, when, in);
	struct value *base = slot_of(engine, p, job, make_address(p, 1, &counter[1], &one, 1));
	attr_set(p->module, word->def, KEY_STREAM_VALUE_NOT_HELD, attr_unit(p->module));
	store_token(engine, p, word, buffer, counter[2],
	        make_select(p, when, base, make_index(p, dummy_address(engine))));
	if (next)
		make_push(p, when, word, next);
}
