/* Kernels, gathers and loads of make_streams. */
#include "pass/streams.h"

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
	return natural_order_to(module, tensor, NULL);
}

const struct type *natural_order_to(struct module *module, const struct type *tensor, const struct attr *dims)
{
	int rank = tensor->rank;
	const struct type *scalar = type_scalar(tensor);
	int64_t lanes = 1, last = rank ? tensor->shape[rank - 1] : 1, most = 512 / type_bits(scalar);
	while (2 * lanes <= most && last % (2 * lanes) == 0)
		lanes *= 2;
	int results = rank ? rank : 1;
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, results), *step = ARENA_ARRAY(module->arena, int64_t, results);
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, results), *rows = affine_rows(module->arena, rank, results);
	const struct run_time_trip **run_time = ARENA_ARRAY(module->arena, const struct run_time_trip *, results);
	for (int d = 0; d < rank; d++) {
		trip[d] = d == rank - 1 ? last / lanes : tensor->shape[d];
		step[d] = d == rank - 1 ? lanes : 1;
		shape[d] = d == rank - 1 ? lanes : 1;
		rows[d * (rank + 1) + d] = 1;
		if (dims && *dims->items[d].value->text && trip[d] == tensor->shape[d]) {
			const struct run_time_trip extent = {.symbol = dims->items[d].value->text, .tile = 1, .most = trip[d]};
			run_time[d] = arena_copy(module->arena, &extent, sizeof extent);
		}
	}
	const struct type *tile = lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, results, shape, scalar);
	return type_canonical(module, tile, rank, trip, run_time, step, results, rows);
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

struct value *want_stream(struct streams *s, const struct flow *flow, const struct type *type, int ports)
{
	if (flow->kind == FLOW_CHOICE)
		return choose(s, flow, type);
	if (flow->kind == FLOW_STREAM)
		return wish(s, flow->stream, flow->tensor, type);
	INVARIANT(s->module->guard, flow->kind == FLOW_MEMORY, "a tensor that nothing makes");
	if (flow->ordered)
		return wish(s, emit_load(s, flow, natural_order_to(s->module, flow->tensor, flow->dims), 1), flow->tensor, type);
	int64_t most = 512 / type_bits(type_scalar(type)), lanes = stream_lanes(type);
	const struct type *narrow = lanes > most * (ports ? ports : 1) ? type_regroup(s->module, type, most * (ports ? ports : 1)) : type;
	return wish(s, emit_load(s, flow, narrow, ports), flow->tensor, type);
}

bool emit_kernel(struct streams *s, const struct op *old)
{
	const struct width *width = &s->width[old->result[0]->id];
	const struct plan *plan = &s->plan[old->result[0]->id];
	struct module *module = s->module;
	const struct kernel *kernel = old->kernel;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, old->operands + 1);
	for (int j = 0; j < old->operands; j++) {
		const struct type *type = plan_port_type(module, kernel, plan, j, old->operand[j]->type);
		INVARIANT(module->guard, type, "kernel %s: operand %d has no stream type", kernel->name, j);
		int64_t own = stream_lanes(type) * type_bits(type_scalar(type)) / 512;
		int ports = j != width->bulk ? 0 : own < 1 ? 1 : own < width->ports ? (int)own : width->ports;
		operand[j] = want_stream(s, flow_of(old->operand[j]), type, ports);
	}
	const struct type *result = plan_port_type(module, kernel, plan, -1, old->result[0]->type);
	INVARIANT(module->guard, result, "kernel %s: its result has no stream type", kernel->name);
	struct op *op = op_new(module, OP_KERNEL, old->location, old->operands, operand, 1, &result);
	op->kernel = plan_apply(module, s->context->platform, kernel, old->operands, plan);
	set_stream_tensor(module, op, old->result[0]->type);
	op_append(s->block, op);
	struct flow *flow = flow_of(old->result[0]);
	flow->kind = FLOW_STREAM;
	flow->tensor = old->result[0]->type;
	flow->stream = op->result[0];
	return true;
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
	const struct type *tensor = old->result[0]->type, *order = natural_order(module, tensor);
	bool scalar = !kernel->loops || kernel->operand[1].stride[kernel->loops - 1] != 1;     /* rows of one element */
	int64_t pitch = kernel->operand[1].index_stride, offset = kernel->operand[1].offset, lanes = scalar ? 1 : stream_lanes(order);
	while (pitch % lanes || offset % lanes)
		lanes /= 2;
	const struct type *type = lanes == stream_lanes(order) ? order : type_regroup(module, order, lanes);
	struct plan plan = {.parts = kernel->loops, .lanes = 1, .rows = 1, .part = ARENA_ARRAY(module->arena, struct plan_part, kernel->loops + 1)};
	for (int l = 0; l < kernel->loops; l++)
		plan.part[l] = (struct plan_part){.source = l, .trip = kernel->loop[l].extent, .step = 1};
	const struct flow *rows = flow_of(old->operand[0]);
	struct value *operand[2] = {table->argument[0], want_stream(s, rows, plan_port_type(module, kernel, &plan, 0, rows->tensor), 0)};
	struct op *op = op_new(module, OP_GATHER, old->location, 2, operand, 1, &type);
	int64_t length = 1;
	for (int l = 0; l < kernel->loops; l++)
		length *= kernel->operand[1].stride[l] ? kernel->loop[l].extent : 1;
	attr_set(module, op, "row", attr_integer(module, pitch));
	attr_set(module, op, "length", attr_integer(module, length));
	attr_set(module, op, "offset", attr_integer(module, offset));
	attr_set(module, op, "limit", attr_integer(module, kernel->operand[1].index_limit));
	set_stream_tensor(module, op, tensor);
	op_append(s->block, op);
	struct flow *flow = flow_of(old->result[0]);
	flow->kind = FLOW_STREAM;
	flow->tensor = tensor;
	flow->stream = op->result[0];
	return true;
}
