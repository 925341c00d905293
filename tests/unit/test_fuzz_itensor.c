/* A few seeded mutations of itensor types through the fuzzer's own driver. */
#define main fuzz_main
#include "../../fuzz/fuzz_itensor.c"
#undef main

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_mutations(void **unused)
{
	(void)unused;
	const char *mode = getenv("STC_TEST_MODE");
	static char program[] = "fuzz_itensor";
	static char count_short[] = "300";
	static char count_long[] = "20000";
	static char seed[] = "3";
	static char types[] = STC_SOURCE_DIR "/fuzz/itensors.txt";
	char *argument[] = { program, mode && !strcmp(mode, "long") ? count_long : count_short,
		seed, types, NULL };
	assert_int_equal(fuzz_main(4, argument), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_mutations) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
