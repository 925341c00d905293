/* The ports of a kernel under a plan: the order in which a port's elements flow, as loops over
 * linear addresses and as a type. */
#include "schedule/kernel_schedule.h"
#include "itensor/element_sequence.h"

/* One iteration dim of a port. */
struct port_dim {
	int64_t trip, step; /* step in the loop's counter */
	int source;
	const struct run_time_trip *run_time;
};

struct port {
	const struct access *access;
	struct port_dim *dim;
	int dims;
	int64_t offset;  /* with the guards' low ends */
	int lane_source; /* -1: scalar */
	int64_t lanes;
	int row_source; /* -1: no rows side by side, or of one number each */
	int64_t rows;   /* of `lanes` numbers each */
};

/* Of a run-time loop, the part from `low` on; a guard that ends earlier covers what is always
 * there. */
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

static struct port port_of(struct arena *arena, const struct kernel *kernel,
        const struct schedule *schedule, int operand, const struct row_predicate *row_predicate)
{
	struct port port = { .access = operand < 0 ? &kernel->result : &kernel->operand[operand],
		.lane_source = -1,
		.lanes = 1,
		.row_source = -1,
		.rows = 1 };
	bool parallel_only = operand < 0 ? !kernel->scan : kernel_is_post_operand(kernel, operand);
	port.dim = ARENA_ARRAY(arena, struct port_dim, 2 * schedule->parts + 1);
	port.offset = port.access->offset;
	int used = 0;
	const struct schedule_part *row = NULL;
	for (int i = 0; i < schedule->parts; i++) {
		const struct schedule_part *part = &schedule->part[i];
		int64_t stride = port.access->stride[part->source];
		int64_t trip = part->trip;
		int64_t low = 0;
		if (schedule_is_lane(schedule, i)) {
			port.lane_source = stride ? part->source : -1;
			port.lanes = stride ? part->trip : 1;
			continue;
		}
		if (schedule_is_row(schedule, i)) {
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
		const struct run_time_trip *run_time =
		        run_time_from(arena, &kernel->loop[part->source], low, trip);
		int64_t weight = row_predicate ? row_predicate->weight[i] : 0;
		const struct run_time_trip *count[2];
		/* all loops of the rows as those of tiles, and of turns in a tile */
		for (int c = 0;
		        weight == 1 && c < schedule_token_counts(arena, row_predicate, count); c++)
			port.dim[port.dims++] = (struct port_dim){ count[c]->most,
				part->step * count[c]->tile / row_predicate->step, part->source,
				count[c] };
		if (!weight)
			port.dim[port.dims++] =
			        (struct port_dim){ trip, part->step, part->source, run_time };
		if (stride && trip > 1)
			used = port.dims;
	}
	if (row && port.lane_source < 0) {
		port.lane_source = row->source;
		port.lanes = row->trip;
	} else if (row) {
		port.row_source = row->source;
		port.rows = row->trip;
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

/* The row of the map that a dim of the port moves, and how: coefficient * step addresses of that
 * data dim a trip.  false: it does not stay inside one. */
static bool fill_dim(const struct type *tensor, struct port *port, int i, int64_t *rows)
{
	struct port_dim *dim = &port->dim[i];
	int64_t stride = port->access->stride[dim->source];
	int64_t moved;
	int d = schedule_data_dim(tensor, stride * dim->step, dim->trip, &moved);
	if (d < 0)
		return false;
	/* the loop's own stride stays in the data dim as well */
	bool whole = moved % dim->step == 0;
	rows[d * (port->dims + 1) + i] = whole ? moved / dim->step : moved;
	dim->step = whole ? dim->step : 1;
	return true;
}

/* Does each tile begin, and unless `loose` end, inside the tensor? */
static bool stays_inside(const struct type *tensor, const struct port *port, const int64_t *rows,
        int lane_dim, bool loose)
{
	for (int d = 0; d < tensor->rank; d++) {
		int64_t first = rows[d * (port->dims + 1) + port->dims];
		int64_t last = first + (d == lane_dim ? port->lanes - 1 : 0);
		for (int i = 0; i < port->dims; i++) {
			int64_t moved = rows[d * (port->dims + 1) + i] * port->dim[i].step *
			        (port->dim[i].trip - 1);
			*(moved < 0 ? &first : &last) += moved;
		}
		if (first < 0 || (!loose && last >= tensor->shape[d]))
			return false;
	}
	return true;
}

/* The data dim of the rows, where it is not that of the lanes; else they lie one after the other
 * in the lanes' dim. */
static int find_row_dim(const struct type *tensor, struct port *port, int lane_dim)
{
	int64_t coefficient = 0;
	int dim = port->rows > 1 ? schedule_data_dim(tensor, port->access->stride[port->row_source],
	                                   port->rows, &coefficient)
	                         : -1;
	if (dim >= 0 && dim != lane_dim && coefficient == 1)
		return dim;
	port->lanes *= port->rows;
	return -1;
}

/* loose: words may reach over the tensor's edge, or be rows side by side. */
static bool fill_rows(const struct kernel *kernel, const struct type *tensor, struct port *port,
        bool loose, int64_t *rows, int *lane_dim)
{
	int width = port->dims + 1;
	int64_t pitch = 1;
	int64_t coefficient;
	if (port->offset < 0 || port->offset >= type_elements(tensor))
		return false;
	for (int d = tensor->rank - 1; d >= 0; d--) {
		rows[d * width + port->dims] = port->offset / pitch % tensor->shape[d];
		pitch *= tensor->shape[d];
	}
	for (int i = 0; i < port->dims; i++)
		if (port->access->stride[port->dim[i].source] && port->dim[i].trip > 1 &&
		        !fill_dim(tensor, port, i, rows))
			return false;
	*lane_dim = tensor->rank - 1;
	if (port->lane_source >= 0) {
		*lane_dim = schedule_data_dim(tensor, port->access->stride[port->lane_source],
		        loose ? kernel->loop[port->lane_source].extent : port->lanes, &coefficient);
		if (*lane_dim < 0 || coefficient != 1)
			return false;
	}
	return stays_inside(tensor, port, rows, *lane_dim, loose);
}

const struct type *schedule_port_type(struct module *module, const struct kernel *kernel,
        const struct schedule *schedule, int operand, const struct type *tensor,
        const struct row_predicate *row_predicate)
{
	struct arena *arena = module->arena;
	struct port port = port_of(arena, kernel, schedule, operand, row_predicate);
	int results = tensor->rank;
	int lane_dim = 0;
	int row_dim = -1;
	int64_t *rows = affine_rows(arena, port.dims, results ? results : 1);
	struct port_dim *dim = arena_copy(arena, port.dim, sizeof *dim * (size_t)(port.dims + 1));
	/* linear addresses */
	if (!results ||
	        !fill_rows(kernel, tensor, &port, schedule->padded || schedule->row_unroll > 1,
	                rows, &lane_dim)) {
		port.dim = dim;
		results = 1;
		lane_dim = 0;
		rows = affine_rows(arena, port.dims, 1);
		rows[port.dims] = port.offset;
		for (int i = 0; i < port.dims; i++)
			rows[i] = port.access->stride[port.dim[i].source];
		port.lanes *= port.rows;
		if (port.lanes > 1 &&
		        (port.access->stride[port.lane_source] != 1 || schedule->padded))
			return NULL;
	} else {
		row_dim = find_row_dim(tensor, &port, lane_dim);
	}
	int64_t *trip = ARENA_ARRAY(arena, int64_t, port.dims + 1);
	int64_t *step = ARENA_ARRAY(arena, int64_t, port.dims + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, port.dims + 1);
	for (int i = 0; i < port.dims; i++) {
		run_time[i] = port.dim[i].run_time;
		trip[i] = port.dim[i].trip;
		step[i] = port.dim[i].step;
	}
	int64_t *shape = ARENA_ARRAY(arena, int64_t, results + 1);
	for (int r = 0; r < results; r++)
		shape[r] = r == lane_dim ? port.lanes : r == row_dim ? port.rows : 1;
	const struct type *scalar = type_scalar(tensor);
	const struct type *tile =
	        port.lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, results, shape, scalar);
	return type_canonical(module, tile,
	        &(struct itensor){ .dims = port.dims,
	                .trip = trip,
	                .step = step,
	                .run_time = run_time,
	                .map = { port.dims, results, rows } });
}

bool schedule_fits(struct module *module, const struct op *op, const struct schedule *schedule)
{
	for (int j = 0; j < op->operands; j++)
		if (!schedule_port_type(
		            module, op->kernel, schedule, j, op->operand[j]->type, NULL))
			return false;
	return schedule_port_type(module, op->kernel, schedule, -1, op->result[0]->type, NULL);
}
