/* Where buffers lie among the memory channels: two large ones that share an adapter are separated,
 * the engine's weights never move, and nothing moves without gain. */
#include "base/guard.h"
#include "ports/balance_channels.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { PORTS = 6, CHANNELS = 4 };

/* Ports 0 and 1 are one buffer, that a loader reads and rows are appended to; 3 brings weights. */
static void check(const int64_t *bytes, const bool *far, const int *before, const int *after)
{
	static const int buffer[PORTS] = { 0, 0, 2, 3, 4, 5 };
	struct guard guard = { 0 };
	struct arena *arena = arena_new(&guard);
	struct channel_port port[PORTS];
	for (int i = 0; i < PORTS; i++)
		port[i] = (struct channel_port){ buffer[i], before[i], bytes[i], i == 3, far[i] };
	balance_channels(arena, port, PORTS, CHANNELS);
	for (int i = 0; i < PORTS; i++)
		assert_int_equal(port[i].channel, after[i]);
	arena_free(arena);
}

static void a_buffer_moves_to_the_next_channel(void **state)
{
	(void)state;
	const int64_t bytes[PORTS] = { 900, 100, 1000, 500, 1000, 0 };
	const bool near[PORTS] = { 0 };
	const int before[PORTS] = { 1, 1, 1, 1, 3, 0 };
	const int after[PORTS] = { 1, 1, 0, 1, 3, 0 };
	check(bytes, near, before, after);
}

static void only_what_may_be_anywhere_moves_far(void **state)
{
	(void)state;
	const int64_t bytes[PORTS] = { 900, 100, 1000, 500, 1000, 600 };
	const bool far[PORTS] = { [5] = true };
	const int before[PORTS] = { 0, 0, 0, 1, 1, 0 };
	const int after[PORTS] = { 0, 0, 1, 1, 2, 3 };
	check(bytes, far, before, after);
}

static void nothing_moves_for_little(void **state)
{
	(void)state;
	const int64_t bytes[PORTS] = { 100, 0, 100, 5000, 100, 100 };
	const bool far[PORTS] = { true, true, true, true, true, true };
	const int before[PORTS] = { 0, 0, 0, 3, 3, 3 };
	check(bytes, far, before, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_moves_to_the_next_channel),
		cmocka_unit_test(only_what_may_be_anywhere_moves_far),
		cmocka_unit_test(nothing_moves_for_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
