/* Matches and emits drains of accumulators to the readers of a buffer (accumulator_drain.h). */
#include "converter/accumulator_drain.h"
#include "converter/consumer_buffer.h"

/* Does the kernel hold a sum for each word of its result until the last term? So it does if its
 * outermost loop of several iterations is a reduction. */
bool kernel_holds_result(const struct op *op)
{
	const struct kernel *kernel = op->code == OP_KERNEL ? op->kernel : NULL;
	int outermost = kernel ? kernel_outer_reduction(kernel) : -1;
	if (outermost < 0 || kernel->scan || kernel->partial_sums > 1 || kernel->row_unroll > 1 ||
	        (kernel->lanes > 1 && kernel->loop[kernel->loops - 1].reduction))
		return false;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].run_time || (l < outermost && kernel->loop[l].extent > 1))
			return false;
	return true;
}

/* Do all readers want the elements in the writer's order, in its words or parts of them? */
static bool keeps_order(struct arena *arena, const struct type *tensor, const struct type *from,
        int readers, const struct type *const *type)
{
	struct sequence own = sequence_flat(arena, sequence_of_type(arena, tensor, from));
	bool same = true;
	for (int r = 0; r < readers; r++)
		same = same && stream_lanes(from) % stream_lanes(type[r]) == 0 &&
		        sequence_same(own,
		                sequence_flat(arena, sequence_of_type(arena, tensor, type[r])));
	return same;
}

/* Are the elements of each word of this side consecutive in the box, aligned to words? */
static bool has_dense_words(const struct box_side *side)
{
	bool dense = side->first % side->lanes == 0;
	for (int64_t l = 0; l < side->lanes; l++)
		dense = dense && side->lane[l] == l;
	for (int l = 0; l < side->loops; l++)
		dense = dense && side->step[l] % side->lanes == 0 && !side->run_time[l];
	return dense;
}

/* Is the loop one over words, one over parts of a word, or the product of both? */
static bool splits_words(int64_t trip, int64_t step, int64_t word)
{
	return step % word == 0 ||
	        (word % step == 0 && (word % (step * trip) == 0 || step * trip % word == 0));
}

static bool takes_parts(const struct box_side *side, int64_t word)
{
	bool parts = word % side->lanes == 0 && has_dense_words(side);
	for (int l = 0; l < side->loops; l++)
		parts = parts && splits_words(side->trip[l], side->step[l], word);
	return parts;
}

static bool same_strides(const int64_t *left, const int64_t *right, int loops)
{
	bool same = true;
	for (int l = 0; l < loops; l++)
		same = same && left[l] == right[l];
	return same;
}

/* Finds a box for each reader; all of them have the sums at the same positions. */
static bool match_boxes(struct arena *arena, const struct op *writer, const struct type *tensor,
        struct accumulator_drain *drain)
{
	const struct type *from = writer->result[0]->type;
	int loops = writer->kernel->loops;
	int readers = drain->readers;
	drain->box = ARENA_ARRAY(arena, struct box, readers + 1);
	for (int r = 0; r < readers; r++) {
		struct box *box = &drain->box[r];
		int64_t *stride = ARENA_ARRAY(arena, int64_t, loops + 1);
		*box = box_between(arena, tensor, from, drain->type[r], 0);
		if (box->why ||
		        box->elements != itensor_tiles(from->itensor) * stream_lanes(from) ||
		        !has_dense_words(&box->fill) ||
		        !takes_parts(&box->drain, stream_lanes(from)) ||
		        !kernel_strides(
		                writer->kernel, &writer->kernel->result, &box->fill, stride))
			return false;
		if (r &&
		        (box->fill.first != drain->box[0].fill.first ||
		                !same_strides(stride, drain->stride, loops)))
			return false;
		drain->stride = stride;
	}
	return true;
}

bool match_accumulator_drain(struct arena *arena, const struct op *writer,
        const struct type *tensor, struct accumulator_drain *drain)
{
	if (!writer || !kernel_holds_result(writer))
		return false;
	const struct type *from = writer->result[0]->type;
	drain->lanes = stream_lanes(from);
	drain->words = itensor_tiles(from->itensor);
	return keeps_order(arena, tensor, from, drain->readers, drain->type) ||
	        match_boxes(arena, writer, tensor, drain);
}

bool can_drain_accumulators(struct arena *arena, const struct op *writer, const struct type *tensor,
        int readers, const struct type *const *type)
{
	struct accumulator_drain drain = { .readers = readers, .type = type };
	return match_accumulator_drain(arena, writer, tensor, &drain);
}

static struct accumulator_drain drain_from_buffer(struct arena *arena, const struct op *buffer)
{
	const struct type **type = ARENA_ARRAY(arena, const struct type *, buffer->results + 1);
	for (int r = 0; r < buffer->results; r++)
		type[r] = buffer->result[r]->type;
	struct accumulator_drain drain = {
		.buffer = buffer, .readers = buffer->results, .type = type
	};
	bool good = !attr_integer_or(buffer, KEY_SHARED_LOOPS, 0) &&
	        match_accumulator_drain(
	                arena, buffer->operand[0]->def, attr_get(buffer, KEY_TENSOR)->type, &drain);
	return good ? drain : (struct accumulator_drain){ 0 };
}

bool is_drained_by_writer(struct arena *arena, const struct op *buffer)
{
	return drain_from_buffer(arena, buffer).buffer;
}

struct accumulator_drain accumulator_drain_of(struct arena *arena, const struct op *kernel)
{
	for (const struct op *next = kernel->next; next; next = next->next)
		if (next->code == OP_BUFFER && next->operand[0] == kernel->result[0] &&
		        attr_get(next, KEY_IN_PRODUCER))
			return drain_from_buffer(arena, next);
	return (struct accumulator_drain){ 0 };
}

/* The loops of a reader around words; those over parts of a word are loops of their own. */
struct parts {
	int loops;
	/* words, and parts of a word, from one iteration to the next */
	int64_t *trip, *word, *part;
	int64_t first_word, first_part;
};

static void add_loop(struct parts *parts, int64_t trip, int64_t word, int64_t part)
{
	int l = parts->loops++;
	parts->trip[l] = trip;
	parts->word[l] = word;
	parts->part[l] = part;
}

static struct parts parts_of(struct arena *arena, const struct box_side *side, int64_t lanes)
{
	struct parts parts = { .first_word = side->first / lanes,
		.first_part = side->first % lanes / side->lanes };
	size_t most = 2 * (size_t)side->loops + 1;
	parts.trip = ARENA_ARRAY(arena, int64_t, most);
	parts.word = ARENA_ARRAY(arena, int64_t, most);
	parts.part = ARENA_ARRAY(arena, int64_t, most);
	for (int l = 0; l < side->loops; l++) {
		int64_t trip = side->trip[l];
		int64_t step = side->step[l];
		int64_t inside = step && step < lanes ? lanes / step : 1;
		if (step % lanes == 0) {
			add_loop(&parts, trip, step / lanes, 0);
			continue;
		}
		inside = inside < trip ? inside : trip;
		add_loop(&parts, trip / inside, 1, 0);
		add_loop(&parts, inside, 0, step / side->lanes);
	}
	return parts;
}

static struct parts in_order(struct arena *arena, int64_t words, int64_t count)
{
	struct parts parts = { .trip = ARENA_ARRAY(arena, int64_t, 2),
		.word = ARENA_ARRAY(arena, int64_t, 2),
		.part = ARENA_ARRAY(arena, int64_t, 2) };
	add_loop(&parts, words, 1, 0);
	add_loop(&parts, count, 0, 1);
	return parts;
}

static struct parts parts_for(
        struct arena *arena, const struct accumulator_drain *drain, int reader)
{
	return drain->stride
	        ? parts_of(arena, &drain->box[reader].drain, drain->lanes)
	        : in_order(arena, drain->words, drain->lanes / stream_lanes(drain->type[reader]));
}

int drain_word_nest(struct process *p, const struct accumulator_drain *drain, int reader,
        struct value **address)
{
	struct parts parts = parts_for(p->module->arena, drain, reader);
	struct value **counter = ARENA_ARRAY(p->module->arena, struct value *, parts.loops + 1);
	int opened = process_nest(p, parts.loops, parts.trip, 1, counter);
	*address = make_address(p, parts.loops, counter, parts.word, parts.first_word);
	return opened;
}

/* Pushes result `first` and those after it of the same service round; returns the next one. */
static int drain_reader(
        struct process *p, const struct accumulator_drain *drain, struct value *array, int first)
{
	struct arena *arena = p->module->arena;
	const struct op *buffer = drain->buffer;
	const struct attr *service_round = attr_get(buffer, KEY_SERVICE_ROUNDS);
	struct parts parts = parts_for(arena, drain, first);
	struct value **counter = ARENA_ARRAY(arena, struct value *, parts.loops + 1);
	int opened = process_nest(p, parts.loops, parts.trip, 1, counter);
	int r = first;
	struct value *word = make_load(
	        p, array, make_address(p, parts.loops, counter, parts.word, parts.first_word));
	if (stream_lanes(drain->type[first]) < drain->lanes)
		word = make_op(p, OP_SPLIT_LANES, stream_word(p->module, drain->type[first]), 2,
		        (struct value *[]){ word,
		                make_address(
		                        p, parts.loops, counter, parts.part, parts.first_part) });
	for (; r < buffer->results && service_round->integers[r] == service_round->integers[first];
	        r++)
		make_push(p, NULL, word,
		        process_argument(p, stream_fifo(p->design, buffer->result[r]),
		                text_format(p->module->arena, "y%d", r)));
	process_close(p, opened);
	return r;
}

void emit_accumulator_drain(
        struct process *p, const struct accumulator_drain *drain, struct value *array)
{
	for (int r = 0; r < drain->buffer->results;)
		r = drain_reader(p, drain, array, r);
}
