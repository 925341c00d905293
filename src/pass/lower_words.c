/* A unit's weights and their scales: how they lie in memory, and the processes that bring them in the order of use. */
#include "pass/unit.h"

#define PREFETCH_WORDS 512    /* of a slice: what its port delivers while the unit waits for numbers */
#define PREFETCH_URAM 4096    /* the same, where there are URAMs, which have as many words */
#define PREFETCH_TILES 3      /* so many times of it where tiles of tokens use each word for longer than memory takes to bring it: they are there when a head of one row begins, which takes a word a cycle; */
#define HEAD_SHARE 48         /* where its words are one part in so many of all cycles; else the URAMs are worth more elsewhere */
#define SCALE_LANES 32        /* f16 in a word of a port: the scales of all slices */

/* slice: the first of those that are brought together; -1: scales of all. */
static int64_t words_of(const struct phase *phase, int slice)
{
	return phase->contract.groups * ((phase->blocks - 1) * phase->block + phase_rows(phase, slice));
}

/* Blocks of a phase that have as many rows each. */
struct part {
	int64_t first, blocks, rows;
};

/* All blocks, or the full ones and the last. */
static int parts_of(const struct phase *phase, int slice, struct part part[2])
{
	int64_t rows = phase_rows(phase, slice);
	bool ragged = rows < phase->block && phase->blocks > 1;
	part[0] = (struct part){0, phase->blocks - ragged, ragged ? phase->block : rows};
	part[1] = (struct part){phase->blocks - 1, 1, rows};
	return 1 + (ragged && rows > 0);
}

/* Their words in the order of use; `each` numbers of the tensor for a row and group. */
static struct image image_in_order(const struct unit *unit, const struct phase *phase, const struct part *part, int64_t each, int64_t lanes)
{
	struct arena *arena = unit->design->module->arena;
	const int64_t trip[3] = {part->blocks, phase->contract.groups, part->rows}, rows = unit->slices;
	const int64_t stride[3] = {phase->block * rows * each, phase->contract.outputs * each, rows * each};
	struct sequence order = {.dims = 3, .trip = arena_copy(arena, trip, sizeof trip), .stride = arena_copy(arena, stride, sizeof stride), .lanes = lanes, .lane_stride = 1};
	order.offset = part->first * stride[0];
	return image_of(arena, order);
}

/* Outputs from the part's first row on. */
static int64_t outputs_from(const struct unit *unit, const struct phase *phase, const struct part *part)
{
	return phase->contract.outputs - part->first * phase->block * unit->slices;
}

/* `layer`: of the phase's weights or scales; `offset`: where it begins in the port's buffer. */
typedef const struct attr *segment_of(const struct unit *unit, const struct phase *phase, const struct part *part, int layer, int slice, int64_t offset);

/* A word of weights is one group of the slice's row, as long as there is such a row. */
static const struct attr *weight_segment(const struct unit *unit, const struct phase *phase, const struct part *part, int layer, int slice, int64_t offset)
{
	const struct contract *contract = &phase->contract;
	struct image image = image_in_order(unit, phase, part, contract->size, contract->size);
	int64_t condition[] = {phase->block * unit->slices, 0, unit->slices, 0, outputs_from(unit, phase, part) - slice};
	image.order.offset += slice * contract->size;
	image.order.conditions = 1;
	image.order.condition = condition;
	return image_segment(unit->design, false, contract->weight[layer]->index, &image, 0, contract->size, offset);
}

/* A word of scales is one for each slice. */
static const struct attr *scale_segment(const struct unit *unit, const struct phase *phase, const struct part *part, int layer, int slice, int64_t offset)
{
	const struct contract *contract = &phase->contract;
	struct image image = image_in_order(unit, phase, part, 1, SCALE_LANES);
	int64_t condition[] = {phase->block * unit->slices, 0, unit->slices, 1, outputs_from(unit, phase, part), 0, 0, 0, 1, unit->slices};
	(void)slice;
	image.order.conditions = 2;
	image.order.condition = condition;
	return image_segment(unit->design, false, contract->scale[layer]->index, &image, 0, SCALE_LANES, offset);
}

struct words {
	int ports;                /* side by side, whose words come in step */
	int slice;                /* the first that they are for; -1: all */
	struct value **port, **out;
	int parts;                /* of a port's words, a FIFO each */
	int first;                /* phase whose words begin at `base`; each layer's are `pitch` behind those of the one before */
	int64_t base, pitch;
};

static int64_t words_between(const struct unit *unit, int slice, int first, int end)
{
	int64_t words = 0;
	for (int i = first; i < end; i++)
		words += words_of(&unit->phases.data[i], slice);
	return words;
}

/* What the processes that a scaler serves take of a word of scales. */
static struct value *part_of(const struct unit *unit, struct process *p, struct value *word, struct scaled of)
{
	struct value **piece = ARENA_ARRAY(p->module->arena, struct value *, of.end - of.first);
	const struct type *scalar = word->type->element;
	for (int i = of.first; i < of.end; i++)
		piece[i - of.first] = make_op(p, OP_SPLIT_LANES, vector_of(p->module, scalar, unit->products), 2, (struct value *[2]){word, make_index(p, i)});
	return make_op(p, OP_JOIN_LANES, vector_of(p->module, scalar, (of.end - of.first) * unit->products), of.end - of.first, piece);
}

/* Words of phases that follow each other in memory. */
static void add_words(const struct unit *unit, struct process *p, int first, int end, void *context)
{
	const struct words *w = context;
	struct value *counter[2] = {process_loop(p, words_between(unit, w->slice, first, end)), p->layer};
	const int64_t step[2] = {1, w->pitch};
	process_pipeline(p, 1);
	struct value *address = make_address(p, 2, counter, step, w->base + p->layers_before * w->pitch + words_between(unit, w->slice, w->first, first));
	for (int i = 0; i < w->ports; i++) {
		struct value *word = make_load(p, w->port[i], address);
		for (int k = 0; k < w->parts; k++)
			make_push(p, NULL, w->parts > 1 ? part_of(unit, p, word, unit_scaled(unit, k)) : word, w->out[i * w->parts + k]);
	}
	process_close(p, 1);
}

/* Phases of one loop: their words of one layer follow each other, then those of the next layer. */
static void add_run(const struct unit *unit, struct process *p, struct words *words, int first, int end)
{
	int64_t layers = unit->phases.data[first].layers;
	words->first = first;
	words->pitch = words_between(unit, words->slice, first, end);
	unit_walk_loop(unit, p, first, true, add_words, words);
	words->base += words->pitch * (layers ? layers : 1);
}

/* Has the last phase one token, those before it many, and is it worth mention beside them? */
static bool ends_with_row(const struct unit *unit)
{
	const struct phase *last = &unit->phases.data[unit->phases.count - 1];
	int64_t cycles = 0;
	for (const struct phase *phase = unit->phases.data; phase < last; phase++)
		cycles += words_of(phase, -1) * phase->words * phase->tiles * (phase->layers ? phase->layers : 1);
	return unit->abreast > UNIT_LANES && !unit->phases.data[0].contract.rows && last->tile == 1 && words_of(last, -1) * HEAD_SHARE >= cycles;
}

/* The buffer of a port: the words of all phases, layer by layer; as many as those that come in step with it have. */
static void add_buffer(const struct unit *unit, const char *name, const struct type *word, int slice, int first_slice, segment_of *segment)
{
	struct arena *arena = unit->design->module->arena;
	VEC(const struct attr *) segments = {0};
	int64_t elements = 0;
	for (int first = 0, end; first < (int)unit->phases.count; first = end) {
		end = unit_loop_end(unit, first);
		for (int layer = 0; layer < unit->phases.data[first].layers || !layer; layer++)
			for (int i = first; i < end; i++) {
				const struct phase *phase = &unit->phases.data[i];
				struct part part[2];
				for (int n = 0, parts = parts_of(phase, first_slice, part); n < parts; n++) {
					VEC_PUSH(arena, &segments, segment(unit, phase, &part[n], phase->contract.layers ? layer : 0, slice, elements));
					elements += part[n].blocks * phase->contract.groups * part[n].rows * type_elements(word);
				}
			}
	}
	design_buffer(unit->design, name, word, elements / type_elements(word), (int)segments.count, segments.data);
}

/* Ports that read the words of all phases, and a FIFO of each.  number: of the first. */
struct loader {
	const char *name;
	const struct type *word;
	int number, ports;
	segment_of *segment;
	int parts;                /* of a word: where it has several, a FIFO for each process that hands scales out */
};

int64_t weights_ahead(const struct platform *platform)
{
	return platform_total(platform).uram > 0 ? PREFETCH_URAM : PREFETCH_WORDS;
}

static struct value *ahead_fifo(const struct unit *unit, const char *name, const struct type *word)
{
	struct design *design = unit->design;
	bool uram = platform_total(design->context->platform).uram > 0;
	struct value *fifo = unit_fifo(unit, name, word, weights_ahead(design->context->platform) * (uram && ends_with_row(unit) ? PREFETCH_TILES : 1));
	attr_set(design->module, fifo->def, "stream.ahead", attr_unit(design->module));
	design_prefetch(design, fifo);
	return fifo;
}

/* fifo: [ports * parts]. */
static void load_in_order(const struct unit *unit, const struct loader *loader, struct value **fifo)
{
	struct design *design = unit->design;
	struct arena *arena = design->module->arena;
	int outs = loader->ports * loader->parts;
	const char **name = ARENA_ARRAY(arena, const char *, loader->ports);
	for (int i = 0; i < outs; i++) {
		int port = i / loader->parts;
		struct scaled of = unit_scaled(unit, i % loader->parts);
		name[port] = loader->number < 0 ? loader->name : text_format(arena, "%s%d", loader->name, loader->number + port);
		fifo[i] = ahead_fifo(unit, name[port], loader->parts > 1 ? vector_of(design->module, loader->word->element, (of.end - of.first) * unit->products) : loader->word);
	}
	struct process p = unit_process(unit, text_format(arena, "load_%s", name[0]));
	struct words words = {.ports = loader->ports, .slice = loader->number, .parts = loader->parts, .port = ARENA_ARRAY(arena, struct value *, loader->ports), .out = ARENA_ARRAY(arena, struct value *, outs)};
	for (int i = 0; i < outs; i++) {
		if (i % loader->parts == 0)
			words.port[i / loader->parts] = process_argument(&p, design_port(design, name[i / loader->parts], loader->word, name[i / loader->parts], false), loader->ports > 1 ? text_format(arena, "m%d", i) : "m");
		words.out[i] = process_argument(&p, fifo[i], outs > 1 ? text_format(arena, "y%d", i) : "y");
	}
	for (int first = 0, end; first < (int)unit->phases.count; first = end) {
		end = unit_loop_end(unit, first);
		add_run(unit, &p, &words, first, end);
	}
	process_finish(&p);
	for (int i = 0; i < loader->ports; i++)
		add_buffer(unit, name[i], loader->word, loader->number < 0 ? 0 : loader->number + i, loader->number, loader->segment);
}

int unit_loaded_with(const struct unit *unit, int slice)
{
	if (slice < 0)
		return slice;
	return slice < unit->alone ? 0 : slice - (slice - unit->alone) % unit->together;
}

struct value **load_weights(const struct unit *unit)
{
	const struct contract *first = &unit->phases.data[0].contract;
	const struct type *word = type_shaped(unit->design->module, TYPE_VECTOR, 1, &first->size, first->weight[0]->type->element);
	struct value **fifo = ARENA_ARRAY(unit->design->module->arena, struct value *, unit->slices);
	for (int s = 0, end; s < unit->slices; s = end) {
		for (end = s + 1; end < unit->slices && unit_loaded_with(unit, end) == s; end++)
			;
		load_in_order(unit, &(struct loader){"unit", word, s, end - s, weight_segment, 1}, &fifo[s]);
	}
	return fifo;
}

struct value **load_scales(const struct unit *unit)
{
	struct module *module = unit->design->module;
	const struct loader loader = {"unit_scales", vector_of(module, type_float(module, 16), SCALE_LANES), -1, 1, scale_segment, unit_scalers(unit)};
	struct value **scales = ARENA_ARRAY(module->arena, struct value *, loader.parts);
	load_in_order(unit, &loader, scales);
	return scales;
}
