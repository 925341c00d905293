/* Makes the kernel of a statement.
 * Loops: the box around its domain. Reads: one operand for each origin of the value, selected by
 * conditions on counters; the statement's own earlier value is the accumulator. */
#include "raise/raise_internal.h"
#include "ir/kernel_edit.h"
#include <string.h>

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
	bool failed;
};

/* --- layouts of results --- */

/* The counter that a subscript is, apart from a constant; -1: it is a number; -2: another form. */
static int counter_of(const struct poly_form *form, int dims)
{
	int found = -1;
	for (int d = 0; d < dims; d++) {
		if (!form->coefficient[d])
			continue;
		if (found >= 0 || form->coefficient[d] != 1)
			return -2;
		found = d;
	}
	return found;
}

static int64_t extent_of(const struct poly_flow *flow, int dim)
{
	return flow->high[dim] - flow->low[dim] + 1;
}

/* The loop behind each dim of the array, if the subscripts are different counters and all counters
 * of more than one iteration that are not reduced. */
static bool array_order(const struct making *m, int rank, int *loop)
{
	bool used[POLY_DIMS] = { false };
	int dims = m->statement->dims;
	for (int i = 0; i < rank; i++) {
		loop[i] = counter_of(&m->statement->write.subscript[i], dims);
		if (loop[i] == -2 || (loop[i] >= 0 && used[loop[i]]))
			return false;
		if (loop[i] >= 0)
			used[loop[i]] = true;
	}
	for (int d = 0; d < dims; d++)
		if (!used[d] && !m->flow->reduced[d] && extent_of(m->flow, d) > 1)
			return false;
	return true;
}

/* Shape and strides of the result; its elements are in the array's order where that is possible. */
static const struct type *choose_layout(struct making *m, struct raise_layout *layout)
{
	struct raising *r = m->r;
	int array = m->statement->write.array;
	int loop[POLY_DIMS];
	int64_t shape[POLY_DIMS];
	int rank = array < 0 ? m->statement->dims : r->program.array[array].rank;
	bool by_array = array >= 0 && array_order(m, rank, loop);
	if (!by_array) {
		rank = 0;
		for (int d = 0; d < m->statement->dims; d++)
			if (!m->flow->reduced[d])
				loop[rank++] = d;
	}
	int64_t stride = 1;
	for (int i = rank - 1; i >= 0; i--) {
		shape[i] = loop[i] < 0 ? 1 : extent_of(m->flow, loop[i]);
		if (loop[i] >= 0) {
			layout->stride[loop[i]] = stride;
			layout->offset -= stride * m->flow->low[loop[i]];
		}
		stride *= shape[i];
	}
	return type_shaped(r->module, TYPE_TENSOR, rank, shape, m->type);
}

/* --- accesses --- */

/* The address of a source in the value that holds it, by the reader's counters. */
static struct poly_form address_of(
        const struct making *m, const struct poly_access *read, const struct poly_source *source)
{
	struct poly_form address = { 0 };
	if (source->statement >= 0) {
		const struct raise_layout *layout = &m->r->layout[source->statement];
		int dims = m->r->program.statement[source->statement].dims;
		address.constant = layout->offset;
		for (int d = 0; d < dims; d++) {
			for (int l = 0; l < POLY_DIMS; l++)
				address.coefficient[l] +=
				        layout->stride[d] * source->counter[d].coefficient[l];
			address.constant += layout->stride[d] * source->counter[d].constant;
		}
		return address;
	}
	const struct poly_array *array = &m->r->program.array[read->array];
	int64_t stride = 1;
	for (int i = array->rank - 1; i >= 0; i--) {
		for (int l = 0; l < POLY_DIMS; l++)
			address.coefficient[l] += stride * read->subscript[i].coefficient[l];
		address.constant += stride * read->subscript[i].constant;
		stride *= array->extent[i];
	}
	return address;
}

/* Does the address stay inside for all counters from low to high? */
static bool stays_inside(const struct poly_form *address, int dims, const int64_t *low,
        const int64_t *high, int64_t elements)
{
	int64_t least = address->constant;
	int64_t most = address->constant;
	for (int d = 0; d < dims; d++) {
		int64_t a = address->coefficient[d] * low[d];
		int64_t b = address->coefficient[d] * high[d];
		least += a < b ? a : b;
		most += a < b ? b : a;
	}
	return least >= 0 && most < elements;
}

static bool refuse_address(struct making *m, int read)
{
	const struct region_statement *statement = &m->r->region->statements.data[m->number];
	m->failed = true;
	diag_error(m->r->module->diag, statement->read_location[read],
	        "`%s`: the subscripts of a read leave the array in the box around the loops",
	        statement->text);
	return diag_note(m->r->module->diag,
	        "accepted are subscripts that stay inside when each loop runs over all of its "
	        "values");
}

/* Guards keep the address inside; along reductions they also spare words that are not read. */
static bool add_operand(struct making *m, int read, const struct poly_source *source)
{
	struct raising *r = m->r;
	const struct poly_access *of = &m->statement->read[read];
	struct value *value =
	        source->statement < 0 ? r->initial[of->array] : r->layout[source->statement].value;
	struct poly_form address = address_of(m, of, source);
	struct access access = access_empty(r->module, m->statement->dims);
	int dims = m->statement->dims;
	int64_t elements = type_elements(value->type);
	bool inside = stays_inside(&address, dims, m->flow->low, m->flow->high, elements);
	if (!inside && !stays_inside(&address, dims, source->low, source->high, elements))
		return refuse_address(m, read);
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
	return true;
}

/* --- the body --- */

static int source_node(struct making *m, int read, const struct poly_source *source)
{
	struct module *module = m->r->module;
	if (source->statement == m->number)
		return body_add(module, &m->body,
		        (struct node){ .kind = NODE_ACCUMULATOR, .type = m->type });
	if (!add_operand(m, read, source))
		return -1;
	int array = m->statement->read[read].array;
	const struct type *type = m->r->region->arrays.data[array].type;
	return body_operand(module, &m->body, type, (int)m->operands.count - 1);
}

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
		if (flow->source[i].statement == m->number)
			return i;
		if (rows_of(&flow->source[i].set) > rows_of(&flow->source[best].set))
			best = i;
	}
	return best;
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
	int last = default_source(m, flow);
	int node = source_node(m, read, &flow->source[last]);
	for (int i = 0; i < flow->sources && node >= 0; i++) {
		const struct poly_source *source = &flow->source[i];
		bool own =
		        source->statement == m->number && flow->source[last].statement == m->number;
		if (i == last || own)
			continue;
		int other = source_node(m, read, source);
		int when = raise_condition(module, &m->body, &source->set, m->flow->low);
		node = other < 0 ? -1
		                 : body_op(module, &m->body, OP_SELECT, type, when, other, node);
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
		if ((operand[i] = read_node(m, i)) < 0)
			return -1;
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

/* ARRAY_lLINE, and a number if that is taken. */
static const char *kernel_name(struct raising *r, const char *array, int line)
{
	const char *name = text_format(r->arena, "%s_l%d", array, line);
	for (int n = 2; map_get(&r->names, name); n++)
		name = text_format(r->arena, "%s_l%d_%d", array, line, n);
	map_set(&r->names, name, r);
	return name;
}

/* An array as the function leaves it needs no kernel, if one statement has written all of it. */
static bool is_result_of(const struct making *m, const struct type *type)
{
	const struct poly_read_flow *flow = &m->flow->read[0];
	if (flow->sources != 1 || flow->source[0].statement < 0)
		return false;
	struct value *value = m->r->layout[flow->source[0].statement].value;
	struct poly_form address = address_of(m, m->statement->read, flow->source);
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

static bool too_many_operands(struct making *m)
{
	const struct region_statement *statement = &m->r->region->statements.data[m->number];
	diag_error(m->r->module->diag, m->location, "`%s` reads more than %d different values",
	        m->number < m->r->statements ? statement->text : m->r->region->name,
	        KERNEL_OPERANDS);
	return diag_note(m->r->module->diag, "accepted are up to %d: use several statements",
	        KERNEL_OPERANDS);
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

static bool make(struct making *m, const struct body *from, const char *name)
{
	struct raising *r = m->r;
	struct raise_layout *layout = &r->layout[m->number];
	const struct type *type = choose_layout(m, layout);
	if (m->statement->write.array < 0 && is_result_of(m, type))
		return true;
	m->body.result = body_result(m, from);
	if (m->failed)
		return false;
	if (m->operands.count > KERNEL_OPERANDS)
		return too_many_operands(m);
	struct op *op = kernel_new(r->module, m->location, name, m->statement->dims,
	        (int)m->operands.count, m->operands.data, type);
	fill_kernel(m, op, layout);
	op_append(r->block, op);
	layout->value = op->result[0];
	kernel_tidy(r->module, op);
	return true;
}

bool raise_kernel(struct raising *r, int number)
{
	struct making m = { .r = r,
		.number = number,
		.statement = &r->program.statement[number],
		.flow = &r->flow[number],
		.location = r->region->location };
	m.type = find_type(&m);
	if (number < r->statements) {
		const struct region_statement *statement = &r->region->statements.data[number];
		const char *array = r->region->arrays.data[m.statement->write.array].name;
		m.location = statement->location;
		return make(&m, &statement->body, kernel_name(r, array, m.location.line));
	}
	struct body copy = { 0 };
	copy.result = body_operand(r->module, &copy, m.type, 0);
	const char *array = r->region->arrays.data[m.statement->read[0].array].name;
	return make(&m, &copy, kernel_name(r, array, m.location.line));
}
