/* Solves the placement as an integer program. y_i_b: item i is above boundary b, the one between
 * dies b and b + 1, and so above every lower one; c_e_b: edge e crosses boundary b, so it is at
 * least the difference of its items' y. Minimises the sum of bits * c under each die's resources
 * and each boundary's wires. */
#include "floorplan/floorplan.h"
#include "solve/ilp.h"
#include <stddef.h>

#define COLUMNS_MOST 360 /* larger problems are left to moves */
/* the same if moves have found a placement that fits, which the program rarely improves */
#define COLUMNS_IMPROVED 180
/* nodes that usually suffice; more improve the crossings by next to nothing */
#define NODES_MOST 24

struct placement_program {
	const struct floorplan_problem *problem;
	struct ilp ilp;
	int crossing; /* first of the c columns */
};

static int above(const struct placement_program *p, int item, int boundary)
{
	return item * (p->problem->dies - 1) + boundary;
}

static void add_columns(struct placement_program *p)
{
	const struct floorplan_problem *problem = p->problem;
	for (int i = 0; i < problem->items; i++)
		for (int b = 0; b + 1 < problem->dies; b++) {
			bool memory_die = problem->item[i].memory_die;
			ilp_column(&p->ilp, text_format(problem->arena, "y_%d_%d", i, b),
			        memory_die && problem->memory_die > b,
			        !memory_die || problem->memory_die > b, 0, true);
		}
	p->crossing = (int)p->ilp.column.count;
	for (int e = 0; e < problem->edges; e++)
		for (int b = 0; b + 1 < problem->dies; b++)
			ilp_column(&p->ilp, text_format(problem->arena, "c_%d_%d", e, b), 0, 1,
			        (double)problem->edge[e].bits, false);
}

/* c +- (y(from) - y(to)) >= 0 */
static void add_crossing(struct placement_program *p, int edge, int boundary, int sign)
{
	const struct floorplan_problem *problem = p->problem;
	ilp_row(&p->ilp,
	        text_format(
	                problem->arena, "cross_%d_%d_%s", edge, boundary, sign > 0 ? "down" : "up"),
	        'G', 0);
	ilp_term(&p->ilp, p->crossing + edge * (problem->dies - 1) + boundary, 1);
	ilp_term(&p->ilp, above(p, problem->edge[edge].from, boundary), sign);
	ilp_term(&p->ilp, above(p, problem->edge[edge].to, boundary), -sign);
}

/* Resources of a die: an item is on die d if it is above the lower boundary and not above the upper
 * one; all items are above the boundary below die 0. */
static void add_resource(struct placement_program *p, const char *name, int die, size_t offset)
{
	const struct floorplan_problem *problem = p->problem;
	int64_t available = *(const int64_t *)((const char *)&problem->capacity[die] + offset);
	int64_t all = 0;
	for (int i = 0; i < problem->items; i++)
		all += *(const int64_t *)((const char *)&problem->item[i].need + offset);
	double whole = available > 0 ? (double)available : 1;
	ilp_row(&p->ilp, text_format(problem->arena, "%s_%d", name, die), 'L',
	        ((double)available - (die ? 0 : (double)all)) / whole);
	for (int i = 0; i < problem->items; i++) {
		double need =
		        (double)*(const int64_t *)((const char *)&problem->item[i].need + offset) /
		        whole;
		if (need > 0 && die)
			ilp_term(&p->ilp, above(p, i, die - 1), need);
		if (need > 0 && die + 1 < problem->dies)
			ilp_term(&p->ilp, above(p, i, die), -need);
	}
}

static void add_rows(struct placement_program *p)
{
	static const struct {
		const char *name;
		size_t offset;
	} kinds[] = {
		{ "lut", offsetof(struct resources, lut) },
		{ "ff", offsetof(struct resources, ff) },
		{ "dsp", offsetof(struct resources, dsp) },
		{ "bram", offsetof(struct resources, bram18) },
		{ "uram", offsetof(struct resources, uram) },
	};
	const struct floorplan_problem *problem = p->problem;
	for (int i = 0; i < problem->items; i++)
		for (int b = 1; b + 1 < problem->dies; b++) {
			ilp_row(&p->ilp, text_format(problem->arena, "order_%d_%d", i, b), 'G', 0);
			ilp_term(&p->ilp, above(p, i, b - 1), 1);
			ilp_term(&p->ilp, above(p, i, b), -1);
		}
	for (int d = 0; d < problem->dies; d++)
		for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
			add_resource(p, kinds[k].name, d, kinds[k].offset);
	for (int b = 0; b + 1 < problem->dies; b++) {
		ilp_row(&p->ilp, text_format(problem->arena, "wires_%d", b), 'L',
		        (double)problem->wires);
		for (int e = 0; e < problem->edges; e++)
			ilp_term(&p->ilp, p->crossing + e * (problem->dies - 1) + b,
			        (double)problem->edge[e].bits);
		for (int e = 0; e < problem->edges; e++) {
			add_crossing(p, e, b, 1);
			add_crossing(p, e, b, -1);
		}
	}
}

static const double *start_values(const struct placement_program *p, const int *die)
{
	const struct floorplan_problem *problem = p->problem;
	double *value = ARENA_ARRAY(problem->arena, double, p->ilp.column.count + 1);
	for (int i = 0; i < problem->items; i++)
		for (int b = 0; b < die[i]; b++)
			value[above(p, i, b)] = 1;
	for (int e = 0; e < problem->edges; e++)
		for (int b = 0; b + 1 < problem->dies; b++)
			value[p->crossing + e * (problem->dies - 1) + b] =
			        (die[problem->edge[e].from] > b) != (die[problem->edge[e].to] > b);
	return value;
}

struct floorplan_cost floorplan_ilp(const struct floorplan_problem *problem, int *die)
{
	struct floorplan_cost before = floorplan_cost(problem, die);
	if (problem->items * problem->dies >
	                (before.overflow > 0 ? COLUMNS_MOST : COLUMNS_IMPROVED) ||
	        (before.overflow <= 0 && before.crossing == 0))
		return before;
	struct placement_program p = { .problem = problem, .ilp = ilp_new(problem->arena) };
	/* if moves find no placement, the program nearly never does: the first relaxation or the
	 * node limit ends it */
	p.ilp.hasty = problem->first_fit;
	add_columns(&p);
	add_rows(&p);
	struct ilp_solution solution =
	        ilp_solve(&p.ilp, before.overflow <= 0 ? start_values(&p, die) : NULL, NODES_MOST);
	if (solution.status != ILP_OPTIMAL && solution.status != ILP_FEASIBLE)
		return before;
	int *found = ARENA_ARRAY(problem->arena, int, problem->items + 1);
	for (int i = 0; i < problem->items; i++)
		for (int b = 0; b + 1 < problem->dies; b++)
			found[i] += solution.value[above(&p, i, b)] > 0.5;
	struct floorplan_cost after = floorplan_cost(problem, found);
	if (!floorplan_better(after, before))
		return before;
	for (int i = 0; i < problem->items; i++)
		die[i] = found[i];
	return after;
}
