/* Random designs for the u55c: a random graph or model taken through the first passes. */
#ifndef RANDOM_DESIGN_H
#define RANDOM_DESIGN_H
#include "design_case.h"
#include "random_model.h"

/* c->module is NULL where a pass refuses it.  c->arena is the caller's to free. */
static inline const struct platform *random_design_of(struct design_case *c, uint64_t seed,
        void (*make)(uint64_t seed, int steps, struct text *out), int first_passes)
{
	memset(c, 0, sizeof *c);
	c->arena = arena_new(&c->guard);
	c->diag.arena = c->arena;
	if (setjmp(c->guard.leave))
		fail_msg("seed %d: %s", (int)seed, c->guard.message);
	struct text text = text_new(c->arena);
	make(seed, 2 + (int)(seed % 9), &text);
	struct pass_context context = { .platform = platform_load(c->arena, &c->diag, "u55c") };
	c->module = import_mlir(c->arena, &c->guard, &c->diag, "random.mlir", text.data, text.size);
	for (int i = 0; c->module && i < first_passes; i++)
		if (!passes[i].run(&context, c->module))
			c->module = NULL;
	return context.platform;
}

static inline const struct platform *random_design(
        struct design_case *c, uint64_t seed, int first_passes)
{
	return random_design_of(c, seed, seed % 2 ? random_graph : random_model, first_passes);
}
#endif
