/* Partial sums: their number, and the cycles that combining them costs. */
#include "random_model.h"
#include "platform/platform.h"
#include "lowering/lower_kernel.h"
#include "schedule/kernel_schedule.h"
#include "stream_case.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* y[a][b] = Σ x[a][b][c] */
static struct op *row_sums(struct fixture *f, int64_t outer, int64_t rows, int64_t columns)
{
	const struct type *real = type_float(f->module, 32);
	const int64_t from[] = { outer, rows, columns };
	const int64_t to[] = { outer, rows };
	const int64_t stride[] = { rows * columns, columns, 1 };
	const int64_t result[] = { rows, 1, 0 };
	struct block *block =
	        block_new(f->module, op_new(f->module, OP_FUNC, NOWHERE, 0, NULL, 0, NULL), 0);
	struct value *x = block_add_argument(
	        f->module, block, type_shaped(f->module, TYPE_TENSOR, 3, from, real));
	struct op *op = kernel_new(f->module, NOWHERE, "sums", 3, 1, &x,
	        type_shaped(f->module, TYPE_TENSOR, 2, to, real));
	struct kernel *kernel = op->kernel;
	for (int l = 0; l < 3; l++)
		kernel->loop[l] = (struct loop){ .extent = from[l], .reduction = l == 2 };
	memcpy(kernel->operand[0].stride, stride, sizeof stride);
	memcpy(kernel->result.stride, result, sizeof result);
	int term = body_add(f->module, &kernel->update,
	        (struct node){ .kind = NODE_OPERAND, .type = real, .integer = 0 });
	int before = body_add(f->module, &kernel->update,
	        (struct node){ .kind = NODE_ACCUMULATOR, .type = real });
	kernel->update.result = body_add(f->module, &kernel->update,
	        (struct node){ .kind = NODE_OP,
	                .code = OP_ADDF,
	                .type = real,
	                .argument = { before, term } });
	kernel->combine = kernel_combine(kernel, &term);
	return op;
}

/* Partial sums that double buffering does not hide are combined after each row: after the last word
 * two additions of its four numbers, one with a partial sum, and three of partial sums, 7 cycles
 * each.  With one loop over rows this overlaps the next row; with several, if each partial sum has
 * as many terms, another process does it, which the plan's cycles do not include. */
static void test_drained_rows(void **state)
{
	(void)state;
	static const enum operand_location operand_location[] = { LOCATION_ON_CHIP };
	static const struct {
		int64_t outer, columns, cycles, told;
		bool leave;
	} cases[] = { { 4, 132, 4 * 8 * (1 + 3) * 7, 4 * 8 * (2 + 1 + 3) * 7, false },
		{ 4, 128, 4 * 8 * (1 + 3) * 7, 4 * 8 * (2 + 1 + 3) * 7, true },
		{ 1, 128, 0, 0, true } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture *f = begin(1);
		struct op *op = row_sums(f, cases[i].outer, 8, cases[i].columns);
		struct schedule schedule =
		        schedule_kernel(f->module, op, operand_location, false, 4);
		assert_int_equal(schedule_partial_sums(op->kernel, &schedule, 7), 8);
		assert_int_equal(schedule_interval(op->kernel, &schedule, 7), 1);
		assert_int_equal(
		        schedule_drain_cycles(op->kernel, &schedule, 7, false), cases[i].cycles);
		assert_int_equal(
		        schedule_drain_cycles(op->kernel, &schedule, 7, true), cases[i].told);
		assert_int_equal(is_reduction_split(op->kernel, 8), cases[i].leave);
		end(f);
	}
}

/* With run-time numbers of rows and terms, two partial sums of a tile are combined while the next
 * row's terms arrive; if there may be no terms, or no tiles, eight are combined in a nest of their
 * own. */
static void test_dynamic_trip_terms(void **state)
{
	(void)state;
	static const struct {
		bool tile_outermost;
		int64_t plus, parts;
		int interval;
	} cases[] = { { true, 1, 2, 4 }, { true, 0, 8, 1 }, { false, 1, 8, 1 } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture *f = begin(1);
		const struct run_time_trip rows = { .symbol = "n", .tile = 1, .most = 8 };
		const struct run_time_trip blocks = {
			.symbol = "m", .plus = cases[i].plus, .tile = 1, .most = 32
		};
		struct op *op = row_sums(f, 2, 8, 32);
		struct schedule_part part[] = { { 0, 2, 1 }, { 1, 8, 1 }, { 2, 32, 1 } };
		struct schedule schedule = {
			.parts = 3, .part = part, .lanes = 1, .row_unroll = 1
		};
		op->kernel->tile_outermost = cases[i].tile_outermost;
		op->kernel->loop[1].run_time = &rows;
		op->kernel->loop[2].run_time = &blocks;
		assert_int_equal(schedule_partial_sums(op->kernel, &schedule, 7), cases[i].parts);
		assert_int_equal(schedule_interval(op->kernel, &schedule, 7), cases[i].interval);
		assert_int_equal(schedule_drain_cycles(op->kernel, &schedule, 7, false) > 0,
		        cases[i].parts == 8);
		assert_int_equal(schedule_is_dynamic_buffered(op->kernel, &schedule, 2),
		        cases[i].parts == 2);
		end(f);
	}
}

/* Partial sums are selected by a loop's counter; a loop of one iteration has none. */
static void test_partial_sums_are_counted(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct op *op = row_sums(f, 4, 8, 1);
	for (int l = 0; l < 3; l++)
		op->kernel->loop[l].reduction = true;
	assert_int_equal(kernel_inner_reduction(op->kernel), 1);
	op->kernel->loop[0].extent = op->kernel->loop[1].extent = 1;
	assert_int_equal(kernel_inner_reduction(op->kernel), 2);
	end(f);
}

/* y[b] = Σ x[a][b][c] over a and c, loops in this order: a term of a sum begins when the one
 * before it in the same partial sum is complete. */
static void expect_split_terms(const struct op *op, const int *order)
{
	enum { LATENCY = 7, MOST = 40 };
	const struct loop *loop = op->kernel->loop;
	struct schedule_part part[3];
	struct schedule schedule = { .parts = 3, .part = part, .lanes = 1, .row_unroll = 1 };
	for (int i = 0; i < 3; i++)
		part[i] = (struct schedule_part){
			.source = order[i], .trip = loop[order[i]].extent, .step = 1
		};
	int64_t parts = schedule_partial_sums(op->kernel, &schedule, LATENCY);
	int64_t interval = schedule_interval(op->kernel, &schedule, LATENCY);
	int64_t cycle = 0;
	int64_t last[MOST][MOST];
	int64_t at[3];
	int inner = part[2].trip > 1 && loop[order[2]].reduction ? order[2]
	        : part[1].trip > 1 && loop[order[1]].reduction   ? order[1]
	                                                         : order[0];
	memset(last, -1, sizeof last);
	for (at[order[0]] = 0; at[order[0]] < part[0].trip; at[order[0]]++)
		for (at[order[1]] = 0; at[order[1]] < part[1].trip; at[order[1]]++)
			for (at[order[2]] = 0; at[order[2]] < part[2].trip;
			        at[order[2]]++, cycle += interval) {
				int64_t *before = &last[at[1]][at[inner] % parts];
				assert_true(*before < 0 || cycle - *before >= LATENCY);
				*before = cycle;
			}
}

static void test_split_terms(void **state)
{
	(void)state;
	static const int orders[][3] = { { 0, 1, 2 }, { 1, 0, 2 }, { 0, 2, 1 }, { 2, 1, 0 } };
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct fixture *f = begin(seed);
		struct op *op = row_sums(f, number(f, 1, 40), number(f, 1, 6), number(f, 1, 40));
		op->kernel->loop[0].reduction = true;
		op->kernel->result.stride[0] = 0;
		expect_split_terms(op, orders[number(f, 0, 3)]);
		end(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_drained_rows),
		cmocka_unit_test(test_dynamic_trip_terms),
		cmocka_unit_test(test_partial_sums_are_counted),
		cmocka_unit_test(test_split_terms) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
