/* A unit's weights and their scales: how they lie in memory, and the processes that bring them in the order of use. */
#include "predict/resource.h"
#include "engine/unit.h"
#include <string.h>

#define PREFETCH_WORDS 512    /* of a slice: what its port delivers while the unit waits for numbers */
#define PREFETCH_URAM 4096    /* the same, where there are URAMs, which have as many words */
#define PREFETCH_TILES 3      /* so many times of it where tiles of tokens use each word for longer than memory takes to bring it: they are there when a head of one row begins, which takes a word a cycle; */
#define PREFETCH_DEALT 1024   /* of each slice that words are dealt to in turn, at least (place_deepen.c) */
#define BROUGHT_WORDS 16      /* of a port whose words are dealt out on another die */
#define HEAD_SHARE 48         /* where its words are one part in so many of all cycles; else the URAMs are worth more elsewhere */
#define SCALE_LANES 32        /* f16 in a word of a port: the scales of as many slices as there are ports */
#define IMAGE_LOOPS 4

/* Of a port.  slice: the first of those that are brought together; -1: scales of all. */
static int64_t words_of(const struct unit *unit, const struct phase *phase, int slice)
{
	return phase->contract.groups * ((phase->blocks - 1) * phase->block + phase_rows(phase, slice) - phase_lacks_row(unit, phase, slice)) * unit->dealt;
}

/* Blocks of a phase that have as many rows each, from `row` on. */
struct part {
	int64_t first, blocks, row, rows;
};

#define WORD_PARTS 3

/* Some blocks that are full, and the first and the last, which need not be. */
static int parts_of(const struct unit *unit, const struct phase *phase, int slice, struct part part[WORD_PARTS])
{
	int64_t rows = phase_rows(phase, slice), lacks = phase_lacks_row(unit, phase, slice);
	int64_t head = phase->start && phase->blocks > 1, tail = rows < phase->block && phase->blocks > 1;
	int parts = 0;
	if (head)
		part[parts++] = (struct part){0, 1, lacks, phase->block - lacks};
	if (phase->blocks - head - tail > 0)
		part[parts++] = (struct part){head, phase->blocks - head - tail, head ? 0 : lacks, (phase->blocks == 1 ? rows : phase->block) - (head ? 0 : lacks)};
	if (tail && rows > 0)
		part[parts++] = (struct part){phase->blocks - 1, 1, 0, rows};
	return parts;
}

/* Their words in the order of use, for each row a word of each slice that they are dealt to; `each` numbers of the tensor for a row and group, `lanes` of a word, so far apart. */
static struct image image_in_order(const struct unit *unit, const struct phase *phase, const struct part *part, int64_t each, int64_t lanes, int64_t lane_stride)
{
	struct arena *arena = unit->design->module->arena;
	const int64_t trip[IMAGE_LOOPS] = {part->blocks, phase->contract.groups, part->rows, unit->dealt}, rows = unit->slices;
	const int64_t stride[IMAGE_LOOPS] = {phase->block * rows * each, phase->contract.outputs * each, rows * each, each};
	struct sequence order = {.dims = unit->dealt > 1 ? IMAGE_LOOPS : IMAGE_LOOPS - 1, .trip = arena_copy(arena, trip, sizeof trip), .stride = arena_copy(arena, stride, sizeof stride), .lanes = lanes, .lane_stride = lane_stride};
	order.offset = part->first * stride[0] + (phase->from + part->row) * stride[2] - phase->start * each;
	return image_of(arena, order);
}

#define CONDITIONS 3

/* Adds the condition that a row is below `rows`, times `sign`, where lanes are `lane` rows apart. */
static void add_row_below(const struct unit *unit, const struct phase *phase, struct sequence *order, int64_t sign, int64_t lane, int64_t rows)
{
	if (!order->conditions)
		order->condition = ARENA_ARRAY(unit->design->module->arena, int64_t, CONDITIONS * (IMAGE_LOOPS + 2));
	int64_t *end = order->condition + order->conditions++ * (order->dims + 2);
	*end++ = sign * phase->block * unit->slices;
	*end++ = 0;
	*end++ = sign * unit->slices;
	if (unit->dealt > 1)
		*end++ = sign;
	*end++ = sign * lane;
	*end = rows;
}

/* Rows that the part's lanes, the first of which are those of `slice`, have: those in front of the first output and behind the last are padding. */
static void add_rows_there(const struct unit *unit, const struct phase *phase, const struct part *part, struct sequence *order, int64_t lane, int slice)
{
	int64_t before = (part->first * phase->block + part->row) * unit->slices + slice;
	add_row_below(unit, phase, order, 1, lane, phase_outputs(unit, phase) - before);
	if (before < phase->start)
		add_row_below(unit, phase, order, -1, lane, before - phase->start + 1);
}

/* Elements that a phase has for a group of a stack, and those of the whole stack; one that stands alone has its words side by side. */
static void set_runs(const struct unit *unit, const struct phase *phase, int slice, int64_t row_elements, struct image *image)
{
	for (int i = phase->stack, end = unit_stack_end(unit, phase->stack); end - phase->stack > 1 && i < end; i++)
		image->apart += words_of(unit, &unit->phases.data[i], slice) / phase->contract.groups * row_elements;
	image->run = image->apart ? words_of(unit, phase, slice) / phase->contract.groups * row_elements : 0;
}

/* `layer`: of the phase's weights or scales; `offset`: where it begins in the port's buffer. */
typedef const struct attr *segment_of(const struct unit *unit, const struct phase *phase, const struct part *part, int layer, int slice, int64_t offset);

/* A word of weights is one group of the slice's row, as long as there is such a row. */
static const struct attr *weight_segment(const struct unit *unit, const struct phase *phase, const struct part *part, int layer, int slice, int64_t offset)
{
	const struct contract *contract = &phase->contract;
	struct image image = image_in_order(unit, phase, part, contract->size, contract->size, 1);
	image.order.offset += slice * contract->size;
	set_runs(unit, phase, unit_loaded_with(unit, slice), contract->size, &image);
	add_rows_there(unit, phase, part, &image.order, 0, slice);
	return image_segment(unit->design, false, contract->weight[layer]->index, &image, 0, contract->size, offset);
}

/* A word of scales is one for each slice, or for each of those that are the same of their port's. */
static const struct attr *scale_segment(const struct unit *unit, const struct phase *phase, const struct part *part, int layer, int slice, int64_t offset)
{
	const struct contract *contract = &phase->contract;
	struct image image = image_in_order(unit, phase, part, 1, SCALE_LANES, unit->dealt);
	set_runs(unit, phase, -1, SCALE_LANES, &image);
	add_rows_there(unit, phase, part, &image.order, unit->dealt, 0);
	int64_t *lanes = image.order.condition + image.order.conditions++ * (image.order.dims + 2);
	(void)slice;
	lanes[image.order.dims] = 1;
	lanes[image.order.dims + 1] = unit->ports;
	return image_segment(unit->design, false, contract->scale[layer]->index, &image, 0, SCALE_LANES, offset);
}

struct outlet {               /* FIFOs that words go to in turn */
	int fifos;
	struct value **fifo;
};

struct words {
	int ports;                /* side by side, whose words come in step; */
	bool read;                /* they are read from memory, else they are FIFOs of what was */
	int slice;                /* the first that they are for; -1: all */
	struct value **port;      /* [ports] */
	int parts;                /* of a port's words, */
	struct outlet *outlet;    /* [ports][parts] */
	int first;                /* phase whose words begin at `base`; each layer's are `pitch` behind those of the one before */
	int64_t base, pitch;
};

static int64_t words_between(const struct unit *unit, int slice, int first, int end)
{
	int64_t words = 0;
	for (int i = first; i < end; i++)
		words += words_of(unit, &unit->phases.data[i], slice);
	return words;
}

/* What the processes that a scaler serves take of a word of scales. */
static struct value *part_of(const struct unit *unit, struct process *p, struct value *word, struct scaled of)
{
	struct value **piece = ARENA_ARRAY(p->module->arena, struct value *, of.end - of.first);
	const struct type *scalar = word->type->element;
	int lanes = unit->products > unit->dealt ? unit->products / unit->dealt : 1, first = of.first * unit->products / unit->dealt / lanes, end = of.end * unit->products / unit->dealt / lanes;
	for (int i = first; i < end; i++)
		piece[i - first] = make_op(p, OP_SPLIT_LANES, vector_of(p->module, scalar, lanes), 2, (struct value *[2]){word, make_index(p, i)});
	return make_op(p, OP_JOIN_LANES, vector_of(p->module, scalar, (end - first) * lanes), end - first, piece);
}

/* mine: [fifos] is it the turn of a FIFO? */
static void deal(struct process *p, const struct outlet *outlet, struct value *word, struct value *const *mine)
{
	for (int i = 0; i < outlet->fifos; i++)
		make_push(p, outlet->fifos > 1 ? mine[i] : NULL, word, outlet->fifo[i]);
}

static bool deals(const struct words *w)
{
	int most = 1;
	for (int i = 0; i < w->ports * w->parts; i++)
		most = w->outlet[i].fifos > most ? w->outlet[i].fifos : most;
	return most > 1;
}

/* Words of phases that follow each other in memory.  Those of all phases of a layer, layer after layer, are read without a break; where the phases of tiles take turns memory has time, and all loops are one datapath. */
static void add_words(const struct unit *unit, struct process *p, int first, int end, void *context)
{
	const struct words *w = context;
	bool whole = w->read && first == w->first && end == unit_loop_end(unit, first);
	int64_t all = words_between(unit, w->slice, first, end), base = w->base + p->layers_before * w->pitch + words_between(unit, w->slice, w->first, first);
	struct value *from = whole || !w->read ? NULL : p->layer ? make_address(p, 1, &p->layer, &w->pitch, base) : make_own_index(p, base);
	struct value *counter[2] = {whole ? process_loop(p, all) : process_loop_of(p, make_own_index(p, all)), whole ? p->layer : from};
	const int64_t step[2] = {1, whole ? w->pitch : 1};
	if (!whole)
		process_mark(p, KEY_STREAM_DATAPATH);
	process_pipeline(p, 1);
	struct value *mine[DEALT_MOST], *turn = deals(w) ? make_divided(p, OP_REMSI, counter[0], unit->dealt) : NULL;
	for (int i = 0; turn && i < unit->dealt; i++)
		mine[i] = make_equal(p, turn, i);
	struct value *address = w->read ? make_address(p, 2, counter, step, whole ? base : 0) : NULL;
	for (int i = 0; i < w->ports; i++) {
		struct value *word = w->read ? make_load(p, w->port[i], address) : make_take(p, NULL, w->port[i]);
		for (int k = 0; k < w->parts; k++)
			deal(p, &w->outlet[i * w->parts + k], w->parts > 1 ? part_of(unit, p, word, unit_scaled(unit, k)) : word, mine);
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
		cycles += words_of(unit, phase, -1) * phase->words * phase->tiles * (phase->layers ? phase->layers : 1);
	return unit->abreast > UNIT_LANES && !unit->phases.data[0].contract.rows && last->tile == 1 && words_of(unit, last, -1) * HEAD_SHARE >= cycles;
}

struct filling {              /* a port's buffer, as far as it is filled */
	const char *name;
	const struct type *word;
	int slice, first_slice;   /* the port's first; the first of those that come in step with it */
	segment_of *segment;
	int64_t elements, stack, above;           /* so far; where a stack begins; of a group of it */
	VEC(const struct attr *) segments;
};

static void fill_phase(const struct unit *unit, struct filling *f, const struct phase *phase, int layer)
{
	struct part part[WORD_PARTS];
	f->stack = phase->stacked ? f->stack : f->elements;
	f->above = phase->stacked ? f->above : 0;
	int64_t at = f->stack + f->above, before = f->elements;
	for (int n = 0, parts = parts_of(unit, phase, f->first_slice, part); n < parts; n++) {
		int64_t own = part[n].blocks * phase->contract.groups * part[n].rows * unit->dealt * type_elements(f->word);
		VEC_PUSH(unit->design->module->arena, &f->segments, f->segment(unit, phase, &part[n], phase->contract.layers ? layer : 0, f->slice, at));
		at += own;
		f->elements += own;
	}
	f->above += (f->elements - before) / phase->contract.groups;
}

/* The words of all phases, layer by layer; as many as those that come in step with it have. */
static void fill_buffer(const struct unit *unit, struct filling *f)
{
	for (int first = 0, end; first < (int)unit->phases.count; first = end) {
		end = unit_loop_end(unit, first);
		for (int layer = 0; layer < unit->phases.data[first].layers || !layer; layer++)
			for (int i = first; i < end; i++)
				fill_phase(unit, f, &unit->phases.data[i], layer);
	}
	design_buffer(unit->design, f->name, f->word, f->elements / type_elements(f->word), (int)f->segments.count, f->segments.data);
}

/* Ports that read the words of all phases, or FIFOs of what they read, and those that they go to. */
struct loader {
	const char *name;
	const struct type *word;
	int number, ports;        /* the first; -1: of scales */
	segment_of *segment;
	int parts;                /* of a word: where it has several, for each process that hands scales out */
	struct outlet *outlet;    /* [ports][parts] */
};

int64_t weights_ahead(const struct platform *platform)
{
	return platform_total(platform).uram > 0 ? PREFETCH_URAM : PREFETCH_WORDS;
}

static struct value *ahead_fifo(const struct unit *unit, const char *name, const struct type *word, int64_t depth)
{
	struct design *design = unit->design;
	struct value *fifo = unit_fifo(unit, name, word, depth);
	attr_set(design->module, fifo->def, KEY_STREAM_FIXED_DEPTH, attr_unit(design->module));
	design_prefetch(design, fifo);
	return fifo;
}

static int64_t depth_ahead(const struct unit *unit)
{
	const struct platform *platform = unit->design->context->platform;
	bool uram = platform_total(platform).uram > 0;
	return weights_ahead(platform) * (uram && ends_with_row(unit) ? PREFETCH_TILES : 1);
}

static const char *port_name(const struct unit *unit, const struct loader *loader, int port)
{
	return loader->number < 0 ? loader->name : text_format(unit->design->module->arena, "%s%d", loader->name, loader->number + port);
}

/* Words that are dealt to two FIFOs in turn: one is of URAMs and one of block RAMs, which dies have about as much of. */
static struct outlet add_outlet(const struct unit *unit, const char *name, const struct type *word, int fifos)
{
	struct module *module = unit->design->module;
	struct outlet outlet = {fifos, ARENA_ARRAY(module->arena, struct value *, fifos)};
	for (int i = 0; i < fifos; i++) {
		outlet.fifo[i] = ahead_fifo(unit, name, word, fifos > 1 ? PREFETCH_DEALT : depth_ahead(unit));
		if (fifos > 1)
			attr_set(module, outlet.fifo[i]->def, KEY_STREAM_INTERLEAVED_DEPTH, attr_integer(module, PREFETCH_DEALT));
	}
	if (fifos > 1 && platform_total(unit->design->context->platform).uram > 0)
		attr_set(module, outlet.fifo[0]->def, KEY_STREAM_STORAGE, attr_string(module, storage_name[STORAGE_URAM]));
	return outlet;
}

/* port: [ports], of memory or a FIFO each. */
static void bring_words(const struct unit *unit, const struct loader *loader, const char *name, struct value *const *port)
{
	struct arena *arena = unit->design->module->arena;
	struct process p = unit_process(unit, text_format(arena, "%s_%s", name, port_name(unit, loader, 0)));
	struct words words = {.ports = loader->ports, .read = port[0]->type->kind == TYPE_MEMREF, .slice = loader->number < 0 ? -1 : unit_loaded_with(unit, loader->number * unit->dealt), .parts = loader->parts};
	int outs = 0, number = 0;
	for (int i = 0; i < loader->ports * loader->parts; i++)
		outs += loader->outlet[i].fifos;
	words.port = ARENA_ARRAY(arena, struct value *, loader->ports);
	words.outlet = ARENA_ARRAY(arena, struct outlet, loader->ports * loader->parts);
	for (int i = 0; i < loader->ports * loader->parts; i++) {
		const struct outlet *outlet = &loader->outlet[i];
		if (i % loader->parts == 0)
			words.port[i / loader->parts] = process_argument(&p, port[i / loader->parts], loader->ports > 1 ? text_format(arena, "m%d", i) : "m");
		words.outlet[i] = (struct outlet){outlet->fifos, ARENA_ARRAY(arena, struct value *, outlet->fifos)};
		for (int k = 0; k < outlet->fifos; k++, number++)
			words.outlet[i].fifo[k] = process_argument(&p, outlet->fifo[k], outs > 1 ? text_format(arena, "y%d", number) : "y");
	}
	for (int first = 0, end; first < (int)unit->phases.count; first = end) {
		end = unit_loop_end(unit, first);
		add_run(unit, &p, &words, first, end);
	}
	process_finish(&p);
}

static void load_in_order(const struct unit *unit, const struct loader *loader)
{
	struct value **port = ARENA_ARRAY(unit->design->module->arena, struct value *, loader->ports);
	for (int i = 0; i < loader->ports; i++)
		port[i] = design_port(unit->design, port_name(unit, loader, i), loader->word, port_name(unit, loader, i), false);
	bring_words(unit, loader, "load", port);
	for (int i = 0; i < loader->ports; i++) {
		int first = loader->number < 0 ? -1 : loader->number * unit->dealt;
		fill_buffer(unit, &(struct filling){.name = port_name(unit, loader, i), .word = loader->word, .slice = first < 0 ? 0 : first + i * unit->dealt, .first_slice = first, .segment = loader->segment});
	}
}

int unit_loaded_with(const struct unit *unit, int slice)
{
	if (slice < 0)
		return slice;
	int port = slice / unit->dealt;
	return port < unit->alone ? 0 : (port - (port - unit->alone) % unit->together) * unit->dealt;
}

int unit_loaded_until(const struct unit *unit, int port)
{
	int end = port + 1;
	while (end < unit->ports && unit_loaded_with(unit, end * unit->dealt) == unit_loaded_with(unit, port * unit->dealt))
		end++;
	return end;
}

/* Of the slices of a process, which may be one of those that share a port. */
static int ports_of_process(const struct unit *unit)
{
	int ports = unit->together_sets * unit->products / unit->dealt;
	return ports > 0 ? ports : 1;
}

/* Behind the ports whose words one process deals out: of those that one brings, beside the slices of one process. */
static int dealt_until(const struct unit *unit, int port)
{
	int each = ports_of_process(unit), end = unit_loaded_until(unit, port), beside = port - port % each + each;
	return beside < end ? beside : end;
}

/* Words are dealt out by their loader for slices that find room on its die, of which the others' are dealt out on another, so that no more wires cross.  Returns the ports of the former, the first. */
static int ports_at_home(const struct unit *unit)
{
	int dies = unit->design->context->platform->dies, each = ports_of_process(unit), most = (unit->ports + dies - 1) / dies;
	return (most + each - 1) / each * each;
}

/* What words of a port go to, or parts of them: what is ahead of its slices, the first of which is on `port`, or a short FIFO on the way to where they are dealt out. */
static struct outlet port_outlet(const struct unit *unit, const char *name, const struct type *word, int port)
{
	if (unit->dealt == 1 || port < ports_at_home(unit))
		return add_outlet(unit, name, word, unit->dealt);
	struct value **fifo = ARENA_NEW(unit->design->module->arena, struct value *);
	*fifo = ahead_fifo(unit, name, word, BROUGHT_WORDS);
	return (struct outlet){1, fifo};
}

static void deal_out(const struct unit *unit, struct loader dealer)
{
	struct value **fifo = ARENA_ARRAY(unit->design->module->arena, struct value *, dealer.ports);
	for (int i = 0; i < dealer.ports; i++) {
		fifo[i] = dealer.outlet[i].fifo[0];
		dealer.outlet[i] = add_outlet(unit, port_name(unit, &dealer, i), dealer.word, unit->dealt);
	}
	bring_words(unit, &dealer, "deal", fifo);
}

static const struct type *weight_word(const struct unit *unit)
{
	const struct contract *first = &unit->phases.data[0].contract;
	return type_shaped(unit->design->module, TYPE_VECTOR, 1, &first->size, first->weight[0]->type->element);
}

/* [ports] */
static struct outlet *load_weights(const struct unit *unit)
{
	struct outlet *ahead = ARENA_ARRAY(unit->design->module->arena, struct outlet, unit->ports);
	const struct type *word = weight_word(unit);
	for (int i = 0, end; i < unit->ports; i = end) {
		end = unit_loaded_until(unit, i);
		struct loader loader = {"unit", word, i, end - i, weight_segment, 1, &ahead[i]};
		for (int k = i; k < end; k++)
			ahead[k] = port_outlet(unit, port_name(unit, &loader, k - i), word, k);
		load_in_order(unit, &loader);
	}
	return ahead;
}

/* [unit_scalers] */
static struct outlet *load_scales(const struct unit *unit)
{
	struct module *module = unit->design->module;
	int parts = unit_scalers(unit);
	struct outlet *ahead = ARENA_ARRAY(module->arena, struct outlet, parts);
	struct loader loader = {"unit_scales", vector_of(module, type_float(module, 16), SCALE_LANES), -1, 1, scale_segment, parts, ahead};
	for (int i = 0; i < parts; i++) {
		struct scaled of = unit_scaled(unit, i);
		int64_t lanes = (of.end - of.first) * unit->products / unit->dealt;
		ahead[i] = port_outlet(unit, loader.name, parts > 1 ? vector_of(module, loader.word->element, lanes) : loader.word, of.first * unit->products / unit->dealt);
	}
	load_in_order(unit, &loader);
	return ahead;
}

static struct value **fifos_of(const struct unit *unit, const struct outlet *outlet, int count)
{
	struct value **fifo = ARENA_ARRAY(unit->design->module->arena, struct value *, count * unit->dealt);
	for (int i = 0; i < count * unit->dealt; i++)
		fifo[i] = outlet[i / unit->dealt].fifo[i % unit->dealt];
	return fifo;
}

void lower_words(struct unit *unit)
{
	struct outlet *weights = load_weights(unit), *scales = load_scales(unit);
	int scalers = unit_scalers(unit);
	for (int i = 0, end; i < unit->ports; i = end) {
		end = dealt_until(unit, i);
		if (weights[i].fifos < unit->dealt)
			deal_out(unit, (struct loader){"unit", weight_word(unit), i, end - i, NULL, 1, &weights[i]});
	}
	for (int i = 0; i < scalers; i++)
		if (scales[i].fifos < unit->dealt)
			deal_out(unit, (struct loader){"unit_scales", scales[i].fifo[0]->type->element, -1, 1, NULL, 1, &scales[i]});
	unit->weights = fifos_of(unit, weights, unit->ports);
	unit->shares = fifos_of(unit, scales, scalers);
}
