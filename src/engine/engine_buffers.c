/* Buffers of activations (groups, or their scales) in the processes of the matmul engine: an array
 * for each token of a cycle. With one token a group is popped when its first row is worked on. With
 * several, the next group of all tokens of a tile is popped while PEs work on the current one, a
 * token in the first iteration of each row, so only the first group of a tile is waited for. A job
 * with one block needs each group once and holds two; others hold all groups. */
#include "engine/engine.h"

struct value *engine_stream_group(struct job_nest *nest, const struct group_source *source)
{
	struct process *p = nest->p;
	struct value *buffer = source->buffer[0];
	const int64_t pitch = 1;
	struct value *fresh = make_equal(p, nest->counter[0], 0);
	struct value *first = make_and(p, fresh, make_equal(p, nest->counter[2], 0));
	struct value *word = make_pop(p, first, source->in);
	struct value *place = make_address(p, 1, &nest->counter[1], &pitch, 0);
	struct value *now = make_select(p, fresh, word, make_load(p, buffer, place));
	/* blocks after the first store the value they have read, so that a store depends on the
	 * first block only */
	make_store(p, now, buffer, place);
	nest->popped = word;
	nest->popped_when = first;
	return now;
}

void engine_pass_group(const struct job_nest *nest, const struct group_source *source)
{
	if (source->next)
		make_push(nest->p, nest->popped_when, nest->popped, source->next);
}

/* One word after all slots that nobody reads: a token is stored there in all arrays but its own. */
static int64_t dummy_address(const struct engine *engine)
{
	return engine->group_slots * engine->token_steps_most;
}

struct value **engine_group_buffers(
        const struct engine *engine, struct process *p, const char *name, const struct type *word)
{
	struct value **array =
	        ARENA_ARRAY(p->module->arena, struct value *, engine->tokens_per_cycle);
	int64_t words =
	        dummy_address(engine) + (engine->streams_groups ? 0 : engine->token_steps_most);
	for (int q = 0; q < engine->tokens_per_cycle; q++) {
		array[q] = make_array(p, q ? text_format(p->module->arena, "%s%d", name, q) : name,
		        words, word, 1);
		if (!engine->streams_groups)
			continue;
		attr_set(p->module, array[q]->def, KEY_STREAM_DISTANCE,
		        attr_integer(p->module, engine->distance));
		attr_set(p->module, array[q]->def, KEY_STREAM_LOCAL, attr_unit(p->module));
	}
	return array;
}

/* where the tokens of a group begin */
static struct value *slot_of(
        const struct engine *engine, struct process *p, const struct job *job, struct value *group)
{
	struct value *odd = make_divided(p, OP_REMSI, group, 2);
	struct value *once = make_equal(p, make_unshared_index(p, job->consumer_blocks), 1);
	struct value *slot = make_select(p, once, odd, group);
	struct value *wide = make_address(p, 1, &slot, &engine->token_steps_most, 0);
	return engine->token_steps_most > 1
	        ? make_select(p, make_equal(p, make_unshared_index(p, job->tile), 1), slot, wide)
	        : slot;
}

struct value *engine_group_address(const struct job_nest *nest)
{
	struct value *part[2] = { slot_of(nest->engine, nest->p, nest->job, nest->counter[1]),
		nest->counter[ENGINE_LOOPS - 1] };
	const int64_t pitch[2] = { 1, 1 };
	return make_address(nest->p, 2, part, pitch, 0);
}

/* addresses of the words of a slot that begins at `base`; NULL: the first slot */
static struct value **word_addresses(
        const struct engine *engine, struct process *p, struct value *base)
{
	const int64_t pitch = 1;
	struct value **slot =
	        ARENA_ARRAY(p->module->arena, struct value *, engine->token_steps_most);
	for (int64_t v = 0; v < engine->token_steps_most; v++)
		slot[v] = base ? make_address(p, 1, &base, &pitch, v) : make_index(p, v);
	return slot;
}

/* where array q stores token `number` of a tile: in one of the words of a slot, or where nobody
 * reads */
static struct value *token_address(const struct engine *engine, struct process *p,
        struct value *const *slot, struct value *number, int q)
{
	struct value *place = make_index(p, dummy_address(engine));
	for (int64_t v = engine->token_steps_most - 1; v >= 0; v--)
		place = make_select(
		        p, make_equal(p, number, v * engine->tokens_per_cycle + q), slot[v], place);
	return place;
}

void engine_load_first_group(const struct engine *engine, struct process *p, const struct job *job,
        const struct group_source *source)
{
	if (job->reuses_activations)
		return;
	struct value *number = engine_loop(p, job->tile, job->run_time.each);
	attr_set(p->module, p->block->parent, KEY_STREAM_DATAPATH,
	        attr_integer(p->module, FIRST_GROUP_MARK + source->number));
	process_pipeline(p, 1);
	struct value *word = make_pop(p, NULL, source->in);
	struct value **slot = word_addresses(engine, p, NULL);
	for (int q = 0; q < engine->tokens_per_cycle; q++)
		make_store(p, word, source->buffer[q], token_address(engine, p, slot, number, q));
	if (source->next)
		make_push(p, NULL, word, source->next);
	process_close(p, 1);
}

/* Number of tokens of the tile: one value for all groups of the nest, since nests of a datapath use
 * the same numbers in the same places. */
static struct value *tile_tokens_of(struct job_nest *nest)
{
	const struct job *job = nest->job;
	struct value *token = nest->counter[ENGINE_LOOPS - 1];
	if (nest->tile_tokens)
		return nest->tile_tokens;
	nest->tile_tokens = job->run_time.each ? process_trip_count(nest->p, job->run_time.each, 1)
	                                       : make_unshared_index(nest->p, job->tile);
	/* with one token per cycle, in all jobs the bound of the loop over tokens */
	if (token && nest->engine->tokens_per_cycle == 1)
		nest->tile_tokens = token->block->parent->operand[1];
	return nest->tile_tokens;
}

void engine_prefetch_group(struct job_nest *nest, const struct group_source *source)
{
	const struct engine *engine = nest->engine;
	struct process *p = nest->p;
	const struct job *job = nest->job;
	struct value *const *counter = nest->counter;
	const int64_t one = 1;
	struct value *token = counter[ENGINE_LOOPS - 1];
	struct value *tokens = tile_tokens_of(nest);
	int64_t prefetched = job->reuses_activations ? 0 : job->contract.groups - 1;
	struct value *ahead = make_below(p, counter[1], make_unshared_index(p, prefetched));
	struct value *more = make_and(p, make_equal(p, counter[0], 0), ahead);
	struct value *first = token ? make_equal(p, token, 0) : NULL;
	more = make_and(p, more, make_below(p, counter[2], tokens));
	struct value *when = make_and(p, more, first);
	struct value *word = make_pop(p, when, source->in);
	struct value *base = slot_of(engine, p, job, make_address(p, 1, &counter[1], &one, 1));
	attr_set(p->module, word->def, KEY_STREAM_VALUE_NOT_HELD, attr_unit(p->module));
	struct value **slot = word_addresses(
	        engine, p, make_select(p, when, base, make_index(p, dummy_address(engine))));
	for (int q = 0; q < engine->tokens_per_cycle; q++)
		make_store(
		        p, word, source->buffer[q], token_address(engine, p, slot, counter[2], q));
	nest->popped = word;
	nest->popped_when = when;
}
