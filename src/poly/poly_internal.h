/* Inside the isl room: a program with its flow as isl's objects. */
#ifndef STC_POLY_INTERNAL_H
#define STC_POLY_INTERNAL_H
#include "poly/isl_room.h"

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
	struct poly_base_read **read; /* [statements][reads] */
};
#endif
