/* Stores as processes. Large results and states have memory ports of their own, several in parallel
 * if words come faster than a port takes them. Small results of one element type share a collector
 * and its port. */
#include "ports/append_internal.h"
#include "ports/lower_ports.h"
#include "ir/workload.h"
#include "ports/memory_image.h"
#include "predict/store_width.h"
#include <math.h>

/* port words of a result that is worth several ports: less than that takes no longer than the
 * latency of memory */
#define PARALLEL_WORDS 1024
/* writing the last results may take one part in so many of a launch */
#define LAST_RESULTS 64
/* results take 1/CHANNELS_SHARE of the memory channels at most, since operands need the others */
#define CHANNELS_SHARE 2
/* most results that leave in full words where the ports that read take all adapters */
#define FULL_RESULTS 4
#define FEW_ARGUMENTS 4

static const struct type *tensor_of(const struct op *store)
{
	return attr_get(store, KEY_TENSOR)->type;
}

static bool is_small_store(const struct design *design, const struct op *op)
{
	return op->code == OP_STORE && op->operands == 1 &&
	        type_elements(tensor_of(op)) < design->own_elements;
}

static bool is_shared_store(const struct shared_port *shared, const struct op *op)
{
	return is_small_store(shared->process.design, op) &&
	        type_scalar(op->operand[0]->type) == shared->scalar;
}

/* type of the stored words, at most as wide as a memory port: equal parts of the stream's */
const struct type *store_words(struct design *design, const struct op *store)
{
	const struct type *type = store->operand[0]->type;
	int64_t most = PORT_BITS / type_bits(type_scalar(type));
	if (stream_lanes(type) <= most)
		return type;
	while (stream_lanes(type) % most)
		most--;
	return type_regroup(design->module, type, most);
}

/* the FIFO that brings the result in such words, equal parts of the stream's */
static struct value *fifo_of_words(
        struct design *design, const struct op *store, const struct type *narrow)
{
	const struct type *type = store->operand[0]->type;
	struct value *wide = stream_fifo(design, store->operand[0]);
	struct value *fifo = wide;
	if (narrow != type) {
		fifo = design_fifo(design, "s_result", stream_word(design->module, narrow),
		        itensor_tiles(narrow->itensor));
		add_cast(design, "cast", wide, fifo, type);
	}
	return fifo;
}

struct value *store_fifo(struct design *design, const struct op *store)
{
	return fifo_of_words(design, store, store_words(design, store));
}

/* what a memory port writes of a result */
struct stored {
	const struct op *store;
	struct image image;
	int64_t offset;      /* image element at which it begins */
	int64_t from, lanes; /* its lanes of each word of the image */
};

/* segments of all layers, one after another; returns how many */
static int store_segments(
        struct design *design, const struct stored *stored, const struct attr **segment)
{
	const struct attr *results = attr_get(stored->store, KEY_RESULT);
	int64_t elements = stored->image.words * (stored->lanes + stored->image.padding);
	int count = 0;
	for (int l = 0; l < results->count; l++)
		if (results->integers[l] >= 0)
			segment[count++] = image_segment(design,
			        &(struct segment_place){ true, (int)results->integers[l],
			                stored->offset + l * elements },
			        &stored->image, stored->from, stored->lanes);
	return count;
}

/* Ports that need an adapter. A shared loader of full words reads little, and shares one with
 * another port where adapters are short (assign_axi_bundles.c). */
static int64_t adapters_taken(const struct design *design)
{
	int64_t taken = (int64_t)design->port_attrs.count;
	for (size_t i = 0; i < design->port_attrs.count; i++) {
		const struct attr *by = attr_item(design->port_attrs.data[i], KEY_STREAM_LOADER);
		const struct type *words = design->block->argument[i]->type->element;
		taken -= by && text_same(by->text, "shared") && type_bits(words) == PORT_BITS;
	}
	return taken;
}

/* Do the ports that read few arguments take all adapters? Results then leave in full words, which
 * share one. With many arguments the search gives some of them fewer ports. */
static bool reads_take_all(const struct design *design)
{
	return design->source->region[0]->arguments <= FEW_ARGUMENTS &&
	        workload_of(design->source) == WORKLOAD_NONE && !design->layers &&
	        adapters_taken(design) >= design->context->platform->ports;
}

/* packs words to the width of a port, which then shares an adapter of the engine's, or one of those
 * that read */
static struct value *full_words(struct design *design, struct value *from, int64_t words)
{
	struct module *module = design->module;
	const struct type *word = from->type->element;
	const struct type *scalar = type_scalar(word);
	int64_t lanes = PORT_BITS / type_bits(scalar);
	int64_t own = type_lanes(word);
	if (design->layers || own >= lanes || lanes % own ||
	        (!operands_share_weight_port(design->source) && !reads_take_all(design)))
		return from;
	struct value *to =
	        design_fifo(design, "s_full", type_shaped(module, TYPE_VECTOR, 1, &lanes, scalar),
	                (words * own + lanes - 1) / lanes);
	add_pack(design, from, to, words);
	return to;
}

/* Writes what `fifo` brings through a port of its own. */
static void lower_port(struct design *design, struct stored *stored, struct value *fifo)
{
	struct module *module = design->module;
	int layers = attr_get(stored->store, KEY_RESULT)->count;
	const struct attr **segment = ARENA_ARRAY(module->arena, const struct attr *, layers);
	const char *name = text_format(module->arena, "r%d", design->serial++);
	stored->image.padding = memory_lanes(stored->lanes) - stored->lanes;
	int count = store_segments(design, stored, segment);
	int64_t words =
	        (stored->image.words * stored->lanes + type_lanes(fifo->type->element) - 1) /
	        type_lanes(fifo->type->element);
	const struct type *word = vector_of(module, type_scalar(fifo->type->element),
	        memory_lanes(type_lanes(fifo->type->element)));
	design_buffer(design, name, word, words * layers, attr_array(module, count, segment));
	struct value *port = design_port(design, name, word, name, true);
	struct process p = process_new(design, "store");
	struct value *memory = process_argument(&p, port, "m");
	struct value *in = process_argument(&p, fifo, "x");
	struct value *counter[2];
	process_layers(&p);
	int opened = process_nest(&p, 1, &words, 1, counter);
	counter[1] = p.layer;
	const int64_t pitch[2] = { 1, words };
	struct value *place = make_address(&p, 2, counter, pitch, 0);
	make_store(&p, word_of_lanes(&p, make_pop(&p, NULL, in), word), memory, place);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}

static struct image stored_image(
        struct arena *arena, const struct op *store, const struct type *words)
{
	return image_of(
	        arena, sequence_merged(arena, sequence_of_type(arena, tensor_of(store), words)));
}

/* How the elements of a result come. */
struct result_arrival {
	double elements, cycles; /* of a launch */
	double last;             /* elements that come at its end */
};

/* From a kernel that sums up, the results of a block come together; others come evenly. */
static struct result_arrival arrival_of(const struct op *store)
{
	const struct type *type = store->operand[0]->type;
	const struct op *maker = store->operand[0]->def;
	double tiles = (double)itensor_tiles(type->itensor);
	double elements = tiles * (double)stream_lanes(type);
	struct result_arrival arrival = { elements, tiles, 0 };
	if (maker->code != OP_KERNEL)
		return arrival;
	const struct kernel *kernel = maker->kernel;
	double points = 1;
	for (int l = 0; l < kernel->loops; l++) {
		if (kernel->loop[l].reduction && !arrival.last)
			arrival.last = elements / points;
		points *= (double)kernel->loop[l].extent;
	}
	int interval = kernel->initiation_interval > 1 ? kernel->initiation_interval : 1;
	arrival.cycles = points / (double)(kernel->lanes * kernel->row_unroll) * interval;
	return arrival;
}

/* Ports that the result may have: what is left when every other result has one, and what memory
 * brings.  An engine has the others. */
static int64_t most_parts(const struct design *design, int64_t others)
{
	const struct platform *platform = design->context->platform;
	int64_t left = platform->ports - adapters_taken(design) - others;
	int64_t channels = platform->channels / CHANNELS_SHARE;
	if (workload_of(design->source) != WORKLOAD_NONE)
		return 1;
	return left < channels ? left : channels;
}

/* Type of the words that leave in equal parts through so many ports; NULL: there are none. */
static const struct type *words_for(struct design *design, const struct op *store, int ports)
{
	const struct type *type = store->operand[0]->type;
	struct store_width width = store_width(
	        design->context->platform, stream_lanes(type), type_bits(type_scalar(type)), ports);
	int64_t lanes = width.lanes * ports;
	if (!lanes || lanes == stream_lanes(type))
		return lanes ? type : NULL;
	const struct type *words = type_regroup(design->module, type, lanes);
	return words && stored_image(design->module->arena, store, words).order.row_dims ? NULL
	                                                                                 : words;
}

/* The words that are written in equal parts through as many ports, in *parts, as few as keep up;
 * NULL: one port is enough, or there are no such words. */
static const struct type *parallel_words(
        struct design *design, const struct op *store, int64_t others, int *parts)
{
	const struct type *type = store->operand[0]->type;
	int64_t bits = type_bits(type_scalar(type));
	struct result_arrival arrival = arrival_of(store);
	const struct type *best = NULL;
	double least = HUGE_VAL;
	if (type->itensor->run_time || arrival.elements * (double)bits < PARALLEL_WORDS * PORT_BITS)
		return NULL;
	for (int n = 1; n == 1 || n <= most_parts(design, others); n++) {
		double cycles =
		        store_width(design->context->platform, stream_lanes(type), bits, n).cycles;
		const struct type *words = n > 1 ? words_for(design, store, n) : NULL;
		double late = arrival.elements * cycles - arrival.cycles;
		double last = arrival.last * cycles - arrival.cycles / LAST_RESULTS;
		late = late > last ? late : last;
		if ((n > 1 && !words) || late >= least)
			continue;
		least = late;
		best = words;
		*parts = n;
		if (late <= 0)
			break;
	}
	return best;
}

/* Hands each of the FIFOs its part of every word. */
static void split_words(struct design *design, struct value *from, const struct type *words,
        struct value *const *to, int parts)
{
	struct process p = process_new(design, "split");
	struct value *in = process_argument(&p, from, "x");
	process_layers(&p);
	int opened = process_word_pipeline(&p, words);
	struct value *word = make_pop(&p, NULL, in);
	for (int i = 0; i < parts; i++) {
		struct value *out =
		        process_argument(&p, to[i], text_format(p.module->arena, "y%d", i));
		struct value *operand[2] = { word, make_index(&p, i) };
		make_push(&p, NULL, make_op(&p, OP_SPLIT_LANES, to[i]->type->element, 2, operand),
		        out);
	}
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}

static void lower_parallel(
        struct design *design, const struct op *store, const struct type *words, int parts)
{
	struct module *module = design->module;
	struct value **part = ARENA_ARRAY(module->arena, struct value *, parts);
	struct stored stored = { .store = store,
		.image = stored_image(module->arena, store, words),
		.lanes = stream_lanes(words) / parts };
	const struct type *word = vector_of(module, type_scalar(words), stored.lanes);
	for (int i = 0; i < parts; i++)
		part[i] = design_fifo(design, "s_part", word, stored.image.words);
	split_words(design, fifo_of_words(design, store, words), words, part, parts);
	for (int i = 0; i < parts; i++) {
		stored.from = i * stored.lanes;
		lower_port(design, &stored, part[i]);
	}
}

/* others: results that are stored after it */
static void lower_own(struct design *design, const struct op *store, int64_t others)
{
	int parts;
	const struct type *words = parallel_words(design, store, others, &parts);
	if (words) {
		lower_parallel(design, store, words, parts);
		return;
	}
	words = words_for(design, store, 1);
	words = words ? words : store_words(design, store);
	struct stored stored = { .store = store,
		.image = stored_image(design->module->arena, store, words),
		.lanes = stream_lanes(words) };
	struct value *fifo =
	        full_words(design, fifo_of_words(design, store, words), stored.image.words);
	lower_port(design, &stored, fifo);
}

/* one of the results that share a collector */
static void lower_shared_store(struct shared_port *c, const struct op *store)
{
	struct process *p = &c->process;
	struct design *design = p->design;
	struct module *module = design->module;
	const struct type *type = store->operand[0]->type;
	struct stored stored = { .store = store,
		.image = stored_image(module->arena, store, type),
		.offset = c->elements,
		.lanes = stream_lanes(type) };
	const struct image image = stored.image;
	int layers = attr_get(store, KEY_RESULT)->count;
	const struct attr **segment = ARENA_ARRAY(module->arena, const struct attr *, layers);
	int count = store_segments(design, &stored, segment);
	for (int i = 0; i < count; i++)
		VEC_PUSH(module->arena, &c->segments, segment[i]);
	int64_t elements = image.words * image.order.lanes;
	struct value *fifo = stream_fifo(design, store->operand[0]);
	struct value *source = fifo;
	/* It may be ready long before the results that are written first: its FIFO holds all of it,
	 * as it was made, and is not sized. */
	if (c->elements && workload_of(design->source) == WORKLOAD_NONE)
		attr_set(module, fifo->def, KEY_STREAM_FIXED_DEPTH, attr_unit(module));
	struct value *counter[2];
	if (image.order.lanes > 1) {
		source = design_fifo(design, "s_elements", c->scalar, elements);
		shared_port_cast(c, fifo, source, type);
	}
	int opened = process_nest(p, 1, &elements, 1, counter);
	counter[1] = p->layer;
	const int64_t pitch[2] = { 1, elements };
	struct value *place = make_address(p, 2, counter, pitch, c->elements);
	struct value *in = process_argument(p, source, "x");
	make_store(p, make_pop(p, NULL, in), c->port, place);
	process_close(p, opened);
	c->elements += elements * layers;
}

static void lower_collector(
        struct design *design, const struct block *body, const struct type *scalar)
{
	struct shared_port collector = { .scalar = scalar,
		.writes = true,
		.accepts = is_shared_store,
		.lower_access = lower_shared_store };
	shared_port_lower(design, body,
	        text_format(design->module->arena, "results_%s", scalar->text), &collector);
}

/* one collector for each element type of small results, in program order */
static void lower_collectors(
        struct design *design, const struct block *all, const struct block *body, struct map *done)
{
	for (const struct op *op = body->first; op; op = op->next) {
		if (op->code == OP_FOR)
			lower_collectors(design, all, op->region[0], done);
		if (!is_small_store(design, op))
			continue;
		const struct type *scalar = type_scalar(op->operand[0]->type);
		if (map_get(done, scalar->text))
			continue;
		map_set(done, scalar->text, design);
		lower_collector(design, all, scalar);
	}
}

static bool has_own_port(const struct design *design, const struct op *op)
{
	return op->code == OP_STORE && !is_small_store(design, op);
}

static int64_t count_own(const struct design *design, const struct block *body)
{
	int64_t count = 0;
	for (const struct op *op = body->first; op; op = op->next)
		count += op->code == OP_FOR ? count_own(design, op->region[0])
		                            : has_own_port(design, op);
	return count;
}

/* How large a result is that has a port of its own. Those that share one are written one after the
 * other, element by element, so where ports are left, several results, or words of several
 * elements, have their own. */
static int64_t elements_of_own(struct design *design, const struct block *body)
{
	int results = 0;
	bool words = false;
	design->own_elements = OWN_ELEMENTS;
	for (const struct op *op = body->first; op; op = op->next) {
		if (op->code != OP_STORE)
			continue;
		results++;
		words = words || stream_lanes(op->operand[0]->type) > 1;
	}
	if (results <= FULL_RESULTS && reads_take_all(design))
		return 0;
	bool left = workload_of(design->source) == WORKLOAD_NONE && (words || results > 1) &&
	        most_parts(design, count_own(design, body)) > 0;
	return left ? OWN_ELEMENTS : FEW_RESULTS;
}

/* others: the results with ports of their own that are not lowered yet */
static bool lower_own_block(struct design *design, const struct block *body, int64_t *others)
{
	bool good = true;
	for (const struct op *op = body->first; op; op = op->next) {
		design_begin(design, op);
		if (op->code == OP_FOR) {
			design->layers = attr_get(op->operand[1]->def, KEY_VALUE)->integer;
			good = lower_own_block(design, op->region[0], others) && good;
			design->layers = 0;
		}
		if (!has_own_port(design, op))
			continue;
		--*others;
		if (op->operands == 2)
			good = lower_append(design, op) && good;
		else
			lower_own(design, op, *others);
	}
	design_begin(design, NULL);
	return good;
}

bool lower_stores(struct design *design, struct block *body)
{
	struct map done = map_new(design->module->arena);
	design->own_elements = elements_of_own(design, body);
	lower_collectors(design, body, body, &done);
	int64_t others = count_own(design, body);
	return lower_own_block(design, body, &others);
}
