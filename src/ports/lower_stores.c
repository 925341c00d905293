/* Stores as processes. Large results and states have a memory port each; small results of one
 * element type share a collector and its port. */
#include "ports/append_internal.h"
#include "ports/lower_ports.h"
#include "ir/workload.h"
#include "ports/memory_image.h"

#define BULK_ELEMENTS 1024

static const struct type *tensor_of(const struct op *store)
{
	return attr_get(store, KEY_TENSOR)->type;
}

static bool is_shared_store(const struct op *op, const struct type *scalar)
{
	return op->code == OP_STORE && op->operands == 1 &&
	        type_scalar(op->operand[0]->type) == scalar &&
	        type_elements(tensor_of(op)) < BULK_ELEMENTS;
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

struct value *store_fifo(struct design *design, const struct op *store)
{
	const struct type *type = store->operand[0]->type;
	const struct type *narrow = store_words(design, store);
	struct value *wide = stream_fifo(design, store->operand[0]);
	struct value *fifo = wide;
	if (narrow != type) {
		fifo = design_fifo(design, "s_result", stream_word(design->module, narrow),
		        itensor_tiles(narrow->itensor));
		add_cast(design, "cast", wide, fifo, type);
	}
	return fifo;
}

/* segments of all layers, one after another from image element `offset` on; returns how many */
static int store_segments(struct design *design, const struct op *store, const struct image *image,
        int64_t offset, const struct attr **segment)
{
	const struct attr *results = attr_get(store, KEY_RESULT);
	int64_t elements = image->words * (image->order.lanes + image->padding);
	int count = 0;
	for (int l = 0; l < results->count; l++)
		if (results->integers[l] >= 0)
			segment[count++] = image_segment(design,
			        &(struct segment_place){
			                true, (int)results->integers[l], offset + l * elements },
			        image, 0, image->order.lanes);
	return count;
}

/* packs words to the width of a port, which then shares an adapter of the engine's */
static struct value *full_words(struct design *design, struct value *from, int64_t words)
{
	struct module *module = design->module;
	const struct type *word = from->type->element;
	const struct type *scalar = type_scalar(word);
	int64_t lanes = PORT_BITS / type_bits(scalar);
	int64_t own = type_lanes(word);
	if (design->layers || own >= lanes || lanes % own ||
	        !operands_share_weight_port(design->source))
		return from;
	struct value *to =
	        design_fifo(design, "s_full", type_shaped(module, TYPE_VECTOR, 1, &lanes, scalar),
	                (words * own + lanes - 1) / lanes);
	add_pack(design, from, to, words);
	return to;
}

static void lower_own(struct design *design, const struct op *store)
{
	struct module *module = design->module;
	struct value *fifo = store_fifo(design, store);
	struct image image = image_of(module->arena,
	        sequence_merged(module->arena,
	                sequence_of_type(
	                        module->arena, tensor_of(store), store_words(design, store))));
	int layers = attr_get(store, KEY_RESULT)->count;
	const struct attr **segment = ARENA_ARRAY(module->arena, const struct attr *, layers);
	const char *name = text_format(module->arena, "r%d", design->serial++);
	image.padding = memory_lanes(image.order.lanes) - image.order.lanes;
	int count = store_segments(design, store, &image, 0, segment);
	fifo = full_words(design, fifo, image.words);
	int64_t words = (image.words * image.order.lanes + type_lanes(fifo->type->element) - 1) /
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

/* one of the results that share a collector */
static void lower_shared_store(struct shared_port *c, const struct op *store)
{
	struct process *p = &c->process;
	struct design *design = p->design;
	struct module *module = design->module;
	const struct type *type = store->operand[0]->type;
	struct image image = image_of(module->arena,
	        sequence_merged(
	                module->arena, sequence_of_type(module->arena, tensor_of(store), type)));
	int layers = attr_get(store, KEY_RESULT)->count;
	const struct attr **segment = ARENA_ARRAY(module->arena, const struct attr *, layers);
	int count = store_segments(design, store, &image, c->elements, segment);
	for (int i = 0; i < count; i++)
		VEC_PUSH(module->arena, &c->segments, segment[i]);
	int64_t elements = image.words * image.order.lanes;
	struct value *fifo = stream_fifo(design, store->operand[0]);
	struct value *source = fifo;
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
		if (op->code != OP_STORE)
			continue;
		const struct type *scalar = type_scalar(op->operand[0]->type);
		if (!is_shared_store(op, scalar) || map_get(done, scalar->text))
			continue;
		map_set(done, scalar->text, design);
		lower_collector(design, all, scalar);
	}
}

static bool lower_own_block(struct design *design, const struct block *body)
{
	bool good = true;
	for (const struct op *op = body->first; op; op = op->next) {
		design_begin(design, op);
		if (op->code == OP_FOR) {
			design->layers = attr_get(op->operand[1]->def, KEY_VALUE)->integer;
			good = lower_own_block(design, op->region[0]) && good;
			design->layers = 0;
		}
		if (op->code != OP_STORE || is_shared_store(op, type_scalar(op->operand[0]->type)))
			continue;
		if (op->operands == 2)
			good = lower_append(design, op) && good;
		else
			lower_own(design, op);
	}
	design_begin(design, NULL);
	return good;
}

bool lower_stores(struct design *design, struct block *body)
{
	struct map done = map_new(design->module->arena);
	lower_collectors(design, body, body, &done);
	return lower_own_block(design, body);
}
