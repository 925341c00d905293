/* The IR: types, text that MLIR accepts and that reads back to the same bytes, kernels' bodies,
 * the verifier, copies. */
#define _POSIX_C_SOURCE 200809L /* popen */
#include "import/import.h"
#include "ir/kernel.h"
#include "ir/sliding_window.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define IRDL STC_SOURCE_DIR "/share/streamtensor.irdl.mlir"

struct fixture {
	struct guard guard;
	struct diag diag;
	struct arena *arena;
	struct module *module;
	const struct type *f32, *index;
};

static void begin(struct fixture *fixture, enum level level)
{
	memset(fixture, 0, sizeof *fixture);
	fixture->arena = arena_new(&fixture->guard);
	fixture->diag.arena = fixture->arena;
	fixture->module = module_new(fixture->arena, &fixture->guard, &fixture->diag, level);
	fixture->f32 = type_float(fixture->module, 32);
	fixture->index = type_index(fixture->module);
}

static const struct type *tensor(struct fixture *fixture, int64_t rows, int64_t columns)
{
	return type_shaped(
	        fixture->module, TYPE_TENSOR, 2, (int64_t[]){ rows, columns }, fixture->f32);
}

static struct op *add_function(struct fixture *fixture, const char *name, int inputs,
        const struct type *const *input, int outputs, const struct type *const *output)
{
	struct module *module = fixture->module;
	struct op *function = op_new(module, OP_FUNC, NOWHERE, 0, NULL, 0, NULL);
	op_append(module_body(module), function);
	struct block *body = block_new(module, function, 0);
	attr_set(module, function, KEY_SYM_NAME, attr_string(module, name));
	attr_set(module, function, KEY_FUNCTION_TYPE,
	        attr_type(module, type_function(module, inputs, input, outputs, output)));
	for (int i = 0; i < inputs; i++)
		block_add_argument(module, body, input[i]);
	return function;
}

static struct op *add(struct fixture *fixture, struct block *block, enum op_code code, int operands,
        struct value *const *operand, const struct type *result)
{
	struct op *op =
	        op_new(fixture->module, code, NOWHERE, operands, operand, result ? 1 : 0, &result);
	op_append(block, op);
	return op;
}

static struct value *constant(
        struct fixture *fixture, struct block *block, const struct attr *value)
{
	struct op *op = add(fixture, block, OP_CONSTANT, 0, NULL, value->type);
	attr_set(fixture->module, op, KEY_VALUE, value);
	return op->result[0];
}

static int operand_node(struct fixture *fixture, struct body *body, int operand)
{
	return body_add(fixture->module, body,
	        (struct node){ .kind = NODE_OPERAND, .type = fixture->f32, .integer = operand });
}

static int op_node(
        struct fixture *fixture, struct body *body, enum op_code code, int left, int right)
{
	return body_add(fixture->module, body,
	        (struct node){ .kind = NODE_OP,
	                .code = code,
	                .type = fixture->f32,
	                .argument = { left, right } });
}

/* y[8, 32] = max(0, x[8, 16] · w[32, 16]); x is only read for its first 12 columns. */
static struct op *add_matmul(
        struct fixture *fixture, struct block *block, struct value *x, struct value *w)
{
	struct op *op = kernel_new(fixture->module, NOWHERE, "k3", 3, 2, (struct value *[]){ x, w },
	        tensor(fixture, 8, 32));
	op_append(block, op);
	struct kernel *kernel = op->kernel;
	kernel->loop[0].extent = 8;
	kernel->loop[1].extent = 32;
	kernel->loop[2] = (struct loop){ .extent = 16, .reduction = true };
	kernel->operand[0].stride[0] = 16;
	kernel->operand[0].stride[2] = 1;
	kernel->operand[0].guards = 1;
	kernel->operand[0].guard = ARENA_NEW(fixture->arena, struct guard_range);
	*kernel->operand[0].guard = (struct guard_range){ .loop = 2, .low = 0, .high = 12 };
	kernel->operand[1].stride[1] = 16;
	kernel->operand[1].stride[2] = 1;
	kernel->result.stride[0] = 32;
	kernel->result.stride[1] = 1;
	struct body *update = &kernel->update;
	struct body *post = &kernel->post;
	int left = operand_node(fixture, update, 0);
	int right = operand_node(fixture, update, 1);
	int product = op_node(fixture, update, OP_MULF, left, right);
	struct node accumulator = { .kind = NODE_ACCUMULATOR, .type = fixture->f32 };
	update->result = op_node(
	        fixture, update, OP_ADDF, body_add(fixture->module, update, accumulator), product);
	int zero = body_add(fixture->module, post,
	        (struct node){ .kind = NODE_CONSTANT, .type = fixture->f32 });
	post->result = op_node(
	        fixture, post, OP_MAXIMUMF, body_add(fixture->module, post, accumulator), zero);
	int term;
	kernel->combine = kernel_combine(kernel, &term);
	return op;
}

static struct op *make_tensor(struct fixture *fixture)
{
	begin(fixture, LEVEL_TENSOR);
	const struct type *input[] = { tensor(fixture, 8, 16), tensor(fixture, 32, 16) };
	const struct type *output = tensor(fixture, 8, 32);
	struct op *main = add_function(fixture, "main", 2, input, 1, &output);
	struct block *body = main->region[0];
	struct op *kernel = add_matmul(fixture, body, body->argument[0], body->argument[1]);
	add(fixture, body, OP_RETURN, 1, kernel->result, NULL);
	return kernel;
}

static const struct type *stream(struct fixture *fixture, int64_t trips)
{
	struct module *module = fixture->module;
	const struct type *word =
	        type_shaped(module, TYPE_VECTOR, 1, (int64_t[]){ 4 }, fixture->f32);
	int64_t *row = affine_rows(fixture->arena, 1, 1);
	row[0] = 1;
	return type_itensor(module, word,
	        &(struct itensor){ .dims = 1,
	                .trip = &trips,
	                .step = (int64_t[]){ 4 },
	                .map = { 1, 1, row } });
}

/* A load whose stream is forked and stored twice. */
static struct op *make_stream(struct fixture *fixture)
{
	begin(fixture, LEVEL_STREAM);
	struct module *module = fixture->module;
	const struct type *input = tensor(fixture, 8, 16);
	const struct type *words = stream(fixture, 32);
	struct op *main = add_function(fixture, "main", 1, &input, 0, NULL);
	struct block *body = main->region[0];
	struct op *load = add(fixture, body, OP_LOAD, 1, body->argument, words);
	attr_set(module, load, KEY_TENSOR, attr_type(module, input));
	struct op *fork = op_new(module, OP_FORK, NOWHERE, 1, load->result, 2,
	        (const struct type *[]){ words, words });
	op_append(body, fork);
	attr_set(module, fork, KEY_TENSOR, attr_type(module, input));
	for (int i = 0; i < 2; i++) {
		struct op *store = add(fixture, body, OP_STORE, 1, &fork->result[i], NULL);
		attr_set(module, store, KEY_RESULT, attr_integers(module, 1, (int64_t[]){ i }));
	}
	add(fixture, body, OP_RETURN, 0, NULL, NULL);
	return load;
}

struct design {
	struct op *main, *source, *sink; /* functions */
	struct op *loop, *push;          /* of the source */
	struct op *fifo, *call;
};

/* for i < 8, pipelined: push or take */
static struct op *add_process(struct fixture *fixture, const char *name, const struct type *port,
        const struct type *fifo, struct op **access, struct op **loop)
{
	struct module *module = fixture->module;
	struct op *process =
	        add_function(fixture, name, 2, (const struct type *[]){ port, fifo }, 0, NULL);
	attr_set(module, process, KEY_STREAM_PROCESS, attr_unit(module));
	attr_set(module, process, KEY_STREAM_STYLE, attr_string(module, "stp"));
	attr_set(module, process, KEY_SYM_VISIBILITY, attr_string(module, "private"));
	struct block *body = process->region[0];
	struct value *bound[3];
	struct value *yes = constant(fixture, body, attr_bool(module, true));
	for (int i = 0; i < 3; i++)
		bound[i] = constant(fixture, body,
		        attr_typed_integer(module, (int64_t[]){ 0, 8, 1 }[i], fixture->index));
	*loop = add(fixture, body, OP_FOR, 3, bound, NULL);
	attr_set(module, *loop, KEY_STREAM_PIPELINE, attr_integer(module, 1));
	struct block *inner = block_new(module, *loop, 0);
	struct value *i = block_add_argument(module, inner, fixture->index);
	if (!strcmp(name, "source")) {
		struct op *word = add(fixture, inner, OP_MEMREF_LOAD, 2,
		        (struct value *[]){ body->argument[0], i }, fixture->f32);
		*access = add(fixture, inner, OP_PUSH, 3,
		        (struct value *[]){ yes, word->result[0], body->argument[1] }, NULL);
	} else {
		*access = add(fixture, inner, OP_POP, 2,
		        (struct value *[]){ yes, body->argument[1] }, fixture->f32);
		add(fixture, inner, OP_MEMREF_STORE, 3,
		        (struct value *[]){ (*access)->result[0], body->argument[0], i }, NULL);
	}
	add(fixture, inner, OP_YIELD, 0, NULL, NULL);
	add(fixture, body, OP_RETURN, 0, NULL, NULL);
	return process;
}

static struct design make_hardware(struct fixture *fixture)
{
	begin(fixture, LEVEL_HARDWARE);
	struct module *module = fixture->module;
	const struct type *port =
	        type_shaped(module, TYPE_MEMREF, 1, (int64_t[]){ -1 }, fixture->f32);
	const struct type *fifo = type_channel(module, TYPE_FIFO, fixture->f32, 64);
	struct design design;
	design.main =
	        add_function(fixture, "main", 2, (const struct type *[]){ port, port }, 0, NULL);
	struct op *take;
	struct op *loop;
	design.source = add_process(fixture, "source", port, fifo, &design.push, &design.loop);
	design.sink = add_process(fixture, "sink", port, fifo, &take, &loop);
	struct block *body = design.main->region[0];
	design.fifo = add(fixture, body, OP_FIFO, 0, NULL, fifo);
	attr_set(module, design.fifo, KEY_NAME, attr_string(module, "words"));
	for (int i = 0; i < 2; i++) {
		design.call = add(fixture, body, OP_CALL, 2,
		        (struct value *[]){ body->argument[i], design.fifo->result[0] }, NULL);
		attr_set(module, design.call, KEY_CALLEE,
		        attr_symbol(module, i ? "sink" : "source"));
	}
	add(fixture, body, OP_RETURN, 0, NULL, NULL);
	return design;
}

static const char *printed(struct fixture *fixture)
{
	struct text text = text_new(fixture->arena);
	ir_print(fixture->module, &text);
	return text.data;
}

static void expect_valid(struct fixture *fixture)
{
	bool valid = ir_verify(fixture->module);
	struct text text = text_new(fixture->arena);
	diag_print(&fixture->diag, &text);
	if (!valid)
		print_error("%s", text.data);
	assert_true(valid);
}

/* The verifier refuses the module, and says this. */
static void expect_invalid(struct fixture *fixture, const char *message)
{
	assert_false(ir_verify(fixture->module));
	struct text text = text_new(fixture->arena);
	diag_print(&fixture->diag, &text);
	if (!strstr(text.data, message))
		print_error("expected '%s' in:\n%s", message, text.data);
	assert_non_null(strstr(text.data, message));
	arena_free(fixture->arena);
}

static void expect_mlir_accepts(const char *text)
{
	FILE *tool = popen("mlir-opt-19 --irdl-file=" IRDL " - -o /dev/null", "w");
	assert_non_null(tool);
	fputs(text, tool);
	assert_int_equal(pclose(tool), 0);
}

/* Text, read and printed again, is the same text. */
static void expect_round_trip(const char *text)
{
	struct fixture again;
	begin(&again, LEVEL_TENSOR);
	again.module = import_mlir(
	        again.arena, &again.guard, &again.diag, "dump.mlir", text, strlen(text));
	struct text messages = text_new(again.arena);
	diag_print(&again.diag, &messages);
	if (!again.module)
		print_error("%s", messages.data);
	assert_non_null(again.module);
	assert_string_equal(printed(&again), text);
	arena_free(again.arena);
}

static void check_text(struct fixture *fixture)
{
	expect_valid(fixture);
	const char *text = printed(fixture);
	expect_mlir_accepts(text);
	expect_round_trip(text);
	struct arena *other = arena_new(&fixture->guard);
	struct fixture copy = *fixture;
	copy.arena = other;
	copy.module = module_clone(fixture->module, other);
	char *before = test_malloc(strlen(text) + 1);
	strcpy(before, text);
	arena_free(fixture->arena);
	copy.diag.arena = other;
	copy.module->diag = &copy.diag;
	assert_true(ir_verify(copy.module));
	assert_string_equal(printed(&copy), before);
	test_free(before);
	arena_free(other);
}

static void tensor_text(void **state)
{
	(void)state;
	struct fixture fixture;
	make_tensor(&fixture);
	assert_non_null(strstr(printed(&fixture), "guards = [array<i64: 0, 2, 0, 12>]"));
	check_text(&fixture);
}

static void stream_text(void **state)
{
	(void)state;
	struct fixture fixture;
	make_stream(&fixture);
	check_text(&fixture);
}

static void hardware_text(void **state)
{
	(void)state;
	struct fixture fixture;
	make_hardware(&fixture);
	check_text(&fixture);
}

/* Numbers in every form: each must read back to the same bits. */
static void number_text(void **state)
{
	(void)state;
	static const double number[] = { 0.0, -0.0, 1.0, -1.5, 0.1f, 1e-5f, 1e20f,
		3.4028234663852886e38, 1.401298464324817e-45, 16777217, INFINITY, -INFINITY, NAN };
	static const float numbers[] = { 1.0f, 2.5f, -0.0f, 1e-30f };
	static const float same[] = { 0.5f, 0.5f, 0.5f };
	static const unsigned char flags[] = { 1, 0, 1, 1, 0, 0, 0, 1, 1 };
	static const int64_t integers[] = { -1, 7 };
	struct fixture fixture;
	begin(&fixture, LEVEL_TENSOR);
	struct module *module = fixture.module;
	struct block *body = add_function(&fixture, "main", 0, NULL, 0, NULL)->region[0];
	for (size_t i = 0; i < sizeof number / sizeof *number; i++)
		for (int width = 32; width <= 64; width += 32)
			constant(&fixture, body,
			        attr_float(module,
			                width == 32 ? (double)(float)number[i] : number[i],
			                type_float(module, width)));
	constant(&fixture, body, attr_float(module, -INFINITY, type_float(module, 16)));
	constant(&fixture, body, attr_float(module, INFINITY, type_bfloat(module)));
	constant(&fixture, body, attr_float(module, 0.0999755859375, type_float(module, 16)));
	constant(&fixture, body, attr_typed_integer(module, INT64_MIN, type_integer(module, 64)));
	constant(&fixture, body, attr_typed_integer(module, -3, type_integer(module, 8)));
	constant(&fixture, body, attr_bool(module, true));
	struct {
		int64_t count;
		const struct type *element;
		const void *data;
		size_t bytes;
	} dense[] = {
		{ 4, fixture.f32, numbers, sizeof numbers },
		{ 3, fixture.f32, same, sizeof same },
		{ 9, type_integer(module, 1), flags, sizeof flags },
		{ 2, type_integer(module, 64), integers, sizeof integers },
		{ 2, fixture.index, integers, sizeof integers },
		{ 1, fixture.f32, numbers + 1, 4 },
		{ 0, fixture.f32, numbers, 0 },
	};
	for (size_t i = 0; i < sizeof dense / sizeof *dense; i++) {
		const struct type *type =
		        type_shaped(module, TYPE_TENSOR, 1, &dense[i].count, dense[i].element);
		struct attr attr = { .kind = ATTR_DENSE, .type = type, .bytes = dense[i].bytes };
		attr.data = arena_copy(fixture.arena, dense[i].data, dense[i].bytes);
		constant(&fixture, body, arena_copy(fixture.arena, &attr, sizeof attr));
	}
	add(&fixture, body, OP_RETURN, 0, NULL, NULL);
	const char *text = printed(&fixture);
	assert_non_null(strstr(text, "{value = 1.0e-05 : f32}"));
	assert_non_null(strstr(text, "{value = -0.0 : f32}"));
	assert_non_null(strstr(text, "{value = dense<0.5> : tensor<3xf32>}"));
	assert_non_null(strstr(text, "{value = dense<\"0x8D01\"> : tensor<9xi1>}"));
	check_text(&fixture);
}

static void attribute_text(void **state)
{
	(void)state;
	struct fixture fixture;
	begin(&fixture, LEVEL_TENSOR);
	struct module *module = fixture.module;
	struct op *main = add_function(&fixture, "main", 0, NULL, 0, NULL);
	add(&fixture, main->region[0], OP_RETURN, 0, NULL, NULL);
	attr_set_named(module, main, "stream.z", attr_unit(module));
	attr_set_named(module, main, "stream.b", attr_string(module, "a \"quote\", a \\ and \n"));
	struct named items[] = { { "z", attr_unit(module) },
		{ "odd name", attr_integers(module, 0, NULL) } };
	attr_set_named(module, main, "stream.a", attr_dictionary(module, 2, items));
	attr_set_named(module, main, "stream.gone", attr_unit(module));
	attr_set_named(module, main, "stream.gone", NULL);
	const char *text = printed(&fixture);
	assert_non_null(strstr(text,
	        "stream.a = {\"odd name\" = array<i64>, z}, stream.b = \"a \\22quote\\22, a \\5C "
	        "and \\0A\", stream.z,"));
	assert_null(strstr(text, "gone"));
	check_text(&fixture);
}

static void affine_text(void **state)
{
	(void)state;
	struct arena *arena = arena_new(NULL);
	int64_t *row = affine_rows(arena, 3, 4);
	const int64_t rows[] = { 4, 1, 0, 5, -1, 0, -3, -2, 0, 0, 0, 0, -4, -1, 1, 0 };
	memcpy(row, rows, sizeof rows);
	struct affine_map map = { 3, 4, row };
	struct text text = text_new(arena);
	affine_print(map, &text);
	assert_string_equal(text.data,
	        "(d0, d1, d2) -> (d0 * 4 + d1 + 5, -d0 - d2 * 3 - 2, 0, d0 * -4 - d1 + d2)");
	const int64_t at[] = { 10, 3, 2 };
	assert_int_equal(affine_apply(map, 0, at), 48);
	assert_int_equal(affine_apply(map, 1, at), -18);
	struct affine_map other = map;
	other.coefficient = memcpy(affine_rows(arena, 3, 4), rows, sizeof rows);
	assert_true(affine_same(map, other));
	row[0] = 3;
	assert_false(affine_same(map, other));
	arena_free(arena);
}

static void types(void **state)
{
	(void)state;
	struct fixture fixture;
	begin(&fixture, LEVEL_TENSOR);
	struct module *module = fixture.module;
	assert_ptr_equal(tensor(&fixture, 2, 3), tensor(&fixture, 2, 3));
	assert_ptr_not_equal(tensor(&fixture, 2, 3), tensor(&fixture, 3, 2));
	assert_int_equal(type_elements(tensor(&fixture, 2, 3)), 6);
	assert_int_equal(type_bits(tensor(&fixture, 2, 3)), 192);
	assert_true(type_elements(tensor(&fixture, INT64_MAX, 3)) == INT64_MAX);
	assert_ptr_equal(type_scalar(stream(&fixture, 2)), fixture.f32);
	assert_int_equal(itensor_tiles(stream(&fixture, 32)->itensor), 32);
	assert_string_equal(stream(&fixture, 32)->text,
	        "!stream.itensor<vector<4xf32>, [32], [4], affine_map<(d0) -> (d0)>>");
	assert_string_equal(type_function(module, 0, NULL, 2,
	                            (const struct type *[]){ fixture.f32, fixture.index })
	                            ->text,
	        "() -> (f32, index)");
	assert_int_equal(type_bits(fixture.index), 64);
	assert_true(type_is_real(type_bfloat(module)) && !type_is_real(type_integer(module, 1)));
	arena_free(fixture.arena);
}

/* Every operation and type of our dialect is declared for MLIR. */
static void dialect_file(void **state)
{
	(void)state;
	static char text[1 << 16];
	FILE *file = fopen(IRDL, "r");
	assert_non_null(file);
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = 0;
	for (int code = 1; code < OP_COUNT; code++) {
		const char *name = op_info[code].name;
		assert_int_equal(op_code_of(name, strlen(name)), code);
		char wanted[100];
		snprintf(wanted, sizeof wanted, "irdl.operation @%s {", name + strlen("stream."));
		if (!strncmp(name, "stream.", 7) && !strstr(text, wanted))
			fail_msg("%s is not declared", name);
	}
	assert_int_equal(op_code_of("stream.pus", 10), OP_NONE);
}

static void bodies(void **state)
{
	(void)state;
	struct fixture fixture;
	struct op *op = make_tensor(&fixture);
	struct module *module = fixture.module;
	struct kernel *kernel = op->kernel;
	int term = -1;
	int count = kernel->update.count;
	assert_int_equal(kernel_combine(kernel, &term), OP_ADDF);
	assert_int_equal(kernel->update.node[term].code, OP_MULF);
	/* shared */
	assert_int_equal(operand_node(&fixture, &kernel->update, 1), 1);
	assert_int_equal(kernel->update.count, count);
	assert_true(body_uses_accumulator(&kernel->post) && !body_uses_operand(&kernel->post, 0));
	struct body both = { 0 };
	int first = body_import(module, &both, &kernel->update, (int[]){ 4, 5 }, -1);
	both.result = body_import(module, &both, &kernel->post, NULL, first);
	assert_true(body_uses_operand(&both, 4) && body_uses_operand(&both, 5) &&
	        !body_uses_operand(&both, 0));
	operand_node(&fixture, &both, 9);
	int before = both.count;
	body_remove_dead(module, &both);
	assert_int_equal(both.count, before - 1);
	assert_int_equal(both.node[both.result].code, OP_MAXIMUMF);
	assert_int_equal(both.node[both.node[both.result].argument[0]].code, OP_ADDF);
	struct kernel *clone = kernel_clone(module, kernel, 2);
	clone->operand[0].stride[0] = 7;
	clone->update.node[0].integer = 7;
	assert_int_equal(kernel->operand[0].stride[0], 16);
	assert_int_equal(kernel->update.node[0].integer, 0);
	kernel->update.result = op_node(
	        &fixture, &kernel->update, OP_ADDF, kernel->update.result, kernel->update.result);
	assert_int_equal(kernel_combine(kernel, &term), OP_NONE);
	arena_free(fixture.arena);
}

static void remove_fork(struct op *op, void *context)
{
	(void)context;
	if (op->code == OP_FORK)
		op_remove(op);
}

static void uses(void **state)
{
	(void)state;
	struct fixture fixture;
	struct op *load = make_stream(&fixture);
	struct op *fork = load->next;
	struct block *body = module_body(fixture.module);
	ir_count_uses(body);
	ir_count_uses(body);
	assert_int_equal(load->result[0]->uses, 1);
	ir_replace(body, fork->result[0], load->result[0]);
	ir_replace(body, fork->result[1], load->result[0]);
	ir_walk(body, remove_fork, NULL);
	ir_count_uses(body);
	assert_int_equal(load->result[0]->uses, 2);
	assert_ptr_equal(load->next->previous, load);
	arena_free(fixture.arena);
}

typedef void kernel_change(struct fixture *fixture, struct op *op);

static void far_stride(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->operand[1].stride[1] = 17;
}
static void low_offset(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->result.offset = -1;
}
static void huge_stride(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->operand[1].stride[1] = INT64_MAX;
}
static void high_guard(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->operand[0].guard->high = 17;
}
static void guard_loop(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->operand[0].guard->loop = 3;
}
static void last_guard(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	*op->kernel->operand[0].guard =
	        (struct guard_range){ .loop = 2, .low = 0, .high = 1, .last = true };
}
static void bad_gather(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->operand[0].index_operand = 1;
}
static void no_extent(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->loop[0].extent = 0;
}
static void reduced_result(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->result.stride[2] = 1;
}
static void later_argument(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->update.node[2].argument[0] = 3;
}
static void no_operand(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->update.node[0].integer = 2;
}
static void mixed_types(struct fixture *fixture, struct op *op)
{
	op->kernel->update.node[2].type = type_float(fixture->module, 64);
}
static void no_update(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->update.count = 0;
}
static void wrong_op(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->update.node[2].code = OP_GENERIC;
}
static void post_operand(struct fixture *fixture, struct op *op)
{
	op->kernel->post.result = operand_node(fixture, &op->kernel->post, 0);
}
static void bad_lanes(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->scheduled = true;
	op->kernel->lanes = 3;
}
static void bad_name(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->kernel->name = "a b";
}
static void early_use(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op->operand[0] = op->result[0];
}
static void second_main(struct fixture *fixture, struct op *op)
{
	(void)op;
	add(fixture, add_function(fixture, "other", 0, NULL, 0, NULL)->region[0], OP_RETURN, 0,
	        NULL, NULL);
}
static void wrong_level(struct fixture *fixture, struct op *op)
{
	op_insert_before(op, op_new(fixture->module, OP_FIFO, NOWHERE, 0, NULL, 1, &fixture->f32));
}
static void wrong_count(struct fixture *fixture, struct op *op)
{
	op_set_operands(fixture->module, op->next, 0, NULL);
}
static void wrong_scalar(struct fixture *fixture, struct op *op)
{
	struct value *index = constant(
	        fixture, op->parent, attr_typed_integer(fixture->module, 1, fixture->index));
	op_remove(index->def);
	op_insert_before(op, index->def);
	op_insert_before(
	        op, op_new(fixture->module, OP_NEGF, NOWHERE, 1, &index, 1, &fixture->index));
}
static void no_terminator(struct fixture *fixture, struct op *op)
{
	(void)fixture;
	op_remove(op->next);
}

static void bad_kernels(void **state)
{
	(void)state;
	static const struct {
		kernel_change *change;
		const char *message;
	} cases[] = {
		{ far_stride, "operand 1 is addressed from 0 to 542, but has 512 elements" },
		{ low_offset, "the result is addressed from -1" },
		{ huge_stride, "the addresses of operand 1 overflow" },
		{ high_guard, "operand 0 has a guard 0 to 17 outside loop 2" },
		{ guard_loop, "outside loop 3" },
		{ last_guard,
		        "operand 0 is read in the last iteration of loop 2, which has a static "
		        "trip count" },
		{ bad_gather, "operand 0 is gathered with operand 1" },
		{ no_extent, "loop 0 has extent 0" },
		{ reduced_result, "depends on the reduction loop 2" },
		{ later_argument, "update, node 2: an argument does not come before it" },
		{ no_operand, "update, node 0: there is no such operand" },
		{ mixed_types, "update, node 2: the operands and the result have different types" },
		{ no_update, "update does not give a value of type f32" },
		{ wrong_op, "does not belong to the body of a kernel" },
		{ post_operand, "post reads operand 0, which depends on a reduction loop" },
		{ bad_lanes, "3 lanes without a last loop" },
		{ bad_name, "the name is no identifier" },
		{ early_use, "operand 0 is used before it is defined" },
		{ second_main, "the module has 2 public functions" },
		{ wrong_level, "does not belong to the tensor level" },
		{ wrong_count, "the types are not those of the function's results" },
		{ wrong_scalar, "the result is no float" },
		{ no_terminator, "its body does not end in func.return" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture fixture;
		cases[i].change(&fixture, make_tensor(&fixture));
		expect_invalid(&fixture, cases[i].message);
	}
}

static void bad_streams(void **state)
{
	(void)state;
	static const struct {
		int64_t trips;
		const char *message;
	} cases[] = {
		{ 0, "trip count 0 is 0, not positive" },
		{ INT64_MAX / 2, "the bits of all tiles overflow" },
		{ 8, "a stream has 0 readers where one is expected" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture fixture;
		struct op *load = make_stream(&fixture);
		const struct type *type = stream(&fixture, cases[i].trips);
		struct op *other =
		        op_new(fixture.module, OP_LOAD, NOWHERE, 1, load->operand, 1, &type);
		attr_set(fixture.module, other, KEY_TENSOR, attr_get(load, KEY_TENSOR));
		op_insert_before(load, other);
		expect_invalid(&fixture, cases[i].message);
	}
}

typedef void design_change(struct fixture *fixture, struct design *design);

static void two_pushes(struct fixture *fixture, struct design *design)
{
	struct op *again =
	        op_new(fixture->module, OP_PUSH, NOWHERE, 3, design->push->operand, 0, NULL);
	op_insert_before(design->push->next, again);
}
static void inner_loop(struct fixture *fixture, struct design *design)
{
	struct op *loop =
	        op_new(fixture->module, OP_FOR, NOWHERE, 3, design->loop->operand, 0, NULL);
	block_add_argument(fixture->module, block_new(fixture->module, loop, 0), fixture->index);
	op_append(loop->region[0], op_new(fixture->module, OP_YIELD, NOWHERE, 0, NULL, 0, NULL));
	op_insert_before(design->push, loop);
}
static void no_push(struct fixture *fixture, struct design *design)
{
	(void)fixture;
	op_remove(design->push);
}
static void started_twice(struct fixture *fixture, struct design *design)
{
	struct op *call =
	        op_new(fixture->module, OP_CALL, NOWHERE, 2, design->call->operand, 0, NULL);
	attr_set(fixture->module, call, KEY_CALLEE, attr_symbol(fixture->module, "sink"));
	op_insert_before(design->call, call);
}
static void no_process(struct fixture *fixture, struct design *design)
{
	attr_set(fixture->module, design->call, KEY_CALLEE, attr_symbol(fixture->module, "nobody"));
}
static void swapped(struct fixture *fixture, struct design *design)
{
	op_set_operands(fixture->module, design->call, 2,
	        (struct value *[]){ design->call->operand[1], design->call->operand[0] });
}
static void other_start(struct fixture *fixture, struct design *design)
{
	(void)fixture;
	design->loop->operand[0] = design->loop->operand[2];
}

static void bad_designs(void **state)
{
	(void)state;
	static const struct {
		design_change *change;
		const char *message;
	} cases[] = {
		{ two_pushes, "a pipelined loop accesses a FIFO twice" },
		{ inner_loop, "does not belong in a pipelined loop" },
		{ no_push, "'words' is written by 0 processes and read by 1" },
		{ started_twice, "is started 2 times" },
		{ no_process, "there is no function 'nobody'" },
		{ swapped, "the types are not those of the arguments of 'sink'" },
		{ other_start, "counts from 0 by 1" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture fixture;
		struct design design = make_hardware(&fixture);
		cases[i].change(&fixture, &design);
		expect_invalid(&fixture, cases[i].message);
	}
}

/* Layer 0 sees `rows` rows, layer 1 all.  Row r is read at the key fresh + r; keys lie in tiles,
 * of which those before the gap are always read. */
static void check_lookback(struct fixture *fixture, int64_t tile, int64_t fresh, int64_t rows)
{
	const int64_t most = 40;
	const int64_t unskipped_rows = (fresh + tile - 1) / tile * tile - fresh;
	const int64_t seen[2] = { rows, SLIDING_WINDOW_ALL };
	const char *name = sliding_window_add(fixture->module,
	        (struct sliding_window){ .symbol = "n",
	                .tile = tile,
	                .unskipped_rows = unskipped_rows,
	                .most = most,
	                .layers = 2,
	                .rows = seen });
	const struct run_time_trip trip = { .symbol = name,
		.plus = fresh,
		.tile = tile,
		.most = (most + fresh + tile - 1) / tile };
	struct sliding_window sliding_window;
	assert_true(sliding_window_named(fixture->module, name, &sliding_window));
	assert_string_equal(sliding_window_symbol(fixture->module, name), "n");
	for (int64_t n = -2; n < most + 3; n++) {
		int64_t there = n < 0 ? 0 : n < most ? n : most;
		int64_t out = sliding_window_rows_skipped(&sliding_window, 0, n);
		int64_t value = sliding_window_value(&sliding_window, 0, n);
		int64_t head = sliding_window_gap_start(&sliding_window, &trip);
		int64_t turns = run_time_count(&trip, value);
		assert_int_equal(value + out, there);
		assert_int_equal(sliding_window_value(&sliding_window, 1, n), there);
		for (int64_t row = 0; row < there; row++) {
			int64_t point = (fresh + row) / tile;
			int64_t turn = point < head ? point : point - out / tile;
			bool read = point < head || (point >= head + out / tile && turn < turns);
			assert_true(read || row < there - rows);
			assert_false(read && point >= head &&
			        (point + 1) * tile - fresh <= there - rows);
		}
	}
}

static void lookbacks(void **state)
{
	struct fixture fixture;
	(void)state;
	begin(&fixture, LEVEL_TENSOR);
	for (int64_t tile = 1; tile <= 8; tile *= 2)
		for (int64_t fresh = 0; fresh < 10; fresh += 3)
			for (int64_t rows = 0; rows < 30; rows += 7)
				check_lookback(&fixture, tile, fresh, rows);
	const int64_t rows = 5;
	const char *near = sliding_window_add(fixture.module,
	        (struct sliding_window){
	                .symbol = "m", .tile = 1, .most = 9, .layers = 1, .rows = &rows });
	assert_string_equal(near,
	        sliding_window_add(fixture.module,
	                (struct sliding_window){
	                        .symbol = "m", .tile = 1, .most = 9, .layers = 1, .rows = &rows }));
	struct sliding_window joined;
	assert_true(sliding_window_named(fixture.module,
	        sliding_window_of_layers(fixture.module, 3, (const char *[]){ near, "m", near }),
	        &joined));
	assert_true(joined.layers == 3 && joined.rows[0] == 5 &&
	        joined.rows[1] == SLIDING_WINDOW_ALL && joined.rows[2] == 5);
	int layers;
	assert_int_equal(sliding_window_rows_least(&joined, &layers), 5);
	assert_true(layers == 2 && sliding_window_fraction(&joined) == 19.0 / 27);
	assert_string_equal(
	        sliding_window_of_layers(fixture.module, 2, (const char *[]){ "m", "m" }), "m");
	assert_null(sliding_window_of_layers(fixture.module, 2, (const char *[]){ near, "other" }));
	arena_free(fixture.arena);
}

/* A copy in one arena with the original shares attributes; neither sees what is set on the
 * other. */
static void copies_in_one_arena(void **state)
{
	(void)state;
	struct fixture fixture;
	make_stream(&fixture);
	struct fixture copy = fixture;
	copy.module = module_clone(fixture.module, fixture.arena);
	const char *text = printed(&fixture);
	assert_string_equal(printed(&copy), text);
	assert_true(ir_verify(copy.module));
	assert_ptr_equal(type_float(copy.module, 32), fixture.f32);
	attr_set_named(copy.module, copy.module->op, "aside", attr_integer(copy.module, 1));
	assert_string_equal(printed(&fixture), text);
	arena_free(fixture.arena);
}

/* As printf has it, whether it takes the conversions itself or hands them on. */
static void formats(void **state)
{
	(void)state;
	struct arena *arena = arena_new(NULL);
	char expected[200];
	const int64_t numbers[] = { 0, 7, -10, INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		long long number = numbers[i];
		snprintf(expected, sizeof expected, "<%s%c%% %d %ld %lld %zu>", "", 'c',
		        (int)number, (long)number, number, (size_t)number);
		assert_string_equal(text_format(arena, "<%s%c%% %d %ld %lld %zu>", "", 'c',
		                            (int)number, (long)number, number, (size_t)number),
		        expected);
		snprintf(expected, sizeof expected, "%d %05lld%%%.3s|%8s|%g", (int)number, number,
		        "abcd", "e", 0.5);
		assert_string_equal(text_format(arena, "%d %05lld%%%.3s|%8s|%g", (int)number,
		                            number, "abcd", "e", 0.5),
		        expected);
	}
	assert_string_equal(text_format(arena, "%s", ""), "");
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(affine_text),
		cmocka_unit_test(types),
		cmocka_unit_test(dialect_file),
		cmocka_unit_test(bodies),
		cmocka_unit_test(uses),
		cmocka_unit_test(tensor_text),
		cmocka_unit_test(stream_text),
		cmocka_unit_test(hardware_text),
		cmocka_unit_test(number_text),
		cmocka_unit_test(attribute_text),
		cmocka_unit_test(bad_kernels),
		cmocka_unit_test(bad_streams),
		cmocka_unit_test(bad_designs),
		cmocka_unit_test(lookbacks),
		cmocka_unit_test(copies_in_one_arena),
		cmocka_unit_test(formats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
