/* itensor types against enumeration: equality, listing, the buffer between two types; and the
 * command with types that are ill-formed. */
#include "random_model.h"
#include "driver/command_line.h"
#include "pipeline/session.h"
#include "import/import.h"
#include "itensor/box.h"
#include "itensor/itensor.h"
#include "itensor/line_buffer.h"
#include "converter/causal_buffer.h"
#include "itensor/element_sequence.h"
#include "stream_case.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define LOOPS_MOST 12
#define RANK_MOST 3

/* A type that is still being put together. */
struct draft {
	int rank, loops;
	int64_t tile[RANK_MOST], offset[RANK_MOST];
	int64_t trip[LOOPS_MOST], step[LOOPS_MOST], row[LOOPS_MOST][RANK_MOST];
	const struct run_time_trip *run_time[LOOPS_MOST];
};

static const struct type *finish(struct fixture *f, const struct draft *draft)
{
	int64_t *rows = affine_rows(f->arena, draft->loops, draft->rank);
	bool one = true;
	for (int r = 0; r < draft->rank; r++) {
		for (int l = 0; l < draft->loops; l++)
			rows[r * (draft->loops + 1) + l] = draft->row[l][r];
		rows[r * (draft->loops + 1) + draft->loops] = draft->offset[r];
		one = one && draft->tile[r] == 1;
	}
	const struct type *scalar = type_float(f->module, 32);
	const struct type *tile = one && number(f, 0, 1)
	        ? scalar
	        : type_shaped(f->module, TYPE_VECTOR, draft->rank, draft->tile, scalar);
	return type_itensor(f->module, tile,
	        &(struct itensor){ draft->loops, draft->trip, draft->step, draft->run_time,
	                { draft->loops, draft->rank, rows } });
}

/* Any loops: repeated, strided, overlapping, backwards, along two dims. */
static struct draft any_draft(struct fixture *f)
{
	struct draft draft = { .rank = (int)number(f, 1, RANK_MOST),
		.loops = (int)number(f, 0, 4) };
	for (int r = 0; r < draft.rank; r++) {
		draft.tile[r] = number(f, 1, 2);
		draft.offset[r] = number(f, 0, 2) ? 0 : number(f, 0, 2);
	}
	for (int l = 0; l < draft.loops; l++) {
		draft.trip[l] = number(f, 1, 4);
		draft.step[l] = number(f, 1, 3);
		int dim = (int)number(f, 0, draft.rank - 1);
		if (number(f, 0, 4))
			draft.row[l][dim] = number(f, 0, 5) ? number(f, 1, 2) : -1;
		if (!number(f, 0, 9))
			draft.row[l][(dim + 1) % draft.rank] = 1;
	}
	for (int r = 0; r < draft.rank; r++)
		for (int l = 0; l < draft.loops; l++)
			if (draft.row[l][r] < 0)
				draft.offset[r] += draft.step[l] * (draft.trip[l] - 1);
	return draft;
}

static void insert_loop(struct draft *draft, int at, int64_t trip, int64_t step)
{
	for (int l = draft->loops++; l > at; l--) {
		draft->trip[l] = draft->trip[l - 1];
		draft->step[l] = draft->step[l - 1];
		memcpy(draft->row[l], draft->row[l - 1], sizeof draft->row[l]);
		draft->run_time[l] = draft->run_time[l - 1];
	}
	draft->run_time[at] = NULL;
	draft->trip[at] = trip;
	draft->step[at] = step;
	memset(draft->row[at], 0, sizeof draft->row[at]);
}

/* Box tiles walked in a random order of loops: what kernels make. */
static struct draft box_draft(
        struct fixture *f, int rank, const int64_t *tile, const int64_t *tiles)
{
	struct draft draft = { .rank = rank };
	for (int r = 0; r < rank; r++) {
		int64_t left = tiles[r];
		int64_t outer = left % 2 == 0 && number(f, 0, 1) ? 2 : 1;
		draft.tile[r] = tile[r];
		int first = (int)number(f, 0, draft.loops);
		insert_loop(&draft, first, left / outer, tile[r]);
		draft.row[first][r] = 1;
		int second = (int)number(f, 0, first);
		insert_loop(&draft, second, outer, tile[r] * (left / outer));
		draft.row[second][r] = 1;
	}
	if (!number(f, 0, 2))
		insert_loop(&draft, (int)number(f, 0, draft.loops), number(f, 1, 3), 1);
	return draft;
}

/* The same sequence in disguise: unit loops put in, loops split, factors moved between step and
 * map. */
static struct draft disguise(struct fixture *f, struct draft draft)
{
	for (int times = (int)number(f, 1, 4); times > 0 && draft.loops < LOOPS_MOST - 1; times--) {
		int at = (int)number(f, 0, draft.loops);
		int kind = (int)number(f, 0, 2);
		if (kind == 0 || at == draft.loops) {
			insert_loop(&draft, at, 1, number(f, 1, 3));
			draft.row[at][number(f, 0, draft.rank - 1)] = number(f, 0, 3);
		} else if (kind == 1) {
			int64_t outer = draft.run_time[at] ? 1
			        : draft.trip[at] % 2 == 0  ? 2
			        : draft.trip[at] % 3 == 0  ? 3
			                                   : 1;
			int64_t inner = draft.trip[at] / outer;
			insert_loop(&draft, at, outer, draft.step[at] * inner);
			memcpy(draft.row[at], draft.row[at + 1], sizeof draft.row[at]);
			draft.trip[at + 1] = inner;
		} else {
			for (int r = 0; r < draft.rank; r++)
				draft.row[at][r] *= draft.step[at];
			draft.step[at] = 1;
		}
	}
	return draft;
}

/* The loops in reverse order. */
static struct draft backwards(struct draft draft)
{
	struct draft other = draft;
	for (int l = 0; l < draft.loops; l++) {
		int from = draft.loops - 1 - l;
		other.trip[l] = draft.trip[from];
		other.step[l] = draft.step[from];
		other.run_time[l] = draft.run_time[from];
		memcpy(other.row[l], draft.row[from], sizeof other.row[l]);
	}
	return other;
}

/* Some trip counts become known at run time only. */
static struct draft with_run_time(struct fixture *f, struct draft draft)
{
	static const struct run_time_trip trips[] = { { .symbol = "s", .tile = 1, .most = 4 },
		{ .symbol = "s", .plus = 1, .tile = 2, .most = 3 },
		{ .symbol = "t", .tile = 1, .most = 3 } };
	for (int l = 0; l < draft.loops; l++)
		if (!number(f, 0, 2)) {
			draft.run_time[l] = &trips[number(f, 0, 2)];
			draft.trip[l] = draft.run_time[l]->most;
		}
	return draft;
}

static struct draft change(struct fixture *f, struct draft draft)
{
	int at = draft.loops ? (int)number(f, 0, draft.loops - 1) : 0;
	int r = (int)number(f, 0, draft.rank - 1);
	switch (draft.loops ? number(f, 0, 4) : 4) {
	case 0:
		draft.trip[at]++;
		draft.run_time[at] = NULL;
		break;
	case 1: draft.step[at]++; break;
	case 2: draft.row[at][r]++; break;
	case 3: draft.tile[r]++; break;
	default: draft.offset[r]++; break;
	}
	return draft;
}

/* --- enumeration, from the definition --- */

struct tiles {
	int rank;
	const struct type *type;
	VEC(int64_t) offset;
};

static bool advance(int dims, const int64_t *trip, int64_t *at)
{
	for (int i = dims - 1; i >= 0; i--) {
		if (++at[i] < trip[i])
			return true;
		at[i] = 0;
	}
	return false;
}

#define AT_MOST (-1)

/* Symbols s and t have these values; AT_MOST: every trip count is the most it can be. */
static struct tiles enumerate_at(struct fixture *f, const struct type *type, int64_t s, int64_t t)
{
	const struct itensor *order = type->itensor;
	int64_t trip[LOOPS_MOST];
	for (int i = 0; i < order->dims; i++) {
		const struct run_time_trip *run_time = order->run_time ? order->run_time[i] : NULL;
		int64_t symbol = run_time && run_time->symbol[0] == 's' ? s : t;
		trip[i] = run_time && symbol != AT_MOST
		        ? (symbol + run_time->plus + run_time->tile - 1) / run_time->tile
		        : order->trip[i];
	}
	struct tiles tiles = { .rank = order->map.results, .type = type };
	int64_t at[LOOPS_MOST] = { 0 };
	int64_t scaled[LOOPS_MOST];
	for (int i = 0; i < order->dims; i++)
		if (!trip[i])
			return tiles;
	do {
		for (int i = 0; i < order->dims; i++)
			scaled[i] = at[i] * order->step[i];
		for (int r = 0; r < tiles.rank; r++)
			VEC_PUSH(f->arena, &tiles.offset, affine_apply(order->map, r, scaled));
	} while (advance(order->dims, trip, at));
	return tiles;
}

static struct tiles enumerate(struct fixture *f, const struct type *type)
{
	return enumerate_at(f, type, AT_MOST, AT_MOST);
}

static int64_t extent(const struct tiles *tiles, int r)
{
	return tiles->type->element->kind == TYPE_VECTOR ? tiles->type->element->shape[r] : 1;
}

static bool same_tiles(const struct tiles *a, const struct tiles *b)
{
	bool same = a->rank == b->rank && a->offset.count == b->offset.count;
	for (int r = 0; same && r < a->rank; r++)
		same = extent(a, r) == extent(b, r);
	return same &&
	        !memcmp(a->offset.data, b->offset.data, a->offset.count * sizeof *a->offset.data);
}

static bool judged_same(struct fixture *f, const struct type *left, const struct type *right)
{
	return walk_same(walk_normal(f->arena, itensor_walk(f->arena, left)),
	        walk_normal(f->arena, itensor_walk(f->arena, right)));
}

static int64_t pair_count(void)
{
	const char *wanted = getenv("STC_ITENSOR_PAIRS");
	const char *mode = getenv("STC_TEST_MODE");
	if (wanted)
		return strtoll(wanted, NULL, 10);
	return mode && !strcmp(mode, "long") ? 1000000 : 24000;
}

static void test_equality(void **state)
{
	(void)state;
	int64_t pairs = pair_count();
	int64_t equal = 0;
	int64_t refused = 0;
	for (int64_t seed = 1; seed <= pairs; seed++) {
		struct fixture *f = begin((uint64_t)seed);
		struct draft draft = any_draft(f);
		struct draft other = seed % 3 == 0 ? disguise(f, draft)
		        : seed % 3 == 1            ? change(f, draft)
		                                   : any_draft(f);
		const struct type *left = finish(f, &draft);
		const struct type *right = finish(f, &other);
		if (itensor_fault(f->arena, left) || itensor_fault(f->arena, right)) {
			refused++;
		} else {
			struct tiles a = enumerate(f, left);
			struct tiles b = enumerate(f, right);
			bool truth = same_tiles(&a, &b);
			if (seed % 3 == 0 && !truth)
				fail_msg("seed %d: the disguise of %s is another sequence: %s",
				        (int)seed, left->text, right->text);
			if (judged_same(f, left, right) != truth)
				fail_msg("seed %d: %s and %s are %s", (int)seed, left->text,
				        right->text, truth ? "the same" : "not the same");
			equal += truth;
		}
		end(f);
	}
	assert_true(equal > pairs / 4 && equal < pairs * 2 / 3 && refused < pairs / 20);
	print_message("%d pairs, %d equal, none judged wrong\n", (int)pairs, (int)equal);
}

/* Where two sequences part is where enumeration says. */
static void test_mismatch(void **state)
{
	(void)state;
	for (int64_t seed = 1; seed <= 2000; seed++) {
		struct fixture *f = begin((uint64_t)seed);
		struct draft draft = any_draft(f);
		struct draft other = change(f, draft);
		const struct type *left = finish(f, &draft);
		const struct type *right = finish(f, &other);
		struct tiles a = enumerate(f, left);
		struct tiles b = enumerate(f, right);
		size_t rank = (size_t)a.rank;
		size_t at = 0;
		size_t tiles = a.offset.count / rank;
		size_t others = b.offset.count / rank;
		bool shaped = true, same = same_tiles(&a, &b);
		for (int r = 0; r < a.rank; r++)
			shaped = shaped && extent(&a, r) == extent(&b, r);
		while (shaped && at < tiles && at < others &&
		        !memcmp(a.offset.data + at * rank, b.offset.data + at * rank,
		                rank * sizeof *a.offset.data))
			at++;
		struct sequence_mismatch sequence_mismatch =
		        walk_mismatch(f->arena, walk_normal(f->arena, itensor_walk(f->arena, left)),
		                walk_normal(f->arena, itensor_walk(f->arena, right)));
		assert_true(sequence_mismatch.found == !same);
		if (!same) {
			assert_int_equal(sequence_mismatch.tile, at);
			assert_true((sequence_mismatch.left == NULL) == (at >= tiles) &&
			        (sequence_mismatch.right == NULL) == (at >= others));
			assert_true(!sequence_mismatch.left ||
			        !memcmp(sequence_mismatch.left, a.offset.data + at * rank,
			                rank * sizeof *a.offset.data));
		}
		end(f);
	}
}

/* --- converters --- */

#define SIDE 96 /* coordinates are below this */

static int cell_of(int rank, const int64_t *coordinate)
{
	int64_t cell = 0;
	for (int r = 0; r < rank; r++)
		cell = cell * SIDE + coordinate[r];
	return (int)cell;
}

/* Marks the elements of tiles [first, last); the box of marked coordinates' count. */
static int64_t mark(
        const struct tiles *tiles, size_t first, size_t last, char *cells, int64_t *shape)
{
	char seen[RANK_MOST][SIDE] = { { 0 } };
	int64_t elements = 1;
	int64_t box = 1;
	for (int r = 0; r < tiles->rank; r++)
		elements *= extent(tiles, r);
	for (size_t t = first; t < last; t++)
		for (int64_t e = 0; e < elements; e++) {
			int64_t coordinate[RANK_MOST];
			int64_t rest = e;
			for (int r = tiles->rank - 1; r >= 0; r--) {
				coordinate[r] =
				        tiles->offset.data[t * (size_t)tiles->rank + (size_t)r] +
				        rest % extent(tiles, r);
				rest /= extent(tiles, r);
				seen[r][coordinate[r]] = 1;
			}
			cells[cell_of(tiles->rank, coordinate)] = 1;
		}
	for (int r = 0; r < tiles->rank; r++) {
		shape[r] = 0;
		for (int c = 0; c < SIDE; c++)
			shape[r] += seen[r][c];
		box *= shape[r];
	}
	return box;
}

/* Elements of the largest block where both sides are cut into `parts`, or 0 if one reads what
 * the other did not write. */
static int64_t block_of(struct fixture *f, const struct tiles *a, const struct tiles *b,
        size_t parts, int64_t *shape)
{
	size_t left = a->offset.count / (size_t)a->rank;
	size_t right = b->offset.count / (size_t)b->rank;
	size_t size = 1;
	int64_t largest = 0;
	for (int r = 0; r < a->rank; r++)
		size *= SIDE;
	char *write = arena_alloc(f->arena, size);
	char *read = arena_alloc(f->arena, size);
	if (left % parts || right % parts)
		return 0;
	for (size_t p = 0; p < parts; p++) {
		int64_t other[RANK_MOST];
		memset(write, 0, size);
		memset(read, 0, size);
		int64_t box = mark(a, p * (left / parts), (p + 1) * (left / parts), write, shape);
		mark(b, p * (right / parts), (p + 1) * (right / parts), read, other);
		if (memcmp(write, read, size))
			return 0;
		largest = box > largest ? box : largest;
	}
	return largest;
}

/* The smallest of all buffers that hold a part, twice where there are several; *at: the parts. */
static int64_t least_of(
        struct fixture *f, const struct tiles *a, const struct tiles *b, int64_t full, int64_t *at)
{
	int64_t least = full;
	int64_t shape[RANK_MOST];
	int64_t tiles = (int64_t)a->offset.count / a->rank;
	for (int64_t parts = 2; parts <= tiles; parts++) {
		int64_t block = block_of(f, a, b, (size_t)parts, shape);
		if (block && block * 2 <= least) {
			least = block * 2;
			*at = parts;
		}
	}
	return least;
}

/* The buffer holds what each shared step writes and reads; no cut into parts allows a smaller
 * one. */
static void check_reorder(
        struct fixture *f, const struct type *left, const struct type *right, int64_t *made)
{
	struct tiles a = enumerate(f, left);
	struct tiles b = enumerate(f, right);
	struct walk from = walk_normal(f->arena, itensor_walk(f->arena, left));
	struct walk to = walk_normal(f->arena, itensor_walk(f->arena, right));
	if (a.rank != b.rank || walk_same(from, to))
		return;
	struct reorder reorder = walk_reorder(f->arena, from, to);
	int64_t shape[RANK_MOST];
	int64_t full = block_of(f, &a, &b, 1, shape);
	if ((full == 0) != (reorder.why != NULL))
		fail_msg("%s and %s: %s", left->text, right->text,
		        reorder.why ? reorder.why : "the data differ");
	if (reorder.why)
		return;
	int64_t elements = 1;
	int64_t at = 0;
	int64_t least = least_of(f, &a, &b, full, &at);
	for (int r = 0; r < a.rank; r++)
		elements *= reorder.shape[r];
	assert_int_equal(reorder.halves, reorder.shared ? 2 : 1);
	assert_int_equal(reorder.bytes, elements * 4 * reorder.halves);
	if (elements * reorder.halves != least)
		fail_msg("%s and %s: %d elements, %d parts would need %d", left->text, right->text,
		        (int)(elements * reorder.halves), (int)at, (int)least);
	made[reorder.shared > 0]++;
}

/* --- the live minimum --- */

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;
	return (a > b) - (a < b);
}

/* The elements of tile t as cells. */
static int cells_of(const struct tiles *tiles, size_t t, int *cell)
{
	int count = 1;
	for (int r = 0; r < tiles->rank; r++)
		count *= (int)extent(tiles, r);
	for (int e = 0; e < count; e++) {
		int64_t coordinate[RANK_MOST];
		int64_t rest = e;
		for (int r = tiles->rank - 1; r >= 0; r--) {
			coordinate[r] = tiles->offset.data[t * (size_t)tiles->rank + (size_t)r] +
			        rest % extent(tiles, r);
			rest /= extent(tiles, r);
		}
		cell[e] = cell_of(tiles->rank, coordinate);
	}
	return count;
}

/* The most elements that wait at once where every tile is read as soon as its last element has
 * been written, and an element goes with its last reader. 0: an element is written twice. */
static int64_t live_minimum(struct fixture *f, const struct tiles *a, const struct tiles *b)
{
	size_t cells = 1;
	size_t writes = a->offset.count / (size_t)a->rank;
	size_t reads = b->offset.count / (size_t)b->rank;
	for (int r = 0; r < a->rank; r++)
		cells *= SIDE;
	int64_t *written = ARENA_ARRAY(f->arena, int64_t, cells);
	int64_t *last = ARENA_ARRAY(f->arena, int64_t, cells);
	int64_t most = 0;
	int64_t reached = 0;
	int cell[64];
	int count = 0;
	for (size_t t = 0; t < writes; t++)
		for (int e = (count = cells_of(a, t, cell)) - 1; e >= 0; e--) {
			if (written[cell[e]])
				return 0;
			written[cell[e]] = (int64_t)t + 1;
		}
	for (size_t t = 0; t < reads; t++)
		for (int e = (count = cells_of(b, t, cell)) - 1; e >= 0; e--)
			last[cell[e]] = (int64_t)t + 1;
	for (size_t t = 0; t < reads; t++) {
		int64_t live = 0;
		for (int e = (count = cells_of(b, t, cell)) - 1; e >= 0; e--)
			reached = written[cell[e]] > reached ? written[cell[e]] : reached;
		for (size_t c = 0; c < cells; c++)
			live += written[c] && written[c] <= reached && last[c] > (int64_t)t;
		most = live > most ? live : most;
	}
	return most;
}

static void test_live_minimum(void **state)
{
	(void)state;
	int64_t pairs = pair_count() / 24;
	int64_t count = 0;
	int64_t exact = 0;
	int64_t rings = 0;
	double *ratio = calloc((size_t)pairs + 1, sizeof *ratio);
	for (int64_t pair = 1; pair <= pairs; pair++) {
		struct fixture *f = begin((uint64_t)pair + 900000);
		int rank = (int)number(f, 1, 2);
		int64_t tile[2] = { number(f, 1, 2), number(f, 1, 2) };
		int64_t tiles[2] = { number(f, 8, 16), number(f, 8, 16) };
		struct draft left = box_draft(f, rank, tile, tiles);
		struct draft right = box_draft(f, rank, tile, tiles);
		const struct type *writer = finish(f, &left);
		const struct type *reader = finish(f, &right);
		struct walk from = walk_normal(f->arena, itensor_walk(f->arena, writer));
		struct walk to = walk_normal(f->arena, itensor_walk(f->arena, reader));
		struct tiles a = enumerate(f, writer);
		struct tiles b = enumerate(f, reader);
		int64_t least = live_minimum(f, &a, &b);
		if (least && !walk_same(from, to)) {
			struct reorder reorder = walk_reorder(f->arena, from, to);
			int64_t made = reorder.bytes / 4 / reorder.halves;
			const struct type *tensor = type_shaped(f->module, TYPE_TENSOR, rank,
			        (int64_t[]){ tile[0] * tiles[0], tile[1] * tiles[1] },
			        type_float(f->module, 32));
			struct box box = box_between(f->arena, tensor, writer, reader, BOX_LEAST);
			struct line_buffer line_buffer =
			        line_buffer_between(f->arena, writer, reader);
			if (line_buffer_is_better(&line_buffer, &box)) {
				made = line_buffer.elements;
				rings++;
			}
			if (made < least)
				fail_msg("%s and %s: %d elements, %d live at once", writer->text,
				        reader->text, (int)made, (int)least);
			exact += made == least;
			ratio[count++] = (double)made / (double)least;
		}
		end(f);
	}
	qsort(ratio, (size_t)count, sizeof *ratio, by_size);
	print_message("%d pairs, %d of them in rings, none below the live minimum, %d equal to it, "
	              "median %.3f of it, 90 %% up to %.2f (of two halves, one)\n",
	        (int)count, (int)rings, (int)exact, ratio[count / 2], ratio[count * 9 / 10]);
	assert_true(count > pairs / 4 && ratio[count / 2] <= 1.1);
	free(ratio);
}

static void test_reorder(void **state)
{
	(void)state;
	int64_t pairs = pair_count() / 16;
	int64_t made[2] = { 0 };
	for (int64_t pair = 1; pair <= pairs; pair++) {
		struct fixture *f = begin((uint64_t)pair);
		int rank = (int)number(f, 1, 2);
		int64_t tile[2] = { number(f, 1, 2), number(f, 1, 2) };
		int64_t tiles[2] = { number(f, 1, 6), number(f, 1, 6) };
		struct draft left = box_draft(f, rank, tile, tiles);
		struct draft right = box_draft(f, rank, tile, tiles);
		check_reorder(f, finish(f, &left), finish(f, &right), made);
		end(f);
	}
	assert_true(made[0] > pairs / 15 && made[1] > pairs / 15);
	print_message(
	        "%d pairs, %d buffers that share no loop, %d that do, none larger than needed\n",
	        (int)pairs, (int)made[0], (int)made[1]);
}

/* A buffer is possible if and only if both sides cover the same elements, whatever the loops.
 * It is as small as can be, but where elements that are sent several times happen to make parts
 * that no loop makes. */
static void test_coverage(void **state)
{
	(void)state;
	int64_t pairs = pair_count() / 8;
	int64_t covered = 0;
	int64_t chance = 0;
	for (int64_t pair = 1; pair <= pairs; pair++) {
		struct fixture *f = begin((uint64_t)pair);
		struct draft draft = any_draft(f);
		struct draft other = backwards(draft);
		draft = pair % 2 ? change(f, draft) : draft;
		const struct type *left = finish(f, &draft);
		const struct type *right = finish(f, &other);
		bool fine = draft.rank < 3 && !itensor_fault(f->arena, left) &&
		        !itensor_fault(f->arena, right) && !judged_same(f, left, right);
		if (fine) {
			struct tiles a = enumerate(f, left);
			struct tiles b = enumerate(f, right);
			struct reorder reorder = walk_reorder(f->arena,
			        walk_normal(f->arena, itensor_walk(f->arena, left)),
			        walk_normal(f->arena, itensor_walk(f->arena, right)));
			int64_t shape[RANK_MOST];
			int64_t full = block_of(f, &a, &b, 1, shape);
			int64_t elements = reorder.halves;
			if ((full == 0) != (reorder.why != NULL))
				fail_msg("%s and %s: %s", left->text, right->text,
				        reorder.why ? reorder.why : "the data differ");
			for (int r = 0; !reorder.why && r < a.rank; r++)
				elements *= reorder.shape[r];
			int64_t parts;
			int64_t least = full ? least_of(f, &a, &b, full, &parts) : 0;
			assert_true(elements <= full && (reorder.why || elements >= least));
			chance += !reorder.why && elements > least;
			covered += !reorder.why;
		}
		end(f);
	}
	assert_true(covered > pairs / 50 && chance * 500 <= covered);
	print_message("%d pairs, %d cover the same, %d of them could share parts by chance\n",
	        (int)pairs, (int)covered, (int)chance);
}

/* --- run-time trip counts: equal if and only if equal at every value of the symbols --- */

static bool same_everywhere(struct fixture *f, const struct type *left, const struct type *right)
{
	for (int64_t s = 1; s <= 4; s++)
		for (int64_t t = 1; t <= 3; t++) {
			struct tiles a = enumerate_at(f, left, s, t);
			struct tiles b = enumerate_at(f, right, s, t);
			if (!same_tiles(&a, &b))
				return false;
		}
	return true;
}

/* Where a buffer is offered, both sides move the same elements at every value. */
static bool check_run_time_reorder(
        struct fixture *f, const struct type *left, const struct type *right)
{
	struct walk from = walk_normal(f->arena, itensor_walk(f->arena, left));
	struct walk to = walk_normal(f->arena, itensor_walk(f->arena, right));
	int64_t shape[RANK_MOST];
	if (from.rank != to.rank || from.rank == 3 || walk_same(from, to) ||
	        walk_reorder(f->arena, from, to).why)
		return false;
	for (int64_t s = 0; s <= 4; s++)
		for (int64_t t = 0; t <= 3; t++) {
			struct tiles a = enumerate_at(f, left, s, t);
			struct tiles b = enumerate_at(f, right, s, t);
			if (a.offset.count + b.offset.count && !block_of(f, &a, &b, 1, shape))
				fail_msg("%s and %s: other data at s = %d, t = %d", left->text,
				        right->text, (int)s, (int)t);
		}
	return true;
}

/* A reader that repeats tiles a run-time number of times: there is a buffer if it reads them at
 * least once. */
static void test_run_time_replay(void **state)
{
	(void)state;
	static const struct run_time_trip trips[] = { { .symbol = "s", .tile = 1, .most = 4 },
		{ .symbol = "s", .plus = 1, .tile = 2, .most = 3 },
		{ .symbol = "t", .plus = 1, .tile = 1, .most = 3 } };
	int64_t pairs = pair_count() / 16;
	int64_t offered = 0;
	for (int64_t seed = 1; seed <= pairs; seed++) {
		struct fixture *f = begin((uint64_t)seed + 8000000);
		struct draft draft = any_draft(f);
		struct draft other = draft;
		const struct run_time_trip *trip = &trips[number(f, 0, 2)];
		int at = (int)number(f, 0, other.loops);
		insert_loop(&other, at, trip->most, 1);
		other.run_time[at] = trip;
		const struct type *left = finish(f, &draft);
		const struct type *right = finish(f, &other);
		if (!itensor_fault(f->arena, left) && !itensor_fault(f->arena, right)) {
			bool has = check_run_time_reorder(f, left, right);
			assert_false(has && !trip->plus);
			offered += has;
		}
		end(f);
	}
	assert_true(offered > pairs / 4);
	print_message("%d of %d pairs have a buffer\n", (int)offered, (int)pairs);
}

static void test_run_time(void **state)
{
	(void)state;
	int64_t pairs = pair_count() / 4;
	int64_t equal = 0;
	int64_t offered = 0;
	for (int64_t seed = 1; seed <= pairs; seed++) {
		struct fixture *f = begin((uint64_t)seed + 7000000);
		struct draft draft = with_run_time(f, any_draft(f));
		struct draft other = seed % 3 == 0 ? disguise(f, draft)
		        : seed % 3 == 1            ? change(f, draft)
		                                   : backwards(draft);
		const struct type *left = finish(f, &draft);
		const struct type *right = finish(f, &other);
		if (!itensor_fault(f->arena, left) && !itensor_fault(f->arena, right)) {
			bool truth = same_everywhere(f, left, right);
			if (seed % 3 == 0 && !truth)
				fail_msg("seed %d: the disguise of %s is another sequence: %s",
				        (int)seed, left->text, right->text);
			if (judged_same(f, left, right) != truth)
				fail_msg("seed %d: %s and %s are %s", (int)seed, left->text,
				        right->text, truth ? "the same" : "not the same");
			equal += truth;
			offered += check_run_time_reorder(f, left, right);
		}
		end(f);
	}
	assert_true(equal > pairs / 5 && equal < pairs * 2 / 3 && offered > pairs / 50);
	print_message(
	        "%d pairs with run-time trip counts, %d equal, none judged wrong; %d buffers\n",
	        (int)pairs, (int)equal, (int)offered);
}

/* --- the command --- */

#define WIDE "!stream.itensor<vector<4x2xf32>, [4, 2], [2, 4], affine_map<(d0, d1) -> (d1, d0)>>"
#define AGAIN "<vector<4x2xf32>,[4,2,2],[2,1,4],affine_map<(d0,d1,d2)->(d2,d0)>>"
#define ROWS "<vector<2x2xf32>,[4,4],[2,2],affine_map<(d0,d1)->(d0,d1)>>"

static const char *ran(const char *left, const char *right, bool json)
{
	static char answer[4096];
	struct session *session = session_new();
	session->options.file = left;
	session->options.second = right;
	session->options.json = json;
	enum stc_status status = session_guarded(session, command_itensor);
	struct text messages = text_new(session->arena);
	session_messages(session, &messages);
	assert_true((status == STC_OK) == (session->diag.count == 0));
	snprintf(answer, sizeof answer, "%s", status == STC_OK ? session->out.data : messages.data);
	session_free(session);
	return answer;
}

/* A run-time number of blocks of keys; of each, words of four keys of four heads, which the reader
 * takes `again` times. */
static const struct type *key_words(struct fixture *f, bool bound, int64_t again)
{
	static const struct run_time_trip blocks = { .symbol = "n", .tile = 1, .most = 8 };
	const struct run_time_trip *run_time[4] = { bound ? &blocks : NULL, NULL, NULL, NULL };
	int64_t shape[3] = { 1, 1, 4 };
	int64_t trip[4] = { 8, 32, again, 4 };
	int64_t step[4] = { 1, 4, 1, 1 };
	int64_t rows[15] = { 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0 };
	return type_canonical(f->module,
	        type_shaped(f->module, TYPE_VECTOR, 3, shape, type_float(f->module, 32)),
	        &(struct itensor){ .dims = 4,
	                .trip = arena_copy(f->arena, trip, sizeof trip),
	                .step = arena_copy(f->arena, step, sizeof step),
	                .run_time = arena_copy(f->arena, run_time, sizeof run_time),
	                .map = { 4, 3, arena_copy(f->arena, rows, sizeof rows) } });
}

/* If an iteration has few words, a box within a run-time number of blocks holds several iterations;
 * with constant trip counts it holds one. */
static void test_boxes_in_blocks(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	const struct type *tensor = type_shaped(
	        f->module, TYPE_TENSOR, 3, (int64_t[]){ 8, 4, 128 }, type_float(f->module, 32));
	for (int bound = 0; bound < 2; bound++) {
		struct box box = box_between(f->arena, tensor, key_words(f, bound, 1),
		        key_words(f, bound, 2), BOX_LEAST);
		assert_null(box.why);
		assert_int_equal(box.elements, (bound ? 8 : 1) * 16);
		assert_int_equal(box.halves, 2);
	}
	end(f);
}

static void test_command(void **state)
{
	(void)state;
	assert_string_equal(
	        ran(WIDE, NULL, false), "[0,0]\n[4,0]\n[0,2]\n[4,2]\n[0,4]\n[4,4]\n[0,6]\n[4,6]\n");
	assert_string_equal(ran("<f32,[2,2],[1,3],affine_map<(d0,d1)->(d1)>>", NULL, true),
	        "{\"tiles\":4,\"offsets\":[[0],[3],[0],[3]]}\n");
	assert_string_equal(ran(WIDE, WIDE, false), "{\"equal\":true}\n");
	assert_string_equal(ran(WIDE, AGAIN, false),
	        "{\"equal\":false,\"buffer_shape\":[8,2],\"halves\":2,\"shared_loops\":1,\"bytes\":"
	        "128}\n");
	assert_string_equal(ran(ROWS, WIDE, false),
	        "{\"equal\":false,\"buffer_shape\":[8,8],\"halves\":1,\"shared_loops\":0,\"bytes\":"
	        "256}\n");
	assert_string_equal(ran("<f32,[8],[1],affine_map<(d0)->(d0)>>",
	                            "<i32,[8],[1],affine_map<(d0)->(d0)>>", false),
	        "{\"equal\":false,\"buffer_shape\":null,\"why\":\"element type f32 against "
	        "i32\"}\n");
	assert_string_equal(ran("<f32,[8],[1],affine_map<(d0)->(d0)>>",
	                            "<f32,[7],[1],affine_map<(d0)->(d0)>>", false),
	        "{\"equal\":false,\"buffer_shape\":null,\"why\":\"different data: dim 0 covers [0, "
	        "8) against [0, 7)\"}\n");
	assert_string_equal(ran("<f32,[2],[1],affine_map<(d0)->(d0,d0)>>",
	                            "<f32,[2,2],[1,1],affine_map<(d0,d1)->(d0,d1)>>", false),
	        "{\"equal\":false,\"buffer_shape\":null,\"why\":\"different data: other elements "
	        "are left out\"}\n");
}

/* Words of a tile, ranges and run-time trip counts, as they are spelt. */
static void test_spelling(void **state)
{
	(void)state;
	static const struct {
		const char *left, *right, *answer;
	} pairs[] = {
		{ "<[vector<4x2xf32>,2],[3],[2],affine_map<(d0)->(0,d0)>>",
		        "<vector<1x2xf32>,[3,4],[2,1],affine_map<(d0,d1)->(d1,d0)>>",
		        "{\"equal\":true}\n" },
		{ "<[vector<2x4xf32>,1],[2],[4],affine_map<(d0)->(0,d0)>>",
		        "<f32,[2,2,4],[4,1,1],affine_map<(d0,d1,d2)->(d1,d0+d2)>>",
		        "{\"equal\":true}\n" },
		{ "<[vector<4x2xf32>,8],[3],[2],affine_map<(d0)->(0,d0)>>",
		        "<vector<4x2xf32>,[3],[2],affine_map<(d0)->(0,d0)>>",
		        "{\"equal\":true}\n" },
		{ "<f32,[4,[3,8]],[1,2],affine_map<(d0,d1)->(d0,d1)>>",
		        "<f32,[4,5],[1,2],affine_map<(d0,d1)->(d0,d1+6)>>", "{\"equal\":true}\n" },
		{ "<f32,[{symbol=\"s\",most=8},4],[4,1],affine_map<(d0,d1)->(d0+d1)>>",
		        "<f32,[{symbol=\"s\",plus=0,tile=1,most=8},2,2],[4,2,1],affine_map<(d0,d1,"
		        "d2)->(d0+d1+d2)>>",
		        "{\"equal\":true}\n" },
		{ "<f32,[{symbol=\"s\",most=8}],[1],affine_map<(d0)->(d0)>>",
		        "<f32,[{symbol=\"t\",most=8}],[1],affine_map<(d0)->(d0)>>",
		        "{\"equal\":false,\"buffer_shape\":null,\"why\":\"different data: run-time "
		        "trip counts lead elsewhere\"}\n" },
		{ "<f32,[{symbol=\"s\",most=8},4],[1,1],affine_map<(d0,d1)->(d0,d1)>>",
		        "<f32,[4,{symbol=\"s\",most=8}],[1,1],affine_map<(d0,d1)->(d1,d0)>>",
		        "{\"equal\":false,\"buffer_shape\":[8,4],\"halves\":1,\"shared_loops\":0,"
		        "\"bytes\":128}\n" },
		{ "<vector<16xf32>,[{symbol=\"s\",tile=16,most=8}],[16],affine_map<(d0)->(d0)>>",
		        "<[vector<16xf32>,4],[{symbol=\"s\",tile=16,most=8}],[16],affine_map<(d0)->"
		        "(d0)>>",
		        "{\"equal\":false,\"buffer_shape\":[16],\"halves\":2,\"shared_loops\":1,"
		        "\"bytes\":128}\n" },
		{ "<f32,[40,6],[1,1],affine_map<(d0,d1)->(d0+d1)>>",
		        "<vector<6xf32>,[40],[1],affine_map<(d0)->(d0)>>",
		        "{\"equal\":false,\"buffer_shape\":[6],\"halves\":2,\"shared_loops\":1,"
		        "\"bytes\":48}\n" },
	};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		assert_string_equal(ran(pairs[i].left, pairs[i].right, false), pairs[i].answer);
	assert_string_equal(
	        ran("<[vector<2x4xf32>,4],[[1,3]],[4],affine_map<(d0)->(0,d0)>>", NULL, false),
	        "[0,4]\n[1,4]\n[0,8]\n[1,8]\n");
}

static void test_ill_formed(void **state)
{
	(void)state;
	static const struct {
		const char *type, *message;
	} wrong[] = {
		{ "", "is no itensor type" },
		{ "<>", "0 parameters instead of four" },
		{ "<f32, [8], 3 garbage>", "type:1:13: error: not a type" },
		{ "<f32,[8],[1],affine_map<(d0)[s0]->(d0+s0)>>", "has symbols" },
		{ "<f32,[8,1],[1],affine_map<(d0)->(d0)>>", "2 trip counts and 1 step" },
		{ "<f32,[8],[1],affine_map<(d0,d1)->(d0)>>", "1 trip count and 2 map dims" },
		{ "<f32,[-8],[1],affine_map<(d0)->(d0)>>", "trip count 0 is -8" },
		{ "<f32,[8],[0],affine_map<(d0)->(d0)>>", "step 0 is 0" },
		{ "<f32,[8],[1],affine_map<(d0)->(d0 - 1)>>", "out of range" },
		{ "<f32,[8],[1],affine_map<(d0)->(d0 mod 3)>>", "not linear" },
		{ "<vector<4xf32>,[8],[1],affine_map<(d0)->(d0,0)>>",
		        "rank 1 and the map has 2 results" },
		{ "<tensor<4xf32>,[8],[1],affine_map<(d0)->(d0)>>",
		        "neither a number nor a vector" },
		{ "<tensor<?xf32>,[8],[1],affine_map<(d0)->(d0)>>", "dynamic extent" },
		{ "<f32,[4294967296,4294967296],[1,1],affine_map<(d0,d1)->(0)>>",
		        "the number of tiles overflows" },
		{ "<f32,[4],[9223372036854775807],affine_map<(d0)->(d0)>>", "beyond 2^48" },
		{ "<f32,[[3,3]],[1],affine_map<(d0)->(d0)>>", "the range 0, from 3 to 2" },
		{ "<f32,[[-1,3]],[1],affine_map<(d0)->(d0)>>", "the range 0, from -1 to 2" },
		{ "<f32,[[1,2,3]],[1],affine_map<(d0)->(d0)>>", "no pair of 64-bit numbers" },
		{ "<f32,[[9223372036854775806,9223372036854775807]],[3],affine_map<(d0)->(d0)>>",
		        "begins beyond 2^48" },
		{ "<[vector<4x6xf32>,4],[1],[1],affine_map<(d0)->(d0,0)>>",
		        "words of 4 elements do not cut" },
		{ "<[vector<4x6xf32>,0],[1],[1],affine_map<(d0)->(d0,0)>>",
		        "words of 0 elements do not cut" },
		{ "<[vector<4x6xf32>,48],[1],[1],affine_map<(d0)->(d0,0)>>",
		        "words of 48 elements do not cut" },
		{ "<[f32,1],[1],[1],affine_map<(d0)->(d0)>>", "words of 1 elements do not cut" },
		{ "<[vector<4xf32>],[1],[1],affine_map<(d0)->(d0)>>",
		        "no pair of a vector and the elements of a word" },
		{ "<f32,[{symbol=\"s\"}],[1],affine_map<(d0)->(d0)>>", "trip count 0" },
		{ "<f32,[{symbol=\"s t\",most=4}],[1],affine_map<(d0)->(d0)>>", "trip count 0" },
		{ "<f32,[{symbol=\"s\",most=4,more=1}],[1],affine_map<(d0)->(d0)>>",
		        "trip count 0" },
		{ "<f32,[{symbol=\"s\",most=0}],[1],affine_map<(d0)->(d0)>>", "trip count 0 is 0" },
		{ "<f32,[{symbol=\"s\",most=4,tile=0}],[1],affine_map<(d0)->(d0)>>",
		        "the tile of trip count 0 is 0" },
		{ "<f32,[4],[99999999999999999999],affine_map<(d0)->(d0)>>", "out of range" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const char *found = ran(wrong[i].type, NULL, false);
		if (!strstr(found, wrong[i].message) || !strstr(found, "note: accepted"))
			fail_msg("%s gave %s", wrong[i].type, found);
		assert_non_null(strstr(ran(WIDE, wrong[i].type, false), "second type"));
	}
}

/* 16 rows of two words each arrive in four iterations, a tile of four rows in each. */
static void test_tiles_of_rows_of_words(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	const struct type *tensor = type_shaped(
	        f->module, TYPE_TENSOR, 2, (int64_t[]){ 16, 16 }, type_float(f->module, 32));
	const struct type *word = type_shaped(
	        f->module, TYPE_VECTOR, 2, (int64_t[]){ 1, 8 }, type_float(f->module, 32));
	const struct type *from = type_canonical(f->module, word,
	        &(struct itensor){ .dims = 2,
	                .trip = (int64_t[]){ 16, 2 },
	                .step = (int64_t[]){ 1, 8 },
	                .map = { 2, 2, (int64_t[]){ 1, 0, 0, 0, 1, 0 } } });
	const struct type *to = type_canonical(f->module, word,
	        &(struct itensor){ .dims = 3,
	                .trip = (int64_t[]){ 12, 16, 2 },
	                .step = (int64_t[]){ 1, 1, 8 },
	                .map = { 3, 2, (int64_t[]){ 0, 1, 0, 0, 0, 0, 1, 0 } } });
	struct causal_buffer causal_buffer = causal_buffer_between(f->arena, tensor, from, to,
	        attr_integers(f->module, 2, (const int64_t[]){ 4, 64 }));
	assert_null(causal_buffer.why);
	assert_int_equal(causal_buffer.pitch, 64);
	assert_int_equal(causal_buffer.drain.trip[causal_buffer.part], 4);
	/* tiles are the outermost loop of an iteration */
	assert_int_equal(causal_buffer.shared, 0);
	assert_non_null(causal_buffer_between(
	        f->arena, tensor, from, to, attr_integers(f->module, 2, (const int64_t[]){ 4, 32 }))
	                .why);
	end(f);
}

/* The key tiles of a head are consecutive and each of its queries reads all of them, whatever the
 * loop order, so the loop over tiles of queries counts as the outermost. */
static void test_tiles_of_one_head(void **state)
{
	static const struct run_time_trip tiles = { .symbol = "n", .tile = 8, .most = 4 };
	static const struct run_time_trip each = { .symbol = "n", .tile = 1, .most = 8 };
	(void)state;
	struct fixture *f = begin(1);
	const struct type *tensor = type_shaped(
	        f->module, TYPE_TENSOR, 2, (int64_t[]){ 32, 16 }, type_float(f->module, 32));
	const struct type *word = type_shaped(
	        f->module, TYPE_VECTOR, 2, (int64_t[]){ 1, 8 }, type_float(f->module, 32));
	const struct run_time_trip *fill[3] = { &tiles, &each, NULL };
	const struct run_time_trip *drain[6] = { &tiles, NULL, &each, &tiles, &each, NULL };
	const struct type *from = type_canonical(f->module, word,
	        &(struct itensor){ .dims = 3,
	                .trip = (int64_t[]){ 4, 8, 2 },
	                .step = (int64_t[]){ 8, 1, 8 },
	                .run_time = fill,
	                .map = { 3, 2, (int64_t[]){ 1, 1, 0, 0, 0, 0, 1, 0 } } });
	const struct type *to = type_canonical(f->module, word,
	        &(struct itensor){ .dims = 6,
	                .trip = (int64_t[]){ 4, 2, 8, 4, 8, 2 },
	                .step = (int64_t[]){ 1, 1, 1, 8, 1, 8 },
	                .run_time = drain,
	                .map = { 6, 2, (int64_t[]){ 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0 } } });
	struct causal_buffer causal_buffer = causal_buffer_between(f->arena, tensor, from, to,
	        attr_integers(f->module, 2, (const int64_t[]){ 4, 128 }));
	assert_null(causal_buffer.why);
	assert_true(run_time_same(causal_buffer.valid_tiles, &tiles));
	int64_t words = 1;
	for (int i = 0; i < causal_buffer.drain.loops; i++)
		words *= causal_buffer.drain.trip[i];
	assert_int_equal(words, 2 * 8 * 32 * 2); /* an iteration: all keys for each query */
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiles_of_one_head),
		cmocka_unit_test(test_equality),
		cmocka_unit_test(test_run_time),
		cmocka_unit_test(test_run_time_replay),
		cmocka_unit_test(test_mismatch),
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_live_minimum),
		cmocka_unit_test(test_coverage),
		cmocka_unit_test(test_tiles_of_rows_of_words),
		cmocka_unit_test(test_boxes_in_blocks),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_spelling),
		cmocka_unit_test(test_ill_formed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
