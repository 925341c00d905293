/* Loads as processes. A bulk load has memory ports of its own, several in parallel if its words are
 * wide. All other loads of one element type share a loader, which reads them in program order: in
 * full words of the port where their order allows, else element by element. Tensors are packed in
 * the order in which they are read. */
#include "ir/kernel_edit.h"
#include "ports/append_internal.h"
#include "predict/port_run.h"
#include "ports/lower_ports.h"
#include "ir/workload.h"
#include "ir/contract.h"
#include "ports/port_interleave.h"

#define WIDE_BITS 128 /* bits of a shared port's words of 32-bit numbers */
/* bits of such words when they leave the die, with dynamic tiles: PEs leave few wires, and a
 * layer's operands have the time of a layer */
#define RUN_TIME_TILES_BITS 64
/* a KV cache of fewer words per layer is not worth a loader per partition, unless it is
 * asked for */
#define PARTITION_WORDS_LEAST 1024
#define PREFETCH_LEAST 64
#define PREFETCH_MOST 4096
#define BURST_WORDS 16 /* depth of a FIFO before a cast: a burst */
/* An operand may stall the shared loader for one part in so many of the time in which a PE takes a
 * layer's weights. */
#define STALL_SHARE 4

/* what a load reads: a tensor, or one per layer */
struct source {
	int count;
	int *input; /* [count] entries of stream.inputs */
};

static struct source source_of(struct design *design, const struct op *load)
{
	struct source source = { 0 };
	source.input = ARENA_ARRAY(design->module->arena, int, load->operands + 1);
	for (int j = 0; j < load->operands; j++)
		if (load->operand[j]->type->kind == TYPE_TENSOR)
			source.input[source.count++] = load->operand[j]->index;
	return source;
}

static struct image load_image(struct design *design, const struct op *load)
{
	struct arena *arena = design->module->arena;
	return image_of(arena,
	        sequence_merged(arena,
	                sequence_of_type(
	                        arena, attr_get(load, KEY_TENSOR)->type, load->result[0]->type)));
}

/* A state is stored as it is, since rows are appended to it; a load may read only a part of it. */
static struct image state_image(struct design *design, const struct op *load)
{
	struct image image = load_image(design, load);
	for (int i = 0; i < image.order.dims; i++)
		image.pitch[i] = image.order.stride[i] / image.order.lanes;
	image.words = type_elements(attr_get(load, KEY_TENSOR)->type) / image.order.lanes;
	return image;
}

const struct type *vector_of(struct module *module, const struct type *scalar, int64_t lanes)
{
	return lanes == 1 ? scalar : type_shaped(module, TYPE_VECTOR, 1, &lanes, scalar);
}

/* how a loader reads an image from its buffer */
struct image_access {
	const struct image *image;
	const struct source *source;
	int64_t scale;  /* words of the port per word of the image */
	int64_t offset; /* words of the buffer before the image */
};

/* address of the current iteration's word; layers follow each other */
static struct value *image_address(
        struct process *p, const struct image_access *access, struct value *const *counter)
{
	const struct image *image = access->image;
	int dims = image->order.dims;
	struct value **all = ARENA_ARRAY(p->module->arena, struct value *, dims + 1);
	int64_t *pitch = ARENA_ARRAY(p->module->arena, int64_t, dims + 1);
	for (int i = 0; i < dims; i++) {
		all[i] = process_window_index(
		        p, image->order.run_time ? image->order.run_time[i] : NULL, 1, counter[i]);
		pitch[i] = image->pitch[i] * access->scale;
	}
	all[dims] = access->source->count > 1 ? p->layer : NULL;
	pitch[dims] = image->words * access->scale;
	return make_address(p, dims + 1, all, pitch, access->offset);
}

/* Tells the writer, after each layer's last read of a state's buffer, that its row may
 * be written. */
static void push_token(struct process *p, const char *buffer, int dims, const int64_t *trip,
        struct value *const *counter)
{
	struct value *last = NULL;
	for (int i = 0; i < dims; i++)
		if (counter[i])
			last = make_and(p, last, make_equal(p, counter[i], trip[i] - 1));
	struct value *token = design_fifo(p->design, "s_read_done", type_integer(p->module, 1),
	        p->design->layers ? p->design->layers : 2);
	struct value *done = process_argument(p, token, "read_done");
	make_push(p, last, make_bool(p, true), done);
	map_set(&p->design->reads_done, buffer, token);
}

/* The outermost loop over consecutive words, with run-time counts: of a run that is worth a burst
 * (predict/port_run.h); else the innermost loop. */
static int first_of_run(const struct image *image)
{
	int first = image->order.dims;
	int64_t words = 1;
	bool open = true;
	while (open && first > 0 && image->pitch[first - 1] == words) {
		first--;
		words *= image->order.trip[first];
		open = !image->order.run_time || !image->order.run_time[first];
	}
	return !open && words >= PORT_RUN_LEAST ? first : image->order.dims - 1;
}

/* One loader for several loads of one tensor whose starts are equally far apart: it reads a run for
 * each in rotation. load_loop: the loop over the loads; -1: there is one. */
static struct image interleave_loads(struct arena *arena, const struct image *image, int64_t loads,
        int64_t words, int *load_loop)
{
	int dims = image->order.dims;
	int at = dims > 0 ? first_of_run(image) : 0;
	struct image to = *image;
	*load_loop = loads > 1 ? at : -1;
	if (loads == 1)
		return to;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, dims + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, dims + 1);
	to.pitch = ARENA_ARRAY(arena, int64_t, dims + 1);
	to.order.dims = dims + 1;
	for (int i = 0; i < dims; i++) {
		int place = i + (i >= at);
		trip[place] = image->order.trip[i];
		to.pitch[place] = image->pitch[i];
		run_time[place] = image->order.run_time ? image->order.run_time[i] : NULL;
	}
	trip[at] = loads;
	to.pitch[at] = words;
	to.order.trip = trip;
	to.order.run_time = image->order.run_time ? run_time : NULL;
	return to;
}

struct load_process {
	int ports; /* read in parallel, each with its part of a word */
	struct value *const *port;
	int loads; /* loads that are served in rotation, a FIFO each */
	struct value *const *fifo;
	int64_t step; /* words between the starts of two loads */
	const struct image *image;
	const struct source *source;
	const char *state; /* buffer of the state's first port; NULL: no state */
};

static struct value *read_word(struct process *p, const struct load_process *loader,
        struct value *const *memory, struct value *address)
{
	struct value **word = ARENA_ARRAY(p->module->arena, struct value *, loader->ports);
	for (int i = 0; i < loader->ports; i++)
		word[i] = make_load(p, memory[i], address);
	return loader->ports > 1
	        ? make_op(p, OP_JOIN_LANES, loader->fifo[0]->type->element, loader->ports, word)
	        : word_of_lanes(p, word[0], loader->fifo[0]->type->element);
}

static void add_loader(struct design *design, const struct load_process *loader)
{
	struct process p = process_new(design, "load");
	struct arena *arena = p.module->arena;
	struct value **memory = ARENA_ARRAY(arena, struct value *, loader->ports);
	for (int i = 0; i < loader->ports; i++)
		memory[i] = process_argument(&p, loader->port[i],
		        loader->ports > 1 ? text_format(arena, "m%d", i) : "m");
	int load_loop;
	struct image image =
	        interleave_loads(arena, loader->image, loader->loads, loader->step, &load_loop);
	const struct sequence *order = &image.order;
	struct value **counter = ARENA_ARRAY(arena, struct value *, order->dims + 1);
	process_layers(&p);
	bool state = loader->state, signals_after_loop = state && order->run_time;
	int opened = process_nest_run_time(
	        &p, (struct loop_bounds){ order->dims, order->trip, order->run_time }, 1, counter);
	const struct image_access access = { &image, loader->source, 1,
		state ? order->offset / order->lanes : 0 };
	struct value *word = read_word(&p, loader, memory, image_address(&p, &access, counter));
	for (int i = 0; i < loader->loads; i++) {
		struct value *selected =
		        load_loop < 0 ? NULL : make_equal(&p, counter[load_loop], i);
		make_push(&p, selected, word,
		        process_argument(&p, loader->fifo[i],
		                loader->loads > 1 ? text_format(arena, "y%d", i) : "y"));
	}
	if (signals_after_loop) { /* with a dynamic count there may be no last read */
		process_close(&p, opened);
		opened = process_nest(&p, 0, NULL, 1, counter);
	}
	if (state)
		push_token(&p, loader->state, signals_after_loop ? 0 : order->dims, order->trip,
		        counter);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}

static void join_ports(struct design *design, struct value *const *part, int parts,
        struct value *out, const struct type *stream)
{
	struct process p = process_new(design, "join");
	struct value **word = ARENA_ARRAY(p.module->arena, struct value *, parts);
	process_layers(&p);
	int opened = process_word_pipeline(&p, stream);
	for (int i = 0; i < parts; i++)
		word[i] = make_pop(&p, NULL,
		        process_argument(&p, part[i], text_format(p.module->arena, "x%d", i)));
	struct value *to = process_argument(&p, out, "y");
	make_push(&p, NULL, make_op(&p, OP_JOIN_LANES, out->type->element, parts, word), to);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}

/* common: what all layers have in common */
static void remember_state(
        struct design *design, const struct source *source, const struct state *common)
{
	for (int i = 0; i < source->count; i++) {
		struct state *state = arena_copy(design->module->arena, common, sizeof *common);
		state->offset = i * common->elements;
		state->layer = common->elements;
		state->elements = source->count * common->elements;
		map_set(&design->states, signature_name(design, false, source->input[i]), state);
	}
}

static void lower_port_parts(struct design *design, const struct op *load, int parts)
{
	struct module *module = design->module;
	struct source source = source_of(design, load);
	struct image image = load_image(design, load);
	const struct type *scalar = type_scalar(load->result[0]->type);
	struct value *out = stream_fifo(design, load->result[0]);
	struct value **part = ARENA_ARRAY(module->arena, struct value *, parts);
	const struct attr **segment = ARENA_ARRAY(module->arena, const struct attr *, source.count);
	int64_t lanes = image.order.lanes / parts;
	int64_t whole = memory_lanes(lanes);
	const struct type *word = vector_of(module, scalar, lanes);
	const struct type *port_word = vector_of(module, scalar, whole);
	image.padding = whole - lanes;
	for (int i = 0; i < parts; i++) {
		const char *name = text_format(module->arena, "w%d", design->serial++);
		for (int s = 0; s < source.count; s++)
			segment[s] = image_segment(design,
			        &(struct segment_place){ .index = source.input[s],
			                .offset = s * image.words * whole },
			        &image, i * lanes, lanes);
		design_buffer(design, name, port_word, image.words * source.count,
		        attr_array(module, source.count, segment));
		part[i] = parts == 1
		        ? out
		        : design_fifo(design, "s_part", word, sequence_words(image.order));
		design_prefetch(design, part[i]);
		struct value *port = design_port(design, name, port_word, name, false);
		add_loader(design,
		        &(struct load_process){ .ports = 1,
		                .port = &port,
		                .loads = 1,
		                .fifo = &part[i],
		                .image = &image,
		                .source = &source });
	}
	if (parts > 1)
		join_ports(design, part, parts, out, load->result[0]->type);
}

/* Does another load read the same state in the same order, from another start on? */
static bool reads_alike(struct design *design, const struct op *load, const struct op *other)
{
	if (other->code != OP_LOAD || !attr_get(other, KEY_PORTS) ||
	        other->operands != load->operands ||
	        other->result[0]->type->element != load->result[0]->type->element)
		return false;
	for (int j = 0; j < load->operands; j++)
		if (load->operand[j] != other->operand[j])
			return false;
	struct sequence order = state_image(design, load).order;
	struct sequence own = state_image(design, other).order;
	own.offset = order.offset;
	return sequence_same(order, own);
}

/* the FIFOs of all loads of a state that read like its first one */
struct state_loads {
	VEC(struct value *) fifos;
	/* the FIFOs in which their words wait: after a cast, if it makes narrower words */
	VEC(struct value *) taken;
	int64_t step;  /* words between the starts of two loads */
	int64_t lanes; /* elements that a reader takes at once, at most */
};

static const struct op *cast_of(const struct op *load)
{
	for (const struct op *op = load->next; op; op = op->next)
		if (op->code == OP_CAST && op->operand[0] == load->result[0])
			return op;
	return NULL;
}

/* A FIFO of narrow words takes less memory for as many bytes: it is as deep as memories are. */
static struct value *taken_from(struct design *design, const struct op *load)
{
	const struct op *cast = cast_of(load);
	bool narrows =
	        cast && stream_lanes(cast->result[0]->type) < stream_lanes(load->result[0]->type);
	return stream_fifo(design, narrows ? cast->result[0] : load->result[0]);
}

/* Cycles that a kernel takes for each of its words of a stream, at least. */
static int64_t cycles_per_word(const struct kernel *kernel, const struct type *stream)
{
	int loops = kernel->loops - (kernel->lanes > 1) - (kernel->row_unroll > 1);
	int64_t cycles = kernel->initiation_interval;
	for (int i = 0; i < loops; i++)
		cycles *= kernel->loop[i].extent;
	return cycles / itensor_tiles(stream->itensor);
}

/* How narrow the words of a load may be without delaying its reader. One that joins them to wider
 * words, and works on such a word for many cycles, needs no wide wires from the loader's die to its
 * own. */
static int64_t lanes_at_once(const struct op *load)
{
	int64_t lanes = stream_lanes(load->result[0]->type);
	int64_t least = PORT_BITS / type_bits(type_scalar(load->result[0]->type));
	int number;
	const struct op *cast = cast_of(load);
	const struct op *reader = cast ? only_reader(load->parent, cast->result[0], &number) : NULL;
	if (!reader || stream_lanes(cast->result[0]->type) % lanes)
		return lanes;
	const struct type *joined = cast->result[0]->type;
	int64_t cycles = cycles_per_word(reader->kernel, joined);
	while (lanes % 2 == 0 && lanes / 2 >= least && lanes / 2 * cycles >= stream_lanes(joined))
		lanes /= 2;
	return lanes;
}

static struct state_loads state_loads_of(
        struct design *design, const struct op *load, const struct image *image)
{
	struct module *module = design->module;
	struct state_loads state_loads = { 0 };
	for (const struct op *op = load->parent->first; op; op = op->next) {
		if (!reads_alike(design, load, op))
			continue;
		int64_t words = (state_image(design, op).order.offset - image->order.offset) /
		        image->order.lanes;
		int64_t count = (int64_t)state_loads.fifos.count;
		state_loads.step = count == 1 ? words : state_loads.step;
		INVARIANT(module->guard, words == state_loads.step * count,
		        "loads of a state with unequal strides");
		VEC_PUSH(module->arena, &state_loads.fifos, stream_fifo(design, op->result[0]));
		VEC_PUSH(module->arena, &state_loads.taken, taken_from(design, op));
		design_prefetch(design, state_loads.fifos.data[count]);
		int64_t lanes = lanes_at_once(op);
		state_loads.lanes = lanes > state_loads.lanes ? lanes : state_loads.lanes;
	}
	return state_loads;
}

static void set_fixed_depth(struct design *design, struct value *fifo, int64_t words)
{
	fifo->type = type_channel(design->module, TYPE_FIFO, fifo->type->element, words);
	attr_set(design->module, fifo->def, KEY_STREAM_FIXED_DEPTH, attr_unit(design->module));
}

/* Words that wait after a cast need not wait before it as well. */
static void set_burst_depth(struct design *design, struct value *fifo)
{
	if (fifo->type->depth > BURST_WORDS)
		set_fixed_depth(design, fifo, BURST_WORDS);
}

/* Past rows are there when a launch begins: as many words are prefetched as a URAM is deep, while
 * the adapter's other ports do not need it. */
static void prefetch_state(
        struct design *design, struct value *fifo, struct value *taken, int64_t words)
{
	words = words * type_bits(fifo->type->element) / type_bits(taken->type->element);
	if (!platform_total(design->context->platform).uram || words < PREFETCH_LEAST)
		return;
	set_fixed_depth(design, taken, words < PREFETCH_MOST ? words : PREFETCH_MOST);
	if (fifo != taken)
		set_burst_depth(design, fifo);
}

/* segments of one port's buffer: its part of every word, of all layers */
static const struct attr *state_segments(struct design *design, const struct source *source,
        const struct image *image, const struct state *state, int number)
{
	struct arena *arena = design->module->arena;
	const struct attr **segment = ARENA_ARRAY(arena, const struct attr *, source->count);
	int64_t lanes = image->order.lanes;
	int64_t first = number / state->ports * (state->port_interleave ? 1 : image->words);
	const int64_t trip[2] = { image->words, state->lanes };
	const int64_t stride[2] = { state->port_interleave ? state->parts * lanes : lanes, 1 };
	const int64_t base = first * lanes + number % state->ports * state->lanes;
	const struct segment_walk walk = {
		.base = base, .dims = 2, .trip = trip, .stride = stride
	};
	for (int s = 0; s < source->count; s++) {
		const struct segment_place place = { .index = source->input[s],
			.offset = s * state->elements };
		segment[s] = state_is_interleaved(state)
		        ? walk_segment(design, &place, &walk)
		        : plain_segment(design, &place, base, state->elements);
	}
	return attr_array(design->module, source->count, segment);
}

/* the FIFO for halves of a load's words, and the cast to whole ones */
static struct value *add_halves(struct design *design, const struct op *load, struct value *out)
{
	const struct type *word = out->type->element;
	struct value *half = design_fifo(design, "s_half",
	        vector_of(design->module, type_scalar(word), type_lanes(word) / 2), BURST_WORDS);
	design_prefetch(design, half);
	add_cast(design, "cast", half, out, load->result[0]->type);
	return half;
}

/* Makes the words of a load's FIFO narrower: in front of it, words as they come from memory are
 * split. Returns the FIFO that the loader fills. */
static struct value *split_words(
        struct design *design, const struct op *load, struct value *fifo, int64_t lanes)
{
	const struct type *word = fifo->type->element;
	int64_t depth = fifo->type->depth * (type_lanes(word) / lanes);
	struct value *whole = design_fifo(design, "s_whole", word, BURST_WORDS);
	design_prefetch(design, whole);
	fifo->type = type_channel(design->module, TYPE_FIFO,
	        vector_of(design->module, type_scalar(word), lanes),
	        depth < PREFETCH_MOST ? depth : PREFETCH_MOST);
	add_cast(design, "split", whole, fifo, load->result[0]->type);
	return whole;
}

/* words that a PE takes of the contractions in a block, if every port had a PE */
static int64_t pe_words(const struct design *design, const struct block *block)
{
	int64_t words = 0;
	for (const struct op *op = block->first; op; op = op->next) {
		struct contract contract;
		words += op->code == OP_CONTRACT && contract_of(op, &contract)
		        ? contract.groups * contract.outputs
		        : 0;
	}
	return words / design->context->platform->ports;
}

/* Is a state that a single load reads worth several loaders? Its words have several ports; or
 * one, where these are more words than a PE's: they would delay the engine, whatever adapter
 * they share. */
static bool is_interleaved_state(
        const struct design *design, const struct op *load, const struct image *image, int64_t bits)
{
	int64_t tiles = image_repeat_loops(image) ? image->order.trip[0] : 1;
	return bits > PORT_BITS ||
	        (bits == PORT_BITS && image->words >= PARTITION_WORDS_LEAST &&
	                image->words * tiles > pe_words(design, load->parent));
}

/* the loads of a state that read alike, and how its buffers are laid out for them */
struct state_lowering {
	struct design *design;
	const struct op *load; /* the first of them */
	struct source source;
	struct image image; /* of the whole state */
	struct state_loads loads;
	struct port_interleave port_interleave;
	bool partitioned; /* each load has buffers and a loader of its own */
	struct state state;
};

/* Is each load a partition of its own, to which rows are appended partition by partition? */
static bool is_partitioned(const struct state_lowering *l, int bits)
{
	const struct design *design = l->design;
	int loads = (int)l->loads.fifos.count;
	bool worth = l->image.words >= PARTITION_WORDS_LEAST * PORT_BITS / bits ||
	        design->context->choices.value[CHOICE_KV_PARTITIONS];
	return loads > 1 && worth && l->loads.step * loads == l->image.words &&
	        append_in_partitions(
	                l->design, signature_name(l->design, false, l->source.input[0]), loads);
}

static struct state_lowering plan_state(struct design *design, const struct op *load)
{
	struct state_lowering l = { .design = design,
		.load = load,
		.source = source_of(design, load),
		.image = state_image(design, load),
		.port_interleave = { .parts = 1 } };
	l.loads = state_loads_of(design, load, &l.image);
	int loads = (int)l.loads.fifos.count;
	int bits = (int)type_bits(load->result[0]->type->element);
	l.partitioned = is_partitioned(&l, bits);
	bool half_words =
	        !l.image.order.conditions && l.loads.taken.data[0] == l.loads.fifos.data[0];
	if (loads == 1 && is_interleaved_state(design, load, &l.image, bits))
		l.port_interleave = port_interleave_of(design, &l.image,
		        signature_name(design, false, l.source.input[0]), bits, half_words);
	l.state = (struct state){ .parts = l.partitioned ? loads : l.port_interleave.parts,
		.ports = 1,
		.port_interleave = l.port_interleave.parts > 1 };
	if (bits > PORT_BITS)
		l.state.ports = bits / PORT_BITS / (1 + l.port_interleave.half_words);
	return l;
}

/* what loaders fill: the FIFOs of the loads, or those of the process that merges their words */
static struct value **loader_fifos(const struct state_lowering *l)
{
	struct value *merged = l->loads.fifos.data[0];
	bool narrow = l->loads.lanes < stream_lanes(l->load->result[0]->type);
	if (l->port_interleave.half_words)
		merged = add_halves(l->design, l->load, merged);
	if (l->port_interleave.parts == 1) {
		for (size_t i = 0; narrow && i < l->loads.fifos.count; i++)
			l->loads.fifos.data[i] = split_words(
			        l->design, l->load, l->loads.fifos.data[i], l->loads.lanes);
		return l->loads.fifos.data;
	}
	return port_interleave_merge(l->design, &l->image, &l->port_interleave, merged);
}

/* adds the buffers of partition `number` and its loader */
static void add_state_part(
        struct state_lowering *l, const struct image *image, struct value *const *fifo, int number)
{
	struct design *design = l->design;
	struct state *state = &l->state;
	struct value **port = ARENA_ARRAY(design->module->arena, struct value *, state->ports);
	const struct attr *entry = signature_of(design, false, l->source.input[0]);
	const struct type *buffer_word = vector_of(
	        design->module, type_scalar(attr_item(entry, KEY_TYPE)->type), state->lanes);
	const struct type *port_word =
	        vector_of(design->module, type_scalar(l->load->result[0]->type), state->lanes);
	int64_t words =
	        image->words * l->source.count + port_interleave_padding(&l->port_interleave);
	for (int k = 0; k < state->ports; k++) {
		int index = number * state->ports + k;
		const char *name = text_format(design->module->arena, "w%d", design->serial++);
		design_buffer(design, name, buffer_word, words,
		        state_segments(design, &l->source, image, state, index));
		state->buffer[index] = name;
		port[k] = design_port(design, name, port_word, name, false);
	}
	add_loader(design,
	        &(struct load_process){ .ports = state->ports,
	                .port = port,
	                .loads = l->partitioned ? 1 : (int)l->loads.fifos.count,
	                .fifo = fifo,
	                .step = l->loads.step,
	                .image = image,
	                .source = &l->source,
	                .state = state->buffer[number * state->ports] });
}

/* Lowers all loads of a state that read alike, of which `load` is the first. If each load is a
 * partition, it has buffers and a loader of its own; else one loader serves all loads, or several
 * interleaved loaders serve one. */
static void lower_state(struct design *design, const struct op *load)
{
	struct arena *arena = design->module->arena;
	struct state_lowering l = plan_state(design, load);
	struct state *state = &l.state;
	int loads = (int)l.loads.fifos.count;
	for (int i = 0; i < loads; i++) {
		struct value *fifo = l.loads.fifos.data[i];
		struct value *taken = l.loads.taken.data[i];
		bool shares_port = operands_share_weight_port(design->source) && fifo != taken;
		if (l.partitioned || state_is_interleaved(state) || shares_port)
			prefetch_state(design, fifo, taken, l.image.words / loads);
	}
	struct value **fifo = loader_fifos(&l);
	struct image own = port_interleave_part(arena, &l.image, &l.port_interleave, 0);
	own.words /= l.partitioned ? loads : 1;
	state->lanes = own.order.lanes / state->ports;
	state->elements = own.words * state->lanes;
	state->buffer = ARENA_ARRAY(arena, const char *, state->parts * state->ports);
	for (int i = 0; i < state->parts; i++) {
		if (l.port_interleave.parts > 1)
			own = port_interleave_part(arena, &l.image, &l.port_interleave, i);
		add_state_part(&l, &own, &fifo[i], i);
	}
	bool interleaved = state->port_interleave && state->ports <= FEW_PORTS;
	for (int i = 0; interleaved && i < state->parts * state->ports; i++)
		design_mark_port(
		        design, state->buffer[i], KEY_STREAM_STATE_BUFFER, state->buffer[0]);
	remember_state(design, &l.source, state);
}

static void lower_bulk(struct design *design, const struct op *load)
{
	struct source source = source_of(design, load);
	if (!is_state(design, source.input[0])) {
		lower_port_parts(design, load, (int)attr_integer_or(load, KEY_PORTS, 1));
		return;
	}
	const struct op *first = load->parent->first;
	while (!reads_alike(design, load, first))
		first = first->next;
	if (first == load)
		lower_state(design, load);
}

/* Element by element, so that tensors of any size can follow each other in the buffer. */
static void lower_access(struct shared_port *shared, const struct op *load)
{
	struct process *p = &shared->process;
	struct design *design = p->design;
	struct module *module = design->module;
	struct source source = source_of(design, load);
	struct image image = load_image(design, load);
	int64_t lanes = image.order.lanes;
	int64_t words = sequence_words(image.order);
	for (int s = 0; s < source.count; s++) {
		const struct segment_place place = { .index = source.input[s],
			.offset = shared->elements + s * image.words * lanes };
		const struct attr *segment = image_segment(design, &place, &image, 0, lanes);
		VEC_PUSH(module->arena, &shared->segments, segment);
	}
	struct value *fifo = stream_fifo(design, load->result[0]);
	struct value *target = fifo;
	if (lanes > 1) {
		target = design_fifo(design, "s_elements", shared->scalar, words * lanes);
		design_prefetch(design, target);
		shared_port_cast(shared, target, fifo, load->result[0]->type);
	}
	int dims = image.order.dims + 1;
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, dims);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(module->arena, const struct run_time_trip *, dims);
	struct value **counter = ARENA_ARRAY(module->arena, struct value *, dims);
	for (int i = 0; i < image.order.dims; i++) {
		trip[i] = image.order.trip[i];
		run_time[i] = image.order.run_time ? image.order.run_time[i] : NULL;
	}
	trip[dims - 1] = lanes;
	int opened =
	        process_nest_run_time(p, (struct loop_bounds){ dims, trip, run_time }, 1, counter);
	const struct image_access access = { &image, &source, lanes, shared->elements };
	struct value *address[2] = { image_address(p, &access, counter), counter[dims - 1] };
	const int64_t pitch[2] = { 1, 1 };
	struct value *out = process_argument(p, target, "y");
	struct value *place = make_address(p, 2, address, pitch, 0);
	make_push(p, NULL, make_load(p, shared->port, place), out);
	process_close(p, opened);
	shared->elements += image.words * lanes * source.count;
}

/* Words of 32-bit numbers are narrower than the port, because the FIFOs of all loads may have to
 * cross between dies; with `full` they have the port's width, and share an adapter of the
 * engine's. */
int64_t shared_load_lanes(const struct type *scalar, bool full)
{
	int64_t bits = type_bits(scalar);
	if (bits >= 64)
		return 1;
	return (bits < 32 || full ? PORT_BITS : WIDE_BITS) / bits;
}

/* The type of the stream in words of `lanes`. Narrow numbers such as scales of quantized
 * weights would take as long as the weights if they were read one by one. NULL: the order has
 * no such words. */
static const struct type *wide_type(struct module *module, const struct op *load, int64_t lanes)
{
	const struct type *stream = load->result[0]->type;
	if (lanes == 1)
		return NULL;
	return lanes == stream_lanes(stream) ? stream : type_regroup(module, stream, lanes);
}

static bool is_wide(const struct op *load)
{
	return attr_get(load, KEY_WIDE);
}

/* Wide words of 32-bit numbers take as many wires as a PE's weights, where the die with the ports
 * has none to spare: they leave it in narrower words, ahead of their use. */
static bool crosses_narrow(const struct type *stream)
{
	return type_bits(type_scalar(stream)) >= 32 &&
	        stream_lanes(stream) * type_bits(type_scalar(stream)) > WIDE_BITS;
}

/* bits of such words when they leave the die */
static int64_t narrow_bits(const struct design *design)
{
	const struct block *body = design->source->region[0];
	return workload_of(design->source) == WORKLOAD_TILED_COUNTED_TOKENS &&
	                engine_shape(body).pes_per_port == 1
	        ? RUN_TIME_TILES_BITS
	        : WIDE_BITS;
}

/* Do other loads wait long for the shared loader until so many words of an operand have passed the
 * narrow cast? */
static bool stalls_loader(
        const struct design *design, const struct op *load, const struct type *word, int64_t words)
{
	int64_t cycles = (words - BURST_WORDS) * type_bits(word) / narrow_bits(design);
	return crosses_narrow(load->result[0]->type) &&
	        cycles > pe_words(design, load->parent) / STALL_SHARE;
}

/* Depth before a cast: the whole operand if it would stall the loader, else a burst. */
static void buffer_before_cast(
        struct design *design, const struct op *load, struct value *fifo, int64_t words)
{
	if (stalls_loader(design, load, fifo->type->element, words))
		attr_set(design->module, fifo->def, KEY_STREAM_FULL_DEPTH,
		        attr_unit(design->module));
	else
		set_burst_depth(design, fifo);
}

static void lower_access_cast(struct shared_port *shared, struct value *from,
        const struct type *from_type, const struct op *load, int64_t words)
{
	struct design *design = shared->process.design;
	const struct type *to_type = load->result[0]->type;
	struct value *to = stream_fifo(design, load->result[0]);
	if (!crosses_narrow(from_type) || !crosses_narrow(to_type)) {
		shared_port_cast(shared, from, to,
		        stream_lanes(from_type) > stream_lanes(to_type) ? from_type : to_type);
		return;
	}
	const struct type *scalar = type_scalar(from_type);
	int64_t lanes = narrow_bits(design) / type_bits(scalar);
	struct value *narrow = design_fifo(design, "s_words",
	        vector_of(design->module, scalar, lanes), words * stream_lanes(from_type) / lanes);
	design_prefetch(design, narrow);
	set_burst_depth(design, narrow);
	shared_port_cast(shared, from, narrow, from_type);
	shared_port_cast(shared, narrow, to, to_type);
}

/* In words of the port's width; a cast makes them as narrow or as wide as the stream's. */
static void lower_wide_access(struct shared_port *shared, const struct op *load)
{
	struct process *p = &shared->process;
	struct design *design = p->design;
	struct arena *arena = design->module->arena;
	struct source source = source_of(design, load);
	const struct type *type = wide_type(design->module, load, shared->lanes);
	struct image image = image_of(arena,
	        sequence_merged(
	                arena, sequence_of_type(arena, attr_get(load, KEY_TENSOR)->type, type)));
	int64_t lanes = image.order.lanes;
	int64_t words = sequence_words(image.order);
	for (int s = 0; s < source.count; s++) {
		const struct segment_place place = { .index = source.input[s],
			.offset = shared->elements + s * image.words * lanes };
		const struct attr *segment = image_segment(design, &place, &image, 0, lanes);
		VEC_PUSH(arena, &shared->segments, segment);
	}
	struct value *fifo = stream_fifo(design, load->result[0]);
	struct value *target = fifo;
	if (type != load->result[0]->type || crosses_narrow(load->result[0]->type)) {
		target = design_fifo(design, "s_words", stream_word(design->module, type), words);
		design_prefetch(design, target);
		if (operands_use_full_words(design->source))
			buffer_before_cast(design, load, target, words);
		lower_access_cast(shared, target, type, load, words);
	}
	struct value **counter = ARENA_ARRAY(arena, struct value *, image.order.dims + 1);
	int opened = process_nest_run_time(p,
	        (struct loop_bounds){ image.order.dims, image.order.trip, image.order.run_time }, 1,
	        counter);
	const struct image_access access = { &image, &source, 1, shared->elements / lanes };
	struct value *out = process_argument(p, target, "y");
	struct value *place = image_address(p, &access, counter);
	make_push(p, NULL, make_load(p, shared->port, place), out);
	process_close(p, opened);
	shared->elements += image.words * lanes * source.count;
}

static bool is_shared(const struct shared_port *shared, const struct op *op)
{
	return op->code == OP_LOAD && !attr_get(op, KEY_PORTS) &&
	        type_scalar(op->result[0]->type) == shared->scalar && !is_wide(op);
}

static bool is_shared_wide(const struct shared_port *shared, const struct op *op)
{
	return op->code == OP_LOAD && !attr_get(op, KEY_PORTS) &&
	        type_scalar(op->result[0]->type) == shared->scalar && is_wide(op);
}

static void lower_shared(struct design *design, const struct block *body, const struct type *scalar,
        bool narrow, int64_t lanes)
{
	const char *name = text_format(design->module->arena, "shared_%s", scalar->text);
	if (narrow)
		shared_port_lower(design, body, name,
		        &(struct shared_port){ .scalar = scalar,
		                .accepts = is_shared,
		                .lower_access = lower_access });
	name = text_format(design->module->arena, "words_%s", scalar->text);
	if (lanes)
		shared_port_lower(design, body, name,
		        &(struct shared_port){ .scalar = scalar,
		                .lanes = lanes,
		                .accepts = is_shared_wide,
		                .lower_access = lower_wide_access });
}

struct scalars {
	struct module *module;
	struct arena *arena;
	bool full; /* words as wide as a port, where all loads of a type allow it */
	VEC(const struct type *) list;
	VEC(bool) narrow;   /* are there loads element by element? */
	VEC(int64_t) lanes; /* lanes of the other loads' words; 0: there are none */
};

static size_t number_of(struct scalars *scalars, const struct type *scalar)
{
	size_t i = 0;
	while (i < scalars->list.count && scalars->list.data[i] != scalar)
		i++;
	if (i == scalars->list.count) {
		VEC_PUSH(scalars->arena, &scalars->list, scalar);
		VEC_PUSH(scalars->arena, &scalars->narrow, false);
		VEC_PUSH(scalars->arena, &scalars->lanes, 0);
	}
	return i;
}

static void add_shared_load(struct scalars *scalars, struct op *op)
{
	const struct type *scalar = type_scalar(op->result[0]->type);
	size_t i = number_of(scalars, scalar);
	int64_t lanes = shared_load_lanes(scalar, false);
	int64_t full = shared_load_lanes(scalar, scalars->full);
	int64_t *all = &scalars->lanes.data[i];
	if (!wide_type(scalars->module, op, lanes)) {
		scalars->narrow.data[i] = true;
		return;
	}
	attr_set(scalars->module, op, KEY_WIDE, attr_unit(scalars->module));
	full = wide_type(scalars->module, op, full) ? full : lanes;
	*all = *all && *all < full ? *all : full;
}

static void add_shared_loads(struct scalars *scalars, const struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			add_shared_loads(scalars, op->region[0]);
		if (op->code == OP_LOAD && !attr_get(op, KEY_PORTS))
			add_shared_load(scalars, op);
	}
}

static void lower_bulk_block(struct design *design, const struct block *body)
{
	for (const struct op *op = body->first; op; op = op->next) {
		design_begin(design, op);
		if (op->code == OP_LOAD && attr_get(op, KEY_PORTS))
			lower_bulk(design, op);
		if (op->code != OP_FOR)
			continue;
		design->layers = attr_get(op->operand[1]->def, KEY_VALUE)->integer;
		lower_bulk_block(design, op->region[0]);
		design->layers = 0;
	}
	design_begin(design, NULL);
}

/* memory ports of the loads that have some of their own */
static int64_t count_bulk_ports(const struct block *body)
{
	int64_t ports = 0;
	for (const struct op *op = body->first; op; op = op->next) {
		if (op->code == OP_FOR)
			ports += count_bulk_ports(op->region[0]);
		if (op->code == OP_LOAD)
			ports += attr_integer_or(op, KEY_PORTS, 0);
	}
	return ports;
}

/* Do large operands take so many ports that results of their size take all others? The shared
 * loader then has full words, so that its port can share an adapter with any of them. */
static bool fills_ports(const struct design *design, const struct block *body)
{
	return workload_of(design->source) == WORKLOAD_NONE &&
	        2 * count_bulk_ports(body) >= design->context->platform->ports;
}

bool lower_loads(struct design *design, struct block *body)
{
	struct scalars scalars = { .module = design->module,
		.arena = design->module->arena,
		.full = operands_use_full_words(design->source) || fills_ports(design, body) };
	add_shared_loads(&scalars, body);
	for (size_t i = 0; i < scalars.list.count; i++)
		lower_shared(design, body, scalars.list.data[i], scalars.narrow.data[i],
		        scalars.lanes.data[i]);
	lower_bulk_block(design, body);
	return true;
}

/* Pops a row's number. NULL: rows are alike, or there is a single one. */
static struct value *gathered_row(struct process *p, struct value *when, struct value *rows,
        const struct op *op, int64_t pitch)
{
	struct value *row = make_pop(p, when, rows);
	int64_t limit = attr_integer_or(op, KEY_LIMIT, 1);
	return pitch && limit > 1 ? make_clamped(p, row, limit) : NULL;
}

/* The tables of a gather: one, or one a layer behind each other. */
struct tables {
	struct source source;
	int parts;           /* ports, each of which brings as many lanes of a word */
	int64_t lanes;       /* of a word */
	int64_t words;       /* of a table */
	struct value **port; /* [parts] */
};

/* Makes a port, and its buffer of part of each word. */
static struct value *gathered_part(
        struct design *design, const struct op *op, const struct tables *tables, int part)
{
	struct module *module = design->module;
	int64_t lanes = tables->lanes / tables->parts;
	const struct type *scalar = type_scalar(op->result[0]->type);
	const struct type *word = tables->parts > 1 ? vector_of(module, scalar, lanes)
	                                            : stream_word(module, op->result[0]->type);
	const int64_t trip[2] = { tables->words, lanes };
	const int64_t stride[2] = { tables->lanes, 1 };
	int64_t elements = type_elements(op->operand[op->operands - 2]->type);
	int count = tables->source.count;
	const struct attr **segment = ARENA_ARRAY(module->arena, const struct attr *, count);
	for (int i = 0; i < count; i++) {
		const struct segment_place place = { .index = tables->source.input[i],
			.offset = i * tables->words * lanes };
		segment[i] = tables->parts > 1
		        ? walk_segment(design, &place,
		                  &(struct segment_walk){ .base = part * lanes,
		                          .dims = 2,
		                          .trip = trip,
		                          .stride = stride })
		        : plain_segment(design, &place, 0, elements);
	}
	const char *name = text_format(module->arena, "table%d", design->serial++);
	design_buffer(
	        design, name, word, tables->words * count, attr_array(module, count, segment));
	return design_port(design, name, word, name, false);
}

static struct tables gathered_tables(struct design *design, const struct op *op)
{
	int64_t lanes = stream_lanes(op->result[0]->type);
	int64_t bits = lanes * type_bits(type_scalar(op->result[0]->type));
	struct tables tables = { .source = source_of(design, op),
		.parts = bits > PORT_BITS ? (int)(bits / PORT_BITS) : 1,
		.lanes = lanes,
		.words = (type_elements(op->operand[op->operands - 2]->type) + lanes - 1) / lanes };
	tables.port = ARENA_ARRAY(design->module->arena, struct value *, tables.parts);
	for (int i = 0; i < tables.parts; i++)
		tables.port[i] = gathered_part(design, op, &tables, i);
	return tables;
}

/* The word at an address, from all ports. */
static struct value *gathered_word(struct process *p, const struct tables *tables,
        struct value *const *memory, struct value *at, const struct type *word)
{
	struct value **part = ARENA_ARRAY(p->module->arena, struct value *, tables->parts);
	for (int i = 0; i < tables->parts; i++)
		part[i] = make_load(p, memory[i], at);
	return tables->parts > 1 ? make_op(p, OP_JOIN_LANES, word, tables->parts, part) : part[0];
}

void lower_gather(struct design *design, const struct op *op)
{
	const struct tables tables = gathered_tables(design, op);
	int64_t lanes = tables.lanes;
	int64_t row_words = attr_integer_or(op, KEY_LENGTH, 1) / lanes;
	const struct itensor *order = op->result[0]->type->itensor;
	int64_t trip[3] = { itensor_tiles(order) / row_words, 1, row_words };
	const struct run_time_trip *bound[3] = { NULL };
	/* loops over the tokens of a launch: tiles, and those of a tile */
	for (int i = 0, at = 0; order->run_time && i < order->dims && at < 2; i++)
		if (order->run_time[i]) {
			bound[at] = order->run_time[i];
			trip[at++] = order->trip[i];
		}
	struct value *counter[3];
	struct process p = process_new(design, "gather");
	struct value **memory = ARENA_ARRAY(p.module->arena, struct value *, tables.parts);
	for (int i = 0; i < tables.parts; i++)
		memory[i] = process_argument(&p, tables.port[i],
		        tables.parts > 1 ? text_format(p.module->arena, "m%d", i) : "m");
	struct value *rows =
	        process_argument(&p, stream_fifo(design, op->operand[op->operands - 1]), "row");
	process_layers(&p);
	const int64_t pitch[3] = { attr_integer_or(op, KEY_ROW_PITCH, 1) / lanes, 1, tables.words };
	bool single_row = !bound[0] && !bound[1] && trip[0] == 1;
	/* popped before the loop, so that reads of a single row start at once */
	struct value *row = single_row ? gathered_row(&p, NULL, rows, op, pitch[0]) : NULL;
	int opened = process_nest_run_time(&p, (struct loop_bounds){ 3, trip, bound }, 1, counter);
	if (!single_row)
		row = gathered_row(
		        &p, counter[2] ? make_equal(&p, counter[2], 0) : NULL, rows, op, pitch[0]);
	struct value *address[3] = { row, counter[2], tables.source.count > 1 ? p.layer : NULL };
	struct value *at =
	        make_address(&p, 3, address, pitch, attr_integer_or(op, KEY_OFFSET, 0) / lanes);
	struct value *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	make_push(&p, NULL, gathered_word(&p, &tables, memory, at, out->type->element), out);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}
