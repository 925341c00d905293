/* The region as an affine program, and what is wrong with it. */
#include "raise/raise_internal.h"
#include <inttypes.h>
#include <limits.h>

/* --- the program --- */

static bool is_written(const struct region *region, int array)
{
	for (size_t s = 0; s < region->statements.count; s++)
		if (region->statements.data[s].affine.write.array == array)
			return true;
	return false;
}

/* 0 ≤ counter d < extent[d] */
static const struct poly_condition *box_of(struct arena *arena, const struct region_array *array)
{
	const struct poly_condition *all = NULL;
	for (int d = 0; d < array->rank; d++)
		for (int side = 0; side < 2; side++) {
			struct poly_condition *row = ARENA_NEW(arena, struct poly_condition);
			struct poly_condition *both = ARENA_NEW(arena, struct poly_condition);
			row->kind = POLY_NOT_NEGATIVE;
			row->form.coefficient[d] = side ? -1 : 1;
			row->form.constant = side ? array->extent[d] - 1 : 0;
			both->kind = all ? POLY_AND : POLY_ALWAYS;
			both->part[0] = all;
			both->part[1] = row;
			all = all ? both : row;
		}
	return all;
}

/* A statement behind all others that reads a whole array. */
static struct poly_statement reader_of(struct raising *r, int array)
{
	const struct region_array *of = &r->region->arrays.data[array];
	struct poly_statement statement = { .dims = of->rank,
		.domain = box_of(r->arena, of),
		.position = { INT_MAX },
		.reads = 1,
		.read = ARENA_NEW(r->arena, struct poly_access),
		.write.array = -1 };
	statement.read->array = array;
	for (int d = 0; d < of->rank; d++)
		statement.read->subscript[d].coefficient[d] = 1;
	return statement;
}

void raise_make_program(struct raising *r)
{
	const struct region *region = r->region;
	struct poly_program *program = &r->program;
	r->outputs = 0;
	program->arrays = (int)region->arrays.count;
	program->array = ARENA_ARRAY(r->arena, struct poly_array, program->arrays);
	program->statement = ARENA_ARRAY(
	        r->arena, struct poly_statement, region->statements.count + region->arrays.count);
	r->output = ARENA_ARRAY(r->arena, int, program->arrays);
	r->statements = (int)region->statements.count;
	for (int s = 0; s < r->statements; s++)
		program->statement[s] = region->statements.data[s].affine;
	program->statements = r->statements;
	for (int i = 0; i < program->arrays; i++) {
		const struct region_array *array = &region->arrays.data[i];
		struct poly_array *to = &program->array[i];
		to->rank = array->rank;
		to->initial = array->argument || array->value;
		for (int d = 0; d < array->rank; d++)
			to->extent[d] = array->extent[d];
		if (!array->argument || !is_written(region, i))
			continue;
		r->output[r->outputs++] = i;
		program->statement[program->statements++] = reader_of(r, i);
	}
}

const struct poly_statement *raise_statement(const struct raising *r, int instance)
{
	return &r->program.statement[r->instance[instance].statement];
}

const struct region_statement *raise_origin(const struct raising *r, int instance)
{
	int statement = r->instance[instance].statement;
	return statement < r->statements ? &r->region->statements.data[statement] : NULL;
}

/* --- errors of the analysis --- */

static const char *element_text(
        struct arena *arena, const struct region_array *array, const int64_t *subscript)
{
	struct text text = text_new(arena);
	text_add(&text, "%s", array->name);
	for (int d = 0; d < array->rank; d++)
		text_add(&text, "[%" PRId64 "]", subscript[d]);
	return text.data;
}

static const char *extent_text(struct arena *arena, const struct region_array *array)
{
	return element_text(arena, array, array->extent);
}

bool raise_report(struct raising *r, const struct poly_error *error)
{
	struct diag *diag = r->module->diag;
	int s = error->statement < r->statements ? error->statement : -1;
	const struct region_statement *statement = s < 0 ? NULL : &r->region->statements.data[s];
	struct location at = statement ? statement->location : r->region->location;
	if (error->fault == POLY_TOO_COMPLEX || !statement) {
		diag_error(diag, at, "the loops of '%s' are too complex for the analysis",
		        r->region->name);
		return diag_note(diag, "accepted are fewer statements, or smaller constants");
	}
	if (error->read >= 0)
		at = statement->read_location[error->read];
	const struct poly_access *access =
	        error->read < 0 ? &statement->affine.write : &statement->affine.read[error->read];
	const struct region_array *array = &r->region->arrays.data[access->array];
	const char *element = element_text(r->arena, array, error->subscript);
	if (error->fault == POLY_UNINITIALISED) {
		diag_error(diag, at, "`%s` reads %s, which nothing has written", statement->text,
		        element);
		return diag_note(diag, "accepted are reads of arguments, and of what was assigned");
	}
	diag_error(diag, at, "`%s` %s %s, but the array is %s", statement->text,
	        error->read < 0 ? "writes" : "reads", element, extent_text(r->arena, array));
	return diag_note(diag, "accepted are subscripts from 0 to the extent less 1");
}
