/* Integer linear programs that are minimized. Solved by CBC with one thread, limited by nodes and
 * never by time, so that results are reproducible. */
#ifndef STC_ILP_H
#define STC_ILP_H
#include "base/text.h"
#include <stdint.h>

struct ilp_column {
	const char *name; /* an identifier */
	double lower, upper, cost;
	bool integer;
};

struct ilp_row {
	const char *name;
	char sense; /* 'L' at most, 'E' equal, 'G' at least */
	double right;
	size_t first, count; /* range of its terms */
};

struct ilp {
	struct arena *arena;
	/* no strong branching: nodes cost a tenth, and more are needed */
	bool hasty;
	VEC(struct ilp_column) column;
	VEC(struct ilp_row) row;
	VEC(int) term_column;
	VEC(double) term_coefficient;
};

enum ilp_status {
	ILP_OPTIMAL,
	ILP_FEASIBLE, /* a solution, but the node limit was reached */
	ILP_INFEASIBLE,
	ILP_UNKNOWN, /* the node limit was reached without a solution */
};

struct ilp_solution {
	enum ilp_status status;
	double objective;
	double *value; /* [columns] */
};

struct ilp ilp_new(struct arena *arena);
/* adds a column; returns its number */
int ilp_column(
        struct ilp *ilp, const char *name, double lower, double upper, double cost, bool integer);
void ilp_row(struct ilp *ilp, const char *name, char sense, double right);
/* adds a term to the last row; terms of the same column are added up */
void ilp_term(struct ilp *ilp, int column, double coefficient);
/* start: [columns], an initial solution, or NULL; nodes: limit */
struct ilp_solution ilp_solve(const struct ilp *ilp, const double *start, int nodes);
void ilp_print(const struct ilp *ilp, struct text *out); /* LP format */
#endif
