/* Chooses the schedule of a single kernel.
 *
 * Lane loop: contiguous in the result and in every operand that cannot be laid out freely; a
 * parallel loop before a reduction (whose lanes are an adder tree), many lanes before few. Only its
 * innermost part of `lanes` points is unrolled.
 * Order without a reduction: the result's row-major order, so that producers and consumers agree
 * if their layouts do.
 * Order with a reduction: loops of the largest operand (so that each of its words is read once),
 * rest of the lane loop, reductions, loops that reuse the largest operand, interleave, lanes.
 * Padded rows from the matmul engine keep its order. Interleave: at least 8 independent
 * accumulators between two additions to the same one, because an addition takes up to 7 cycles. */
#include "ir/workload.h"
#include "base/number.h"
#include "ir/contract.h"
#include "ir/launch_tokens.h"
#include "ir/kernel_edit.h"
#include "options/pass_context.h"
#include "schedule/recorded_choices.h"

#define INTERLEAVE 8
/* most terms of a sum for which a loop outside the sums may move inside, since little waits for
 * it */
#define FEW_TERMS 4
/* trip counts without a small divisor would need many times the accumulators: they are padded, if
 * they are so many times larger */
#define PAD_FROM 16
/* a reduction of at most so many elements is one word, without accumulation after the adder
 * tree, */
#define TREE_WHOLE 128
#define TREE_FROM 16       /* unless the kernel is limited to fewer lanes than this */
#define WORD_LANES 128     /* 4096 bits of f32 */
#define BULK_ELEMENTS 4096 /* a smaller input is soon read twice */

struct scheduler {
	struct module *module;
	const struct op *op;
	const struct kernel *kernel;
	const enum operand_location *operand_location;
	int64_t most_lanes;
	bool is_only_stored;
	struct schedule schedule;
};

/* Does the loop select rows of a gather, or stride over a gathered table? */
static bool gathered(const struct scheduler *p, int loop)
{
	for (int j = 0; j < p->op->operands; j++) {
		const struct access *access = &p->kernel->operand[j];
		if (access->index_operand < 0)
			continue;
		int64_t own = access->stride[loop];
		if (p->kernel->operand[access->index_operand].stride[loop] ||
		        (own != 0 && own != 1))
			return true;
	}
	return false;
}

/* Does the loop cross an operand on chip whose own order ends in a run-time extent? Words along it
 * would need a reorder buffer. */
static bool crosses_run_time(const struct scheduler *p, int operand, int loop)
{
	const struct access *access = &p->kernel->operand[operand];
	for (int l = 0; l < p->kernel->loops; l++)
		if (l != loop && access->stride[loop] && access->stride[l] == 1 &&
		        p->kernel->loop[l].run_time)
			return p->operand_location[operand] == LOCATION_ON_CHIP;
	return false;
}

/* Do several kernels read this large input from memory? In its own order one load serves all. */
static bool is_read_again(const struct scheduler *p, int operand)
{
	const struct value *value = p->op->operand[operand];
	return !value->def && value->uses > 1 && type_elements(value->type) >= BULK_ELEMENTS &&
	        workload_of(p->op) == WORKLOAD_NONE;
}

/* 2: contiguous everywhere; 1: some operand on chip, or one that others read too, is read with a
 * stride; 0: it cannot be the lane loop. */
static int fitness(const struct scheduler *p, int loop)
{
	const struct kernel *kernel = p->kernel;
	int fit = 2;
	if (kernel->loop[loop].extent == 1 || kernel->loop[loop].run_time ||
	        kernel_is_guarded(p->op, loop) || gathered(p, loop))
		return 0;
	if (kernel->loop[loop].reduction ? kernel->combine == OP_NONE
	                                 : kernel->result.stride[loop] != 1)
		return 0;
	for (int j = 0; j < p->op->operands; j++) {
		int64_t stride = kernel->operand[j].stride[loop];
		int64_t coefficient = 1;
		if (crosses_run_time(p, j, loop))
			return 0;
		if (stride > 1 &&
		        (schedule_data_dim(p->op->operand[j]->type, stride,
		                 kernel->loop[loop].extent, &coefficient) < 0 ||
		                coefficient != 1))
			return 0; /* a tile is contiguous along its dimension */
		bool packed = p->operand_location[j] == LOCATION_PACKED && !is_read_again(p, j);
		if (stride == 0 || stride == 1 || packed)
			continue;
		fit = 1;
	}
	return fit;
}

/* May the loop be padded? The stores of the result drop its padding, and every operand that varies
 * along the loop is padded in memory. */
static bool can_pad(const struct scheduler *p, int loop)
{
	if (!p->is_only_stored || p->kernel->loop[loop].reduction)
		return false;
	for (int j = 0; j < p->op->operands; j++)
		if (p->kernel->operand[j].stride[loop] &&
		        (p->operand_location[j] != LOCATION_PACKED ||
		                p->kernel->operand[j].index_operand >= 0))
			return false;
	return true;
}

/* Lanes of a reduction that reads rows of the matmul engine as they come, the last word of each
 * row padded; 0: this does not apply. In an integer maximum or minimum an element may count
 * twice, so the padding can be the initial value; integers also need no partial sums
 * (schedule_partial_sums). */
static int64_t dropping_lanes(const struct scheduler *p, int loop)
{
	const struct kernel *kernel = p->kernel;
	bool twice = kernel->combine == OP_MAXSI || kernel->combine == OP_MINSI;
	int64_t lanes = 0;
	if (!twice || !kernel->loop[loop].reduction)
		return 0;
	for (int j = 0; j < p->op->operands; j++) {
		const struct value *value = p->op->operand[j];
		if (!kernel->operand[j].stride[loop])
			continue;
		bool row = value->def && value->def->code == OP_CONTRACT && value->type->rank > 0 &&
		        value->type->shape[value->type->rank - 1] == kernel->loop[loop].extent;
		int64_t own = row ? contract_lanes(value->def) : 0;
		if (kernel->operand[j].stride[loop] != 1 || own > p->most_lanes ||
		        own > kernel->loop[loop].extent || (lanes && own != lanes))
			return 0;
		lanes = own;
	}
	return lanes;
}

/* Does it walk blocks of a run-time extent? Their words then have the width in which the state is
 * read. */
static bool walks_blocks(const struct kernel *kernel)
{
	bool found = false;
	for (int l = 0; l < kernel->loops; l++)
		found = found || (kernel->loop[l].run_time && !kernel->loop[l].reduction);
	return found;
}

static bool is_one_word(const struct scheduler *p, const struct loop *l)
{
	return p->most_lanes >= TREE_FROM && l->reduction && l->extent <= TREE_WHOLE &&
	        l->extent == power_of_two_in(l->extent, TREE_WHOLE) &&
	        !(workload_of(p->op) == WORKLOAD_DECODE && walks_blocks(p->kernel));
}

static int64_t lanes_of(const struct scheduler *p, int loop, bool *padded)
{
	const struct loop *l = &p->kernel->loop[loop];
	int64_t most = is_one_word(p, l) ? l->extent : p->most_lanes;
	if (type_bits(p->kernel->type) > 32 && !l->reduction)
		most = most > WORD_LANES / 2 ? WORD_LANES / 2 : most;
	int64_t lanes = power_of_two_in(l->extent, most);
	*padded = lanes < 16 && lanes < most && l->extent > 16 * most && can_pad(p, loop);
	int64_t dropping = dropping_lanes(p, loop);
	*padded |= lanes < dropping;
	if (lanes < dropping)
		return dropping;
	return *padded ? most : lanes;
}

/* Would sums of an input side by side wait for the adder? Each lane has too few to hide its
 * latency. */
static bool waits_for_sums(const struct scheduler *p, int loop, int64_t lanes)
{
	const struct kernel *kernel = p->kernel;
	int64_t sums = 1;
	int64_t terms = 1;
	for (int l = 0; l < kernel->loops; l++)
		*(kernel->loop[l].reduction ? &terms : &sums) *= kernel->loop[l].extent;
	return p->op->operands == 1 && p->operand_location[0] == LOCATION_PACKED &&
	        kernel_has_reduction(kernel) && !kernel->loop[loop].reduction &&
	        workload_of(p->op) == WORKLOAD_NONE && terms > FEW_TERMS &&
	        sums / lanes < INTERLEAVE;
}

static int choose_lane(struct scheduler *p)
{
	int best = -1;
	int64_t best_score = 0;
	bool best_padded = false;
	for (int l = 0; l < p->kernel->loops; l++) {
		bool padded = false;
		int fit = fitness(p, l);
		int64_t lanes = fit ? lanes_of(p, l, &padded) : 1;
		bool waits = waits_for_sums(p, l, lanes);
		bool parallel = !p->kernel->loop[l].reduction && !waits;
		int64_t score =
		        ((int64_t)fit << 40) + ((int64_t)parallel << 32) + (waits ? 1 : lanes);
		if (lanes > 1 && score > best_score) {
			best = l;
			best_score = score;
			best_padded = padded;
			p->schedule.lanes = lanes;
		}
	}
	p->schedule.padded = best_padded;
	return best;
}

static void add_part(struct scheduler *p, int source, int64_t trip, int64_t step)
{
	p->schedule.part[p->schedule.parts++] =
	        (struct schedule_part){ .source = source, .trip = trip, .step = step };
}

/* Parallel loops by decreasing stride of the result; stable. Excludes the loop of token tiles,
 * which stays outermost. */
static int result_order(const struct scheduler *p, int *order)
{
	int count = 0;
	for (int l = 0; l < p->kernel->loops; l++) {
		if (p->kernel->loop[l].reduction || (p->kernel->tile_outermost && !l))
			continue;
		int at = count++;
		for (; at > 0 &&
		        p->kernel->result.stride[order[at - 1]] < p->kernel->result.stride[l];
		        at--)
			order[at] = order[at - 1];
		order[at] = l;
	}
	return count;
}

/* The operand with the most elements, preferring memory, which the order should read once. */
static int largest_operand(const struct scheduler *p)
{
	int best = -1;
	int64_t best_points = -1;
	for (int j = 0; j < p->op->operands; j++) {
		int64_t points = 1;
		for (int l = 0; l < p->kernel->loops; l++)
			points *= p->kernel->operand[j].stride[l] ? p->kernel->loop[l].extent : 1;
		points = 2 * points + (p->operand_location[j] != LOCATION_ON_CHIP);
		if (points > best_points && !kernel_is_post_operand(p->kernel, j)) {
			best = j;
			best_points = points;
		}
	}
	return best;
}

static void order_elementwise(struct scheduler *p, int lane)
{
	int *order = ARENA_ARRAY(p->module->arena, int, p->kernel->loops + 1);
	int count = result_order(p, order);
	for (int i = 0; i < count; i++) {
		int64_t extent = p->kernel->loop[order[i]].extent;
		if (order[i] == lane)
			add_part(p, lane, (extent + p->schedule.lanes - 1) / p->schedule.lanes,
			        p->schedule.lanes);
		else
			add_part(p, order[i], extent, 1);
	}
}

static void add_reductions(struct scheduler *p, int lane)
{
	for (int l = 0; l < p->kernel->loops; l++) {
		if (!p->kernel->loop[l].reduction)
			continue;
		if (l == lane)
			add_part(p, l,
			        (p->kernel->loop[l].extent + p->schedule.lanes - 1) /
			                p->schedule.lanes,
			        p->schedule.lanes);
		else
			add_part(p, l, p->kernel->loop[l].extent, 1);
	}
}

/* The smallest divisor of `trips` that gives enough independent accumulators. */
static int64_t interleave(int64_t trips, int64_t already)
{
	for (int64_t d = 1; d < trips; d++)
		if (trips % d == 0 && d * already >= INTERLEAVE)
			return d;
	return trips;
}

/* The order of rows from the matmul engine: tile by tile, and in a tile one word of every row
 * before the next word. */
static void order_rows(struct scheduler *p, int lane)
{
	const struct kernel *kernel = p->kernel;
	int *order = ARENA_ARRAY(p->module->arena, int, kernel->loops + 1);
	int count = result_order(p, order);
	int64_t tile = count ? token_tile(kernel->loop[order[0]].extent, false) : 1;
	if (count && kernel->loop[order[0]].extent > tile)
		add_part(p, order[0], kernel->loop[order[0]].extent / tile, tile);
	add_reductions(p, lane);
	for (int i = 0; i < count; i++)
		add_part(p, order[i], i ? kernel->loop[order[i]].extent : tile, 1);
}

/* The innermost parallel loop if the sums have few real terms: moved inside, it separates the
 * additions to one sum, and in decode of one token nothing waits for them. -1: none. */
static int loop_inside(const struct scheduler *p, const int *order, int count, int lane)
{
	const struct kernel *kernel = p->kernel;
	int64_t terms = 1;
	for (int l = 0; l < kernel->loops; l++)
		terms *= kernel->loop[l].reduction ? kernel->loop[l].extent : 1;
	for (int i = count - 1; i >= 0 && terms <= FEW_TERMS && type_is_real(kernel->type); i--)
		if (order[i] != lane && kernel->loop[order[i]].extent > 1 &&
		        !kernel->loop[order[i]].run_time)
			return order[i];
	return -1;
}

static void order_reduction(struct scheduler *p, int lane)
{
	const struct kernel *kernel = p->kernel;
	int *order = ARENA_ARRAY(p->module->arena, int, kernel->loops + 1);
	int count = result_order(p, order);
	int largest = largest_operand(p);
	bool lane_parallel = lane >= 0 && !kernel->loop[lane].reduction;
	int inside = lane_parallel && workload_of(p->op) == WORKLOAD_DECODE
	        ? loop_inside(p, order, count, lane)
	        : -1;
	int64_t reuse = 1;
	for (int i = 0; i < count; i++) {
		bool used = order[i] != inside &&
		        (largest < 0 || kernel->operand[largest].stride[order[i]] ||
		                !lane_parallel);
		if (order[i] != lane && used)
			add_part(p, order[i], kernel->loop[order[i]].extent, 1);
		else if (order[i] != lane)
			reuse *= kernel->loop[order[i]].extent;
	}
	int64_t trips = 1;
	int64_t inner = 1;
	if (lane_parallel) {
		trips = (kernel->loop[lane].extent + p->schedule.lanes - 1) / p->schedule.lanes;
		/* of `inner`; a larger multiple could pad by whole outer iterations, for which no
		 * port type exists */
		int64_t least = (INTERLEAVE + reuse - 1) / reuse;
		p->schedule.padded = p->schedule.padded ||
		        (can_pad(p, lane) && trips > PAD_FROM * least &&
		                interleave(trips, reuse) > PAD_FROM * least);
		if (p->schedule.padded)
			trips = (trips + least - 1) / least * least;
		inner = interleave(trips, reuse);
		add_part(p, lane, trips / inner, p->schedule.lanes * inner);
	}
	add_reductions(p, lane);
	for (int i = 0; i < count; i++)
		if (order[i] != lane && lane_parallel &&
		        (order[i] == inside ||
		                (largest >= 0 && !kernel->operand[largest].stride[order[i]])))
			add_part(p, order[i], kernel->loop[order[i]].extent, 1);
	if (lane_parallel)
		add_part(p, lane, inner, p->schedule.lanes);
}

static struct schedule schedule_within(struct module *module, const struct op *op,
        const enum operand_location *operand_location, bool is_only_stored, int64_t most_lanes)
{
	struct scheduler p = { .module = module,
		.op = op,
		.kernel = op->kernel,
		.operand_location = operand_location,
		.most_lanes = most_lanes,
		.is_only_stored = is_only_stored };
	p.schedule.part =
	        ARENA_ARRAY(module->arena, struct schedule_part, 2 * op->kernel->loops + 4);
	p.schedule.lanes = p.schedule.row_unroll = 1;
	int lane = choose_lane(&p);
	if (op->kernel->tile_outermost)
		add_part(&p, 0, op->kernel->loop[0].extent, 1);
	if (p.schedule.padded && op->kernel->loop[lane].reduction)
		order_rows(&p, lane);
	else if (kernel_has_reduction(op->kernel))
		order_reduction(&p, lane);
	else
		order_elementwise(&p, lane);
	if (p.schedule.lanes > 1)
		add_part(&p, lane, p.schedule.lanes, 1);
	return p.schedule;
}

struct schedule schedule_kernel(struct module *module, const struct op *op,
        const enum operand_location *operand_location, bool is_only_stored, int64_t most_lanes)
{
	if (has_folding(op))
		return recorded_folding(module->arena, op);
	if (has_register_tile(op))
		return recorded_register_tile(module->arena, op);
	if (op->kernel->ordered)
		return schedule_listed(module, op, most_lanes);
	struct schedule schedule =
	        schedule_within(module, op, operand_location, is_only_stored, most_lanes);
	/* a reduction of one word has more lanes than it may have otherwise */
	while (schedule.lanes > 1 && !schedule_fits(module, op, &schedule)) {
		most_lanes = (schedule.lanes < most_lanes ? schedule.lanes : most_lanes) / 2;
		schedule =
		        schedule_within(module, op, operand_location, is_only_stored, most_lanes);
	}
	return schedule;
}
