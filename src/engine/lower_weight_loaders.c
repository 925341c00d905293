/* A unit's weights and their scales: how they lie in memory, and the processes that bring them
 * in the order of use. */
#include "predict/resource.h"
#include "engine/engine.h"
#include <string.h>

/* of a slice: what its port delivers while the unit waits for numbers */
#define PREFETCH_WORDS 512
#define PREFETCH_URAM 4096 /* the same, where there are URAMs, which have as many words */
/* so many times of it where tiles of tokens use each word for longer than memory takes to bring
 * it: they are there when a head of one row begins, which takes a word a cycle; */
#define PREFETCH_TILES 3
/* of each slice that words are dealt to in turn, at least (floorplan_deepen_fifos.c) */
#define PREFETCH_INTERLEAVED 1024
#define DISTRIBUTOR_FIFO_WORDS 16 /* of a port whose words are dealt out on another die */
/* where its words are one part in so many of all cycles; else the URAMs are worth more elsewhere */
#define HEAD_SHARE 48
/* f16 in a word of a port: the scales of as many slices as there are ports */
#define SCALE_LANES 32
#define IMAGE_LOOPS 4

/* Of a port.  slice: the first of those that are brought together; -1: scales of all. */
static int64_t words_of(const struct engine *engine, const struct job *job, int pe)
{
	return job->contract.groups *
	        ((job->blocks - 1) * job->block + job_last_block_rows(job, pe) -
	                job_lacks_first_row(engine, job, pe)) *
	        engine->pes_per_port;
}

/* Blocks of a phase that have as many rows each, from `row` on. */
struct part {
	int64_t first, blocks, row, rows;
};

#define WORD_PARTS 3

/* Some blocks that are full, and the first and the last, which need not be. */
static int parts_of(
        const struct engine *engine, const struct job *job, int pe, struct part part[WORD_PARTS])
{
	int64_t rows = job_last_block_rows(job, pe);
	int64_t lacks = job_lacks_first_row(engine, job, pe);
	int64_t head = job->start && job->blocks > 1;
	int64_t tail = rows < job->block && job->blocks > 1;
	int parts = 0;
	if (head)
		part[parts++] = (struct part){ 0, 1, lacks, job->block - lacks };
	if (job->blocks - head - tail > 0)
		part[parts++] = (struct part){ head, job->blocks - head - tail, head ? 0 : lacks,
			(job->blocks == 1 ? rows : job->block) - (head ? 0 : lacks) };
	if (tail && rows > 0)
		part[parts++] = (struct part){ job->blocks - 1, 1, 0, rows };
	return parts;
}

/* Their words in the order of use, for each row a word of each slice that they are dealt to;
 * `each` numbers of the tensor for a row and group, `lanes` of a word, so far apart. */
static struct image image_in_order(const struct engine *engine, const struct job *job,
        const struct part *part, int64_t each, int64_t lanes, int64_t lane_stride)
{
	struct arena *arena = engine->design->module->arena;
	const int64_t trip[IMAGE_LOOPS] = { part->blocks, job->contract.groups, part->rows,
		engine->pes_per_port };
	const int64_t rows = engine->pes;
	const int64_t stride[IMAGE_LOOPS] = { job->block * rows * each,
		job->contract.outputs * each, rows * each, each };
	struct sequence order = { .dims = engine->pes_per_port > 1 ? IMAGE_LOOPS : IMAGE_LOOPS - 1,
		.trip = arena_copy(arena, trip, sizeof trip),
		.stride = arena_copy(arena, stride, sizeof stride),
		.lanes = lanes,
		.lane_stride = lane_stride };
	order.offset = part->first * stride[0] + (job->part_first + part->row) * stride[2] -
	        job->start * each;
	return image_of(arena, order);
}

#define CONDITIONS 3

/* Adds the condition that a row is below `rows`, times `sign`, where lanes are `lane` rows
 * apart. */
static void add_row_below(const struct engine *engine, const struct job *job,
        struct sequence *order, int64_t sign, int64_t lane, int64_t rows)
{
	if (!order->conditions)
		order->condition = ARENA_ARRAY(
		        engine->design->module->arena, int64_t, CONDITIONS *(IMAGE_LOOPS + 2));
	int64_t *end = order->condition + order->conditions++ * (order->dims + 2);
	*end++ = sign * job->block * engine->pes;
	*end++ = 0;
	*end++ = sign * engine->pes;
	if (engine->pes_per_port > 1)
		*end++ = sign;
	*end++ = sign * lane;
	*end = rows;
}

/* Rows that the part's lanes, the first of which are those of `slice`, have: those in front of
 * the first output and behind the last are padding. */
static void add_row_bounds(const struct engine *engine, const struct job *job,
        const struct part *part, struct sequence *order, int64_t lane, int pe)
{
	int64_t before = (part->first * job->block + part->row) * engine->pes + pe;
	add_row_below(engine, job, order, 1, lane, job_outputs(engine, job) - before);
	if (before < job->start)
		add_row_below(engine, job, order, -1, lane, before - job->start + 1);
}

/* Elements that a phase has for a group of a stack, and those of the whole stack; one that
 * stands alone has its words side by side. */
static void set_runs(const struct engine *engine, const struct job *job, int pe,
        int64_t row_elements, struct image *image)
{
	for (int i = job->stack, end = engine_stack_end(engine, job->stack);
	        end - job->stack > 1 && i < end; i++)
		image->run_pitch += words_of(engine, &engine->jobs.data[i], pe) /
		        job->contract.groups * row_elements;
	image->run = image->run_pitch
	        ? words_of(engine, job, pe) / job->contract.groups * row_elements
	        : 0;
}

/* `layer`: of the phase's weights or scales; `offset`: where it begins in the port's buffer. */
typedef const struct attr *segment_of(const struct engine *engine, const struct job *job,
        const struct part *part, int layer, int pe, int64_t offset);

/* A word of weights is one group of the slice's row, as long as there is such a row. */
static const struct attr *weight_segment(const struct engine *engine, const struct job *job,
        const struct part *part, int layer, int pe, int64_t offset)
{
	const struct contract *contract = &job->contract;
	struct image image = image_in_order(engine, job, part, contract->size, contract->size, 1);
	image.order.offset += pe * contract->size;
	set_runs(engine, job, engine_loader_first_pe(engine, pe), contract->size, &image);
	add_row_bounds(engine, job, part, &image.order, 0, pe);
	return image_segment(engine->design, false, contract->weight[layer]->index, &image, 0,
	        contract->size, offset);
}

/* A word of scales is one for each slice, or for each of those that are the same of their
 * port's. */
static const struct attr *scale_segment(const struct engine *engine, const struct job *job,
        const struct part *part, int layer, int pe, int64_t offset)
{
	const struct contract *contract = &job->contract;
	struct image image =
	        image_in_order(engine, job, part, 1, SCALE_LANES, engine->pes_per_port);
	set_runs(engine, job, -1, SCALE_LANES, &image);
	add_row_bounds(engine, job, part, &image.order, engine->pes_per_port, 0);
	int64_t *lanes = image.order.condition + image.order.conditions++ * (image.order.dims + 2);
	(void)pe;
	lanes[image.order.dims] = 1;
	lanes[image.order.dims + 1] = engine->ports;
	return image_segment(engine->design, false, contract->scale[layer]->index, &image, 0,
	        SCALE_LANES, offset);
}

struct outlet { /* FIFOs that words go to in turn */
	int fifos;
	struct value **fifo;
};

struct words {
	int ports;             /* side by side, whose words come in step; */
	bool read;             /* they are read from memory, else they are FIFOs of what was */
	int pe;                /* the first that they are for; -1: all */
	struct value **port;   /* [ports] */
	int parts;             /* of a port's words, */
	struct outlet *outlet; /* [ports][parts] */
	/* phase whose words begin at `base`; each layer's are `pitch` behind those of the one
	 * before */
	int first;
	int64_t base, pitch;
};

static int64_t words_between(const struct engine *engine, int pe, int first, int end)
{
	int64_t words = 0;
	for (int i = first; i < end; i++)
		words += words_of(engine, &engine->jobs.data[i], pe);
	return words;
}

/* What the processes that a scaler serves take of a word of scales. */
static struct value *part_of(
        const struct engine *engine, struct process *p, struct value *word, struct scaler_range of)
{
	struct value **piece = ARENA_ARRAY(p->module->arena, struct value *, of.end - of.first);
	const struct type *scalar = word->type->element;
	int lanes = engine->pes_per_pair > engine->pes_per_port
	        ? engine->pes_per_pair / engine->pes_per_port
	        : 1;
	int first = of.first * engine->pes_per_pair / engine->pes_per_port / lanes;
	int end = of.end * engine->pes_per_pair / engine->pes_per_port / lanes;
	for (int i = first; i < end; i++)
		piece[i - first] = make_op(p, OP_SPLIT_LANES, vector_of(p->module, scalar, lanes),
		        2, (struct value *[2]){ word, make_index(p, i) });
	return make_op(p, OP_JOIN_LANES, vector_of(p->module, scalar, (end - first) * lanes),
	        end - first, piece);
}

/* mine: [fifos] is it the turn of a FIFO? */
static void push_to_selected(struct process *p, const struct outlet *outlet, struct value *word,
        struct value *const *mine)
{
	for (int i = 0; i < outlet->fifos; i++)
		make_push(p, outlet->fifos > 1 ? mine[i] : NULL, word, outlet->fifo[i]);
}

static bool interleaves_pes(const struct words *w)
{
	int most = 1;
	for (int i = 0; i < w->ports * w->parts; i++)
		most = w->outlet[i].fifos > most ? w->outlet[i].fifos : most;
	return most > 1;
}

/* Words of phases that follow each other in memory.  Those of all phases of a layer, layer after
 * layer, are read without a break; where the phases of tiles take turns memory has time, and all
 * loops are one datapath. */
static void add_words(
        const struct engine *engine, struct process *p, int first, int end, void *context)
{
	const struct words *w = context;
	bool whole = w->read && first == w->first && end == engine_loop_end(engine, first);
	int64_t all = words_between(engine, w->pe, first, end);
	int64_t base = w->base + p->layers_before * w->pitch +
	        words_between(engine, w->pe, w->first, first);
	struct value *from = whole || !w->read ? NULL
	        : p->layer                     ? make_address(p, 1, &p->layer, &w->pitch, base)
	                                       : make_unshared_index(p, base);
	struct value *counter[2] = { whole ? process_loop(p, all)
		                           : process_loop_value(p, make_unshared_index(p, all)),
		whole ? p->layer : from };
	const int64_t step[2] = { 1, whole ? w->pitch : 1 };
	if (!whole)
		process_mark(p, KEY_STREAM_DATAPATH);
	process_pipeline(p, 1);
	struct value *mine[PES_PER_PORT_MOST];
	struct value *selected = interleaves_pes(w)
	        ? make_divided(p, OP_REMSI, counter[0], engine->pes_per_port)
	        : NULL;
	for (int i = 0; selected && i < engine->pes_per_port; i++)
		mine[i] = make_equal(p, selected, i);
	struct value *address =
	        w->read ? make_address(p, 2, counter, step, whole ? base : 0) : NULL;
	for (int i = 0; i < w->ports; i++) {
		struct value *word =
		        w->read ? make_load(p, w->port[i], address) : make_pop(p, NULL, w->port[i]);
		for (int k = 0; k < w->parts; k++)
			push_to_selected(p, &w->outlet[i * w->parts + k],
			        w->parts > 1
			                ? part_of(engine, p, word, engine_scaler_range(engine, k))
			                : word,
			        mine);
	}
	process_close(p, 1);
}

/* Phases of one loop: their words of one layer follow each other, then those of the next layer. */
static void add_run(
        const struct engine *engine, struct process *p, struct words *words, int first, int end)
{
	int64_t layers = engine->jobs.data[first].layers;
	words->first = first;
	words->pitch = words_between(engine, words->pe, first, end);
	engine_walk_loop(engine, p, first, true, add_words, words);
	words->base += words->pitch * (layers ? layers : 1);
}

/* Has the last phase one token, those before it many, and is it worth mention beside them? */
static bool ends_with_row(const struct engine *engine)
{
	const struct job *last = &engine->jobs.data[engine->jobs.count - 1];
	int64_t cycles = 0;
	for (const struct job *job = engine->jobs.data; job < last; job++)
		cycles += words_of(engine, job, -1) * job->words * job->tiles *
		        (job->layers ? job->layers : 1);
	return engine->tokens_per_cycle > ENGINE_BASE_LANES &&
	        !engine->jobs.data[0].contract.token_symbol && last->tile == 1 &&
	        words_of(engine, last, -1) * HEAD_SHARE >= cycles;
}

struct filling { /* a port's buffer, as far as it is filled */
	const char *name;
	const struct type *word;
	int pe, first_pe; /* the port's first; the first of those that come in step with it */
	segment_of *segment;
	/* so far; where a stack begins; of a group of it */
	int64_t elements, stack, above;
	VEC(const struct attr *) segments;
};

static void fill_job(
        const struct engine *engine, struct filling *f, const struct job *job, int layer)
{
	struct part part[WORD_PARTS];
	f->stack = job->rows_stacked ? f->stack : f->elements;
	f->above = job->rows_stacked ? f->above : 0;
	int64_t at = f->stack + f->above;
	int64_t before = f->elements;
	for (int n = 0, parts = parts_of(engine, job, f->first_pe, part); n < parts; n++) {
		int64_t own = part[n].blocks * job->contract.groups * part[n].rows *
		        engine->pes_per_port * type_elements(f->word);
		VEC_PUSH(engine->design->module->arena, &f->segments,
		        f->segment(engine, job, &part[n], job->contract.layers ? layer : 0, f->pe,
		                at));
		at += own;
		f->elements += own;
	}
	f->above += (f->elements - before) / job->contract.groups;
}

/* The words of all phases, layer by layer; as many as those that come in step with it have. */
static void fill_buffer(const struct engine *engine, struct filling *f)
{
	for (int first = 0, end; first < (int)engine->jobs.count; first = end) {
		end = engine_loop_end(engine, first);
		for (int layer = 0; layer < engine->jobs.data[first].layers || !layer; layer++)
			for (int i = first; i < end; i++)
				fill_job(engine, f, &engine->jobs.data[i], layer);
	}
	design_buffer(engine->design, f->name, f->word, f->elements / type_elements(f->word),
	        (int)f->segments.count, f->segments.data);
}

/* Ports that read the words of all phases, or FIFOs of what they read, and those that they go
 * to. */
struct loader {
	const char *name;
	const struct type *word;
	int number, ports; /* the first; -1: of scales */
	segment_of *segment;
	/* of a word: where it has several, for each process that hands scales out */
	int parts;
	struct outlet *outlet; /* [ports][parts] */
};

int64_t weight_prefetch_words(const struct platform *platform)
{
	return platform_total(platform).uram > 0 ? PREFETCH_URAM : PREFETCH_WORDS;
}

static struct value *prefetch_fifo(
        const struct engine *engine, const char *name, const struct type *word, int64_t depth)
{
	struct design *design = engine->design;
	struct value *fifo = engine_fifo(engine, name, word, depth);
	attr_set(design->module, fifo->def, KEY_STREAM_FIXED_DEPTH, attr_unit(design->module));
	design_prefetch(design, fifo);
	return fifo;
}

static int64_t prefetch_depth(const struct engine *engine)
{
	const struct platform *platform = engine->design->context->platform;
	bool uram = platform_total(platform).uram > 0;
	return weight_prefetch_words(platform) *
	        (uram && ends_with_row(engine) ? PREFETCH_TILES : 1);
}

static const char *port_name(const struct engine *engine, const struct loader *loader, int port)
{
	return loader->number < 0 ? loader->name
	                          : text_format(engine->design->module->arena, "%s%d", loader->name,
	                                    loader->number + port);
}

/* Words that are dealt to two FIFOs in turn: one is of URAMs and one of block RAMs, which dies
 * have about as much of. */
static struct outlet add_outlet(
        const struct engine *engine, const char *name, const struct type *word, int fifos)
{
	struct module *module = engine->design->module;
	struct outlet outlet = { fifos, ARENA_ARRAY(module->arena, struct value *, fifos) };
	for (int i = 0; i < fifos; i++) {
		outlet.fifo[i] = prefetch_fifo(engine, name, word,
		        fifos > 1 ? PREFETCH_INTERLEAVED : prefetch_depth(engine));
		if (fifos > 1)
			attr_set(module, outlet.fifo[i]->def, KEY_STREAM_INTERLEAVED_DEPTH,
			        attr_integer(module, PREFETCH_INTERLEAVED));
	}
	if (fifos > 1 && platform_total(engine->design->context->platform).uram > 0)
		attr_set(module, outlet.fifo[0]->def, KEY_STREAM_STORAGE,
		        attr_string(module, storage_name[STORAGE_URAM]));
	return outlet;
}

/* port: [ports], of memory or a FIFO each. */
static void add_weight_process(const struct engine *engine, const struct loader *loader,
        const char *name, struct value *const *port)
{
	struct arena *arena = engine->design->module->arena;
	struct process p = engine_process(
	        engine, text_format(arena, "%s_%s", name, port_name(engine, loader, 0)));
	struct words words = { .ports = loader->ports,
		.read = port[0]->type->kind == TYPE_MEMREF,
		.pe = loader->number < 0
		        ? -1
		        : engine_loader_first_pe(engine, loader->number * engine->pes_per_port),
		.parts = loader->parts };
	int outs = 0;
	int number = 0;
	for (int i = 0; i < loader->ports * loader->parts; i++)
		outs += loader->outlet[i].fifos;
	words.port = ARENA_ARRAY(arena, struct value *, loader->ports);
	words.outlet = ARENA_ARRAY(arena, struct outlet, loader->ports * loader->parts);
	for (int i = 0; i < loader->ports * loader->parts; i++) {
		const struct outlet *outlet = &loader->outlet[i];
		if (i % loader->parts == 0)
			words.port[i / loader->parts] =
			        process_argument(&p, port[i / loader->parts],
			                loader->ports > 1 ? text_format(arena, "m%d", i) : "m");
		words.outlet[i] = (struct outlet){ outlet->fifos,
			ARENA_ARRAY(arena, struct value *, outlet->fifos) };
		for (int k = 0; k < outlet->fifos; k++, number++)
			words.outlet[i].fifo[k] = process_argument(&p, outlet->fifo[k],
			        outs > 1 ? text_format(arena, "y%d", number) : "y");
	}
	for (int first = 0, end; first < (int)engine->jobs.count; first = end) {
		end = engine_loop_end(engine, first);
		add_run(engine, &p, &words, first, end);
	}
	process_finish(&p);
}

static void load_in_order(const struct engine *engine, const struct loader *loader)
{
	struct value **port =
	        ARENA_ARRAY(engine->design->module->arena, struct value *, loader->ports);
	for (int i = 0; i < loader->ports; i++)
		port[i] = design_port(engine->design, port_name(engine, loader, i), loader->word,
		        port_name(engine, loader, i), false);
	add_weight_process(engine, loader, "load", port);
	for (int i = 0; i < loader->ports; i++) {
		int first = loader->number < 0 ? -1 : loader->number * engine->pes_per_port;
		fill_buffer(engine,
		        &(struct filling){ .name = port_name(engine, loader, i),
		                .word = loader->word,
		                .pe = first < 0 ? 0 : first + i * engine->pes_per_port,
		                .first_pe = first,
		                .segment = loader->segment });
	}
}

int engine_loader_first_pe(const struct engine *engine, int pe)
{
	if (pe < 0)
		return pe;
	int port = pe / engine->pes_per_port;
	return port < engine->first_ports
	        ? 0
	        : (port - (port - engine->first_ports) % engine->ports_per_loader) *
	                engine->pes_per_port;
}

int engine_loader_end_port(const struct engine *engine, int port)
{
	int end = port + 1;
	while (end < engine->ports &&
	        engine_loader_first_pe(engine, end * engine->pes_per_port) ==
	                engine_loader_first_pe(engine, port * engine->pes_per_port))
		end++;
	return end;
}

/* Of the slices of a process, which may be one of those that share a port. */
static int ports_of_process(const struct engine *engine)
{
	int ports = engine->pairs_per_process * engine->pes_per_pair / engine->pes_per_port;
	return ports > 0 ? ports : 1;
}

/* Behind the ports whose words one process deals out: of those that one brings, beside the
 * slices of one process. */
static int distributor_end_port(const struct engine *engine, int port)
{
	int each = ports_of_process(engine);
	int end = engine_loader_end_port(engine, port);
	int process_end = port - port % each + each;
	return process_end < end ? process_end : end;
}

/* Words are dealt out by their loader for slices that find room on its die, of which the others'
 * are dealt out on another, so that no more wires cross.  Returns the ports of the former, the
 * first. */
static int loader_die_ports(const struct engine *engine)
{
	int dies = engine->design->context->platform->dies;
	int each = ports_of_process(engine);
	int most = (engine->ports + dies - 1) / dies;
	return (most + each - 1) / each * each;
}

/* What words of a port go to, or parts of them: what is ahead of its slices, the first of which
 * is on `port`, or a short FIFO on the way to where they are dealt out. */
static struct outlet port_outlet(
        const struct engine *engine, const char *name, const struct type *word, int port)
{
	if (engine->pes_per_port == 1 || port < loader_die_ports(engine))
		return add_outlet(engine, name, word, engine->pes_per_port);
	struct value **fifo = ARENA_NEW(engine->design->module->arena, struct value *);
	*fifo = prefetch_fifo(engine, name, word, DISTRIBUTOR_FIFO_WORDS);
	return (struct outlet){ 1, fifo };
}

static void add_distributor(const struct engine *engine, struct loader dealer)
{
	struct value **fifo =
	        ARENA_ARRAY(engine->design->module->arena, struct value *, dealer.ports);
	for (int i = 0; i < dealer.ports; i++) {
		fifo[i] = dealer.outlet[i].fifo[0];
		dealer.outlet[i] = add_outlet(
		        engine, port_name(engine, &dealer, i), dealer.word, engine->pes_per_port);
	}
	add_weight_process(engine, &dealer, "distribute", fifo);
}

static const struct type *weight_word(const struct engine *engine)
{
	const struct contract *first = &engine->jobs.data[0].contract;
	return type_shaped(engine->design->module, TYPE_VECTOR, 1, &first->size,
	        first->weight[0]->type->element);
}

/* [ports] */
static struct outlet *load_weights(const struct engine *engine)
{
	struct outlet *outlets =
	        ARENA_ARRAY(engine->design->module->arena, struct outlet, engine->ports);
	const struct type *word = weight_word(engine);
	for (int i = 0, end; i < engine->ports; i = end) {
		end = engine_loader_end_port(engine, i);
		struct loader loader = { "engine", word, i, end - i, weight_segment, 1,
			&outlets[i] };
		for (int k = i; k < end; k++)
			outlets[k] =
			        port_outlet(engine, port_name(engine, &loader, k - i), word, k);
		load_in_order(engine, &loader);
	}
	return outlets;
}

/* [engine_scalers] */
static struct outlet *load_scales(const struct engine *engine)
{
	struct module *module = engine->design->module;
	int parts = engine_scalers(engine);
	struct outlet *outlets = ARENA_ARRAY(module->arena, struct outlet, parts);
	struct loader loader = { "engine_scales",
		vector_of(module, type_float(module, 16), SCALE_LANES), -1, 1, scale_segment, parts,
		outlets };
	for (int i = 0; i < parts; i++) {
		struct scaler_range of = engine_scaler_range(engine, i);
		int64_t lanes = (of.end - of.first) * engine->pes_per_pair / engine->pes_per_port;
		outlets[i] = port_outlet(engine, loader.name,
		        parts > 1 ? vector_of(module, loader.word->element, lanes) : loader.word,
		        of.first * engine->pes_per_pair / engine->pes_per_port);
	}
	load_in_order(engine, &loader);
	return outlets;
}

static struct value **fifos_of(const struct engine *engine, const struct outlet *outlet, int count)
{
	struct value **fifo = ARENA_ARRAY(
	        engine->design->module->arena, struct value *, count * engine->pes_per_port);
	for (int i = 0; i < count * engine->pes_per_port; i++)
		fifo[i] = outlet[i / engine->pes_per_port].fifo[i % engine->pes_per_port];
	return fifo;
}

void lower_weight_loaders(struct engine *engine)
{
	struct outlet *weights = load_weights(engine);
	struct outlet *scales = load_scales(engine);
	int scalers = engine_scalers(engine);
	for (int i = 0, end; i < engine->ports; i = end) {
		end = distributor_end_port(engine, i);
		if (weights[i].fifos < engine->pes_per_port)
			add_distributor(engine,
			        (struct loader){ "engine", weight_word(engine), i, end - i, NULL, 1,
			                &weights[i] });
	}
	for (int i = 0; i < scalers; i++)
		if (scales[i].fifos < engine->pes_per_port)
			add_distributor(engine,
			        (struct loader){ "engine_scales", scales[i].fifo[0]->type->element,
			                -1, 1, NULL, 1, &scales[i] });
	engine->weights = fifos_of(engine, weights, engine->ports);
	engine->scale_words = fifos_of(engine, scales, scalers);
}
