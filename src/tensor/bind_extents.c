/* Bounds loops by run-time extents of dims.
 * An argument's stream.dims names, per dim, the input whose value is that dim's extent at run time
 * ("" elsewhere).
 * Before: for i in 0 .. extent      After: for i in 0 .. min(symbol + plus, extent)
 * Every loop over such a dim is bound, through all kernels; sizes, strides and layouts remain those
 * of compile time.  Where a concat has other elements before the dim, the bound grows by their
 * number (`plus`); elements after it are an error.  stream.window: nothing depends on rows older
 * than so many tokens, the launch's first included; these are skipped (ir/sliding_window.h).  The
 * number of valid tokens of an input is bound by bind_token_count.c.
 * Needs: kernels.
 * Guarantees: no kernel reads a row beyond a run-time extent.
 * Exact inside the extents.
 * Ends: each operand is visited once. */
#include "ir/sliding_window.h"
#include "ir/kernel_edit.h"
#include "tensor/tensor_passes.h"
#include <string.h>

/* In a value's linear addresses, (address / stride) % extent is valid below symbol + plus only. */
struct dynamic_digit {
	int64_t stride, extent;
	const char *symbol;
	int64_t plus;
};

/* All such digits of a value; it is the `data` of the value. */
struct dynamic_digits {
	VEC(struct dynamic_digit) list;
};

struct extent_binder {
	struct module *module;
	bool failed;
};

/* Is it the name of an input of one integer? */
static bool is_symbol(const struct op *main, const char *name)
{
	int number = function_argument_named(main, name);
	if (number < 0)
		return false;
	const struct type *type = main->region[0]->argument[number]->type;
	const struct attr *role = function_argument_attr(main, number, KEY_STREAM_ROLE);
	bool is_integer = type->kind == TYPE_TENSOR && type_elements(type) == 1 &&
	        type_scalar(type)->kind == TYPE_INTEGER;
	return is_integer && role && text_same(role->text, "input");
}

static struct dynamic_digits *digits_of(struct extent_binder *b, struct value *value)
{
	if (!value->data)
		value->data = ARENA_NEW(b->module->arena, struct dynamic_digits);
	return value->data;
}

static void add_digit(struct extent_binder *b, struct value *value, struct dynamic_digit digit)
{
	struct dynamic_digits *digits = digits_of(b, value);
	VEC_PUSH(b->module->arena, &digits->list, digit);
}

/* The symbol, or one of its own for a sliding window smaller than the extent. */
static const char *symbol_of(struct extent_binder *b, const struct op *main, int number,
        const char *symbol, int64_t extent)
{
	const struct attr *window = function_argument_attr(main, number, KEY_STREAM_WINDOW);
	if (window && (window->kind != ATTR_INTEGER || window->integer < 1)) {
		b->failed = true;
		diag_error(b->module->diag, main->location,
		        "stream.window of argument %d is no number of tokens", number);
		diag_note(b->module->diag, "accepted is an integer from 1 on");
	}
	if (!window || b->failed || window->integer > extent)
		return symbol;
	const int64_t rows = window->integer - 1;
	return sliding_window_add(b->module,
	        (struct sliding_window){
	                .symbol = symbol, .tile = 1, .most = extent, .layers = 1, .rows = &rows });
}

/* Notes the run-time extents of an argument. */
static void mark_argument(struct extent_binder *b, struct op *main, int number)
{
	struct value *argument = main->region[0]->argument[number];
	const struct attr *dims = function_argument_attr(main, number, KEY_STREAM_DIMS);
	if (!dims)
		return;
	const struct type *type = argument->type;
	if (dims->kind != ATTR_ARRAY || type->kind != TYPE_TENSOR || dims->count != type->rank) {
		b->failed = true;
		diag_error(b->module->diag, main->location,
		        "argument %d of main has stream.dims of another rank", number);
		diag_note(b->module->diag,
		        "accepted is one string per dim: the name of an input of one integer, or "
		        "\"\"");
		return;
	}
	const struct attr **symbols =
	        ARENA_ARRAY(b->module->arena, const struct attr *, type->rank + 1);
	for (int d = 0; d < type->rank; d++) {
		const struct attr *name = symbols[d] = dims->items[d].value;
		if (name->kind != ATTR_STRING || !*name->text)
			continue;
		if (!is_symbol(main, name->text)) {
			b->failed = true;
			diag_error(b->module->diag, main->location,
			        "stream.dims of argument %d names \"%s\", which is no input of one "
			        "integer",
			        number, name->text);
			diag_note(b->module->diag,
			        "accepted is the stream.name of an argument of role input, an "
			        "integer tensor of one element");
			return;
		}
		int64_t stride = 1;
		for (int inner = d + 1; inner < type->rank; inner++)
			stride *= type->shape[inner];
		const char *symbol = symbol_of(b, main, number, name->text, type->shape[d]);
		symbols[d] = attr_string(b->module, symbol);
		add_digit(b, argument,
		        (struct dynamic_digit){
		                .stride = stride, .extent = type->shape[d], .symbol = symbol });
	}
	function_set_argument_attr(b->module, main, number, KEY_STREAM_DIMS,
	        attr_array(b->module, type->rank, symbols));
}

/* The counters for which the operand is active. */
static struct guard_range active_range(
        const struct kernel *kernel, const struct access *access, int loop)
{
	const struct guard_range *guard = access_guard(access, loop);
	if (guard)
		return *guard;
	return (struct guard_range){ .loop = loop, .high = kernel->loop[loop].extent };
}

/* Does the loop walk exactly this digit of the operand? */
static bool walks_digit(
        const struct op *op, int operand, const struct dynamic_digit *digit, int loop)
{
	const struct access *access = &op->kernel->operand[operand];
	struct guard_range range = active_range(op->kernel, access, loop);
	int64_t first = access->offset + range.low * access->stride[loop];
	return access->stride[loop] == digit->stride && range.high - range.low == digit->extent &&
	        first / digit->stride % digit->extent == 0;
}

static bool report_dynamic_extent(struct extent_binder *b, const struct op *op,
        const struct dynamic_digit *digit, const char *why)
{
	b->failed = true;
	diag_error(b->module->diag, op->location, "the run-time extent \"%s\" %s",
	        sliding_window_symbol(b->module, digit->symbol), why);
	return diag_note(b->module->diag,
	        "accepted are dimensions that loops traverse completely, alone or last in a "
	        "concat; without stream.dims the extent is static");
}

/* Do all guards end before the rows that a sliding window may skip? */
static bool guards_precede_window(const struct op *op, int loop, int64_t plus)
{
	int64_t extent = op->kernel->loop[loop].extent;
	for (int j = 0; j < op->operands; j++) {
		const struct guard_range *guard = access_guard(&op->kernel->operand[j], loop);
		if (guard && (guard->low > plus || (guard->high > plus && guard->high < extent)))
			return false;
	}
	return true;
}

static bool bind_loop(struct extent_binder *b, struct op *op, int operand,
        const struct dynamic_digit *digit, int number)
{
	struct loop *loop = &op->kernel->loop[number];
	struct guard_range range = active_range(op->kernel, &op->kernel->operand[operand], number);
	struct run_time_trip *trip = ARENA_NEW(b->module->arena, struct run_time_trip);
	*trip = (struct run_time_trip){ .symbol = digit->symbol,
		.plus = digit->plus + range.low,
		.tile = 1,
		.most = loop->extent };
	if (range.high != loop->extent)
		return report_dynamic_extent(b, op, digit, "is not the last part of a concat");
	if (loop->run_time && !run_time_same(loop->run_time, trip))
		return report_dynamic_extent(b, op, digit, "meets another one in the same loop");
	if (!text_same(sliding_window_symbol(b->module, digit->symbol), digit->symbol) &&
	        !guards_precede_window(op, number, trip->plus))
		return report_dynamic_extent(
		        b, op, digit, "has a sliding window, and is traversed partially");
	loop->run_time = trip;
	return true;
}

/* Does the loop walk a part of the digit? */
static bool walks_part(const struct kernel *kernel, const struct access *access,
        const struct dynamic_digit *digit, int loop)
{
	int64_t stride = access->stride[loop];
	return stride && stride < digit->stride * digit->extent &&
	        stride * (kernel->loop[loop].extent - 1) >= digit->stride;
}

/* Joins a loop over equal parts of a concat with the loop over the rows of a part: bound by one
 * part's rows, the inner loop would end for the other parts as well. */
static void join_parts(
        struct extent_binder *b, struct op *op, int operand, const struct dynamic_digit *digit)
{
	const struct kernel *kernel = op->kernel;
	const struct access *access = &kernel->operand[operand];
	for (int l = 0; l + 1 < kernel->loops; l++) {
		int64_t rows = kernel->loop[l + 1].extent;
		int64_t all = access_guard(access, l) ? rows : rows * kernel->loop[l].extent;
		if (access->stride[l + 1] == digit->stride && all == digit->extent &&
		        kernel->loop[l].extent > 1)
			kernel_join_loops(b->module, op, l);
	}
}

/* Does the loop also walk other operands for results that do not depend on this one?  A result that
 * sums over the loop of a guard depends on what is behind the guard. */
static bool is_shared_loop(const struct op *op, int operand, int loop)
{
	const struct access *access = &op->kernel->operand[operand];
	const struct loop *loops = op->kernel->loop;
	bool elsewhere = false;
	bool others = false;
	for (int i = 0; i < access->guards; i++) {
		int guarded = access->guard[i].loop;
		elsewhere |=
		        guarded != loop && (loops[loop].reduction || !loops[guarded].reduction);
	}
	for (int j = 0; j < op->operands; j++)
		others |= !op->operand[j]->data && op->kernel->operand[j].stride[loop] != 0;
	return elsewhere && others;
}

static void bind_operand(
        struct extent_binder *b, struct op *op, int operand, const struct dynamic_digit *digit)
{
	kernel_cut_loops(b->module, op, operand, digit->stride, digit->extent);
	join_parts(b, op, operand, digit);
	for (int l = 0; l < op->kernel->loops; l++)
		if (walks_digit(op, operand, digit, l)) {
			if (is_shared_loop(op, operand, l))
				report_dynamic_extent(
				        b, op, digit, "bounds a loop over other elements as well");
			else
				bind_loop(b, op, operand, digit, l);
			return;
		}
	for (int l = 0; l < op->kernel->loops; l++)
		if (walks_part(op->kernel, &op->kernel->operand[operand], digit, l)) {
			report_dynamic_extent(b, op, digit, "is traversed partially");
			return;
		}
}

static void bind_kernel(struct extent_binder *b, struct op *op)
{
	for (int j = 0; j < op->operands && !b->failed; j++) {
		struct dynamic_digits *digits = op->operand[j]->data;
		for (size_t i = 0; digits && i < digits->list.count && !b->failed; i++)
			bind_operand(b, op, j, &digits->list.data[i]);
	}
	kernel_tidy(b->module, op);
	for (int l = 0; l < op->kernel->loops; l++) {
		const struct loop *loop = &op->kernel->loop[l];
		if (loop->run_time && !loop->reduction && op->kernel->result.stride[l])
			add_digit(b, op->result[0],
			        (struct dynamic_digit){ op->kernel->result.stride[l], loop->extent,
			                loop->run_time->symbol, loop->run_time->plus });
	}
}

/* Results of main must have the extents of their types. */
static void check_results(struct extent_binder *b, const struct op *last)
{
	for (int i = 0; i < last->operands && !b->failed; i++) {
		const struct dynamic_digits *digits = last->operand[i]->data;
		if (digits && digits->list.count && last->operand[i]->def)
			report_dynamic_extent(
			        b, last, &digits->list.data[0], "reaches a result of main");
	}
}

bool bind_extents(struct pass_context *context, struct module *module)
{
	(void)context;
	struct extent_binder b = { .module = module };
	struct op *main = module_main(module);
	struct block *body = main->region[0];
	ir_clear_data(body);
	for (int i = 0; i < body->arguments && !b.failed; i++)
		mark_argument(&b, main, i);
	for (struct op *op = body->first; op && !b.failed; op = op->next)
		if (op->code == OP_KERNEL)
			bind_kernel(&b, op);
	check_results(&b, body->last);
	return !b.failed;
}
