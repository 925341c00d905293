/* Inside the isl room: conversions between our structs and isl's objects. */
#ifndef STC_ISL_ROOM_H
#define STC_ISL_ROOM_H
#include "poly/poly.h"
#include <isl/aff.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/space.h>

/* The space of a statement's instances, S<number>. */
isl_space *isl_room_space(isl_ctx *ctx, int number, int dims);
/* The number of the statement or array in a tuple's name. */
int isl_room_number(const char *tuple);
isl_aff *isl_room_aff(isl_space *space, const struct poly_form *form, int dims);
isl_set *isl_room_set(isl_space *space, const struct poly_condition *condition, int dims);
/* From instances of `space` to elements of the array. */
isl_map *isl_room_access(
        isl_space *space, const struct poly_access *access, const struct poly_array *of);

/* false: a number is no 64-bit integer, or isl failed. Nothing is freed. */
bool isl_room_read_set(struct arena *arena, isl_set *set, struct poly_set *to);
bool isl_room_read_box(isl_set *set, int64_t *low, int64_t *high);
bool isl_room_read_form(isl_aff *aff, struct poly_form *form);
bool isl_room_read_point(isl_set *set, int64_t *coordinate);
#endif
