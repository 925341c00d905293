/* The order in which elements flow, against enumeration: what a type denotes, its normal forms,
 * regrouped words, the ports of scheduled kernels; and the depths of FIFOs. */
#include "random_model.h"
#include "fifo/fifo_passes.h"
#include "pipeline/passes.h"
#include "import/import.h"
#include "platform/platform.h"
#include "schedule/kernel_schedule.h"
#include "itensor/element_sequence.h"
#include "evaluate/eval.h"
#include "stream_case.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PADDING (-1)
#define RANK_MOST 3

struct elements {
	VEC(int64_t) address;
};

static const struct type *random_tensor(struct fixture *f)
{
	int64_t shape[RANK_MOST];
	int rank = (int)number(f, 1, RANK_MOST);
	for (int d = 0; d < rank; d++)
		shape[d] = number(f, 1, 9);
	return type_shaped(f->module, TYPE_TENSOR, rank, shape, type_float(f->module, 32));
}

/* Any tiles in any order: repeated, strided, over the edge. */
static const struct type *random_stream(struct fixture *f, const struct type *tensor)
{
	static const int64_t widths[] = { 1, 2, 4, 8 };
	bool linear = number(f, 0, 3) == 0;
	int results = linear ? 1 : tensor->rank;
	int dims = (int)number(f, 0, 4);
	int lane_dim = (int)number(f, 0, results - 1);
	int64_t lanes = widths[number(f, 0, 3)];
	int64_t trip[4];
	int64_t step[4];
	int64_t shape[RANK_MOST];
	int64_t *rows = affine_rows(f->arena, dims, results);
	for (int i = 0; i < dims; i++) {
		trip[i] = number(f, 1, 4);
		step[i] = number(f, 0, 1) ? 1 : number(f, 1, 4);
		if (number(f, 0, 4))
			rows[number(f, 0, results - 1) * (dims + 1) + i] = number(f, 1, 3);
	}
	for (int r = 0; r < results; r++) {
		shape[r] = r == lane_dim ? lanes : 1;
		rows[r * (dims + 1) + dims] = number(f, 0, 2);
	}
	const struct type *scalar = type_scalar(tensor);
	const struct type *tile =
	        lanes == 1 ? scalar : type_shaped(f->module, TYPE_VECTOR, results, shape, scalar);
	return type_itensor(f->module, tile,
	        &(struct itensor){
	                .dims = dims, .trip = trip, .step = step, .map = { dims, results, rows } });
}

/* The next point of a box, lexicographically; false after the last. */
static bool advance(int dims, const int64_t *trip, int64_t *at)
{
	for (int i = dims - 1; i >= 0; i--) {
		if (++at[i] < trip[i])
			return true;
		at[i] = 0;
	}
	return false;
}

/* Address of the element of `tensor` at data coordinates, or PADDING. */
static int64_t address_at(const struct type *tensor, int results, const int64_t *coordinate)
{
	int64_t address = 0;
	if (results != tensor->rank)
		return coordinate[0] < type_elements(tensor) ? coordinate[0] : PADDING;
	for (int d = 0; d < results; d++) {
		if (coordinate[d] >= tensor->shape[d])
			return PADDING;
		address = address * tensor->shape[d] + coordinate[d];
	}
	return address;
}

/* The definition of an itensor: tiles at map(i * step), i in lexicographic order, a tile
 * row-major. */
static struct elements denoted(
        struct fixture *f, const struct type *tensor, const struct type *stream)
{
	struct elements elements = { 0 };
	const struct itensor *order = stream->itensor;
	int64_t at[8] = { 0 };
	int64_t scaled[8];
	int64_t coordinate[RANK_MOST + 1];
	int64_t lanes = stream_lanes(stream);
	do {
		for (int i = 0; i < order->dims; i++)
			scaled[i] = at[i] * order->step[i];
		for (int64_t lane = 0; lane < lanes; lane++) {
			int64_t rest = lane;
			for (int r = order->map.results - 1; r >= 0; r--) {
				int64_t extent = lanes == 1
				        ? 1
				        : stream->element->shape[stream->element->rank ==
				                                  order->map.results
				                          ? r
				                          : 0];
				coordinate[r] = affine_apply(order->map, r, scaled) + rest % extent;
				rest /= extent;
			}
			VEC_PUSH(f->arena, &elements.address,
			        address_at(tensor, order->map.results, coordinate));
		}
	} while (advance(order->dims, order->trip, at));
	return elements;
}

static struct elements walked(struct fixture *f, struct sequence sequence)
{
	struct elements elements = { 0 };
	int64_t at[9] = { 0 };
	do {
		for (int64_t lane = 0; lane < sequence.lanes; lane++) {
			int64_t address = sequence.offset + lane * sequence.lane_stride;
			for (int i = 0; i < sequence.dims; i++)
				address += sequence.stride[i] * at[i];
			for (int c = 0; c < sequence.conditions; c++) {
				const int64_t *row = sequence.condition + c * (sequence.dims + 2);
				int64_t sum = row[sequence.dims] * lane;
				for (int i = 0; i < sequence.dims; i++)
					sum += row[i] * at[i];
				address = sum < row[sequence.dims + 1] ? address : PADDING;
			}
			VEC_PUSH(f->arena, &elements.address, address);
		}
	} while (advance(sequence.dims, sequence.trip, at));
	return elements;
}

static bool equal(struct elements left, struct elements right)
{
	return left.address.count == right.address.count &&
	        !memcmp(left.address.data, right.address.data,
	                left.address.count * sizeof *left.address.data);
}

static void test_sequence_of_type(void **state)
{
	(void)state;
	int padded = 0;
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct fixture *f = begin(seed);
		const struct type *tensor = random_tensor(f);
		const struct type *stream = random_stream(f, tensor);
		struct sequence sequence = sequence_of_type(f->arena, tensor, stream);
		struct elements truth = denoted(f, tensor, stream);
		assert_int_equal(sequence_words(sequence), itensor_tiles(stream->itensor));
		if (!equal(truth, walked(f, sequence)))
			fail_msg("seed %d: %s of %s", (int)seed, stream->text, tensor->text);
		if (!sequence.conditions) {
			assert_true(equal(truth, walked(f, sequence_flat(f->arena, sequence))));
			assert_true(equal(truth, walked(f, sequence_merged(f->arena, sequence))));
			assert_int_equal(sequence_merged(f->arena, sequence).lanes, sequence.lanes);
		}
		padded += sequence.conditions > 0;
		end(f);
	}
	assert_in_range(padded, 500, 2500);
}

static const struct type *canonical(struct fixture *f, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	int results = order->map.results;
	int width = order->dims + 1;
	int64_t trip[8];
	int64_t step[8];
	int64_t *rows = affine_rows(f->arena, order->dims, results);
	for (int r = 0; r < results; r++)
		for (int i = 0; i < width; i++)
			rows[r * width + i] = affine_at(order->map, r, i);
	for (int i = 0; i < order->dims; i++) {
		trip[i] = order->trip[i];
		step[i] = order->step[i];
	}
	return type_canonical(f->module, stream->element,
	        &(struct itensor){ .dims = order->dims,
	                .trip = trip,
	                .step = step,
	                .map = { order->dims, results, rows } });
}

/* Equal normal forms if and only if equal sequences, where nothing is padding. */
static void test_same(void **state)
{
	(void)state;
	int same = 0;
	for (uint64_t seed = 1; seed <= 5000; seed++) {
		struct fixture *f = begin(seed);
		const struct type *tensor = type_shaped(f->module, TYPE_TENSOR, 2,
		        (int64_t[]){ number(f, 1, 3), 4 }, type_float(f->module, 32));
		struct sequence sequence[2];
		const struct type *stream = random_stream(f, tensor);
		const struct type *other = random_stream(f, tensor);
		if (number(f, 0, 3) == 0)
			other = stream_lanes(stream) > 1 ? type_regroup(f->module, stream, 1)
			                                 : canonical(f, stream);
		sequence[0] = sequence_of_type(f->arena, tensor, stream);
		sequence[1] = sequence_of_type(f->arena, tensor, other);
		bool judged = sequence_same(
		        sequence_flat(f->arena, sequence[0]), sequence_flat(f->arena, sequence[1]));
		bool truth = equal(walked(f, sequence[0]), walked(f, sequence[1])),
		     padding = sequence[0].conditions || sequence[1].conditions;
		if (judged != (truth && !padding))
			fail_msg("seed %d: judged %d, true %d", (int)seed, judged, truth);
		same += judged;
		end(f);
	}
	assert_in_range(same, 100, 2500);
}

static void test_canonical(void **state)
{
	(void)state;
	int merged = 0;
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct fixture *f = begin(seed);
		const struct type *tensor = random_tensor(f);
		const struct type *stream = random_stream(f, tensor);
		const struct type *form = canonical(f, stream);
		if (!equal(denoted(f, tensor, stream), denoted(f, tensor, form)))
			fail_msg("seed %d: %s became %s", (int)seed, stream->text, form->text);
		assert_ptr_equal(canonical(f, form), form);
		assert_true(form->itensor->dims <= stream->itensor->dims);
		for (int i = 0; i < form->itensor->dims; i++)
			assert_true(form->itensor->trip[i] > 1);
		merged += form->itensor->dims < stream->itensor->dims;
		end(f);
	}
	assert_in_range(merged, 500, 2900);
}

/* Words of another width carry the same elements in the same order. */
static void test_regroup(void **state)
{
	(void)state;
	int wider = 0;
	int narrower = 0;
	for (uint64_t seed = 1; seed <= 6000; seed++) {
		struct fixture *f = begin(seed);
		const struct type *tensor = random_tensor(f);
		const struct type *stream = canonical(f, random_stream(f, tensor));
		int64_t lanes = (int64_t)1 << number(f, 0, 4);
		const struct type *other = lanes == stream_lanes(stream)
		        ? NULL
		        : type_regroup(f->module, stream, lanes);
		if (other) {
			assert_int_equal(stream_lanes(other), lanes);
			if (!equal(denoted(f, tensor, stream), denoted(f, tensor, other)))
				fail_msg("seed %d: %s became %s", (int)seed, stream->text,
				        other->text);
			*(lanes > stream_lanes(stream) ? &wider : &narrower) += 1;
		}
		/* words always fall apart */
		assert_true(other || lanes >= stream_lanes(stream));
		end(f);
	}
	assert_true(wider > 50 && narrower > 500);
}

/* --- ports of scheduled kernels --- */

struct port_walk {
	struct fixture *f;
	const struct op *op;
	const struct kernel *kernel;
	const struct schedule *schedule;
	const struct access *access;
	bool parallel_only;
	int64_t counter[16]; /* of the parts */
};

static bool is_lane_part(const struct schedule *schedule, int part)
{
	return schedule->lanes > 1 && part == schedule->parts - 1;
}

static int64_t loop_counter(const struct port_walk *w, int loop)
{
	int64_t counter = 0;
	for (int i = 0; i < w->schedule->parts; i++)
		if (w->schedule->part[i].source == loop)
			counter += w->schedule->part[i].step * w->counter[i];
	return counter;
}

static const struct guard_range *guard_of(const struct port_walk *w, int loop)
{
	for (int g = 0; g < w->access->guards; g++)
		if (w->access->guard[g].loop == loop)
			return &w->access->guard[g];
	return NULL;
}

/* The rule of docs/ir.md: inside the guard, and every loop inside the innermost used one, the
 * lane loop aside, at its first value. */
static bool moves_here(const struct port_walk *w)
{
	int innermost = -1;
	for (int i = 0; i < w->schedule->parts; i++) {
		const struct schedule_part *part = &w->schedule->part[i];
		const struct guard_range *guard = guard_of(w, part->source);
		int64_t trip = guard ? guard->high - guard->low : part->trip;
		if (!is_lane_part(w->schedule, i) && w->access->stride[part->source] && trip > 1 &&
		        !(w->parallel_only && w->kernel->loop[part->source].reduction))
			innermost = i;
	}
	for (int i = 0; i < w->schedule->parts; i++) {
		const struct schedule_part *part = &w->schedule->part[i];
		const struct guard_range *guard = guard_of(w, part->source);
		if (guard && (w->counter[i] < guard->low || w->counter[i] >= guard->high))
			return false;
		bool passed_by = i > innermost ||
		        (w->parallel_only && w->kernel->loop[part->source].reduction);
		if (passed_by && w->counter[i] != (guard ? guard->low : 0))
			return false;
	}
	return true;
}

/* Elements that the port takes or makes when the parts run in order, a word at a time. */
static struct elements port_elements(struct port_walk *w, int64_t lanes)
{
	struct elements elements = { 0 };
	int64_t trip[16];
	int64_t last = w->schedule->parts - 1;
	for (int i = 0; i < w->schedule->parts; i++)
		trip[i] = is_lane_part(w->schedule, i) ? 1 : w->schedule->part[i].trip;
	do {
		if (!moves_here(w))
			continue;
		for (int64_t lane = 0; lane < lanes; lane++) {
			if (lanes > 1)
				w->counter[last] = lane;
			int64_t address = w->access->offset;
			bool padding = false;
			for (int l = 0; l < w->kernel->loops; l++) {
				address += w->access->stride[l] * loop_counter(w, l);
				padding = padding ||
				        (w->access->stride[l] &&
				                loop_counter(w, l) >= w->kernel->loop[l].extent);
			}
			VEC_PUSH(w->f->arena, &elements.address, padding ? PADDING : address);
		}
		if (lanes > 1)
			w->counter[last] = 0;
	} while (advance(w->schedule->parts, trip, w->counter));
	return elements;
}

static int check_ports(
        struct fixture *f, struct op *op, const struct schedule *schedule, uint64_t seed)
{
	int checked = 0;
	for (int j = -1; j < op->operands; j++) {
		const struct access *access = j < 0 ? &op->kernel->result : &op->kernel->operand[j];
		const struct type *tensor = j < 0 ? op->result[0]->type : op->operand[j]->type;
		const struct type *type =
		        schedule_port_type(f->module, op->kernel, schedule, j, tensor, NULL);
		assert_non_null(type);
		if (access->index_operand >= 0)
			continue;
		struct port_walk w = { .f = f,
			.op = op,
			.kernel = op->kernel,
			.schedule = schedule,
			.access = access };
		w.parallel_only = j < 0 || kernel_is_post_operand(op->kernel, j);
		if (!equal(port_elements(&w, stream_lanes(type)), denoted(f, tensor, type)))
			fail_msg("seed %d: kernel %s, port %d: %s", (int)seed, op->kernel->name, j,
			        type->text);
		checked++;
	}
	return checked;
}

/* Do the parts visit every point, and only padded lanes more? */
static void check_cover(const struct kernel *kernel, const struct schedule *schedule)
{
	for (int l = 0; l < kernel->loops; l++) {
		int64_t last = 0;
		bool lane = false;
		for (int i = 0; i < schedule->parts; i++)
			if (schedule->part[i].source == l) {
				last += (schedule->part[i].trip - 1) * schedule->part[i].step;
				lane = lane || is_lane_part(schedule, i);
			}
		assert_true(lane && schedule->padded ? last >= kernel->loop[l].extent - 1
		                                     : last == kernel->loop[l].extent - 1);
	}
}

static struct fixture *model_at(uint64_t seed, int steps, const char *last)
{
	struct fixture *f = begin(seed);
	struct text source = text_new(f->arena);
	random_model(seed, steps, &source);
	f->module = import_mlir(f->arena, &f->guard, &f->diag, "model", source.data, source.size);
	assert_non_null(f->module);
	struct pass_context context = { .platform = platform_load(f->arena, &f->diag, "u55c") };
	for (int p = 0; p <= pass_find(last); p++)
		if (!passes[p].run(&context, f->module)) {
			end(f);
			return NULL;
		}
	return f;
}

static int64_t points(const struct op *op)
{
	int64_t product = 1;
	for (int l = 0; l < op->kernel->loops; l++)
		product *= op->kernel->loop[l].extent;
	return product;
}

static struct schedule random_plan(struct fixture *f, const struct op *op, bool free)
{
	enum operand_location *operand_location =
	        ARENA_ARRAY(f->arena, enum operand_location, op->operands + 1);
	for (int j = 0; j < op->operands; j++)
		operand_location[j] =
		        free ? LOCATION_PACKED : (enum operand_location)number(f, 0, 2);
	return schedule_kernel(f->module, op, operand_location, free || number(f, 0, 1),
	        (int64_t)1 << number(f, 0, 6));
}

static void test_ports(void **state)
{
	(void)state;
	int checked = 0;
	int wide = 0;
	int padded = 0;
	for (uint64_t seed = 1; seed <= 80; seed++) {
		struct fixture *f = model_at(seed, 6, "split_epilogues");
		if (!f)
			continue;
		for (struct op *op = module_main(f->module)->region[0]->first; op; op = op->next) {
			if (op->code != OP_KERNEL || points(op) > 10000)
				continue;
			int term;
			op->kernel->combine = kernel_has_reduction(op->kernel)
			        ? kernel_combine(op->kernel, &term)
			        : OP_NONE;
			for (int variant = 0; variant < 3; variant++) {
				struct schedule schedule = random_plan(f, op, variant == 0);
				check_cover(op->kernel, &schedule);
				checked += check_ports(f, op, &schedule, seed);
				wide += schedule.lanes > 1;
				padded += schedule.padded;
			}
		}
		end(f);
	}
	print_message("%d ports, %d wide plans, %d padded\n", checked, wide, padded);
	assert_true(checked > 500 && wide > 100 && padded > 5);
}

/* y[t][r] = Σ x[t][c] · w[r][c], as the head of a language model. */
static struct op *product(struct fixture *f, int64_t tokens, int64_t rows)
{
	enum { COLUMNS = 2 };
	const struct type *real = type_float(f->module, 32);
	const int64_t shape[][2] = { { tokens, COLUMNS }, { rows, COLUMNS }, { tokens, rows } };
	const int64_t stride[][3] = { { COLUMNS, 0, 1 }, { 0, COLUMNS, 1 }, { rows, 1, 0 } };
	struct block *block =
	        block_new(f->module, op_new(f->module, OP_FUNC, NOWHERE, 0, NULL, 0, NULL), 0);
	struct value *operand[2];
	for (int j = 0; j < 2; j++)
		operand[j] = block_add_argument(
		        f->module, block, type_shaped(f->module, TYPE_TENSOR, 2, shape[j], real));
	struct op *op = kernel_new(f->module, NOWHERE, "head", 3, 2, operand,
	        type_shaped(f->module, TYPE_TENSOR, 2, shape[2], real));
	struct kernel *kernel = op->kernel;
	kernel->loop[0].extent = tokens;
	kernel->loop[1].extent = rows;
	kernel->loop[2] = (struct loop){ .extent = COLUMNS, .reduction = true };
	for (int j = 0; j < 3; j++)
		memcpy(j < 2 ? kernel->operand[j].stride : kernel->result.stride, stride[j],
		        sizeof stride[j]);
	int x = body_add(f->module, &kernel->update,
	        (struct node){ .kind = NODE_OPERAND, .type = real, .integer = 0 });
	int term;
	int w = body_add(f->module, &kernel->update,
	        (struct node){ .kind = NODE_OPERAND, .type = real, .integer = 1 });
	int before = body_add(f->module, &kernel->update,
	        (struct node){ .kind = NODE_ACCUMULATOR, .type = real });
	int times = body_add(f->module, &kernel->update,
	        (struct node){
	                .kind = NODE_OP, .code = OP_MULF, .type = real, .argument = { x, w } });
	kernel->update.result = body_add(f->module, &kernel->update,
	        (struct node){ .kind = NODE_OP,
	                .code = OP_ADDF,
	                .type = real,
	                .argument = { before, times } });
	kernel->combine = kernel_combine(kernel, &term);
	return op;
}

/* A vocabulary of a size without small divisors is padded, for any number of tokens: otherwise the
 * largest product would have one lane. */
static void test_padded_lanes(void **state)
{
	(void)state;
	static const enum operand_location operand_location[] = { LOCATION_ON_CHIP,
		LOCATION_PACKED };
	for (int64_t tokens = 1; tokens <= 33; tokens++)
		for (int64_t lanes = 16; lanes <= 64; lanes *= 2) {
			struct fixture *f = begin(1);
			struct op *op =
			        product(f, tokens, 16 * lanes + 1 + 2 * (7 * tokens % lanes));
			struct schedule schedule =
			        schedule_kernel(f->module, op, operand_location, true, lanes);
			assert_true(schedule.padded);
			assert_int_equal(schedule.lanes, lanes);
			check_cover(op->kernel, &schedule);
			check_ports(f, op, &schedule, (uint64_t)tokens);
			assert_int_equal(schedule_interval(op->kernel, &schedule, 7), 1);
			end(f);
		}
}

/* A number of words without a small divisor is padded too: otherwise all sums would have
 * accumulators, not just as many as the adder's latency needs. */
static void test_padded_sums(void **state)
{
	(void)state;
	static const enum operand_location operand_location[] = { LOCATION_ON_CHIP,
		LOCATION_PACKED };
	static const int64_t words[] = { 131, 1187, 2 * 509, 250 };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (int stored = 0; stored < 2; stored++) {
			struct fixture *f = begin(1);
			struct op *op = product(f, 1, 128 * words[i]);
			struct schedule schedule =
			        schedule_kernel(f->module, op, operand_location, stored, 128);
			int64_t sums = schedule.part[schedule.parts - 2].trip;
			check_cover(op->kernel, &schedule);
			check_ports(f, op, &schedule, (uint64_t)i);
			assert_int_equal(schedule.padded, stored && words[i] != 250);
			assert_int_equal(sums,
			        words[i] == 250               ? 10
			                : stored              ? 8
			                : words[i] == 2 * 509 ? 509
			                                      : words[i]);
			end(f);
		}
}

/* A module whose widths are found by intensity. */
static struct pass_context begin_text(struct fixture *f, const char *text, size_t size)
{
	f->module = import_mlir(f->arena, &f->guard, &f->diag, "text", text, size);
	assert_non_null(f->module);
	return (struct pass_context){ .platform = platform_load(f->arena, &f->diag, "u55c"),
		.choices.value = {
		        [CHOICE_SEARCH] = 1 + choice_word_named(CHOICE_SEARCH, "intensity") } };
}

/* --- converters --- */

/* Sums of each head: those of the first half reversed, and added to the second's and to the sum of
 * all heads. */
static const char split_in_halves[] =
        "#in = affine_map<(h, i, j, k) -> (h, i, j, k)>\n#sum = affine_map<(h, i, j, k) -> (h, i, "
        "j)>\n#all = affine_map<(h, i, j) -> (h, i, j)>\n#turned = affine_map<(h, i, j) -> (h, j, "
        "i)>\n#ij = affine_map<(h, i, j) -> (i, j)>\n"
        "func.func @main(%x: tensor<8x8x8x4xf32>) -> tensor<4x8x8xf32> {\n  %zero = arith.constant "
        "0.0 : f32\n  %e = tensor.empty() : tensor<8x8x8xf32>\n  %f = tensor.empty() : "
        "tensor<4x8x8xf32>\n"
        "  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8x8xf32>) -> tensor<8x8x8xf32>\n"
        "  %h = linalg.generic {indexing_maps = [#in, #sum], iterator_types = [\"parallel\", "
        "\"parallel\", \"parallel\", \"reduction\"]} ins(%x : tensor<8x8x8x4xf32>) outs(%z : "
        "tensor<8x8x8xf32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %r = arith.addf %o, %a : f32\n    linalg.yield %r : f32\n  "
        "} -> tensor<8x8x8xf32>\n"
        "  %n = tensor.empty() : tensor<8x8xf32>\n  %d = linalg.fill ins(%zero : f32) outs(%n : "
        "tensor<8x8xf32>) -> tensor<8x8xf32>\n"
        "  %t = linalg.generic {indexing_maps = [#all, #ij], iterator_types = [\"reduction\", "
        "\"parallel\", \"parallel\"]} ins(%h : tensor<8x8x8xf32>) outs(%d : tensor<8x8xf32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %r = arith.addf %o, %a : f32\n    linalg.yield %r : f32\n  "
        "} -> tensor<8x8xf32>\n"
        "  %l = tensor.extract_slice %h[0, 0, 0] [4, 8, 8] [1, 1, 1] : tensor<8x8x8xf32> to "
        "tensor<4x8x8xf32>\n"
        "  %u = tensor.extract_slice %h[4, 0, 0] [4, 8, 8] [1, 1, 1] : tensor<8x8x8xf32> to "
        "tensor<4x8x8xf32>\n"
        "  %y = linalg.generic {indexing_maps = [#turned, #all, #ij, #all], iterator_types = "
        "[\"parallel\", \"parallel\", \"parallel\"]} ins(%l, %u, %t : tensor<4x8x8xf32>, "
        "tensor<4x8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<4x8x8xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):\n    %r = arith.addf %a, %b : f32\n    %q = "
        "arith.addf %r, %c : f32\n    linalg.yield %q : f32\n  } -> tensor<4x8x8xf32>\n"
        "  return %y : tensor<4x8x8xf32>\n}\n";

/* A converter holds no heads that its reader does not want. */
static void test_converter_holds_what_is_wanted(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context = begin_text(f, split_in_halves, sizeof split_in_halves - 1);
	int p = 0;
	int converters = 0;
	for (; f->module->level != LEVEL_STREAM; p++)
		assert_true(passes[p].run(&context, f->module));
	for (struct op *op = module_main(f->module)->region[0]->first; op; op = op->next)
		if (op->code == OP_CONVERT) {
			assert_int_equal(attr_get(op, KEY_BUFFER_ELEMENTS)->integer, 8 * 8);
			converters++;
		}
	assert_int_equal(converters, 2);
	const struct type *type = attr_item(
	        attr_get(module_main(f->module), KEY_STREAM_INPUTS)->items[0].value, KEY_TYPE)
	                                  ->type;
	struct tensor input = { type, arena_alloc(f->arena, tensor_bytes(type)) };
	struct tensor before;
	struct tensor after;
	for (int64_t e = 0; e < type_elements(type); e++)
		((float *)input.data)[e] = (float)(e * 7919 % 1001);
	assert_true(eval_module(f->module, f->arena, 1, &input, &before));
	for (; p <= pass_find("size_fifos"); p++)
		assert_true(passes[p].run(&context, f->module));
	assert_true(eval_module(f->module, f->arena, 1, &input, &after));
	assert_memory_equal(before.data, after.data, tensor_bytes(after.type));
	end(f);
}

/* --- depths --- */

/* A reduction and the value it is subtracted from: the FIFO on the short path must hold what the
 * long path reads first. */
static const char softmax[] =
        "#id = affine_map<(d0, d1) -> (d0, d1)>\n#row = affine_map<(d0, d1) -> (d0)>\n"
        "func.func @main(%x: tensor<2x512xf32>) -> tensor<2x512xf32> {\n"
        "  %low = arith.constant 0xFF800000 : f32\n  %e = tensor.empty() : tensor<2x512xf32>\n  %v "
        "= tensor.empty() : tensor<2xf32>\n"
        "  %f = linalg.fill ins(%low : f32) outs(%v : tensor<2xf32>) -> tensor<2xf32>\n"
        "  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = [\"parallel\", "
        "\"parallel\"]} ins(%x : tensor<2x512xf32>) outs(%e : tensor<2x512xf32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %r = math.exp %a : f32\n    linalg.yield %r : f32\n  } -> "
        "tensor<2x512xf32>\n"
        "  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%t : tensor<2x512xf32>) outs(%f : tensor<2xf32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %r = arith.maximumf %a, %o : f32\n    linalg.yield %r : "
        "f32\n  } -> tensor<2xf32>\n"
        "  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = [\"parallel\", "
        "\"parallel\"]} ins(%t, %m : tensor<2x512xf32>, tensor<2xf32>) outs(%e : "
        "tensor<2x512xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32, %o: f32):\n    %r = arith.subf %a, %b : f32\n    linalg.yield %r "
        ": f32\n  } -> tensor<2x512xf32>\n"
        "  return %y : tensor<2x512xf32>\n}\n";

static bool runs(struct fixture *f)
{
	int count = eval_inputs(f->module);
	struct tensor *input = ARENA_ARRAY(f->arena, struct tensor, count);
	struct tensor *result = ARENA_ARRAY(f->arena, struct tensor, eval_results(f->module));
	const struct attr *list = attr_get(module_main(f->module), KEY_STREAM_INPUTS);
	for (int i = 0; i < count; i++) {
		const struct type *type = attr_item(list->items[i].value, KEY_TYPE)->type;
		input[i] = (struct tensor){ type, arena_alloc(f->arena, tensor_bytes(type)) };
	}
	return eval_module(f->module, f->arena, count, input, result);
}

static void set_depth(struct fixture *f, struct op *fifo, int64_t depth)
{
	fifo->result[0]->type =
	        type_channel(f->module, TYPE_FIFO, fifo->result[0]->type->element, depth);
}

/* Every FIFO that stayed long, cut to 2: somewhere on the two ways the design must then stop. */
static void test_long_fifos_are_needed(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context = begin_text(f, softmax, sizeof softmax - 1);
	for (int p = 0; p <= pass_find("size_fifos"); p++)
		assert_true(passes[p].run(&context, f->module));
	assert_true(runs(f));
	int stops = 0;
	int goes_on = 0;
	for (struct op *op = module_main(f->module)->region[0]->first; op; op = op->next) {
		if (op->code != OP_FIFO)
			continue;
		int64_t depth = op->result[0]->type->depth;
		set_depth(f, op, 2);
		bool fine = runs(f);
		*(fine ? &goes_on : &stops) += 1;
		if (!fine)
			assert_non_null(strstr(f->diag.entry[0].message, "deadlock"));
		if (!fine)
			assert_true(depth > 32);
		f->diag.count = 0;
		set_depth(f, op, depth);
	}
	assert_true(stops >= 1);
	assert_true(goes_on >= 1);
	end(f);
}

struct channel {
	int writer, reader;
	int64_t whole, depth; /* before and after size_fifos */
	bool blocks, back;
};

#define STAGES 64 /* most nests of a process */

struct network {
	struct channel channel[1024];
	int channels;
	/* a process that does its nests one after the other has a place for each: call * STAGES
	 * + nest */
	int calls;
};

static bool contains(
        const struct block *block, enum op_code code, int operand, const struct value *argument)
{
	for (const struct op *op = block->first; op; op = op->next)
		if ((op->code == code && op->operand[operand] == argument) ||
		        (op->region[0] && contains(op->region[0], code, operand, argument)))
			return true;
	return false;
}

static bool uses(const struct op *loop, const struct value *argument)
{
	return contains(loop->region[0], OP_PUSH, 2, argument) ||
	        contains(loop->region[0], OP_POP, 1, argument);
}

/* The only nest of the process, or of its layer loop, that uses the channel; -1: there is no such
 * nest.  Ops before the layers belong to the first nest, those after them to the last. */
static int nest_of(const struct block *body, const struct value *argument)
{
	const struct op *layers = NULL;
	int loops = 0;
	int found = -1;
	int used = 0;
	bool behind = false;
	for (const struct op *op = body->first; op; op = op->next) {
		if (op->code != OP_FOR)
			continue;
		layers = attr_get(op, KEY_STREAM_LAYER) ? op : layers;
		if (uses(op, argument)) {
			found = loops;
			behind = layers && op != layers;
			used++;
		}
		loops++;
	}
	if (!layers || used != 1)
		return used == 1 && loops <= STAGES ? found : -1;
	if (uses(layers, argument))
		return nest_of(layers->region[0], argument);
	loops = 0;
	for (const struct op *op = layers->region[0]->first; op; op = op->next)
		loops += op->code == OP_FOR;
	return behind && loops ? loops - 1 : 0;
}

static bool in_stages(const struct block *body)
{
	for (int a = 0; a < body->arguments; a++)
		if (body->argument[a]->type->kind == TYPE_BLOCKS ||
		        (body->argument[a]->type->kind == TYPE_FIFO &&
		                nest_of(body, body->argument[a]) < 0))
			return false;
	return true;
}

/* Reads the network again from the finished module. */
static void read_network(struct fixture *f, struct network *n)
{
	for (struct op *op = module_main(f->module)->region[0]->first; op; op = op->next) {
		bool channel = op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL;
		if (channel) {
			op->result[0]->id = n->channels;
			n->channel[n->channels] =
			        (struct channel){ -1, -1, n->channel[n->channels].whole,
				        op->result[0]->type->depth, op->code == OP_BLOCK_CHANNEL,
				        attr_get(op, KEY_STREAM_LAYER_FEEDBACK) };
			n->channels++;
		}
		if (op->code != OP_CALL)
			continue;
		const struct block *body =
		        module_find(f->module, attr_text_or(op, KEY_CALLEE, ""))->region[0];
		for (int a = 0; a < op->operands; a++) {
			struct value *value = op->operand[a];
			if (!value->def)
				continue;
			struct channel *c = &n->channel[value->id];
			const struct value *inside = body->argument[a];
			int place =
			        n->calls * STAGES + (in_stages(body) ? nest_of(body, inside) : 0);
			if (contains(body, OP_PUSH, 2, inside))
				c->writer = place;
			if (contains(body, OP_POP, 1, inside))
				c->reader = place;
		}
		n->calls++;
	}
}

static bool reaches(const struct network *n, int from, int to, int except, bool *seen)
{
	if (from == to)
		return true;
	if (seen[from])
		return false;
	seen[from] = true;
	if (from % STAGES && reaches(n, from - 1, to, except, seen))
		return true;
	for (int c = 0; c < n->channels; c++) {
		const struct channel *channel = &n->channel[c];
		bool cut = channel->depth < channel->whole;
		if (c == except || channel->back || channel->blocks)
			continue;
		if ((channel->reader == from && reaches(n, channel->writer, to, except, seen)) ||
		        (cut && channel->writer == from &&
		                reaches(n, channel->reader, to, except, seen)))
			return true;
	}
	return false;
}

/* A writer of a FIFO that was cut may wait for its reader; then the reader must not wait for the
 * writer some other way. */
static void test_no_cycle_of_waits(void **state)
{
	(void)state;
	int cut = 0;
	int kept = 0;
	for (uint64_t seed = 2; seed <= 60; seed += 2) {
		struct fixture *f = model_at(seed, 5, "make_processes");
		if (!f)
			continue;
		struct network *n = ARENA_NEW(f->arena, struct network);
		struct op *first = module_main(f->module)->region[0]->first;
		for (struct op *op = first; op && n->channels < 1024; op = op->next)
			if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
				n->channel[n->channels++].whole = op->result[0]->type->depth;
		n->channels = 0;
		struct pass_context context = { .platform =
			                                platform_load(f->arena, &f->diag, "u55c"),
			.choices.value = { [CHOICE_FIFO] = 1 + FIFO_STRATEGY_SAFE } };
		assert_true(size_fifos(&context, f->module));
		read_network(f, n);
		for (int c = 0; c < n->channels; c++) {
			const struct channel *channel = &n->channel[c];
			if (channel->blocks)
				continue;
			assert_true(channel->writer >= 0 && channel->reader >= 0);
			kept += channel->depth == channel->whole && channel->depth > 32;
			if (channel->depth == channel->whole)
				continue;
			bool *seen = ARENA_ARRAY(f->arena, bool, (n->calls + 1) * STAGES);
			cut++;
			if (reaches(n, channel->reader, channel->writer, c, seen))
				fail_msg("seed %d: channel %d is short, but its reader waits for "
				         "its writer",
				        (int)seed, c);
		}
		end(f);
	}
	assert_true(cut > 20 && kept > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequence_of_type),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_canonical),
		cmocka_unit_test(test_regroup),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_padded_lanes),
		cmocka_unit_test(test_padded_sums),
		cmocka_unit_test(test_converter_holds_what_is_wanted),
		cmocka_unit_test(test_long_fifos_are_needed),
		cmocka_unit_test(test_no_cycle_of_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
