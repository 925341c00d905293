/* Builds a linear program, solves it by CBC, and prints it in LP format. */
#define _POSIX_C_SOURCE 200809L
#include "base/cxx_border.h"
#include "solve/ilp.h"
#include <coin/Cbc_C_Interface.h>
#include <signal.h>
#include <string.h>

struct ilp ilp_new(struct arena *arena)
{
	return (struct ilp){ .arena = arena };
}

int ilp_column(
        struct ilp *ilp, const char *name, double lower, double upper, double cost, bool integer)
{
	VEC_PUSH(ilp->arena, &ilp->column,
	        ((struct ilp_column){ name, lower, upper, cost, integer }));
	return (int)ilp->column.count - 1;
}

void ilp_row(struct ilp *ilp, const char *name, char sense, double right)
{
	VEC_PUSH(ilp->arena, &ilp->row,
	        ((struct ilp_row){ name, sense, right, ilp->term_column.count, 0 }));
}

/* CBC writes past its arrays if a row names a column twice, so equal columns are added up here. */
void ilp_term(struct ilp *ilp, int column, double coefficient)
{
	for (size_t t = ilp->row.data[ilp->row.count - 1].first; t < ilp->term_column.count; t++)
		if (ilp->term_column.data[t] == column) {
			ilp->term_coefficient.data[t] += coefficient;
			return;
		}
	VEC_PUSH(ilp->arena, &ilp->term_column, column);
	VEC_PUSH(ilp->arena, &ilp->term_coefficient, coefficient);
	ilp->row.data[ilp->row.count - 1].count++;
}

static void fill_model(Cbc_Model *model, const struct ilp *ilp)
{
	for (size_t i = 0; i < ilp->column.count; i++) {
		const struct ilp_column *column = &ilp->column.data[i];
		Cbc_addCol(model, column->name, column->lower, column->upper, column->cost,
		        column->integer, 0, NULL, NULL);
	}
	for (size_t i = 0; i < ilp->row.count; i++) {
		const struct ilp_row *row = &ilp->row.data[i];
		Cbc_addRow(model, row->name, (int)row->count, ilp->term_column.data + row->first,
		        ilp->term_coefficient.data + row->first, row->sense, row->right);
	}
}

/* One thread, fixed seeds, no log. Cuts, heuristics and preprocessing are off: they depend on the
 * clock, and small problems are solved faster without them. */
static void set_parameters(Cbc_Model *model, const char *nodes)
{
	const char *const parameter[][2] = {
		{ "log", "0" },
		{ "threads", "0" },
		{ "randomSeed", "1" },
		{ "randomCbcSeed", "1" },
		{ "cuts", "off" },
		{ "heur", "off" },
		{ "preprocess", "off" },
		{ "maxNodes", nodes },
	};
	for (size_t i = 0; i < sizeof parameter / sizeof *parameter; i++)
		Cbc_setParameter(model, parameter[i][0], parameter[i][1]);
}

static enum ilp_status status_of(Cbc_Model *model)
{
	if (Cbc_isProvenOptimal(model))
		return ILP_OPTIMAL;
	if (Cbc_isProvenInfeasible(model))
		return ILP_INFEASIBLE;
	return Cbc_numberSavedSolutions(model) > 0 ? ILP_FEASIBLE : ILP_UNKNOWN;
}

/* CBC installs a SIGINT handler while it runs, which would swallow an interrupt, so the signal is
 * blocked until CBC is done. */
static void solve(Cbc_Model *model)
{
	sigset_t interrupt;
	sigset_t before;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(SIG_BLOCK, &interrupt, &before);
	Cbc_solve(model);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct ilp_solution ilp_solve(const struct ilp *ilp, const double *start, int nodes)
{
	struct arena *arena = ilp->arena;
	size_t columns = ilp->column.count;
	struct ilp_solution solution = { .value = ARENA_ARRAY(arena, double, columns + 1) };
	int *number = ARENA_ARRAY(arena, int, columns + 1);
	const char *limit = text_format(arena, "%d", nodes);
	for (size_t i = 0; i < columns; i++)
		number[i] = (int)i;
	/* nothing may leave by the guard until the model is deleted */
	cxx_enter(arena_guard(arena));
	Cbc_Model *model = Cbc_newModel();
	fill_model(model, ilp);
	if (start)
		Cbc_setMIPStartI(model, (int)columns, number, start);
	set_parameters(model, limit);
	if (ilp->hasty)
		Cbc_setParameter(model, "strong", "0");
	Cbc_setLogLevel(model, 0); /* also for programs without integers */
	solve(model);
	solution.status = status_of(model);
	if (solution.status == ILP_OPTIMAL || solution.status == ILP_FEASIBLE) {
		memcpy(solution.value, Cbc_getColSolution(model), columns * sizeof *solution.value);
		solution.objective = Cbc_getObjValue(model);
	}
	Cbc_deleteModel(model);
	cxx_leave();
	return solution;
}

static void print_term(struct text *out, const struct ilp *ilp, double coefficient, int column)
{
	text_add(out, " %+g %s", coefficient, ilp->column.data[column].name);
}

static void print_row(struct text *out, const struct ilp *ilp, const struct ilp_row *row)
{
	text_add(out, " %s:", row->name);
	for (size_t t = row->first; t < row->first + row->count; t++)
		print_term(out, ilp, ilp->term_coefficient.data[t], ilp->term_column.data[t]);
	const char *sense = row->sense == 'L' ? "<=" : "=";
	if (row->sense == 'G')
		sense = ">=";
	text_add(out, " %s %.12g\n", sense, row->right);
}

void ilp_print(const struct ilp *ilp, struct text *out)
{
	text_add(out, "Minimize\n obj:");
	for (size_t i = 0; i < ilp->column.count; i++)
		if (ilp->column.data[i].cost)
			print_term(out, ilp, ilp->column.data[i].cost, (int)i);
	text_add(out, "\nSubject To\n");
	for (size_t i = 0; i < ilp->row.count; i++)
		print_row(out, ilp, &ilp->row.data[i]);
	text_add(out, "Bounds\n");
	for (size_t i = 0; i < ilp->column.count; i++)
		text_add(out, " %.12g <= %s <= %.12g\n", ilp->column.data[i].lower,
		        ilp->column.data[i].name, ilp->column.data[i].upper);
	text_add(out, "General\n");
	for (size_t i = 0; i < ilp->column.count; i++)
		if (ilp->column.data[i].integer)
			text_add(out, " %s\n", ilp->column.data[i].name);
	text_add(out, "End\n");
}
