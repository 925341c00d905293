/* Conversions between our structs and isl's objects. */
#include "poly/isl_room.h"
#include <isl/constraint.h>
#include <isl/id.h>
#include <isl/ilp.h>
#include <isl/local_space.h>
#include <isl/point.h>
#include <isl/val.h>
#include <stdlib.h>

isl_space *isl_room_space(isl_ctx *ctx, int number, int dims)
{
	char name[16] = "S";
	int digits = 1;
	for (int scale = 1000000000; scale; scale /= 10)
		if (number >= scale || scale == 1)
			name[digits++] = (char)('0' + number / scale % 10);
	name[digits] = 0;
	isl_space *space = isl_space_set_alloc(ctx, 0, (unsigned)dims);
	return isl_space_set_tuple_name(space, isl_dim_set, name);
}

int isl_room_number(const char *tuple)
{
	return tuple ? atoi(tuple + 1) : -1;
}

isl_aff *isl_room_aff(isl_space *space, const struct poly_form *form, int dims)
{
	isl_ctx *ctx = isl_space_get_ctx(space);
	isl_aff *aff = isl_aff_zero_on_domain(isl_local_space_from_space(isl_space_copy(space)));
	for (int d = 0; d < dims; d++)
		if (form->coefficient[d])
			aff = isl_aff_set_coefficient_val(
			        aff, isl_dim_in, d, isl_val_int_from_si(ctx, form->coefficient[d]));
	return isl_aff_set_constant_val(aff, isl_val_int_from_si(ctx, form->constant));
}

isl_set *isl_room_set(isl_space *space, const struct poly_condition *condition, int dims)
{
	isl_set *left;
	if (!condition)
		return isl_set_universe(isl_space_copy(space));
	switch (condition->kind) {
	case POLY_NOT_NEGATIVE:
		return isl_set_from_basic_set(isl_basic_set_from_constraint(
		        isl_inequality_from_aff(isl_room_aff(space, &condition->form, dims))));
	case POLY_ZERO:
		return isl_set_from_basic_set(
		        isl_aff_zero_basic_set(isl_room_aff(space, &condition->form, dims)));
	case POLY_NOT: return isl_set_complement(isl_room_set(space, condition->part[0], dims));
	case POLY_AND:
		left = isl_room_set(space, condition->part[0], dims);
		return isl_set_intersect(left, isl_room_set(space, condition->part[1], dims));
	case POLY_OR:
		left = isl_room_set(space, condition->part[0], dims);
		return isl_set_union(left, isl_room_set(space, condition->part[1], dims));
	default: return isl_set_universe(isl_space_copy(space));
	}
}

/* Any element of the dims whose subscripts are computed. */
static isl_map *free_computed(
        isl_map *map, const struct poly_access *access, const struct poly_array *of)
{
	isl_ctx *ctx = isl_map_get_ctx(map);
	isl_id *name = isl_map_get_tuple_id(map, isl_dim_out);
	for (int d = 0; d < of->rank; d++) {
		if (!access->computed[d])
			continue;
		isl_val *last = isl_val_int_from_si(ctx, of->extent[d] - 1);
		map = isl_map_project_out(map, isl_dim_out, (unsigned)d, 1);
		map = isl_map_insert_dims(map, isl_dim_out, (unsigned)d, 1);
		map = isl_map_lower_bound_si(map, isl_dim_out, (unsigned)d, 0);
		map = isl_map_upper_bound_val(map, isl_dim_out, (unsigned)d, last);
	}
	return isl_map_set_tuple_id(map, isl_dim_out, name);
}

isl_map *isl_room_access(
        isl_space *space, const struct poly_access *access, const struct poly_array *of)
{
	int rank = of->rank;
	isl_ctx *ctx = isl_space_get_ctx(space);
	int dims = (int)isl_space_dim(space, isl_dim_set);
	isl_space *array = isl_room_space(ctx, access->array, rank);
	array = isl_space_map_from_domain_and_range(isl_space_copy(space), array);
	isl_multi_aff *map = isl_multi_aff_zero(array);
	for (int d = 0; d < rank; d++)
		map = isl_multi_aff_set_aff(
		        map, d, isl_room_aff(space, &access->subscript[d], dims));
	return free_computed(isl_map_from_multi_aff(map), access, of);
}

/* --- from isl --- */

static bool read_number(isl_val *value, int64_t *number)
{
	bool good = value && isl_val_is_int(value) && isl_val_cmp_si(value, INT64_MAX / 4) <= 0 &&
	        isl_val_cmp_si(value, -(INT64_MAX / 4)) >= 0;
	*number = good ? isl_val_get_num_si(value) : 0;
	isl_val_free(value);
	return good;
}

struct part_reader {
	struct arena *arena;
	struct poly_part *part;
	int dims;
	bool good;
};

/* Coefficients of the counters, of the first `divisions` divisions, and the constant. */
static const int64_t *read_division(struct part_reader *reader, isl_aff *aff, int divisions)
{
	int count = reader->dims + divisions;
	int64_t *row = ARENA_ARRAY(reader->arena, int64_t, count + 1);
	isl_val *denominator = isl_aff_get_denominator_val(aff);
	for (int i = 0; i <= count; i++) {
		isl_val *value;
		if (i < reader->dims)
			value = isl_aff_get_coefficient_val(aff, isl_dim_in, i);
		else if (i < count)
			value = isl_aff_get_coefficient_val(aff, isl_dim_div, i - reader->dims);
		else
			value = isl_aff_get_constant_val(aff);
		value = isl_val_mul(value, isl_val_copy(denominator));
		reader->good = read_number(value, &row[i]) && reader->good;
	}
	isl_val_free(denominator);
	return row;
}

static void read_divisions(struct part_reader *reader, isl_basic_set *set)
{
	struct poly_part *part = reader->part;
	isl_local_space *space = isl_basic_set_get_local_space(set);
	part->divisions = (int)isl_local_space_dim(space, isl_dim_div);
	part->division = ARENA_ARRAY(reader->arena, struct poly_division, part->divisions);
	for (int i = 0; i < part->divisions; i++) {
		isl_aff *aff = isl_local_space_get_div(space, i);
		part->division[i].coefficient = read_division(reader, aff, i);
		reader->good = read_number(isl_aff_get_denominator_val(aff),
		                       &part->division[i].denominator) &&
		        reader->good;
		isl_aff_free(aff);
	}
	isl_local_space_free(space);
}

static isl_stat read_constraint(isl_constraint *constraint, void *user)
{
	struct part_reader *reader = user;
	struct poly_part *part = reader->part;
	int count = reader->dims + part->divisions;
	int64_t *row = ARENA_ARRAY(reader->arena, int64_t, count + 1);
	for (int i = 0; i <= count; i++) {
		isl_val *value;
		if (i < reader->dims)
			value = isl_constraint_get_coefficient_val(constraint, isl_dim_set, i);
		else if (i < count)
			value = isl_constraint_get_coefficient_val(
			        constraint, isl_dim_div, i - reader->dims);
		else
			value = isl_constraint_get_constant_val(constraint);
		reader->good = read_number(value, &row[i]) && reader->good;
	}
	part->row[part->rows++] =
	        (struct poly_row){ isl_constraint_is_equality(constraint) == isl_bool_true, row };
	isl_constraint_free(constraint);
	return isl_stat_ok;
}

struct set_reader {
	struct part_reader part;
	struct poly_set *to;
};

static isl_stat read_part(isl_basic_set *set, void *user)
{
	struct set_reader *reader = user;
	struct part_reader *part = &reader->part;
	part->part = &reader->to->part[reader->to->parts++];
	read_divisions(part, set);
	int most = (int)isl_basic_set_n_constraint(set);
	part->part->row = ARENA_ARRAY(part->arena, struct poly_row, most);
	part->good = isl_basic_set_foreach_constraint(set, read_constraint, part) == isl_stat_ok &&
	        part->good;
	isl_basic_set_free(set);
	return isl_stat_ok;
}

bool isl_room_read_set(struct arena *arena, isl_set *set, struct poly_set *to)
{
	isl_set *known = isl_set_coalesce(isl_set_compute_divs(isl_set_copy(set)));
	known = isl_set_remove_redundancies(known);
	int most = (int)isl_set_n_basic_set(known);
	struct set_reader reader = { { .arena = arena, .good = most >= 0 }, to };
	to->dims = reader.part.dims = (int)isl_set_dim(known, isl_dim_set);
	to->parts = 0;
	to->part = ARENA_ARRAY(arena, struct poly_part, most < 0 ? 0 : most);
	bool good = isl_set_foreach_basic_set(known, read_part, &reader) == isl_stat_ok;
	isl_set_free(known);
	return good && reader.part.good;
}

bool isl_room_read_box(isl_set *set, int64_t *low, int64_t *high)
{
	bool good = true;
	int dims = (int)isl_set_dim(set, isl_dim_set);
	for (int d = 0; d < dims; d++) {
		isl_local_space *space = isl_local_space_from_space(isl_set_get_space(set));
		isl_aff *counter = isl_aff_var_on_domain(space, isl_dim_set, (unsigned)d);
		good = read_number(isl_set_min_val(set, counter), &low[d]) && good;
		good = read_number(isl_set_max_val(set, counter), &high[d]) && good;
		isl_aff_free(counter);
	}
	return good && dims >= 0;
}

bool isl_room_read_form(isl_aff *aff, struct poly_form *form)
{
	int dims = (int)isl_aff_dim(aff, isl_dim_in);
	bool good = dims >= 0 && isl_aff_dim(aff, isl_dim_div) == 0;
	for (int d = 0; good && d < dims; d++)
		good = read_number(
		        isl_aff_get_coefficient_val(aff, isl_dim_in, d), &form->coefficient[d]);
	return good && read_number(isl_aff_get_constant_val(aff), &form->constant);
}

bool isl_room_read_point(isl_set *set, int64_t *coordinate)
{
	isl_point *point = isl_set_sample_point(isl_set_copy(set));
	int dims = (int)isl_set_dim(set, isl_dim_set);
	bool good = point && isl_point_is_void(point) == isl_bool_false;
	for (int d = 0; good && d < dims; d++)
		good = read_number(
		        isl_point_get_coordinate_val(point, isl_dim_set, d), &coordinate[d]);
	isl_point_free(point);
	return good;
}
