/* Evaluates stream.kernel (ir/kernel.h) on dense memory: a nest that accumulates into the result,
 * then, for `post`, a nest over the parallel loops. */
#include "evaluate/eval_level.h"
#include <string.h>

/* Guards of "the last iteration" become those of this launch's trip count. */
static struct access access_in_launch(
        struct arena *arena, const struct access *access, const int64_t *trips)
{
	struct access now = *access;
	now.guard =
	        arena_copy(arena, access->guard, sizeof *access->guard * (size_t)access->guards);
	for (int g = 0; g < now.guards; g++)
		if (now.guard[g].last)
			now.guard[g] = (struct guard_range){ .loop = now.guard[g].loop,
				.low = trips[now.guard[g].loop] - 1,
				.high = trips[now.guard[g].loop] };
	return now;
}

struct nest eval_kernel_nest(struct evaluation *e, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	struct nest nest = { .loops = kernel->loops, .operands = op->operands, .results = 1 };
	nest.extent = ARENA_ARRAY(e->arena, int64_t, kernel->loops + 1);
	nest.operand = ARENA_ARRAY(e->arena, struct nest_port, op->operands + 1);
	nest.result = ARENA_ARRAY(e->arena, struct nest_port, 1);
	nest.yield = ARENA_ARRAY(e->arena, int, 1);
	struct gap *gap = ARENA_ARRAY(e->arena, struct gap, kernel->loops + 1);
	for (int l = 0; l < kernel->loops; l++) {
		nest.extent[l] = eval_trips(e, kernel->loop[l].extent, kernel->loop[l].run_time);
		gap[l] = eval_gap(e, kernel->loop[l].extent, kernel->loop[l].run_time);
		nest.gap = gap[l].out ? gap : nest.gap;
	}
	for (int i = 0; i < op->operands; i++)
		nest.operand[i] = (struct nest_port){ .type = type_scalar(op->operand[i]->type),
			.access = access_in_launch(e->arena, &kernel->operand[i], nest.extent) };
	nest.result[0] = (struct nest_port){ .type = kernel->type, .access = kernel->result };
	return nest;
}

/* Index operands first, then the body; the nest yields the body's result. */
static bool use_body(
        struct evaluation *e, const struct op *op, struct nest *nest, const struct body *body)
{
	nest->program = (struct program){ 0 };
	for (int i = 0; i < op->operands; i++) {
		int index = op->kernel->operand[i].index_operand;
		if (index >= 0)
			program_add(e->arena, &nest->program,
			        (struct step){ .kind = STEP_OPERAND,
			                .type = nest->operand[index].type,
			                .number = index });
	}
	nest->yield[0] = (int)nest->program.steps.count + body->result;
	return program_add_body(e->module, e->arena, op->location, &nest->program, body);
}

/* The unrolled loop whose terms a tree adds up: the lanes or the rows; -1: none. */
static int tree_loop(const struct kernel *kernel)
{
	const struct loop *last = kernel->loop + kernel->loops - 1;
	if (!kernel->scheduled || kernel->lanes <= 1)
		return -1;
	if (last->reduction)
		return kernel->loops - 1;
	return kernel->row_unroll > 1 && last[-1].reduction ? kernel->loops - 2 : -1;
}

static bool use_tree(struct evaluation *e, const struct op *op, struct nest *nest)
{
	const struct kernel *kernel = op->kernel;
	int term;
	nest->tree = true;
	nest->tree_loop = tree_loop(kernel);
	if (kernel_combine(kernel, &term) == OP_NONE ||
	        !scalar_op_make(&nest->combine, kernel->combine, 0, kernel->type, kernel->type))
		return diag_error(e->module->diag, op->location,
		        "a reduction over lanes that is no combine(accumulator, term)");
	nest->yield[0] += term - kernel->update.result;
	return true;
}

static bool run_post(struct evaluation *e, const struct op *op, struct nest *nest)
{
	nest->tree = false;
	for (int l = 0; l < nest->loops; l++)
		nest->extent[l] = op->kernel->loop[l].reduction ? 1 : nest->extent[l];
	return use_body(e, op, nest, &op->kernel->post) && nest_run(e->module, e->arena, op, nest);
}

static void fill(const struct kernel *kernel, struct nest_port *port)
{
	union scalar init =
	        scalar_constant(kernel->type, kernel->init, kernel_init_integer(kernel->init));
	for (int64_t i = 0; i < port->elements; i++)
		scalar_write(kernel->type, &init, port->data, i, 0, 1);
}

/* Iterations first, first + step, … of a loop. */
struct every {
	int loop;
	int64_t first, step;
};

/* Number of these iterations that are below `end`. */
static int64_t count_below(const struct every *every, int64_t end)
{
	return end > every->first ? (end - every->first + every->step - 1) / every->step : 0;
}

static struct access access_every(
        struct arena *arena, const struct access *access, int loops, const struct every *every)
{
	struct access part = *access;
	part.stride = arena_copy(arena, access->stride, sizeof *access->stride * (size_t)loops);
	part.guard =
	        arena_copy(arena, access->guard, sizeof *access->guard * (size_t)access->guards);
	part.offset += every->first * access->stride[every->loop];
	part.stride[every->loop] *= every->step;
	for (int g = 0; g < part.guards; g++) {
		struct guard_range *guard = &part.guard[g];
		if (guard->loop != every->loop)
			continue;
		guard->low = count_below(every, guard->low);
		guard->high = count_below(every, guard->high);
	}
	return part;
}

/* Accumulates the terms of one partial sum. */
static bool run_part(struct evaluation *e, const struct op *op, const struct nest *whole,
        const struct every *every, struct nest_port sums)
{
	struct nest nest = *whole;
	int loop = every->loop;
	if (every->first >= whole->extent[loop])
		return true;
	nest.extent =
	        arena_copy(e->arena, whole->extent, sizeof *whole->extent * (size_t)whole->loops);
	nest.extent[loop] = count_below(every, whole->extent[loop]);
	nest.operand = arena_copy(
	        e->arena, whole->operand, sizeof *whole->operand * (size_t)whole->operands);
	for (int i = 0; i < nest.operands; i++) {
		struct nest_port *port = &nest.operand[i];
		port->access =
		        access_every(e->arena, &whole->operand[i].access, whole->loops, every);
		if (!port->row_weight)
			continue;
		int64_t *row_weight = arena_copy(
		        e->arena, port->row_weight, sizeof *row_weight * (size_t)whole->loops);
		port->valid_rows_end -= every->first * row_weight[loop];
		row_weight[loop] *= every->step;
		port->row_weight = row_weight;
	}
	nest.result = &sums;
	return nest_run(e->module, e->arena, op, &nest);
}

/* Interleaved partial sums, which hide the adder's latency, then a tree over them. */
static bool run_partial(struct evaluation *e, const struct op *op, struct nest *nest)
{
	const struct kernel *kernel = op->kernel;
	int64_t parts = kernel->partial_sums;
	int64_t elements = nest->result[0].elements;
	int64_t bytes = scalar_storage_bytes(kernel->type);
	struct scalar_op combine;
	struct nest_port *sums = ARENA_ARRAY(e->arena, struct nest_port, parts);
	struct every every = { .loop = kernel_inner_reduction(kernel), .step = parts };
	if (!scalar_op_make(&combine, kernel->combine, 0, kernel->type, kernel->type))
		return diag_error(
		        e->module->diag, op->location, "partial sums that nothing combines");
	for (int64_t p = 0; p < parts; p++) {
		sums[p] = nest->result[0];
		sums[p].data = arena_alloc(e->arena, (size_t)(elements * bytes));
		fill(kernel, &sums[p]);
		every.first = p;
		if (!run_part(e, op, nest, &every, sums[p]))
			return false;
	}
	char *work = arena_alloc(e->arena, (size_t)(parts * (int64_t)sizeof(union scalar)));
	for (int64_t i = 0; i < elements; i++) {
		for (int64_t p = 0; p < parts; p++)
			scalar_read(kernel->type, work + p * scalar_register_bytes(kernel->type),
			        sums[p].data, i, 0, 1);
		scalar_tree(&combine, work, parts);
		scalar_write(kernel->type, work, nest->result[0].data, i, 0, 1);
	}
	return true;
}

/* Accumulators of a scan: addressed as its results, except by the reduction loops. */
static struct nest_port accumulators_of(
        struct evaluation *e, const struct kernel *kernel, const struct nest_port *result)
{
	struct nest_port port = *result;
	port.access.stride = arena_copy(e->arena, result->access.stride,
	        sizeof *result->access.stride * (size_t)kernel->loops);
	for (int l = 0; l < kernel->loops; l++)
		port.access.stride[l] = kernel->loop[l].reduction ? 0 : port.access.stride[l];
	port.data =
	        arena_alloc(e->arena, (size_t)(port.elements * scalar_storage_bytes(kernel->type)));
	fill(kernel, &port);
	return port;
}

/* A scan has two results at every point: the accumulator, and `post` of the previous one. */
static bool run_scan(struct evaluation *e, const struct op *op, struct nest *nest)
{
	const struct kernel *kernel = op->kernel;
	struct nest_port *results = ARENA_ARRAY(e->arena, struct nest_port, 2);
	int *yield = ARENA_ARRAY(e->arena, int, 2);
	results[0] = accumulators_of(e, kernel, &nest->result[0]);
	results[1] = nest->result[0];
	nest->results = 2;
	nest->result = results;
	if (!use_body(e, op, nest, &kernel->update))
		return false;
	yield[0] = nest->yield[0];
	yield[1] = (int)nest->program.steps.count + kernel->post.result;
	nest->yield = yield;
	return program_add_body(e->module, e->arena, op->location, &nest->program, &kernel->post) &&
	        nest_run(e->module, e->arena, op, nest);
}

bool eval_kernel_run(struct evaluation *e, const struct op *op, struct nest *nest)
{
	const struct kernel *kernel = op->kernel;
	bool reduction = kernel_has_reduction(kernel);
	if (kernel->scan)
		return run_scan(e, op, nest);
	if (reduction)
		fill(kernel, &nest->result[0]);
	if (!use_body(e, op, nest, &kernel->update))
		return false;
	if (tree_loop(kernel) >= 0 && !use_tree(e, op, nest))
		return false;
	bool done = kernel->partial_sums > 1 ? run_partial(e, op, nest)
	                                     : nest_run(e->module, e->arena, op, nest);
	if (!done)
		return false;
	return !reduction || !kernel->post.count || run_post(e, op, nest);
}

bool eval_tensor_kernel(struct evaluation *e, struct op *op)
{
	struct nest nest = eval_kernel_nest(e, op);
	struct tensor *out = eval_result(e, op);
	for (int i = 0; i < op->operands; i++) {
		const struct tensor *tensor = op->operand[i]->data;
		nest.operand[i].data = tensor->data;
		nest.operand[i].elements = type_elements(tensor->type);
	}
	nest.result[0].data = out->data;
	nest.result[0].elements = type_elements(out->type);
	return eval_kernel_run(e, op, &nest);
}
