/* Computes the ports of a scheduled kernel: the order in which a port's elements flow, as loops
 * over linear addresses and as an itensor type. */
#include "schedule/kernel_schedule.h"
#include "itensor/element_sequence.h"

/* One iteration dimension of a port. */
struct port_dim {
	int64_t trip, step; /* step of the loop's index */
	int source;
	const struct run_time_trip *run_time;
};

/* An unrolled loop inside a word: rows, rows of them, or at last lanes. */
struct port_row {
	int source;
	int64_t trip;
	int dim; /* data dimension; -1: none of its own */
};

struct port {
	const struct access *access;
	struct port_dim *dim;
	int dims;
	int64_t offset; /* includes the lower bounds of guards */
	struct port_row *row;
	int rows;     /* 0: scalar */
	int64_t *map; /* affine map from the dimensions to the tensor's indices */
};

/* Trip count of a run-time loop that is guarded from `low` on; NULL: fixed, as in a guard that ends
 * before the run-time part. */
static const struct run_time_trip *run_time_from(
        struct arena *arena, const struct loop *loop, int64_t low, int64_t trip)
{
	if (!loop->run_time || low + trip < loop->extent)
		return NULL;
	struct run_time_trip *part = arena_copy(arena, loop->run_time, sizeof *part);
	part->plus -= low * part->tile;
	part->most -= low;
	return part;
}

/* The dimension of a part of the schedule within its guard, whose lower bound moves the port. */
static struct port_dim guarded_dim(struct arena *arena, const struct kernel *kernel,
        const struct schedule_part *part, struct port *port)
{
	int64_t low = 0;
	int64_t trip = part->trip;
	for (int g = 0; g < port->access->guards; g++)
		if (port->access->guard[g].loop == part->source) {
			low = port->access->guard[g].low;
			trip = port->access->guard[g].high - low;
		}
	port->offset += low * port->access->stride[part->source];
	return (struct port_dim){ trip, part->step, part->source,
		run_time_from(arena, &kernel->loop[part->source], low, trip) };
}

/* The loops over padded rows become a loop over tiles and one within a tile. */
static void add_row_dims(struct arena *arena, struct port *port, const struct schedule_part *part,
        const struct row_predicate *row_predicate)
{
	const struct run_time_trip *count[2];
	int counts = schedule_token_counts(arena, row_predicate, count);
	for (int c = 0; c < counts; c++)
		port->dim[port->dims++] = (struct port_dim){ count[c]->most,
			part->step * count[c]->tile / row_predicate->step, part->source, count[c] };
}

static struct port port_of(struct arena *arena, const struct kernel *kernel,
        const struct schedule *schedule, int operand, const struct row_predicate *row_predicate)
{
	struct port port = { .access = operand < 0 ? &kernel->result : &kernel->operand[operand],
		.row = ARENA_ARRAY(arena, struct port_row, schedule->parts + 1) };
	bool parallel_only = operand < 0 ? !kernel->scan : kernel_is_post_operand(kernel, operand);
	/* the rows of a register tile leave one after the other */
	bool by_rows = operand < 0 && schedule_is_register_tile(kernel, schedule);
	port.dim = ARENA_ARRAY(arena, struct port_dim, 2 * schedule->parts + 1);
	port.offset = port.access->offset;
	int used = 0;
	for (int i = 0; i < schedule->parts; i++) {
		const struct schedule_part *part = &schedule->part[i];
		int64_t stride = port.access->stride[part->source];
		if (schedule_is_lane(schedule, i) || (schedule_is_row(schedule, i) && !by_rows)) {
			port.row[port.rows] = (struct port_row){ part->source, part->trip, -1 };
			port.rows += stride != 0;
			continue;
		}
		if (parallel_only && kernel->loop[part->source].reduction)
			continue;
		int64_t weight = row_predicate ? row_predicate->weight[i] : 0;
		struct port_dim dim = guarded_dim(arena, kernel, part, &port);
		if (weight == 1)
			add_row_dims(arena, &port, part, row_predicate);
		if (!weight)
			port.dim[port.dims++] = dim;
		if (stride && dim.trip > 1)
			used = port.dims;
	}
	port.dims = used;
	return port;
}

int schedule_data_dim(
        const struct type *tensor, int64_t stride, int64_t extent, int64_t *coefficient)
{
	int64_t pitch = 1;
	int64_t distance = stride < 0 ? -stride : stride;
	for (int d = tensor->rank - 1; d >= 0; d--) {
		int64_t span = pitch * tensor->shape[d];
		if (tensor->shape[d] > 1 && distance < span) {
			*coefficient = stride / pitch;
			return distance % pitch == 0 && distance * (extent - 1) < span ? d : -1;
		}
		pitch = span;
	}
	return -1;
}

/* Fills the map's column of dimension i of the port: which data dimension it moves along, and by
 * how much per iteration. false: it does not stay within one. */
static bool fill_dim(const struct type *tensor, struct port *port, int i)
{
	struct port_dim *dim = &port->dim[i];
	int64_t stride = port->access->stride[dim->source];
	int64_t moved;
	int d = schedule_data_dim(tensor, stride * dim->step, dim->trip, &moved);
	if (d < 0)
		return false;
	/* the loop's own stride is a multiple of the data dimension's pitch as well */
	bool whole = moved % dim->step == 0;
	port->map[d * (port->dims + 1) + i] = whole ? moved / dim->step : moved;
	dim->step = whole ? dim->step : 1;
	return true;
}

/* Does each tile begin, and unless `loose` end, inside the tensor? */
static bool stays_inside(const struct type *tensor, const struct port *port, bool loose)
{
	for (int d = 0; d < tensor->rank; d++) {
		int64_t first = port->map[d * (port->dims + 1) + port->dims];
		int64_t last = first;
		for (int i = 0; i < port->rows; i++)
			last += d == port->row[i].dim ? port->row[i].trip - 1 : 0;
		for (int i = 0; i < port->dims; i++) {
			int64_t moved = port->map[d * (port->dims + 1) + i] * port->dim[i].step *
			        (port->dim[i].trip - 1);
			*(moved < 0 ? &first : &last) += moved;
		}
		if (first < 0 || (!loose && last >= tensor->shape[d]))
			return false;
	}
	return true;
}

/* Rows without a data dimension of their own become lanes of what is inside of them, if they follow
 * one another; false: others are between them. */
static bool join_rows(struct port *port)
{
	const int64_t *stride = port->access->stride;
	for (int i = port->rows - 2; i >= 0; i--) {
		struct port_row *row = &port->row[i];
		if (row->dim >= 0)
			continue;
		if (stride[row->source] != row[1].trip * stride[row[1].source])
			return false;
		row[1].trip *= row->trip;
		port->rows--;
		for (int k = i; k < port->rows; k++)
			port->row[k] = port->row[k + 1];
	}
	return true;
}

/* Sets the data dimensions of rows, which are outside that of what is inside of them, where the
 * rows are neighbours there. */
static void set_row_dims(const struct type *tensor, struct port *port)
{
	for (int i = port->rows - 2; i >= 0; i--) {
		struct port_row *row = &port->row[i];
		int64_t coefficient = 0;
		int dim = schedule_data_dim(
		        tensor, port->access->stride[row->source], row->trip, &coefficient);
		if (coefficient == 1 && dim >= 0 && dim < row[1].dim)
			row->dim = dim;
		else
			return;
	}
}

/* Fills the affine map of a port; false: it needs linear addresses. loose: words may exceed the
 * tensor's edge, or hold several rows. */
static bool fill_map(
        const struct kernel *kernel, const struct type *tensor, struct port *port, bool loose)
{
	int width = port->dims + 1;
	int64_t pitch = 1;
	int64_t coefficient;
	if (port->offset < 0 || port->offset >= type_elements(tensor))
		return false;
	for (int d = tensor->rank - 1; d >= 0; d--) {
		port->map[d * width + port->dims] = port->offset / pitch % tensor->shape[d];
		pitch *= tensor->shape[d];
	}
	for (int i = 0; i < port->dims; i++)
		if (port->access->stride[port->dim[i].source] && port->dim[i].trip > 1 &&
		        !fill_dim(tensor, port, i))
			return false;
	if (port->rows) {
		struct port_row *lane = &port->row[port->rows - 1];
		lane->dim = schedule_data_dim(tensor, port->access->stride[lane->source],
		        loose ? kernel->loop[lane->source].extent : lane->trip, &coefficient);
		if (lane->dim < 0 || coefficient != 1)
			return false;
		set_row_dims(tensor, port);
	}
	return stays_inside(tensor, port, loose);
}

/* Replaces the map by a one-dimensional one of linear addresses; false: the lanes are not
 * contiguous. dim: the dimensions before any map was filled. */
static bool fill_linear_map(struct arena *arena, const struct schedule *schedule, struct port *port,
        struct port_dim *dim)
{
	const struct port_row *lane = port->rows ? &port->row[port->rows - 1] : NULL;
	port->dim = dim;
	for (int i = 0; i < port->rows; i++)
		port->row[i].dim = i == port->rows - 1 ? 0 : -1;
	port->map = affine_rows(arena, port->dims, 1);
	port->map[port->dims] = port->offset;
	for (int i = 0; i < port->dims; i++)
		port->map[i] = port->access->stride[port->dim[i].source];
	return !lane || (port->access->stride[lane->source] == 1 && !schedule->padded);
}

/* The itensor type of a port whose map is filled. */
static const struct type *type_of_port(
        struct module *module, const struct port *port, int results, const struct type *scalar)
{
	struct arena *arena = module->arena;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, port->dims + 1);
	int64_t *step = ARENA_ARRAY(arena, int64_t, port->dims + 1);
	int64_t *shape = ARENA_ARRAY(arena, int64_t, results + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, port->dims + 1);
	for (int i = 0; i < port->dims; i++) {
		run_time[i] = port->dim[i].run_time;
		trip[i] = port->dim[i].trip;
		step[i] = port->dim[i].step;
	}
	for (int r = 0; r < results; r++)
		shape[r] = 1;
	for (int i = 0; i < port->rows; i++)
		shape[port->row[i].dim] = port->row[i].trip;
	const struct type *tile =
	        port->rows ? type_shaped(module, TYPE_VECTOR, results, shape, scalar) : scalar;
	return type_canonical(module, tile,
	        &(struct itensor){ .dims = port->dims,
	                .trip = trip,
	                .step = step,
	                .run_time = run_time,
	                .map = { port->dims, results, port->map } });
}

/* The port of an operand of a kernel, -1: of its result, for a tensor. */
struct port_place {
	const struct kernel *kernel;
	const struct schedule *schedule;
	int operand;
	const struct type *tensor;
	const struct row_predicate *row_predicate;
};

/* Fills the port with its map to so many results; false: it has none. */
static bool fill_port(
        struct arena *arena, const struct port_place *place, struct port *port, int *results)
{
	const struct type *tensor = place->tensor;
	const struct schedule *schedule = place->schedule;
	bool loose = schedule->padded || schedule->row_unroll > 1;
	*port = port_of(arena, place->kernel, schedule, place->operand, place->row_predicate);
	*results = tensor->rank;
	port->map = affine_rows(arena, port->dims, *results ? *results : 1);
	struct port_dim *dim = arena_copy(arena, port->dim, sizeof *dim * (size_t)(port->dims + 1));
	if (!*results || !fill_map(place->kernel, tensor, port, loose)) {
		*results = 1;
		if (!fill_linear_map(arena, schedule, port, dim))
			return false;
	}
	return join_rows(port);
}

const struct type *schedule_port_type(struct module *module, const struct kernel *kernel,
        const struct schedule *schedule, int operand, const struct type *tensor,
        const struct row_predicate *row_predicate)
{
	const struct port_place place = { kernel, schedule, operand, tensor, row_predicate };
	struct port port;
	int results;
	if (!fill_port(module->arena, &place, &port, &results))
		return NULL;
	return type_of_port(module, &port, results, type_scalar(tensor));
}

/* Searches ask for thousands of schedules, so it makes no types, which the module would keep. */
bool schedule_fits(struct module *module, const struct op *op, const struct schedule *schedule)
{
	struct arena *arena = arena_within(module->arena);
	struct port port;
	int results;
	bool fits = true;
	for (int j = -1; fits && j < op->operands; j++) {
		const struct type *tensor = j < 0 ? op->result[0]->type : op->operand[j]->type;
		const struct port_place place = { op->kernel, schedule, j, tensor, NULL };
		fits = fill_port(arena, &place, &port, &results);
	}
	arena_free(arena);
	return fits;
}
