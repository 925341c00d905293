/* Converters between random types, lowered to processes: the words that come out, in their
 * order, are those of the reader's type by its definition, and those of the evaluator; the
 * buffer is as large as walk_reorder says. */
#include "convert_case.h"
#include "lowering/lowering_passes.h"
#include "predict/resource.h"
#include "converter/layer_carry.h"
#include "fifo/fifo.h"
#include "streams/on_chip_footprint.h"
#include "itensor/element_sequence.h"

/* The definition: tiles at map(i * step), a tile row-major. */
static void expect_words(struct fixture *f, const struct type *tensor, const struct type *stream,
        const float *words, uint64_t seed)
{
	struct walk walk = itensor_walk(f->arena, stream);
	int64_t *counter = ARENA_ARRAY(f->arena, int64_t, walk.loops + 1);
	int64_t offset[CONVERT_RANK + 1];
	int64_t lanes = stream_lanes(stream);
	int64_t w = 0;
	do {
		walk_at(walk, counter, offset);
		for (int64_t lane = 0; lane < lanes; lane++, w++) {
			int64_t rest = lane;
			int64_t at[CONVERT_RANK + 1];
			int64_t address = 0;
			for (int r = walk.rank - 1; r >= 0; r--) {
				at[r] = offset[r] + rest % walk.tile[r];
				rest /= walk.tile[r];
			}
			for (int r = 0; r < walk.rank; r++)
				address = walk.rank == tensor->rank
				        ? address * tensor->shape[r] + at[r]
				        : at[0];
			if (words[w] != (float)address)
				fail_msg("seed %d: element %d is %g, not %d: %s of %s", (int)seed,
				        (int)w, (double)words[w], (int)address, stream->text,
				        tensor->text);
		}
	} while (walk_next(walk, counter));
	assert_int_equal(w, stream_elements(stream));
}

/* The array or block of a converter, without copies of words. */
struct buffer {
	int64_t elements;
	bool banks;
};

static void find_buffer(struct op *op, void *context)
{
	struct buffer *buffer = context;
	const char *name = attr_text_or(op, KEY_STREAM_NAME, "");
	bool array = op->code == OP_ALLOCA && text_same(name, "box");
	if (!array && op->code != OP_BLOCK_CHANNEL)
		return;
	const struct type *type = array ? op->result[0]->type : op->result[0]->type->element;
	*buffer = (struct buffer){ type_elements(type) * type_lanes(type->element),
		attr_get(op, KEY_STREAM_PARTITION) != NULL };
}

/* The same pair through a ring instead, where that is better. */
static bool run_ring(
        struct fixture *f, uint64_t seed, struct convert_pair pair, const struct tensor *wanted)
{
	struct line_buffer line_buffer = line_buffer_between(f->arena, pair.from, pair.to);
	struct tensor before;
	struct tensor after;
	if (!line_buffer_is_better(&line_buffer, &pair.box))
		return false;
	pair.box = (struct box){ .elements = line_buffer.elements, .halves = 1 };
	pair.line_buffer = true;
	run_pair(f, seed, &pair, &before, &after);
	assert_memory_equal(wanted->data, before.data, tensor_bytes(before.type));
	if (memcmp(before.data, after.data, tensor_bytes(after.type)))
		fail_msg("seed %d: %s to %s in a ring", (int)seed, pair.from->text, pair.to->text);
	return true;
}

/* The same pair through memory. */
static bool run_cut(
        struct fixture *f, uint64_t seed, struct convert_pair pair, const struct tensor *wanted)
{
	struct tensor before;
	struct tensor after;
	if (!pair.line_buffer)
		pair.box = box_between(f->arena, pair.tensor, pair.from, pair.to, 0);
	if (pair.box.why)
		return false;
	pair.spilled = true;
	run_pair(f, seed, &pair, &before, &after);
	if (memcmp(wanted->data, after.data, tensor_bytes(after.type)))
		fail_msg("seed %d: %s to %s through memory", (int)seed, pair.from->text,
		        pair.to->text);
	return true;
}

static void test_random_pairs(void **state)
{
	(void)state;
	const char *mode = getenv("STC_TEST_MODE");
	uint64_t count = mode && !strcmp(mode, "long") ? 20000 : 600;
	int shared = 0;
	int words = 0;
	int runs = 0;
	int parts = 0;
	int rings = 0;
	int cuts = 0;
	int agains = 0;
	int banked = 0;
	for (uint64_t seed = 1; seed <= count; seed++) {
		struct fixture *f = begin(seed);
		struct convert_pair pair = convert_random(&f->random, f->module);
		if (pair.box.why)
			fail_msg("seed %d: %s: %s to %s", (int)seed, pair.box.why, pair.from->text,
			        pair.to->text);
		struct tensor before;
		struct tensor after;
		struct module *module = run_pair(f, seed, &pair, &before, &after);
		int64_t again = replay_elements(module);
		struct buffer buffer = { 0 };
		ir_walk(module->op->region[0], find_buffer, &buffer);
		assert_true(buffer.elements >= pair.box.elements || again > 0);
		if (again < 0 && !buffer.banks)
			assert_int_equal(buffer.elements, pair.box.elements);
		banked += buffer.banks;
		assert_true(again <= pair.box.elements);
		agains += again > 0;
		expect_words(f, pair.tensor, pair.to, before.data, seed);
		assert_memory_equal(before.data, after.data, tensor_bytes(after.type));
		struct walk from = walk_normal(f->arena, itensor_walk(f->arena, pair.from));
		struct walk to = walk_normal(f->arena, itensor_walk(f->arena, pair.to));
		struct reorder reorder = walk_reorder(f->arena, from, to);
		parts += reorder.why != NULL;
		if (!reorder.why && from.rank == to.rank)
			assert_int_equal(type_packed_bytes(type_scalar(pair.tensor),
			                         pair.box.elements * pair.box.halves),
			        reorder.bytes);
		shared += pair.box.shared > 0;
		int64_t word = box_word(&pair.box);
		words += word > 1;
		runs += word > 1 &&
		        word < (pair.box.fill.lanes > pair.box.drain.lanes ? pair.box.fill.lanes
		                                                           : pair.box.drain.lanes);
		rings += run_ring(f, seed, pair, &before);
		cuts += run_cut(f, seed, pair, &before);
		end(f);
	}
	print_message(
	        "%d pairs, %d with shared loops, %d in words, %d of which in parts of a side's, %d "
	        "of other data or addresses, %d in rings, %d through memory, %d sent again\n",
	        (int)count, shared, words, runs, parts, rings, cuts, agains);
	assert_true(shared > (int)count / 10 && words > (int)count / 20 && runs > (int)count / 40 &&
	        parts > (int)count / 20 && rings > (int)count / 40 && cuts > (int)count / 2 &&
	        agains > (int)count / 60 && banked > (int)count / 60);
}

/* Overlapping tiles: k - 1 rows and k words of each channel are held, not the tensor; where rows
 * come ahead, those that the next row of windows reads as well. */
static void test_windows(void **state)
{
	(void)state;
	int streams = 0;
	int exact = 0;
	int ahead = 0;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct fixture *f = begin(seed);
		int64_t k = convert_number(&f->random, 1, 4);
		int64_t stride = convert_number(&f->random, 1, k);
		int64_t channels = convert_number(&f->random, 1, 3);
		int64_t times = convert_number(&f->random, 1, 3);
		struct convert_pair pair =
		        convert_window(&f->random, f->module, k, stride, channels, times);
		/* a word is read before the iterations of its position could take it */
		if (pair.box.why) {
			assert_string_equal(pair.box.why, "it does not stream");
			end(f);
			continue;
		}
		int64_t row = pair.tensor->shape[1] * pair.tensor->shape[2];
		int64_t most = (k - 1) * row + k * pair.tensor->shape[2];
		assert_true(pair.box.elements <= most + (1 + stride) * row);
		exact += pair.box.elements == most;
		ahead += pair.box.elements > most;
		struct tensor before;
		struct tensor after;
		run_pair(f, seed, &pair, &before, &after);
		expect_words(f, pair.tensor, pair.to, before.data, seed);
		if (memcmp(before.data, after.data, tensor_bytes(after.type)))
			fail_msg("seed %d: %s to %s", (int)seed, pair.from->text, pair.to->text);
		run_cut(f, seed, pair, &before);
		streams++;
		end(f);
	}
	print_message("%d of 300 windows in a ring, %d of them of k - 1 rows and k words, %d with "
	              "rows ahead, the others smaller\n",
	        streams, exact, ahead);
	assert_true(streams > 200 && exact > 50 && ahead > 20);
}

/* Columns and whole windows a cycle, of channels in groups before or behind the places. */
static void test_taps(void **state)
{
	(void)state;
	int streams = 0;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct fixture *f = begin(seed);
		struct convert_pair pair = convert_taps(&f->random, f->module);
		if (pair.box.why) {
			assert_string_equal(pair.box.why, "it does not stream");
			end(f);
			continue;
		}
		struct tensor before;
		struct tensor after;
		run_pair(f, seed, &pair, &before, &after);
		expect_words(f, pair.tensor, pair.to, before.data, seed);
		if (memcmp(before.data, after.data, tensor_bytes(after.type)))
			fail_msg("seed %d: %s to %s", (int)seed, pair.from->text, pair.to->text);
		streams++;
		end(f);
	}
	print_message("%d of 200 windows with taps in a line buffer\n", streams);
	assert_true(streams > 120);
}

/* A block no larger than both sides need: a rectangle of a matrix, not a range of addresses. */
static void test_rectangle(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	const struct type *tensor = type_shaped(
	        f->module, TYPE_TENSOR, 2, (int64_t[]){ 8, 8 }, type_float(f->module, 32));
	struct convert_order from = { 3, { 2, 8, 4 }, { 4, 1, 1 }, { 0, 0 }, { 1, 0, 1 } };
	struct convert_order to = { 3, { 2, 4, 8 }, { 4, 1, 1 }, { 0, 0 }, { 1, 1, 0 } };
	struct box box =
	        box_between(f->arena, tensor, convert_type(f->module, tensor, &from, 1, 1, false),
	                convert_type(f->module, tensor, &to, 1, 1, true), BOX_LEAST);
	assert_null(box.why);
	assert_int_equal(box.shared, 1);
	assert_int_equal(box.elements, 32);
	end(f);
}

#define TOKENS 8
#define COLUMNS 256

/* [columns / lanes] of every token: words of so many columns of a token, all tokens before the
 * next columns. */
static const struct type *token_words(struct fixture *f, int64_t lanes)
{
	static const struct run_time_trip tokens = { .symbol = "n", .tile = 1, .most = TOKENS };
	const struct run_time_trip *run_time[2] = { NULL, &tokens };
	int64_t shape[2] = { 1, lanes };
	int64_t trip[2] = { COLUMNS / lanes, TOKENS };
	int64_t step[2] = { lanes, 1 };
	int64_t rows[6] = { 0, 1, 0, 1, 0, 0 };
	return type_canonical(f->module,
	        type_shaped(f->module, TYPE_VECTOR, 2, shape, type_float(f->module, 32)),
	        &(struct itensor){ .dims = 2,
	                .trip = arena_copy(f->arena, trip, sizeof trip),
	                .step = arena_copy(f->arena, step, sizeof step),
	                .run_time = arena_copy(f->arena, run_time, sizeof run_time),
	                .map = { 2, 2, arena_copy(f->arena, rows, sizeof rows) } });
}

/* Moves a launch of `count` tokens through one side, box after box; words are represented by their
 * numbers, and `kept` is the buffer. */
static int64_t pass_boxes(const struct box *box, const struct box_side *side, int64_t count,
        int64_t (*kept)[TOKENS * COLUMNS], int64_t *words, bool fill)
{
	int64_t at[8] = { 0 };
	int64_t number = 0;
	int64_t turn = 0;
	for (bool more = true; more;) {
		int64_t place = side->first;
		int64_t trip = 0;
		for (int l = 0; l < side->loops; l++)
			place += at[l] * side->step[l];
		for (int64_t lane = 0; lane < side->lanes; lane++, number++)
			*(fill ? &kept[turn][place + side->lane[lane]] : &words[number]) =
			        fill ? words[number] : kept[turn][place + side->lane[lane]];
		int l = side->loops - 1;
		for (; l >= 0; l--) {
			trip = side->run_time[l] ? side->trip[l] / side->run_time[l]->most * count
			                         : side->trip[l];
			if (++at[l] < trip)
				break;
			at[l] = 0;
		}
		more = l >= 0;
		turn += l < box->shared;
	}
	return number;
}

/* If an iteration of the shared loops has few words, a box holds several iterations; the words that
 * it sends are the same. */
static void test_boxes_of_few_words(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	const struct type *tensor = type_shaped(f->module, TYPE_TENSOR, 2,
	        (int64_t[]){ TOKENS, COLUMNS }, type_float(f->module, 32));
	struct box box =
	        box_between(f->arena, tensor, token_words(f, 4), token_words(f, 8), BOX_LEAST);
	assert_null(box.why);
	assert_int_equal(box.shared, 1);
	assert_int_equal(box.elements, 16 * 4 * TOKENS);
	int64_t(*kept)[TOKENS * COLUMNS] = calloc(COLUMNS, sizeof *kept);
	int64_t in[TOKENS * COLUMNS];
	int64_t out[TOKENS * COLUMNS];
	for (int64_t count = 1; count <= TOKENS; count++) {
		/* words of four columns, all tokens before the next */
		for (int64_t n = 0; n < count * COLUMNS; n++)
			in[n] = n / 4 % count * COLUMNS + n / 4 / count * 4 + n % 4;
		assert_int_equal(
		        pass_boxes(&box, &box.fill, count, kept, in, true), count * COLUMNS);
		assert_int_equal(
		        pass_boxes(&box, &box.drain, count, kept, out, false), count * COLUMNS);
		for (int64_t n = 0; n < count * COLUMNS; n++)
			assert_int_equal(
			        out[n], n / 8 % count * COLUMNS + n / 8 / count * 8 + n % 8);
	}
	free(kept);
	end(f);
}

#define TILES 4
#define TILE 4

/* Rows of two heads, eight numbers each, in tiles of tokens; a reader that takes those of tokens
 * first … first + tokens - 1 in every iteration, in words of `lanes` lanes. */
static const struct type *row_words(struct fixture *f, const struct type *tensor, bool turns,
        int64_t first, int64_t tokens, int64_t lanes)
{
	int64_t writer[4] = { TILES, 2, TILE, 8 / lanes };
	int64_t reader[4] = { TILES, 2, 3, tokens * 8 / lanes };
	int64_t step[4] = { 1, 1, 1, 1 };
	int64_t rows[5] = { 0 };
	rows[0] = turns ? 0 : TILE * 8;
	rows[1] = TILES * TILE * 8;
	rows[2] = turns ? 0 : 8;
	rows[3] = lanes;
	rows[4] = first * 8;
	const struct type *word =
	        type_shaped(f->module, TYPE_VECTOR, 1, &lanes, type_scalar(tensor));
	return type_canonical(f->module, word,
	        &(struct itensor){ .dims = 4,
	                .trip = turns ? reader : writer,
	                .step = step,
	                .map = { 4, 1, rows } });
}

/* A causal buffer sends its own tile in place of tiles that have not arrived, before lowering and
 * after. */
static void test_causal_tiles(void **state)
{
	(void)state;
	const struct {
		int64_t first, tokens, from, to;
	} cases[] = { { 0, 16, 8, 16 }, { 0, 16, 4, 8 }, { 4, 8, 8, 8 }, { 6, 2, 8, 8 },
		{ 8, 8, 2, 8 } };
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct fixture *f = begin(c);
		struct convert_pair pair = { .tensor = type_shaped(f->module, TYPE_TENSOR, 2,
			                             (int64_t[]){ 2, TILES * TILE * 8 },
			                             type_float(f->module, 32)),
			.causal = ", causal = array<i64: 4, 32>" };
		struct tensor before;
		struct tensor after;
		pair.from = row_words(f, pair.tensor, false, 0, TILES * TILE, cases[c].from);
		pair.to = row_words(
		        f, pair.tensor, true, cases[c].first, cases[c].tokens, cases[c].to);
		pair.box = box_between(f->arena, pair.tensor, pair.from, pair.to, 0);
		pair.box.halves = 1;
		run_pair(f, c, &pair, &before, &after);
		assert_memory_equal(before.data, after.data, tensor_bytes(before.type));
		const float *words = before.data;
		for (int64_t n = 0, each = cases[c].tokens * 8; n < TILES * 2 * 3 * each; n++) {
			int64_t turn = n / (6 * each);
			int64_t head = n / (3 * each) % 2;
			int64_t token = cases[c].first + n % each / 8;
			int64_t tile = token / TILE;
			tile = tile < turn ? tile : turn;
			assert_int_equal((int64_t)words[n],
			        (head * TILES * TILE + tile * TILE + token % TILE) * 8 + n % 8);
		}
		end(f);
	}
}

/* The writer's words, or every second time halves of them. */
static const struct type *parts_of(struct fixture *f, const struct type *type, int *narrow)
{
	int64_t lanes = stream_lanes(type);
	const struct type *half = lanes % 2 == 0 && convert_number(&f->random, 0, 1)
	        ? type_regroup(f->module, type, lanes / 2)
	        : NULL;
	*narrow += half != NULL;
	return half ? half : type;
}

/* Several readers of one buffer, one after the other: whole tensors, or a box per iteration of
 * loops that all readers share. */
static void test_random_buffers(void **state)
{
	(void)state;
	int shared = 0;
	int narrow = 0;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct fixture *f = begin(seed);
		struct convert_writer writer = convert_random_writer(&f->random, f->module);
		struct convert_pair pair[4];
		int readers = (int)convert_number(&f->random, 1, 4);
		int loops = -1;
		for (int r = 0; r < readers; r++) {
			bool plain = !r && convert_number(&f->random, 0, 1);
			pair[r] = (struct convert_pair){ .tensor = writer.tensor,
				.from = writer.type };
			pair[r].to = plain
			        ? parts_of(f, writer.type, &narrow)
			        : convert_random_reader(&f->random, f->module, &writer, true);
			pair[r].box = box_between(
			        f->arena, writer.tensor, writer.type, pair[r].to, BOX_LEAST);
			if (!plain)
				loops = loops < 0 || pair[r].box.shared == loops
				        ? pair[r].box.shared
				        : 0;
		}
		pair[0].box = box_between(
		        f->arena, writer.tensor, writer.type, pair[0].to, loops > 0 ? loops : 0);
		struct text text = text_new(f->arena);
		buffer_module(f->module, readers, pair, &text);
		struct module *module = read_module(f, &text);
		struct tensor input = counted(f, writer.tensor);
		struct tensor before[4];
		struct tensor after[4];
		assert_true(eval_module(module, f->arena, 1, &input, before));
		bool good = lower(f, module);
		/* the same number of loops, but other ones */
		if (!good && loops > 0 &&
		        (strstr(messages(f), "would need another buffer") ||
		                strstr(messages(f), "a buffer of"))) {
			end(f);
			continue;
		}
		if (!good || !eval_module(module, f->arena, 1, &input, after))
			fail_msg("seed %d: %s", (int)seed, messages(f));
		for (int r = 0; r < readers; r++) {
			expect_words(f, writer.tensor, pair[r].to, before[r].data, seed);
			assert_memory_equal(
			        before[r].data, after[r].data, tensor_bytes(after[r].type));
		}
		shared += loops > 0;
		end(f);
	}
	print_message("%d with shared loops, %d give parts of words while they are filled\n",
	        shared, narrow);
	assert_true(shared > 20 && narrow > 20);
}

/* Chunks, concat, join, reassociate and a buffer: every row with its halves exchanged, joined with
 * the rows of the transpose. */
static void test_routes(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct text source = text_new(f->arena);
	assert_true(routes_module(&source));
	struct module *module = read_module(f, &source);
	struct tensor input = counted(f,
	        type_shaped(
	                f->module, TYPE_TENSOR, 2, (int64_t[]){ 4, 8 }, type_float(f->module, 32)));
	struct tensor result[2];
	assert_true(eval_module(module, f->arena, 1, &input, &result[0]));
	assert_true(lower(f, module) && eval_module(module, f->arena, 1, &input, &result[1]));
	for (int i = 0; i < 2; i++)
		/* a word: two neighbours of a row, halves exchanged, then two of the reader that
		 * walks columns first */
		for (int w = 0; w < 16; w++)
			for (int lane = 0; lane < 4; lane++) {
				int swapped = w / 4 * 8 + (w % 4 * 2 + 4) % 8 + lane;
				int column = w % 4 * 8 + w / 4 * 2 + lane - 2;
				assert_true(((float *)result[i].data)[w * 4 + lane] ==
				        (float)(lane < 2 ? swapped : column));
			}
	end(f);
}

/* A vector that is summed up, divided by the sum, multiplied by a matrix, and added to the
 * result: three readers, each after the one before it. */
static const char residual[] =
        "#i = affine_map<(i) -> (i)>\n#none = affine_map<(i) -> ()>\n#row = affine_map<(i, k) -> "
        "(i)>\n#k = affine_map<(i, k) -> (k)>\n#ik = affine_map<(i, k) -> (i, k)>\n"
        "func.func @main(%x: tensor<1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024xf32> {\n"
        "  %zero = arith.constant 0.0 : f32\n  %one = arith.constant 1.0 : f32\n  %e = "
        "tensor.empty() : tensor<1024xf32>\n  %s = tensor.empty() : tensor<f32>\n"
        "  %fs = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>\n  %fe = "
        "linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>\n"
        "  %h = linalg.generic {indexing_maps = [#i, #i], iterator_types = [\"parallel\"]} ins(%x "
        ": tensor<1024xf32>) outs(%e : tensor<1024xf32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %r = math.tanh %a : f32\n    linalg.yield %r : f32\n  } -> "
        "tensor<1024xf32>\n"
        "  %sum = linalg.generic {indexing_maps = [#i, #none], iterator_types = [\"reduction\"]} "
        "ins(%h : tensor<1024xf32>) outs(%fs : tensor<f32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %q = arith.mulf %a, %a : f32\n    %r = arith.addf %o, %q : "
        "f32\n    linalg.yield %r : f32\n  } -> tensor<f32>\n"
        "  %n = linalg.generic {indexing_maps = [#i, #none, #i], iterator_types = [\"parallel\"]} "
        "ins(%h, %sum : tensor<1024xf32>, tensor<f32>) outs(%e : tensor<1024xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32, %o: f32):\n    %c = arith.addf %b, %one : f32\n    %r = "
        "arith.divf %a, %c : f32\n    linalg.yield %r : f32\n  } -> tensor<1024xf32>\n"
        "  %y = linalg.generic {indexing_maps = [#ik, #k, #row], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%w, %n : tensor<1024x1024xf32>, tensor<1024xf32>) outs(%fe : "
        "tensor<1024xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32, %o: f32):\n    %q = arith.mulf %a, %b : f32\n    %r = arith.addf "
        "%o, %q : f32\n    linalg.yield %r : f32\n  } -> tensor<1024xf32>\n"
        "  %z = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = [\"parallel\"]} "
        "ins(%y, %h : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32, %o: f32):\n    %r = arith.addf %a, %b : f32\n    linalg.yield %r "
        ": f32\n  } -> tensor<1024xf32>\n"
        "  return %z : tensor<1024xf32>\n}\n";

/* Numbers around 0 for all inputs. */
static void scattered(
        struct fixture *f, const struct module *module, int inputs, struct tensor *input)
{
	const struct attr *list = attr_get(module_main(module), KEY_STREAM_INPUTS);
	for (int i = 0; i < inputs; i++) {
		input[i] = counted(f, attr_item(list->items[i].value, KEY_TYPE)->type);
		for (int64_t e = 0; e < type_elements(input[i].type); e++)
			((float *)input[i].data)[e] = (float)((e * 7919) % 1001) / 1000.0f - 0.5f;
	}
}

/* The streams of a text, their widths by intensity. */
static struct module *streams_of(struct fixture *f, const char *text, struct pass_context *context)
{
	struct text source = text_new(f->arena);
	text_add(&source, "%s", text);
	struct module *module = read_module(f, &source);
	*context = (struct pass_context){ .platform = platform_load(f->arena, &f->diag, "u55c"),
		.choices.value = {
		        [CHOICE_SEARCH] = 1 + choice_word_named(CHOICE_SEARCH, "intensity"),
		        [CHOICE_REGISTER_TILES] = 1 + REGISTER_TILES_NONE } };
	for (int p = 0; p < pass_find("spill_to_budget"); p++)
		assert_true(passes[p].run(context, module));
	return module;
}

/* From streams to processes with FIFOs, which give the same bits. */
static void expect_processes_agree(
        struct fixture *f, struct module *module, struct pass_context *context, int inputs)
{
	struct tensor *input = ARENA_ARRAY(f->arena, struct tensor, inputs);
	struct tensor before;
	struct tensor after;
	scattered(f, module, inputs, input);
	assert_true(eval_module(module, f->arena, inputs, input, &before));
	for (int p = pass_first(LEVEL_STREAM); p <= pass_find("size_fifos"); p++)
		assert_true(passes[p].run(context, module));
	if (!eval_module(module, f->arena, inputs, input, &after))
		fail_msg("%s", messages(f));
	assert_memory_equal(before.data, after.data, tensor_bytes(after.type));
}

static void test_buffer_is_chosen(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context;
	struct module *module = streams_of(f, residual, &context);
	int buffers = 0;
	for (struct op *op = module_main(module)->region[0]->first; op; op = op->next)
		if (op->code == OP_BUFFER) {
			assert_memory_equal(attr_get(op, KEY_SERVICE_ROUNDS)->integers,
			        ((int64_t[]){ 0, 1, 2 }), 3 * sizeof(int64_t));
			buffers++;
		}
	assert_int_equal(buffers, 1);
	expect_processes_agree(f, module, &context, 2);
	int64_t behind = 0;
	for (struct op *op = module_main(module)->region[0]->first; op; op = op->next)
		if (op->code == OP_FIFO &&
		        !strncmp(attr_text_or(op, KEY_NAME, ""), "s_buffer", 8)) {
			/* the vector is held once */
			assert_true(op->result[0]->type->depth <= 32);
			behind++;
		}
	assert_int_equal(behind, 3);
	end(f);
}

static bool has_process(const struct module *module, const char *name)
{
	for (const struct op *op = module->op->region[0]->first; op; op = op->next) {
		/* a process is called pN_NAME */
		const char *behind = strchr(attr_text_or(op, KEY_SYM_NAME, ""), '_');
		if (behind && text_same(behind + 1, name))
			return true;
	}
	return false;
}

/* A fork drops what its readers do not want: no process of its own does, whose FIFO would hold
 * it. */
static void test_fork_drops(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct text text = text_new(f->arena);
	const char *all = "!stream.itensor<f32, [2, 3], [3, 1], affine_map<(d0, d1) -> (d0 + d1)>>";
	const char *part =
	        "!stream.itensor<f32, [2, 1], [3, 1], affine_map<(d0, d1) -> (d0 + d1 + 1)>>";
	text_add(&text,
	        "\"builtin.module\"() ({\n\"func.func\"() ({\n^bb0(%%0: tensor<6xf32>):\n"
	        "%%1 = \"stream.load\"(%%0) {operand_segment_sizes = array<i32: 1, 0>, tensor = "
	        "tensor<6xf32>} : (tensor<6xf32>) -> %s\n"
	        "%%2:2 = \"stream.fork\"(%%1) {tensor = tensor<6xf32>} : (%s) -> (%s, %s)\n"
	        "%%3 = \"stream.chunk\"(%%2#1) {high = array<i64: 2, 2>, low = array<i64: 0, 1>, "
	        "tensor = tensor<6xf32>} : (%s) -> %s\n"
	        "%%4 = \"stream.reassociate\"(%%3) {tensor = tensor<2xf32>} : (%s) -> "
	        "!stream.itensor<f32, [2], [1], affine_map<(d0) -> (d0)>>\n"
	        "\"stream.store\"(%%2#0) {operand_segment_sizes = array<i32: 1, 0, 0>, result = "
	        "array<i64: 0>, tensor = tensor<6xf32>} : (%s) -> ()\n"
	        "\"stream.store\"(%%4) {operand_segment_sizes = array<i32: 1, 0, 0>, result = "
	        "array<i64: 1>, tensor = tensor<2xf32>} : (!stream.itensor<f32, [2], [1], "
	        "affine_map<(d0) -> (d0)>>) -> ()\n"
	        "\"func.return\"() : () -> ()\n}) {function_type = (tensor<6xf32>) -> (), "
	        "stream.inputs = [{name = \"x\", role = \"input\", type = tensor<6xf32>}], "
	        "stream.outputs = [{name = \"y\", role = \"output\", type = tensor<6xf32>}, {name "
	        "= \"z\", role = \"output\", type = tensor<2xf32>}], sym_name = \"main\"} : () -> "
	        "()\n"
	        "}) {stream.level = \"stream\"} : () -> ()\n",
	        all, all, all, all, all, part, part, all);
	struct module *module = read_module(f, &text);
	struct tensor input = counted(f,
	        type_shaped(
	                f->module, TYPE_TENSOR, 1, (int64_t[]){ 6 }, type_float(f->module, 32)));
	struct tensor before[2];
	struct tensor after[2];
	assert_true(eval_module(module, f->arena, 1, &input, before) && lower(f, module) &&
	        eval_module(module, f->arena, 1, &input, after));
	assert_false(has_process(module, "chunk"));
	for (int i = 0; i < 2; i++) {
		assert_memory_equal(before[i].data, after[i].data, tensor_bytes(after[i].type));
		assert_true(((float *)after[1].data)[i] == ((float *)input.data)[3 * i + 1]);
	}
	end(f);
}

/* tanh, a product that holds all its sums because the vector comes once, and a norm of it that
 * is multiplied and added to it. */
static const char on_chip_bytes[] =
        "#i = affine_map<(i) -> (i)>\n#none = affine_map<(i) -> ()>\n#row = affine_map<(i, k) -> "
        "(i)>\n#k = affine_map<(i, k) -> (k)>\n#ki = affine_map<(i, k) -> (k, i)>\n"
        "func.func @main(%x: tensor<512xf32>, %w: tensor<512x512xf32>, %b: tensor<512xf32>) -> "
        "tensor<512xf32> {\n"
        "  %zero = arith.constant 0.0 : f32\n  %e = tensor.empty() : tensor<512xf32>\n  %s = "
        "tensor.empty() : tensor<f32>\n"
        "  %fs = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>\n  %fe = "
        "linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>\n"
        "  %h = linalg.generic {indexing_maps = [#i, #i], iterator_types = [\"parallel\"]} ins(%x "
        ": tensor<512xf32>) outs(%e : tensor<512xf32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %r = math.tanh %a : f32\n    linalg.yield %r : f32\n  } -> "
        "tensor<512xf32>\n"
        "  %y0 = linalg.generic {indexing_maps = [#ki, #k, #row], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%w, %h : tensor<512x512xf32>, tensor<512xf32>) outs(%fe : "
        "tensor<512xf32>) {\n"
        "  ^bb0(%a: f32, %c: f32, %o: f32):\n    %q = arith.mulf %a, %c : f32\n    %r = arith.addf "
        "%o, %q : f32\n    linalg.yield %r : f32\n  } -> tensor<512xf32>\n"
        "  %y = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = [\"parallel\"]} "
        "ins(%y0, %b : tensor<512xf32>, tensor<512xf32>) outs(%e : tensor<512xf32>) {\n"
        "  ^bb0(%a: f32, %c: f32, %o: f32):\n    %r = arith.addf %a, %c : f32\n    linalg.yield %r "
        ": f32\n  } -> tensor<512xf32>\n"
        "  %sum = linalg.generic {indexing_maps = [#i, #none], iterator_types = [\"reduction\"]} "
        "ins(%y : tensor<512xf32>) outs(%fs : tensor<f32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %q = arith.mulf %a, %a : f32\n    %r = arith.addf %o, %q : "
        "f32\n    linalg.yield %r : f32\n  } -> tensor<f32>\n"
        "  %n = linalg.generic {indexing_maps = [#i, #none, #i], iterator_types = [\"parallel\"]} "
        "ins(%y, %sum : tensor<512xf32>, tensor<f32>) outs(%e : tensor<512xf32>) {\n"
        "  ^bb0(%a: f32, %c: f32, %o: f32):\n    %r = arith.divf %a, %c : f32\n    linalg.yield %r "
        ": f32\n  } -> tensor<512xf32>\n"
        "  return %n : tensor<512xf32>\n}\n";

static void count_accumulator_drains(struct op *op, void *context)
{
	struct fixture *f = ((void **)context)[0];
	int *served = ((void **)context)[1];
	*served += op->code == OP_BUFFER && is_drained_by_writer(f->arena, op);
}

/* Accumulators that are complete only with the last term replace the reader's buffer: one array for
 * both, here for the two passes of a norm. */
static void test_sums_are_the_buffer(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context;
	struct module *module = streams_of(f, on_chip_bytes, &context);
	int served = 0;
	ir_walk(module_main(module)->region[0], count_accumulator_drains, (void *[]){ f, &served });
	assert_int_equal(served, 1);
	expect_processes_agree(f, module, &context, 3);
	assert_false(has_process(module, "buffer"));
	end(f);
}

/* Two layers: rows over what is left of them without the sums of their squares, a product, tanh,
 * a product back, and the rows added.  The second product holds all its sums. */
#define HEAD(wide)                                                                                 \
	"#ij = affine_map<(i, j) -> (i, j)>\n#i = affine_map<(i, j) -> (i)>\n"                     \
	"func.func @main(%h0: tensor<16x128xf32>, %v0: tensor<128x1024xf32>, %w0: "                \
	"tensor<1024x128xf32>, %v1: tensor<128x" wide "xf32>, %w1: tensor<" wide                   \
	"x128xf32>) -> tensor<16x128xf32> {\n"                                                     \
	"  %zero = arith.constant 0.0 : f32\n  %e = tensor.empty() : tensor<16x128xf32>\n  "       \
	"%u1024 = tensor.empty() : tensor<16x1024xf32>\n  %u512 = tensor.empty() : "               \
	"tensor<16x512xf32>\n  %s = tensor.empty() : tensor<16xf32>\n"                             \
	"  %fs = linalg.fill ins(%zero : f32) outs(%s : tensor<16xf32>) -> tensor<16xf32>\n  %fe " \
	"= linalg.fill ins(%zero : f32) outs(%e : tensor<16x128xf32>) -> tensor<16x128xf32>\n"     \
	"  %fu1024 = linalg.fill ins(%zero : f32) outs(%u1024 : tensor<16x1024xf32>) -> "          \
	"tensor<16x1024xf32>\n"                                                                    \
	"  %fu512 = linalg.fill ins(%zero : f32) outs(%u512 : tensor<16x512xf32>) -> "             \
	"tensor<16x512xf32>\n"
#define LAYER(l, next, wide)                                                                       \
	"  %s" l " = linalg.generic {indexing_maps = [#ij, #i], iterator_types = [\"parallel\", "  \
	"\"reduction\"]} ins(%h" l " : tensor<16x128xf32>) outs(%fs : tensor<16xf32>) {\n"         \
	"  ^bb0(%a: f32, %o: f32):\n    %q = arith.mulf %a, %a : f32\n    %r = arith.addf %o, %q " \
	": f32\n    linalg.yield %r : f32\n  } -> tensor<16xf32>\n"                                \
	"  %c" l " = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = "             \
	"[\"parallel\", \"reduction\"]} ins(%h" l ", %s" l                                         \
	" : tensor<16x128xf32>, tensor<16xf32>) outs(%fs : tensor<16xf32>) {\n"                    \
	"  ^bb0(%a: f32, %b: f32, %o: f32):\n    %q = arith.subf %a, %b : f32\n    %t = "          \
	"arith.mulf %q, %q : f32\n    %r = arith.addf %o, %t : f32\n    linalg.yield %r : f32\n  " \
	"} -> tensor<16xf32>\n"                                                                    \
	"  %n" l " = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = "            \
	"[\"parallel\", \"parallel\"]} ins(%h" l ", %c" l                                          \
	" : tensor<16x128xf32>, tensor<16xf32>) outs(%e : tensor<16x128xf32>) {\n"                 \
	"  ^bb0(%a: f32, %b: f32, %o: f32):\n    %r = arith.divf %a, %b : f32\n    linalg.yield "  \
	"%r : f32\n  } -> tensor<16x128xf32>\n"                                                    \
	"  %p" l " = linalg.matmul ins(%n" l ", %v" l " : tensor<16x128xf32>, tensor<128x" wide    \
	"xf32>) outs(%fu" wide " : tensor<16x" wide "xf32>) -> tensor<16x" wide "xf32>\n"          \
	"  %t" l " = linalg.tanh ins(%p" l " : tensor<16x" wide "xf32>) outs(%u" wide              \
	" : tensor<16x" wide "xf32>) -> tensor<16x" wide "xf32>\n"                                 \
	"  %d" l " = linalg.matmul ins(%t" l ", %w" l " : tensor<16x" wide "xf32>, tensor<" wide   \
	"x128xf32>) outs(%fe : tensor<16x128xf32>) -> tensor<16x128xf32>\n"                        \
	"  %h" next " = linalg.add ins(%d" l ", %h" l                                              \
	" : tensor<16x128xf32>, tensor<16x128xf32>) outs(%e : tensor<16x128xf32>) -> "             \
	"tensor<16x128xf32>\n"

static const char layers[] = HEAD("1024") LAYER("0", "1", "1024")
        LAYER("1", "2", "1024") "  return %h2 : tensor<16x128xf32>\n}\n";
static const char blocks[] = HEAD("512") LAYER("0", "1", "1024")
        LAYER("1", "2", "512") "  return %h2 : tensor<16x128xf32>\n}\n";

/* A layer's last accumulators are drained in the order of the next layer's readers: no reorder
 * buffer. */
static void test_drain_order(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context;
	struct module *module = streams_of(f, layers, &context);
	const struct op *yield = NULL;
	for (const struct op *op = module_main(module)->region[0]->first; op; op = op->next)
		yield = op->code == OP_FOR ? op->region[0]->last : yield;
	assert_non_null(yield);
	const struct op *convert = yield->operand[0]->def;
	assert_true(convert->code == OP_CONVERT && attr_get(convert, KEY_IN_PRODUCER) &&
	        convert->operand[0]->def->code == OP_KERNEL);
	assert_int_equal(attr_integer_or(convert, KEY_BUFFER_ELEMENTS, -1), 0);
	assert_true(convert->operand[0]->type != convert->result[0]->type);
	expect_processes_agree(f, module, &context, 5);
	end(f);
}

struct turned {
	struct arena *arena;
	int buffers, served, whole;
};

static void count_reordered(struct op *op, void *context)
{
	struct turned *turned = context;
	turned->buffers += op->code == OP_BUFFER && !is_drained_by_writer(turned->arena, op);
	turned->served += op->code == OP_BUFFER && is_drained_by_writer(turned->arena, op);
	turned->whole += op->code == OP_CONVERT && !attr_integer_or(op, KEY_SHARED_LOOPS, 0) &&
	        attr_integer_or(op, KEY_BUFFER_ELEMENTS, 0) >= 16 * 128;
}

static struct turned agree_and_count(struct fixture *f, const char *text)
{
	struct pass_context context;
	struct module *module = streams_of(f, text, &context);
	struct turned turned = { .arena = f->arena };
	ir_walk(module_main(module)->region[0], count_reordered, &turned);
	expect_processes_agree(f, module, &context, 5);
	return turned;
}

/* A layer's result stays in the accumulators where the next layer reads it, before the next sums
 * begin.  No feedback FIFO is needed, and the linear program of FIFO depths accounts for the kernel
 * that is the first and the last of a layer. */
static void test_layers_share_an_array(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context;
	struct module *module = streams_of(f, layers, &context);
	struct on_chip_bytes on_chip =
	        on_chip_bytes_of_block(f->arena, module_main(module)->region[0]);
	assert_true(!on_chip.buffers && on_chip.sums >= 16 * 128 * 4);
	assert_true(make_processes(&context, module));
	assert_true(!has_process(module, "buffer") && !has_process(module, "layer_enter") &&
	        !has_process(module, "layer_leave"));
	struct fifo_network *n = fifo_collect(f->arena, &context, module);
	int64_t *depth = ARENA_ARRAY(f->arena, int64_t, n->count + 1);
	for (int i = 0; i < n->count; i++)
		depth[i] = n->fifo[i].whole;
	assert_true(fifo_lp(n, FIFO_CURVES, NULL, depth));
	expect_processes_agree(f, streams_of(f, layers, &context), &context, 5);
	end(f);
}

/* One array of rows for all readers, each with its own order: a sum, a norm that is recomputed for
 * every block of a product, and a final addition.  A layer's input is in a shared buffer, a block's
 * in the accumulators of the block before. */
static void test_readers_have_their_orders(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct turned turned = agree_and_count(f, layers);
	assert_true(turned.buffers == 1 && !turned.served && !turned.whole);
	turned = agree_and_count(f, blocks);
	assert_true(turned.served == 1 && turned.buffers + turned.whole <= 1);
	end(f);
}

/* Counts single buffers of several iterations, and kernels after them with repeated results. */
static void count_single(struct op *op, void *context)
{
	int *count = context;
	const struct op *behind = op->code == OP_CONVERT &&
	                attr_integer_or(op, KEY_SHARED_LOOPS, 0) &&
	                attr_integer_or(op, KEY_HALVES, 2) == 1
	        ? op->next
	        : NULL;
	while (behind && behind->code != OP_KERNEL)
		behind = behind->next;
	count[0] += behind != NULL;
	count[1] += behind && !kernel_has_reduction(behind->kernel) &&
	        stream_elements(behind->result[0]->type) >
	                type_elements(attr_get(behind, KEY_TENSOR)->type);
}

/* Sums of a block are written in whole words into a single buffer, which is read repeatedly; tanh
 * is computed after it, for each read. */
static void test_functions_after_blocks(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context;
	struct module *module = streams_of(f, layers, &context);
	int count[2] = { 0, 0 };
	ir_walk(module_main(module)->region[0], count_single, count);
	assert_true(count[0] == 1 && count[1] == 1);
	expect_processes_agree(f, module, &context, 5);
	end(f);
}

/* Two matrices, each added to its transpose. */
static const char transposes[] =
        "#id = affine_map<(b, i, j) -> (b, i, j)>\n#tr = affine_map<(b, i, j) -> (b, j, i)>\n"
        "func.func @main(%x: tensor<2x256x256xf32>) -> tensor<2x256x256xf32> {\n  %e = "
        "tensor.empty() : tensor<2x256x256xf32>\n"
        "  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = [\"parallel\", "
        "\"parallel\", \"parallel\"]} ins(%x : tensor<2x256x256xf32>) outs(%e : "
        "tensor<2x256x256xf32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %r = math.tanh %a : f32\n    linalg.yield %r : f32\n  } -> "
        "tensor<2x256x256xf32>\n"
        "  %z = linalg.generic {indexing_maps = [#id, #tr, #id], iterator_types = [\"parallel\", "
        "\"parallel\", \"parallel\"]} ins(%y, %y : tensor<2x256x256xf32>, tensor<2x256x256xf32>) "
        "outs(%e : tensor<2x256x256xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32, %o: f32):\n    %r = arith.addf %a, %b : f32\n    linalg.yield %r "
        ": f32\n  } -> tensor<2x256x256xf32>\n  return %z : tensor<2x256x256xf32>\n}\n";

static void count_shared(struct op *op, void *context)
{
	int *count = context;
	count[0] += op->code == OP_CONVERT && attr_integer_or(op, KEY_SHARED_LOOPS, 0) &&
	        !attr_get(op, KEY_SPILLED);
	count[1] += op->code == OP_CONVERT && attr_get(op, KEY_SPILLED) &&
	        !attr_integer_or(op, KEY_SHARED_LOOPS, 0);
}

/* A buffer of a matrix that no die has room for goes through memory, however much the budget
 * allows, and both matrices as a whole. */
static void test_no_die_has_room(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context;
	struct module *module = streams_of(f, transposes, &context);
	int before[2] = { 0, 0 };
	int after[2] = { 0, 0 };
	ir_walk(module_main(module)->region[0], count_shared, before);
	struct platform small = *context.platform;
	for (int d = 0; d < small.dies; d++) {
		small.die[d].bram18 = 16;
		small.die[d].uram = 4;
	}
	context.platform = &small;
	context.choices.value[CHOICE_ON_CHIP] = INT64_C(1) << 30;
	assert_true(passes[pass_find("spill_to_budget")].run(&context, module));
	ir_walk(module_main(module)->region[0], count_shared, after);
	assert_true(before[0] == 1 && !before[1] && !after[0] && after[1] == 1);
	expect_processes_agree(f, module, &context, 1);
	end(f);
}

/* tanh of a vector, which a product reads again for every block of its results. */
static const char read_again[] =
        "func.func @main(%x: tensor<1x63xf32>, %w: tensor<63x4096xf32>) -> tensor<1x4096xf32> {\n"
        "  %zero = arith.constant 0.0 : f32\n  %e = tensor.empty() : tensor<1x63xf32>\n  %s = "
        "tensor.empty() : tensor<1x4096xf32>\n"
        "  %f = linalg.fill ins(%zero : f32) outs(%s : tensor<1x4096xf32>) -> tensor<1x4096xf32>\n"
        "  %t = linalg.tanh ins(%x : tensor<1x63xf32>) outs(%e : tensor<1x63xf32>) -> "
        "tensor<1x63xf32>\n"
        "  %y = linalg.matmul ins(%t, %w : tensor<1x63xf32>, tensor<63x4096xf32>) outs(%f : "
        "tensor<1x4096xf32>) -> tensor<1x4096xf32>\n"
        "  return %y : tensor<1x4096xf32>\n}\n";

static void count_consumer_buffers(struct op *op, void *context)
{
	*(int64_t *)context += op->code == OP_ALLOCA &&
	                text_same(attr_text_or(op, KEY_STREAM_NAME, ""), "local_buffer")
	        ? memory_bytes(op)
	        : 0;
}

/* A kernel that needs its whole operand before it begins has it in an array of its own, not in a
 * converter before it. */
static void test_consumer_buffer(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context;
	struct module *module = streams_of(f, read_again, &context);
	int converters = 0;
	int64_t kept = 0;
	for (const struct op *op = module_main(module)->region[0]->first; op; op = op->next)
		converters += op->code == OP_CONVERT;
	assert_int_equal(converters, 1);
	expect_processes_agree(f, module, &context, 2);
	assert_false(has_process(module, "convert"));
	ir_walk(module->op->region[0], count_consumer_buffers, &kept);
	assert_int_equal(kept, 63 * 4);
	end(f);
}

/* A vector, its norm multiplied by weights and by a wide matrix and back, and the vector added. */
static const char norm_again[] =
        "#i = affine_map<(i) -> (i)>\n#none = affine_map<(i) -> ()>\n#row = affine_map<(i, k) -> "
        "(i)>\n#k = affine_map<(i, k) -> (k)>\n#ik = affine_map<(i, k) -> (i, k)>\n#ki = "
        "affine_map<(i, k) -> (k, i)>\n"
        "func.func @main(%x: tensor<639xf32>, %g: tensor<639xf32>, %w: tensor<4096x639xf32>, %v: "
        "tensor<4096x639xf32>) -> tensor<639xf32> {\n"
        "  %zero = arith.constant 0.0 : f32\n  %e = tensor.empty() : tensor<639xf32>\n  %b = "
        "tensor.empty() : tensor<4096xf32>\n  %s = tensor.empty() : tensor<f32>\n"
        "  %fs = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>\n  %fe = "
        "linalg.fill ins(%zero : f32) outs(%e : tensor<639xf32>) -> tensor<639xf32>\n"
        "  %fb = linalg.fill ins(%zero : f32) outs(%b : tensor<4096xf32>) -> tensor<4096xf32>\n"
        "  %h = linalg.tanh ins(%x : tensor<639xf32>) outs(%e : tensor<639xf32>) -> "
        "tensor<639xf32>\n"
        "  %sum = linalg.generic {indexing_maps = [#i, #none], iterator_types = [\"reduction\"]} "
        "ins(%h : tensor<639xf32>) outs(%fs : tensor<f32>) {\n"
        "  ^bb0(%a: f32, %o: f32):\n    %q = arith.mulf %a, %a : f32\n    %r = arith.addf %o, %q : "
        "f32\n    linalg.yield %r : f32\n  } -> tensor<f32>\n"
        "  %n = linalg.generic {indexing_maps = [#i, #none, #i, #i], iterator_types = "
        "[\"parallel\"]} ins(%h, %sum, %g : tensor<639xf32>, tensor<f32>, tensor<639xf32>) outs(%e "
        ": tensor<639xf32>) {\n"
        "  ^bb0(%a: f32, %c: f32, %d: f32, %o: f32):\n    %q = arith.divf %a, %c : f32\n    %r = "
        "arith.mulf %q, %d : f32\n    linalg.yield %r : f32\n  } -> tensor<639xf32>\n"
        "  %y = linalg.generic {indexing_maps = [#ik, #k, #row], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%w, %n : tensor<4096x639xf32>, tensor<639xf32>) outs(%fb : "
        "tensor<4096xf32>) {\n"
        "  ^bb0(%a: f32, %c: f32, %o: f32):\n    %q = arith.mulf %a, %c : f32\n    %r = arith.addf "
        "%o, %q : f32\n    linalg.yield %r : f32\n  } -> tensor<4096xf32>\n"
        "  %u = linalg.generic {indexing_maps = [#ki, #k, #row], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%v, %y : tensor<4096x639xf32>, tensor<4096xf32>) outs(%fe : "
        "tensor<639xf32>) {\n"
        "  ^bb0(%a: f32, %c: f32, %o: f32):\n    %q = arith.mulf %a, %c : f32\n    %r = arith.addf "
        "%o, %q : f32\n    linalg.yield %r : f32\n  } -> tensor<639xf32>\n"
        "  %z = linalg.add ins(%u, %h : tensor<639xf32>, tensor<639xf32>) outs(%e : "
        "tensor<639xf32>) -> tensor<639xf32>\n"
        "  return %z : tensor<639xf32>\n}\n";

/* The norm is not buffered for the blocks of the matrix: it is recomputed from the vector, which is
 * buffered anyway. */
static void test_norm_is_repeated(void **state)
{
	(void)state;
	struct fixture *f = begin(1);
	struct pass_context context;
	struct module *module = streams_of(f, norm_again, &context);
	int buffers = 0;
	for (const struct op *op = module_main(module)->region[0]->first; op; op = op->next) {
		assert_true(op->code != OP_CONVERT);
		buffers += op->code == OP_BUFFER && op->results == 3 &&
		        stream_elements(op->result[1]->type) > 639 &&
		        stream_elements(op->result[1]->type) % 639 == 0;
	}
	assert_int_equal(buffers, 1);
	expect_processes_agree(f, module, &context, 4);
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_pairs),
		cmocka_unit_test(test_random_buffers), cmocka_unit_test(test_causal_tiles),
		cmocka_unit_test(test_windows), cmocka_unit_test(test_routes),
		cmocka_unit_test(test_buffer_is_chosen), cmocka_unit_test(test_taps),
		cmocka_unit_test(test_rectangle), cmocka_unit_test(test_boxes_of_few_words),
		cmocka_unit_test(test_fork_drops), cmocka_unit_test(test_sums_are_the_buffer),
		cmocka_unit_test(test_drain_order), cmocka_unit_test(test_layers_share_an_array),
		cmocka_unit_test(test_readers_have_their_orders),
		cmocka_unit_test(test_functions_after_blocks),
		cmocka_unit_test(test_no_die_has_room), cmocka_unit_test(test_consumer_buffer),
		cmocka_unit_test(test_norm_is_repeated) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
