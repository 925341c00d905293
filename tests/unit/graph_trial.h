/* A random graph or model taken through the passes, and what is checked on the way.  Shared by
 * the tests of values and of emitted C++. STC_RANDOM_KEEP names a file that is given the text of
 * a graph that fails; STC_RANDOM_FILE a file that is run instead of a seed. */
#ifndef GRAPH_TRIAL_H
#define GRAPH_TRIAL_H
#include "random_types.h"
#include "base/data.h"
#include "base/npy.h"
#include "pipeline/passes.h"
#include "import/import.h"
#include "platform/platform.h"
#include "evaluate/eval.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TOLERANCE 1e-5 /* of the largest element, for passes that reorder sums */
/* what ill-conditioned graphs do with this much of noise in the inputs … */
#define PERTURBATION 0x1p-21f
#define CONDITION 16 /* … times this is allowed too */

struct graph_trial {
	uint64_t seed;
	struct arena *arena;
	struct guard guard;
	struct diag diag;
	struct module *module;
	struct text source;
	const char *stage, *failure;
	int inputs, results;
	/* of the function as imported; the same with noise */
	struct tensor *input, *shaken;
	struct tensor *start, *shaken_start; /* results as imported */
	struct tensor *before;               /* results before the pass */
	bool refused;
	struct text emitted; /* C++, if asked for */
};

static inline int64_t number_from(const char *variable, int64_t otherwise)
{
	const char *text = getenv(variable);
	return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static inline bool broken(struct graph_trial *t, const char *format, ...)
{
	va_list arguments;
	struct text text = text_new(t->arena);
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	t->failure = text.data;
	return false;
}

static inline const char *first_message(const struct graph_trial *t)
{
	return t->diag.count ? t->diag.entry[0].message : "no message";
}

static inline uint64_t next_number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static inline void make_inputs(struct graph_trial *t)
{
	const struct block *body = module_main(t->module)->region[0];
	uint64_t state = t->seed;
	t->inputs = body->arguments;
	t->input = ARENA_ARRAY(t->arena, struct tensor, t->inputs + 1);
	t->shaken = ARENA_ARRAY(t->arena, struct tensor, t->inputs + 1);
	for (int i = 0; i < t->inputs; i++) {
		const struct type *type = body->argument[i]->type;
		t->input[i] = t->shaken[i] =
		        (struct tensor){ type, arena_alloc(t->arena, tensor_bytes(type)) };
		if (type_is_real(type->element))
			t->shaken[i].data = arena_alloc(t->arena, tensor_bytes(type));
		for (int64_t k = 0; k < type_elements(type); k++) {
			if (!type_is_real(type->element)) {
				((int64_t *)t->input[i].data)[k] =
				        (int64_t)(next_number(&state) % 3);
				continue;
			}
			float number = (float)((int)(next_number(&state) % 2001) - 900) / 1000.0f;
			((float *)t->input[i].data)[k] = number;
			((float *)t->shaken[i].data)[k] = number *
			        (1 + (float)((int)(next_number(&state) % 3) - 1) * PERTURBATION);
		}
	}
}

static inline struct tensor *evaluate(struct graph_trial *t, const struct tensor *given)
{
	struct tensor *result = ARENA_ARRAY(t->arena, struct tensor, eval_results(t->module) + 1);
	bool done = eval_module(t->module, t->arena, t->inputs, given, result);
	if (!done)
		broken(t, "it cannot be evaluated: %s", first_message(t));
	return done ? result : NULL;
}

struct distance {
	double most, scale;
};

static inline struct distance distance(const struct tensor *left, const struct tensor *right)
{
	struct distance d = { 0, 0 };
	for (int64_t i = 0; i < type_elements(left->type); i++) {
		double a = (double)((const float *)left->data)[i],
		       b = (double)((const float *)right->data)[i];
		double apart = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b);
		d.most = apart <= d.most ? d.most : isnan(apart) ? INFINITY : apart;
		d.scale = isfinite(a) ? fmax(d.scale, fabs(a)) : d.scale;
	}
	return d;
}

static inline bool compare(
        struct graph_trial *t, int result, const struct tensor *after, enum numeric_class numeric)
{
	const struct tensor *before = &t->before[result];
	size_t bytes = tensor_bytes(before->type);
	if (tensor_bytes(after->type) != bytes)
		return broken(t, "result %d changed its size", result);
	if (!memcmp(before->data, after->data, bytes))
		return true;
	if (!type_is_real(type_scalar(before->type)))
		return broken(t, "result %d has other integers", result);
	struct distance moved = distance(before, after),
	                noise = distance(&t->start[result], &t->shaken_start[result]);
	double allowed =
	        numeric == NUMERIC_EXACT ? 0 : TOLERANCE * moved.scale + CONDITION * noise.most;
	return moved.most <= allowed ||
	        broken(t,
	                "result %d is off by %.3g where %.3g is allowed (its largest element: "
	                "%.3g)",
	                result, moved.most, allowed, moved.scale);
}

static inline bool check_values(struct graph_trial *t, enum numeric_class numeric)
{
	if (eval_results(t->module) != t->results)
		return broken(t, "%d results became %d", t->results, eval_results(t->module));
	struct tensor *after = evaluate(t, t->input);
	for (int r = 0; after && r < t->results; r++)
		if (!compare(t, r, &after[r], numeric))
			return false;
	t->before = after;
	return after;
}

static inline bool check_text(struct graph_trial *t)
{
	struct text first = text_new(t->arena), second = text_new(t->arena);
	ir_print(t->module, &first);
	struct module *again =
	        import_mlir(t->arena, &t->guard, &t->diag, "dump", first.data, first.size);
	if (!again)
		return broken(t, "its text cannot be read back: line %d: %s",
		        t->diag.entry[0].location.line, first_message(t));
	ir_print(again, &second);
	return (first.size == second.size && !memcmp(first.data, second.data, first.size)) ||
	        broken(t, "print, read, print differ");
}

/* What a model may ask for that is not supported, by part of its message. */
static inline bool is_refusal(const struct graph_trial *t)
{
	static const char *const known[] = { "a gather from a tensor that a kernel computes",
		"a gather of more than parts of one row", "which no kernel reads", "memory ports,",
		"of one die of" };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (t->diag.count && strstr(t->diag.entry[0].message, known[i]))
			return true;
	return false;
}

static inline bool run_pass(
        struct graph_trial *t, struct pass_context *context, const struct pass *pass)
{
	t->stage = t->guard.stage = pass->name;
	if (!pass->run(context, t->module)) {
		t->refused = is_refusal(t);
		return broken(t, "the pass refuses it: %s", first_message(t));
	}
	if (t->diag.count || !ir_verify(t->module))
		return broken(t, "the verifier refuses it: %s", first_message(t));
	if (t->module->level != pass->produced)
		return broken(t, "it left level %s", level_name(t->module->level));
	return true;
}

static inline bool start(struct graph_trial *t, bool every)
{
	t->stage = t->guard.stage = "import";
	t->module =
	        import_mlir(t->arena, &t->guard, &t->diag, "graph", t->source.data, t->source.size);
	if (!t->module || !ir_verify(t->module))
		return broken(t, "%s", first_message(t));
	make_inputs(t);
	t->results = eval_results(t->module);
	if (!every)
		return true;
	t->start = evaluate(t, t->input);
	t->shaken_start = evaluate(t, t->shaken);
	t->before = t->start;
	return t->start && t->shaken_start;
}

static inline void write_bytes(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static inline void keep(const struct graph_trial *t)
{
	const char *path = getenv("STC_RANDOM_KEEP");
	if (path && *path)
		write_bytes(path, t->source.data, t->source.size);
}

/* Odd seeds: tensors and views; even seeds: models, of several element types where 4 does not
 * divide the seed.  STC_RANDOM_FILE: that file, whatever the seed. */
static inline void write_source(struct graph_trial *t)
{
	const char *path = getenv("STC_RANDOM_FILE"), *reason;
	size_t size;
	t->source = text_new(t->arena);
	if (path) {
		const char *data = file_read(t->arena, path, &size, &reason);
		assert_non_null(data);
		text_add_bytes(&t->source, data, size);
	} else if (t->seed % 2)
		random_graph(t->seed, 3 + (int)(t->seed % 17), &t->source);
	else if (t->seed % 4)
		random_types(t->seed, 2 + (int)(t->seed % 9), &t->source);
	else
		random_model(t->seed, 2 + (int)(t->seed % 9), &t->source);
}

/* All passes; `every`: the text and the values are checked after each, else the values are only
 * those of hardware level. */
static inline bool run_passes(struct graph_trial *t, const struct platform *platform, bool every)
{
	struct pass_context context = { .platform = platform };
	/* rows of the models are short: running where it is asked for */
	context.choices.value[CHOICE_SOFTMAX] =
	        1 + (t->seed % 4 < 2 ? SOFTMAX_ONLINE : SOFTMAX_AUTO);
	bool fine = start(t, every);
	for (int p = 0; fine && p < pass_count; p++)
		fine = run_pass(t, &context, &passes[p]) &&
		        (!every || (check_text(t) && check_values(t, passes[p].numeric)));
	if (fine && !every)
		t->before = evaluate(t, t->input);
	return fine && t->before;
}

/* `after`, if not NULL, is what else the module of hardware level is for; it may fail as a pass
 * may. */
static inline bool trial_run(struct graph_trial *t, bool every, bool (*after)(struct graph_trial *))
{
	write_source(t);
	volatile bool fine = false;
	if (setjmp(t->guard.leave))
		broken(t, "%s", t->guard.message);
	else
		fine = run_passes(t, platform_load(t->arena, &t->diag, "u55c"), every) &&
		        (!after || after(t));
	return fine;
}

static inline void trial_report(const struct graph_trial *t)
{
	print_message("seed %llu: %s: %s\n", (unsigned long long)t->seed, t->stage, t->failure);
	keep(t);
}

static inline struct graph_trial *trial_new(uint64_t seed)
{
	struct graph_trial *t = calloc(1, sizeof *t);
	t->seed = seed;
	t->arena = arena_new(&t->guard);
	t->diag.arena = t->arena;
	return t;
}

static inline void trial_free(struct graph_trial *t)
{
	arena_free(t->arena);
	free(t);
}

#endif
