/* Kernels, gathers and loads of make_streams. */
#include "ir/rows.h"
#include "pass/repeat_kernels.h"
#include "pass/streams.h"

#define KEPT_MOST 16384       /* elements of a tensor that is kept on chip rather than read again */
#define AGAIN_LEAST 16384     /* elements that would be read again, from which on it is: a row for each of some tokens */

void set_stream_tensor(struct module *module, struct op *op, const struct type *tensor)
{
	attr_set(module, op, "tensor", attr_type(module, tensor));
}

const struct type *stream_tensor(const struct value *stream)
{
	const struct value *value = stream;
	while (!value->def) {                     /* carried by a rolled layer: what goes in has the same tensor */
		const struct op *loop = value->block->parent;
		value = loop->operand[2 + value->index];
	}
	if (value->def->code == OP_FOR)
		return stream_tensor(value->def->operand[3 + value->index]);
	return attr_get(value->def, "tensor")->type;
}

const struct type *natural_order(struct module *module, const struct type *tensor)
{
	return natural_order_to(module, tensor, NULL, PORT_BITS);
}

/* What stream.dims says of dim d: `most` tiles from `first` on, or as many of them as `trip` says; in words of at most `word`. */
struct points {
	int64_t first, tile, most, word;
	const struct run_time_trip *trip, *each;      /* each: of what lies in a tile */
};

static struct points points_of(struct arena *arena, const struct attr *dims, int d, int64_t extent)
{
	const struct attr *dim = dims ? dims->items[d].value : NULL, *symbol = dim ? attr_item(dim, "symbol") : NULL;
	struct points points = {.tile = 1, .most = extent, .word = INT64_MAX};
	struct run_time_trip trip = {.tile = 1, .most = extent};
	if (!dim || (dim->kind == ATTR_STRING && !*dim->text))
		return points;
	trip.symbol = dim->kind == ATTR_STRING ? dim->text : symbol ? symbol->text : NULL;
	if (dim->kind == ATTR_DICTIONARY) {
		points = (struct points){attr_item(dim, "first")->integer, attr_item(dim, "tile")->integer, attr_item(dim, "most")->integer, attr_item_integer(dim, "word", INT64_MAX), NULL, NULL};
		trip.tile = points.tile;
		trip.most = points.most;
		trip.plus = symbol ? attr_item(dim, "plus")->integer : 0;
	}
	if (trip.symbol && points.most > 1)
		points.trip = arena_copy(arena, &trip, sizeof trip);
	if (dim->kind == ATTR_DICTIONARY && attr_item(dim, "each") && points.tile > 1) {
		const struct run_time_trip each = {.symbol = trip.symbol, .plus = trip.plus, .tile = 1, .most = points.tile};
		points.each = arena_copy(arena, &each, sizeof each);
	}
	return points;
}

/* The first `count` of `wide` columns, and the constants. */
static int64_t *narrowed_rows(struct arena *arena, int results, const int64_t *rows, int wide, int count)
{
	int64_t *narrow = affine_rows(arena, count, results);
	for (int r = 0; r < results; r++)
		for (int i = 0; i < count; i++)
			narrow[r * (count + 1) + i] = rows[r * (wide + 1) + i];
	for (int r = 0; r < results; r++)
		narrow[r * (count + 1) + count] = rows[r * (wide + 1) + wide];
	return narrow;
}

/* Points of the dim outside the last one that are in a word as well, of which it has all. */
static int64_t word_rows(const struct points *points, int64_t extent, int64_t most)
{
	int64_t rows = 1, last = points->tile > 1 ? points->tile : points->trip ? 1 : points->most;
	most = most < points->word ? most : points->word;
	while (2 * rows <= most && last % (2 * rows) == 0 && points->first % (2 * rows) == 0 && extent % (2 * rows) == 0)
		rows *= 2;
	return rows;
}

const struct type *natural_order_to(struct module *module, const struct type *tensor, const struct attr *dims, int64_t bits)
{
	int rank = tensor->rank, count = 0, wide = 2 * rank;
	const struct type *scalar = type_scalar(tensor);
	struct points points = rank ? points_of(module->arena, dims, rank - 1, tensor->shape[rank - 1]) : (struct points){.tile = 1, .most = 1, .word = 1};
	int64_t lanes = 1, last = points.tile > 1 ? points.tile : points.most, most = bits / type_bits(scalar), more = 1;
	most = most < points.word ? most : points.word;
	while (2 * lanes <= most && last % (2 * lanes) == 0 && points.first % (2 * lanes) == 0)
		lanes *= 2;
	if (rank > 1 && lanes == tensor->shape[rank - 1]) {
		points = points_of(module->arena, dims, rank - 2, tensor->shape[rank - 2]);
		more = word_rows(&points, tensor->shape[rank - 2], bits > PORT_BITS ? most / lanes : 1);
	}
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, wide + 1), *step = ARENA_ARRAY(module->arena, int64_t, wide + 1);
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, rank + 1), *rows = affine_rows(module->arena, wide, rank + 1);
	const struct run_time_trip **run_time = ARENA_ARRAY(module->arena, const struct run_time_trip *, wide + 1);
	for (int d = 0; d < rank; d++) {
		int64_t word = shape[d] = d == rank - 1 ? lanes : d == rank - 2 ? more : 1;
		points = points_of(module->arena, dims, d, tensor->shape[d]);
		rows[d * (wide + 1) + wide] = points.first;
		if (points.tile > 1) {
			run_time[count] = points.trip;
			rows[d * (wide + 1) + count] = 1;
			trip[count] = points.most;
			step[count++] = points.tile;
			run_time[count] = points.each;
		} else if (word == 1) {
			run_time[count] = points.trip;
		}
		rows[d * (wide + 1) + count] = 1;
		trip[count] = (points.tile > 1 ? points.tile : points.most) / word;
		step[count++] = word;
	}
	const struct type *tile = lanes * more == 1 ? scalar : type_shaped(module, TYPE_VECTOR, rank, shape, scalar);
	int results = rank ? rank : 1;
	return type_canonical(module, tile, count, trip, run_time, step, results, narrowed_rows(module->arena, results, rows, wide, count));
}

enum reach *reach_of(struct arena *arena, const struct op *kernel)
{
	enum reach *reach = ARENA_ARRAY(arena, enum reach, kernel->operands + 1);
	for (int j = 0; j < kernel->operands; j++) {
		const struct flow *flow = flow_of(kernel->operand[j]);
		reach[j] = flow->kind != FLOW_MEMORY ? REACH_CHIP : flow->ordered ? REACH_ORDERED : REACH_PACKED;
	}
	return reach;
}

bool only_stored(const struct op *kernel)
{
	const struct flow *flow = flow_of(kernel->result[0]);
	return flow && flow->stored && !flow->read;
}

static struct value *emit_load(struct streams *s, const struct flow *flow, const struct type *type, int ports)
{
	struct module *module = s->module;
	for (struct op *op = s->block->first; op; op = op->next)         /* the same words were asked for before */
		if (op->code == OP_LOAD && op->result[0]->type == type && op->operand[op->operands - 1] == flow->argument[flow->count - 1] &&
		    op->operand[op->operands - flow->count] == flow->argument[0])
			return op->result[0];
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, flow->count + 1);
	int count = 0;
	if (flow->layered)
		operand[count++] = s->layer;
	for (int i = 0; i < flow->count; i++)
		operand[count++] = flow->argument[i];
	struct op *load = op_new(module, OP_LOAD, NOWHERE, count, operand, 1, &type);
	set_stream_tensor(module, load, flow->tensor);
	if (ports)
		attr_set(module, load, "ports", attr_integer(module, ports));
	op_append(s->block, load);
	return load->result[0];
}

/* A wish: a converter that resolve_streams turns into what is really needed. */
static struct value *wish(struct streams *s, struct value *stream, const struct type *tensor, const struct type *type)
{
	struct value *value = build(s->module, s->block, OP_CONVERT, type, 1, &stream);
	set_stream_tensor(s->module, value->def, tensor);
	attr_set(s->module, value->def, "wish", attr_unit(s->module));
	return value;
}

/* The stream of a layer's own choice; all of them flow every layer. */
static struct value *choose(struct streams *s, const struct flow *flow, const struct type *type)
{
	struct module *module = s->module;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, flow->count);
	for (int i = 0; i < flow->count; i++)
		operand[i] = want_stream(s, flow->choice[i], type, 0);
	struct value *value = build(module, s->block, OP_CHOOSE, type, flow->count, operand);
	attr_set(module, value->def, "table", attr_integers(module, flow->layers, flow->table));
	set_stream_tensor(module, value->def, flow->tensor);
	return value;
}

/* Elements that the words of the stream have: all; of loops that do not stand still. */
static int64_t elements_sent(const struct itensor *order, int64_t lanes, bool again)
{
	for (int i = 0; i < order->dims; i++)
		lanes *= again || !stands_still(order, i) ? order->trip[i] : 1;
	return lanes;
}

bool is_kept(double elements, double once)
{
	return once <= KEPT_MOST && elements - once >= AGAIN_LEAST;
}

/* Without the loops that send words again: where those are a few for every row of a launch, they would be short bursts, and where a vector comes again and again, its loader would be what
 * everything waits for.  A converter that holds them serves. */
static const struct type *sent_once(struct module *module, const struct type *type)
{
	const struct itensor *order = type->itensor;
	int dims = order->dims, kept = 0, results = order->map.results, moved = 0;
	bool all = is_kept((double)elements_sent(order, stream_lanes(type), true), (double)elements_sent(order, stream_lanes(type), false));
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, dims + 1), *step = ARENA_ARRAY(module->arena, int64_t, dims + 1), *rows = affine_rows(module->arena, dims, results);
	const struct run_time_trip **run_time = ARENA_ARRAY(module->arena, const struct run_time_trip *, dims + 1);
	for (int i = 0; i < dims; i++) {
		bool still = stands_still(order, i);
		if (still && (all || (moved && order->run_time && order->run_time[i])))
			continue;
		moved += !still;
		for (int r = 0; r < results; r++)
			rows[r * (dims + 1) + kept] = affine_at(order->map, r, i);
		run_time[kept] = order->run_time ? order->run_time[i] : NULL;
		trip[kept] = order->trip[i];
		step[kept++] = order->step[i];
	}
	for (int r = 0; r < results; r++)
		rows[r * (dims + 1) + dims] = affine_constant(order->map, r);
	return kept == dims ? type : type_canonical(module, type->element, kept, trip, run_time, step, results, narrowed_rows(module->arena, results, rows, dims, kept));
}

struct value *want_stream(struct streams *s, const struct flow *flow, const struct type *type, int ports)
{
	if (flow->kind == FLOW_CHOICE)
		return choose(s, flow, type);
	if (flow->kind == FLOW_STREAM)
		return wish(s, flow->stream, flow->tensor, type);
	INVARIANT(s->module->guard, flow->kind == FLOW_MEMORY, "a tensor that nothing makes");
	if (flow->ordered)
		return wish(s, emit_load(s, flow, state_order(s, flow, type), 1), flow->tensor, type);
	int64_t most = 512 / type_bits(type_scalar(type)), lanes = stream_lanes(type);
	const struct type *once = sent_once(s->module, type);
	const struct type *narrow = lanes > most * (ports ? ports : 1) ? type_regroup(s->module, once, most * (ports ? ports : 1)) : once;
	if (!flow->given || !narrow->itensor->run_time)
		return wish(s, emit_load(s, flow, narrow, ports), flow->tensor, type);
	return wish(s, emit_rows(s, emit_load(s, flow, all_there(s->module, narrow), ports), flow->tensor, narrow), flow->tensor, type);
}

void append_maker(struct streams *s, const struct op *old, struct op *op)
{
	const struct type *tensor = old->result[0]->type;
	set_stream_tensor(s->module, op, tensor);
	op_append(s->block, op);
	struct flow *flow = flow_of(old->result[0]);
	flow->kind = FLOW_STREAM;
	flow->tensor = tensor;
	flow->stream = op->result[0];
}

bool emit_kernel(struct streams *s, const struct op *old)
{
	const struct width *width = &s->width[old->result[0]->id];
	const struct plan *plan = &s->plan[old->result[0]->id];
	struct module *module = s->module;
	const struct kernel *kernel = old->kernel;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, old->operands + 1);
	const struct turns_there **there = ARENA_ARRAY(module->arena, const struct turns_there *, old->operands + 1);
	s->tiles = kernel->tiled ? kernel->loop[0].extent : 0;
	for (int j = 0; j < old->operands; j++) {
		there[j] = plan_turns_there(module->arena, old, plan, j);
		const struct type *type = plan_port_type(module, kernel, plan, j, old->operand[j]->type, there[j]);
		INVARIANT(module->guard, type, "kernel %s: operand %d has no stream type", kernel->name, j);
		int64_t own = stream_lanes(type) * type_bits(type_scalar(type)) / 512;
		int ports = j != width->bulk ? 0 : own < 1 ? 1 : own < width->ports ? (int)own : width->ports;
		operand[j] = there[j] ? want_filled(s, old->operand[j]->def, there[j], kernel->operand[j].later, type) : want_stream(s, flow_of(old->operand[j]), type, ports);
		if (kernel->operand[j].later && operand[j]->def && attr_get(operand[j]->def, "wish"))
			attr_set(module, operand[j]->def, "later", attr_integers(module, 2, (const int64_t[]){kernel->loop[0].extent, kernel->operand[j].later}));
	}
	const struct type *result = plan_port_type(module, kernel, plan, -1, old->result[0]->type, NULL);
	INVARIANT(module->guard, result, "kernel %s: its result has no stream type", kernel->name);
	s->tiles = 0;
	struct op *op = op_new(module, OP_KERNEL, old->location, old->operands, operand, 1, &result);
	op->kernel = plan_apply(module, s->context->platform, kernel, old->operands, plan);
	for (int j = 0; j < old->operands; j++)
		op->kernel->operand[j].there = there[j];
	append_maker(s, old, op);
	return true;
}

/* What stream.dims would say of rows that a run-time count bounds; NULL: none are. */
static const struct attr *gathered_dims(struct module *module, const struct kernel *kernel, const struct type *tensor)
{
	for (int l = 0; l < kernel->loops; l++) {
		const struct run_time_trip *trip = kernel->loop[l].run_time;
		int64_t inside = l + 1 < kernel->loops && kernel->loop[l + 1].run_time ? kernel->loop[l + 1].extent : 1;
		if (trip)
			return rows_dims(module, tensor, rows_axis(tensor, kernel->result.stride[l] / inside, kernel->loop[l].extent * inside), trip->symbol);
	}
	return NULL;
}

bool emit_gather(struct streams *s, const struct op *old)
{
	struct module *module = s->module;
	const struct kernel *kernel = old->kernel;
	const struct flow *table = flow_of(old->operand[1]);
	if (table->kind != FLOW_MEMORY || table->layered || table->ordered) {
		diag_error(module->diag, old->location, "a gather from a tensor that a kernel computes");
		return diag_note(module->diag, "rows can be gathered from arguments and constants");
	}
	const struct type *tensor = old->result[0]->type, *order = natural_order_to(module, tensor, gathered_dims(module, kernel, tensor), PORT_BITS);
	bool scalar = !kernel->loops || kernel->operand[1].stride[kernel->loops - 1] != 1;     /* rows of one element */
	int64_t pitch = kernel->operand[1].index_stride, offset = kernel->operand[1].offset, lanes = scalar ? 1 : stream_lanes(order);
	while (pitch % lanes || offset % lanes)
		lanes /= 2;
	const struct type *type = lanes == stream_lanes(order) ? order : type_regroup(module, order, lanes);
	struct plan plan = {.parts = kernel->loops, .lanes = 1, .rows = 1, .part = ARENA_ARRAY(module->arena, struct plan_part, kernel->loops + 1)};
	for (int l = 0; l < kernel->loops; l++)
		plan.part[l] = (struct plan_part){.source = l, .trip = kernel->loop[l].extent, .step = 1};
	const struct flow *rows = flow_of(old->operand[0]);
	struct value *operand[2] = {table->argument[0], want_stream(s, rows, plan_port_type(module, kernel, &plan, 0, rows->tensor, NULL), 0)};
	struct op *op = op_new(module, OP_GATHER, old->location, 2, operand, 1, &type);
	int64_t length = 1;
	for (int l = 0; l < kernel->loops; l++)
		length *= kernel->operand[1].stride[l] ? kernel->loop[l].extent : 1;
	attr_set(module, op, "row", attr_integer(module, pitch));
	attr_set(module, op, "length", attr_integer(module, length));
	attr_set(module, op, "offset", attr_integer(module, offset));
	attr_set(module, op, "limit", attr_integer(module, kernel->operand[1].index_limit));
	append_maker(s, old, op);
	return true;
}
