/* Recomputes an elementwise kernel in its readers' order instead of reordering its result.
 *
 * Before: array -> kernel -> reorder buffer of the whole tensor -> readers, several times
 * After:  array, read in the readers' order -> kernel, computed as often -> readers
 * The array holds the large operand anyway (share_buffers.c); the other operands are vectors, of
 * which a converter keeps a copy each. Tried, and undone where the array does not serve the
 * kernel. */
#include "ir/converter.h"
#include "itensor/box.h"
#include "streams/shared_buffer_plan.h"
#include "streams/recompute_reordered.h"
#include "streams/stream_builder.h"
#include "streams/kernel_reordered.h"

#define LEAST_BYTES 4096 /* least bytes of the converter */
/* all vectors together are at most 1/VECTORS_MOST of the result */
#define VECTORS_MOST 8

struct type_change {
	struct value *value;
	void *readers; /* before the change */
};

struct reorder_trial {
	struct module *module;
	/* the kernel; the converter; what its readers read: itself or the cast after it */
	struct op *op, *convert, *last;
	struct kernel *kernel;    /* in the new order */
	const struct type **type; /* [operands], then that of the result */
	int source;               /* index of the large operand */
	struct value *array;      /* what the kernel rereads */
	int changes;
	struct type_change *type_change; /* [2 * operands + 2] changes to undo */
	int made;
	struct op **fresh; /* [operands + 1] new ops */
};

static bool is_reorder_buffer(const struct op *op)
{
	return converter_holds_tensor(op);
}

static int64_t tensor_bytes_of(const struct value *stream)
{
	const struct type *tensor = stream_tensor(stream);
	return type_elements(tensor) * ((type_bits(type_scalar(tensor)) + 7) / 8);
}

/* The value in the block from which reorder buffers and, if `all`, casts produce this one. */
static struct value *source_below(struct value *value, const struct block *block, bool all)
{
	while (value->def && value->def->parent == block &&
	        (is_reorder_buffer(value->def) || (all && value->def->code == OP_CAST))) {
		bool is_reordered = value->def->code == OP_CONVERT;
		value = value->def->operand[0];
		if (is_reordered && !all)
			break;
	}
	return value;
}

/* Finds the large operand: one is as large as the result, the others are vectors. */
static bool find_source(struct reorder_trial *t)
{
	const struct op *op = t->op;
	int64_t vectors = 0;
	int64_t bytes = tensor_bytes_of(op->result[0]);
	t->source = -1;
	for (int j = 0; j < op->operands; j++) {
		if (op->kernel->operand[j].guards || op->kernel->operand[j].index_operand >= 0 ||
		        op->operand[j]->type->itensor->run_time)
			return false;
		bool large = type_elements(stream_tensor(op->operand[j])) ==
		        type_elements(stream_tensor(op->result[0]));
		if (large && t->source >= 0)
			return false;
		t->source = large ? j : t->source;
		vectors += large ? 0 : tensor_bytes_of(op->operand[j]);
	}
	if (t->source < 0 || vectors * VECTORS_MOST > bytes)
		return false;
	t->array = source_below(op->operand[t->source], op->parent, true);
	const struct block *home = t->array->def ? t->array->def->parent : t->array->block;
	return home == op->parent && stream_readers(t->array);
}

static bool match_trial(struct reorder_trial *t)
{
	struct op *op = t->convert->operand[0]->def;
	t->op = op;
	if (!is_reorder_buffer(t->convert) || !op || op->code != OP_KERNEL ||
	        op->parent != t->convert->parent || kernel_has_reduction(op->kernel) ||
	        body_uses_counters(&op->kernel->update))
		return false;
	struct stream_readers *readers = stream_readers(t->convert->result[0]);
	if (stream_readers(op->result[0])->list.count != 1 || !readers ||
	        tensor_bytes_of(op->result[0]) < LEAST_BYTES)
		return false;
	bool is_cast = readers->list.count == 1 && readers->list.data[0].op->code == OP_CAST;
	t->last = is_cast ? readers->list.data[0].op : t->convert;
	t->kernel = stream_readers(t->last->result[0]) && find_source(t)
	        ? kernel_reordered(t->module, op, t->last->result[0]->type)
	        : NULL;
	t->type = ARENA_ARRAY(t->module->arena, const struct type *, op->operands + 1);
	return t->kernel && kernel_port_types(t->module, op, t->kernel, t->type) &&
	        t->type[op->operands] == t->last->result[0]->type;
}

static void note_change(struct reorder_trial *t, struct value *value)
{
	t->type_change[t->changes++] = (struct type_change){ value, value->data };
}

/* Replaces a reader of the value by another one; either may be empty, so that one is only added or
 * removed. */
static void change_reader(struct reorder_trial *t, struct value *value, struct stream_reader from,
        struct stream_reader to)
{
	struct stream_readers *old = stream_readers(value);
	struct stream_readers *list = ARENA_NEW(t->module->arena, struct stream_readers);
	note_change(t, value);
	for (size_t i = 0; old && i < old->list.count; i++)
		if (old->list.data[i].op != from.op || old->list.data[i].operand != from.operand)
			VEC_PUSH(t->module->arena, &list->list, old->list.data[i]);
	if (to.op)
		VEC_PUSH(t->module->arena, &list->list, to);
	value->data = list;
}

/* Operand j is read through a new op from `from`. */
static void read_through(struct reorder_trial *t, int j, enum op_code code, struct value *from)
{
	struct module *module = t->module;
	struct op *fresh = op_new(module, code, t->op->location, 1, &from, 1, &t->type[j]);
	set_stream_tensor(module, fresh, stream_tensor(from));
	op_insert_before(t->op, fresh);
	t->fresh[t->made++] = fresh;
	change_reader(t, t->op->operand[j], (struct stream_reader){ t->op, j },
	        (struct stream_reader){ 0 });
	change_reader(t, from, (struct stream_reader){ 0 }, (struct stream_reader){ fresh, 0 });
	struct stream_readers *own = fresh->result[0]->data =
	        ARENA_NEW(module->arena, struct stream_readers);
	VEC_PUSH(module->arena, &own->list, ((struct stream_reader){ t->op, j }));
	t->op->operand[j] = fresh->result[0];
}

/* Reads a vector repeatedly from a copy in a converter. */
static bool buffer_vector(struct reorder_trial *t, int j)
{
	struct value *from = source_below(t->op->operand[j], t->op->parent, false);
	struct box box = box_between(
	        t->module->arena, stream_tensor(from), from->type, t->type[j], BOX_LEAST);
	if (box.why)
		return false;
	read_through(t, j, OP_CONVERT, from);
	struct op *convert = t->op->operand[j]->def;
	attr_set(t->module, convert, KEY_BUFFER_ELEMENTS, attr_integer(t->module, box.elements));
	attr_set(t->module, convert, KEY_SHARED_LOOPS, attr_integer(t->module, box.shared));
	attr_set(t->module, convert, KEY_HALVES, attr_integer(t->module, box.halves));
	return true;
}

static void cast_array(struct reorder_trial *t, int j)
{
	read_through(t, j, OP_CAST, t->array);
	attr_set(t->module, t->op->operand[j]->def, KEY_READS_SHARED_BUFFER, attr_unit(t->module));
}

static bool take_operands(struct reorder_trial *t)
{
	bool good = true;
	for (int j = 0; good && j < t->op->operands; j++) {
		if (t->type[j] == t->op->operand[j]->type)
			continue;
		if (j == t->source)
			cast_array(t, j);
		else
			good = buffer_vector(t, j);
	}
	return good && t->array->data && t->type[t->source] == t->op->operand[t->source]->type;
}

static void read_result(struct reorder_trial *t, struct value *value)
{
	struct stream_readers *readers = stream_readers(t->last->result[0]);
	for (size_t i = 0; i < readers->list.count; i++)
		readers->list.data[i].op->operand[readers->list.data[i].operand] = value;
}

bool replays_are_buffered(const struct block *block)
{
	bool buffered = true;
	for (const struct op *op = block->first; op && buffered; op = op->next) {
		const struct stream_readers *readers = attr_get(op, KEY_READS_SHARED_BUFFER)
		        ? stream_readers(op->operand[0])
		        : NULL;
		buffered = (!attr_get(op, KEY_READS_SHARED_BUFFER) ||
		                   (readers && readers->deferred)) &&
		        (op->code != OP_FOR || replays_are_buffered(op->region[0]));
	}
	return buffered;
}

static bool is_read(const struct op *op)
{
	return op->results && stream_readers(op->result[0]) &&
	        stream_readers(op->result[0])->list.count;
}

/* Removes casts and converters without readers. */
static void remove_unread(struct reorder_trial *t, struct value *value, struct op **next)
{
	struct op *def = value->def;
	if (!def || (def->code != OP_CAST && def->code != OP_CONVERT) || is_read(def))
		return;
	struct value *from = def->operand[0];
	t->changes = 0; /* the trial is accepted, so nothing is undone any more */
	change_reader(t, from, (struct stream_reader){ def, 0 }, (struct stream_reader){ 0 });
	*next = *next == def ? def->next : *next;
	op_remove(def);
	remove_unread(t, from, next);
}

bool recompute_reordered(
        struct module *module, const struct block *all, struct op *convert, struct op **next)
{
	struct reorder_trial t = { .module = module, .convert = convert };
	if (!match_trial(&t))
		return false;
	int operands = t.op->operands;
	struct kernel *kernel = t.op->kernel;
	struct value *result = t.op->result[0];
	struct value **operand =
	        arena_copy(module->arena, t.op->operand, sizeof *operand * (size_t)operands);
	const struct type *type = result->type;
	t.type_change = ARENA_ARRAY(module->arena, struct type_change, 2 * operands + 2);
	t.fresh = ARENA_ARRAY(module->arena, struct op *, operands + 1);
	note_change(&t, result);
	bool good = take_operands(&t);
	t.op->kernel = t.kernel;
	result->type = t.type[operands];
	result->data = stream_readers(t.last->result[0]);
	read_result(&t, result);
	plan_shared_buffers(module, all);
	if (good && is_sole_round_reader(t.array, t.op) && replays_are_buffered(all)) {
		*next = *next == t.last ? t.last->next : *next;
		if (t.last != convert)
			op_remove(t.last);
		op_remove(convert);
		for (int j = 0; j < operands; j++)
			if (operand[j] != t.op->operand[j])
				remove_unread(&t, operand[j], next);
		plan_shared_buffers(module, all);
		return true;
	}
	read_result(&t, t.last->result[0]);
	while (t.changes--)
		t.type_change[t.changes].value->data = t.type_change[t.changes].readers;
	t.op->kernel = kernel;
	result->type = type;
	for (int j = 0; j < operands; j++)
		t.op->operand[j] = operand[j];
	for (int i = 0; i < t.made; i++)
		op_remove(t.fresh[i]);
	plan_shared_buffers(module, all);
	return false;
}
