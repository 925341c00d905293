/* Platform files, memories by their shapes, and what they refuse. */
#include "predict/resource.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct guard guard;
	struct diag diag;
	struct arena *arena;
};

static void begin(struct fixture *f)
{
	memset(f, 0, sizeof *f);
	f->arena = arena_new(&f->guard);
	f->diag.arena = f->arena;
}

static void every_platform_loads(void **state)
{
	struct fixture f;
	const char *const *names;
	(void)state;
	begin(&f);
	int count = platform_names(f.arena, &names);
	assert_int_equal(count, 4);
	for (int i = 0; i < count; i++) {
		const struct platform *platform = platform_load(f.arena, &f.diag, names[i]);
		assert_non_null(platform);
		assert_string_equal(platform->name, names[i]);
		assert_true(i == 0 || strcmp(names[i - 1], names[i]) < 0);
	}
	assert_int_equal(f.diag.count, 0);
	arena_free(f.arena);
}

static void u55c_has_its_figures(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	const struct platform *p = platform_load(f.arena, &f.diag, "u55c");
	assert_non_null(p);
	assert_int_equal(p->dies, 3);
	assert_int_equal(p->die[1].dsp, 2784);
	assert_int_equal(p->die[2].lut, 381000);
	assert_int_equal(platform_total(p).dsp, 8304);
	assert_int_equal(platform_total(p).bram18, 3552);
	assert_int_equal(platform_uncrowded(p, 1).lut, 364000 * 3 / 4);
	assert_int_equal(platform_uncrowded(p, 1).dsp, 2784 * 4 / 5);
	assert_int_equal(p->channels, 32);
	assert_int_equal(p->cost[OP_ADDF].latency, 7);
	assert_int_equal(p->cost[OP_MULF].dsp, 3);
	/* a composed row: 14 products, 13 sums, 3 comparisons, a conversion */
	assert_int_equal(p->cost[OP_LOG].dsp, 14 * 3 + 13 * 2);
	assert_int_equal(p->cost[OP_LOG].latency, 9 * 4 + 13 * 7 + 2 + 4);
	arena_free(f.arena);
}

/* LUTs and DSPs of a die are as many at any clock; registers, memories and wires to the next die
 * are more where the period is as long as a crowded design's. */
static void a_slower_clock_leaves_room(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	const struct platform *p = platform_load(f.arena, &f.diag, "u55c");
	const struct platform *nearly = platform_slower(f.arena, p, 251);
	const struct platform *slower = platform_slower(f.arena, p, 250);
	struct resources usual = platform_uncrowded(p, 1);
	struct resources most = platform_uncrowded(slower, 1);
	assert_int_equal(platform_uncrowded(nearly, 1).uram, usual.uram);
	assert_int_equal(nearly->crossing_wires, p->crossing_wires);
	assert_int_equal(slower->memory_latency, 84);
	assert_int_equal(slower->crossing_wires, 19526);
	assert_int_equal(most.lut, usual.lut);
	assert_int_equal(most.dsp, usual.dsp);
	assert_int_equal(most.ff, 729000 * 3 / 4);
	assert_int_equal(most.bram18, 1152 * 85 / 100);
	assert_int_equal(most.uram, 320 * 85 / 100);
	arena_free(f.arena);
}

static void like_takes_the_rest(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	const struct platform *p = platform_load(f.arena, &f.diag, "xc7z020");
	assert_non_null(p);
	assert_int_equal(p->dies, 1);
	assert_int_equal(p->cost[OP_MULF].latency, 3); /* its own */
	assert_int_equal(p->cost[OP_SELECT].lut, 16);  /* the U55C's */
	/* composed of its own */
	assert_int_equal(p->cost[OP_LOG].latency, 9 * 3 + 13 * 4 + 1 + p->cost[OP_SITOFP].latency);
	arena_free(f.arena);
}

static void operators_follow_the_width(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	const struct platform *p = platform_load(f.arena, &f.diag, "u55c");
	struct module *module = module_new(f.arena, &f.guard, &f.diag, LEVEL_HARDWARE);
	assert_int_equal(platform_operator(p, OP_MULI, type_integer(module, 8)).dsp, 1);
	assert_int_equal(platform_operator(p, OP_MULI, type_integer(module, 32)).dsp, 3);
	assert_int_equal(platform_operator(p, OP_MULI, type_integer(module, 64)).dsp, 10);
	assert_int_equal(platform_operator(p, OP_ADDI, type_integer(module, 16)).lut, 16);
	assert_int_equal(platform_operator(p, OP_MULF, type_float(module, 64)).dsp, 8);
	/* without a row: three of f32 */
	assert_int_equal(platform_operator(p, OP_FLOOR, type_float(module, 64)).lut,
	        3 * p->cost[OP_FLOOR].lut);
	arena_free(f.arena);
}

static void memories_have_true_shapes(void **state)
{
	(void)state;
	assert_int_equal(storage_cost(STORAGE_BRAM, 36, 512).bram18, 1);
	assert_int_equal(storage_cost(STORAGE_BRAM, 36, 513).bram18, 2);
	assert_int_equal(storage_cost(STORAGE_BRAM, 32, 1024).bram18, 2);
	assert_int_equal(storage_cost(STORAGE_BRAM, 1, 16384).bram18, 1);
	assert_int_equal(storage_cost(STORAGE_BRAM, 512, 512).bram18, 15);
	assert_int_equal(storage_cost(STORAGE_BRAM, 9, 4096).bram18, 2);
	assert_int_equal(storage_cost(STORAGE_URAM, 72, 4096).uram, 1);
	assert_int_equal(storage_cost(STORAGE_URAM, 73, 4097).uram, 4);
	assert_int_equal(storage_cost(STORAGE_LUTRAM, 7, 64).lut, 8);
	assert_int_equal(storage_cost(STORAGE_LUTRAM, 14, 32).lut, 8);
	assert_int_equal(storage_cost(STORAGE_LUTRAM, 14, 33).lut, 16);
	assert_int_equal(storage_cost(STORAGE_REGISTERS, 32, 1).ff, 32);
	assert_int_equal(storage_choose(32, 16, true), STORAGE_LUTRAM);
	assert_int_equal(storage_choose(512, 4096, true), STORAGE_URAM);
	assert_int_equal(storage_choose(512, 512, false), STORAGE_BRAM);
	assert_int_equal(storage_choose(36, 1024, true), STORAGE_BRAM);
}

static struct op *channel(struct module *module, const struct type *type, enum op_code code)
{
	return op_new(module, code, NOWHERE, 0, NULL, 1, &type);
}

static void channels_cost_what_they_hold(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	const struct platform *p = platform_load(f.arena, &f.diag, "u55c");
	struct module *module = module_new(f.arena, &f.guard, &f.diag, LEVEL_HARDWARE);
	const struct type *f32 = type_float(module, 32);
	const struct type *word = type_shaped(module, TYPE_VECTOR, 1, (int64_t[]){ 16 }, f32);
	struct op *fifo = channel(module, type_channel(module, TYPE_FIFO, word, 32), OP_FIFO);
	assert_int_equal(memory_cost(p, fifo).bram18, 0);
	assert_int_equal(memory_cost(p, fifo).lut, 512 + p->fifo_word_lut);
	assert_int_equal(memory_bytes(fifo), 32 * 64);
	struct op *deep = channel(module, type_channel(module, TYPE_FIFO, f32, 512), OP_FIFO);
	assert_int_equal(memory_cost(p, deep).bram18, 1);
	const struct type *block = type_shaped(module, TYPE_MEMREF, 1, (int64_t[]){ 1024 }, f32);
	struct op *blocks =
	        channel(module, type_channel(module, TYPE_BLOCKS, block, 2), OP_BLOCK_CHANNEL);
	attr_set(module, blocks, KEY_STREAM_STORAGE, attr_string(module, "bram"));
	assert_int_equal(memory_cost(p, blocks).bram18, 4); /* 2048 words of 32 bits */
	attr_set(module, blocks, KEY_STREAM_PARTITION, attr_integer(module, 4));
	assert_int_equal(memory_of(p, blocks).banks, 4);
	assert_int_equal(memory_of(p, blocks).depth, 512);
	assert_int_equal(memory_bytes(blocks), 8192);
	arena_free(f.arena);
}

static void too_much_is_named(void **state)
{
	int64_t have;
	int64_t need;
	(void)state;
	struct resources has = { .lut = 10, .ff = 10, .dsp = 10, .bram18 = 10, .uram = 10 };
	assert_null(resources_exceeded(has, has, &have, &need));
	assert_string_equal(resources_exceeded((struct resources){ .uram = 11 }, has, &have, &need),
	        "URAM blocks");
	assert_int_equal(need - have, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_platform_loads),
		cmocka_unit_test(u55c_has_its_figures),
		cmocka_unit_test(a_slower_clock_leaves_room),
		cmocka_unit_test(like_takes_the_rest),
		cmocka_unit_test(operators_follow_the_width),
		cmocka_unit_test(memories_have_true_shapes),
		cmocka_unit_test(channels_cost_what_they_hold),
		cmocka_unit_test(too_much_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
