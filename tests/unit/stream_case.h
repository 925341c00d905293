/* Shared by the tests of stream types: a module in which types are made, and random numbers. */
#ifndef STREAM_CASE_H
#define STREAM_CASE_H
#include "random_graph.h"
#include "base/diag.h"
#include "ir/ir.h"
#include <stdlib.h>

struct fixture {
	struct arena *arena;
	struct guard guard;
	struct diag diag;
	struct module *module;
	struct graph random; /* only its numbers */
};

static inline struct fixture *begin(uint64_t seed)
{
	struct fixture *f = calloc(1, sizeof *f);
	f->arena = arena_new(&f->guard);
	f->diag.arena = f->arena;
	f->module = module_new(f->arena, &f->guard, &f->diag, LEVEL_STREAM);
	f->random.state = seed * 0x9E3779B97F4A7C15u + 1;
	return f;
}

static inline void end(struct fixture *f)
{
	arena_free(f->arena);
	free(f);
}

static inline int64_t number(struct fixture *f, int64_t low, int64_t high)
{
	return low + (int64_t)graph_next(&f->random, (uint64_t)(high - low + 1));
}

#endif
