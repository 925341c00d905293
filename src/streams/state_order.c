/* Chooses the order and the word width in which a state (KV cache) is read: row-major, as it is
 * stored.
 *
 * Where all readers want equal parts of its outermost extent, each reads its own (lower_loads.c).
 * With an engine of few tokens, or of a run-time number of tiles, words are as wide as the widest
 * that a reader wants, from several memory ports in parallel. With one token they are twice as wide
 * if that gives each adapter one port, because channels of weights alone would finish before those
 * that also have rows of a state. If keys share the small operands' channel, values use half of the
 * adapters. */
#include "ir/workload.h"
#include "ir/sliding_window.h"
#include "ports/port_interleave.h"
#include "schedule/recorded_choices.h"
#include "streams/recompute_kernels.h"
#include "streams/stream_builder.h"

/* bits of a word of keys that share the small operands' channel: two ports for each part deliver
 * more than the channel does */
#define KEY_BITS 1024

/* Number of parts of this size in the row-major order; 1: it is no such part. number: which part it
 * is. */
static int64_t parts_like(struct module *module, const struct type *tensor,
        const struct type *natural, const struct type *wanted, int64_t *number)
{
	struct sequence have = sequence_of_type(module->arena, tensor, natural);
	struct sequence want = sequence_of_type(module->arena, tensor, wanted);
	*number = 0;
	if (!have.dims || (have.run_time && have.run_time[0]) || have.stride[0] <= 0 ||
	        want.offset < have.offset)
		return 1;
	int64_t first = want.offset - have.offset;
	int64_t last = first + (want.lanes - 1) * want.lane_stride;
	for (int i = 0; i < want.dims; i++)
		last += want.stride[i] * (want.trip[i] - 1);
	int64_t low = first / have.stride[0];
	int64_t extent = last / have.stride[0] + 1 - low;
	if (have.trip[0] % extent || low % extent)
		return 1;
	*number = low / extent;
	return have.trip[0] / extent;
}

/* The type repeated for each token tile, if the reader walks tiles outermost. */
static const struct type *with_replay(
        const struct streams *s, const struct type *type, const struct type *wanted)
{
	const struct itensor *want = wanted->itensor;
	bool tiles = s->tiles > 1 && want->dims > 1 && want->trip[0] == s->tiles &&
	        is_replay_dim(want, 0);
	if (!tiles)
		return type;
	const struct run_time_trip *run_time = want->run_time ? want->run_time[0] : NULL;
	return shift_loops(s->module, type, 1, s->tiles, run_time);
}

static const struct type *order_once(
        struct streams *s, const struct tensor_source *tensor_source, const struct type *wanted)
{
	struct module *module = s->module;
	const struct type *natural =
	        natural_order_to(module, tensor_source->tensor, tensor_source->dims,
	                tensor_source->bits > PORT_BITS ? tensor_source->bits : PORT_BITS);
	const struct itensor *order = natural->itensor;
	int64_t number;
	if (tensor_source->kv_partitions < 2 ||
	        parts_like(module, tensor_source->tensor, natural, wanted, &number) !=
	                tensor_source->kv_partitions)
		return natural;
	int64_t *trip = arena_copy(module->arena, order->trip, sizeof *trip * (size_t)order->dims);
	int64_t *step = arena_copy(module->arena, order->step, sizeof *step * (size_t)order->dims);
	int64_t *rows = affine_rows(module->arena, order->dims, order->map.results);
	trip[0] /= tensor_source->kv_partitions;
	for (int r = 0; r < order->map.results; r++) {
		int64_t *row = rows + r * (order->dims + 1);
		for (int i = 0; i < order->dims; i++)
			row[i] = affine_at(order->map, r, i);
		row[order->dims] =
		        affine_constant(order->map, r) + row[0] * step[0] * trip[0] * number;
	}
	return type_canonical(module, natural->element,
	        &(struct itensor){ .dims = order->dims,
	                .trip = trip,
	                .step = step,
	                .run_time = order->run_time,
	                .map = { order->dims, order->map.results, rows } });
}

const struct type *state_order(
        struct streams *s, const struct tensor_source *tensor_source, const struct type *wanted)
{
	return with_replay(s, order_once(s, tensor_source, wanted), wanted);
}

/* Bits of the words that parallel ports deliver for a reader. */
static int64_t wide_bits(const struct streams *s, const struct type *wanted, int64_t widest)
{
	int64_t bits = PORT_BITS;
	int64_t demand = stream_lanes(wanted) * type_bits(type_scalar(wanted));
	int64_t most = PORT_BITS * choice_count(&s->context->choices, CHOICE_KV_PORTS);
	while (2 * bits <= demand && 2 * bits <= most && 2 * bits <= widest)
		bits *= 2;
	return bits;
}

/* Can two halves of its heads be read one after the other (lower_loads.c)? Otherwise words of
 * run-time tiles are narrow, and several loaders deliver them in turn (port_interleave.c). */
static bool has_halves(const struct type *natural)
{
	const struct itensor *order = natural->itensor;
	return order->dims > 1 && order->trip[0] % 2 == 0 &&
	        !(order->run_time && order->run_time[0]);
}

/* Sets partitions and word bits of all states; readers that disagree about the partition read all
 * of it. */
static void mark_block(
        struct streams *s, const struct block *block, bool wide, bool counted, int64_t widest)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			mark_block(s, op->region[0], wide, counted, widest);
		for (int j = 0; op->code == OP_KERNEL && j < op->operands; j++) {
			struct tensor_source *tensor_source = tensor_source_of(op->operand[j]);
			if (tensor_source->kind != SOURCE_MEMORY || !tensor_source->ordered)
				continue;
			const struct schedule schedule = recorded_schedule(s->module->arena, op);
			const struct type *wanted = schedule_port_type(
			        s->module, op->kernel, &schedule, j, op->operand[j]->type, NULL);
			const struct type *natural = natural_order_to(
			        s->module, tensor_source->tensor, tensor_source->dims, PORT_BITS);
			int64_t number;
			int64_t kv_partitions = parts_like(
			        s->module, tensor_source->tensor, natural, wanted, &number);
			int64_t most =
			        !counted || has_halves(natural) ? widest : FEW_PORTS * PORT_BITS;
			int64_t bits = wide ? wide_bits(s, wanted, most) : 0;
			bool disagree = tensor_source->kv_partitions &&
			        tensor_source->kv_partitions != kv_partitions;
			tensor_source->kv_partitions = disagree ? 1 : kv_partitions;
			tensor_source->bits =
			        bits > tensor_source->bits ? bits : tensor_source->bits;
		}
	}
}

/* States whose words come through several ports, each listed once. */
struct wide_states {
	VEC(struct tensor_source *) source;
	int64_t ports; /* of all partitions together */
	int64_t bits;  /* of the widest word */
};

static void note_wide(
        struct streams *s, struct tensor_source *tensor_source, struct wide_states *wide)
{
	for (size_t i = 0; i < wide->source.count; i++)
		if (wide->source.data[i] == tensor_source)
			return;
	VEC_PUSH(s->module->arena, &wide->source, tensor_source);
	wide->ports += tensor_source->kv_partitions * tensor_source->bits / PORT_BITS;
	wide->bits = tensor_source->bits > wide->bits ? tensor_source->bits : wide->bits;
}

/* Lists the states whose words come through several ports; all: the others too. */
static void find_states(
        struct streams *s, const struct block *block, bool all, struct wide_states *found)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			find_states(s, op->region[0], all, found);
		for (int j = 0; op->code == OP_KERNEL && j < op->operands; j++) {
			struct tensor_source *source = tensor_source_of(op->operand[j]);
			bool state = source->kind == SOURCE_MEMORY && source->ordered;
			if (source->bits > PORT_BITS || (all && state))
				note_wide(s, source, found);
		}
	}
}

/* The part of a state that layers read, the mean over layers with and without a sliding window. */
static double part_read(const struct streams *s, const struct tensor_source *tensor_source)
{
	const struct itensor *order =
	        natural_order_to(s->module, tensor_source->tensor, tensor_source->dims, PORT_BITS)
	                ->itensor;
	struct sliding_window sliding_window;
	for (int i = 0; order->run_time && i < order->dims; i++)
		if (order->run_time[i] &&
		        sliding_window_named(
		                s->module, order->run_time[i]->symbol, &sliding_window))
			return sliding_window_fraction(&sliding_window);
	return 1;
}

static int64_t states_bits(const struct streams *s, const struct wide_states *wide, size_t count)
{
	double bits = 0;
	for (size_t i = 0; i < count; i++)
		bits += part_read(s, wide->source.data[i]) *
		        (double)(type_elements(wide->source.data[i]->tensor) *
		                type_bits(type_scalar(wide->source.data[i]->tensor)));
	return (int64_t)bits;
}

/* Can the channel of small operands deliver the first half of the states, keys? They then come word
 * by word (move_to_narrow_adapter in assign_axi_bundles.c). */
static bool keys_share_weight_port(
        const struct streams *s, const struct op *old, const struct wide_states *wide)
{
	int64_t weights = weights_bits(old->region[0], false) /
	        (s->context->platform->ports - NON_ENGINE_PORTS);
	int64_t keys = states_bits(s, wide, wide->source.count / 2);
	return keys && operands_share_weight_port(old) && channel_has_time(weights, 0, keys);
}

/* Can it deliver all of them, and their scales? Few ports then ask for as many words as it
 * delivers. */
static bool all_share_weight_port(
        struct streams *s, const struct op *old, const struct wide_states *wide)
{
	struct wide_states all = { 0 };
	find_states(s, old->region[0], true, &all);
	return wide->source.count &&
	        states_share_weight_port(s->context->platform, s->module, old,
	                states_bits(s, &all, all.source.count));
}

static void narrow_all(struct wide_states *wide)
{
	for (size_t i = 0; i < wide->source.count; i++)
		while (wide->source.data[i]->bits > KEY_BITS)
			wide->source.data[i]->bits /= 2;
}

/* Gives keys few ports and values half of the adapters. */
static void spread_after_keys(struct wide_states *wide, int64_t ports, int64_t most)
{
	for (size_t i = 0; i < wide->source.count; i++) {
		struct tensor_source *tensor_source = wide->source.data[i];
		bool key = i < wide->source.count / 2;
		while (key && tensor_source->bits > KEY_BITS)
			tensor_source->bits /= 2;
		while (!key && 2 * tensor_source->bits <= most &&
		        4 * tensor_source->bits * tensor_source->kv_partitions <= PORT_BITS * ports)
			tensor_source->bits *= 2;
	}
}

/* Widens the words so that each PE loader's adapter, and that of the scales, has one port of a
 * state; what is left shares the channel of small operands. */
static void spread_over_adapters(struct streams *s, const struct op *old)
{
	struct wide_states wide = { 0 };
	int64_t ports = s->context->platform->ports;
	int64_t asked = PORT_BITS * choice_count(&s->context->choices, CHOICE_KV_PORTS);
	int64_t most = asked < WORD_BITS ? asked : WORD_BITS;
	find_states(s, old->region[0], false, &wide);
	if (all_share_weight_port(s, old, &wide))
		narrow_all(&wide);
	else if (keys_share_weight_port(s, old, &wide))
		spread_after_keys(&wide, ports, most);
	else if (2 * wide.ports <= ports && 2 * wide.bits <= most)
		for (size_t i = 0; i < wide.source.count; i++)
			wide.source.data[i]->bits *= 2;
}

void mark_kv_partitions(struct streams *s, const struct op *old)
{
	const struct block *block = old->region[0];
	enum workload workload = workload_of(old);
	bool many = workload_has_many_tokens(workload);
	bool counted = workload == WORKLOAD_TILED_COUNTED_TOKENS;
	bool wide = cache_rows_serve_few_tokens(old) || counted;
	mark_block(s, block, wide, counted, many ? WORD_BITS / 2 : WORD_BITS);
	if (wide && !many)
		spread_over_adapters(s, old);
}
