/* The safetensors reader: what is in a file is found; every way of being wrong has its own
 * refusal. */
#include "design_case.h"
#include "import/weights.h"

struct fixture {
	struct guard guard;
	struct diag diag;
	struct arena *arena;
	struct module *module;
	char folder[32];
	struct weights *weights;
};

static int set_up(void **state)
{
	static struct fixture f;
	memset(&f, 0, sizeof f);
	strcpy(f.folder, "/tmp/stc-weights-XXXXXX");
	assert_non_null(mkdtemp(f.folder));
	f.arena = arena_new(&f.guard);
	f.diag.arena = f.arena;
	f.module = module_new(f.arena, &f.guard, &f.diag, LEVEL_TENSOR);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	weights_close(f->weights);
	int status = system(text_format(f->arena, "rm -rf %s", f->folder));
	arena_free(f->arena);
	return status;
}

static const char *path_of(struct fixture *f, const char *name)
{
	return text_format(f->arena, "%s/%s", f->folder, name);
}

static const char *write_bytes(struct fixture *f, const char *name, const void *data, size_t size)
{
	const char *path = path_of(f, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	return path;
}

/* A file with this header and `bytes` bytes of data that count up. */
static const char *write_file(struct fixture *f, const char *name, const char *header, size_t bytes)
{
	struct text text = text_new(f->arena);
	uint64_t size = strlen(header);
	text_add_bytes(&text, (const char *)&size, 8);
	text_add(&text, "%s", header);
	for (size_t i = 0; i < bytes; i++)
		text_add_bytes(&text, &(char){ (char)i }, 1);
	return write_bytes(f, name, text.data, text.size);
}

static bool opens(struct fixture *f, const char *path)
{
	weights_close(f->weights);
	f->diag.count = 0;
	f->weights = weights_open(f->arena, &f->diag, path);
	return f->weights;
}

static void expect_refusal(struct fixture *f, const char *words)
{
	struct text text = text_new(f->arena);
	diag_print(&f->diag, &text);
	if (f->diag.count != 1 || !strstr(text.data, words))
		fail_msg("expected one refusal with \"%s\":\n%s", words,
		        text.data ? text.data : "(none)");
}

static void refused(struct fixture *f, const char *header, size_t bytes, const char *words)
{
	assert_false(opens(f, write_file(f, "bad.safetensors", header, bytes)));
	expect_refusal(f, words);
}

static const struct type *tensor(
        struct fixture *f, const struct type *scalar, int rank, int64_t a, int64_t b)
{
	return type_shaped(f->module, TYPE_TENSOR, rank, (const int64_t[]){ a, b }, scalar);
}

static void test_found(void **state)
{
	struct fixture *f = *state;
	const char *header =
	        "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"I64\",\"shape\":[2],"
	        "\"data_offsets\":[24,40]},"
	        "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},\"none\":{"
	        "\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[24,24]}}  ";
	assert_true(opens(f, write_file(f, "model.safetensors", header, 40)));
	assert_int_equal(weights_count(f->weights), 3);
	const struct weight *a =
	        weights_find(f->weights, "a", tensor(f, type_float(f->module, 32), 2, 2, 3));
	const struct weight *b =
	        weights_find(f->weights, "b", tensor(f, type_integer(f->module, 64), 1, 2, 0));
	assert_true(a && b &&
	        weights_find(f->weights, "none", tensor(f, type_float(f->module, 32), 2, 0, 4)));
	assert_int_equal(*(const char *)a->data, 0);
	assert_int_equal(*(const char *)b->data, 24);
	weights_release(a->data, 1 << 12);
	assert_int_equal(*(const char *)b->data, 24);
	assert_int_equal(b->bytes, 16);
	assert_true(opens(f, f->folder));
	assert_int_equal(weights_count(f->weights), 3);
}

static void test_not_what_the_model_needs(void **state)
{
	struct fixture *f = *state;
	const char *header = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}";
	assert_true(opens(f, write_file(f, "a.safetensors", header, 24)));
	assert_null(weights_find(f->weights, "z", tensor(f, type_float(f->module, 32), 2, 2, 3)));
	expect_refusal(f, "has no tensor \"z\"");
	f->diag.count = 0;
	assert_null(weights_find(f->weights, "a", tensor(f, type_float(f->module, 32), 2, 3, 2)));
	expect_refusal(f, "has shape [2, 3]");
	f->diag.count = 0;
	assert_null(weights_find(f->weights, "a", tensor(f, type_float(f->module, 64), 2, 2, 3)));
	expect_refusal(f, "has dtype F32");
}

static void test_malformed(void **state)
{
	struct fixture *f = *state;
#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
	assert_false(opens(f, path_of(f, "absent.safetensors")));
	expect_refusal(f, "cannot be read");
	assert_false(opens(f, write_bytes(f, "short", "\x01", 1)));
	expect_refusal(f, "has 1 bytes");
	assert_false(opens(f, write_bytes(f, "long", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)));
	expect_refusal(f, "its header should have 18446744073709551615 bytes");
	assert_false(opens(f, write_bytes(f, "longer", "\x03\0\0\0\0\0\0\0{}", 10)));
	expect_refusal(f, "its header should have 3 bytes, but the file has 10");
	refused(f, "{\"a\":", 0, "is no JSON object");
	refused(f, "[1]", 0, "is no JSON object");
	refused(f, "{\"a\":1}", 0, "unknown dtype");
	refused(f, "{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
	        "unknown dtype F31");
	refused(f, "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "has no shape");
	refused(f, "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8,
	        "impossible shape");
	refused(f, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2.5],\"data_offsets\":[0,8]}}", 8,
	        "impossible shape");
	refused(f,
	        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]"
	        "}}",
	        8, "impossible shape");
	refused(f, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "has no data_offsets");
	refused(f, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
	        "has no data_offsets");
	refused(f, "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
	        "takes 12 bytes, not 8");
	refused(f, "{" A "}", 7,
	        "is truncated: tensor \"a\" ends at byte 8 of the data, which has 7");
	refused(f, "{" A "}", 9, "the last 1 bytes belong to no tensor");
	refused(f, "{" A ",\"b\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[7,9]}}", 9,
	        "tensors \"a\" and \"b\" overlap");
	refused(f, "{" A ",\"b\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[9,11]}}", 11,
	        "1 bytes before tensor \"b\" belong to no tensor");
	refused(f, "{" A "," A "}", 8, "there are two tensors \"a\"");
}

static void test_several_files(void **state)
{
	struct fixture *f = *state;
	write_file(f, "one.safetensors", "{" A "}", 8);
	write_file(f, "two.safetensors",
	        "{\"b\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3);
	const char *name = "model.safetensors.index.json";
	const char *good = "{\"metadata\":{},\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two."
	                   "safetensors\"}}";
	assert_true(opens(f, write_bytes(f, name, good, strlen(good))));
	assert_int_equal(weights_count(f->weights), 2);
	assert_true(opens(f, f->folder));
	const char *swapped =
	        "{\"weight_map\":{\"b\":\"one.safetensors\",\"a\":\"two.safetensors\"}}";
	assert_false(opens(f, write_bytes(f, name, swapped, strlen(swapped))));
	expect_refusal(f, "tensor \"b\" is not in one.safetensors");
	const char *outside = "{\"weight_map\":{\"a\":\"../one.safetensors\"}}";
	assert_false(opens(f, write_bytes(f, name, outside, strlen(outside))));
	expect_refusal(f, "is in no file beside the index");
	assert_false(opens(f, write_bytes(f, name, "{}", 2)));
	expect_refusal(f, "is no index");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_what_the_model_needs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_malformed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_several_files, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
