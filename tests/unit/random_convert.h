/* Random converters as a stream-level module: tensors are loaded in one order, converted to
 * another, and stored word by word as they come. */
#ifndef RANDOM_CONVERT_H
#define RANDOM_CONVERT_H
#include "random_graph.h"
#include "base/data.h"
#include "itensor/box.h"
#include "itensor/line_buffer.h"
#include "itensor/element_sequence.h"

#define CONVERT_RANK 3
#define CONVERT_LOOPS 12

struct convert_pair {
	const struct type *tensor, *from, *to;
	struct box box;
	bool line_buffer;   /* a ring of box.elements */
	bool spilled;       /* the box lies in memory */
	const char *causal; /* its attribute, as text, or NULL */
};

struct convert_order { /* a type being put together: loops over tiles */
	int loops;
	int64_t trip[CONVERT_LOOPS], step[CONVERT_LOOPS], low[CONVERT_RANK];
	int dim[CONVERT_LOOPS]; /* -1: sent again */
};

static int64_t convert_number(struct graph *g, int64_t low, int64_t high)
{
	return low + (int64_t)graph_next(g, (uint64_t)(high - low + 1));
}

static void convert_insert(struct convert_order *order, int at, int64_t trip, int64_t step, int dim)
{
	for (int l = order->loops++; l > at; l--) {
		order->trip[l] = order->trip[l - 1];
		order->step[l] = order->step[l - 1];
		order->dim[l] = order->dim[l - 1];
	}
	order->trip[at] = trip;
	order->step[at] = step;
	order->dim[at] = dim;
}

/* Tiles of `lanes` along `lane_dim` over [low, high) in any order of loops; a dim may be split
 * in two. */
static struct convert_order convert_walk(struct graph *g, int rank, const int64_t *low,
        const int64_t *high, int64_t lanes, int lane_dim)
{
	struct convert_order order = { 0 };
	bool plain = !convert_number(g, 0, 2);
	for (int r = 0; r < rank; r++) {
		int64_t tile = r == lane_dim ? lanes : 1, tiles = (high[r] - low[r]) / tile,
		        inner = tiles % 2 == 0 && convert_number(g, 0, 1) ? tiles / 2 : tiles;
		int at = plain ? order.loops : (int)convert_number(g, 0, order.loops);
		order.low[r] = low[r];
		convert_insert(&order, at, inner, tile, r);
		convert_insert(
		        &order, (int)convert_number(g, 0, at), tiles / inner, tile * inner, r);
	}
	return order;
}

static const struct type *convert_type(struct module *m, const struct type *tensor,
        const struct convert_order *order, int64_t lanes, int lane_dim, bool linearly)
{
	int results = linearly ? 1 : tensor->rank, width = order->loops + 1;
	int64_t *rows = affine_rows(m->arena, order->loops, results), shape[CONVERT_RANK],
	        pitch[CONVERT_RANK + 1], *step = ARENA_ARRAY(m->arena, int64_t, width);
	pitch[tensor->rank] = 1;
	for (int r = tensor->rank - 1; r >= 0; r--) {
		pitch[r] = pitch[r + 1] * tensor->shape[r];
		shape[r] = r == lane_dim && !linearly ? lanes : 1;
		rows[linearly ? order->loops : r * width + order->loops] +=
		        order->low[r] * (linearly ? pitch[r + 1] : 1);
	}
	if (linearly)
		shape[0] = lanes;
	for (int l = 0; l < order->loops; l++) {
		step[l] = order->step[l];
		if (order->dim[l] >= 0)
			rows[linearly ? l : order->dim[l] * width + l] =
			        linearly ? pitch[order->dim[l] + 1] : 1;
	}
	const struct type *scalar = type_scalar(tensor),
	                  *tile = lanes == 1 ? scalar
	                                     : type_shaped(m, TYPE_VECTOR, results, shape, scalar);
	return type_itensor(m, tile,
	        &(struct itensor){ .dims = order->loops,
	                .trip = order->trip,
	                .step = step,
	                .map = { order->loops, results, rows } });
}

struct convert_writer {
	const struct type *tensor, *type;
	int64_t lanes, unit[CONVERT_RANK]; /* unit: a dim's ranges are multiples of it */
	int lane_dim, other;               /* dims along which words may lie */
};

static inline struct convert_writer convert_random_writer(struct graph *g, struct module *m)
{
	static const int64_t widths[] = { 1, 1, 2, 4 };
	int rank = (int)convert_number(g, 1, CONVERT_RANK);
	struct convert_writer w = { .lane_dim = (int)convert_number(g, 0, rank - 1),
		.lanes = widths[convert_number(g, 0, 3)] };
	int64_t shape[CONVERT_RANK], low[CONVERT_RANK] = { 0 };
	w.other = convert_number(g, 0, 3) ? w.lane_dim : (int)convert_number(g, 0, rank - 1);
	for (int r = 0; r < rank; r++) {
		w.unit[r] = r == w.lane_dim || r == w.other ? 4 : 1;
		shape[r] = convert_number(g, 1, w.unit[r] > 1 ? 2 : 6) * w.unit[r];
	}
	w.tensor = type_shaped(m, TYPE_TENSOR, rank, shape, type_float(m, 32));
	struct convert_order order = convert_walk(g, rank, low, shape, w.lanes, w.lane_dim);
	w.type = convert_type(m, w.tensor, &order, w.lanes, w.lane_dim,
	        w.lane_dim == rank - 1 && !convert_number(g, 0, 3));
	return w;
}

/* All of the tensor or a part of it: other loops, other lanes, words sent again, linear
 * addresses. */
static inline const struct type *convert_random_reader(
        struct graph *g, struct module *m, const struct convert_writer *w, bool whole)
{
	int rank = w->tensor->rank, part = (int)convert_number(g, 0, rank - 1);
	int64_t wanted = convert_number(g, 0, 3) ? w->lanes : (int64_t)1 << convert_number(g, 0, 2),
	        low[CONVERT_RANK] = { 0 };
	if (!whole && w->tensor->shape[part] >= 2 * w->unit[part] && !convert_number(g, 0, 3))
		low[part] = w->unit[part];
	struct convert_order to = convert_walk(g, rank, low, w->tensor->shape, wanted, w->other);
	if (!convert_number(g, 0, 2))
		convert_insert(
		        &to, (int)convert_number(g, 0, to.loops), convert_number(g, 2, 3), 1, -1);
	return convert_type(m, w->tensor, &to, wanted, w->other,
	        w->other == rank - 1 && !whole && !convert_number(g, 0, 3));
}

static inline struct convert_pair convert_random(struct graph *g, struct module *m)
{
	struct convert_writer writer = convert_random_writer(g, m);
	struct convert_pair pair = { .tensor = writer.tensor, .from = writer.type };
	pair.to = convert_random_reader(g, m, &writer, false);
	pair.box = box_between(m->arena, pair.tensor, pair.from, pair.to, BOX_LEAST);
	return pair;
}

/* A writer of rows of pixels of `channels` words and a reader of k x k windows of them, moved by
 * `stride`, sent `times` times; its loops inside a window in any order. */
static inline struct convert_pair convert_window(struct graph *g, struct module *m, int64_t k,
        int64_t stride, int64_t channels, int64_t times)
{
	int64_t rows = k + stride * convert_number(g, 0, 4),
	        columns = k + stride * convert_number(g, 1, 4) + convert_number(g, 0, 1),
	        lanes = (int64_t)1 << convert_number(g, 0, 1);
	int64_t shape[3] = { rows, columns, channels * lanes };
	struct convert_pair pair = { .tensor = type_shaped(
		                             m, TYPE_TENSOR, 3, shape, type_float(m, 32)),
		.line_buffer = true };
	struct convert_order from = { 3, { rows, columns, channels }, { 1, 1, lanes }, { 0 },
		{ 0, 1, 2 } },
	                     to = { 2, { (rows - k) / stride + 1, (columns - k) / stride + 1 },
		                     { stride, stride }, { 0 }, { 0, 1 } };
	for (int r = 0; r < 3; r++)
		convert_insert(&to, (int)convert_number(g, 2, to.loops), r == 2 ? channels : k,
		        r == 2 ? lanes : 1, r);
	convert_insert(&to, (int)convert_number(g, 2, to.loops), times, 1, -1);
	pair.from = convert_type(m, pair.tensor, &from, lanes, 2, false);
	pair.to = convert_type(m, pair.tensor, &to, lanes, 2, false);
	struct line_buffer line_buffer = line_buffer_between(m->arena, pair.from, pair.to);
	pair.box.why = line_buffer.why ? line_buffer.why
	        : line_buffer.streams  ? NULL
	                               : "it does not stream";
	pair.box.elements = line_buffer.elements;
	pair.box.halves = 1;
	return pair;
}

/* A reader's loop along a data dim (-1: none). */
static inline void convert_loop(struct convert_order *order, int64_t trip, int64_t step, int dim)
{
	convert_insert(order, order->loops, trip, step, dim);
}

/* A writer of pixels, in `groups` words, and a reader of windows whose words are columns of k
 * pixels, or whole windows.  Channels are the first or the last dim of the tensor. */
static inline struct convert_pair convert_taps(struct graph *g, struct module *m)
{
	int64_t k = convert_number(g, 2, 4), stride = convert_number(g, 1, 3),
	        lanes = convert_number(g, 1, 3), whole = convert_number(g, 0, 1),
	        apart = convert_number(g, 0, 1),
	        groups = whole && !apart ? 1 : convert_number(g, 1, 3);
	int c = convert_number(g, 0, 1) ? 0 : 2, y = c ? 0 : 1, x = y + 1;
	int64_t shape[3], rows = k + stride * convert_number(g, 0, 3),
	                  columns = k + stride * convert_number(g, 1, 4) + convert_number(g, 0, 1);
	shape[c] = groups * lanes;
	shape[y] = rows;
	shape[x] = columns;
	struct convert_pair pair = { .tensor = type_shaped(
		                             m, TYPE_TENSOR, 3, shape, type_float(m, 32)),
		.line_buffer = true };
	struct convert_order from = { 3, { rows, columns, groups }, { 1, 1, lanes }, { 0 },
		{ y, x, c } },
	                     to = { 2, { (rows - k) / stride + 1, (columns - k) / stride + 1 },
		                     { stride, stride }, { 0 }, { y, x } };
	if (apart)
		convert_loop(&to, groups, lanes, c);
	else
		convert_loop(&to, convert_number(g, 1, 3), 1, -1);
	if (!whole)
		convert_loop(&to, k, 1, x);
	if (!apart)
		convert_loop(&to, groups, lanes, c);
	pair.from = convert_type(m, pair.tensor, &from, lanes, c, false);
	int64_t tile[3];
	tile[c] = lanes;
	tile[y] = k;
	tile[x] = whole ? k : 1;
	pair.to = type_itensor(m, type_shaped(m, TYPE_VECTOR, 3, tile, type_float(m, 32)),
	        convert_type(m, pair.tensor, &to, 1, 0, false)->itensor);
	struct line_buffer line_buffer = line_buffer_between(m->arena, pair.from, pair.to);
	pair.box.why = line_buffer.why ? line_buffer.why
	        : line_buffer.streams  ? NULL
	                               : "it does not stream";
	pair.box.elements = line_buffer.elements;
	pair.box.halves = 1;
	return pair;
}

/* The words of a stream in a row, as elements of a tensor. */
static inline const char *convert_in_a_row(struct module *m, const struct type *stream)
{
	int64_t lanes = stream_lanes(stream), words = itensor_tiles(stream->itensor);
	const struct type *scalar = type_scalar(stream),
	                  *tile = lanes == 1 ? scalar
	                                     : type_shaped(m, TYPE_VECTOR, 1, &lanes, scalar);
	int64_t *rows = affine_rows(m->arena, 1, 1);
	rows[0] = 1;
	return type_itensor(m, tile,
	        &(struct itensor){
	                .dims = 1, .trip = &words, .step = &lanes, .map = { 1, 1, rows } })
	        ->text;
}

static inline int64_t stream_elements(const struct type *stream)
{
	return itensor_tiles(stream->itensor) * stream_lanes(stream);
}

struct convert_text {
	struct module *module;
	struct text *out;
	struct text inputs, outputs, types;
};

static inline struct convert_text convert_begin(
        struct module *m, int tensors, const struct convert_pair *pair, struct text *out)
{
	struct convert_text t = { m, out, text_new(m->arena), text_new(m->arena),
		text_new(m->arena) };
	text_add(&t.outputs, "%s", "");
	text_add(out, "\"builtin.module\"() ({\n\"func.func\"() ({\n^bb0(");
	for (int j = 0; j < tensors; j++) {
		const char *tensor = pair[j].tensor->text, *comma = j ? ", " : "";
		text_add(out, "%s%%t%d: %s", comma, j, tensor);
		text_add(&t.types, "%s%s", comma, tensor);
		text_add(&t.inputs, "%s{name = \"x%d\", role = \"input\", type = %s}", comma, j,
		        tensor);
	}
	text_add(out, "):\n");
	return t;
}

static inline void convert_load(struct convert_text *t, int number, const struct convert_pair *pair)
{
	const char *tensor = pair->tensor->text;
	text_add(t->out,
	        "%%a%d = \"stream.load\"(%%t%d) {operand_segment_sizes = array<i32: 1, 0>, tensor "
	        "= %s} : (%s) -> %s\n",
	        number, number, tensor, tensor, pair->from->text);
}

/* result `number` of main: the words of `value`. */
static inline void convert_store(
        struct convert_text *t, int number, const char *value, const struct type *stream)
{
	const char *row = convert_in_a_row(t->module, stream);
	int64_t elements = stream_elements(stream);
	text_add(t->out,
	        "%%c%d = \"stream.reassociate\"(%s) {tensor = tensor<%" PRId64
	        "xf32>} : (%s) -> %s\n",
	        number, value, elements, stream->text, row);
	text_add(t->out,
	        "\"stream.store\"(%%c%d) {operand_segment_sizes = array<i32: 1, 0, 0>, result = "
	        "array<i64: %d>, tensor = tensor<%" PRId64 "xf32>} : (%s) -> ()\n",
	        number, number, elements, row);
	text_add(&t->outputs,
	        "%s{name = \"y%d\", role = \"output\", type = tensor<%" PRId64 "xf32>}",
	        number ? ", " : "", number, elements);
}

static inline void convert_end(struct convert_text *t)
{
	text_add(t->out,
	        "\"func.return\"() : () -> ()\n}) {function_type = (%s) -> (), stream.inputs = "
	        "[%s], stream.outputs = [%s], sym_name = \"main\"} : () -> ()\n",
	        t->types.data, t->inputs.data, t->outputs.data);
	text_add(t->out, "}) {stream.level = \"stream\"} : () -> ()\n");
}

/* Every pair a tensor and a converter of its own. */
static inline void convert_module(
        struct module *m, int pairs, const struct convert_pair *pair, struct text *out)
{
	struct convert_text t = convert_begin(m, pairs, pair, out);
	for (int j = 0; j < pairs; j++) {
		convert_load(&t, j, &pair[j]);
		text_add(out,
		        "%%b%d = \"stream.convert\"(%%a%d) {buffer_elements = %" PRId64
		        " : i64, shared_loops = %d : i64, halves = %d : i64, tensor = %s%s%s} : "
		        "(%s) -> %s\n",
		        j, j, pair[j].box.elements, pair[j].box.shared, pair[j].box.halves,
		        pair[j].tensor->text,
		        pair[j].line_buffer
		                ? pair[j].spilled ? ", line_buffer, spilled" : ", line_buffer"
		                : pair[j].spilled ? ", spilled"
		                                  : "",
		        pair[j].causal ? pair[j].causal : "", pair[j].from->text, pair[j].to->text);
		convert_store(&t, j, text_format(m->arena, "%%b%d", j), pair[j].to);
	}
	convert_end(&t);
}

/* One shared buffer of tensor 0 that every pair reads, one after the other; the first reader takes
 * the words, or parts of them, in the order of writing if its type allows that. */
static inline void buffer_module(
        struct module *m, int readers, const struct convert_pair *pair, struct text *out)
{
	struct convert_text t = convert_begin(m, 1, pair, out);
	struct text phases = text_new(m->arena), types = text_new(m->arena),
	            sizes = text_new(m->arena);
	bool parts = stream_lanes(pair[0].from) % stream_lanes(pair[0].to) == 0 &&
	        type_regroup(m, pair[0].from, stream_lanes(pair[0].to)) == pair[0].to;
	int phase = pair[0].to == pair[0].from || parts ? 0 : 1, runs = 0, run = 0;
	for (int r = 0; r < readers; r++, run++) {
		const char *comma = r ? ", " : "";
		text_add(&phases, "%s%d", comma, phase + r);
		text_add(&types, "%s%s", comma, pair[r].to->text);
		if (r && pair[r].to != pair[r - 1].to) {
			text_add(&sizes, "%d, ", run);
			runs++;
			run = 0;
		}
	}
	text_add(&sizes, "%d", run);
	for (; runs < 7; runs++)
		text_add(&sizes, ", 0");
	convert_load(&t, 0, pair);
	text_add(out,
	        "%%b:%d = \"stream.buffer\"(%%a0) {buffer_elements = %" PRId64
	        " : i64, service_rounds = array<i64: %s>, result_segment_sizes = array<i32: %s>, "
	        "shared_loops = %d : i64, tensor = %s} : (%s) -> (%s)\n",
	        readers, pair[0].box.elements, phases.data, sizes.data, pair[0].box.shared,
	        pair[0].tensor->text, pair[0].from->text, types.data);
	for (int r = 0; r < readers; r++)
		convert_store(&t, r, text_format(m->arena, "%%b#%d", r), pair[r].to);
	convert_end(&t);
}

/* Chunks, concat, join, reassociate and a buffer. */
static inline bool routes_module(struct text *out)
{
	size_t size = 0;
	const char *reason,
	        *text = file_read(out->arena, STC_SOURCE_DIR "/tests/golden/dumps/from_routes.mlir",
	                &size, &reason);
	text_add_bytes(out, text, size);
	return text;
}

#endif
