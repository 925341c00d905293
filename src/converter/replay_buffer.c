/* Recognizes, marks and lowers converters that only replay words (replay_buffer.h). */
#include "ir/converter.h"
#include "converter/replay_buffer.h"
#include "itensor/walk.h"

#define DISTANCE 2 /* iterations until a stored word can be loaded */

static bool is_replay_loop(const struct walk *walk, int loop)
{
	for (int r = 0; r < walk->rank; r++)
		if (walk->vector[loop * walk->rank + r])
			return false;
	return true;
}

/* the same walk without the loops that replay, from loop `first` on */
static struct walk walk_without_replay(struct arena *arena, const struct walk *walk, int first)
{
	struct walk to = walk_new(arena, *walk, walk->loops);
	for (int l = 0; l < walk->loops; l++)
		if (l < first || !is_replay_loop(walk, l))
			walk_push(&to, walk->trip[l], walk_run_time(*walk, l),
			        walk->vector + l * walk->rank, 1);
	return walk_normal(arena, to);
}

/* Measures the buffer: words inside the outermost replay loop from loop `first` on are held, so
 * their number must not depend on the launch. false: no replay buffer. */
static bool measure_replay(struct replay_buffer *replay_buffer, int first)
{
	const struct walk *walk = &replay_buffer->walk;
	replay_buffer->words = replay_buffer->distance = 1;
	replay_buffer->replay_loop = -1;
	for (int l = first; l < walk->loops; l++) {
		bool repeats = is_replay_loop(walk, l);
		replay_buffer->replay_loop =
		        replay_buffer->replay_loop < 0 && repeats ? l : replay_buffer->replay_loop;
		replay_buffer->distance = repeats ? 1 : replay_buffer->distance * walk->trip[l];
		if (replay_buffer->replay_loop < 0 || repeats)
			continue;
		replay_buffer->words *= walk->trip[l];
		if (walk_run_time(*walk, l))
			return false;
	}
	return replay_buffer->replay_loop >= 0 && replay_buffer->distance >= DISTANCE;
}

bool replay_buffer_of(
        struct arena *arena, const struct op *convert, struct replay_buffer *replay_buffer)
{
	if (!converter_is_reorder(convert))
		return false;
	struct walk from = walk_normal(arena, itensor_walk(arena, convert->operand[0]->type));
	replay_buffer->walk = walk_normal(arena, itensor_walk(arena, convert->result[0]->type));
	if (from.rank != replay_buffer->walk.rank)
		return false;
	/* loops that replay on both sides hold nothing: as many as there are */
	int first = replay_buffer->walk.loops;
	while (first >= 0 &&
	        !walk_same(from, walk_without_replay(arena, &replay_buffer->walk, first)))
		first--;
	return first >= 0 && measure_replay(replay_buffer, first);
}

void mark_replay_buffers(struct module *module, struct block *block, bool all)
{
	struct replay_buffer replay_buffer;
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			mark_replay_buffers(module, op->region[0], all);
		if (op->code == OP_CONVERT && (all || attr_get(op, KEY_HELD)) &&
		        replay_buffer_of(module->arena, op, &replay_buffer))
			attr_set(module, op, KEY_REPLAY, attr_unit(module));
	}
}

void lower_replay_buffer(
        struct design *design, const struct op *convert, const struct replay_buffer *replay_buffer)
{
	const struct walk *walk = &replay_buffer->walk;
	struct process p = process_new(design, "replay");
	struct arena *arena = p.module->arena;
	struct value *in = process_argument(&p, stream_fifo(design, convert->operand[0]), "x");
	struct value *out = process_argument(&p, stream_fifo(design, convert->result[0]), "y");
	struct value **counter = ARENA_ARRAY(arena, struct value *, walk->loops + 1);
	struct value *first = NULL;
	struct value *array = make_array(&p, "local_buffer", replay_buffer->words,
	        stream_word(p.module, convert->result[0]->type), 1);
	int64_t *stride = ARENA_ARRAY(arena, int64_t, walk->loops + 1);
	int64_t pitch = 1;
	attr_set(p.module, array->def, KEY_STREAM_DISTANCE,
	        attr_integer(p.module, replay_buffer->distance));
	process_layers(&p);
	int opened = process_nest_run_time(
	        &p, (struct loop_bounds){ walk->loops, walk->trip, walk->run_time }, 1, counter);
	for (int l = walk->loops - 1; l >= replay_buffer->replay_loop; l--) {
		bool repeats = is_replay_loop(walk, l);
		stride[l] = repeats ? 0 : pitch;
		pitch *= repeats ? 1 : walk->trip[l];
		first = repeats && counter[l] ? make_and(&p, first, make_equal(&p, counter[l], 0))
		                              : first;
	}
	struct value *word = make_pop(&p, first, in);
	struct value *place = make_address(&p, walk->loops, counter, stride, 0);
	struct value *now = make_select(&p, first, word, make_load(&p, array, place));
	/* replays store the word that they loaded, so a store depends on the pop only */
	make_store(&p, now, array, place);
	make_push(&p, NULL, now, out);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}
