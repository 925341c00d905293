/* Emits kernels, gathers and loads at stream level, and a demand for each operand: a placeholder
 * converter to the type that the operand needs, which insert_converters.c replaces. */
#include "ir/kernel_edit.h"
#include "ir/workload.h"
#include "base/number.h"
#include "ir/launch_tokens.h"
#include "schedule/recorded_choices.h"
#include "schedule/register_tile.h"
#include "streams/recompute_kernels.h"
#include "streams/stream_builder.h"

#define GATHER_PORTS 8      /* most that bring a row side by side */
#define GATHERED_WORDS 4096 /* of a port, from which on that is worth it */

void set_stream_tensor(struct module *module, struct op *op, const struct type *tensor)
{
	attr_set(module, op, KEY_TENSOR, attr_type(module, tensor));
}

/* The operands that name a tensor in memory: inside a rolled layer the counter, then one a layer.
 * Returns how many. */
static int append_memory(
        const struct streams *s, const struct tensor_source *tensor_source, struct value **operand)
{
	int count = 0;
	if (tensor_source->layered)
		operand[count++] = s->layer;
	for (int i = 0; i < tensor_source->count; i++)
		operand[count++] = tensor_source->argument[i];
	return count;
}

static struct value *emit_load(struct streams *s, const struct tensor_source *tensor_source,
        const struct type *type, int ports)
{
	struct module *module = s->module;
	/* a load of the same words exists already */
	for (struct op *op = s->block->first; op; op = op->next)
		if (op->code == OP_LOAD && op->result[0]->type == type &&
		        op->operand[op->operands - 1] ==
		                tensor_source->argument[tensor_source->count - 1] &&
		        op->operand[op->operands - tensor_source->count] ==
		                tensor_source->argument[0])
			return op->result[0];
	struct value **operand =
	        ARENA_ARRAY(module->arena, struct value *, tensor_source->count + 1);
	int count = append_memory(s, tensor_source, operand);
	struct op *load = op_new(module, OP_LOAD, NOWHERE, count, operand, 1, &type);
	set_stream_tensor(module, load, tensor_source->tensor);
	if (ports)
		attr_set(module, load, KEY_PORTS, attr_integer(module, ports));
	op_append(s->block, load);
	return load->result[0];
}

/* A demand for `stream` in another type. */
static struct value *demand(
        struct streams *s, struct value *stream, const struct type *tensor, const struct type *type)
{
	struct value *value = build(s->module, s->block, OP_CONVERT, type, 1, &stream);
	set_stream_tensor(s->module, value->def, tensor);
	attr_set(s->module, value->def, KEY_DEMAND, attr_unit(s->module));
	return value;
}

/* Selects each layer's own stream by the layer counter; all of the streams flow in every layer. */
static struct value *emit_layer_mux(
        struct streams *s, const struct tensor_source *tensor_source, const struct type *type)
{
	struct module *module = s->module;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, tensor_source->count);
	for (int i = 0; i < tensor_source->count; i++)
		operand[i] = demand_stream(s, tensor_source->choice[i], type, 0);
	struct value *value =
	        build(module, s->block, OP_LAYER_MUX, type, tensor_source->count, operand);
	attr_set(module, value->def, KEY_TABLE,
	        attr_integers(module, tensor_source->layers, tensor_source->table));
	set_stream_tensor(module, value->def, tensor_source->tensor);
	return value;
}

/* Elements that a stream sends, with or without the repetitions of its replay loops. */
static int64_t elements_sent(const struct itensor *order, int64_t lanes, bool with_replay)
{
	for (int i = 0; i < order->dims; i++)
		lanes *= with_replay || !is_replay_dim(order, i) ? order->trip[i] : 1;
	return lanes;
}

/* The type without replay loops that a load should not repeat: in a launch of several tokens they
 * would be short bursts, and for a vector that is repeated the loader would be the bottleneck. A
 * converter replays the words from its buffer. */
static const struct type *type_sent_once(struct module *module, const struct type *type)
{
	const struct itensor *order = type->itensor;
	int dims = order->dims;
	int used_dims = 0;
	int results = order->map.results;
	int moved = 0;
	bool all = is_cached_on_chip((double)elements_sent(order, stream_lanes(type), true),
	        (double)elements_sent(order, stream_lanes(type), false));
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, dims + 1);
	int64_t *step = ARENA_ARRAY(module->arena, int64_t, dims + 1);
	int64_t *rows = affine_rows(module->arena, dims, results);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(module->arena, const struct run_time_trip *, dims + 1);
	for (int i = 0; i < dims; i++) {
		bool still = is_replay_dim(order, i);
		if (still && (all || (moved && order->run_time && order->run_time[i])))
			continue;
		moved += !still;
		for (int r = 0; r < results; r++)
			rows[r * (dims + 1) + used_dims] = affine_at(order->map, r, i);
		run_time[used_dims] = order->run_time ? order->run_time[i] : NULL;
		trip[used_dims] = order->trip[i];
		step[used_dims++] = order->step[i];
	}
	for (int r = 0; r < results; r++)
		rows[r * (dims + 1) + dims] = affine_constant(order->map, r);
	if (used_dims == dims)
		return type;
	return type_canonical(module, type->element,
	        &(struct itensor){ .dims = used_dims,
	                .trip = trip,
	                .step = step,
	                .run_time = run_time,
	                .map = { used_dims, results,
	                        narrowed_rows(module->arena, results, rows, dims, used_dims) } });
}

struct value *demand_stream(struct streams *s, const struct tensor_source *tensor_source,
        const struct type *type, int ports)
{
	if (tensor_source->kind == SOURCE_LAYER_MUX)
		return emit_layer_mux(s, tensor_source, type);
	if (tensor_source->kind == SOURCE_STREAM)
		return demand(s, tensor_source->stream, tensor_source->tensor, type);
	INVARIANT(s->module->guard, tensor_source->kind == SOURCE_MEMORY,
	        "a tensor that nothing makes");
	if (tensor_source->ordered)
		return demand(s,
		        emit_load(s, tensor_source, state_order(s, tensor_source, type), 1),
		        tensor_source->tensor, type);
	int64_t most = PORT_BITS / type_bits(type_scalar(type));
	int64_t lanes = stream_lanes(type);
	const struct type *once = type_sent_once(s->module, type);
	most *= ports ? ports : 1;
	const struct type *narrow = lanes > most ? type_regroup(s->module, once, most) : once;
	if (!tensor_source->is_launch_input || !narrow->itensor->run_time)
		return demand(
		        s, emit_load(s, tensor_source, narrow, ports), tensor_source->tensor, type);
	return demand(s,
	        emit_token_padding(s,
	                emit_load(s, tensor_source, full_extent_type(s->module, narrow), ports),
	                tensor_source->tensor, narrow),
	        tensor_source->tensor, type);
}

void append_producer(struct streams *s, const struct op *old, struct op *op)
{
	const struct type *tensor = old->result[0]->type;
	set_stream_tensor(s->module, op, tensor);
	op_append(s->block, op);
	struct tensor_source *tensor_source = tensor_source_of(old->result[0]);
	tensor_source->kind = SOURCE_STREAM;
	tensor_source->tensor = tensor;
	tensor_source->stream = op->result[0];
}

/* The same elements in the widest words that one memory port brings; a word of several rows fills a
 * power of two. */
static const struct type *narrowed_to_port(struct module *module, const struct type *type)
{
	int64_t lanes = stream_lanes(type);
	int64_t bits = type_bits(type_scalar(type));
	for (int64_t parts = 1; parts <= lanes; parts++) {
		int64_t part = lanes / parts;
		const struct type *narrow = type;
		if (lanes % parts || part * bits > PORT_BITS)
			continue;
		narrow = parts == 1 ? type : type_regroup(module, type, part);
		if (narrow && (!type_has_rows(narrow) || power_of_two_in(part, part) == part))
			return narrow;
	}
	return type;
}

/* Words that are loaded once, by one port or the loader that small operands share: numbers of a
 * channel that are no factors of products are few. */
static struct value *load_once(struct streams *s, const struct tensor_source *source,
        const struct type *type, bool own_port)
{
	struct value *words = emit_load(s, source, narrowed_to_port(s->module, type), own_port);
	if (words->type != type) {
		words = build(s->module, s->block, OP_CAST, type, 1, &words);
		set_stream_tensor(s->module, words->def, source->tensor);
	}
	return words;
}

/* Can several ports bring the words, each a part of them?  One of several rows is cut in powers of
 * two. */
static bool is_cut_by_ports(const struct type *words, int ports)
{
	int64_t lanes = stream_lanes(words);
	return !type_has_rows(words) || (ports > 1 && power_of_two_in(lanes, lanes) == lanes);
}

/* An operand of a register tile or a folded kernel: its loader sends the words that are not held on
 * chip, and a converter sends them as often as the kernel takes them. */
static struct value *demand_tile_operand(struct streams *s, const struct op *old,
        const struct schedule *schedule, int j, const struct type *type)
{
	struct module *module = s->module;
	const struct tensor_source *source = tensor_source_of(old->operand[j]);
	struct schedule once = *schedule;
	once.parts = 0;
	once.part = ARENA_ARRAY(module->arena, struct schedule_part, schedule->parts + 1);
	int loops = schedule_loops(schedule);
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, schedule->parts + 1);
	bool windows = !has_folding(old) && tile_windows(old->kernel, schedule, j, trip) < loops;
	for (int i = 0; i < schedule->parts; i++) {
		if (i >= schedule->held[j] && i < loops &&
		        !old->kernel->operand[j].stride[schedule->part[i].source])
			continue;
		once.part[once.parts] = schedule->part[i];
		once.part[once.parts++].trip =
		        windows && i < loops ? trip[i] : schedule->part[i].trip;
	}
	if (source->kind != SOURCE_MEMORY || source->ordered)
		return demand_stream(s, source, type, 0);
	const struct type *sent =
	        schedule_port_type(module, old->kernel, &once, j, old->operand[j]->type, NULL);
	int ports = schedule->ports ? (int)schedule->ports[j]
	                            : tile_ports(stream_lanes(sent), type_bits(type_scalar(sent)));
	/* what a folded kernel holds is filled before its first pixel comes; what it takes word by
	 * word comes as fast as it takes it */
	bool at_pace =
	        sent == type && kernel_has_reduction(old->kernel) && is_cut_by_ports(sent, ports);
	if (has_folding(old) && at_pace)
		return demand(s, emit_load(s, source, sent, ports), source->tensor, type);
	if (has_folding(old)) {
		bool own_port = kernel_has_reduction(old->kernel) || sent == type;
		return demand(s, load_once(s, source, sent, own_port), source->tensor, type);
	}
	int64_t part =
	        ports ? tile_part(stream_lanes(sent), type_bits(type_scalar(sent)), ports) : 0;
	if (part && part < stream_lanes(sent))
		sent = type_regroup(module, sent, part);
	struct value *words = demand(s, emit_load(s, source, sent, ports), source->tensor, type);
	attr_set(module, words->def, KEY_HELD, attr_unit(module));
	return words;
}

/* Memory ports of a bulk operand: as many as its words fill. */
static int bulk_ports(const struct parallelism *parallelism, const struct type *type)
{
	int64_t own = stream_lanes(type) * type_bits(type_scalar(type)) / PORT_BITS;
	if (own < 1)
		return 1;
	return own < parallelism->ports ? (int)own : parallelism->ports;
}

bool emit_kernel(struct streams *s, const struct op *old)
{
	struct module *module = s->module;
	const struct parallelism parallelism = recorded_parallelism(old);
	const struct schedule chosen = recorded_schedule(module->arena, old);
	const struct schedule *schedule = &chosen;
	const struct kernel *kernel = old->kernel;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, old->operands + 1);
	const struct row_predicate **row_predicate =
	        ARENA_ARRAY(module->arena, const struct row_predicate *, old->operands + 1);
	s->tiles = kernel->tile_outermost ? kernel->loop[0].extent : 0;
	for (int j = 0; j < old->operands; j++) {
		row_predicate[j] = schedule_row_predicate(module->arena, old, schedule, j);
		const struct type *type = schedule_port_type(
		        module, kernel, schedule, j, old->operand[j]->type, row_predicate[j]);
		INVARIANT(module->guard, type, "kernel %s: operand %d has no stream type",
		        kernel->name, j);
		int ports =
		        parallelism_has_ports(&parallelism, j) ? bulk_ports(&parallelism, type) : 0;
		if (schedule->held) {
			operand[j] = demand_tile_operand(s, old, schedule, j, type);
			continue;
		}
		operand[j] = row_predicate[j]
		        ? demand_padded(s, old->operand[j]->def, row_predicate[j],
		                  kernel->operand[j].causal_pitch, type)
		        : demand_stream(s, tensor_source_of(old->operand[j]), type, ports);
		if (kernel->operand[j].causal_pitch && operand[j]->def &&
		        attr_get(operand[j]->def, KEY_DEMAND))
			attr_set(module, operand[j]->def, KEY_CAUSAL,
			        attr_integers(module, 2,
			                (const int64_t[]){ kernel->loop[0].extent,
			                        kernel->operand[j].causal_pitch }));
	}
	const struct type *result =
	        schedule_port_type(module, kernel, schedule, -1, old->result[0]->type, NULL);
	INVARIANT(module->guard, result, "kernel %s: its result has no stream type", kernel->name);
	s->tiles = 0;
	struct op *op =
	        op_new(module, OP_KERNEL, old->location, old->operands, operand, 1, &result);
	op->kernel = schedule_apply(module, s->context->platform, kernel, old->operands, schedule);
	for (int j = 0; j < old->operands; j++)
		op->kernel->operand[j].row_predicate = row_predicate[j];
	append_producer(s, old, op);
	return true;
}

/* stream.dims of gathered rows whose number is a run-time count; NULL: it is fixed. */
static const struct attr *gathered_dims(
        struct module *module, const struct kernel *kernel, const struct type *tensor)
{
	for (int l = 0; l < kernel->loops; l++) {
		const struct run_time_trip *trip = kernel->loop[l].run_time;
		int64_t inside = l + 1 < kernel->loops && kernel->loop[l + 1].run_time
		        ? kernel->loop[l + 1].extent
		        : 1;
		if (trip)
			return token_dims(module, tensor,
			        token_axis(tensor, kernel->result.stride[l] / inside,
			                kernel->loop[l].extent * inside),
			        trip->symbol);
	}
	return NULL;
}

/* Memory ports that bring a row side by side, where a launch gathers many rows and nothing else
 * does: a column of the table each. */
static int gather_ports(const struct op *op)
{
	const struct type *tensor = op->result[0]->type;
	int64_t bits = type_elements(tensor) * type_bits(type_scalar(tensor));
	if (op->parent->parent->code == OP_FOR || workload_of(op) != WORKLOAD_NONE ||
	        bits < GATHERED_WORDS * PORT_BITS)
		return 1;
	for (const struct op *other = op->parent->first; other; other = other->next)
		if (other != op && other->code == OP_KERNEL && kernel_is_gather(other))
			return 1;
	int64_t row = tensor->shape[tensor->rank - 1] * type_bits(type_scalar(tensor));
	int ports = 1;
	while (2 * ports <= GATHER_PORTS && row % (2 * ports * PORT_BITS) == 0)
		ports *= 2;
	return ports;
}

bool emit_gather(struct streams *s, const struct op *old)
{
	struct module *module = s->module;
	const struct kernel *kernel = old->kernel;
	const struct tensor_source *table = tensor_source_of(old->operand[1]);
	if (table->kind != SOURCE_MEMORY || table->ordered) {
		diag_error(module->diag, old->location,
		        "a gather from a tensor that a kernel computes");
		return diag_note(module->diag, "rows can be gathered from arguments and constants");
	}
	const struct type *tensor = old->result[0]->type;
	const struct type *order = natural_order_to(module, tensor,
	        gathered_dims(module, kernel, tensor), PORT_BITS * gather_ports(old));
	/* rows of a single element */
	bool scalar = !kernel->loops || kernel->operand[1].stride[kernel->loops - 1] != 1;
	int64_t pitch = kernel->operand[1].index_stride;
	int64_t offset = kernel->operand[1].offset;
	int64_t lanes = scalar ? 1 : stream_lanes(order);
	while (pitch % lanes || offset % lanes)
		lanes /= 2;
	const struct type *type =
	        lanes == stream_lanes(order) ? order : type_regroup(module, order, lanes);
	struct schedule schedule = { .parts = kernel->loops,
		.lanes = 1,
		.row_unroll = 1,
		.part = ARENA_ARRAY(module->arena, struct schedule_part, kernel->loops + 1) };
	for (int l = 0; l < kernel->loops; l++)
		schedule.part[l] = (struct schedule_part){
			.source = l, .trip = kernel->loop[l].extent, .step = 1
		};
	const struct tensor_source *rows = tensor_source_of(old->operand[0]);
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, table->count + 2);
	int operands = append_memory(s, table, operand);
	operand[operands++] = demand_stream(
	        s, rows, schedule_port_type(module, kernel, &schedule, 0, rows->tensor, NULL), 0);
	struct op *op = op_new(module, OP_GATHER, old->location, operands, operand, 1, &type);
	int64_t length = 1;
	for (int l = 0; l < kernel->loops; l++)
		length *= kernel->operand[1].stride[l] ? kernel->loop[l].extent : 1;
	attr_set(module, op, KEY_ROW_PITCH, attr_integer(module, pitch));
	attr_set(module, op, KEY_LENGTH, attr_integer(module, length));
	attr_set(module, op, KEY_OFFSET, attr_integer(module, offset));
	attr_set(module, op, KEY_LIMIT, attr_integer(module, kernel->operand[1].index_limit));
	append_producer(s, old, op);
	return true;
}
