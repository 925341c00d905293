/* The result folder: whole or not at all; and packed weights, against the segments that the
 * module describes. */
#include "design_case.h"
#include "base/json.h"
#include "base/blake2.h"
#include "driver/write_design.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int files_in(const char *folder)
{
	int count = 0;
	DIR *open_folder = opendir(folder);
	for (struct dirent *entry; open_folder && (entry = readdir(open_folder));)
		count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	if (open_folder)
		closedir(open_folder);
	return count;
}

static const char *read_text(struct design_case *c, const char *path)
{
	const char *reason;
	size_t size;
	return file_read(c->arena, path, &size, &reason);
}

static const char *const network =
        "#ik = affine_map<(i, j, k) -> (i, k)>\n#jk = affine_map<(i, j, k) -> (j, k)>\n#ij = "
        "affine_map<(i, j, k) -> (i, j)>\n"
        "func.func @main(%x: tensor<2x32xf32>, %w: tensor<64x32xf32> {stream.name = \"w\", "
        "stream.role = \"weight\"}) -> tensor<2x64xf32> {\n"
        "  %zero = arith.constant 0.0 : f32\n  %e = tensor.empty() : tensor<2x64xf32>\n"
        "  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64xf32>) -> tensor<2x64xf32>\n"
        "  %y = linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = [\"parallel\", "
        "\"parallel\", \"reduction\"]}\n"
        "      ins(%x, %w : tensor<2x32xf32>, tensor<64x32xf32>) outs(%f : tensor<2x64xf32>) {\n"
        "  ^bb0(%a: f32, %c: f32, %acc: f32):\n    %m = arith.mulf %a, %c : f32\n    %s = "
        "arith.addf %acc, %m : f32\n    linalg.yield %s : f32\n"
        "  } -> tensor<2x64xf32>\n  return %y : tensor<2x64xf32>\n}\n";

static struct output *begin(struct design_case *c, const char *target)
{
	c->diag.count = 0;
	return output_begin(c->arena, &c->diag, target, NULL);
}

static bool write_all(struct design_case *c, struct output *output, struct weights *weights)
{
	const struct phases phases = { 1, &(struct phase){ NULL, c->module } };
	struct text manifest = text_new(c->arena);
	const struct platform *platform = platform_load(c->arena, &c->diag, "u55c");
	emit_manifest(&phases, platform, "net", weights != NULL, &manifest);
	return write_code(output, &phases, platform, "net") &&
	        pack_weights(output, c->module, weights, NULL) && write_manifest(output, &manifest);
}

static void test_replaced_or_refused(void **state)
{
	(void)state;
	struct design_case c;
	case_start(&c, network);
	const char *target = text_format(c.arena, "%s/design", c.folder);
	const char *mark = text_format(c.arena, "%s/mark", target);
	struct output *output = begin(&c, text_format(c.arena, "%s/", target));
	assert_non_null(output);
	assert_true(write_all(&c, output, NULL));
	assert_int_not_equal(access(target, F_OK), 0);
	assert_true(output_commit(output));
	assert_int_equal(files_in(c.folder), 1);

	assert_true(file_write_whole(c.arena, &c.diag, mark, "x", 1));
	output = begin(&c, target);
	assert_true(output && write_all(&c, output, NULL));
	assert_int_equal(access(mark, F_OK), 0);
	assert_true(output_commit(output));
	assert_int_not_equal(access(mark, F_OK), 0);
	assert_int_equal(files_in(c.folder), 1);

	output = begin(&c, target);
	assert_true(output && write_all(&c, output, NULL));
	output_abandon(output);
	assert_int_equal(files_in(c.folder), 1);

	assert_int_equal(unlink(text_format(c.arena, "%s/manifest.json", target)), 0);
	assert_null(begin(&c, target));
	assert_non_null(strstr(case_messages(&c), "exists and is no design of ours"));
	assert_null(begin(&c, text_format(c.arena, "%s/absent/design", c.folder)));
	assert_non_null(strstr(case_messages(&c), "cannot be made"));
	case_finish(&c);
}

/* An empty folder is taken, and so is one that a link names: the link stays. */
static void test_empty_or_linked(void **state)
{
	(void)state;
	struct design_case c;
	case_start(&c, network);
	const char *target = text_format(c.arena, "%s/design", c.folder);
	const char *link = text_format(c.arena, "%s/link", c.folder);
	assert_int_equal(mkdir(target, 0777) || symlink("design", link), 0);
	for (int round = 0; round < 2; round++) {
		struct stat status;
		struct output *output = begin(&c, text_format(c.arena, "%s/", link));
		assert_true(output && write_all(&c, output, NULL) && output_commit(output));
		assert_true(!lstat(link, &status) && S_ISLNK(status.st_mode));
		assert_int_equal(access(text_format(c.arena, "%s/manifest.json", target), F_OK), 0);
		assert_int_equal(files_in(c.folder), 2);
	}
	int here = open(".", O_RDONLY);
	assert_true(here >= 0 && !chdir(target));
	assert_null(begin(&c, "."));
	assert_non_null(strstr(case_messages(&c), "is the folder that this runs in"));
	assert_int_equal(fchdir(here) || close(here), 0);
	assert_int_equal(unlink(text_format(c.arena, "%s/manifest.json", target)), 0);
	assert_null(begin(&c, link));
	case_finish(&c);
}

/* A process that has no descriptor left still removes its folder, with folders in folders. */
static void test_abandon_without_descriptors(void **state)
{
	(void)state;
	struct design_case c;
	case_start(&c, network);
	struct output *output = begin(&c, text_format(c.arena, "%s/design", c.folder));
	assert_true(output && write_all(&c, output, NULL));
	assert_true(output_file(output, "0/1/2/3/deep", "x", 1) &&
	        output_file(output, "0/1/other/deep", "x", 1));
	struct rlimit usual;
	assert_false(getrlimit(RLIMIT_NOFILE, &usual));
	struct rlimit few = { 64, usual.rlim_max };
	assert_false(setrlimit(RLIMIT_NOFILE, &few));
	int first = open("/dev/null", O_RDONLY);
	int last = first;
	for (int next; (next = open("/dev/null", O_RDONLY)) >= 0;)
		last = next;
	assert_int_equal(errno, EMFILE);
	output_abandon(output);
	for (int held = first; held <= last; held++)
		close(held);
	assert_false(setrlimit(RLIMIT_NOFILE, &usual));
	assert_int_equal(files_in(c.folder), 0);
	case_finish(&c);
}

static void test_stop(void **state)
{
	(void)state;
	struct design_case c;
	case_start(&c, network);
	volatile sig_atomic_t stop = 0;
	struct output *output =
	        output_begin(c.arena, &c.diag, text_format(c.arena, "%s/design", c.folder), &stop);
	assert_true(output && write_all(&c, output, NULL));
	stop = 1;
	assert_false(output_commit(output));
	output_abandon(output);
	assert_int_equal(files_in(c.folder), 0);
	case_finish(&c);
}

/* A limit on the size of files stands for a full disk. */
static void test_no_room(void **state)
{
	(void)state;
	struct design_case c;
	struct rlimit before;
	struct rlimit small = { 1000, RLIM_INFINITY };
	case_start(&c, network);
	struct output *output = begin(&c, text_format(c.arena, "%s/design", c.folder));
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	bool written = write_all(&c, output, NULL);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_false(written);
	assert_int_equal(c.diag.count, 1);
	assert_non_null(strstr(case_messages(&c), "cannot be written: File too large"));
	output_abandon(output);
	assert_int_equal(files_in(c.folder), 0);
	case_finish(&c);
}

static const char *write_weights(struct design_case *c, const float *data, size_t bytes)
{
	struct text text = text_new(c->arena);
	const char *header = text_format(c->arena,
	        "{\"w\":{\"dtype\":\"F32\",\"shape\":[64,32],\"data_offsets\":[0,%zu]}}", bytes);
	const char *path = text_format(c->arena, "%s/w.safetensors", c->folder);
	uint64_t size = strlen(header);
	text_add_bytes(&text, (const char *)&size, 8);
	text_add(&text, "%s", header);
	text_add_bytes(&text, (const char *)data, bytes);
	assert_true(file_write_whole(c->arena, &c->diag, path, text.data, text.size));
	return path;
}

/* Every image element is the host element that the segment names, or 0. */
static void check_image(
        const struct attr *buffer, const float *image, size_t bytes, const float *host)
{
	const struct attr *segments = attr_item(buffer, KEY_SEGMENTS);
	for (int s = 0; s < segments->count; s++) {
		const struct attr *segment = segments->items[s].value;
		const struct attr *trips = attr_item(segment, KEY_TRIPS);
		const struct attr *strides = attr_item(segment, KEY_STRIDES);
		int64_t total = 1;
		int64_t offset = attr_item(segment, KEY_OFFSET)->integer;
		bool weight = text_same(attr_item(segment, KEY_ROLE)->text, "weight");
		for (int d = 0; d < trips->count; d++)
			total *= trips->integers[d];
		assert_true((size_t)(offset + total) * 4 <= bytes);
		assert_int_equal(attr_item(segment, KEY_CONDITIONS)->count, 0);
		for (int64_t n = 0; n < total; n++) {
			int64_t from = attr_item(segment, KEY_BASE)->integer;
			int64_t rest = n;
			for (int d = trips->count - 1; d >= 0; d--) {
				from += rest % trips->integers[d] * strides->integers[d];
				rest /= trips->integers[d];
			}
			assert_true((weight ? host[from] : 0) == image[offset + n]);
		}
	}
}

static void test_packed_weights(void **state)
{
	(void)state;
	struct design_case c;
	float data[64 * 32];
	int checked = 0;
	case_start(&c, network);
	for (int i = 0; i < 64 * 32; i++)
		data[i] = (float)(i + 1);
	struct weights *weights =
	        weights_open(c.arena, &c.diag, write_weights(&c, data, sizeof data));
	const char *target = text_format(c.arena, "%s/design", c.folder);
	const char *reason;
	struct output *output = begin(&c, target);
	assert_true(weights && output && write_all(&c, output, weights) && output_commit(output));
	const char *manifest = read_text(&c, text_format(c.arena, "%s/manifest.json", target));
	const struct json *json = json_parse(c.arena, manifest, strlen(manifest), NULL);
	const struct json *files = json_get(json, "files");
	assert_non_null(files);
	assert_non_null(json_get(files, "hls/top_net.cpp"));
	for (const struct json *file = files->first; file; file = file->next) {
		size_t size;
		char hex[65];
		const char *text = file_read(
		        c.arena, text_format(c.arena, "%s/%s", target, file->name), &size, &reason);
		assert_non_null(text);
		blake2_hex(text, size, hex);
		assert_string_equal(hex, file->text);
	}
	const struct attr *buffers = attr_get(module_main(c.module), KEY_STREAM_BUFFERS);
	for (int b = 0; b < buffers->count; b++) {
		size_t size;
		const struct attr *buffer = buffers->items[b].value;
		const char *path = text_format(
		        c.arena, "%s/weights/%s.bin", target, attr_item(buffer, KEY_NAME)->text);
		const char *image = file_read(c.arena, path, &size, &reason);
		if (!image)
			continue;
		assert_int_equal(size,
		        attr_item(buffer, KEY_WORDS)->integer *
		                type_bits(attr_item(buffer, KEY_WORD)->type) / 8);
		check_image(buffer, (const float *)(const void *)image, size, data);
		checked++;
	}
	assert_true(checked > 0);
	weights_close(weights);
	case_finish(&c);
}

static void test_hash(void **state)
{
	(void)state;
	char hex[65];
	char million[1000];
	struct blake2 hash;
	blake2_hex("", 0, hex);
	assert_string_equal(
	        hex, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
	blake2_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
	assert_string_equal(
	        hex, "5f7a93da9c5621583f22e49e8e91a40cbba37536622235a380f434b9f68e49c4");
	memset(million, 'a', sizeof million);
	blake2_start(&hash);
	for (size_t done = 0, part = 1; done < 1000000; part = part % 777 + 1) {
		size_t size = part < 1000000 - done ? part : 1000000 - done;
		blake2_add(&hash, million, size);
		done += size;
	}
	blake2_end(&hash, hex);
	assert_string_equal(
	        hex, "0741850f36cba4259628355d1073e24ddb9ca0e1bfac36fd39ae5dc2101e23a4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replaced_or_refused),
		cmocka_unit_test(test_empty_or_linked),
		cmocka_unit_test(test_abandon_without_descriptors),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_packed_weights),
		cmocka_unit_test(test_hash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
