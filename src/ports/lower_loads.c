/* Loads as processes.  A bulk load has memory ports of its own, several side by side if its
 * words are wide; all the others of one element type share one loader, which serves them in
 * program order: in full words of the port where their order allows it, the others one by one.
 * Tensors lie in memory in the order in which they are read. */
#include "ir/workload.h"
#include "ir/contract.h"
#include "ports/port_interleave.h"

#define WIDE_BITS 128 /* of words of wide numbers that a port shares */
/* of those that leave the die beside many counted tokens, whose slices leave few wires: a
 * layer's come while the unit works on it */
#define RUN_TIME_TILES_BITS 64
/* words of a port that are a layer's state: fewer are not worth a loader for each part, if none
 * was wished for */
#define PARTITION_WORDS_LEAST 1024
#define PREFETCH_LEAST 64
#define PREFETCH_MOST 4096
#define BURST_WORDS 16 /* on their way to a cast: a burst */
/* an operand may hold up the loader that others share for one part in so many of the time in
 * which a unit takes the weights of a layer */
#define STALL_SHARE 4

struct source { /* what a load reads: one tensor, or one a layer */
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

/* A state lies as it is, since rows are added to it; of some the load leaves a part out. */
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

/* Address of the word of this iteration; layers lie one after the other. */
static struct value *image_address(struct process *p, const struct image *image,
        struct value *const *counter, const struct source *source, int64_t scale, int64_t offset)
{
	int dims = image->order.dims;
	struct value **all = ARENA_ARRAY(p->module->arena, struct value *, dims + 1);
	int64_t *pitch = ARENA_ARRAY(p->module->arena, int64_t, dims + 1);
	for (int i = 0; i < dims; i++) {
		all[i] = process_window_index(
		        p, image->order.run_time ? image->order.run_time[i] : NULL, 1, counter[i]);
		pitch[i] = image->pitch[i] * scale;
	}
	all[dims] = source->count > 1 ? p->layer : NULL;
	pitch[dims] = image->words * scale;
	return make_address(p, dims + 1, all, pitch, offset);
}

/* Says after each layer's last read of a state's buffer that its row may now be written. */
static void push_token(struct process *p, const char *buffer, int dims, const int64_t *trip,
        struct value *const *counter)
{
	struct value *last = NULL;
	for (int i = 0; i < dims; i++)
		if (counter[i])
			last = make_and(p, last, make_equal(p, counter[i], trip[i] - 1));
	struct value *token = design_fifo(p->design, "s_read_done", type_integer(p->module, 1),
	        p->design->layers ? p->design->layers : 2);
	make_push(p, last, make_bool(p, true), process_argument(p, token, "read_done"));
	map_set(&p->design->reads_done, buffer, token);
}

/* Loads of one tensor that begin at equal distances take turns, a run of their innermost loop
 * each; turn: the loop over them, -1 where there is one. */
static struct image interleave_loads(struct arena *arena, const struct image *image, int64_t loads,
        int64_t words, int *load_loop)
{
	int dims = image->order.dims;
	int at = dims > 0 ? dims - 1 : 0;
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

struct loader {
	int ports; /* side by side, each with its part of a word */
	struct value *const *port;
	int loads; /* that take turns, each with a FIFO */
	struct value *const *fifo;
	int64_t step; /* words between the beginnings of two */
	const struct image *image;
	const struct source *source;
	const char *state; /* its buffer, the first port's; NULL: it is no state */
};

static struct value *read_word(struct process *p, const struct loader *loader,
        struct value *const *memory, struct value *address)
{
	struct value **word = ARENA_ARRAY(p->module->arena, struct value *, loader->ports);
	for (int i = 0; i < loader->ports; i++)
		word[i] = make_load(p, memory[i], address);
	return loader->ports > 1
	        ? make_op(p, OP_JOIN_LANES, loader->fifo[0]->type->element, loader->ports, word)
	        : word[0];
}

static void add_loader(struct design *design, const struct loader *loader)
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
	int opened =
	        process_nest_run_time(&p, order->dims, order->trip, order->run_time, 1, counter);
	struct value *word = read_word(&p, loader, memory,
	        image_address(&p, &image, counter, loader->source, 1,
	                state ? order->offset / order->lanes : 0));
	for (int i = 0; i < loader->loads; i++) {
		struct value *mine = load_loop < 0 ? NULL : make_equal(&p, counter[load_loop], i);
		make_push(&p, mine, word,
		        process_argument(&p, loader->fifo[i],
		                loader->loads > 1 ? text_format(arena, "y%d", i) : "y"));
	}
	if (signals_after_loop) { /* there may be no last read */
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
	make_push(&p, NULL, make_op(&p, OP_JOIN_LANES, out->type->element, parts, word),
	        process_argument(&p, out, "y"));
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}

/* like: what all of them have in common. */
static void remember_state(
        struct design *design, const struct source *source, const struct state *like)
{
	for (int i = 0; i < source->count; i++) {
		struct state *state = arena_copy(design->module->arena, like, sizeof *like);
		state->offset = i * like->elements;
		state->layer = like->elements;
		state->elements = source->count * like->elements;
		map_set(&design->states, signature_name(design, false, source->input[i]), state);
	}
}

static void lower_port_parts(struct design *design, const struct op *load, int parts)
{
	struct module *module = design->module;
	struct source source = source_of(design, load);
	struct image image = load_image(design, load);
	int64_t lanes = image.order.lanes / parts;
	const struct type *word = vector_of(module, type_scalar(load->result[0]->type), lanes);
	struct value *out = stream_fifo(design, load->result[0]);
	struct value **part = ARENA_ARRAY(module->arena, struct value *, parts);
	const struct attr **segment = ARENA_ARRAY(module->arena, const struct attr *, source.count);
	for (int i = 0; i < parts; i++) {
		const char *name = text_format(module->arena, "w%d", design->serial++);
		for (int s = 0; s < source.count; s++)
			segment[s] = image_segment(design, false, source.input[s], &image,
			        i * lanes, lanes, s * image.words * lanes);
		design_buffer(
		        design, name, word, image.words * source.count, source.count, segment);
		part[i] = parts == 1
		        ? out
		        : design_fifo(design, "s_part", word, sequence_words(image.order));
		design_prefetch(design, part[i]);
		struct value *port = design_port(design, name, word, name, false);
		add_loader(design,
		        &(struct loader){ .ports = 1,
		                .port = &port,
		                .loads = 1,
		                .fifo = &part[i],
		                .image = &image,
		                .source = &source });
	}
	if (parts > 1)
		join_ports(design, part, parts, out, load->result[0]->type);
}

/* Does another load of the same state read as this one does, from elsewhere on? */
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

/* The loads of a state that read as this one does, its first: their FIFOs. */
struct state_loads {
	VEC(struct value *) fifos;
	/* where their words are when readers take them: behind a cast, narrower ones */
	VEC(struct value *) taken;
	int64_t step; /* words between the beginnings of two */
};

static struct value *taken_from(struct design *design, const struct op *load)
{
	for (const struct op *op = load->next; op; op = op->next)
		if (op->code == OP_CAST && op->operand[0] == load->result[0])
			return stream_fifo(design, op->result[0]);
	return stream_fifo(design, load->result[0]);
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
	}
	return state_loads;
}

static void set_fixed_depth(struct design *design, struct value *fifo, int64_t words)
{
	fifo->type = type_channel(design->module, TYPE_FIFO, fifo->type->element, words);
	attr_set(design->module, fifo->def, KEY_STREAM_FIXED_DEPTH, attr_unit(design->module));
}

/* Words that wait behind a cast need not wait in front of it as well. */
static void set_burst_depth(struct design *design, struct value *fifo)
{
	if (fifo->type->depth > BURST_WORDS)
		set_fixed_depth(design, fifo, BURST_WORDS);
}

/* Words of past rows wait for nothing: as many are read ahead as a URAM is deep, while the
 * adapter's other ports are not in need of it.  They wait as they are taken. */
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

/* The buffer of a part's port: its part of every word of all layers. */
static const char *state_buffer(struct design *design, const struct source *source,
        const struct image *image, const struct state *state, int number, int64_t beyond)
{
	struct arena *arena = design->module->arena;
	const char *name = text_format(arena, "w%d", design->serial++);
	const struct attr **segment = ARENA_ARRAY(arena, const struct attr *, source->count);
	int64_t lanes = image->order.lanes;
	int64_t first = number / state->ports * (state->port_interleave ? 1 : image->words);
	const int64_t trip[2] = { image->words, state->lanes };
	const int64_t stride[2] = { state->port_interleave ? state->parts * lanes : lanes, 1 };
	const int64_t base = first * lanes + number % state->ports * state->lanes;
	const struct type *word = vector_of(design->module,
	        type_scalar(
	                attr_item(signature_of(design, false, source->input[0]), KEY_TYPE)->type),
	        state->lanes);
	for (int s = 0; s < source->count; s++)
		segment[s] = state_is_interleaved(state)
		        ? strided_segment(design, source->input[s], base, 2, trip, stride,
		                  s * state->elements)
		        : plain_segment(design, false, source->input[s], base, state->elements,
		                  s * state->elements);
	design_buffer(
	        design, name, word, image->words * source->count + beyond, source->count, segment);
	return name;
}

/* The FIFO for halves of a load's words. */
static struct value *add_halves(struct design *design, const struct op *load, struct value *out)
{
	const struct type *word = out->type->element;
	struct value *half = design_fifo(design, "s_half",
	        vector_of(design->module, type_scalar(word), type_lanes(word) / 2), BURST_WORDS);
	design_prefetch(design, half);
	add_cast(design, "cast", half, out, load->result[0]->type);
	return half;
}

/* Words that a slice takes of the contractions in a block, if there were as many as ports. */
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

/* A state that one load reads, in words of several ports; or of one, where these are many, and
 * more than a slice's: whatever adapter they came through would hold up the unit. */
static bool is_interleaved_state(
        const struct design *design, const struct op *load, const struct image *image, int64_t bits)
{
	int64_t tiles = image_repeat_loops(image) ? image->order.trip[0] : 1;
	return bits > PORT_BITS ||
	        (bits == PORT_BITS && image->words >= PARTITION_WORDS_LEAST &&
	                image->words * tiles > pe_words(design, load->parent));
}

/* All loads of a state that read alike, the first of which this one is.  Where each reads a part
 * of its own, and a row comes part by part, every part has buffers and a loader of its own; else
 * there is one loader for all, or several for one. */
static void lower_state(struct design *design, const struct op *load)
{
	struct arena *arena = design->module->arena;
	struct source source = source_of(design, load);
	struct image image = state_image(design, load);
	struct state_loads state_loads = state_loads_of(design, load, &image);
	int loads = (int)state_loads.fifos.count;
	int bits = (int)type_bits(load->result[0]->type->element);
	bool worth = image.words >= PARTITION_WORDS_LEAST * PORT_BITS / bits ||
	        design->context->choices.value[CHOICE_KV_PARTITIONS];
	bool partitioned = loads > 1 && worth && state_loads.step * loads == image.words &&
	        append_in_partitions(design, signature_name(design, false, source.input[0]), loads);
	bool half_words =
	        !image.order.conditions && state_loads.taken.data[0] == state_loads.fifos.data[0];
	struct port_interleave port_interleave =
	        loads == 1 && is_interleaved_state(design, load, &image, bits)
	        ? port_interleave_of(design, &image, signature_name(design, false, source.input[0]),
	                  bits, half_words)
	        : (struct port_interleave){ .parts = 1 };
	struct state state = { .parts = partitioned ? loads : port_interleave.parts,
		.ports = bits > PORT_BITS ? bits / PORT_BITS / (1 + port_interleave.half_words) : 1,
		.port_interleave = port_interleave.parts > 1 };
	for (int i = 0; i < loads; i++)
		if (partitioned || state_is_interleaved(&state) ||
		        (operands_share_weight_port(design->source) &&
		                state_loads.fifos.data[i] != state_loads.taken.data[i]))
			prefetch_state(design, state_loads.fifos.data[i], state_loads.taken.data[i],
			        image.words / loads);
	struct value *merged_fifo = port_interleave.half_words
	        ? add_halves(design, load, state_loads.fifos.data[0])
	        : state_loads.fifos.data[0];
	struct value **fifo = port_interleave.parts > 1
	        ? port_interleave_merge(design, &image, &port_interleave, merged_fifo)
	        : state_loads.fifos.data;
	struct image own = port_interleave_part(arena, &image, &port_interleave, 0);
	own.words /= partitioned ? loads : 1;
	state.lanes = own.order.lanes / state.ports;
	state.elements = own.words * state.lanes;
	int loads_per_loader = partitioned ? 1 : loads; /* FIFOs of a loader */
	state.buffer = ARENA_ARRAY(arena, const char *, state.parts *state.ports);
	for (int i = 0; i < state.parts; i++) {
		struct value **port = ARENA_ARRAY(arena, struct value *, state.ports);
		own = port_interleave.parts > 1
		        ? port_interleave_part(arena, &image, &port_interleave, i)
		        : own;
		for (int k = 0; k < state.ports; k++) {
			int number = i * state.ports + k;
			state.buffer[number] = state_buffer(design, &source, &own, &state, number,
			        port_interleave_padding(&port_interleave));
			port[k] = design_port(design, state.buffer[number],
			        vector_of(design->module, type_scalar(load->result[0]->type),
			                state.lanes),
			        state.buffer[number], false);
		}
		add_loader(design,
		        &(struct loader){ state.ports, port, loads_per_loader, &fifo[i],
		                state_loads.step, &own, &source, state.buffer[i * state.ports] });
	}
	for (int i = 0;
	        state.port_interleave && state.ports <= FEW_PORTS && i < state.parts * state.ports;
	        i++)
		map_set(&design->interleaved_states, state.buffer[i],
		        arena_copy(arena, &state, sizeof state));
	remember_state(design, &source, &state);
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

/* Element by element, so that any tensor can stand beside any other. */
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
		const struct attr *segment = image_segment(design, false, source.input[s], &image,
		        0, lanes, shared->elements + s * image.words * lanes);
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
	int opened = process_nest_run_time(p, dims, trip, run_time, 1, counter);
	struct value *address[2] = { image_address(
		                             p, &image, counter, &source, lanes, shared->elements),
		counter[dims - 1] };
	const int64_t pitch[2] = { 1, 1 };
	make_push(p, NULL, make_load(p, shared->port, make_address(p, 2, address, pitch, 0)),
	        process_argument(p, target, "y"));
	process_close(p, opened);
	shared->elements += image.words * lanes * source.count;
}

/* Wide numbers are fewer; their words are narrower, because the FIFOs of all loads may have to
 * cross between dies.  Full words ride on an adapter of a unit's. */
int64_t shared_load_lanes(const struct type *scalar, bool full)
{
	int64_t bits = type_bits(scalar);
	return bits >= 64 ? 1 : (bits < 32 || full ? PORT_BITS : WIDE_BITS) / bits;
}

/* Narrow numbers, such as the scales of quantised weights, would take as long as the weights if
 * they came one by one.  NULL: their order has no full words. */
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

/* Wide words of wide numbers would take as many wires as a slice's, where a die that has the
 * ports has none to spare: they go from there in narrower ones, ahead of their use. */
static bool crosses_narrow(const struct type *stream)
{
	return type_bits(type_scalar(stream)) >= 32 &&
	        stream_lanes(stream) * type_bits(type_scalar(stream)) > WIDE_BITS;
}

/* Of such words, those that leave the die. */
static int64_t narrow_bits(const struct design *design)
{
	const struct block *body = design->source->region[0];
	return engine_has_run_time_tiles(body) && engine_shape(body).pes_per_port == 1
	        ? RUN_TIME_TILES_BITS
	        : WIDE_BITS;
}

/* Does a loader wait long until so many words of an operand have passed its cast, while others
 * wait for it? */
static bool stalls_loader(
        const struct design *design, const struct op *load, const struct type *word, int64_t words)
{
	int64_t cycles = (words - BURST_WORDS) * type_bits(word) / narrow_bits(design);
	return crosses_narrow(load->result[0]->type) &&
	        cycles > pe_words(design, load->parent) / STALL_SHARE;
}

/* Words in front of a cast: all of an operand that would hold up the loader, else those on their
 * way. */
static void buffer_before_cast(
        struct design *design, const struct op *load, struct value *fifo, int64_t words)
{
	if (stalls_loader(design, load, fifo->type->element, words))
		attr_set(design->module, fifo->def, KEY_STREAM_FULL_DEPTH,
		        attr_unit(design->module));
	else
		set_burst_depth(design, fifo);
}

static void lower_access_cast(struct shared_port *shared, struct value *from, struct value *to,
        const struct type *from_type, const struct type *to_type, int64_t words)
{
	struct design *design = shared->process.design;
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

/* Words of the whole port; a cast makes them as narrow or as wide as their reader wants. */
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
		const struct attr *segment = image_segment(design, false, source.input[s], &image,
		        0, lanes, shared->elements + s * image.words * lanes);
		VEC_PUSH(arena, &shared->segments, segment);
	}
	struct value *fifo = stream_fifo(design, load->result[0]);
	struct value *target = fifo;
	if (type != load->result[0]->type || crosses_narrow(load->result[0]->type)) {
		target = design_fifo(design, "s_words", stream_word(design->module, type), words);
		design_prefetch(design, target);
		if (operands_use_full_words(design->source))
			buffer_before_cast(design, load, target, words);
		lower_access_cast(shared, target, fifo, type, load->result[0]->type, words);
	}
	struct value **counter = ARENA_ARRAY(arena, struct value *, image.order.dims + 1);
	int opened = process_nest_run_time(
	        p, image.order.dims, image.order.trip, image.order.run_time, 1, counter);
	make_push(p, NULL,
	        make_load(p, shared->port,
	                image_address(p, &image, counter, &source, 1, shared->elements / lanes)),
	        process_argument(p, target, "y"));
	process_close(p, opened);
	shared->elements += image.words * lanes * source.count;
}

static bool is_shared(const struct op *op, const struct type *scalar)
{
	return op->code == OP_LOAD && !attr_get(op, KEY_PORTS) &&
	        type_scalar(op->result[0]->type) == scalar && !is_wide(op);
}

static bool is_shared_wide(const struct op *op, const struct type *scalar)
{
	return op->code == OP_LOAD && !attr_get(op, KEY_PORTS) &&
	        type_scalar(op->result[0]->type) == scalar && is_wide(op);
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
	bool full; /* words as wide as a port, where all loads of a type have such */
	VEC(const struct type *) list;
	VEC(bool) narrow;   /* whether there are loads element by element */
	VEC(int64_t) lanes; /* of the words of the others; 0: there are none */
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

static void collect_load(struct scalars *scalars, struct op *op)
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

static void collect_shared(struct scalars *scalars, const struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			collect_shared(scalars, op->region[0]);
		if (op->code == OP_LOAD && !attr_get(op, KEY_PORTS))
			collect_load(scalars, op);
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

bool lower_loads(struct design *design, struct block *body)
{
	struct scalars scalars = { .module = design->module,
		.arena = design->module->arena,
		.full = operands_use_full_words(design->source) };
	collect_shared(&scalars, body);
	for (size_t i = 0; i < scalars.list.count; i++)
		lower_shared(design, body, scalars.list.data[i], scalars.narrow.data[i],
		        scalars.lanes.data[i]);
	lower_bulk_block(design, body);
	return true;
}

/* Takes a row's number; NULL: rows are alike, and none tells where they are. */
static struct value *gathered_row(struct process *p, struct value *when, struct value *rows,
        const struct op *op, int64_t pitch)
{
	struct value *row = make_pop(p, when, rows);
	int64_t limit = attr_integer_or(op, KEY_LIMIT, 1);
	return pitch && limit > 1 ? make_clamped(p, row, limit) : NULL;
}

void lower_gather(struct design *design, const struct op *op)
{
	struct module *module = design->module;
	const struct type *word = stream_word(module, op->result[0]->type);
	int64_t lanes = stream_lanes(op->result[0]->type);
	int64_t elements = type_elements(op->operand[0]->type);
	int64_t row_words = attr_integer_or(op, KEY_LENGTH, 1) / lanes;
	const struct itensor *order = op->result[0]->type->itensor;
	int64_t trip[3] = { itensor_tiles(order) / row_words, 1, row_words };
	const struct run_time_trip *bound[3] = { NULL };
	/* rows of a launch: tiles, those of a tile */
	for (int i = 0, at = 0; order->run_time && i < order->dims && at < 2; i++)
		if (order->run_time[i]) {
			bound[at] = order->run_time[i];
			trip[at++] = order->trip[i];
		}
	const char *name = text_format(module->arena, "table%d", design->serial++);
	const struct attr *segment =
	        plain_segment(design, false, op->operand[0]->index, 0, elements, 0);
	design_buffer(design, name, word, (elements + lanes - 1) / lanes, 1, &segment);
	struct value *port = design_port(design, name, word, name, false);
	struct value *counter[3];
	struct process p = process_new(design, "gather");
	struct value *memory = process_argument(&p, port, "m");
	struct value *rows = process_argument(&p, stream_fifo(design, op->operand[1]), "row");
	process_layers(&p);
	const int64_t pitch[2] = { attr_integer_or(op, KEY_ROW_PITCH, 1) / lanes, 1 };
	bool single_row = !bound[0] && !bound[1] && trip[0] == 1;
	/* its words are known when the loop begins: they are asked for at once */
	struct value *row = single_row ? gathered_row(&p, NULL, rows, op, pitch[0]) : NULL;
	int opened = process_nest_run_time(&p, 3, trip, bound, 1, counter);
	if (!single_row)
		row = gathered_row(
		        &p, counter[2] ? make_equal(&p, counter[2], 0) : NULL, rows, op, pitch[0]);
	struct value *address[2] = { row, counter[2] };
	struct value *at =
	        make_address(&p, 2, address, pitch, attr_integer_or(op, KEY_OFFSET, 0) / lanes);
	make_push(&p, NULL, make_load(&p, memory, at),
	        process_argument(&p, stream_fifo(design, op->result[0]), "y"));
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
}
