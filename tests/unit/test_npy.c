/* .npy files: what NumPy writes is read, what is damaged is refused, and no bytes at all make
 * the reader go astray. */
#include "base/guard.h"
#include "base/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MUTATIONS 20000

static struct guard guard;

struct case_npy {
	struct arena *arena;
	struct diag diag;
	struct npy npy;
};

static void start(struct case_npy *c)
{
	memset(c, 0, sizeof *c);
	c->arena = c->diag.arena = arena_new(&guard);
}

/* A file of this header text and `data` bytes. */
static struct text file_of(struct arena *arena, int version, const char *header, size_t data)
{
	struct text file = text_new(arena);
	size_t size = strlen(header);
	const char lead[] = { (char)version, 0, (char)(size & 0xff), (char)(size >> 8), 0, 0 };
	text_add_bytes(&file, "\x93NUMPY", 6);
	text_add_bytes(&file, lead, version == 1 ? 4 : 6);
	text_add_bytes(&file, header, size);
	for (size_t i = 0; i < data; i++)
		text_add_bytes(&file, &(char){ (char)i }, 1);
	return file;
}

static void accepts(int version, const char *header, size_t data, const char *dtype, int rank)
{
	struct case_npy c;
	start(&c);
	struct text file = file_of(c.arena, version, header, data);
	assert_true(npy_parse(&c.diag, "x.npy", file.data, file.size, &c.npy));
	assert_string_equal(c.npy.dtype, dtype);
	assert_int_equal(c.npy.rank, rank);
	assert_int_equal(c.npy.bytes, data);
	assert_ptr_equal(c.npy.data, file.data + file.size - data);
	arena_free(c.arena);
}

static void reads_what_numpy_writes(void **state)
{
	(void)state;
	accepts(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }     \n", 24, "f4",
	        2);
	accepts(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4, "f4", 1);
	accepts(2, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n", 24, "i8", 1);
	accepts(3, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", 1, "b1", 0);
	accepts(1, "{'shape': (0, 7), 'descr': '<f2', 'fortran_order': False}", 0, "f2", 2);
	accepts(1, "{\"shape\": (4,), \"descr\": \"|u1\", \"fortran_order\": False}", 4, "u1", 1);
}

static void refuses_one(int version, const char *header, size_t data, const char *message)
{
	struct case_npy c;
	start(&c);
	struct text file = file_of(c.arena, version, header, data);
	assert_false(npy_parse(&c.diag, "x.npy", file.data, file.size, &c.npy));
	assert_int_equal(c.diag.count, 1);
	assert_non_null(c.diag.entry[0].note);
	if (!strstr(c.diag.entry[0].message, message))
		fail_msg("'%s' does not hold '%s'", c.diag.entry[0].message, message);
	arena_free(c.arena);
}

static void refuses_damage(void **state)
{
	(void)state;
	refuses_one(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4, "version");
	refuses_one(1, "{'descr': '=f4', 'fortran_order': False, 'shape': (1,), }", 4, "type");
	refuses_one(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, "type");
	refuses_one(
	        1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, "type");
	refuses_one(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16, "Fortran");
	refuses_one(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, "shape");
	refuses_one(1,
	        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }", 4,
	        "shape");
	refuses_one(1,
	        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 0,
	        "too few");
	refuses_one(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, "too few");
	refuses_one(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 5, "after");
	refuses_one(1, "{'descr': '<f4', 'fortran_order': False, }", 4, "header");
	refuses_one(1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4,
	        "header");
	refuses_one(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", 4, "header");
	refuses_one(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, "header");
	refuses_one(1, "", 4, "header");
	refuses_one(1,
	        "{'descr': '<f4', 'fortran_order': False, 'shape': "
	        "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
	        4, "shape");
}

static void refuses_short_files(void **state)
{
	(void)state;
	struct case_npy c;
	start(&c);
	struct text file =
	        file_of(c.arena, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4);
	for (size_t size = 0; size < file.size; size++) {
		char *part = text_copy(c.arena, file.data, size);
		c.diag.count = 0;
		assert_false(npy_parse(&c.diag, "x.npy", part, size, &c.npy));
		assert_int_equal(c.diag.count, 1);
	}
	arena_free(c.arena);
}

static void reads_what_it_writes(void **state)
{
	(void)state;
	struct case_npy c;
	for (int rank = 0; rank <= NPY_RANK_MOST; rank++) {
		int64_t shape[NPY_RANK_MOST];
		start(&c);
		struct text file = text_new(c.arena);
		for (int d = 0; d < rank; d++)
			shape[d] = d % 5 == 4 ? 123 : 1;
		size_t bytes = 2;
		for (int d = 0; d < rank; d++)
			bytes *= (size_t)shape[d];
		bytes = rank > 14 ? 0 : bytes;
		if (rank > 14)
			shape[0] = 0;
		npy_header(&file, "i2", rank, shape);
		assert_int_equal(file.size % 64, 0);
		size_t start_of_data = file.size;
		text_add_bytes(&file, arena_alloc(c.arena, bytes + 1), bytes);
		assert_true(npy_parse(&c.diag, "x.npy", file.data, file.size, &c.npy));
		assert_ptr_equal(c.npy.data, file.data + start_of_data);
		assert_int_equal(c.npy.rank, rank);
		assert_true(!rank || !memcmp(c.npy.shape, shape, (size_t)rank * sizeof *shape));
		arena_free(c.arena);
	}
}

/* Any bytes give a result or one message; the sanitizers watch the rest.  The seed is fixed. */
static void survives_mutation(void **state)
{
	(void)state;
	uint64_t seed = 7;
	struct case_npy c;
	start(&c);
	struct text file = file_of(
	        c.arena, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24);
	static const char marks[] = "(){}',: 0123456789<>|fiub\xff";
	int taken = 0;
	for (int i = 0; i < MUTATIONS; i++) {
		char bytes[256];
		memcpy(bytes, file.data, file.size);
		for (int k = 0; k <= i % 4; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			bytes[(seed >> 33) % file.size] = marks[(seed >> 20) % sizeof marks];
		}
		c.diag.count = 0;
		bool fine = npy_parse(&c.diag, "x.npy", bytes, file.size, &c.npy);
		assert_int_equal(c.diag.count, fine ? 0 : 1);
		taken += fine;
	}
	assert_in_range(taken, 1, MUTATIONS - 1);
	arena_free(c.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_numpy_writes),
		cmocka_unit_test(refuses_damage),
		cmocka_unit_test(refuses_short_files),
		cmocka_unit_test(reads_what_it_writes),
		cmocka_unit_test(survives_mutation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
