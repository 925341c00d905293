/* The runtime's C API on one small design with an input, a position, a state and a weight that
 * is given at run time: numbers, states, and what is refused. */
#define _GNU_SOURCE /* mkdtemp */
#include "stc_runtime.h"
#include "base/blake2.h"
#include "base/data.h"
#include "base/guard.h"
#include "streamtensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include "edited_text.h"

#define MUTATIONS 1500
/* refused once the design has been read and checked: nothing is compiled */
#define NO_CARD "xrt:0"

/* y = x w + sum of the rows of s; row p of s = 2 x. */
static const char model[] =
        "#id = affine_map<(i, j) -> (i, j)>\n"
        "#column = affine_map<(i, j) -> (j, i)>\n"
        "#zero = affine_map<(i, j) -> (0, i)>\n"
        "func.func @main(%x: tensor<1x8xf32> {stream.name = \"x\", stream.role = \"input\"}, %p: "
        "tensor<1xi64> {stream.name = \"p\", stream.role = \"input\"},\n"
        "                %s: tensor<4x8xf32> {stream.name = \"s\", stream.role = \"state\"}, %w: "
        "tensor<8x8xf32> {stream.name = \"w\", stream.role = \"weight\"})\n"
        "    -> (tensor<1x8xf32> {stream.name = \"y\", stream.role = \"output\"},\n"
        "        tensor<1x8xf32> {stream.name = \"s\", stream.role = \"state\", stream.axis = 0 : "
        "i64, stream.position = \"p\"}) {\n"
        "  %c0 = arith.constant 0.0 : f32\n"
        "  %two = arith.constant 2.0 : f32\n"
        "  %e = tensor.empty() : tensor<1x8xf32>\n"
        "  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>\n"
        "  %m = linalg.matmul ins(%x, %w : tensor<1x8xf32>, tensor<8x8xf32>) outs(%z : "
        "tensor<1x8xf32>) -> tensor<1x8xf32>\n"
        "  %y = linalg.generic {indexing_maps = [#column, #zero], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%s : tensor<4x8xf32>) outs(%m : tensor<1x8xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32):\n"
        "    %t = arith.addf %b, %a : f32\n"
        "    linalg.yield %t : f32\n"
        "  } -> tensor<1x8xf32>\n"
        "  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = [\"parallel\", "
        "\"parallel\"]} ins(%x : tensor<1x8xf32>) outs(%e : tensor<1x8xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32):\n"
        "    %t = arith.mulf %a, %two : f32\n"
        "    linalg.yield %t : f32\n"
        "  } -> tensor<1x8xf32>\n"
        "  return %y, %r : tensor<1x8xf32>, tensor<1x8xf32>\n"
        "}\n";

static struct {
	struct guard guard;
	struct arena *arena;
	char folder[64];
	const char *design, *cache;
	float weight[64];
} all;

static const char *join(const char *folder, const char *name)
{
	return text_format(all.arena, "%s/%s", folder, name);
}

static void put_file(const char *path, const char *data, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static char *get_file(const char *path, size_t *size)
{
	const char *reason;
	char *data = file_read(all.arena, path, size, &reason);
	assert_non_null(data);
	return data;
}

static int set_up(void **state)
{
	(void)state;
	strcpy(all.folder, "/tmp/stc-test-XXXXXX");
	all.arena = arena_new(&all.guard);
	assert_non_null(mkdtemp(all.folder));
	all.design = join(all.folder, "d");
	all.cache = join(all.folder, "cache");
	const char *source = join(all.folder, "m.mlir");
	put_file(source, model, sizeof model - 1);
	struct stc_session *session = stc_session_new();
	assert_int_equal(stc_session_set(session, "output", all.design), STC_OK);
	/* tests below edit what it writes */
	assert_int_equal(stc_session_set(session, "parallelism-search", "intensity"), STC_OK);
	if (stc_session_compile(session, source) != STC_OK)
		fail_msg("%s", stc_session_messages(session));
	stc_session_free(session);
	unsetenv("XILINX_XRT");
	for (int i = 0; i < 64; i++)
		all.weight[i] = (float)(i % 7) - 3.0f;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	int status = system(text_format(all.arena, "rm -rf %s", all.folder));
	arena_free(all.arena);
	return status;
}

static stc_design *open_cpu(void)
{
	stc_design *design;
	char error[4096] = "";
	if (stc_design_open(all.design, "cpu", all.cache, &design, error, sizeof error))
		fail_msg("%s", error);
	return design;
}

static void launch(stc_design *design, float first, int64_t position)
{
	float x[8];
	for (int i = 0; i < 8; i++)
		x[i] = first + (float)i;
	assert_int_equal(stc_design_input(design, "x", x, sizeof x), 0);
	assert_int_equal(stc_design_input(design, "p", &position, sizeof position), 0);
	if (stc_design_launch(design))
		fail_msg("%s", stc_design_error(design));
}

/* Small whole numbers: every order of summing gives the same. */
static void expect_result(stc_design *design, float first, float state[4][8])
{
	float y[8];
	assert_int_equal(stc_design_output(design, "y", y, sizeof y), 0);
	for (int j = 0; j < 8; j++) {
		float sum = 0;
		for (int k = 0; k < 8; k++)
			sum += (first + (float)k) * all.weight[k * 8 + j];
		for (int r = 0; r < 4; r++)
			sum += state[r][j];
		assert_float_equal(y[j], sum, 0);
	}
}

static void expect_state(stc_design *design, float state[4][8])
{
	float s[4][8];
	assert_int_equal(stc_design_output(design, "s", s, sizeof s), 0);
	assert_memory_equal(s, state, sizeof s);
}

static void runs_and_keeps_its_state(void **unused)
{
	(void)unused;
	static float zero[4][8];
	float state[4][8] = { { 0 } };
	stc_design *design = open_cpu();
	assert_int_equal(stc_design_input(design, "w", all.weight, sizeof all.weight), 0);
	expect_state(design, zero);
	for (int64_t p = 3; p >= 0; p--) {
		launch(design, (float)p, p);
		expect_result(design, (float)p, state);
		for (int j = 0; j < 8; j++)
			state[p][j] = 2.0f * (float)(p + j);
		expect_state(design, state);
	}
	for (int j = 0; j < 8; j++)
		state[2][j] = (float)(100 + j);
	assert_int_equal(stc_design_input(design, "s", state, sizeof state), 0);
	expect_state(design, state);
	launch(design, 1, 0);
	expect_result(design, 1, state);
	assert_int_equal(stc_design_reset(design), 0);
	expect_state(design, zero);
	launch(design, 5, 1);
	expect_result(design, 5, zero);
	stc_design_close(design);
}

static void two_designs_are_independent(void **unused)
{
	(void)unused;
	static float zero[4][8];
	stc_design *one = open_cpu();
	stc_design *two = open_cpu();
	assert_int_equal(stc_design_input(one, "w", all.weight, sizeof all.weight), 0);
	assert_int_equal(stc_design_input(two, "w", all.weight, sizeof all.weight), 0);
	launch(one, 7, 2);
	launch(two, 1, 0);
	expect_result(two, 1, zero);
	expect_result(one, 7, zero);
	stc_design_close(one);
	launch(two, 2, 0);
	stc_design_close(two);
}

static void expect_error(int status, const stc_design *design, const char *part)
{
	assert_int_not_equal(status, 0);
	if (!strstr(stc_design_error(design), part))
		fail_msg("'%s' does not hold '%s'", stc_design_error(design), part);
}

static void says_what_is_wrong(void **unused)
{
	(void)unused;
	float data[64] = { 0 };
	double host;
	double device;
	struct stc_tensor tensor;
	stc_design *design = open_cpu();
	expect_error(stc_design_launch(design), design, "x, p, w");
	expect_error(stc_design_output(design, "y", data, 32), design, "before a launch");
	expect_error(stc_design_input(design, "x", data, 31), design, "32 bytes, not 31");
	expect_error(stc_design_output(design, "s", data, 32), design, "128 bytes, not 32");
	expect_error(stc_design_input(design, "y", data, 32), design, "no input 'y'");
	expect_error(stc_design_output(design, "x", data, 32), design, "s, y");
	assert_int_equal(stc_design_input(design, "w", all.weight, sizeof all.weight), 0);
	launch(design, 0, 0);
	assert_string_equal(stc_design_error(design), "");
	assert_int_equal(stc_design_times(design, &host, &device), 0);
	assert_true(device > 0 && host >= 0);
	assert_int_equal(stc_design_tensor(design, 2, &tensor), 0);
	assert_string_equal(tensor.name, "s");
	assert_int_equal(tensor.shape[0] * tensor.shape[1] * 4, tensor.bytes);
	assert_int_not_equal(stc_design_tensor(design, 6, &tensor), 0);
	for (int i = 0; i < 100; i++)
		expect_error(stc_design_input(design, "none", data, 1), design, "no input 'none'");
	stc_design_close(design);
}

/* The state has four rows; the launch of a last token may come behind them. */
static void accepts_valid_positions(void **unused)
{
	(void)unused;
	float x[8] = { 0 };
	stc_design *design = open_cpu();
	assert_int_equal(stc_design_input(design, "w", all.weight, sizeof all.weight), 0);
	assert_int_equal(stc_design_input(design, "x", x, sizeof x), 0);
	for (int64_t position = 8; position >= -2; position--) {
		assert_int_equal(stc_design_input(design, "p", &position, sizeof position), 0);
		if (position >= 0 && position <= 4)
			assert_int_equal(stc_design_launch(design), 0);
		else
			expect_error(stc_design_launch(design), design, "accepted are 0 to 4");
	}
	stc_design_close(design);
}

/* A last token takes the place of the row before it, so a launch that reads that row is refused
 * until it is there again. */
static void takes_a_last_token_once(void **unused)
{
	(void)unused;
	float x[8] = { 0 };
	float state[32] = { 0 };
	int64_t last = 4;
	int64_t before = 3;
	int64_t first = 0;
	stc_design *design = open_cpu();
	assert_int_equal(stc_design_input(design, "w", all.weight, sizeof all.weight), 0);
	assert_int_equal(stc_design_input(design, "x", x, sizeof x), 0);
	for (int again = 0; again < 4; again++) {
		assert_int_equal(stc_design_input(design, "p", &last, sizeof last), 0);
		assert_int_equal(stc_design_launch(design), 0);
		expect_error(stc_design_launch(design), design,
		        "'p' is 4 again, which overwrites the cache row before it\nnote: accepted "
		        "are 0 to 3");
		assert_int_equal(stc_design_input(design, "p", &first, sizeof first), 0);
		assert_int_equal(stc_design_launch(design), 0);
		assert_int_equal(
		        stc_design_input(design, "p", again == 0 ? &before : &last, sizeof last),
		        0);
		if (again == 0)
			assert_int_equal(stc_design_launch(design), 0);
		else if (again == 1)
			assert_int_equal(stc_design_reset(design), 0);
		else if (again == 2)
			assert_int_equal(stc_design_input(design, "s", state, sizeof state), 0);
		else
			expect_error(stc_design_launch(design), design, "accepted are 0 to 3");
	}
	stc_design_close(design);
}

static void expect_refused(
        const char *folder, const char *device, const char *cache, const char *part)
{
	stc_design *design = (stc_design *)&all;
	char error[4096] = "";
	assert_int_not_equal(
	        stc_design_open(folder, device, cache, &design, error, sizeof error), 0);
	assert_null(design);
	if (!strstr(error, part))
		fail_msg("'%s' does not hold '%s'", error, part);
}

static void refuses_what_is_no_design(void **unused)
{
	(void)unused;
	expect_refused("/nowhere", "cpu", all.cache, "is no design");
	expect_refused(all.folder, "cpu", all.cache, "is no design");
	expect_refused(all.design, "gpu", all.cache, "unknown device 'gpu'");
	expect_refused(all.design, "cpu:x", all.cache, "unknown device 'cpu:x'");
	expect_refused(all.design, NO_CARD, all.cache, "XILINX_XRT");
	expect_refused(
	        all.design, "cpu", join(all.folder, "m.mlir"), "cannot keep compiled designs");
}

static void refuses_a_missing_compiler(void **unused)
{
	(void)unused;
	stc_design *design = open_cpu();
	setenv("CXX", "/nowhere/g++", 1);
	expect_error(stc_design_prepare(design), design, "'/nowhere/g++' cannot be started");
	setenv("CXX", "false", 1);
	expect_error(stc_design_prepare(design), design, "'false' does not say its version");
	const char *script = join(all.folder, "c++");
	static const char text[] =
	        "#!/bin/sh\n[ \"$2\" != -Q ] || exit 0\necho this is the last line\nexit 3\n";
	put_file(script, text, sizeof text - 1);
	assert_int_equal(chmod(script, 0700), 0);
	setenv("CXX", script, 1);
	expect_error(stc_design_prepare(design), design,
	        "ends with status 3\nnote: its last lines:\nthis is the last line");
	unsetenv("CXX");
	assert_int_equal(stc_design_prepare(design), 0);
	stc_design_close(design);
}

static void refuses_a_source_that_changed_meanwhile(void **unused)
{
	(void)unused;
	size_t size;
	const char *path = join(all.design, "hls/top_m.cpp");
	char *data = get_file(path, &size);
	stc_design *design = open_cpu();
	put_file(path, data, size - 1);
	expect_error(stc_design_prepare(design), design, "was changed since the design was opened");
	put_file(path, data, size);
	assert_int_equal(stc_design_prepare(design), 0);
	stc_design_close(design);
}

static void refuses_changed_files(void **unused)
{
	(void)unused;
	size_t size;
	const char *path = join(all.design, "hls/link.cfg");
	char *data = get_file(path, &size);
	put_file(path, data, size - 1);
	expect_refused(all.design, NO_CARD, all.cache,
	        "link.cfg: is not the file that manifest.json lists");
	assert_int_equal(unlink(path), 0);
	expect_refused(all.design, NO_CARD, all.cache,
	        "link.cfg: is listed in manifest.json but cannot be read");
	put_file(path, data, size);
	expect_refused(all.design, NO_CARD, all.cache, "XILINX_XRT");
}

/* Writes a manifest with the hash of what it says now, so that the edit itself is refused. */
static void put_manifest(const char *path, char *text)
{
	char *tail = strstr(text, ",\n\"hash\":\"");
	if (tail)
		blake2_hex(text, (size_t)(tail - text), tail + strlen(",\n\"hash\":\""));
	if (tail)
		tail[strlen(",\n\"hash\":\"") + 64] = '"';
	put_file(path, text, strlen(text));
}

/* The manifest with `from` replaced by `to`, once. */
static void refuses_edited(const char *from, const char *to, const char *part)
{
	size_t size;
	const char *path = join(all.design, "manifest.json");
	const char *data = get_file(path, &size);
	const char *text = edited(all.arena, data, from, to);
	put_manifest(path, text_copy(all.arena, text, strlen(text)));
	expect_refused(all.design, NO_CARD, all.cache, part);
	put_file(path, data, size);
}

static void refuses_edited_manifests(void **unused)
{
	(void)unused;
	refuses_edited("\"design\":4", "\"design\":1", "the design has version 1");
	refuses_edited("\"schema\":1", "\"schema\":7", "not the manifest of a design");
	refuses_edited("{", "[", "is no JSON");
	refuses_edited("\"offset\":72,", "\"offset\":73,", "'x' that reaches beyond");
	refuses_edited("\"base\":0,\"trips\":[16,4]", "\"base\":1,\"trips\":[16,4]",
	        "'w' that reaches beyond");
	refuses_edited("\"base\":0,\"trips\":[16,4]", "\"base\":-1,\"trips\":[16,4]",
	        "'w' that reaches beyond");
	refuses_edited("\"strides\":[4,1]", "\"strides\":[5,1]", "reaches beyond");
	refuses_edited("\"trips\":[16,4]", "\"trips\":[16,-4]", "'w' that reaches beyond");
	refuses_edited("\"trips\":[16,4]", "\"trips\":[16]", "damaged segment");
	refuses_edited("\"bytes\":320", "\"bytes\":32", "reaches beyond");
	refuses_edited("\"name\":\"w\",\"role\":\"weight\",\"offset\"",
	        "\"name\":\"q\",\"role\":\"weight\",\"offset\"", "no input or output");
	refuses_edited("\"argument\":1", "\"argument\":9", "damaged port");
	refuses_edited("\"argument\":1", "\"argument\":0", "damaged port");
	refuses_edited("\"channels\":[", "\"channels\":[-1,", "without memory channels");
	refuses_edited("\"clock_mhz\":", "\"clock_mhz\":-", "names no memory or no clock");
	refuses_edited("\"memory\":\"", "\"memories\":\"", "names no memory or no clock");
	refuses_edited("\"buffer\":\"w", "\"buffer\":\"v", "without a buffer");
	refuses_edited("\"shape\":[8,8]", "\"shape\":[8,4611686018427387904]", "impossible shape");
	refuses_edited("\"top\":\"", "\"top\":\"a b", "no top function");
	refuses_edited("\"hls/link.cfg\"", "\"../link.cfg\"", "damaged list of files");
	refuses_edited("\"hls/top_", "\"hls/other_", "does not list hls/top_");
}

/* Any manifest is refused or good; the sanitizers watch the rest. */
static void survives_mutated_manifests(void **unused)
{
	(void)unused;
	static const char marks[] = "0123456789-[]{},:\"e.";
	uint64_t seed = 11;
	size_t size;
	const char *path = join(all.design, "manifest.json");
	char *data = get_file(path, &size);
	char *copy = arena_alloc(all.arena, size + 1);
	size_t figures = (size_t)(strstr(data, "\"files\"") - data);
	for (int i = 0; i < MUTATIONS; i++) {
		memcpy(copy, data, size);
		for (int k = 0; k <= i % 3; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			copy[(seed >> 33) % figures] = marks[(seed >> 20) % (sizeof marks - 1)];
		}
		put_manifest(path, copy);
		stc_design *design;
		char error[4096] = "";
		assert_int_not_equal(stc_design_open(all.design, NO_CARD, all.cache, &design, error,
		                             sizeof error),
		        0);
		assert_true(*error);
	}
	put_file(path, data, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_and_keeps_its_state),
		cmocka_unit_test(two_designs_are_independent),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(accepts_valid_positions),
		cmocka_unit_test(takes_a_last_token_once),
		cmocka_unit_test(refuses_what_is_no_design),
		cmocka_unit_test(refuses_a_missing_compiler),
		cmocka_unit_test(refuses_a_source_that_changed_meanwhile),
		cmocka_unit_test(refuses_changed_files),
		cmocka_unit_test(refuses_edited_manifests),
		cmocka_unit_test(survives_mutated_manifests),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
