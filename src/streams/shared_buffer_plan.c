/* Decides where one buffer serves the readers of a stream that read it one after the other.
 *
 * A fork gives each reader a FIFO, and that of a late reader holds the whole tensor.
 * Before: producer -> fork -> FIFO -> reader A;  long FIFO -> reader B;  long FIFO -> reader C
 * After:  producer -> buffer, which serves A, B and C in rounds
 * Reader B comes after reader A if B cannot start before A has read every word, because a word
 * that B needs first depends on a result that waits for all of A's (a sum over the vector, a
 * converter of the whole). The order of service is then known, and costs no cycle. It pays with
 * two late readers, since one needs a FIFO as large as the buffer. A producer that holds the
 * tensor in accumulators serves the readers itself (accumulator_drain.c), which pays with one late
 * reader. */
#include "ir/converter.h"
#include "ir/workload.h"
#include "itensor/box.h"
#include "streams/shared_buffer_plan.h"
#include "streams/recompute_kernels.h"
#include "converter/accumulator_drain.h"
#include "streams/stream_builder.h"

#define SHORT_WORDS 32 /* words of a FIFO that costs next to nothing */
/* least bytes for which a producer that holds them serves its readers, since another loop nest
 * takes some cycles to start */
#define DRAIN_MIN_BYTES 1024

struct reader_search {
	struct module *module;
	int *seen;   /* [values] number of the search that visited it last */
	bool *below; /* [values] does it depend on reader A? */
	int number;
	const struct op *early; /* reader A */
	int early_operand;
	/* the block that was looked at last, and whether it holds loops */
	const struct block *block;
	bool loops;
};

static int64_t guarded_trip(
        const struct kernel *kernel, const struct access *access, int loop, int64_t *low)
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

/* Has the kernel read all words of the operand before its first result? No, if there is a parallel
 * loop outside or at the innermost loop that reads words. */
static bool kernel_waits_for_all(const struct kernel *kernel, int operand)
{
	const struct access *access = &kernel->operand[operand];
	bool inside = true;
	bool deferred = kernel_is_post_operand(kernel, operand);
	int64_t low;
	for (int l = kernel->loops - 1 - (kernel->lanes > 1); l >= 0; l--) {
		if (deferred && kernel->loop[l].reduction)
			continue;
		inside = inside &&
		        (!access->stride[l] || guarded_trip(kernel, access, l, &low) == 1);
		if (!inside && (kernel->scan || !kernel->loop[l].reduction) &&
		        kernel->loop[l].extent > 1)
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
	return op->code == OP_CONVERT && !converter_shared_loops(op) &&
	        converter_form(op) != CONVERTER_CAUSAL;
}

/* Does the first word of the stream depend on something that waits for all words of reader A? */
static bool needs_completed(struct reader_search *s, const struct value *stream)
{
	const struct op *def = stream->def;
	if (stream->type->kind != TYPE_ITENSOR || !def || s->seen[stream->id] == s->number)
		return false;
	s->seen[stream->id] = s->number;
	for (int j = 0; j < def->operands; j++) {
		if (def->code == OP_KERNEL && !kernel_begins_with(def->kernel, j))
			continue;
		bool all = waits_for_all(def, j);
		bool own = def == s->early && j == s->early_operand;
		if (all ? own || s->below[def->operand[j]->id]
		        : needs_completed(s, def->operand[j]))
			return true;
	}
	return false;
}

/* Does every iteration of the outermost loop read words of its own? */
static bool uses_outermost(const struct kernel *kernel, int operand)
{
	int l = 0;
	while (l < kernel->loops && kernel->loop[l].extent == 1)
		l++;
	return l < kernel->loops && kernel->operand[operand].stride[l];
}

/* Does the stream come from a converter that buffers all words of an outermost iteration and
 * depends on A? Elementwise kernels after it keep the order. */
static bool arrives_by_block(
        const struct reader_search *s, const struct value *stream, int64_t iterations)
{
	const struct op *def = stream->def;
	bool any = false;
	if (!def || !s->below[stream->id])
		return false;
	for (int j = 0; j < def->operands && !any; j++)
		if (def->code == OP_CAST ||
		        (def->code == OP_KERNEL && !kernel_has_reduction(def->kernel) &&
		                uses_outermost(def->kernel, j)))
			any = arrives_by_block(s, def->operand[j], iterations);
	if (any || def->code != OP_CONVERT || attr_integer_or(def, KEY_SHARED_LOOPS, 0) != 1)
		return any;
	struct box box = box_between(s->module->arena, stream_tensor(def->result[0]),
	        def->operand[0]->type, def->result[0]->type, 1);
	return !box.why && iterations % box.fill.trip[0] == 0;
}

/* Does the kernel reduce over its outermost loop? Its first result then needs a word of the last
 * iteration, and with it the last word before the converter, for which every kernel before has read
 * everything. */
static bool needs_last_block(const struct reader_search *s, const struct op *op, int operand)
{
	const struct kernel *kernel = op->kernel;
	int outer = kernel_outer_reduction(kernel);
	for (int l = 0; l < outer; l++)
		if (kernel->loop[l].extent > 1)
			return false;
	return outer >= 0 && kernel->operand[operand].stride[outer] &&
	        arrives_by_block(s, op->operand[operand], kernel->loop[outer].extent);
}

/* Must every op that reads words of this reader wait until A has read all of its own? */
static bool comes_after(struct reader_search *s, const struct stream_reader *deferred)
{
	const struct op *op = deferred->op;
	if (op->code != OP_KERNEL)
		return false;
	bool at_end = kernel_is_post_operand(op->kernel, deferred->operand);
	for (int j = 0; j < op->operands; j++) {
		if (j == deferred->operand || !kernel_begins_with(op->kernel, j) ||
		        (kernel_is_post_operand(op->kernel, j) && !at_end))
			continue;
		bool all = at_end && !kernel_is_post_operand(op->kernel, j) &&
		        kernel_waits_for_all(op->kernel, j);
		s->number++;
		if (at_end && needs_last_block(s, op, j))
			return true;
		if (all ? s->below[op->operand[j]->id] : needs_completed(s, op->operand[j]))
			return true;
	}
	return false;
}

static bool depends_on(const struct reader_search *s, const struct op *op)
{
	for (int j = 0; j < op->operands; j++)
		if (s->below[op->operand[j]->id])
			return true;
	return false;
}

/* Marks everything in the block that depends on the reader. */
static void begin_reader_search(struct reader_search *s, const struct stream_reader *early)
{
	s->early = early->op;
	s->early_operand = early->operand;
	for (const struct op *op = early->op->parent->first; op; op = op->next)
		for (int r = 0; r < op->results; r++)
			s->below[op->result[r]->id] = op == early->op || depends_on(s, op);
}

/* Sets the service round of each reader: after those that it must follow, not before those that it
 * depends on. Returns the number of late readers. */
static int find_service_rounds(
        struct reader_search *s, const struct stream_readers *readers, int64_t *service_round)
{
	int deferred = 0;
	for (size_t a = 0; a < readers->list.count; a++) {
		begin_reader_search(s, &readers->list.data[a]);
		for (size_t b = a + 1; b < readers->list.count; b++) {
			const struct stream_reader *reader = &readers->list.data[b];
			int64_t least = 0;
			if (comes_after(s, reader))
				least = service_round[a] + 1;
			else if (depends_on(s, reader->op))
				least = service_round[a];

			service_round[b] = least > service_round[b] ? least : service_round[b];
		}
		deferred += service_round[a] > 0;
	}
	return deferred;
}

static bool holds_loops(struct reader_search *s, const struct block *block)
{
	if (s->block == block)
		return s->loops;
	s->block = block;
	s->loops = false;
	for (const struct op *op = block->first; op; op = op->next)
		s->loops |= op->code == OP_FOR;
	return s->loops;
}

/* Are all readers, and all ops between them, in the block of the value? */
static bool is_one_block(
        struct reader_search *s, const struct value *value, const struct stream_readers *readers)
{
	const struct block *home = value->def ? value->def->parent : value->block;
	for (size_t i = 0; i < readers->list.count; i++)
		if (readers->list.data[i].op->parent != home)
			return false;
	return !holds_loops(s, home);
}

/* Does the converter hold a whole tensor, for readers in the same block? */
static bool is_reorder_buffer(const struct op *op)
{
	return converter_holds_tensor(op) && op->operand[0]->type->kind == TYPE_ITENSOR;
}

/* Lists readers, with casts replaced by their readers, and converters too if `converters`; returns
 * the number of converters. */
static int list_final_readers(struct reader_search *s, const struct stream_readers *from,
        bool converters, struct stream_readers *to)
{
	int seen = 0;
	for (size_t i = 0; i < from->list.count; i++) {
		struct stream_reader reader = from->list.data[i];
		bool reordered = converters && is_reorder_buffer(reader.op);
		const struct stream_readers *next =
		        reader.op->code == OP_CAST || reordered ? reader.op->result[0]->data : NULL;
		if (next)
			seen += (reordered && next->list.count) +
			        list_final_readers(s, next, converters && !reordered, to);
		else
			VEC_PUSH(s->module->arena, &to->list, reader);
	}
	return seen;
}

/* The readers in the order of the block, so that one that depends on another follows it; casts that
 * several readers share had mixed them up. */
static struct stream_readers ordered_readers(
        struct reader_search *s, const struct stream_readers *from)
{
	struct stream_readers to = { 0 };
	for (const struct op *op = from->list.data[0].op->parent->first; op; op = op->next)
		for (size_t i = 0; i < from->list.count; i++)
			if (from->list.data[i].op == op)
				VEC_PUSH(s->module->arena, &to.list, from->list.data[i]);
	return to;
}

/* Can the reader be served: its words have the producer's or another width, once or repeatedly? */
static bool lanes_fit(struct module *module, const struct type *left, const struct type *right)
{
	right = type_without_replay(module, right) ? type_without_replay(module, right) : right;
	int64_t lanes = stream_lanes(left);
	int64_t other = stream_lanes(right);
	if (left == right || lanes == other)
		return left == right;
	return lanes > other ? type_regroup(module, left, other) == right
	                     : type_regroup(module, right, lanes) == left;
}

static int64_t stream_bytes(const struct type *stream)
{
	return itensor_tiles(stream->itensor) * stream_lanes(stream) *
	        ((type_bits(type_scalar(stream)) + 7) / 8);
}

/* Does the producer hold the whole tensor until its end, in words that no reader wants wider? */
static bool is_in_accumulators(const struct value *value, const struct stream_readers *readers)
{
	bool parts = value->def && kernel_holds_result(value->def);
	for (size_t i = 0; i < readers->list.count; i++)
		parts = parts &&
		        stream_lanes(readers->list.data[i]
		                        .op->operand[readers->list.data[i].operand]
		                        ->type) <= stream_lanes(value->type);
	return parts;
}

static const struct type *wanted_by(const struct stream_readers *readers, size_t i)
{
	return readers->list.data[i].op->operand[readers->list.data[i].operand]->type;
}

/* What the readers of a round get: words as wide as the first of them wants; while the buffer is
 * filled no wider than what fills it. */
static const struct type *type_of_round(
        const struct value *value, const struct stream_readers *all, int64_t service_round)
{
	const struct type *type = value->type;
	for (size_t i = all->list.count; i > 0; i--)
		if (all->service_round[i - 1] == service_round)
			type = wanted_by(all, i - 1);
	return service_round || stream_lanes(type) < stream_lanes(value->type) ? type : value->type;
}

/* Plans a buffer for readers that all read in the producer's order. */
static bool plan_ordered_buffer(
        struct reader_search *s, const struct value *value, struct stream_readers *readers)
{
	struct stream_readers all = { 0 };
	list_final_readers(s, readers, false, &all);
	bool in_producer = is_in_accumulators(value, &all);
	size_t least = in_producer ? 2 : 3;
	if (all.list.count < least || !is_one_block(s, value, &all))
		return false;
	all = ordered_readers(s, &all);
	bool fit = (in_producer ? stream_bytes(value->type) >= DRAIN_MIN_BYTES
	                        : itensor_tiles(wanted_by(&all, 0)->itensor) > SHORT_WORDS);
	for (size_t i = 0; i < all.list.count; i++)
		fit = fit && lanes_fit(s->module, value->type, wanted_by(&all, i));
	all.service_round = ARENA_ARRAY(s->module->arena, int64_t, all.list.count);
	if (!fit || find_service_rounds(s, &all, all.service_round) < (int)least - 1)
		return false;
	all.type = ARENA_ARRAY(s->module->arena, const struct type *, all.list.count);
	for (size_t i = 0; i < all.list.count; i++)
		all.type[i] = type_of_round(value, &all, all.service_round[i]);
	readers->deferred = arena_copy(s->module->arena, &all, sizeof all);
	return true;
}

struct op *accumulator_holder(const struct value *value)
{
	struct op *def = value->def;
	if (def && converter_form(def) == CONVERTER_IN_PRODUCER)
		def = def->operand[0]->def;
	return def && kernel_holds_result(def) ? def : NULL;
}

/* Sets the order that each round wants, in words no wider than those of the stream; false: readers
 * of a round want different ones. */
static bool find_round_types(struct reader_search *s, const struct value *value,
        struct stream_readers *all, bool drained)
{
	all->type = ARENA_ARRAY(s->module->arena, const struct type *, all->list.count);
	for (size_t i = 0; i < all->list.count; i++) {
		const struct type *type = wanted_by(all, i);
		const struct type *narrow = stream_lanes(type) > stream_lanes(value->type)
		        ? type_regroup(s->module, type, stream_lanes(value->type))
		        : type;
		for (size_t e = 0; narrow && e < i; e++)
			if (all->service_round[e] == all->service_round[i])
				narrow = lanes_fit(s->module, all->type[e], type) ? all->type[e]
				                                                  : NULL;
		if (!narrow ||
		        (!all->service_round[i] && !drained &&
		                !lanes_fit(s->module, value->type, narrow)))
			return false;
		all->type[i] = narrow;
	}
	return true;
}

/* Can one array serve all the orders of the readers? */
static bool is_one_box(struct arena *arena, const struct type *tensor, const struct type *from,
        size_t readers, const struct type *const *type)
{
	struct box_side first = { 0 };
	for (size_t i = 0; i < readers; i++) {
		struct box box = box_between(arena, tensor, from, type[i], 0);
		bool same = !box.why &&
		        box.elements == itensor_tiles(from->itensor) * stream_lanes(from) &&
		        !sequence_flat(arena, sequence_of_type(arena, tensor, type[i])).run_time;
		first = i ? first : box.fill;
		same = same && box.fill.first == first.first && box.fill.loops == first.loops;
		for (int l = 0; same && l < first.loops; l++)
			same = box.fill.step[l] == first.step[l] &&
			        box.fill.trip[l] == first.trip[l];
		if (!same)
			return false;
	}
	return true;
}

/* Number of converters and FIFOs that would each hold the whole tensor. */
static int count_buffers(const struct stream_readers *all, int converters)
{
	int count = converters;
	for (size_t i = 0; i < all->list.count; i++) {
		const struct value *from = all->list.data[i].op->operand[all->list.data[i].operand];
		for (const struct op *def = from->def; def && def->code == OP_CAST; def = from->def)
			from = def->operand[0];
		count += all->service_round[i] > 0 && !(from->def && is_reorder_buffer(from->def));
	}
	return count;
}

/* Plans a buffer that serves each reader in its own order. */
static bool plan_reordered_buffer(
        struct reader_search *s, const struct value *value, struct stream_readers *readers)
{
	struct stream_readers all = { 0 };
	struct arena *arena = s->module->arena;
	const struct op *holder = accumulator_holder(value);
	bool drained = holder && holder != value->def;
	int converters = list_final_readers(s, readers, true, &all);
	bool reordered = drained;
	for (size_t i = 0; i < all.list.count; i++)
		reordered = reordered || !lanes_fit(s->module, value->type, wanted_by(&all, i));
	if (!reordered || stream_bytes(value->type) < DRAIN_MIN_BYTES ||
	        !is_one_block(s, value, &all))
		return false;
	all = ordered_readers(s, &all);
	all.service_round = ARENA_ARRAY(arena, int64_t, all.list.count);
	if (!find_service_rounds(s, &all, all.service_round) ||
	        count_buffers(&all, converters) < (holder ? 1 : 2))
		return false;
	if (!find_round_types(s, value, &all, drained))
		return false;
	const struct type *tensor = stream_tensor(value);
	if (holder ? !can_drain_accumulators(arena, holder, tensor, (int)all.list.count, all.type)
	           : !is_one_box(arena, tensor, value->type, all.list.count, all.type))
		return false;
	for (size_t i = 0; drained && i < all.list.count; i++)
		all.service_round[i]++;
	readers->deferred = arena_copy(arena, &all, sizeof all);
	return true;
}

static void plan_value(struct reader_search *s, const struct value *value)
{
	struct stream_readers *readers = value->data;
	if (readers)
		readers->deferred = NULL;
	if (readers && is_one_block(s, value, readers) && !plan_reordered_buffer(s, value, readers))
		plan_ordered_buffer(s, value, readers);
}

static void plan_block(struct reader_search *s, const struct block *block)
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

/* Plans a load for each round of readers. */
static void plan_load(struct reader_search *s, const struct value *value)
{
	struct stream_readers *readers = value->data;
	struct stream_readers all = { .loads = true };
	list_final_readers(s, readers, false, &all);
	if (!is_one_block(s, value, &all))
		return;
	struct stream_readers ordered = ordered_readers(s, &all);
	all.list = ordered.list;
	bool fit = true;
	for (size_t i = 0; i < all.list.count; i++)
		fit = fit && lanes_fit(s->module, value->type, wanted_by(&all, i));
	all.service_round = ARENA_ARRAY(s->module->arena, int64_t, all.list.count);
	if (fit && find_service_rounds(s, &all, all.service_round))
		readers->deferred = arena_copy(s->module->arena, &all, sizeof all);
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

bool is_sole_round_reader(const struct value *array, const struct op *op)
{
	const struct stream_readers *readers = array->data;
	const struct stream_readers *deferred = readers->deferred;
	int64_t service_round = 0;
	int count = 0;
	for (size_t i = 0; deferred && i < deferred->list.count; i++)
		service_round = deferred->list.data[i].op == op ? deferred->service_round[i]
		                                                : service_round;
	for (size_t i = 0; deferred && i < deferred->list.count; i++)
		count += deferred->service_round[i] == service_round;
	return service_round > 0 && count == 1;
}

void plan_shared_buffers(struct module *module, const struct block *block)
{
	int count = number_values(block, 0);
	struct reader_search s = { .module = module,
		.seen = ARENA_ARRAY(module->arena, int, count + 1),
		.below = ARENA_ARRAY(module->arena, bool, count + 1) };
	plan_block(&s, block);
}

void plan_loads(struct module *module, const struct block *block, int64_t most)
{
	int count = number_values(block, 0);
	struct reader_search s = { .module = module,
		.seen = ARENA_ARRAY(module->arena, int, count + 1),
		.below = ARENA_ARRAY(module->arena, bool, count + 1) };
	if (workload_of(block->parent) != WORKLOAD_NONE)
		return;
	for (const struct op *op = block->first; op; op = op->next)
		if (op->code == OP_LOAD && op->result[0]->data &&
		        stream_bytes(op->result[0]->type) > most)
			plan_load(&s, op->result[0]);
}

static void collect_readers(struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		for (int j = 0; j < op->operands; j++) {
			struct value *value = op->operand[j];
			if (value->type->kind != TYPE_ITENSOR)
				continue;
			struct stream_readers *readers = value->data
			        ? value->data
			        : ARENA_NEW(module->arena, struct stream_readers);
			value->data = readers;
			VEC_PUSH(module->arena, &readers->list, ((struct stream_reader){ op, j }));
		}
		if (op->code == OP_FOR)
			collect_readers(module, op->region[0]);
	}
}

void collect_stream_readers(struct module *module, struct block *block)
{
	ir_clear_data(block);
	collect_readers(module, block);
}
