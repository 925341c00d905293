/* A few seeded mutations of every input of test_import through the fuzzer's own driver: no
 * crash, and what is read prints and reads back the same. */
#define main fuzz_main
#include "../../fuzz/fuzz_import.c"
#undef main

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_mutations(void **unused)
{
	(void)unused;
	const char *mode = getenv("STC_TEST_MODE");
	static char program[] = "fuzz_import";
	static char count_short[] = "40";
	static char count_long[] = "3000";
	static char seed[] = "3";
	static char stream[] = STC_SOURCE_DIR "/tests/unit/import/stream.mlir";
	static char hardware[] = STC_SOURCE_DIR "/tests/unit/import/hardware.mlir";
	static char named[] = STC_SOURCE_DIR "/tests/unit/import/named_ops.mlir";
	static char resources[] = STC_SOURCE_DIR "/tests/unit/import/resources.mlir";
	char *argument[] = { program, mode && !strcmp(mode, "long") ? count_long : count_short,
		seed, stream, hardware, named, resources, NULL };
	assert_int_equal(fuzz_main(7, argument), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_mutations) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
