/* Several readers of one stream at different times.  A fork gives each a FIFO, and each FIFO whose reader comes late holds the whole tensor.  Where readers are strictly
 * ordered, one buffer serves them all: reader B comes after reader A if B cannot begin before A has taken every word, because a word that B needs first depends on
 * a result for which something waited for all of A's (a sum over the vector, a whole converter).  Then the order of service is known and serving B
 * later costs no cycle.  Worth it where two readers or more come late: one alone needs a FIFO as large as the buffer.  Where the writer holds the tensor anyway, it serves the
 * readers itself (served.c), and one late reader is enough. */
#include "model/box.h"
#include "pass/buffer_readers.h"
#include "pass/repeat_kernels.h"
#include "pass/served.h"
#include "pass/streams.h"

#define SHORT_WORDS 32        /* a FIFO of so many words costs next to nothing */
#define HELD_BYTES 1024       /* from so many on a writer that holds them serves its readers: another nest takes some cycles to begin */

struct search {
	struct module *module;
	int *seen;                /* [values] number of the search that saw it last */
	bool *below;              /* [values] depends on reader A */
	int number;
	const struct op *early;   /* reader A */
	int early_operand;
};

static int64_t guarded_trip(const struct kernel *kernel, const struct access *access, int loop, int64_t *low)
{
	int64_t trip = kernel->loop[loop].extent;
	*low = 0;
	for (int g = 0; g < access->guards; g++)
		if (access->guard[g].loop == loop) {
			*low = access->guard[g].low;
			trip = access->guard[g].high - *low;
		}
	return trip;
}

/* Has the kernel taken all words of the operand when it makes its first result?  A parallel loop outside or at the innermost loop that takes words says no. */
static bool kernel_waits_for_all(const struct kernel *kernel, int operand)
{
	const struct access *access = &kernel->operand[operand];
	bool inside = true, late = kernel_is_post_operand(kernel, operand);
	int64_t low;
	for (int l = kernel->loops - 1 - (kernel->lanes > 1); l >= 0; l--) {
		if (late && kernel->loop[l].reduction)
			continue;
		inside = inside && (!access->stride[l] || guarded_trip(kernel, access, l, &low) == 1);
		if (!inside && (kernel->scan || !kernel->loop[l].reduction) && kernel->loop[l].extent > 1)
			return false;
	}
	return true;
}

static bool kernel_begins_with(const struct kernel *kernel, int operand)
{
	int64_t low;
	for (int l = 0; l < kernel->loops; l++) {
		guarded_trip(kernel, &kernel->operand[operand], l, &low);
		if (low > 0)
			return false;
	}
	return true;
}

static bool waits_for_all(const struct op *op, int operand)
{
	if (op->code == OP_KERNEL)
		return kernel_waits_for_all(op->kernel, operand);
	return op->code == OP_CONVERT && !attr_integer_or(op, "shared", 0);
}

/* Does the first word of the stream need something that has waited for all words of reader A? */
static bool completes(struct search *s, const struct value *stream)
{
	const struct op *def = stream->def;
	if (stream->type->kind != TYPE_ITENSOR || !def || s->seen[stream->id] == s->number)
		return false;
	s->seen[stream->id] = s->number;
	for (int j = 0; j < def->operands; j++) {
		if (def->code == OP_KERNEL && !kernel_begins_with(def->kernel, j))
			continue;
		bool all = waits_for_all(def, j), own = def == s->early && j == s->early_operand;
		if (all ? own || s->below[def->operand[j]->id] : completes(s, def->operand[j]))
			return true;
	}
	return false;
}

/* Must everything that reads words of `late` wait until A has taken all of its own? */
static bool comes_after(struct search *s, const struct reader *late)
{
	const struct op *op = late->op;
	if (op->code != OP_KERNEL)
		return false;
	bool at_end = kernel_is_post_operand(op->kernel, late->operand);
	for (int j = 0; j < op->operands; j++) {
		if (j == late->operand || !kernel_begins_with(op->kernel, j) || (kernel_is_post_operand(op->kernel, j) && !at_end))
			continue;
		bool all = at_end && !kernel_is_post_operand(op->kernel, j) && kernel_waits_for_all(op->kernel, j);
		s->number++;
		if (all ? s->below[op->operand[j]->id] : completes(s, op->operand[j]))
			return true;
	}
	return false;
}

static bool depends_on(const struct search *s, const struct op *op)
{
	for (int j = 0; j < op->operands; j++)
		if (s->below[op->operand[j]->id])
			return true;
	return false;
}

/* Everything in the block that depends on the reader. */
static void begin_search(struct search *s, const struct reader *early)
{
	s->early = early->op;
	s->early_operand = early->operand;
	for (const struct op *op = early->op->parent->first; op; op = op->next)
		for (int r = 0; r < op->results; r++)
			s->below[op->result[r]->id] = op == early->op || depends_on(s, op);
}

/* The phase of each reader: after those that it must follow, not before those that it depends on.  Returns how many come late. */
static int find_phases(struct search *s, const struct readers_of *readers, int64_t *phase)
{
	int late = 0;
	for (size_t a = 0; a < readers->list.count; a++) {
		begin_search(s, &readers->list.data[a]);
		for (size_t b = a + 1; b < readers->list.count; b++) {
			const struct reader *reader = &readers->list.data[b];
			int64_t least = comes_after(s, reader) ? phase[a] + 1 : depends_on(s, reader->op) ? phase[a] : 0;
			phase[b] = least > phase[b] ? least : phase[b];
		}
		late += phase[a] > 0;
	}
	return late;
}

/* All readers and all that lies between them stand in the block of the value. */
static bool is_one_block(const struct value *value, const struct readers_of *readers)
{
	const struct block *home = value->def ? value->def->parent : value->block;
	for (size_t i = 0; i < readers->list.count; i++)
		if (readers->list.data[i].op->parent != home)
			return false;
	for (const struct op *op = home->first; op; op = op->next)
		if (op->code == OP_FOR)
			return false;
	return true;
}

/* Readers, those of casts in their place. */
static void see_through_casts(struct search *s, const struct readers_of *from, struct readers_of *to)
{
	for (size_t i = 0; i < from->list.count; i++) {
		struct reader reader = from->list.data[i];
		if (reader.op->code == OP_CAST && reader.op->result[0]->data)
			see_through_casts(s, reader.op->result[0]->data, to);
		else
			VEC_PUSH(s->module->arena, &to->list, reader);
	}
}

/* As they stand in the block: one that depends on another comes after it.  Casts that several readers share had mixed them. */
static struct readers_of in_order(struct search *s, const struct readers_of *from)
{
	struct readers_of to = {0};
	for (const struct op *op = from->list.data[0].op->parent->first; op; op = op->next)
		for (size_t i = 0; i < from->list.count; i++)
			if (from->list.data[i].op == op)
				VEC_PUSH(s->module->arena, &to.list, from->list.data[i]);
	return to;
}

/* Does the reader want words of the writer's or of another width, once or in turns? */
static bool widths_fit(struct module *module, const struct type *left, const struct type *right)
{
	right = type_once(module, right) ? type_once(module, right) : right;
	int64_t lanes = stream_lanes(left), other = stream_lanes(right);
	if (left == right || lanes == other)
		return left == right;
	return lanes > other ? type_regroup(module, left, other) == right : type_regroup(module, right, lanes) == left;
}

static int64_t stream_bytes(const struct type *stream)
{
	return itensor_tiles(stream->itensor) * stream_lanes(stream) * ((type_bits(type_scalar(stream)) + 7) / 8);
}

/* Does the writer have the whole tensor until its end, in words that no reader wants wider? */
static bool is_held(const struct value *value, const struct readers_of *readers)
{
	bool parts = value->def && kernel_holds_result(value->def);
	for (size_t i = 0; i < readers->list.count; i++)
		parts = parts && stream_lanes(readers->list.data[i].op->operand[readers->list.data[i].operand]->type) <= stream_lanes(value->type);
	return parts;
}

static void plan_value(struct search *s, const struct value *value)
{
	struct readers_of *readers = value->data, all = {0};
	if (readers)
		readers->late = NULL;
	if (!readers || !is_one_block(value, readers))
		return;
	see_through_casts(s, readers, &all);
	bool held = is_held(value, &all);
	size_t least = held ? 2 : 3;
	if (all.list.count < least || !is_one_block(value, &all))
		return;
	all = in_order(s, &all);
	const struct type *type = all.list.data[0].op->operand[all.list.data[0].operand]->type;
	bool fit = (held ? stream_bytes(value->type) >= HELD_BYTES : itensor_tiles(type->itensor) > SHORT_WORDS);
	for (size_t i = 0; i < all.list.count; i++)
		fit = fit && widths_fit(s->module, value->type, all.list.data[i].op->operand[all.list.data[i].operand]->type);
	all.phase = ARENA_ARRAY(s->module->arena, int64_t, all.list.count);
	if (fit && find_phases(s, &all, all.phase) >= (int)least - 1)
		readers->late = arena_copy(s->module->arena, &all, sizeof all);
}

static void plan_block(struct search *s, const struct block *block)
{
	for (int i = 0; i < block->arguments; i++)
		plan_value(s, block->argument[i]);
	for (const struct op *op = block->first; op; op = op->next) {
		for (int r = 0; r < op->results; r++)
			plan_value(s, op->result[r]);
		if (op->code == OP_FOR)
			plan_block(s, op->region[0]);
	}
}

static int number_values(const struct block *block, int count)
{
	for (int i = 0; i < block->arguments; i++)
		block->argument[i]->id = count++;
	for (const struct op *op = block->first; op; op = op->next) {
		for (int r = 0; r < op->results; r++)
			op->result[r]->id = count++;
		if (op->code == OP_FOR)
			count = number_values(op->region[0], count);
	}
	return count;
}

void plan_buffers(struct module *module, const struct block *block)
{
	int count = number_values(block, 0);
	struct search s = {.module = module, .seen = ARENA_ARRAY(module->arena, int, count + 1), .below = ARENA_ARRAY(module->arena, bool, count + 1)};
	plan_block(&s, block);
}

static struct value *cast_to(struct module *module, struct op *before, struct value *from, const struct type *type)
{
	if (from->type == type)
		return from;
	struct op *cast = op_new(module, OP_CAST, before->location, 1, &from, 1, &type);
	set_stream_tensor(module, cast, stream_tensor(from));
	op_insert_before(before, cast);
	return cast->result[0];
}

/* What the readers of a phase get: words as wide as the first of them wants.  What passes while the buffer is filled is no wider than what fills it. */
static const struct type *type_of_phase(const struct value *value, const struct readers_of *all, int64_t phase)
{
	const struct type *type = value->type;
	for (size_t i = all->list.count; i > 0; i--)
		if (all->phase[i - 1] == phase)
			type = all->list.data[i - 1].op->operand[all->list.data[i - 1].operand]->type;
	return phase || stream_lanes(type) < stream_lanes(value->type) ? type : value->type;
}

/* sorted: the phase of each result. */
static struct op *new_buffer(struct module *module, struct value *value, struct op *before, const struct readers_of *all, const int64_t *sorted)
{
	struct box box = box_between(module->arena, stream_tensor(value), value->type, value->type, 0);
	int count = (int)all->list.count;
	const struct type **types = ARENA_ARRAY(module->arena, const struct type *, count);
	for (int i = 0; i < count; i++)
		types[i] = type_of_phase(value, all, sorted[i]);
	struct op *buffer = op_new(module, OP_BUFFER, before->location, 1, &value, count, types);
	attr_set(module, buffer, "buffer", attr_integer(module, box.elements));
	attr_set(module, buffer, "shared", attr_integer(module, 0));
	attr_set(module, buffer, "phases", attr_integers(module, count, sorted));
	set_stream_tensor(module, buffer, stream_tensor(value));
	op_insert_before(before, buffer);
	return buffer;
}

void buffer_readers(struct module *module, struct value *value, struct op *before)
{
	const struct readers_of *direct = value->data, *all = direct->late;
	int count = (int)all->list.count, next = 0;
	int64_t *sorted = ARENA_ARRAY(module->arena, int64_t, count);
	int *result = ARENA_ARRAY(module->arena, int, count);
	for (int64_t p = 0; next < count; p++)
		for (int i = 0; i < count; i++)
			if (all->phase[i] == p) {
				result[i] = next;
				sorted[next++] = p;
			}
	struct op *buffer = new_buffer(module, value, before, all, sorted);
	for (int i = 0; i < count; i++) {
		const struct reader *reader = &all->list.data[i];
		struct value **operand = &reader->op->operand[reader->operand];
		*operand = cast_to(module, before, buffer->result[result[i]], (*operand)->type);
	}
	for (size_t i = 0; i < direct->list.count; i++)
		if (direct->list.data[i].op->code == OP_CAST)
			op_remove(direct->list.data[i].op);
}
