/* Weights, scales and zero points of the matmul engine: their order in memory, which is the order
 * of use, and the processes that load them. A word of memory has the zero points of several rows of
 * all PEs, so their port has few words: one process loads these, another one splits them. */
#include "predict/resource.h"
#include "engine/engine.h"
#include <string.h>

/* words that are prefetched for a PE: what its port brings while the engine waits for
 * activations */
#define PREFETCH_WORDS 512
#define PREFETCH_URAM 4096 /* the same on boards with URAMs, which are this deep */
/* factor of that, where tiles use each word for longer than memory takes to bring it: a last job of
 * one token, which takes a word per cycle, finds its words prefetched */
#define PREFETCH_TILES 3
/* words for each PE that shares a port, at least (floorplan_deepen.c) */
#define PREFETCH_INTERLEAVED 1024
#define DISTRIBUTOR_FIFO_WORDS 16 /* for the words of a port that are distributed on another die */
/* such a last job has at least one word of so many cycles; else the URAMs are worth more
 * elsewhere */
#define HEAD_SHARE 48
/* f16 in a word of a port: a scale for each PE, if every port had one */
#define SCALE_LANES 32
#define IMAGE_LOOPS 4
#define ROW_FIFO_WORDS 32 /* depth of FIFOs of zero points: one LUT per bit */

/* words of a job in the buffer of a port. pe: the first PE of its loader; -1: scales, of all */
static int64_t port_words(const struct engine *engine, const struct job *job, int pe)
{
	return job->contract.groups *
	        ((job->blocks - 1) * job->block + job_last_block_rows(job, pe) -
	                job_lacks_first_row(engine, job, pe)) *
	        engine->pes_per_port;
}

/* blocks of a job that have as many rows each, from row `row` of the block on */
struct block_run {
	int64_t first, blocks, row, rows;
};

#define WORD_PARTS 3

/* the first and the last block, if they lack rows, and those between; returns how many parts */
static int parts_of(const struct engine *engine, const struct job *job, int pe,
        struct block_run part[WORD_PARTS])
{
	int64_t rows = job_last_block_rows(job, pe);
	int64_t lacks = job_lacks_first_row(engine, job, pe);
	int64_t head = job->start && job->blocks > 1;
	int64_t tail = rows < job->block && job->blocks > 1;
	int parts = 0;
	if (head)
		part[parts++] = (struct block_run){ 0, 1, lacks, job->block - lacks };
	int64_t first_row = head ? 0 : lacks;
	int64_t end_row = job->blocks == 1 ? rows : job->block;
	if (job->blocks - head - tail > 0)
		part[parts++] = (struct block_run){ head, job->blocks - head - tail, first_row,
			end_row - first_row };
	if (tail && rows > 0)
		part[parts++] = (struct block_run){ job->blocks - 1, 1, 0, rows };
	return parts;
}

/* how the numbers of a tensor make the words of a port */
struct word_layout {
	/* numbers of one row and group */
	int64_t each;
	/* numbers of a word, and their distance in the tensor */
	int64_t lanes, lane_stride;
};

/* The words in the order of use: block, group, row, and PE where several share the port. */
static struct image image_in_order(const struct engine *engine, const struct job *job,
        const struct block_run *part, struct word_layout word)
{
	struct arena *arena = engine->design->module->arena;
	const int64_t trip[IMAGE_LOOPS] = { part->blocks, job->contract.groups, part->rows,
		engine->pes_per_port };
	const int64_t rows = engine->pes;
	const int64_t stride[IMAGE_LOOPS] = { job->block * rows * word.each,
		job->contract.outputs * word.each, rows * word.each, word.each };
	struct sequence order = { .dims = engine->pes_per_port > 1 ? IMAGE_LOOPS : IMAGE_LOOPS - 1,
		.trip = arena_copy(arena, trip, sizeof trip),
		.stride = arena_copy(arena, stride, sizeof stride),
		.lanes = word.lanes,
		.lane_stride = word.lane_stride };
	order.offset = part->first * stride[0] + (job->part_first + part->row) * stride[2] -
	        job->start * word.each;
	return image_of(arena, order);
}

#define CONDITIONS 3

/* condition: sign * (row * PEs + PE + lane * number of the lane) < rows */
struct row_bound {
	int64_t sign, lane, rows;
};

static void add_row_bound(const struct engine *engine, const struct job *job,
        struct sequence *order, struct row_bound bound)
{
	if (!order->conditions)
		order->condition = ARENA_ARRAY(
		        engine->design->module->arena, int64_t, CONDITIONS *(IMAGE_LOOPS + 2));
	int64_t *end = order->condition + order->conditions++ * (order->dims + 2);
	*end++ = bound.sign * job->block * engine->pes;
	*end++ = 0;
	*end++ = bound.sign * engine->pes;
	if (engine->pes_per_port > 1)
		*end++ = bound.sign;
	*end++ = bound.sign * bound.lane;
	*end = bound.rows;
}

/* the words of some blocks of a job in a port's buffer */
struct buffer_part {
	const struct block_run *part;
	/* layer of the job's weights or scales; PE of the words, 0: scales */
	int layer, pe;
	/* elements of the buffer before them */
	int64_t offset;
};

/* Lanes are padding before the job's first output and after its last one. lane: rows between two
 * lanes; the first lane is that of at->pe. */
static void add_row_bounds(const struct engine *engine, const struct job *job,
        const struct buffer_part *at, struct sequence *order, int64_t lane)
{
	int64_t before = (at->part->first * job->block + at->part->row) * engine->pes + at->pe;
	add_row_bound(engine, job, order,
	        (struct row_bound){ 1, lane, job_outputs(engine, job) - before });
	if (before < job->start)
		add_row_bound(engine, job, order,
		        (struct row_bound){ -1, lane, before - job->start + 1 });
}

/* In a stack, a group's words of all jobs lie together: `run` elements of this job within
 * `run_pitch` of the whole stack. A job of its own has its words in sequence. */
static void set_runs(const struct engine *engine, const struct job *job, int pe,
        int64_t row_elements, struct image *image)
{
	for (int i = job->stack, end = engine_stack_end(engine, job->stack);
	        end - job->stack > 1 && i < end; i++)
		image->run_pitch += port_words(engine, &engine->jobs.data[i], pe) /
		        job->contract.groups * row_elements;
	image->run = image->run_pitch
	        ? port_words(engine, job, pe) / job->contract.groups * row_elements
	        : 0;
}

typedef const struct attr *segment_of(
        const struct engine *engine, const struct job *job, const struct buffer_part *at);

/* a word of weights: one group of a PE's row, as long as the PE has the row */
static const struct attr *weight_segment(
        const struct engine *engine, const struct job *job, const struct buffer_part *at)
{
	const struct contract *contract = &job->contract;
	struct image image = image_in_order(
	        engine, job, at->part, (struct word_layout){ contract->size, contract->size, 1 });
	image.order.offset += at->pe * contract->size;
	set_runs(engine, job, engine_loader_first_pe(engine, at->pe), contract->size, &image);
	add_row_bounds(engine, job, at, &image.order, 0);
	const struct segment_place place = { .index = contract->weight[at->layer]->index,
		.offset = at->offset };
	return image_segment(engine->design, &place, &image, 0, contract->size);
}

/* a word of scales or zero points: one for each PE, or for the n-th PE of each port; index: the
 * tensor that has them */
static const struct attr *lanes_segment(
        const struct engine *engine, const struct job *job, const struct buffer_part *at, int index)
{
	struct image image = image_in_order(engine, job, at->part,
	        (struct word_layout){ 1, SCALE_LANES, engine->pes_per_port });
	set_runs(engine, job, -1, SCALE_LANES, &image);
	add_row_bounds(engine, job, at, &image.order, engine->pes_per_port);
	int64_t *lanes = image.order.condition + image.order.conditions++ * (image.order.dims + 2);
	lanes[image.order.dims] = 1;
	lanes[image.order.dims + 1] = engine->ports;
	const struct segment_place place = { .index = index, .offset = at->offset };
	return image_segment(engine->design, &place, &image, 0, SCALE_LANES);
}

static const struct attr *scale_segment(
        const struct engine *engine, const struct job *job, const struct buffer_part *at)
{
	return lanes_segment(engine, job, at, job->contract.scale[at->layer]->index);
}

static const struct attr *zero_segment(
        const struct engine *engine, const struct job *job, const struct buffer_part *at)
{
	return lanes_segment(engine, job, at, job->contract.zero[at->layer]->index);
}

/* FIFOs that take the words of a port in rotation */
struct outlet {
	int fifos;
	struct value **fifo;
};

struct loaded_words {
	int ports;             /* ports that are read in step */
	bool read;             /* ports are memory; else FIFOs of words that were read */
	int pe;                /* first PE of the ports; -1: scales of all */
	struct value **port;   /* [ports] */
	int parts;             /* processes that get a part of each word */
	struct outlet *outlet; /* [ports][parts] */
	int rows; /* rows of a word: those of a stack of jobs begin with a word of their own */
	/* job whose words start at `base`; each layer's start `pitch` after those of the
	 * layer before */
	int first;
	int64_t base, pitch;
};

/* words of a stack of jobs, from job `first` on */
static int64_t stack_words(const struct engine *engine, int pe, int first)
{
	int64_t words = 0;
	for (int i = first, end = engine_stack_end(engine, first); i < end; i++)
		words += port_words(engine, &engine->jobs.data[i], pe);
	return words;
}

static int64_t words_between(
        const struct engine *engine, const struct loaded_words *w, int first, int end)
{
	int64_t words = 0;
	for (int i = first; i < end && w->rows == 1; i++)
		words += port_words(engine, &engine->jobs.data[i], w->pe);
	for (int i = first; i < end && w->rows > 1; i = engine_stack_end(engine, i))
		words += (stack_words(engine, w->pe, i) + w->rows - 1) / w->rows;
	return words;
}

/* the lanes of a word of scales for the pairs of one scaler */
static struct value *scaler_lanes(
        const struct engine *engine, struct process *p, struct value *word, struct scaler_range of)
{
	struct value **part = ARENA_ARRAY(p->module->arena, struct value *, of.end - of.first);
	const struct type *scalar = word->type->element;
	int lanes = engine->pes_per_pair > engine->pes_per_port
	        ? engine->pes_per_pair / engine->pes_per_port
	        : 1;
	int first = of.first * engine->pes_per_pair / engine->pes_per_port / lanes;
	int end = of.end * engine->pes_per_pair / engine->pes_per_port / lanes;
	for (int i = first; i < end; i++)
		part[i - first] = make_op(p, OP_SPLIT_LANES, vector_of(p->module, scalar, lanes), 2,
		        (struct value *[2]){ word, make_index(p, i) });
	return make_op(p, OP_JOIN_LANES, vector_of(p->module, scalar, (end - first) * lanes),
	        end - first, part);
}

/* selected: [PES_PER_PORT_MOST + 1] does the word go to this FIFO? The last one: to the only FIFO
 * of an outlet. NULL: it always does */
static void push_to_selected(struct process *p, const struct outlet *outlet, struct value *word,
        struct value *const *selected)
{
	for (int i = 0; i < outlet->fifos; i++)
		make_push(p, selected[outlet->fifos > 1 ? i : PES_PER_PORT_MOST], word,
		        outlet->fifo[i]);
}

/* Sends a word, or its part for each scaler. outlet: [parts] */
static void push_parts(const struct job_walk *walk, int parts, const struct outlet *outlet,
        struct value *word, struct value *const *selected)
{
	const struct engine *engine = walk->engine;
	struct process *p = walk->p;
	for (int k = 0; k < parts; k++) {
		struct value *part = word;
		if (parts > 1)
			part = scaler_lanes(engine, p, word, engine_scaler_range(engine, k));
		push_to_selected(p, &outlet[k], part, selected);
	}
}

static bool interleaves_pes(const struct loaded_words *w)
{
	int most = 1;
	for (int i = 0; i < w->ports * w->parts; i++)
		most = w->outlet[i].fifos > most ? w->outlet[i].fifos : most;
	return most > 1;
}

/* Loads the words of jobs that follow each other in memory. All jobs of a layer, layer after layer,
 * are one loop nest. A wavefront's tiles come in several places, for which all loops are one
 * datapath with a start address each. */
static void add_words(
        const struct engine *engine, struct process *p, int first, int end, void *context)
{
	const struct loaded_words *w = context;
	bool whole = w->read && first == w->first && end == engine_loop_end(engine, first);
	int64_t all = words_between(engine, w, first, end);
	int64_t base =
	        w->base + p->layers_before * w->pitch + words_between(engine, w, w->first, first);
	struct value *from = NULL;
	if (!whole && w->read)
		from = p->layer ? make_address(p, 1, &p->layer, &w->pitch, base)
		                : make_unshared_index(p, base);
	struct value *counter[2] = { whole ? process_loop(p, all)
		                           : process_loop_value(p, make_unshared_index(p, all)),
		whole ? p->layer : from };
	const int64_t step[2] = { 1, whole ? w->pitch : 1 };
	if (!whole)
		process_mark(p, KEY_STREAM_DATAPATH);
	process_pipeline(p, 1);
	struct value *selected[PES_PER_PORT_MOST + 1] = { NULL };
	struct value *rotation = interleaves_pes(w)
	        ? make_divided(p, OP_REMSI, counter[0], engine->pes_per_port)
	        : NULL;
	for (int i = 0; rotation && i < engine->pes_per_port; i++)
		selected[i] = make_equal(p, rotation, i);
	const int64_t offset = whole ? base : 0;
	struct value *address = w->read ? make_address(p, 2, counter, step, offset) : NULL;
	for (int i = 0; i < w->ports; i++) {
		struct value *word =
		        w->read ? make_load(p, w->port[i], address) : make_pop(p, NULL, w->port[i]);
		push_parts(&(struct job_walk){ engine, p, NULL, NULL }, w->parts,
		        &w->outlet[i * w->parts], word, selected);
	}
	process_close(p, 1);
}

/* jobs of one loop nest: words of one layer follow each other, then those of the next layer */
static void add_run(const struct engine *engine, struct process *p, struct loaded_words *words,
        int first, int end)
{
	int64_t layers = engine->jobs.data[first].layers;
	words->first = first;
	words->pitch = words_between(engine, words, first, end);
	engine_walk_loop(&(struct job_walk){ engine, p, add_words, words }, first, true);
	words->base += words->pitch * (layers ? layers : 1);
}

/* Has the last job one token, those before it many, and enough words to prefetch further? */
static bool ends_with_row(const struct engine *engine)
{
	const struct job *last = &engine->jobs.data[engine->jobs.count - 1];
	int64_t cycles = 0;
	for (const struct job *job = engine->jobs.data; job < last; job++)
		cycles += port_words(engine, job, -1) * job->token_steps * job->tiles *
		        (job->layers ? job->layers : 1);
	return engine->tokens_per_cycle > ENGINE_BASE_LANES &&
	        !engine->jobs.data[0].contract.token_symbol && last->tile == 1 &&
	        port_words(engine, last, -1) * HEAD_SHARE >= cycles;
}

/* a port's buffer, as far as it is filled */
struct filling {
	const char *name;
	const struct type *word;
	int pe, first_pe; /* first PE of the port; first PE of its loader */
	segment_of *segment;
	/* elements so far; where a stack starts; elements of a group of it so far */
	int64_t elements, stack, above;
	/* elements of a row; elements at whose multiples the rows of a stack begin */
	int64_t each, unit;
	VEC(const struct attr *) segments;
};

static void fill_job(
        const struct engine *engine, struct filling *f, const struct job *job, int layer)
{
	struct block_run part[WORD_PARTS];
	f->elements =
	        job->rows_stacked ? f->elements : (f->elements + f->unit - 1) / f->unit * f->unit;
	f->stack = job->rows_stacked ? f->stack : f->elements;
	f->above = job->rows_stacked ? f->above : 0;
	int64_t at = f->stack + f->above;
	int64_t before = f->elements;
	for (int n = 0, parts = parts_of(engine, job, f->first_pe, part); n < parts; n++) {
		int64_t own = part[n].blocks * job->contract.groups * part[n].rows *
		        engine->pes_per_port * f->each;
		const struct buffer_part where = { &part[n], job->contract.layers ? layer : 0,
			f->pe, at };
		VEC_PUSH(engine->design->module->arena, &f->segments,
		        f->segment(engine, job, &where));
		at += own;
		f->elements += own;
	}
	f->above += (f->elements - before) / job->contract.groups;
}

/* Fills the buffer with the words of all jobs, layer by layer, as many as the other ports of the
 * loader have. */
static void fill_buffer(const struct engine *engine, struct filling *f)
{
	for (int first = 0, end; first < (int)engine->jobs.count; first = end) {
		end = engine_loop_end(engine, first);
		for (int layer = 0; layer < engine->jobs.data[first].layers || !layer; layer++)
			for (int i = first; i < end; i++)
				fill_job(engine, f, &engine->jobs.data[i], layer);
	}
	int64_t lanes = type_elements(f->word);
	design_buffer(engine->design, f->name, f->word, (f->elements + lanes - 1) / lanes,
	        attr_array(engine->design->module, (int)f->segments.count, f->segments.data));
}

/* a process that reads the words of all jobs from ports or from FIFOs, and what it fills */
struct loader {
	const char *name;
	const struct type *word;
	int number, ports; /* the first port, -1: scales; ports */
	segment_of *segment;
	/* parts of a word: several, if each scaler gets its own */
	int parts;
	struct outlet *outlet; /* [ports][parts] */
	int rows;              /* rows of a word */
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

/* Two FIFOs that take words in rotation are one of URAM and one of block RAM, of which dies have
 * about as much. */
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

/* port: [ports] memory or a FIFO each */
static void add_weight_process(const struct engine *engine, const struct loader *loader,
        const char *name, struct value *const *port)
{
	struct arena *arena = engine->design->module->arena;
	struct process p = engine_process(
	        engine, text_format(arena, "%s_%s", name, port_name(engine, loader, 0)));
	struct loaded_words words = { .ports = loader->ports,
		.read = port[0]->type->kind == TYPE_MEMREF,
		.pe = loader->number < 0
		        ? -1
		        : engine_loader_first_pe(engine, loader->number * engine->pes_per_port),
		.parts = loader->parts,
		.rows = loader->rows };
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
		design_mark_port(engine->design, port_name(engine, loader, i), KEY_STREAM_LOADER,
		        loader->rows > 1 ? "zeros" : "engine");
		int first = loader->number < 0 ? -1 : loader->number * engine->pes_per_port;
		fill_buffer(engine,
		        &(struct filling){ .name = port_name(engine, loader, i),
		                .word = loader->word,
		                .pe = first < 0 ? 0 : first + i * engine->pes_per_port,
		                .first_pe = first,
		                .each = type_elements(loader->word) / loader->rows,
		                .unit = loader->rows > 1 ? type_elements(loader->word) : 1,
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

/* ports whose PEs are one process; PEs that share a port may be several */
static int ports_of_process(const struct engine *engine)
{
	int ports = engine->pairs_per_process * engine->pes_per_pair / engine->pes_per_port;
	return ports > 0 ? ports : 1;
}

/* the port after those whose words one process distributes: ports of one loader and of one
 * process of PEs */
static int distributor_end_port(const struct engine *engine, int port)
{
	int each = ports_of_process(engine);
	int end = engine_loader_end_port(engine, port);
	int process_end = port - port % each + each;
	return process_end < end ? process_end : end;
}

/* Number of ports, the first ones, whose loader distributes their words to PEs itself: as many as
 * have their PEs on its die. Others are distributed on another die, so that only one copy of the
 * wires crosses. */
static int loader_die_ports(const struct engine *engine)
{
	int dies = engine->design->context->platform->dies;
	int each = ports_of_process(engine);
	int most = (engine->ports + dies - 1) / dies;
	return (most + each - 1) / each * each;
}

/* what a loader fills for a port: the PEs' prefetch FIFOs, or a short FIFO to the distributor */
static struct outlet port_outlet(
        const struct engine *engine, const char *name, const struct type *word, int port)
{
	if (engine->pes_per_port == 1 || port < loader_die_ports(engine))
		return add_outlet(engine, name, word, engine->pes_per_port);
	struct value **fifo = ARENA_NEW(engine->design->module->arena, struct value *);
	*fifo = prefetch_fifo(engine, name, word, DISTRIBUTOR_FIFO_WORDS);
	return (struct outlet){ 1, fifo };
}

static void add_distributor(const struct engine *engine, struct loader distributor)
{
	struct value **fifo =
	        ARENA_ARRAY(engine->design->module->arena, struct value *, distributor.ports);
	for (int i = 0; i < distributor.ports; i++) {
		fifo[i] = distributor.outlet[i].fifo[0];
		distributor.outlet[i] = add_outlet(engine, port_name(engine, &distributor, i),
		        distributor.word, engine->pes_per_port);
	}
	add_weight_process(engine, &distributor, "distribute", fifo);
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
		struct loader loader = { "engine", word, i, end - i, weight_segment, 1, &outlets[i],
			1 };
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
		outlets, 1 };
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

/* The process that splits words of zero points into rows. */
struct row_splitter {
	struct loaded_words words; /* port[0]: channel with words of several rows */
	const struct type *row;
};

static void split_rows(
        const struct engine *engine, struct process *p, int first, int end, void *context)
{
	const struct row_splitter *s = context;
	for (int i = first; i < end; i = engine_stack_end(engine, i)) {
		int64_t rows = stack_words(engine, -1, i);
		int64_t words = (rows + s->words.rows - 1) / s->words.rows;
		const int64_t pitch[2] = { s->words.rows, 1 };
		struct value *counter[2];
		counter[0] = process_loop_value(p, make_unshared_index(p, words));
		process_mark(p, KEY_STREAM_DATAPATH);
		counter[1] = process_loop_value(p, make_unshared_index(p, s->words.rows));
		process_pipeline(p, 1);
		struct value *word = make_pop(p, make_equal(p, counter[1], 0), s->words.port[0]);
		struct value *part[2] = { word, counter[1] };
		struct value *row = make_op(p, OP_SPLIT_LANES, s->row, 2, part);
		struct value *bound = make_unshared_index(p, rows);
		struct value *valid = make_below(p, make_address(p, 2, counter, pitch, 0), bound);
		struct value *selected[PES_PER_PORT_MOST + 1] = { [PES_PER_PORT_MOST] = valid };
		struct value *pe = engine->pes_per_port > 1
		        ? make_divided(p, OP_REMSI, counter[1], engine->pes_per_port)
		        : NULL;
		for (int k = 0; pe && k < engine->pes_per_port; k++)
			selected[k] = make_and(p, valid, make_equal(p, pe, k));
		push_parts(&(struct job_walk){ engine, p, NULL, NULL }, s->words.parts,
		        s->words.outlet, row, selected);
		process_close(p, 2);
	}
}

static void add_row_splitter(const struct engine *engine, struct value *words,
        const struct type *row, int rows, const struct outlet *outlet)
{
	struct arena *arena = engine->design->module->arena;
	struct process p = engine_process(engine, "split_engine_zeros");
	int parts = engine_scalers(engine);
	struct value *port = process_argument(&p, words, "m");
	struct row_splitter s = { .words = { .port = &port, .parts = parts, .rows = rows },
		.row = row };
	s.words.outlet = ARENA_ARRAY(arena, struct outlet, parts);
	for (int k = 0; k < parts; k++) {
		s.words.outlet[k] = (struct outlet){ outlet[k].fifos,
			ARENA_ARRAY(arena, struct value *, outlet[k].fifos) };
		for (int i = 0; i < outlet[k].fifos; i++)
			s.words.outlet[k].fifo[i] = process_argument(&p, outlet[k].fifo[i],
			        text_format(arena, "y%d", k * engine->pes_per_port + i));
	}
	for (int first = 0; first < (int)engine->jobs.count; first = engine_loop_end(engine, first))
		engine_walk_loop(&(struct job_walk){ engine, &p, split_rows, &s }, first, true);
	process_finish(&p);
}

/* [engine_scalers]; the port is none of the last ones, which are those of the engine's words */
static struct outlet *load_zeros(const struct engine *engine)
{
	struct module *module = engine->design->module;
	int parts = engine_scalers(engine);
	const struct type *scalar = engine->jobs.data[0].contract.zero[0]->type->element;
	int rows = ENGINE_WORD_BITS / (SCALE_LANES * scalar->width);
	const struct type *row = vector_of(module, scalar, SCALE_LANES);
	struct outlet *outlets = ARENA_ARRAY(module->arena, struct outlet, parts);
	struct outlet words = { 1, ARENA_NEW(module->arena, struct value *) };
	struct loader loader = { "engine_zeros", vector_of(module, scalar, rows * SCALE_LANES), -1,
		1, zero_segment, 1, &words, rows };
	words.fifo[0] =
	        prefetch_fifo(engine, loader.name, loader.word, prefetch_depth(engine) / rows);
	load_in_order(engine, &loader);
	for (int k = 0; k < parts; k++) {
		struct scaler_range of = engine_scaler_range(engine, k);
		int64_t lanes = (of.end - of.first) * engine->pes_per_pair / engine->pes_per_port;
		outlets[k] = (struct outlet){ engine->pes_per_port,
			ARENA_ARRAY(module->arena, struct value *, engine->pes_per_port) };
		for (int i = 0; i < engine->pes_per_port; i++)
			outlets[k].fifo[i] = engine_fifo(engine, "s_zeros",
			        parts > 1 ? vector_of(module, scalar, lanes) : row, ROW_FIFO_WORDS);
	}
	add_row_splitter(engine, words.fifo[0], row, rows, outlets);
	return outlets;
}

static struct value **flat_fifos(
        const struct engine *engine, const struct outlet *outlet, int count)
{
	struct value **fifo = ARENA_ARRAY(
	        engine->design->module->arena, struct value *, count * engine->pes_per_port);
	for (int i = 0; i < count * engine->pes_per_port; i++)
		fifo[i] = outlet[i / engine->pes_per_port].fifo[i % engine->pes_per_port];
	return fifo;
}

void lower_weight_loaders(struct engine *engine)
{
	struct outlet *zeros = engine->jobs.data[0].contract.zero ? load_zeros(engine) : NULL;
	struct outlet *weights = load_weights(engine);
	struct outlet *scales = load_scales(engine);
	int scalers = engine_scalers(engine);
	for (int i = 0, end; i < engine->ports; i = end) {
		end = distributor_end_port(engine, i);
		if (weights[i].fifos < engine->pes_per_port)
			add_distributor(engine,
			        (struct loader){ "engine", weight_word(engine), i, end - i, NULL, 1,
			                &weights[i], 1 });
	}
	for (int i = 0; i < scalers; i++)
		if (scales[i].fifos < engine->pes_per_port)
			add_distributor(engine,
			        (struct loader){ "engine_scales", scales[i].fifo[0]->type->element,
			                -1, 1, NULL, 1, &scales[i], 1 });
	engine->weights = flat_fifos(engine, weights, engine->ports);
	engine->weight_scales = flat_fifos(engine, scales, scalers);
	engine->zeros = zeros ? flat_fifos(engine, zeros, scalers) : NULL;
}
