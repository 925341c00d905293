#include "converter/served.h"
#include "converter/kept.h"

/* The outermost loop of several points is a reduction, so no result is done before all are. */
bool kernel_holds_result(const struct op *op)
{
	const struct kernel *kernel = op->code == OP_KERNEL ? op->kernel : NULL;
	int outermost = kernel ? kernel_outer_reduction(kernel) : -1;
	if (outermost < 0 || kernel->scan || kernel->partial > 1 || kernel->rows > 1 || (kernel->lanes > 1 && kernel->loop[kernel->loops - 1].reduction))
		return false;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].run_time || (l < outermost && kernel->loop[l].extent > 1))
			return false;
	return true;
}

/* Do all readers want the elements in the writer's order, in its words or parts of them? */
static bool keep_order(struct arena *arena, const struct type *tensor, const struct type *from, int readers, const struct type *const *type)
{
	struct sequence own = sequence_flat(arena, sequence_of_type(arena, tensor, from));
	bool same = true;
	for (int r = 0; r < readers; r++)
		same = same && stream_lanes(from) % stream_lanes(type[r]) == 0 && sequence_same(own, sequence_flat(arena, sequence_of_type(arena, tensor, type[r])));
	return same;
}

/* Does each word of this side lie side by side in the box? */
static bool is_side_by_side(const struct box_side *side)
{
	bool beside = side->first % side->lanes == 0;
	for (int64_t l = 0; l < side->lanes; l++)
		beside = beside && side->lane[l] == l;
	for (int l = 0; l < side->loops; l++)
		beside = beside && side->step[l] % side->lanes == 0 && !side->run_time[l];
	return beside;
}

/* A loop whose steps are less than a word goes over parts of words, then over words. */
static bool falls_apart(int64_t trip, int64_t step, int64_t word)
{
	return step % word == 0 || (word % step == 0 && (word % (step * trip) == 0 || step * trip % word == 0));
}

static bool takes_parts(const struct box_side *drain, int64_t word)
{
	bool parts = word % drain->lanes == 0 && is_side_by_side(drain);
	for (int l = 0; l < drain->loops; l++)
		parts = parts && falls_apart(drain->trip[l], drain->step[l], word);
	return parts;
}

static bool same_strides(const int64_t *left, const int64_t *right, int loops)
{
	bool same = true;
	for (int l = 0; l < loops; l++)
		same = same && left[l] == right[l];
	return same;
}

/* All readers find the sums at the same places of the box. */
static bool find_boxes(struct arena *arena, const struct op *writer, const struct type *tensor, int readers, const struct type *const *type, struct served *served)
{
	const struct type *from = writer->result[0]->type;
	int loops = writer->kernel->loops;
	served->box = ARENA_ARRAY(arena, struct box, readers + 1);
	for (int r = 0; r < readers; r++) {
		struct box *box = &served->box[r];
		int64_t *stride = ARENA_ARRAY(arena, int64_t, loops + 1);
		*box = box_between(arena, tensor, from, type[r], 0);
		if (box->why || box->elements != itensor_tiles(from->itensor) * stream_lanes(from) || !is_side_by_side(&box->fill) || !takes_parts(&box->drain, stream_lanes(from)) ||
		    !kernel_strides(writer->kernel, &writer->kernel->result, &box->fill, stride))
			return false;
		if (r && (box->fill.first != served->box[0].fill.first || !same_strides(stride, served->stride, loops)))
			return false;
		served->stride = stride;
	}
	return true;
}

bool find_served(struct arena *arena, const struct op *writer, const struct type *tensor, int readers, const struct type *const *type, struct served *served)
{
	if (!writer || !kernel_holds_result(writer))
		return false;
	served->type = type;
	served->lanes = stream_lanes(writer->result[0]->type);
	served->words = itensor_tiles(writer->result[0]->type->itensor);
	return keep_order(arena, tensor, writer->result[0]->type, readers, type) || find_boxes(arena, writer, tensor, readers, type, served);
}

bool can_be_served(struct arena *arena, const struct op *writer, const struct type *tensor, int readers, const struct type *const *type)
{
	struct served served = {0};
	return find_served(arena, writer, tensor, readers, type, &served);
}

static struct served served_from(struct arena *arena, const struct op *buffer)
{
	struct served served = {.buffer = buffer};
	const struct type **type = ARENA_ARRAY(arena, const struct type *, buffer->results + 1);
	for (int r = 0; r < buffer->results; r++)
		type[r] = buffer->result[r]->type;
	bool good = !attr_integer_or(buffer, KEY_SHARED_LOOPS, 0) && find_served(arena, buffer->operand[0]->def, attr_get(buffer, KEY_TENSOR)->type, buffer->results, type, &served);
	return good ? served : (struct served){0};
}

bool served_by_writer(struct arena *arena, const struct op *buffer)
{
	return served_from(arena, buffer).buffer;
}

struct served served_of(struct arena *arena, const struct op *kernel)
{
	for (const struct op *next = kernel->next; next; next = next->next)
		if (next->code == OP_BUFFER && next->operand[0] == kernel->result[0])
			return served_from(arena, next);
	return (struct served){0};
}

/* The loops of a reader around words, those over parts of a word as loops of their own. */
struct parts {
	int loops;
	int64_t *trip, *word, *part;      /* words and parts of a word from one turn to the next */
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
	struct parts parts = {.first_word = side->first / lanes, .first_part = side->first % lanes / side->lanes};
	size_t most = 2 * (size_t)side->loops + 1;
	parts.trip = ARENA_ARRAY(arena, int64_t, most);
	parts.word = ARENA_ARRAY(arena, int64_t, most);
	parts.part = ARENA_ARRAY(arena, int64_t, most);
	for (int l = 0; l < side->loops; l++) {
		int64_t trip = side->trip[l], step = side->step[l], inside = step && step < lanes ? lanes / step : 1;
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
	struct parts parts = {.trip = ARENA_ARRAY(arena, int64_t, 2), .word = ARENA_ARRAY(arena, int64_t, 2), .part = ARENA_ARRAY(arena, int64_t, 2)};
	add_loop(&parts, words, 1, 0);
	add_loop(&parts, count, 0, 1);
	return parts;
}

static struct parts parts_for(struct arena *arena, const struct served *served, int reader)
{
	return served->stride ? parts_of(arena, &served->box[reader].drain, served->lanes) : in_order(arena, served->words, served->lanes / stream_lanes(served->type[reader]));
}

int served_words(struct process *p, const struct served *served, int reader, struct value **address)
{
	struct parts parts = parts_for(p->module->arena, served, reader);
	struct value **counter = ARENA_ARRAY(p->module->arena, struct value *, parts.loops + 1);
	int opened = process_nest(p, parts.loops, parts.trip, 1, counter);
	*address = make_address(p, parts.loops, counter, parts.word, parts.first_word);
	return opened;
}

/* Result `first` and those after it in the same phase; returns the next one. */
static int serve(struct process *p, const struct served *served, struct value *array, int first)
{
	struct arena *arena = p->module->arena;
	const struct op *buffer = served->buffer;
	const struct attr *phase = attr_get(buffer, KEY_SERVICE_ROUNDS);
	struct parts parts = parts_for(arena, served, first);
	struct value **counter = ARENA_ARRAY(arena, struct value *, parts.loops + 1);
	int opened = process_nest(p, parts.loops, parts.trip, 1, counter), r = first;
	struct value *word = make_load(p, array, make_address(p, parts.loops, counter, parts.word, parts.first_word));
	if (stream_lanes(served->type[first]) < served->lanes)
		word = make_op(p, OP_SPLIT_LANES, stream_word(p->module, served->type[first]), 2, (struct value *[]){word, make_address(p, parts.loops, counter, parts.part, parts.first_part)});
	for (; r < buffer->results && phase->integers[r] == phase->integers[first]; r++)
		make_push(p, NULL, word, process_argument(p, stream_fifo(p->design, buffer->result[r]), text_format(p->module->arena, "y%d", r)));
	process_close(p, opened);
	return r;
}

void serve_results(struct process *p, const struct served *served, struct value *array)
{
	for (int r = 0; r < served->buffer->results;)
		r = serve(p, served, array, r);
}
