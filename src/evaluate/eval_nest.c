/* Runs loop nests of the evaluator: checks that addresses lie inside the tensors, then executes the
 * body step by step for a chunk of one loop at a time. */
#include "evaluate/eval_nest.h"
#include <string.h>

struct runner {
	struct module *module;
	const struct op *op;
	const struct nest *nest;
	int vector;        /* loop that runs in chunks; -1: all extents are 1 */
	int64_t *counter;  /* [loops]; of the vector loop: the first one of the chunk */
	int64_t count;     /* points in the chunk */
	int *operand_step; /* step that reads the operand */
};

static int64_t clamp_index(int64_t index, int64_t last)
{
	if (index < 0)
		return 0;
	return index > last ? last : index;
}

int64_t gap_point(struct gap gap, int64_t iteration)
{
	return iteration < gap.head ? iteration : iteration + gap.out;
}

/* The counter of a loop as the body reads it. */
static int64_t point_of(const struct nest *nest, int loop, int64_t iteration)
{
	return nest->gap ? gap_point(nest->gap[loop], iteration) : iteration;
}

/* The counter of a loop as addresses use it. */
static int64_t place_of(const struct nest *nest, int loop, int64_t iteration)
{
	return nest->packed ? iteration : point_of(nest, loop, iteration);
}

int program_add(struct arena *arena, struct program *program, struct step step)
{
	step.value = arena_alloc(arena, NEST_CHUNK * sizeof(int64_t));
	VEC_PUSH(arena, &program->steps, step);
	return (int)program->steps.count - 1;
}

static struct step step_of_node(struct arena *arena, const struct body *body,
        const struct node *node, int base, bool *known)
{
	static const enum step_kind kinds[] = { [NODE_OPERAND] = STEP_OPERAND,
		[NODE_ACCUMULATOR] = STEP_CARRIED,
		[NODE_CONSTANT] = STEP_CONSTANT,
		[NODE_OP] = STEP_OP };
	struct step step = { .kind = kinds[node->kind],
		.type = node->type,
		.number = node->kind == NODE_ACCUMULATOR ? 0 : (int)node->integer };
	if (node->kind == NODE_CONSTANT)
		step.constant = scalar_constant(node->type, node->real, node->integer);
	if (node->kind != NODE_OP)
		return step;
	if (node->code == OP_INDEX || node->code == OP_ACTIVE) {
		step.kind = node->code == OP_INDEX ? STEP_COUNTER : STEP_ACTIVE;
		return step;
	}
	step.arguments = op_info[node->code].operands;
	step.argument = arena_copy(arena, node->argument, sizeof node->argument);
	for (int i = 0; i < step.arguments; i++)
		step.argument[i] += base;
	*known = scalar_op_make(&step.op, node->code, node->integer, node->type,
	        body->node[node->argument[0]].type);
	return step;
}

bool program_add_body(struct module *module, struct arena *arena, struct location location,
        struct program *program, const struct body *body)
{
	int base = (int)program->steps.count;
	for (int i = 0; i < body->count; i++) {
		bool known = true;
		program_add(
		        arena, program, step_of_node(arena, body, &body->node[i], base, &known));
		if (!known)
			return diag_error(module->diag, location, "\"%s\" has no value on %s",
			        op_info[body->node[i].code].name, body->node[i].type->text);
	}
	return true;
}

/* All addresses of an access must lie in its tensor. */
static bool port_fits(
        const struct runner *r, const struct nest_port *port, const char *what, int number)
{
	const struct nest *nest = r->nest;
	int64_t low = port->access.offset;
	int64_t high = low;
	for (int l = 0; l < nest->loops; l++) {
		int64_t first = 0;
		int64_t last = nest->extent[l] - 1;
		for (int g = 0; g < port->access.guards; g++) {
			const struct guard_range *guard = &port->access.guard[g];
			if (guard->loop == l) {
				first = guard->low > first ? guard->low : first;
				last = guard->high - 1 < last ? guard->high - 1 : last;
			}
		}
		if (first > last)
			return true;
		int64_t at_first = place_of(nest, l, first) * port->access.stride[l];
		int64_t at_last = place_of(nest, l, last) * port->access.stride[l];
		low += at_first < at_last ? at_first : at_last;
		high += at_first < at_last ? at_last : at_first;
	}
	if (port->access.index_operand >= 0)
		high += (port->access.index_limit - 1) * port->access.index_stride;
	/* with row weights, invalid rows lie beyond the end, and are not read */
	if (low >= 0 && (high < port->elements || port->row_weight))
		return true;
	return diag_error(r->module->diag, r->op->location,
	        "%s %d of \"%s\" reaches elements %lld … %lld of a tensor with %lld", what, number,
	        op_info[r->op->code].name, (long long)low, (long long)high,
	        (long long)port->elements);
}

static int64_t address(const struct runner *r, const struct access *access)
{
	int64_t at = access->offset;
	for (int l = 0; l < r->nest->loops; l++)
		at += access->stride[l] * place_of(r->nest, l, r->counter[l]);
	return at;
}

static int64_t vector_stride(const struct runner *r, const struct access *access)
{
	return r->vector < 0 ? 0 : access->stride[r->vector];
}

/* The part of the chunk inside the guard: points low … high - 1. */
static void active_range(
        const struct runner *r, const struct access *access, int64_t *low, int64_t *high)
{
	*low = 0;
	*high = r->count;
	for (int g = 0; g < access->guards; g++) {
		const struct guard_range *guard = &access->guard[g];
		int64_t at = r->counter[guard->loop];
		if (guard->loop == r->vector) {
			*low = guard->low - at > *low ? guard->low - at : *low;
			*high = guard->high - at < *high ? guard->high - at : *high;
		} else if (at < guard->low || at >= guard->high) {
			*high = 0;
		}
	}
	*low = *low < *high ? *low : *high;
}

static void read_gather(const struct runner *r, const struct nest_port *port, char *registers,
        int64_t low, int64_t high)
{
	const struct step *index =
	        &r->nest->program.steps.data[r->operand_step[port->access.index_operand]];
	int64_t base = address(r, &port->access);
	int64_t stride = vector_stride(r, &port->access);
	int64_t size = scalar_register_bytes(port->type);
	for (int64_t i = low; i < high; i++) {
		int64_t row = ((const int64_t *)index->value)[i];
		row = clamp_index(row, port->access.index_limit - 1);
		scalar_read(port->type, registers + i * size, port->data,
		        base + i * stride + row * port->access.index_stride, 0, 1);
	}
}

/* The part of the chunk inside the guard and of valid rows; other points read 0. */
static void valid_range(
        const struct runner *r, const struct nest_port *port, int64_t *low, int64_t *high)
{
	int64_t left = port->valid_rows_end;
	int64_t step = port->row_weight && r->vector >= 0 ? port->row_weight[r->vector] : 0;
	active_range(r, &port->access, low, high);
	if (!port->row_weight)
		return;
	for (int l = 0; l < r->nest->loops; l++)
		left -= port->row_weight[l] * r->counter[l];
	int64_t points = step ? (left + step - 1) / step : r->count;
	if (left <= 0)
		points = 0;
	*high = points < *high ? points : *high;
	*low = *low < *high ? *low : *high;
}

static void run_operand(const struct runner *r, struct step *step)
{
	const struct nest_port *port = &r->nest->operand[step->number];
	int64_t low;
	int64_t high;
	int64_t size = scalar_register_bytes(port->type);
	char *registers = step->value;
	valid_range(r, port, &low, &high);
	if (high - low < r->count)
		memset(registers, 0, (size_t)(r->count * size));
	if (low == high)
		return;
	if (port->access.index_operand >= 0) {
		read_gather(r, port, registers, low, high);
		return;
	}
	int64_t stride = vector_stride(r, &port->access);
	int64_t first = address(r, &port->access) + low * stride;
	if (stride)
		scalar_read(
		        port->type, registers + low * size, port->data, first, stride, high - low);
	else {
		scalar_read(port->type, registers + low * size, port->data, first, 0, 1);
		scalar_fill(port->type, registers + low * size,
		        scalar_get(port->type, registers, low), high - low);
	}
}

static void run_carried(const struct runner *r, struct step *step)
{
	const struct nest_port *port = &r->nest->result[step->number];
	scalar_read(port->type, step->value, port->data, address(r, &port->access),
	        vector_stride(r, &port->access), step->sequential ? 1 : r->count);
}

static void run_constant(const struct runner *r, struct step *step)
{
	scalar_fill(step->type, step->value, step->constant, r->count);
}

static void run_counter(const struct runner *r, struct step *step)
{
	int64_t first = point_of(r->nest, step->number, r->counter[step->number]);
	int64_t *value = step->value;
	bool moves = step->number == r->vector;
	for (int64_t i = 0; i < r->count; i++)
		value[i] = moves ? first + i : first;
}

static void run_active(const struct runner *r, struct step *step)
{
	int64_t low;
	int64_t high;
	active_range(r, &r->nest->operand[step->number].access, &low, &high);
	for (int64_t i = 0; i < r->count; i++)
		((int64_t *)step->value)[i] = -(int64_t)(i >= low && i < high);
}

static void run_extract(const struct runner *r, struct step *step)
{
	const struct type *shape = step->table->type;
	char *out = step->value;
	for (int64_t i = 0; i < r->count; i++) {
		int64_t at = 0;
		for (int d = 0; d < step->arguments; d++) {
			int64_t index =
			        ((const int64_t *)r->nest->program.steps.data[step->argument[d]]
			                        .value)[i];
			at = at * shape->shape[d] + clamp_index(index, shape->shape[d] - 1);
		}
		scalar_read(step->type, out + i * scalar_register_bytes(step->type),
		        step->table->data, at, 0, 1);
	}
}

/* Points first … first + count - 1 of the chunk. */
static void run_op_part(const struct runner *r, struct step *step, int64_t first, int64_t count)
{
	const struct step *all = r->nest->program.steps.data;
	const void *in[3];
	for (int i = 0; i < step->arguments; i++)
		in[i] = (const char *)all[step->argument[i]].value +
		        first * scalar_register_bytes(all[step->argument[i]].type);
	scalar_run(&step->op, (char *)step->value + first * step->op.size, in, count);
}

static void run_op(const struct runner *r, struct step *step)
{
	run_op_part(r, step, 0, r->count);
}

static void (*const step_functions[])(const struct runner *, struct step *) = {
	[STEP_OPERAND] = run_operand,
	[STEP_CARRIED] = run_carried,
	[STEP_CONSTANT] = run_constant,
	[STEP_COUNTER] = run_counter,
	[STEP_ACTIVE] = run_active,
	[STEP_EXTRACT] = run_extract,
	[STEP_OP] = run_op,
};

/* Is the body acc = acc · term, with a term that does not depend on acc? */
static bool is_fold(const struct nest *nest)
{
	const struct program *program = &nest->program;
	const struct step *last = &program->steps.data[nest->yield[0]];
	int sequential = 0;
	for (size_t i = 0; i < program->steps.count; i++)
		sequential += program->steps.data[i].sequential;
	if (nest->results != 1 || sequential != 2 || last->kind != STEP_OP || last->arguments != 2)
		return false;
	const struct step *left = &program->steps.data[last->argument[0]];
	const struct step *right = &program->steps.data[last->argument[1]];
	return last->sequential && left->sequential != right->sequential &&
	        left->type == right->type && left->type == last->type;
}

static void run_fold(const struct runner *r)
{
	const struct nest *nest = r->nest;
	struct step *all = nest->program.steps.data;
	struct step *last = &all[nest->yield[0]];
	bool acc_first = all[last->argument[0]].sequential;
	const struct step *acc = &all[last->argument[!acc_first]];
	const struct step *term = &all[last->argument[acc_first]];
	memcpy(last->value, acc->value, (size_t)last->op.size);
	scalar_fold(&last->op, acc_first, last->value, term->value, r->count);
	scalar_write(nest->result[0].type, last->value, nest->result[0].data,
	        address(r, &nest->result[0].access), 0, 1);
}

static void run_tree(const struct runner *r)
{
	const struct nest *nest = r->nest;
	const struct nest_port *port = &nest->result[0];
	struct step *term = &nest->program.steps.data[nest->yield[0]];
	int64_t at = address(r, &port->access);
	union scalar acc = { .integer = 0 };
	union scalar out = { .integer = 0 };
	scalar_tree(&nest->combine, term->value, r->count);
	scalar_read(port->type, &acc, port->data, at, 0, 1);
	const void *in[3] = { &acc, term->value, NULL };
	scalar_run(&nest->combine, &out, in, 1);
	scalar_write(port->type, &out, port->data, at, 0, 1);
}

/* Steps that depend on an accumulator along the chunk, point by point. */
static void run_sequential(const struct runner *r)
{
	const struct nest *nest = r->nest;
	struct step *all = nest->program.steps.data;
	for (int64_t p = 0; p < r->count; p++) {
		for (size_t i = 0; i < nest->program.steps.count; i++) {
			struct step *step = &all[i];
			if (!step->sequential)
				continue;
			int64_t size = scalar_register_bytes(step->type);
			if (step->kind == STEP_OP)
				run_op_part(r, step, p, 1);
			else if (p)
				memcpy((char *)step->value + p * size,
				        (char *)all[nest->yield[step->number]].value +
				                (p - 1) * size,
				        (size_t)size);
		}
	}
}

static void write_results(const struct runner *r)
{
	const struct nest *nest = r->nest;
	for (int i = 0; i < nest->results; i++) {
		const struct nest_port *port = &nest->result[i];
		scalar_write(port->type, nest->program.steps.data[nest->yield[i]].value, port->data,
		        address(r, &port->access), vector_stride(r, &port->access), r->count);
	}
}

static void run_chunk(const struct runner *r, bool fold, bool sequential)
{
	const struct nest *nest = r->nest;
	for (size_t i = 0; i < nest->program.steps.count; i++) {
		struct step *step = &nest->program.steps.data[i];
		if (!step->sequential || step->kind != STEP_OP)
			step_functions[step->kind](r, step);
	}
	if (nest->tree) {
		run_tree(r);
		return;
	}
	if (fold) {
		run_fold(r);
		return;
	}
	if (sequential)
		run_sequential(r);
	write_results(r);
}

/* Marks the steps that depend on an accumulator along the vector loop; are there any? */
static bool mark_sequential(struct runner *r)
{
	const struct nest *nest = r->nest;
	bool any = false;
	for (size_t i = 0; i < nest->program.steps.count; i++) {
		struct step *step = &nest->program.steps.data[i];
		step->sequential = step->kind == STEP_CARRIED && !nest->tree && r->vector >= 0 &&
		        nest->result[step->number].access.stride[r->vector] == 0;
		for (int a = 0; step->kind == STEP_OP && a < step->arguments; a++)
			step->sequential = step->sequential ||
			        nest->program.steps.data[step->argument[a]].sequential;
		any = any || step->sequential;
	}
	return any;
}

/* Next point of the loops other than the vector loop; false after the last. */
static bool next_point(struct runner *r)
{
	for (int l = r->nest->loops - 1; l >= 0; l--) {
		if (l == r->vector)
			continue;
		if (++r->counter[l] < r->nest->extent[l])
			return true;
		r->counter[l] = 0;
	}
	return false;
}

static void run_row(struct runner *r, bool fold, bool sequential)
{
	int64_t extent = r->vector < 0 ? 1 : r->nest->extent[r->vector];
	int64_t head = r->vector < 0 || !r->nest->gap ? 0 : r->nest->gap[r->vector].head;
	for (int64_t at = 0; at < extent; at += r->count) {
		/* a chunk lies on one side of the gap */
		int64_t left = at < head && head < extent ? head - at : extent - at;
		r->count = left < NEST_CHUNK ? left : NEST_CHUNK;
		if (r->vector >= 0)
			r->counter[r->vector] = at;
		run_chunk(r, fold, sequential);
	}
	if (r->vector >= 0)
		r->counter[r->vector] = 0;
}

static int choose_vector(const struct nest *nest)
{
	if (nest->tree)
		return nest->tree_loop;
	for (int l = nest->loops - 1; l >= 0; l--)
		if (nest->extent[l] > 1)
			return l;
	return -1;
}

/* The step of an index operand must precede the steps that gather with it. */
static bool gathers_in_order(const struct runner *r)
{
	const struct nest *nest = r->nest;
	for (int j = 0; j < nest->operands; j++) {
		int index = nest->operand[j].access.index_operand;
		if (index >= 0 && r->operand_step[j] >= 0 &&
		        (r->operand_step[index] < 0 || r->operand_step[index] > r->operand_step[j]))
			return false;
	}
	return true;
}

bool nest_run(struct module *module, struct arena *arena, const struct op *op, struct nest *nest)
{
	struct runner r = {
		.module = module, .op = op, .nest = nest, .vector = choose_vector(nest)
	};
	r.counter = ARENA_ARRAY(arena, int64_t, nest->loops + 1);
	r.operand_step = ARENA_ARRAY(arena, int, nest->operands + 1);
	for (int l = 0; l < nest->loops; l++)
		if (nest->extent[l] <= 0)
			return true;
	if (nest->tree && nest->extent[r.vector] > NEST_CHUNK)
		return diag_error(module->diag, op->location,
		        "a reduction over %lld lanes; at most %d are evaluated",
		        (long long)nest->extent[r.vector], NEST_CHUNK);
	for (int i = 0; i < nest->operands; i++) {
		r.operand_step[i] = -1;
		if (!port_fits(&r, &nest->operand[i], "operand", i))
			return false;
	}
	for (int i = 0; i < nest->results; i++)
		if (!port_fits(&r, &nest->result[i], "result", i))
			return false;
	for (size_t i = nest->program.steps.count; i-- > 0;)
		if (nest->program.steps.data[i].kind == STEP_OPERAND)
			r.operand_step[nest->program.steps.data[i].number] = (int)i;
	if (!gathers_in_order(&r))
		return diag_error(
		        module->diag, op->location, "a gather whose index is read after it");
	bool sequential = mark_sequential(&r);
	bool fold = sequential && is_fold(nest);
	do
		run_row(&r, fold, sequential);
	while (next_point(&r));
	return true;
}
