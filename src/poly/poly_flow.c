/* Flow by value with isl: for each read of a statement the iterations that wrote its values. */
#include "poly/poly_internal.h"
#include <isl/flow.h>
#include <isl/options.h>
#include <isl/union_map.h>
#include <isl/union_set.h>

#define OPERATIONS_MOST 10000000 /* some seconds */

struct analysis {
	struct poly *poly;
	struct poly_error *error;
	isl_union_map **writes; /* [arrays] */
	int depth;              /* most dims of a statement */
};

static bool fail(struct analysis *a, enum poly_fault fault, int statement, int read)
{
	if (a->error->fault == POLY_NO_FAULT) {
		a->error->fault = fault;
		a->error->statement = statement;
		a->error->read = read;
	}
	return false;
}

/* --- from the program to isl --- */

static const struct poly_statement *statement_of(const struct analysis *a, int s)
{
	return &a->poly->program->statement[s];
}

static isl_space *space_of(struct analysis *a, int s)
{
	return isl_room_space(a->poly->ctx, s, statement_of(a, s)->dims);
}

static isl_map *order_of(struct analysis *a, int s)
{
	const struct poly_statement *statement = statement_of(a, s);
	isl_space *space = space_of(a, s);
	isl_space *times = isl_space_set_alloc(a->poly->ctx, 0, (unsigned)(2 * a->depth + 1));
	times = isl_space_map_from_domain_and_range(isl_space_copy(space), times);
	isl_multi_aff *order = isl_multi_aff_zero(times);
	for (int d = 0; d <= statement->dims; d++) {
		struct poly_form position = { .constant = statement->position[d] };
		struct poly_form counter = { 0 };
		order = isl_multi_aff_set_aff(
		        order, 2 * d, isl_room_aff(space, &position, statement->dims));
		if (d == statement->dims)
			break;
		counter.coefficient[d] = 1;
		order = isl_multi_aff_set_aff(
		        order, 2 * d + 1, isl_room_aff(space, &counter, statement->dims));
	}
	isl_space_free(space);
	return isl_map_from_multi_aff(order);
}

isl_map *poly_access_map(const struct poly *poly, int s, const struct poly_access *access)
{
	int dims = poly->program->statement[s].dims;
	isl_space *space = isl_room_space(poly->ctx, s, dims);
	isl_map *map = isl_room_access(space, access, &poly->program->array[access->array]);
	isl_set *domain = isl_set_intersect(
	        isl_set_copy(poly->domain[s]), isl_room_set(space, access->when, dims));
	isl_space_free(space);
	return isl_map_intersect_domain(map, domain);
}

static isl_map *access_of(struct analysis *a, int s, const struct poly_access *access)
{
	return poly_access_map(a->poly, s, access);
}

static isl_set *elements_of(struct analysis *a, int array)
{
	const struct poly_array *of = &a->poly->program->array[array];
	isl_space *space = isl_room_space(a->poly->ctx, array, of->rank);
	isl_set *all = isl_set_universe(space);
	for (int d = 0; d < of->rank; d++) {
		isl_val *last = isl_val_int_from_si(a->poly->ctx, of->extent[d] - 1);
		all = isl_set_lower_bound_si(all, isl_dim_set, (unsigned)d, 0);
		all = isl_set_upper_bound_val(all, isl_dim_set, (unsigned)d, last);
	}
	return all;
}

static void begin(struct analysis *a)
{
	struct poly *poly = a->poly;
	const struct poly_program *program = poly->program;
	for (int s = 0; s < program->statements; s++)
		if (program->statement[s].dims > a->depth)
			a->depth = program->statement[s].dims;
	a->writes = ARENA_ARRAY(poly->arena, isl_union_map *, program->arrays);
	a->poly->schedule = isl_union_map_empty_ctx(poly->ctx);
	for (int i = 0; i < program->arrays; i++)
		a->writes[i] = isl_union_map_empty_ctx(poly->ctx);
	for (int s = 0; s < program->statements; s++) {
		const struct poly_statement *statement = &program->statement[s];
		isl_space *space = space_of(a, s);
		poly->domain[s] = isl_room_set(space, statement->domain, statement->dims);
		poly->domain[s] = isl_set_coalesce(poly->domain[s]);
		isl_space_free(space);
		isl_map *order =
		        isl_map_intersect_domain(order_of(a, s), isl_set_copy(poly->domain[s]));
		a->poly->schedule = isl_union_map_add_map(a->poly->schedule, order);
		if (statement->write.array < 0)
			continue;
		isl_union_map **writes = &a->writes[statement->write.array];
		*writes = isl_union_map_add_map(*writes, access_of(a, s, &statement->write));
	}
}

static void end(struct analysis *a)
{
	for (int i = 0; i < a->poly->program->arrays; i++)
		isl_union_map_free(a->writes[i]);
}

/* --- checks --- */

static bool check_inside(struct analysis *a, int s, const struct poly_access *access, int read)
{
	isl_set *touched = isl_map_range(access_of(a, s, access));
	touched = isl_set_subtract(touched, elements_of(a, access->array));
	bool good = isl_set_is_empty(touched) == isl_bool_true;
	if (!good) {
		bool known = isl_room_read_point(touched, a->error->subscript);
		fail(a, known ? POLY_OUTSIDE : POLY_TOO_COMPLEX, s, read);
	}
	isl_set_free(touched);
	return good;
}

static bool check_initial(struct analysis *a, isl_union_map *unwritten, int s, int r)
{
	int array = statement_of(a, s)->read[r].array;
	bool none = isl_union_map_is_empty(unwritten) == isl_bool_true;
	if (a->poly->program->array[array].initial || none)
		return true;
	isl_union_set *range = isl_union_map_range(isl_union_map_copy(unwritten));
	isl_set *elements = isl_set_from_union_set(range);
	bool known = isl_room_read_point(elements, a->error->subscript);
	isl_set_free(elements);
	return fail(a, known ? POLY_UNINITIALISED : POLY_TOO_COMPLEX, s, r);
}

/* --- writers of a read --- */

struct writer_list {
	struct poly *poly;
	struct poly_base_read *read;
};

static isl_stat add_writer(isl_map *map, void *user)
{
	struct writer_list *list = user;
	struct poly_writer writer = { isl_room_number(isl_map_get_tuple_name(map, isl_dim_in)),
		isl_map_coalesce(map) };
	VEC_PUSH(list->poly->arena, &list->read->writers, writer);
	return isl_stat_ok;
}

static isl_stat add_initial(isl_map *map, void *user)
{
	struct writer_list *list = user;
	list->read->initial = isl_set_union(list->read->initial, isl_map_domain(map));
	return isl_stat_ok;
}

static bool find_writers(struct analysis *a, int s, int r)
{
	struct poly *poly = a->poly;
	const struct poly_access *access = &statement_of(a, s)->read[r];
	isl_union_map *sink = isl_union_map_from_map(access_of(a, s, access));
	isl_union_access_info *info = isl_union_access_info_from_sink(sink);
	info = isl_union_access_info_set_must_source(
	        info, isl_union_map_copy(a->writes[access->array]));
	info = isl_union_access_info_set_schedule_map(info, isl_union_map_copy(a->poly->schedule));
	isl_union_flow *flow = isl_union_access_info_compute_flow(info);
	isl_union_map *written = isl_union_flow_get_must_dependence(flow);
	isl_union_map *unwritten = isl_union_flow_get_must_no_source(flow);
	isl_union_flow_free(flow);
	struct writer_list list = { poly, &poly->read[s][r] };
	list.read->initial = isl_set_empty(space_of(a, s));
	bool good = isl_union_map_foreach_map(written, add_writer, &list) == isl_stat_ok &&
	        isl_union_map_foreach_map(unwritten, add_initial, &list) == isl_stat_ok;
	list.read->initial = isl_set_coalesce(list.read->initial);
	good = good ? check_initial(a, unwritten, s, r) : fail(a, POLY_TOO_COMPLEX, s, -1);
	isl_union_map_free(written);
	isl_union_map_free(unwritten);
	return good;
}

static bool analyse(struct analysis *a)
{
	const struct poly_program *program = a->poly->program;
	for (int s = 0; s < program->statements; s++) {
		const struct poly_statement *statement = &program->statement[s];
		for (int r = 0; r < statement->reads; r++)
			if (!check_inside(a, s, &statement->read[r], r))
				return false;
		if (statement->write.array >= 0 && !check_inside(a, s, &statement->write, -1))
			return false;
	}
	for (int s = 0; s < program->statements; s++)
		for (int r = 0; r < program->statement[s].reads; r++)
			if (!find_writers(a, s, r))
				return false;
	return isl_ctx_last_error(a->poly->ctx) == isl_error_none ||
	        fail(a, POLY_TOO_COMPLEX, 0, -1);
}

struct poly *poly_new(
        struct arena *arena, const struct poly_program *program, struct poly_error *error)
{
	struct poly *poly = ARENA_NEW(arena, struct poly);
	struct analysis a = { .poly = poly, .error = error };
	*error = (struct poly_error){ .read = -1 };
	poly->arena = arena;
	poly->program = program;
	poly->domain = ARENA_ARRAY(arena, isl_set *, program->statements);
	poly->read = ARENA_ARRAY(arena, struct poly_base_read *, program->statements);
	for (int s = 0; s < program->statements; s++)
		poly->read[s] =
		        ARENA_ARRAY(arena, struct poly_base_read, program->statement[s].reads);
	poly->ctx = isl_ctx_alloc();
	if (!poly->ctx) {
		fail(&a, POLY_TOO_COMPLEX, 0, -1);
		return NULL;
	}
	isl_options_set_on_error(poly->ctx, ISL_ON_ERROR_CONTINUE);
	isl_ctx_set_max_operations(poly->ctx, OPERATIONS_MOST);
	begin(&a);
	bool good = analyse(&a);
	end(&a);
	if (good)
		return poly;
	poly_free(poly);
	return NULL;
}

void poly_free(struct poly *poly)
{
	isl_union_map_free(poly->schedule);
	for (int s = 0; s < poly->program->statements; s++) {
		isl_set_free(poly->domain[s]);
		for (int r = 0; r < poly->program->statement[s].reads; r++) {
			struct poly_base_read *read = &poly->read[s][r];
			isl_set_free(read->initial);
			for (size_t w = 0; w < read->writers.count; w++)
				isl_map_free(read->writers.data[w].map);
		}
	}
	isl_ctx_free(poly->ctx);
}
