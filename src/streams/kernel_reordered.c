/* Rewrites the loops of an elementwise kernel for another order of its results. */
#include "streams/kernel_reordered.h"
#include "streams/stream_builder.h"

/* The loops of a type, as splits (digits) of a kernel's loops. */
struct loop_digits {
	const struct kernel *from;
	int count, most;
	int64_t *trip, *step;
	int *source; /* -1: a replay loop, in which all operands repeat */
};

static bool push_digit(struct loop_digits *d, int64_t trip, int source, int64_t step)
{
	if (d->count == d->most)
		return false;
	d->trip[d->count] = trip;
	d->source[d->count] = source;
	d->step[d->count++] = step;
	return true;
}

/* Adds the digits of a loop, several if it runs over several of the kernel's loops; false: it is
 * not made of their digits. */
static bool add_digits(struct loop_digits *d, int64_t trip, int64_t stride)
{
	const int64_t *own = d->from->result.stride;
	int l = d->from->loops - 1;
	if (trip == 1 || !stride)
		return trip == 1 || push_digit(d, trip, -1, 0);
	while (l >= 0 && (!own[l] || stride % own[l] || stride >= own[l] * d->from->loop[l].extent))
		l--;
	if (l < 0)
		return false;
	int64_t inside = own[l] * d->from->loop[l].extent / stride;
	if (trip <= inside)
		return push_digit(d, trip, l, stride / own[l]);
	return own[l] * d->from->loop[l].extent % stride == 0 && trip % inside == 0 &&
	        add_digits(d, trip / inside, stride * inside) &&
	        push_digit(d, inside, l, stride / own[l]);
}

static struct access reordered_access(
        struct arena *arena, const struct access *from, const struct loop_digits *d)
{
	struct access to = *from;
	to.stride = ARENA_ARRAY(arena, int64_t, d->count + 1);
	for (int l = 0; l < d->count; l++)
		to.stride[l] = d->source[l] < 0 ? 0 : from->stride[d->source[l]] * d->step[l];
	return to;
}

static int64_t points(const struct kernel *kernel)
{
	int64_t points = 1;
	for (int l = 0; l < kernel->loops; l++)
		points *= kernel->result.stride[l] ? kernel->loop[l].extent : 1;
	return points;
}

static struct kernel *with_digits(
        struct arena *arena, const struct op *op, const struct loop_digits *d)
{
	struct kernel *to = arena_copy(arena, d->from, sizeof *to);
	to->loops = d->count;
	to->lanes = 1;
	to->loop = ARENA_ARRAY(arena, struct loop, d->count + 1);
	for (int l = 0; l < d->count; l++)
		to->loop[l].extent = d->trip[l];
	to->operand = ARENA_ARRAY(arena, struct access, op->operands + 1);
	for (int j = 0; j < op->operands; j++)
		to->operand[j] = reordered_access(arena, &d->from->operand[j], d);
	to->result = reordered_access(arena, &d->from->result, d);
	return to;
}

struct kernel *kernel_reordered(struct module *module, const struct op *op, const struct type *type)
{
	struct arena *arena = module->arena;
	const struct kernel *from = op->kernel;
	struct sequence order = sequence_of_type(arena, stream_tensor(op->result[0]), type);
	struct loop_digits d = { .from = from, .most = order.dims + from->loops };
	if (order.conditions || order.run_time || order.lanes > 1 ||
	        order.offset != from->result.offset)
		return NULL;
	d.trip = ARENA_ARRAY(arena, int64_t, d.most + 1);
	d.step = ARENA_ARRAY(arena, int64_t, d.most + 1);
	d.source = ARENA_ARRAY(arena, int, d.most + 1);
	for (int i = 0; i < order.dims; i++)
		if (!add_digits(&d, order.trip[i], order.stride[i]))
			return NULL;
	struct kernel *to = with_digits(arena, op, &d);
	return points(to) == points(from) ? to : NULL;
}

bool kernel_port_types(struct module *module, const struct op *op, const struct kernel *kernel,
        const struct type **type)
{
	struct arena *arena = module->arena;
	int loops = kernel->loops;
	struct schedule schedule = { .parts = loops,
		.part = ARENA_ARRAY(arena, struct schedule_part, loops + 1),
		.lanes = 1,
		.row_unroll = 1 };
	for (int l = 0; l < loops; l++)
		schedule.part[l] = (struct schedule_part){ l, kernel->loop[l].extent, 1 };
	for (int j = 0; j <= op->operands; j++) {
		const struct value *value = j < op->operands ? op->operand[j] : op->result[0];
		type[j] = schedule_port_type(module, kernel, &schedule, j < op->operands ? j : -1,
		        stream_tensor(value), NULL);
		if (!type[j])
			return false;
	}
	return true;
}
