/* Shared by the tests of what is emitted: a module taken to hardware level, and random numbers
 * for its inputs. */
#ifndef DESIGN_CASE_H
#define DESIGN_CASE_H
#define _GNU_SOURCE /* mkdtemp */
#include "base/data.h"
#include "base/random.h"
#include "pipeline/passes.h"
#include "import/import.h"
#include "platform/platform.h"
#include "evaluate/eval.h"
#include "evaluate/scalar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TENSORS_MOST 16

struct design_case {
	struct guard guard;
	struct diag diag;
	struct arena *arena;
	struct module *module;
	int inputs, results;
	struct tensor input[TENSORS_MOST], result[TENSORS_MOST];
	const char *folder; /* temporary; removed by case_finish */
};

static inline const char *case_messages(struct design_case *c)
{
	struct text text = text_new(c->arena);
	text_add(&text, "%s", "");
	diag_print(&c->diag, &text);
	return text.data;
}

/* Its arena, and its guard: a broken invariant fails the test.  A macro, since it is left in the
 * caller's frame. */
#define CASE_BEGIN(c)                                                                              \
	do {                                                                                       \
		(c)->arena = arena_new(&(c)->guard);                                               \
		(c)->diag.arena = (c)->arena;                                                      \
		if (setjmp((c)->guard.leave))                                                      \
			fail_msg("broken invariant: %s", (c)->guard.message);                      \
	} while (0)

/* The case has begun. */
static inline struct pass_context case_import(struct design_case *c, const char *text)
{
	struct pass_context context = { .platform = platform_load(c->arena, &c->diag, "u55c") };
	c->module = import_mlir(c->arena, &c->guard, &c->diag, "test.mlir", text, strlen(text));
	if (!c->module || !context.platform)
		fail_msg("%s", case_messages(c));
	return context;
}

static inline uint64_t case_random(void)
{
	static uint64_t seed = RANDOM_SEED;
	return random_next(&seed);
}

static inline void case_fill(struct design_case *c, const struct tensor *tensor)
{
	const struct type *scalar = type_scalar(tensor->type);
	union scalar value;
	for (int64_t i = 0; i < type_elements(tensor->type); i++) {
		int64_t number = (int64_t)(case_random() % 2001) - 1000;
		value = scalar_constant(scalar, (double)number / 500.0,
		        scalar->kind == TYPE_INTEGER && scalar->width > 8 ? llabs(number) % 4
		                                                          : number);
		union scalar cell;
		scalar_fill(scalar, &cell, value, 1);
		scalar_write(scalar, &cell, tensor->data, i, 1, 1);
	}
	(void)c;
}

/* Random numbers for all arguments of main. */
static inline void case_arguments(struct design_case *c)
{
	c->inputs = eval_inputs(c->module);
	for (int i = 0; i < c->inputs; i++) {
		c->input[i].type = module_main(c->module)->region[0]->argument[i]->type;
		c->input[i].data = arena_alloc(c->arena, tensor_bytes(c->input[i].type) + 1);
		case_fill(c, &c->input[i]);
	}
}

static inline void case_folder(struct design_case *c)
{
	char name[] = "/tmp/stc-test-XXXXXX";
	assert_non_null(mkdtemp(name));
	c->folder = text_copy(c->arena, name, sizeof name - 1);
}

/* Reads the text and, unless it is of hardware level, runs all passes. */
static inline void case_start(struct design_case *c, const char *text)
{
	memset(c, 0, sizeof *c);
	CASE_BEGIN(c);
	case_folder(c);
	struct pass_context context = case_import(c, text);
	bool whole = c->module->level != LEVEL_HARDWARE;
	for (int i = 0; whole && c->module && i < pass_count; i++)
		if (passes[i].needed == c->module->level && !passes[i].run(&context, c->module))
			c->module = NULL;
	if (!c->module || !ir_verify(c->module) || c->module->level != LEVEL_HARDWARE)
		fail_msg("not compiled: %s", case_messages(c));
	const struct attr *inputs = attr_get(module_main(c->module), KEY_STREAM_INPUTS);
	c->inputs = eval_inputs(c->module);
	c->results = eval_results(c->module);
	assert_true(c->inputs <= TENSORS_MOST && c->results <= TENSORS_MOST);
	for (int i = 0; i < c->inputs; i++) {
		c->input[i].type = attr_item(inputs->items[i].value, KEY_TYPE)->type;
		c->input[i].data = arena_alloc(c->arena, tensor_bytes(c->input[i].type) + 1);
		case_fill(c, &c->input[i]);
	}
}

static inline void case_finish(struct design_case *c)
{
	int status = system(text_format(c->arena, "rm -rf %s", c->folder));
	assert_int_equal(status, 0);
	arena_free(c->arena);
}
#endif
