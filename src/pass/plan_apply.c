/* A plan applied: the scheduled kernel, its port types, its initiation interval. */
#include "pass/schedule.h"
#include "pass/sequence.h"

static bool is_lane(const struct plan *plan, int part)
{
	return plan->lanes > 1 && part == plan->parts - 1;
}

static bool is_row(const struct plan *plan, int part)
{
	return plan->rows > 1 && part == plan->parts - 2;
}

/* Cycles between two updates of one accumulator, at one update a cycle. */
static int64_t update_distance(const struct kernel *kernel, const struct plan *plan, bool *carried)
{
	int64_t distance = 1;
	*carried = false;
	for (int i = plan->parts - 1; i >= 0; i--) {
		if (is_lane(plan, i) || is_row(plan, i) || plan->part[i].trip == 1)
			continue;
		if (kernel->loop[plan->part[i].source].reduction) {
			*carried = true;
			return distance;
		}
		distance *= plan->part[i].trip;
	}
	return distance;
}

/* Latency of the operations between the accumulator and the update's result. */
static int chain_latency(const struct platform *platform, struct arena *arena, const struct kernel *kernel)
{
	const struct body *body = &kernel->update;
	int *latency = ARENA_ARRAY(arena, int, body->count + 1);
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		latency[n] = node->kind == NODE_ACCUMULATOR ? 0 : -1;
		for (int a = 0; node->kind == NODE_OP && a < op_info[node->code].operands; a++)
			if (latency[node->argument[a]] > latency[n])
				latency[n] = latency[node->argument[a]];
		if (node->kind == NODE_OP && latency[n] >= 0)
			latency[n] += platform_operator(platform, node->code, node->type).latency;
	}
	return latency[body->result] > 0 ? latency[body->result] : 1;
}

static int interval(struct arena *arena, const struct platform *platform, const struct kernel *kernel, const struct plan *plan)
{
	bool carried;
	int64_t distance = update_distance(kernel, plan, &carried);
	if (!kernel_has_reduction(kernel) || !carried)
		return 1;
	int64_t latency = chain_latency(platform, arena, kernel);
	return (int)((latency + distance - 1) / distance);
}

static void apply_access(struct arena *arena, const struct plan *plan, const struct access *from, struct access *to)
{
	*to = *from;
	to->stride = ARENA_ARRAY(arena, int64_t, plan->parts + 1);
	for (int i = 0; i < plan->parts; i++)
		to->stride[i] = from->stride[plan->part[i].source] * plan->part[i].step;
	to->guard = ARENA_ARRAY(arena, struct guard_range, from->guards + 1);
	for (int g = 0; g < from->guards; g++) {
		to->guard[g] = from->guard[g];
		for (int i = 0; i < plan->parts; i++)
			if (plan->part[i].source == from->guard[g].loop)
				to->guard[g].loop = i;
	}
}

/* The counter of an unscheduled loop, from the counters of its parts. */
static int counter(struct module *module, struct body *body, const struct plan *plan, int source)
{
	const struct type *index = type_index(module);
	int sum = -1;
	for (int i = 0; i < plan->parts; i++) {
		if (plan->part[i].source != source)
			continue;
		int term = body_add(module, body, (struct node){.kind = NODE_OP, .code = OP_INDEX, .type = index, .integer = i});
		if (plan->part[i].step != 1) {
			int step = body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = index, .integer = plan->part[i].step});
			term = body_add(module, body, (struct node){.kind = NODE_OP, .code = OP_MULI, .type = index, .argument = {term, step}});
		}
		sum = sum < 0 ? term : body_add(module, body, (struct node){.kind = NODE_OP, .code = OP_ADDI, .type = index, .argument = {sum, term}});
	}
	return sum < 0 ? body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = index}) : sum;
}

static struct body apply_body(struct module *module, const struct plan *plan, const struct body *from)
{
	struct body to = {0};
	int *renamed = ARENA_ARRAY(module->arena, int, from->count + 1);
	for (int n = 0; n < from->count; n++) {
		struct node node = from->node[n];
		for (int a = 0; node.kind == NODE_OP && a < op_info[node.code].operands; a++)
			node.argument[a] = renamed[node.argument[a]];
		if (node.kind == NODE_OP && node.code == OP_INDEX)
			renamed[n] = counter(module, &to, plan, (int)node.integer);
		else
			renamed[n] = body_add(module, &to, node);
	}
	to.result = from->count ? renamed[from->result] : 0;
	return to;
}

struct kernel *plan_apply(struct module *module, const struct platform *platform, const struct kernel *kernel, int operands, const struct plan *plan)
{
	struct kernel *to = arena_copy(module->arena, kernel, sizeof *kernel);
	to->loops = plan->parts;
	to->loop = ARENA_ARRAY(module->arena, struct loop, plan->parts + 1);
	for (int i = 0; i < plan->parts; i++)
		to->loop[i] = (struct loop){.extent = plan->part[i].trip, .reduction = kernel->loop[plan->part[i].source].reduction};
	to->operand = ARENA_ARRAY(module->arena, struct access, operands + 1);
	for (int j = 0; j < operands; j++)
		apply_access(module->arena, plan, &kernel->operand[j], &to->operand[j]);
	apply_access(module->arena, plan, &kernel->result, &to->result);
	to->update = apply_body(module, plan, &kernel->update);
	to->post = apply_body(module, plan, &kernel->post);
	to->scheduled = true;
	to->lanes = plan->lanes;
	to->rows = plan->rows > 1 ? plan->rows : 1;
	to->interval = interval(module->arena, platform, kernel, plan);
	return to;
}

/* One iteration dim of a port. */
struct port_dim {
	int64_t trip, step;       /* step in the loop's counter */
	int source;
};

struct port {
	const struct access *access;
	struct port_dim *dim;
	int dims;
	int64_t offset;           /* with the guards' low ends */
	int lane_source;          /* -1: scalar */
	int64_t lanes;
};

static struct port port_of(struct arena *arena, const struct kernel *kernel, const struct plan *plan, int operand)
{
	struct port port = {.access = operand < 0 ? &kernel->result : &kernel->operand[operand], .lane_source = -1, .lanes = 1};
	bool parallel_only = operand < 0 || kernel_is_post_operand(kernel, operand);
	port.dim = ARENA_ARRAY(arena, struct port_dim, plan->parts + 1);
	port.offset = port.access->offset;
	int used = 0;
	const struct plan_part *row = NULL;
	for (int i = 0; i < plan->parts; i++) {
		const struct plan_part *part = &plan->part[i];
		int64_t stride = port.access->stride[part->source], trip = part->trip, low = 0;
		if (is_lane(plan, i)) {
			port.lane_source = stride ? part->source : -1;
			port.lanes = stride ? part->trip : 1;
			continue;
		}
		if (is_row(plan, i)) {
			row = stride ? part : NULL;
			continue;
		}
		if (parallel_only && kernel->loop[part->source].reduction)
			continue;
		for (int g = 0; g < port.access->guards; g++)
			if (port.access->guard[g].loop == part->source) {
				low = port.access->guard[g].low;
				trip = port.access->guard[g].high - low;
			}
		port.offset += low * stride;
		port.dim[port.dims++] = (struct port_dim){.trip = trip, .step = part->step, .source = part->source};
		if (stride && trip > 1)
			used = port.dims;
	}
	if (row) {
		port.lane_source = port.lane_source < 0 ? row->source : port.lane_source;
		port.lanes *= row->trip;
	}
	port.dims = used;
	return port;
}

int plan_data_dim(const struct type *tensor, int64_t stride, int64_t extent, int64_t *coefficient)
{
	int64_t pitch = 1;
	for (int d = tensor->rank - 1; d >= 0; d--) {
		int64_t span = pitch * tensor->shape[d];
		if (tensor->shape[d] > 1 && stride < span) {
			*coefficient = stride / pitch;
			return stride % pitch == 0 && stride * (extent - 1) < span ? d : -1;
		}
		pitch = span;
	}
	return -1;
}

static bool fill_rows(const struct kernel *kernel, const struct type *tensor, const struct port *port, int64_t *rows, int *lane_dim)
{
	int width = port->dims + 1;
	int64_t pitch = 1, coefficient;
	if (port->offset < 0 || port->offset >= type_elements(tensor))
		return false;
	for (int d = tensor->rank - 1; d >= 0; d--) {
		rows[d * width + port->dims] = port->offset / pitch % tensor->shape[d];
		pitch *= tensor->shape[d];
	}
	for (int i = 0; i < port->dims; i++) {
		int64_t stride = port->access->stride[port->dim[i].source];
		if (!stride)
			continue;
		int d = plan_data_dim(tensor, stride, kernel->loop[port->dim[i].source].extent, &coefficient);
		if (d < 0)
			return false;
		rows[d * width + i] = coefficient;
	}
	*lane_dim = tensor->rank - 1;
	if (port->lane_source < 0)
		return true;
	*lane_dim = plan_data_dim(tensor, port->access->stride[port->lane_source], kernel->loop[port->lane_source].extent, &coefficient);
	return *lane_dim >= 0 && coefficient == 1;
}

const struct type *plan_port_type(struct module *module, const struct kernel *kernel, const struct plan *plan, int operand, const struct type *tensor)
{
	struct arena *arena = module->arena;
	struct port port = port_of(arena, kernel, plan, operand);
	int results = tensor->rank, lane_dim = 0;
	int64_t *rows = affine_rows(arena, port.dims, results ? results : 1);
	if (!results || !fill_rows(kernel, tensor, &port, rows, &lane_dim)) {           /* linear addresses */
		results = 1;
		lane_dim = 0;
		rows = affine_rows(arena, port.dims, 1);
		rows[port.dims] = port.offset;
		for (int i = 0; i < port.dims; i++)
			rows[i] = port.access->stride[port.dim[i].source];
		if (port.lanes > 1 && (port.access->stride[port.lane_source] != 1 || plan->padded))
			return NULL;
	}
	int64_t *trip = ARENA_ARRAY(arena, int64_t, port.dims + 1), *step = ARENA_ARRAY(arena, int64_t, port.dims + 1);
	for (int i = 0; i < port.dims; i++) {
		trip[i] = port.dim[i].trip;
		step[i] = port.dim[i].step;
	}
	int64_t *shape = ARENA_ARRAY(arena, int64_t, results + 1);
	for (int r = 0; r < results; r++)
		shape[r] = r == lane_dim ? port.lanes : 1;
	const struct type *scalar = type_scalar(tensor);
	const struct type *tile = port.lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, results, shape, scalar);
	return type_canonical(module, tile, port.dims, trip, step, results, rows);
}

bool plan_fits(struct module *module, const struct op *op, const struct plan *plan)
{
	for (int j = 0; j < op->operands; j++)
		if (!plan_port_type(module, op->kernel, plan, j, op->operand[j]->type))
			return false;
	return plan_port_type(module, op->kernel, plan, -1, op->result[0]->type);
}
