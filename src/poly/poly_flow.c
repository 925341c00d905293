/* Flow by value with isl: for each read the statement instances that wrote its values; the box of
 * each statement; which counters of a statement only accumulate. */
#include "poly/isl_room.h"
#include <isl/flow.h>
#include <isl/options.h>
#include <isl/union_map.h>
#include <isl/union_set.h>

#define OPERATIONS_MOST 40000000 /* some seconds */

struct analysis {
	struct arena *arena;
	isl_ctx *ctx;
	const struct poly_program *program;
	struct poly_error *error;
	struct poly_flow *flow; /* [statements] */
	isl_set **domain;       /* [statements] */
	isl_set **read;         /* [statements] instances whose values other statements read */
	isl_union_map *schedule;
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

static bool too_complex(struct analysis *a, int statement)
{
	return fail(a, POLY_TOO_COMPLEX, statement, -1);
}

/* --- from the program to isl --- */

static isl_space *space_of(struct analysis *a, int s)
{
	return isl_room_space(a->ctx, s, a->program->statement[s].dims);
}

static isl_map *order_of(struct analysis *a, int s)
{
	const struct poly_statement *statement = &a->program->statement[s];
	isl_space *space = space_of(a, s);
	isl_space *times = isl_space_set_alloc(a->ctx, 0, (unsigned)(2 * a->depth + 1));
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

static isl_map *access_of(struct analysis *a, int s, const struct poly_access *access)
{
	isl_space *space = space_of(a, s);
	int dims = a->program->statement[s].dims;
	isl_map *map = isl_room_access(space, access, a->program->array[access->array].rank);
	isl_set *domain = isl_set_intersect(
	        isl_set_copy(a->domain[s]), isl_room_set(space, access->when, dims));
	isl_space_free(space);
	return isl_map_intersect_domain(map, domain);
}

static isl_set *elements_of(struct analysis *a, int array)
{
	const struct poly_array *of = &a->program->array[array];
	isl_space *space = isl_room_space(a->ctx, array, of->rank);
	isl_set *all = isl_set_universe(space);
	for (int d = 0; d < of->rank; d++) {
		all = isl_set_lower_bound_si(all, isl_dim_set, (unsigned)d, 0);
		all = isl_set_upper_bound_val(all, isl_dim_set, (unsigned)d,
		        isl_val_int_from_si(a->ctx, of->extent[d] - 1));
	}
	return all;
}

static void begin(struct analysis *a)
{
	const struct poly_program *program = a->program;
	for (int s = 0; s < program->statements; s++)
		if (program->statement[s].dims > a->depth)
			a->depth = program->statement[s].dims;
	a->domain = ARENA_ARRAY(a->arena, isl_set *, program->statements);
	a->read = ARENA_ARRAY(a->arena, isl_set *, program->statements);
	a->writes = ARENA_ARRAY(a->arena, isl_union_map *, program->arrays);
	a->schedule = isl_union_map_empty_ctx(a->ctx);
	for (int i = 0; i < program->arrays; i++)
		a->writes[i] = isl_union_map_empty_ctx(a->ctx);
	for (int s = 0; s < program->statements; s++) {
		const struct poly_statement *statement = &program->statement[s];
		isl_space *space = space_of(a, s);
		a->domain[s] = isl_room_set(space, statement->domain, statement->dims);
		a->domain[s] = isl_set_coalesce(a->domain[s]);
		a->read[s] = isl_set_empty(space);
		isl_map *order =
		        isl_map_intersect_domain(order_of(a, s), isl_set_copy(a->domain[s]));
		a->schedule = isl_union_map_add_map(a->schedule, order);
		if (statement->write.array < 0)
			continue;
		isl_union_map **writes = &a->writes[statement->write.array];
		*writes = isl_union_map_add_map(*writes, access_of(a, s, &statement->write));
	}
}

static void end(struct analysis *a)
{
	for (int s = 0; s < a->program->statements; s++) {
		isl_set_free(a->domain[s]);
		isl_set_free(a->read[s]);
	}
	for (int i = 0; i < a->program->arrays; i++)
		isl_union_map_free(a->writes[i]);
	isl_union_map_free(a->schedule);
}

/* --- domains --- */

static bool find_box(struct analysis *a, int s)
{
	struct poly_flow *flow = &a->flow[s];
	flow->empty = isl_set_is_empty(a->domain[s]) == isl_bool_true;
	if (flow->empty)
		return true;
	if (!isl_room_read_box(a->domain[s], flow->low, flow->high))
		return too_complex(a, s);
	isl_set *box = isl_set_universe(isl_set_get_space(a->domain[s]));
	for (int d = 0; d < a->program->statement[s].dims; d++) {
		isl_val *low = isl_val_int_from_si(a->ctx, flow->low[d]);
		isl_val *high = isl_val_int_from_si(a->ctx, flow->high[d]);
		box = isl_set_lower_bound_val(box, isl_dim_set, (unsigned)d, low);
		box = isl_set_upper_bound_val(box, isl_dim_set, (unsigned)d, high);
	}
	isl_set *inside = isl_set_gist(isl_set_copy(a->domain[s]), box);
	bool good = isl_room_read_set(a->arena, inside, &flow->domain);
	isl_set_free(inside);
	return good || too_complex(a, s);
}

static bool check_inside(struct analysis *a, int s, const struct poly_access *access, int read)
{
	isl_set *touched = isl_map_range(access_of(a, s, access));
	touched = isl_set_subtract(touched, elements_of(a, access->array));
	bool good = isl_set_is_empty(touched) == isl_bool_true;
	if (!good) {
		a->error->dims = a->program->array[access->array].rank;
		bool known = isl_room_read_point(touched, a->error->subscript);
		fail(a, known ? POLY_OUTSIDE : POLY_TOO_COMPLEX, s, read);
	}
	isl_set_free(touched);
	return good;
}

/* --- sources of a read --- */

struct source_list {
	struct analysis *analysis;
	int statement; /* the reader */
	int from;      /* the writer of the current map */
	VEC(struct poly_source) sources;
	bool good;
};

static isl_stat add_source(isl_set *set, isl_multi_aff *counters, void *user)
{
	struct source_list *list = user;
	struct analysis *a = list->analysis;
	struct poly_source source = { .statement = list->from };
	isl_set *inside = isl_set_gist(isl_set_copy(set), isl_set_copy(a->domain[list->statement]));
	bool good = isl_room_read_box(set, source.low, source.high) &&
	        isl_room_read_set(a->arena, inside, &source.set);
	int dims = counters ? (int)isl_multi_aff_dim(counters, isl_dim_out) : 0;
	for (int d = 0; d < dims && list->from >= 0; d++) {
		isl_aff *aff = isl_multi_aff_get_aff(counters, d);
		good = good && isl_room_read_form(aff, &source.counter[d]);
		isl_aff_free(aff);
	}
	isl_set_free(inside);
	isl_set_free(set);
	isl_multi_aff_free(counters);
	VEC_PUSH(a->arena, &list->sources, source);
	list->good = list->good && good;
	return isl_stat_ok;
}

/* Does a source of this statement's own differ from the reader in counter `dim`? */
static bool moves(const struct poly_source *source, int dims, int dim)
{
	for (int d = 0; d < dims; d++)
		if (source->counter[dim].coefficient[d] != (d == dim))
			return true;
	return source->counter[dim].constant != 0;
}

static void note_reduced(struct source_list *list, size_t first)
{
	int s = list->statement;
	int dims = list->analysis->program->statement[s].dims;
	for (size_t i = first; i < list->sources.count; i++)
		for (int d = 0; d < dims; d++)
			if (moves(&list->sources.data[i], dims, d))
				list->analysis->flow[s].reduced[d] = true;
}

static isl_stat add_writer(isl_map *map, void *user)
{
	struct source_list *list = user;
	struct analysis *a = list->analysis;
	size_t first = list->sources.count;
	list->from = isl_room_number(isl_map_get_tuple_name(map, isl_dim_in));
	if (list->from >= 0 && list->from != list->statement)
		a->read[list->from] =
		        isl_set_union(a->read[list->from], isl_map_domain(isl_map_copy(map)));
	map = isl_map_reverse(isl_map_coalesce(map));
	isl_pw_multi_aff *pieces = isl_pw_multi_aff_from_map(map);
	pieces = isl_pw_multi_aff_coalesce(pieces);
	list->good = list->good &&
	        isl_pw_multi_aff_foreach_piece(pieces, add_source, list) == isl_stat_ok;
	isl_pw_multi_aff_free(pieces);
	if (list->good && list->from == list->statement)
		note_reduced(list, first);
	return list->good ? isl_stat_ok : isl_stat_error;
}

/* Reads of what no statement has written before. */
static isl_stat add_initial(isl_map *map, void *user)
{
	struct source_list *list = user;
	isl_set *set = isl_set_coalesce(isl_map_domain(map));
	list->from = -1;
	if (isl_set_is_empty(set) == isl_bool_false)
		return add_source(set, NULL, list);
	isl_set_free(set);
	return isl_stat_ok;
}

static bool check_initial(struct analysis *a, isl_union_map *unwritten, int s, int r)
{
	int array = a->program->statement[s].read[r].array;
	if (a->program->array[array].initial || isl_union_map_is_empty(unwritten) == isl_bool_true)
		return true;
	isl_set *elements =
	        isl_set_from_union_set(isl_union_map_range(isl_union_map_copy(unwritten)));
	a->error->dims = a->program->array[array].rank;
	bool known = isl_room_read_point(elements, a->error->subscript);
	isl_set_free(elements);
	return fail(a, known ? POLY_UNINITIALISED : POLY_TOO_COMPLEX, s, r);
}

static bool find_sources(struct analysis *a, int s, int r)
{
	const struct poly_access *access = &a->program->statement[s].read[r];
	isl_union_map *sink = isl_union_map_from_map(access_of(a, s, access));
	isl_union_access_info *info = isl_union_access_info_from_sink(sink);
	info = isl_union_access_info_set_must_source(
	        info, isl_union_map_copy(a->writes[access->array]));
	info = isl_union_access_info_set_schedule_map(info, isl_union_map_copy(a->schedule));
	isl_union_flow *flow = isl_union_access_info_compute_flow(info);
	isl_union_map *written = isl_union_flow_get_must_dependence(flow);
	isl_union_map *unwritten = isl_union_flow_get_must_no_source(flow);
	isl_union_flow_free(flow);
	struct source_list list = { .analysis = a, .statement = s, .good = true };
	bool good = check_initial(a, unwritten, s, r) &&
	        ((isl_union_map_foreach_map(written, add_writer, &list) == isl_stat_ok &&
	                 isl_union_map_foreach_map(unwritten, add_initial, &list) == isl_stat_ok &&
	                 list.good) ||
	                too_complex(a, s));
	isl_union_map_free(written);
	isl_union_map_free(unwritten);
	a->flow[s].read[r] = (struct poly_read_flow){ (int)list.sources.count, list.sources.data };
	return good;
}

/* Is a value read that a later instance, which differs in reduced counters alone, replaces? */
static void find_early_reads(struct analysis *a, int s)
{
	struct poly_flow *flow = &a->flow[s];
	isl_space *pair = isl_space_map_from_set(isl_set_get_space(a->domain[s]));
	isl_map *later = isl_map_lex_lt(isl_space_domain(isl_space_copy(pair)));
	isl_space_free(pair);
	bool any = false;
	for (int d = 0; d < a->program->statement[s].dims; d++) {
		any = any || flow->reduced[d];
		if (!flow->reduced[d])
			later = isl_map_equate(later, isl_dim_in, d, isl_dim_out, d);
	}
	later = isl_map_intersect_domain(later, isl_set_copy(a->read[s]));
	later = isl_map_intersect_range(later, isl_set_copy(a->domain[s]));
	flow->read_before_end = any && isl_map_is_empty(later) != isl_bool_true;
	isl_map_free(later);
}

static bool analyse(struct analysis *a)
{
	const struct poly_program *program = a->program;
	for (int s = 0; s < program->statements; s++) {
		const struct poly_statement *statement = &program->statement[s];
		a->flow[s].read = ARENA_ARRAY(a->arena, struct poly_read_flow, statement->reads);
		if (!find_box(a, s))
			return false;
		for (int r = 0; r < statement->reads; r++)
			if (!check_inside(a, s, &statement->read[r], r))
				return false;
		if (statement->write.array >= 0 && !check_inside(a, s, &statement->write, -1))
			return false;
	}
	for (int s = 0; s < program->statements; s++)
		for (int r = 0; r < program->statement[s].reads; r++)
			if (!find_sources(a, s, r))
				return false;
	for (int s = 0; s < program->statements; s++)
		find_early_reads(a, s);
	return isl_ctx_last_error(a->ctx) == isl_error_none || too_complex(a, 0);
}

struct poly_flow *poly_analyse(
        struct arena *arena, const struct poly_program *program, struct poly_error *error)
{
	struct analysis a = { .arena = arena, .program = program, .error = error };
	*error = (struct poly_error){ .read = -1 };
	a.ctx = isl_ctx_alloc();
	if (!a.ctx) {
		too_complex(&a, 0);
		return NULL;
	}
	isl_options_set_on_error(a.ctx, ISL_ON_ERROR_CONTINUE);
	isl_ctx_set_max_operations(a.ctx, OPERATIONS_MOST);
	a.flow = ARENA_ARRAY(arena, struct poly_flow, program->statements);
	begin(&a);
	bool good = analyse(&a);
	end(&a);
	isl_ctx_free(a.ctx);
	return good ? a.flow : NULL;
}
