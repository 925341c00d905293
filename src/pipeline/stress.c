/* Stress mode: checks after every pass that the module's text reads back to itself, and that random
 * inputs give the same results as before the pass, within the tolerance of its numeric class. */
#include "pipeline/session.h"
#include "import/import.h"
#include "evaluate/eval.h"
#include "evaluate/scalar.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* elements of all inputs; larger modules are printed and read, but not evaluated */
#define ELEMENTS_MOST ((int64_t)1 << 21)
/* small enough for positions and token numbers of test models */
#define INTEGER_MOST 3
#define LINE_PART 100 /* characters shown before and after a difference */

static const double tolerance[] = {
	[NUMERIC_EXACT] = 0,
	[NUMERIC_REASSOCIATING] = 1e-5,
	[NUMERIC_APPROXIMATING] = 1e-4,
	[NUMERIC_QUANTIZING] = 0,
};
/* for values of 8 bits, or computed from such: a sum in another order may round to the adjacent
 * value */
static const double tolerance_narrow = 1e-2;

struct stress {
	struct arena *arena;
	int inputs, results; /* inputs 0: too large to be evaluated */
	struct tensor *input, *result;
};

bool stress_on(void)
{
#ifdef STC_STRESS
	return true;
#else
	const char *value = getenv("STREAMTENSOR_STRESS");
	return value && !strcmp(value, "1");
#endif
}

static uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	uint64_t mixed = (*state ^ (*state >> 30)) * 0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
	return mixed ^ (mixed >> 31);
}

static void store_integer(const struct type *scalar, void *data, int64_t at, int64_t value)
{
	int bytes = scalar->kind == TYPE_INDEX ? 8 : (scalar->width + 7) / 8;
	memcpy((char *)data + at * bytes, &value, (size_t)bytes);
}

/* Floats in [-1, 1), with few enough bits to be exact in every float type. */
static void store_real(const struct type *scalar, void *data, int64_t at, uint64_t random)
{
	float real = (float)((int)(random % 256) - 128) / 128;
	double wide = real;
	uint32_t bits;
	memcpy(&bits, &real, sizeof bits);
	if (scalar->width == 64)
		memcpy((double *)data + at, &wide, sizeof wide);
	else if (scalar->width == 32)
		memcpy((float *)data + at, &real, sizeof real);
	else if (scalar->kind == TYPE_BFLOAT)
		memcpy((uint16_t *)data + at, &(uint16_t){ (uint16_t)(bits >> 16) }, 2);
	else
		memcpy((uint16_t *)data + at,
		        &(uint16_t){ real == 0 ? 0
		                               : (uint16_t)((bits >> 16 & 0x8000) |
		                                         (((bits >> 23 & 255) - 112) << 10) |
		                                         (bits >> 13 & 1023)) },
		        2);
}

static void fill(struct tensor *tensor, uint64_t *state)
{
	const struct type *scalar = type_scalar(tensor->type);
	int64_t elements = type_elements(tensor->type);
	int64_t most = scalar->kind == TYPE_INTEGER && scalar->width == 1 ? 1 : INTEGER_MOST;
	for (int64_t i = 0; i < elements; i++)
		if (type_is_real(scalar))
			store_real(scalar, tensor->data, i, next_random(state));
		else
			store_integer(scalar, tensor->data, i,
			        (int64_t)(next_random(state) % (uint64_t)(most + 1)));
}

static int64_t input_elements(const struct op *function)
{
	int64_t total = 0;
	for (int i = 0; i < function->region[0]->arguments; i++)
		total += type_elements(function->region[0]->argument[i]->type);
	return total;
}

static void set_extent(
        const struct op *function, struct stress *stress, const struct attr *name, int64_t most)
{
	int number = name->kind == ATTR_STRING ? function_argument_named(function, name->text) : -1;
	const struct type *scalar = number < 0 ? NULL : type_scalar(stress->input[number].type);
	if (scalar && scalar->kind == TYPE_INTEGER)
		store_integer(scalar, stress->input[number].data, 0, most);
}

/* Run-time extents get their largest values, because before bind_extents all rows are computed;
 * token counts get random ones of at least 1. */
static void fill_extents(const struct op *function, struct stress *stress, uint64_t *state)
{
	for (int i = 0; i < stress->inputs; i++) {
		const struct attr *dims = function_argument_attr(function, i, KEY_STREAM_DIMS);
		const struct attr *rows =
		        function_argument_attr(function, i, KEY_STREAM_TOKEN_COUNT);
		const struct attr *axis = function_argument_attr(function, i, KEY_STREAM_AXIS);
		if (rows && axis)
			set_extent(function, stress, rows,
			        1 +
			                (int64_t)(next_random(state) %
			                        (uint64_t)stress->input[i]
			                                .type->shape[axis->integer]));
		for (int d = 0; dims && dims->kind == ATTR_ARRAY && d < dims->count &&
		        d < stress->input[i].type->rank;
		        d++)
			set_extent(function, stress, dims->items[d].value,
			        stress->input[i].type->shape[d]);
	}
}

static void make_inputs(struct session *session, struct stress *stress)
{
	struct block *body = module_main(session->module)->region[0];
	uint64_t state = 1;
	stress->inputs = body->arguments;
	stress->input = ARENA_ARRAY(stress->arena, struct tensor, stress->inputs);
	for (int i = 0; i < stress->inputs; i++) {
		stress->input[i].type = body->argument[i]->type;
		stress->input[i].data =
		        arena_alloc(stress->arena, tensor_bytes(body->argument[i]->type));
		fill(&stress->input[i], &state);
	}
	fill_extents(module_main(session->module), stress, &state);
}

/* Inputs below tensor level: those of the source function, then constants, whose values the module
 * holds. */
static struct tensor *inputs_now(struct session *session, struct stress *stress, int *count)
{
	const struct module *module = session->module;
	const struct attr *list = attr_get(module_main(module), KEY_STREAM_INPUTS);
	*count = eval_inputs(module);
	struct tensor *input = ARENA_ARRAY(stress->arena, struct tensor, *count);
	for (int i = 0; i < *count; i++) {
		if (i < stress->inputs) {
			input[i] = stress->input[i];
			continue;
		}
		const struct attr *value = list ? attr_item(list->items[i].value, KEY_VALUE) : NULL;
		INVARIANT(&session->guard, value && value->kind == ATTR_DENSE,
		        "input %d is new and has no numbers", i);
		size_t bytes = tensor_bytes(value->type);
		char *data = arena_alloc(stress->arena, bytes);
		for (size_t at = 0; at < bytes; at += value->bytes)
			memcpy(data + at, value->data, value->bytes);
		input[i] = (struct tensor){ value->type, data };
	}
	return input;
}

static struct tensor *evaluate(struct session *session, struct stress *stress, int *results)
{
	int inputs;
	int before = session->diag.count;
	struct tensor *input = inputs_now(session, stress, &inputs);
	struct tensor *result =
	        ARENA_ARRAY(stress->arena, struct tensor, eval_results(session->module));
	*results = eval_results(session->module);
	if (eval_module(session->module, stress->arena, inputs, input, result))
		return result;
	const char *why = session->diag.count > before ? session->diag.entry[before].message
	                                               : "no reason given";
	session->diag.count = before;
	guard_leave(&session->guard, GUARD_INVARIANT, "the module cannot be evaluated: %s", why);
}

struct stress *stress_begin(struct session *session)
{
	struct arena *arena = session->scratch = arena_new(&session->guard);
	struct stress *stress = ARENA_NEW(arena, struct stress);
	struct op *function = module_main(session->module);
	stress->arena = arena;
	if (session->module->level != LEVEL_TENSOR || !function ||
	        input_elements(function) > ELEMENTS_MOST)
		return stress;
	make_inputs(session, stress);
	stress->result = evaluate(session, stress, &stress->results);
	return stress;
}

static void check_text(struct session *session, struct arena *arena)
{
	struct text first = text_new(arena);
	struct text second = text_new(arena);
	ir_print(session->module, &first);
	struct module *copy =
	        import_mlir(arena, &session->guard, &session->diag, "dump", first.data, first.size);
	if (!copy)
		guard_leave(&session->guard, GUARD_INVARIANT,
		        "its text cannot be read back: line %d: %s",
		        session->diag.entry[0].location.line, session->diag.entry[0].message);
	ir_print(copy, &second);
	size_t at = 0;
	size_t line = 1;
	size_t start = 0;
	for (; at < first.size && at < second.size && first.data[at] == second.data[at]; at++)
		if (first.data[at] == '\n') {
			start = at + 1;
			line++;
		}
	size_t from = at > start + LINE_PART ? at - LINE_PART : start;
	INVARIANT(&session->guard, first.size == second.size && at == first.size,
	        "print, read, print differ in line %zu:\n%.*s\nbecomes\n%.*s", line, 2 * LINE_PART,
	        first.data + from, 2 * LINE_PART, second.data + from);
}

static double number_at(const struct tensor *tensor, int64_t at)
{
	const struct type *scalar = type_scalar(tensor->type);
	union {
		int64_t integer;
		float single;
		double wide;
	} number;
	scalar_read(scalar, &number, tensor->data, at, 0, 1);
	if (!type_is_real(scalar))
		return (double)number.integer;
	return scalar->width == 64 ? number.wide : (double)number.single;
}

/* max |difference| / max |reference|; a NaN only equals a NaN. */
static double distance(const struct tensor *left, const struct tensor *right)
{
	double most = 0;
	double scale = 0;
	for (int64_t i = 0, count = type_elements(left->type); i < count; i++) {
		double a = number_at(left, i);
		double b = number_at(right, i);
		if (isnan(a) && isnan(b))
			continue;
		double difference = a == b ? 0 : fabs(a - b);
		if (isnan(difference))
			difference = INFINITY;
		most = difference > most ? difference : most;
		scale = isfinite(a) ? fmax(scale, fabs(a)) : scale;
	}
	return most == 0 ? 0 : most / fmax(scale, 1e-30);
}

static double allowed(
        const struct session *session, const struct type *scalar, enum numeric_class numeric)
{
	bool narrow = session->quant || scalar->width < 32;
	return numeric != NUMERIC_EXACT && narrow ? tolerance_narrow : tolerance[numeric];
}

static void check_values(struct session *session, struct stress *stress, const struct pass *pass)
{
	int results;
	const struct tensor *result = evaluate(session, stress, &results);
	INVARIANT(&session->guard, results == stress->results, "%d results became %d",
	        stress->results, results);
	for (int i = 0; i < results; i++) {
		const struct tensor *before = &stress->result[i];
		const struct tensor *after = &result[i];
		const struct type *scalar = type_scalar(before->type);
		size_t bytes = tensor_bytes(before->type);
		INVARIANT(&session->guard, tensor_bytes(after->type) == bytes,
		        "result %d changed its size", i);
		bool rounded = type_is_real(scalar) || (session->quant && scalar->width == 8);
		double error = rounded ? distance(before, after) : INFINITY;
		if (!memcmp(before->data, after->data, bytes))
			error = 0;
		INVARIANT(&session->guard, error <= allowed(session, scalar, pass->numeric),
		        "result %d is off by %.3g; the pass is %s", i, error,
		        numeric_name[pass->numeric]);
	}
}

void stress_check(struct session *session, struct stress *stress, const struct pass *pass)
{
	check_text(session, stress->arena);
	/* tests compare what these passes round with PyTorch */
	bool rounds = session->quant && pass->numeric == NUMERIC_QUANTIZING;
	if (stress->result && !rounds)
		check_values(session, stress, pass);
	session->scratch = NULL;
	arena_free(stress->arena);
}
