/* Makes the kernel of a statement.
 * Loops: the box around its domain. Reads: one operand for each origin of the value, selected by
 * conditions on counters; the statement's own earlier value is the accumulator. */
#include "raise/raise_internal.h"
#include "ir/kernel_edit.h"
#include <string.h>

#define SOURCES_MOST 12 /* of a read that a kernel selects among by itself */

struct making {
	struct raising *r;
	int number;
	const struct poly_statement *statement;
	const struct poly_flow *flow;
	struct location location;
	VEC(struct value *) operands;
	VEC(struct access) accesses;
	const struct type *type; /* of the result's elements */
	struct body body;
};

static int64_t extent_of(const struct poly_flow *flow, int dim)
{
	return flow->high[dim] - flow->low[dim] + 1;
}

/* --- accesses --- */

/* Guards keep the address inside; along reductions they also spare words that are not read. */
static void add_operand(struct making *m, int read, const struct poly_source *source)
{
	struct raising *r = m->r;
	const struct poly_access *of = &m->statement->read[read];
	struct value *value = raise_source_value(r, of, source);
	struct poly_form address = raise_address(r, of, source);
	struct access access = access_empty(r->module, m->statement->dims);
	int dims = m->statement->dims;
	int64_t elements = type_elements(value->type);
	bool inside = raise_stays_inside(&address, dims, m->flow->low, m->flow->high, elements);
	access.offset = address.constant;
	for (int d = 0; d < dims; d++) {
		struct guard_range guard = { .loop = d,
			.low = source->low[d] - m->flow->low[d],
			.high = source->high[d] - m->flow->low[d] + 1 };
		bool whole = !guard.low && guard.high == extent_of(m->flow, d);
		access.stride[d] = address.coefficient[d];
		access.offset += address.coefficient[d] * m->flow->low[d];
		if (!whole && (!inside || m->flow->reduced[d]))
			access_add_guard(r->module, &access, guard);
	}
	VEC_PUSH(r->arena, &m->operands, value);
	VEC_PUSH(r->arena, &m->accesses, access);
}

/* --- reads with many sources --- */

/* ARRAY_lLINE, or ARRAY_lLINE_vNUMBER if that is taken. */
const char *raise_kernel_name(struct raising *r, const char *array, int line)
{
	const char *name = text_format(r->arena, "%s_l%d", array, line);
	for (int n = 2; map_get(&r->names, name); n++)
		name = text_format(r->arena, "%s_l%d_v%d", array, line, n);
	map_set(&r->names, name, r);
	return name;
}

static int source_node(struct making *m, int read, const struct poly_source *source)
{
	struct module *module = m->r->module;
	if (source->instance == m->number)
		return body_add(module, &m->body,
		        (struct node){ .kind = NODE_ACCUMULATOR, .type = m->type });
	add_operand(m, read, source);
	int array = m->statement->read[read].array;
	const struct type *type = m->r->region->arrays.data[array].type;
	return body_operand(module, &m->body, type, (int)m->operands.count - 1);
}

/* Strides of a value over all of the kernel's iterations. */
static void box_strides(const struct making *m, int64_t *stride)
{
	int64_t inner = 1;
	for (int d = m->statement->dims - 1; d >= 0; d--) {
		stride[d] = inner;
		inner *= extent_of(m->flow, d);
	}
}

/* Reads a value with an element for each iteration. */
static int add_whole(struct making *m, struct value *value)
{
	struct raising *r = m->r;
	struct access access = access_empty(r->module, m->statement->dims);
	box_strides(m, access.stride);
	VEC_PUSH(r->arena, &m->operands, value);
	VEC_PUSH(r->arena, &m->accesses, access);
	return body_operand(
	        r->module, &m->body, type_scalar(value->type), (int)m->operands.count - 1);
}

/* Makes a kernel with a result for each iteration. */
static struct value *box_kernel(struct making *m, const char *name)
{
	struct raising *r = m->r;
	int64_t shape[POLY_DIMS];
	int dims = m->statement->dims;
	for (int d = 0; d < dims; d++)
		shape[d] = extent_of(m->flow, d);
	struct op *op = kernel_new(r->module, m->location, name, dims, (int)m->operands.count,
	        m->operands.data, type_shaped(r->module, TYPE_TENSOR, dims, shape, m->type));
	for (int d = 0; d < dims; d++)
		op->kernel->loop[d].extent = shape[d];
	box_strides(m, op->kernel->result.stride);
	for (int i = 0; i < op->operands; i++)
		op->kernel->operand[i] = m->accesses.data[i];
	op->kernel->update = m->body;
	body_remove_dead(r->module, &op->kernel->update);
	op_append(r->block, op);
	kernel_tidy(r->module, op);
	return op->result[0];
}

/* Makes a kernel over the reader's box that selects among sources from *next on, and takes `last`
 * elsewhere (NULL: there is none). */
static struct value *merge_some(struct making *m, int read, int *next, struct value *last)
{
	struct raising *r = m->r;
	const struct poly_read_flow *flow = &m->flow->read[read];
	const struct region_array *array = &r->region->arrays.data[m->statement->read[read].array];
	struct making part = { .r = r,
		.number = m->number,
		.statement = m->statement,
		.flow = m->flow,
		.location = m->location,
		.type = array->type };
	int node = -1;
	if (last)
		node = add_whole(&part, last);
	for (; *next < flow->sources && part.operands.count < SOURCES_MOST; ++*next) {
		const struct poly_source *source = &flow->source[*next];
		if (source->instance == m->number)
			continue;
		int other = source_node(&part, read, source);
		int when = node < 0
		        ? 0
		        : raise_condition(r->module, &part.body, &source->set, m->flow->low);
		node = node < 0
		        ? other
		        : body_op(r->module, &part.body, OP_SELECT, part.type, when, other, node);
	}
	part.body.result = node;
	return box_kernel(&part, raise_kernel_name(r, array->name, m->location.line));
}

/* The node of all sources but the reader's own, taken from kernels that merge them. */
static int merged_node(struct making *m, int read)
{
	struct value *value = NULL;
	int next = 0;
	while (next < m->flow->read[read].sources)
		value = merge_some(m, read, &next, value);
	return add_whole(m, value);
}

/* --- the body --- */

static int rows_of(const struct poly_set *set)
{
	int rows = 0;
	for (int p = 0; p < set->parts; p++)
		rows += set->part[p].rows;
	return rows;
}

/* The source that is taken where no other one's condition holds: the one whose own condition would
 * be the longest, or the accumulator. */
static int default_source(const struct making *m, const struct poly_read_flow *flow)
{
	int best = 0;
	for (int i = 0; i < flow->sources; i++) {
		if (flow->source[i].instance == m->number)
			return i;
		if (rows_of(&flow->source[i].set) > rows_of(&flow->source[best].set))
			best = i;
	}
	return best;
}

/* Reads with more sources are merged by kernels of their own. */
static int sources_most(const struct making *m)
{
	int sources = 0;
	for (int i = 0; i < m->statement->reads; i++)
		sources += m->flow->read[i].sources;
	return sources > KERNEL_OPERANDS - m->statement->reads ? 1 : SOURCES_MOST;
}

static int select_merged(struct making *m, int read)
{
	struct module *module = m->r->module;
	const struct poly_read_flow *flow = &m->flow->read[read];
	int when = -1;
	bool own = false;
	for (int i = 0; i < flow->sources; i++)
		own = own || flow->source[i].instance == m->number;
	int node = merged_node(m, read);
	for (int i = 0; own && i < flow->sources; i++) {
		if (flow->source[i].instance != m->number)
			continue;
		int part = raise_condition(module, &m->body, &flow->source[i].set, m->flow->low);
		when = when < 0
		        ? part
		        : body_op(module, &m->body, OP_ORI, type_integer(module, 1), when, part, 0);
	}
	if (!own)
		return node;
	int old = body_add(
	        module, &m->body, (struct node){ .kind = NODE_ACCUMULATOR, .type = m->type });
	return body_op(module, &m->body, OP_SELECT, m->type, when, old, node);
}

/* The value of a read; where it does not happen, any. */
static int read_node(struct making *m, int read)
{
	struct module *module = m->r->module;
	const struct poly_read_flow *flow = &m->flow->read[read];
	int array = m->statement->read[read].array;
	const struct type *type = m->r->region->arrays.data[array].type;
	if (!flow->sources)
		return body_add(
		        module, &m->body, (struct node){ .kind = NODE_CONSTANT, .type = type });
	if (flow->sources > sources_most(m))
		return select_merged(m, read);
	int last = default_source(m, flow);
	int node = source_node(m, read, &flow->source[last]);
	for (int i = 0; i < flow->sources; i++) {
		const struct poly_source *source = &flow->source[i];
		bool own =
		        source->instance == m->number && flow->source[last].instance == m->number;
		if (i == last || own)
			continue;
		int other = source_node(m, read, source);
		int when = raise_condition(module, &m->body, &source->set, m->flow->low);
		node = body_op(module, &m->body, OP_SELECT, type, when, other, node);
	}
	return node;
}

static int body_result(struct making *m, const struct body *from)
{
	struct module *module = m->r->module;
	const struct type *index = type_index(module);
	int *operand = ARENA_ARRAY(m->r->arena, int, m->statement->reads);
	int *counter = ARENA_ARRAY(m->r->arena, int, m->statement->dims);
	for (int i = 0; i < m->statement->reads; i++)
		operand[i] = read_node(m, i);
	for (int d = 0; d < m->statement->dims; d++) {
		counter[d] = body_index(module, &m->body, d);
		int low = body_integer(module, &m->body, index, m->flow->low[d]);
		if (m->flow->low[d])
			counter[d] = body_op(module, &m->body, OP_ADDI, index, counter[d], low, 0);
	}
	struct body_map map = { .operand = operand, .index = counter, .accumulator = -1 };
	int node = body_rewrite(module, &m->body, from, map);
	if (!raise_has_reduction(m->r, m->number) || raise_is_always(&m->flow->domain))
		return node;
	int inside = raise_condition(module, &m->body, &m->flow->domain, m->flow->low);
	int old = body_add(
	        module, &m->body, (struct node){ .kind = NODE_ACCUMULATOR, .type = m->type });
	return body_op(module, &m->body, OP_SELECT, m->type, inside, node, old);
}

/* --- the kernel --- */

static const struct raise_layout *layout_of_nest(
        const struct making *m, const struct poly_source *source)
{
	const struct raise_layout *layout =
	        source->instance < 0 ? NULL : &m->r->layout[source->instance];
	return layout && raise_group_of(m->r, source->instance) >= 0 ? layout : NULL;
}

/* The array as a sequential nest leaves it; NULL: others have a part in it. */
static struct value *left_by_nest(const struct making *m, const struct poly_read_flow *flow)
{
	const struct raise_layout *nest = NULL;
	for (int i = 0; i < flow->sources && !nest; i++)
		nest = layout_of_nest(m, &flow->source[i]);
	for (int i = 0; i < flow->sources && nest; i++) {
		const struct raise_layout *layout = layout_of_nest(m, &flow->source[i]);
		if (layout ? layout->by_element != nest->by_element
		           : flow->source[i].instance != nest->base)
			return NULL;
	}
	return nest ? nest->by_element : NULL;
}

/* An array as the function leaves it needs no kernel, if one statement or one sequential nest has
 * written all of it. */
static bool is_result_of(const struct making *m, const struct type *type)
{
	const struct poly_read_flow *flow = &m->flow->read[0];
	struct value *left = left_by_nest(m, flow);
	if (left) {
		m->r->layout[m->number].value = left;
		return true;
	}
	if (flow->sources != 1 || flow->source[0].instance < 0 || !flow->source[0].is_affine)
		return false;
	struct value *value = m->r->layout[flow->source[0].instance].value;
	if (!value)
		return false;
	struct poly_form address = raise_address(m->r, m->statement->read, flow->source);
	int64_t stride = 1;
	for (int i = type->rank - 1; i >= 0; i--) {
		if (address.coefficient[i] != stride && type->shape[i] > 1)
			return false;
		stride *= type->shape[i];
	}
	if (value->type != type || address.constant)
		return false;
	m->r->layout[m->number].value = value;
	return true;
}

static const struct type *find_type(struct making *m)
{
	int array = m->statement->write.array;
	if (array < 0)
		array = m->statement->read[0].array;
	return m->r->region->arrays.data[array].type;
}

static void fill_kernel(struct making *m, struct op *op, const struct raise_layout *layout)
{
	struct kernel *kernel = op->kernel;
	for (int d = 0; d < m->statement->dims; d++) {
		kernel->loop[d].extent = extent_of(m->flow, d);
		kernel->loop[d].reduction = m->flow->reduced[d];
		kernel->result.stride[d] = layout->stride[d];
	}
	for (int i = 0; i < op->operands; i++)
		kernel->operand[i] = m->accesses.data[i];
	kernel->update = m->body;
	body_remove_dead(m->r->module, &kernel->update);
}

static void make(struct making *m, const struct body *from, const char *name)
{
	struct raising *r = m->r;
	struct raise_layout *layout = &r->layout[m->number];
	int64_t shape[POLY_DIMS];
	int rank = raise_layout_of(r, m->number, layout, shape);
	const struct type *type = type_shaped(r->module, TYPE_TENSOR, rank, shape, m->type);
	if (m->statement->write.array < 0 && is_result_of(m, type))
		return;
	m->body.result = body_result(m, from);
	struct op *op = kernel_new(r->module, m->location, name, m->statement->dims,
	        (int)m->operands.count, m->operands.data, type);
	fill_kernel(m, op, layout);
	if (r->options->reassociate)
		raise_reassociate(r, op);
	op_append(r->block, op);
	layout->value = op->result[0];
	kernel_tidy(r->module, op);
}

void raise_kernel(struct raising *r, int number)
{
	struct making m = { .r = r,
		.number = number,
		.statement = raise_statement(r, number),
		.flow = &r->flow[number],
		.location = r->region->location };
	m.type = find_type(&m);
	const struct region_statement *statement = raise_origin(r, number);
	if (statement) {
		const char *array = r->region->arrays.data[m.statement->write.array].name;
		m.location = statement->location;
		make(&m, &statement->body, raise_kernel_name(r, array, m.location.line));
		return;
	}
	struct body copy = { 0 };
	copy.result = body_operand(r->module, &copy, m.type, 0);
	const char *array = r->region->arrays.data[m.statement->read[0].array].name;
	make(&m, &copy, raise_kernel_name(r, array, m.location.line));
}
