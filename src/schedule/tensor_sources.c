/* Computes where operands of kernels come from, and the orders in which memory and the matmul
 * engine deliver tensors. */
#include "ports/memory_image.h"
#include "schedule/tensor_sources.h"
#include "ir/launch_tokens.h"
#include "ir/workload.h"

/* most elements of a tensor that is cached on chip rather than read repeatedly */
#define ON_CHIP_MAX_ELEMENTS 16384
/* least elements that caching it saves: below that it is read repeatedly */
#define REREAD_MIN_ELEMENTS 16384

struct tensor_source *tensor_source_of(const struct value *value)
{
	return value->data;
}

const struct value *loop_yield_of(const struct value *value)
{
	const struct op *loop = value->def ? value->def : value->block->parent;
	if (!loop || loop->code != OP_FOR)
		return value;
	int carried = value->def ? value->index : value->index - 1;
	return carried < 0 ? value : loop->region[0]->last->operand[carried];
}

bool loop_collects(const struct op *loop, int carried)
{
	const struct op *def = loop->region[0]->last->operand[carried]->def;
	return def && def->code == OP_INSERT_LAYER;
}

bool loop_streams_stack(const struct op *loop, int carried)
{
	if (!loop_collects(loop, carried))
		return false;
	for (const struct op *op = loop->next; op; op = op->next)
		if (op->code == OP_LAYER_EXTRACT && op->operand[0] == loop->result[carried])
			return false;
	return true;
}

const struct type *stream_tensor(const struct value *stream)
{
	const struct value *value = stream;
	/* carried by a rolled layer: its initial value has the same tensor */
	while (!value->def) {
		const struct op *loop = value->block->parent;
		value = loop->operand[2 + value->index];
	}
	if (value->def->code == OP_FOR)
		return stream_tensor(value->def->operand[3 + value->index]);
	if (value->def->code == OP_SEQUENTIAL)
		return attr_get(value->def, KEY_TENSORS)->items[value->index].value->type;
	return attr_get(value->def, KEY_TENSOR)->type;
}

const struct type *natural_order(struct module *module, const struct type *tensor)
{
	return natural_order_to(module, tensor, NULL, PORT_BITS);
}

/* stream.dims of dimension d: `most` tiles of `tile` points beginning with `first`, or a run-time
 * number of them (trip); words have at most `word` points. */
struct points {
	int64_t first, tile, most, word;
	const struct run_time_trip *trip, *each; /* each: run-time number of points in a tile */
};

static struct points points_of(struct arena *arena, const struct attr *dims, int d, int64_t extent)
{
	const struct attr *dim = dims ? dims->items[d].value : NULL;
	const struct attr *symbol = dim ? attr_item(dim, KEY_SYMBOL) : NULL;
	struct points points = { .tile = 1, .most = extent, .word = INT64_MAX };
	struct run_time_trip trip = { .tile = 1, .most = extent };
	if (!dim || (dim->kind == ATTR_STRING && !*dim->text))
		return points;
	if (dim->kind == ATTR_STRING)
		trip.symbol = dim->text;
	else if (symbol)
		trip.symbol = symbol->text;
	if (dim->kind == ATTR_DICTIONARY) {
		points = (struct points){ attr_item(dim, KEY_FIRST)->integer,
			attr_item(dim, KEY_TILE)->integer, attr_item(dim, KEY_MOST)->integer,
			attr_item_integer(dim, KEY_MAX_WORD, INT64_MAX), NULL, NULL };
		trip.tile = points.tile;
		trip.most = points.most;
		trip.plus = symbol ? attr_item(dim, KEY_PLUS)->integer : 0;
	}
	if (trip.symbol && points.most > 1)
		points.trip = arena_copy(arena, &trip, sizeof trip);
	if (dim->kind == ATTR_DICTIONARY && attr_item(dim, KEY_BOUNDED_TILES) && points.tile > 1) {
		const struct run_time_trip each = {
			.symbol = trip.symbol, .plus = trip.plus, .tile = 1, .most = points.tile
		};
		points.each = arena_copy(arena, &each, sizeof each);
	}
	return points;
}

int64_t *narrowed_rows(struct arena *arena, int results, const int64_t *rows, int wide, int count)
{
	int64_t *narrow = affine_rows(arena, count, results);
	for (int r = 0; r < results; r++)
		for (int i = 0; i < count; i++)
			narrow[r * (count + 1) + i] = rows[r * (wide + 1) + i];
	for (int r = 0; r < results; r++)
		narrow[r * (count + 1) + count] = rows[r * (wide + 1) + wide];
	return narrow;
}

/* Rows of the second-last dimension that fit a word in addition, where the word holds complete
 * rows. */
static int64_t word_rows(const struct points *points, int64_t extent, int64_t most)
{
	int64_t rows = 1;
	int64_t last = points->trip ? 1 : points->most;
	last = points->tile > 1 ? points->tile : last;
	most = most < points->word ? most : points->word;
	while (2 * rows <= most && last % (2 * rows) == 0 && points->first % (2 * rows) == 0 &&
	        extent % (2 * rows) == 0)
		rows *= 2;
	return rows;
}

/* The largest power of two of elements that fills a word of at most `most` and divides the last
 * dimension. */
static int64_t word_lanes(const struct points *points, int64_t most)
{
	int64_t lanes = 1;
	int64_t last = points->tile > 1 ? points->tile : points->most;
	most = most < points->word ? most : points->word;
	while (2 * lanes <= most && last % (2 * lanes) == 0 && points->first % (2 * lanes) == 0)
		lanes *= 2;
	return lanes;
}

/* The row-major order while its loops are added, outermost first. */
struct natural_loops {
	int count, wide; /* loops so far; room for as many */
	int64_t *trip, *step, *rows;
	const struct run_time_trip **run_time;
};

static void add_natural_loop(struct natural_loops *loops, int dim, int64_t trip, int64_t step)
{
	loops->rows[dim * (loops->wide + 1) + loops->count] = 1;
	loops->trip[loops->count] = trip;
	loops->step[loops->count++] = step;
}

/* The loops over a dimension in words of `word` points: over its tiles, and over the words of a
 * tile. */
static void add_natural_dim(
        struct natural_loops *loops, int dim, const struct points *points, int64_t word)
{
	bool tiled = points->tile > 1;
	loops->rows[dim * (loops->wide + 1) + loops->wide] = points->first;
	if (tiled) {
		loops->run_time[loops->count] = points->trip;
		add_natural_loop(loops, dim, points->most, points->tile);
		loops->run_time[loops->count] = points->each;
	} else if (word == 1) {
		loops->run_time[loops->count] = points->trip;
	}
	add_natural_loop(loops, dim, (tiled ? points->tile : points->most) / word, word);
}

const struct type *natural_order_to(
        struct module *module, const struct type *tensor, const struct attr *dims, int64_t bits)
{
	struct arena *arena = module->arena;
	int rank = tensor->rank;
	int results = rank ? rank : 1;
	const struct type *scalar = type_scalar(tensor);
	struct points points = rank ? points_of(arena, dims, rank - 1, tensor->shape[rank - 1])
	                            : (struct points){ .tile = 1, .most = 1, .word = 1 };
	int64_t most = bits / type_bits(scalar);
	int64_t lanes = word_lanes(&points, most);
	int64_t more = 1;
	if (rank > 1 && lanes == tensor->shape[rank - 1]) {
		most = most < points.word ? most : points.word;
		points = points_of(arena, dims, rank - 2, tensor->shape[rank - 2]);
		more = word_rows(
		        &points, tensor->shape[rank - 2], bits > PORT_BITS ? most / lanes : 1);
	}
	int64_t *shape = ARENA_ARRAY(arena, int64_t, rank + 1);
	struct natural_loops loops = { .wide = 2 * rank,
		.trip = ARENA_ARRAY(arena, int64_t, 2 * rank + 1),
		.step = ARENA_ARRAY(arena, int64_t, 2 * rank + 1),
		.rows = affine_rows(arena, 2 * rank, rank + 1),
		.run_time = ARENA_ARRAY(arena, const struct run_time_trip *, 2 * rank + 1) };
	for (int d = 0; d < rank; d++) {
		int64_t word = d == rank - 2 ? more : 1;
		shape[d] = d == rank - 1 ? lanes : word;
		points = points_of(arena, dims, d, tensor->shape[d]);
		add_natural_dim(&loops, d, &points, shape[d]);
	}
	const struct type *tile =
	        lanes * more == 1 ? scalar : type_shaped(module, TYPE_VECTOR, rank, shape, scalar);
	return type_canonical(module, tile,
	        &(struct itensor){ .dims = loops.count,
	                .trip = loops.trip,
	                .step = loops.step,
	                .run_time = loops.run_time,
	                .map = { loops.count, results,
	                        narrowed_rows(
	                                arena, results, loops.rows, loops.wide, loops.count) } });
}

enum operand_location *operand_locations(struct arena *arena, const struct op *kernel)
{
	enum operand_location *operand_location =
	        ARENA_ARRAY(arena, enum operand_location, kernel->operands + 1);
	for (int j = 0; j < kernel->operands; j++) {
		const struct tensor_source *tensor_source = tensor_source_of(kernel->operand[j]);
		operand_location[j] = tensor_source->ordered ? LOCATION_ROW_MAJOR : LOCATION_PACKED;
		if (tensor_source->kind != SOURCE_MEMORY)
			operand_location[j] = LOCATION_ON_CHIP;
	}
	return operand_location;
}

bool is_only_stored(const struct op *kernel)
{
	const struct tensor_source *tensor_source = tensor_source_of(kernel->result[0]);
	return tensor_source && tensor_source->stored && !tensor_source->read;
}

bool is_cached_on_chip(double elements, double once)
{
	return once <= ON_CHIP_MAX_ELEMENTS && elements - once >= REREAD_MIN_ELEMENTS;
}

int64_t contract_result_lanes(
        struct module *module, const struct contract *contract, const struct type *tensor)
{
	int64_t own = stream_lanes(natural_order(module, tensor));
	int64_t most = contract->lanes;
	return own < most ? own : most;
}

struct order order_of_contract(struct module *module, const struct op *op)
{
	struct contract contract;
	INVARIANT(module->guard, contract_of(op, &contract),
	        "a contraction whose operands do not fit together");
	int64_t lanes = contract_result_lanes(module, &contract, op->result[0]->type);
	int64_t tile = token_tile(contract.tokens, contract.token_symbol);
	int64_t row = contract.outputs;
	if (contract.tokens == 1)
		return order_of_tensor(op->result[0]->type);
	const struct order_loop loop[4] = { { contract.tokens / tile, tile * row },
		{ row / lanes, lanes }, { tile, row }, { lanes, 1 } };
	return order_of_loops(4, loop);
}

struct order order_of_group_operand(struct module *module, const struct op *op, int operand)
{
	struct contract contract;
	INVARIANT(module->guard, contract_of(op, &contract),
	        "a contraction whose operands do not fit together");
	const struct type *tensor = op->operand[operand]->type;
	int64_t tile = token_tile(contract.tokens, contract.token_symbol);
	int64_t row = type_elements(tensor) / contract.tokens;
	int64_t each = row / contract.groups;
	const struct order_loop loop[4] = { { contract.tokens / tile, tile * row },
		{ contract.groups, each }, { tile, row }, { each, 1 } };
	return contract.tokens > 1 ? order_of_loops(4, loop) : order_of_tensor(tensor);
}

int64_t weights_bits(const struct block *block, bool layer)
{
	int64_t bits = 0;
	for (const struct op *op = block->first; op; op = op->next)
		if (op->code == OP_FOR)
			bits += weights_bits(op->region[0], true);
		else if (layer && op->code == OP_CONTRACT)
			bits += type_elements(op->operand[2]->type) *
			        type_bits(type_scalar(op->operand[2]->type));
	return bits;
}

struct memory_sources {
	VEC(const struct tensor_source *) source;
};

/* Bits of what a layer's kernels read from memory besides states; `seen` has each tensor once. */
static int64_t small_operand_bits(
        struct arena *arena, const struct block *block, bool layer, struct memory_sources *seen)
{
	int64_t bits = 0;
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			bits += small_operand_bits(arena, op->region[0], true, seen);
		for (int j = 0; layer && op->code == OP_KERNEL && j < op->operands; j++) {
			const struct tensor_source *source = tensor_source_of(op->operand[j]);
			size_t i = 0;
			while (i < seen->source.count && seen->source.data[i] != source)
				i++;
			if (source->kind != SOURCE_MEMORY || source->ordered ||
			        i < seen->source.count)
				continue;
			VEC_PUSH(arena, &seen->source, source);
			bits += type_elements(source->tensor) *
			        type_bits(type_scalar(source->tensor));
		}
	}
	return bits;
}

bool states_share_weight_port(const struct platform *platform, const struct module *module,
        const struct op *main, int64_t bits)
{
	struct memory_sources seen = { 0 };
	if (!bits || !operands_share_weight_port(main))
		return false;
	int64_t small = small_operand_bits(module->arena, main->region[0], false, &seen);
	int64_t weights =
	        weights_bits(main->region[0], false) / (platform->ports - NON_ENGINE_PORTS);
	return channel_has_time(weights, small, bits);
}
