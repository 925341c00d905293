/* The reader: what it makes of models and dumps, that dumps of every level come back byte for
 * byte, and what it says about bad input. */
#include "import/import.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INPUTS STC_SOURCE_DIR "/tests/unit/import/"
#define ERRORS STC_SOURCE_DIR "/tests/golden/errors/import/"

struct session {
	struct guard guard;
	struct arena *arena;
	struct diag *diag;
	struct module *module;
};

static struct text load(struct arena *arena, const char *path)
{
	FILE *file = fopen(path, "rb");
	struct text text = text_new(arena);
	char part[4096];
	size_t size;
	assert_non_null(file);
	while ((size = fread(part, 1, sizeof part, file)) > 0)
		text_add_bytes(&text, part, size);
	fclose(file);
	text_add(&text, "%s", "");
	return text;
}

static void open_session(struct session *session)
{
	*session = (struct session){ .guard = { .reason = GUARD_NONE } };
	session->arena = arena_new(&session->guard);
	assert_non_null(session->arena);
	session->diag = ARENA_NEW(session->arena, struct diag);
	session->diag->arena = session->arena;
}

static void import_text(struct session *session, const char *file, const char *text, size_t size)
{
	open_session(session);
	session->module =
	        import_mlir(session->arena, &session->guard, session->diag, file, text, size);
}

static const char *messages(struct session *session)
{
	struct text text = text_new(session->arena);
	diag_print(session->diag, &text);
	return text.data ? text.data : "";
}

static void import_file(struct session *session, const char *name)
{
	open_session(session);
	struct text text = load(session->arena, text_format(session->arena, INPUTS "%s", name));
	session->module = import_mlir(
	        session->arena, &session->guard, session->diag, name, text.data, text.size);
	if (!session->module)
		fail_msg("%s", messages(session));
}

static const char *print(struct session *session)
{
	struct text text = text_new(session->arena);
	ir_print(session->module, &text);
	return text.data;
}

static int count_ops(const struct block *block, enum op_code code)
{
	int count = 0;
	for (const struct op *op = block->first; op; op = op->next) {
		count += op->code == code;
		if (op->region[0])
			count += count_ops(op->region[0], code);
	}
	return count;
}

static const struct op *find_op(const struct block *block, enum op_code code)
{
	for (const struct op *op = block->first; op; op = op->next)
		if (op->code == code)
			return op;
	return NULL;
}

static void test_model(void **unused)
{
	(void)unused;
	struct session session;
	import_file(&session, "cnn.mlir");
	const struct op *main_function = module_main(session.module);
	assert_non_null(main_function);
	const struct block *body = main_function->region[0];
	assert_int_equal(session.module->level, LEVEL_TENSOR);
	assert_int_equal(body->arguments, 11);
	assert_string_equal(body->argument[0]->type->text, "tensor<1x3x16x16xf32>");
	assert_string_equal(
	        function_argument_attr(main_function, 1, KEY_STREAM_ROLE)->text, "weight");
	assert_int_equal(count_ops(body, OP_ASSERT), 0);
	assert_int_equal(count_ops(body, OP_TENSOR_PAD), 2);
	assert_true(count_ops(body, OP_GENERIC) > 15);
	const struct op *pad = find_op(body, OP_TENSOR_PAD);
	assert_int_equal(pad->location.line, 14);
	assert_int_equal(pad->location.column, 15);
	assert_string_equal(pad->location.file, "cnn.mlir");
	arena_free(session.arena);
}

static void test_named_operations_become_generic(void **unused)
{
	(void)unused;
	struct session session;
	import_file(&session, "named_ops.mlir");
	const struct op *main_function = module_main(session.module);
	assert_true(count_ops(main_function->region[0], OP_GENERIC) >= 12);
	assert_string_equal(
	        function_argument_attr(main_function, 2, KEY_STREAM_NAME)->text, "arg2");
	assert_string_equal(
	        function_argument_attr(main_function, 2, KEY_STREAM_ROLE)->text, "input");
	assert_string_equal(
	        function_result_attr(main_function, 1, KEY_STREAM_NAME)->text, "result1");
	assert_string_equal(
	        function_result_attr(main_function, 1, KEY_STREAM_ROLE)->text, "output");
	assert_null(strstr(print(&session), "fastmath"));
	arena_free(session.arena);
}

static void test_constants(void **unused)
{
	(void)unused;
	static const float weights[] = { 1, 2, 3, 4 };
	static const unsigned char bits[] = { 1, 0, 1 };
	struct session session;
	import_file(&session, "resources.mlir");
	const struct op *blob = find_op(module_main(session.module)->region[0], OP_CONSTANT);
	const struct attr *value = attr_get(blob, KEY_VALUE);
	assert_int_equal(value->kind, ATTR_DENSE);
	assert_int_equal(value->bytes, sizeof weights);
	assert_memory_equal(value->data, weights, sizeof weights);
	value = attr_get(blob->next, KEY_VALUE);
	assert_int_equal(value->bytes, sizeof bits);
	assert_memory_equal(value->data, bits, sizeof bits);
	value = attr_get(blob->next->next, KEY_VALUE);
	assert_true(value->splat);
	assert_int_equal(value->bytes, 1);
	assert_int_equal(find_op(module_body(session.module), OP_FUNC)->attributes, 4);
	arena_free(session.arena);
}

static void test_empty_argument(void **unused)
{
	(void)unused;
	static const char text[] =
	        "func.func @f(%c: tensor<1x0x4xf32>, %n: tensor<1x1x4xf32>) -> tensor<1x1x4xf32> "
	        "{\n"
	        "  %0 = tensor.concat dim(1) %c, %n : (tensor<1x0x4xf32>, tensor<1x1x4xf32>) -> "
	        "tensor<1x1x4xf32>\n  return %0 : tensor<1x1x4xf32>\n}\n";
	struct session session;
	import_text(&session, "f.mlir", text, strlen(text));
	assert_non_null(session.module);
	arena_free(session.arena);
}

static void test_locations(void **unused)
{
	(void)unused;
	static const char text[] = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
	                           "  %0 = math.exp %a : tensor<4xf32> "
	                           "loc(fused[\"layer\"(\"model.py\":12:3), \"other.py\":1:1])\n"
	                           "  %1 = math.exp %0 : tensor<4xf32> loc(callsite(\"x.py\":7:1 "
	                           "at \"y.py\":8:1))\n  return %1 : tensor<4xf32>\n}\n";
	struct session session;
	import_text(&session, "f.mlir", text, strlen(text));
	assert_non_null(session.module);
	const struct op *op = find_op(module_main(session.module)->region[0], OP_GENERIC);
	assert_string_equal(op->location.file, "model.py");
	assert_int_equal(op->location.line, 12);
	assert_int_equal(op->location.column, 3);
	assert_string_equal(op->next->location.file, "x.py");
	arena_free(session.arena);
}

/* What was printed by us reads back to the same bytes. */
static void check_dump(const char *name, const char *original, enum level level)
{
	struct session session;
	struct session again;
	import_file(&session, name);
	assert_int_equal(session.module->level, level);
	const char *first = print(&session);
	import_text(&again, "dump.mlir", first, strlen(first));
	if (!again.module)
		fail_msg("%s", messages(&again));
	assert_string_equal(print(&again), first);
	if (original)
		assert_string_equal(first,
		        load(session.arena, text_format(session.arena, INPUTS "%s", original))
		                .data);
	arena_free(session.arena);
	arena_free(again.arena);
}

static void test_round_trips(void **unused)
{
	(void)unused;
	check_dump("cnn.mlir", NULL, LEVEL_TENSOR);
	check_dump("named_ops.mlir", NULL, LEVEL_TENSOR);
	check_dump("resources.mlir", NULL, LEVEL_TENSOR);
	check_dump("stream.mlir", "stream.mlir", LEVEL_STREAM);
	check_dump("stream_by_mlir_opt.mlir", "stream.mlir", LEVEL_STREAM);
	check_dump("hardware.mlir", "hardware.mlir", LEVEL_HARDWARE);
}

static void check_refused(const char *text, size_t size, const char *message)
{
	struct session session;
	import_text(&session, "bad.mlir", text, size);
	assert_null(session.module);
	const char *found = messages(&session);
	if (!strstr(found, message))
		fail_msg("expected: %s\nfound: %s", message, found);
	arena_free(session.arena);
}

static void test_scan(void **unused)
{
	(void)unused;
	static const char in_strings[] =
	        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> attributes {stream.note = "
	        "\"((((\"} { // ((((\n  return %a : tensor<4xf32>\n}\n";
	static const struct {
		const char *text, *message;
	} foreign[] = {
		{ "# Title\n\n100 %",
		        "bad.mlir:1:1: error: this is no MLIR text: it begins with '# "
		        "Title'\nnote: accepted is MLIR text with one function, as `streamtensor "
		        "export MODEL -o FOLDER` writes it" },
		{ "// x\n\n  import torch  \n",
		        "bad.mlir:3:3: error: this is no MLIR text: it begins with 'import "
		        "torch'" },
		{ "#include <a>\n", "it begins with '#include <a>'" },
		{ "\"\"\"A module.\"\"\"", "it begins with '\"\"\"A module.\"\"\"'" },
		{ "{\"schema\": 1, \"design\": 1, \"tool\": 2}",
		        "it begins with '{\"schema\": 1, \"design\":'" },
		{ "%PDF-1.5\n%x", "it begins with '%PDF-1.5'" },
		{ "<!doctype html>", "it begins with '<!doctype html>'" },
		{ "PK\x03\x04", "it begins with 'PK'" },
		{ "\xef\xbb\xbfmodule {}", "it begins with the byte 0xEF" },
	};
	char deep[700];
	memset(deep, '(', sizeof deep);
	check_refused("", 0,
	        "bad.mlir:1:1: error: the file is empty\nnote: accepted is MLIR text with one "
	        "function, as `streamtensor export MODEL -o FOLDER` writes it");
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
		check_refused(foreign[i].text, strlen(foreign[i].text), foreign[i].message);
	check_refused("\x7f"
	              "ELF\x02\x01\x01\0",
	        8, "bad.mlir:1:1: error: this is no MLIR text: it begins with the byte 0x7F");
	check_refused("module {\n \0}", 12, "bad.mlir:2:2: error: a NUL byte");
	check_refused("ML\xefR\x01", 5, "bytecode");
	check_refused(deep, sizeof deep - 1,
	        "bad.mlir:1:257: error: brackets are nested deeper than 256");
	check_refused("\"unclosed", 9, "bad.mlir:1:10: error:");
	struct session session;
	import_text(&session, "f.mlir", in_strings, strlen(in_strings));
	assert_non_null(session.module);
	arena_free(session.arena);
}

/* Every test/golden/errors/import/NAME.mlir is refused with the messages in NAME.expect. */
static void check_golden(const char *name)
{
	struct session session;
	open_session(&session);
	struct text text = load(session.arena, text_format(session.arena, ERRORS "%s", name));
	struct text expect = load(session.arena,
	        text_format(session.arena, ERRORS "%.*s.expect", (int)(strlen(name) - 5), name));
	session.module = import_mlir(
	        session.arena, &session.guard, session.diag, name, text.data, text.size);
	assert_null(session.module);
	const char *found = messages(&session);
	if (session.diag->count == 0 || !strstr(expect.data, found))
		fail_msg("%s\nexpected: %s\nfound: %s", name, expect.data, found);
	arena_free(session.arena);
}

static void test_errors(void **unused)
{
	(void)unused;
	DIR *folder = opendir(ERRORS);
	int count = 0;
	assert_non_null(folder);
	for (const struct dirent *entry; (entry = readdir(folder));) {
		size_t size = strlen(entry->d_name);
		if (size < 6 || strcmp(entry->d_name + size - 5, ".mlir") != 0)
			continue;
		check_golden(entry->d_name);
		count++;
	}
	closedir(folder);
	assert_true(count > 25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_named_operations_become_generic),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_empty_argument),
		cmocka_unit_test(test_locations),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
