/* Recomputes an elementwise kernel instead of replaying its result.
 *
 * Before: buffered value -> kernel -> replay buffer -> reader
 * After:  buffered value, read several times -> kernel, computed as often -> reader
 * Possible if all operands can be sent several times: one from a buffer that holds it anyway,
 * vectors of weights from memory. So the norm in front of a feed-forward layer is computed for
 * every block of its outputs. Tried and undone where no buffer serves the kernel.
 * recompute_after_converter.c and recompute_reordered.c do the same to other kernels.
 * Needs: converters. Guarantees: where casts reread words, share_buffers finds a buffer that has
 * them. Exact. Ends: each converter is tried once. */
#include "ir/converter.h"
#include "streams/recompute_kernels.h"
#include "streams/recompute_after_converter.h"
#include "streams/recompute_reordered.h"
#include "streams/shared_buffer_plan.h"
#include "streams/streams_passes.h"
#include "converter/accumulator_drain.h"

#define LEAST_BYTES 1024 /* least bytes of the converter */
/* least results that each reader computes from an element, so that the repeated vectors are next to
 * nothing of what it reads */
#define LEAST_POINTS 64

bool is_replay_dim(const struct itensor *order, int loop)
{
	for (int r = 0; r < order->map.results; r++)
		if (affine_at(order->map, r, loop))
			return false;
	return true;
}

const struct type *shift_loops(struct module *module, const struct type *stream, int first,
        int64_t times, const struct run_time_trip *trips)
{
	const struct itensor *order = stream->itensor;
	int dims = order->dims + first;
	int results = order->map.results;
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, dims + 1);
	int64_t *step = ARENA_ARRAY(module->arena, int64_t, dims + 1);
	int64_t *rows = affine_rows(module->arena, dims, results);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(module->arena, const struct run_time_trip *, dims + 1);
	trip[0] = times;
	run_time[0] = trips;
	step[0] = 1;
	for (int i = first > 0; i < dims; i++) {
		trip[i] = order->trip[i - first];
		step[i] = order->step[i - first];
		run_time[i] = order->run_time ? order->run_time[i - first] : NULL;
		for (int r = 0; r < results; r++)
			rows[r * (dims + 1) + i] = affine_at(order->map, r, i - first);
	}
	for (int r = 0; r < results; r++)
		rows[r * (dims + 1) + dims] = affine_constant(order->map, r);
	return type_canonical(module, stream->element,
	        &(struct itensor){ .dims = dims,
	                .trip = trip,
	                .step = step,
	                .run_time = run_time,
	                .map = { dims, results, rows } });
}

const struct type *type_without_replay(struct module *module, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	return order->dims && order->trip[0] > 1 && !(order->run_time && order->run_time[0]) &&
	                is_replay_dim(order, 0)
	        ? shift_loops(module, stream, -1, 0, NULL)
	        : NULL;
}

struct recompute_trial {
	struct module *module;
	struct op *convert, *op; /* the kernel */
	struct value *source;    /* operand that a buffer holds */
	struct op *cast;         /* reads it from the buffer, repeated */
	int64_t times;
};

static bool is_used(const struct op *op, int operand)
{
	for (int l = 0; l < op->kernel->loops; l++)
		if (op->kernel->operand[operand].stride[l] && op->kernel->loop[l].extent > 1)
			return true;
	return false;
}

static bool makes_enough(const struct stream_reader *reader)
{
	const struct kernel *kernel = reader->op->code == OP_KERNEL ? reader->op->kernel : NULL;
	int64_t points = 1;
	if (reader->op->code == OP_CAST)
		return is_reused_enough(stream_readers(reader->op->result[0]));
	for (int l = kernel ? kernel->loops - 1 : -1;
	        l >= 0 && !kernel->operand[reader->operand].stride[l]; l--)
		points *= kernel->loop[l].extent;
	return points >= LEAST_POINTS;
}

bool is_reused_enough(const struct stream_readers *readers)
{
	bool enough = readers != NULL;
	for (size_t i = 0; enough && i < readers->list.count; i++)
		enough = makes_enough(&readers->list.data[i]);
	return enough;
}

/* The load of a vector of weights, or NULL. */
static struct op *load_of(const struct op *op, int operand)
{
	struct op *def = op->operand[operand]->def;
	return def && def->code == OP_LOAD && def->parent == op->parent && !attr_get(def, KEY_PORTS)
	        ? def
	        : NULL;
}

/* The buffered value that the kernel reads, directly or by a cast of its own; NULL: there is
 * none. */
static struct value *buffered(const struct op *op, int operand)
{
	struct value *from = op->operand[operand];
	if (from->def && from->def->code == OP_CAST && stream_readers(from)->list.count == 1)
		from = from->def->operand[0];
	if (from->def && from->def->code == OP_CAST)
		return NULL;
	bool deferred = stream_readers(from) && stream_readers(from)->deferred &&
	        (!from->def || !kernel_holds_result(from->def));
	return deferred ? from : NULL;
}

/* Can all operands be sent several times? One comes from a buffer, the others from memory. */
static bool can_be_replayed(struct recompute_trial *r)
{
	for (int j = 0; j < r->op->operands; j++) {
		if (r->op->kernel->operand[j].guards)
			return false;
		if (!is_used(r->op, j) || load_of(r->op, j))
			continue;
		if (r->source || !(r->source = buffered(r->op, j)))
			return false;
	}
	return r->source;
}

static bool match_trial(struct module *module, struct op *convert, struct recompute_trial *r)
{
	struct op *op = convert->operand[0]->def;
	*r = (struct recompute_trial){ .module = module, .convert = convert, .op = op };
	if (!op || op->code != OP_KERNEL || op->parent != convert->parent ||
	        kernel_has_reduction(op->kernel) || body_uses_counters(&op->kernel->update) ||
	        stream_readers(op->result[0])->list.count != 1)
		return false;
	const struct type *to = convert->result[0]->type;
	int64_t bytes = attr_integer_or(convert, KEY_BUFFER_ELEMENTS, 0) *
	        ((type_bits(type_scalar(to)) + 7) / 8);
	if (bytes < LEAST_BYTES || converter_shared_loops(convert) ||
	        converter_form(convert) == CONVERTER_LINE_BUFFER ||
	        type_without_replay(module, to) != op->result[0]->type)
		return false;
	r->times = to->itensor->trip[0];
	return is_reused_enough(stream_readers(convert->result[0])) && can_be_replayed(r);
}

static struct access shift_access(struct arena *arena, const struct access *from, int loops)
{
	struct access to = *from;
	to.stride = ARENA_ARRAY(arena, int64_t, loops + 2);
	for (int l = 0; l < loops; l++)
		to.stride[l + 1] = from->stride[l];
	return to;
}

static struct kernel *replayed_kernel(const struct recompute_trial *r)
{
	struct arena *arena = r->module->arena;
	const struct kernel *from = r->op->kernel;
	struct kernel *to = arena_copy(arena, from, sizeof *from);
	to->loops++;
	to->loop = ARENA_ARRAY(arena, struct loop, to->loops);
	to->loop[0].extent = r->times;
	for (int l = 0; l < from->loops; l++)
		to->loop[l + 1] = from->loop[l];
	to->operand = ARENA_ARRAY(arena, struct access, r->op->operands);
	for (int j = 0; j < r->op->operands; j++)
		to->operand[j] = shift_access(arena, &from->operand[j], from->loops);
	to->result = shift_access(arena, &from->result, from->loops);
	return to;
}

static void replace_reader(const struct value *value, const struct op *from, struct op *to)
{
	struct stream_readers *readers = stream_readers(value);
	for (size_t i = 0; i < readers->list.count; i++)
		if (readers->list.data[i].op == from)
			readers->list.data[i] = (struct stream_reader){ to, 0 };
}

/* Inserts a cast of the buffer's words that repeats them for the kernel; share_buffer
 * (share_buffers.c) takes the cast out. */
static void cast_source(struct recompute_trial *r, int operand)
{
	struct op *op = r->op;
	struct op *old = op->operand[operand]->def;
	const struct type *type =
	        shift_loops(r->module, op->operand[operand]->type, 1, r->times, NULL);
	r->cast = op_new(r->module, OP_CAST, op->location, 1, &r->source, 1, &type);
	set_stream_tensor(r->module, r->cast, stream_tensor(r->source));
	attr_set(r->module, r->cast, KEY_READS_SHARED_BUFFER, attr_unit(r->module));
	op_insert_before(op, r->cast);
	struct stream_readers *readers = r->cast->result[0]->data =
	        ARENA_NEW(r->module->arena, struct stream_readers);
	VEC_PUSH(r->module->arena, &readers->list, ((struct stream_reader){ op, operand }));
	replace_reader(r->source, op->operand[operand] == r->source ? op : old, r->cast);
	op->operand[operand] = r->cast->result[0];
}

/* What a trial changes, to undo it. */
struct saved_trial {
	struct kernel *kernel;
	const struct type *result, **load;
	struct value **operand;
	void *readers;
	struct stream_reader *list; /* readers of the source */
};

static struct saved_trial save_trial(const struct recompute_trial *r)
{
	struct arena *arena = r->module->arena;
	const struct op *op = r->op;
	const struct stream_readers *source = stream_readers(r->source);
	struct saved_trial saved_trial = { op->kernel, op->result[0]->type,
		ARENA_ARRAY(arena, const struct type *, op->operands + 1), NULL,
		op->result[0]->data, NULL };
	saved_trial.operand =
	        arena_copy(arena, op->operand, sizeof *op->operand * (size_t)op->operands);
	saved_trial.list =
	        arena_copy(arena, source->list.data, sizeof *saved_trial.list * source->list.count);
	for (int j = 0; j < op->operands; j++)
		saved_trial.load[j] = op->operand[j]->type;
	return saved_trial;
}

static void apply_trial(struct recompute_trial *r)
{
	struct op *op = r->op;
	struct kernel *kernel = replayed_kernel(r);
	for (int j = 0; j < op->operands; j++) {
		if (!is_used(op, j))
			continue;
		if (load_of(op, j))
			op->operand[j]->type =
			        shift_loops(r->module, op->operand[j]->type, 1, r->times, NULL);
		else
			cast_source(r, j);
	}
	op->kernel = kernel;
	op->result[0]->type = r->convert->result[0]->type;
	struct stream_readers *readers = op->result[0]->data = r->convert->result[0]->data;
	for (size_t i = 0; i < readers->list.count; i++)
		readers->list.data[i].op->operand[readers->list.data[i].operand] = op->result[0];
}

static void undo_trial(struct recompute_trial *r, const struct saved_trial *saved_trial)
{
	struct op *op = r->op;
	struct stream_readers *readers = op->result[0]->data;
	struct stream_readers *source = stream_readers(r->source);
	for (size_t i = 0; i < readers->list.count; i++)
		readers->list.data[i].op->operand[readers->list.data[i].operand] =
		        r->convert->result[0];
	op->kernel = saved_trial->kernel;
	op->result[0]->type = saved_trial->result;
	op->result[0]->data = saved_trial->readers;
	for (int j = 0; j < op->operands; j++) {
		op->operand[j] = saved_trial->operand[j];
		op->operand[j]->type = saved_trial->load[j];
	}
	for (size_t i = 0; i < source->list.count; i++)
		source->list.data[i] = saved_trial->list[i];
	op_remove(r->cast);
}

static void remove_old_cast(const struct recompute_trial *r, const struct saved_trial *saved_trial)
{
	for (int j = 0; j < r->op->operands; j++)
		if (saved_trial->operand[j] != r->op->operand[j] &&
		        saved_trial->operand[j] != r->source)
			op_remove(saved_trial->operand[j]->def);
}

static bool recompute_before_reader(struct module *module, const struct block *all, struct op *op)
{
	struct recompute_trial r;
	if (!match_trial(module, op, &r))
		return false;
	struct saved_trial saved_trial = save_trial(&r);
	apply_trial(&r);
	plan_shared_buffers(module, all);
	if (is_sole_round_reader(r.source, r.op) && replays_are_buffered(all)) {
		remove_old_cast(&r, &saved_trial);
		op_remove(op);
		return true;
	}
	undo_trial(&r, &saved_trial);
	plan_shared_buffers(module, all);
	return false;
}

static void recompute_in_block(struct module *module, const struct block *all, struct block *block)
{
	for (struct op *op = block->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_FOR)
			recompute_in_block(module, all, op->region[0]);
		if (op->code == OP_CONVERT && !recompute_before_reader(module, all, op))
			recompute_reordered(module, all, op, &next);
	}
}

bool recompute_kernels(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	(void)context;
	collect_stream_readers(module, body);
	plan_shared_buffers(module, body);
	recompute_after_converter(module, body);
	recompute_in_block(module, body, body);
	return true;
}
