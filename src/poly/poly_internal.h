/* Inside the isl room: a program with its flow as isl's objects. */
#ifndef STC_POLY_INTERNAL_H
#define STC_POLY_INTERNAL_H
#include "poly/isl_room.h"
#include <isl/union_map.h>

/* Iterations of one writer to the iterations that read their values. */
struct poly_writer {
	int statement;
	isl_map *map;
};

struct poly_base_read {
	VEC(struct poly_writer) writers;
	isl_set *initial; /* iterations that find the array's initial value */
};

struct poly {
	struct arena *arena;
	isl_ctx *ctx;
	const struct poly_program *program;
	isl_set **domain;             /* [statements] */
	isl_union_map *schedule;      /* when iterations run in C */
	struct poly_base_read **read; /* [statements][reads] */
};

/* Iterations `from` that must come before iterations `to`. */
struct poly_edge {
	int from, to;
	bool is_flow; /* the one writes what the other may read */
	isl_map *map;
};
typedef VEC(struct poly_edge) poly_edges;

/* Between the statements that are inside; the maps belong to the caller. */
poly_edges poly_dependences(struct poly *poly, const bool *inside);
isl_union_map *poly_order_in_c(const struct poly *poly, int s);
/* From the iterations of statement s in which the access happens to elements. */
isl_map *poly_access_map(const struct poly *poly, int s, const struct poly_access *access);
#endif
