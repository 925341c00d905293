/* A C function as `cc -O0 -ffp-contract=off` runs it, and as the evaluator runs the module that it
 * becomes, after reading and after every pass: the bits must be equal. */
#ifndef C_TRIAL_H
#define C_TRIAL_H
#include "base/data.h"
#include "evaluate/eval.h"
#include "evaluate/scalar.h"
#include "frontend/frontend.h"
#include "pipeline/passes.h"
#include "platform/platform.h"
#include "raise/raise.h"
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define C_TOLERANCE 1e-4f

struct c_trial {
	struct arena *arena;
	struct guard guard;
	struct diag diag;
	const char *file, *text, *top;
	bool reassociate;
	uint64_t seed;
	struct module *module;
	const struct region *region;
	void **argument;      /* [arrays of the region] as C leaves them */
	struct tensor *input; /* of main */
	const char *stage;    /* where it failed */
	const char *failure;  /* NULL: it did not */
};

static inline struct c_trial *c_trial_new(const char *file, const char *text, const char *top)
{
	struct c_trial *t = calloc(1, sizeof *t);
	t->arena = arena_new(&t->guard);
	t->diag.arena = t->arena;
	t->file = file;
	t->text = text;
	t->top = top;
	t->seed = 1;
	return t;
}

static inline void c_trial_free(struct c_trial *t)
{
	arena_free(t->arena);
	free(t);
}

static inline bool c_broken(struct c_trial *t, const char *format, ...)
{
	va_list arguments;
	struct text text = text_new(t->arena);
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	t->failure = text.data;
	return false;
}

static inline const char *c_message(const struct c_trial *t)
{
	return t->diag.count ? t->diag.entry[0].message : "no message";
}

/* --- the reference --- */

static inline int64_t c_elements(const struct region_array *array)
{
	int64_t elements = 1;
	for (int d = 0; d < array->rank; d++)
		elements *= array->extent[d];
	return elements;
}

static inline const char *c_type_name(const struct type *type)
{
	if (type_is_real(type) && type->width == 16)
		return type->kind == TYPE_BFLOAT ? "__bf16" : "_Float16";
	if (type_is_real(type))
		return type->width == 64 ? "double" : "float";
	switch (type->width) {
	case 1: return "_Bool";
	case 8: return "signed char";
	case 16: return "short";
	case 32: return "int";
	default: return "long long";
	}
}

static inline uint64_t c_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* A number as it lies in an array. */
static inline union scalar c_number(const struct type *type, int64_t number)
{
	union scalar stored = { .integer = 0 };
	union scalar value = scalar_constant(
	        type, (double)number / 1000.0, type->width == 1 ? number & 1 : number);
	scalar_write(type, &value, &stored, 0, 1, 1);
	return stored;
}

static inline void c_fill(const struct region_array *array, void *data, uint64_t *state)
{
	for (int64_t i = 0; i < c_elements(array); i++) {
		int64_t number = (int64_t)(c_next(state) % 2001) - 900;
		size_t bytes = (size_t)(array->type->width + 7) / 8;
		union scalar stored = c_number(array->type, number);
		memcpy((char *)data + (size_t)i * bytes, &stored, bytes);
	}
}

/* Compiles the file with a function that takes all arguments by address. */
static inline void *c_compile(struct c_trial *t, const char *base)
{
	struct text code = text_new(t->arena);
	text_add(&code, "%s\nvoid c_trial_call(void **p) { %s(", t->text, t->region->name);
	for (size_t i = 0, n = 0; i < t->region->arrays.count; i++) {
		const struct region_array *array = &t->region->arrays.data[i];
		if (array->argument && array->rank)
			text_add(&code, "%sp[%zu]", n++ ? ", " : "", i);
		else if (array->argument)
			text_add(&code, "%s*(%s *)p[%zu]", n++ ? ", " : "",
			        c_type_name(array->type), i);
	}
	text_add(&code, "); }\n");
	FILE *file = fopen(text_format(t->arena, "%s.c", base), "wb");
	assert_non_null(file);
	fwrite(code.data, 1, code.size, file);
	fclose(file);
	const char *command = text_format(t->arena,
	        "cc -O0 -ffp-contract=off -fexcess-precision=16 -w -shared -fPIC -o %s.so %s.c -lm",
	        base, base);
	assert_int_equal(system(command), 0);
	void *library = dlopen(text_format(t->arena, "%s.so", base), RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	return library;
}

/* The region's scalars come before its arrays; the order of the parameters is that of the text. */
static inline void c_run_reference(struct c_trial *t)
{
	static int number;
	const char *base = text_format(t->arena, "/tmp/c_trial_%d_%d", (int)getpid(), number++);
	size_t arrays = t->region->arrays.count;
	uint64_t state = t->seed;
	t->argument = ARENA_ARRAY(t->arena, void *, arrays);
	const struct block *body = module_main(t->module)->region[0];
	t->input = ARENA_ARRAY(t->arena, struct tensor, body->arguments);
	for (size_t i = 0; i < arrays; i++) {
		const struct region_array *array = &t->region->arrays.data[i];
		size_t bytes = (size_t)c_elements(array) * (size_t)(array->type->width + 7) / 8;
		t->argument[i] = arena_alloc(t->arena, bytes);
		c_fill(array, t->argument[i], &state);
		for (int k = 0; k < body->arguments; k++) {
			const struct attr *name =
			        function_argument_attr(module_main(t->module), k, KEY_STREAM_NAME);
			if (array->argument && text_same(name->text, array->name))
				t->input[k] = (struct tensor){ body->argument[k]->type,
					arena_copy(t->arena, t->argument[i], bytes) };
		}
	}
	void *library = c_compile(t, base);
	void (*call)(void **);
	*(void **)&call = dlsym(library, "c_trial_call");
	assert_non_null(*(void **)&call);
	call(t->argument);
	dlclose(library);
	unlink(text_format(t->arena, "%s.c", base));
	unlink(text_format(t->arena, "%s.so", base));
}

/* --- the module --- */

/* The platform and the budget give loops of sequential nests lanes. */
static inline bool c_read_module(struct c_trial *t, const struct platform *platform)
{
	const struct c_options options = { .top = t->top };
	const struct c_source source = { t->file, t->text, strlen(t->text) };
	const struct raise_options raising = { t->reassociate, platform,
		5 + (int64_t)(t->seed * 7 % 41), 100000 };
	t->stage = "reading";
	t->module = module_new(t->arena, &t->guard, &t->diag, LEVEL_TENSOR);
	t->region = c_read(t->module, &options, &source);
	if (!t->region || !raise_region(t->module, t->region, &raising))
		return c_broken(t, "it is refused: %s", c_message(t));
	return ir_verify(t->module) || c_broken(t, "the verifier refuses it: %s", c_message(t));
}

static inline const void *c_expected(const struct c_trial *t, const char *name)
{
	for (size_t i = 0; i < t->region->arrays.count; i++)
		if (text_same(t->region->arrays.data[i].name, name))
			return t->argument[i];
	return NULL;
}

static inline double c_real_of(const struct type *type, const void *stored)
{
	union scalar value = { .integer = 0 };
	scalar_read(type, &value, stored, 0, 1, 1);
	return type->width == 64 ? value.f64 : (double)value.f32;
}

/* The same bits (a NaN has many), or apart by that much where the order of sums is free. */
static inline bool c_same(
        const struct type *tensor, const void *left, const void *right, float allowed)
{
	const struct type *type = type_scalar(tensor);
	if (!memcmp(left, right, (size_t)(type->width + 7) / 8))
		return true;
	if (!type_is_real(type))
		return false;
	double a = c_real_of(type, left);
	double b = c_real_of(type, right);
	return (isnan(a) && isnan(b)) || fabs(a - b) <= (double)allowed * fmax(1, fabs(b));
}

/* Results keep the order and the names of the module as it was read. */
static inline bool c_check_values(struct c_trial *t, int results, const char *const *name)
{
	struct tensor *result = ARENA_ARRAY(t->arena, struct tensor, results + 1);
	int inputs = eval_inputs(t->module);
	if (!eval_module(t->module, t->arena, inputs, t->input, result))
		return c_broken(t, "it cannot be evaluated: %s", c_message(t));
	for (int r = 0; r < results; r++) {
		const char *data = result[r].data;
		const char *expected = c_expected(t, name[r]);
		int64_t elements = type_elements(result[r].type);
		int64_t bytes = (int64_t)tensor_bytes(result[r].type) / elements;
		for (int64_t i = 0; i < elements; i++)
			if (!c_same(result[r].type, data + i * bytes, expected + i * bytes,
			            t->reassociate ? C_TOLERANCE : 0))
				return c_broken(t, "%s differs from element %lld on", name[r],
				        (long long)i);
	}
	return true;
}

/* Reads, runs every pass, and checks the values: after each, or (every false) first and last. */
static inline bool c_trial_steps(struct c_trial *t, const struct platform *platform, bool every)
{
	struct pass_context context = { .platform = platform };
	if (!c_read_module(t, platform))
		return false;
	int results = eval_results(t->module);
	const char **name = ARENA_ARRAY(t->arena, const char *, results);
	for (int r = 0; r < results; r++)
		name[r] = function_result_attr(module_main(t->module), r, KEY_STREAM_NAME)->text;
	c_run_reference(t);
	if (!c_check_values(t, results, name))
		return false;
	for (int p = 0; p < pass_count; p++) {
		t->stage = t->guard.stage = passes[p].name;
		if (!passes[p].run(&context, t->module))
			return c_broken(t, "the pass refuses it: %s", c_message(t));
		if (!ir_verify(t->module))
			return c_broken(t, "the verifier refuses it: %s", c_message(t));
		if ((every || p + 1 == pass_count) && !c_check_values(t, results, name))
			return false;
	}
	return true;
}

static inline bool c_trial_run(struct c_trial *t, bool every)
{
	volatile bool fine = false;
	if (setjmp(t->guard.leave))
		c_broken(t, "%s", t->guard.message);
	else
		fine = c_trial_steps(t, platform_load(t->arena, &t->diag, "u55c"), every);
	return fine;
}
#endif
