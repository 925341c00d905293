/* Contractions as phases of one unit: the processes around its slices.
 * All that the unit reads from memory lies in the order of use, so its loaders run ahead, whatever the phase at hand still waits for.  What a phase takes and gives
 * passes through FIFOs that hold all of it, and phases come in an order in which none waits for a later one (unit_order.c); so the unit adds no cycle of waits. */
#include "pass/unit.h"

#define PREFETCH_WORDS 512    /* of a slice: what its port delivers while the unit waits for numbers */
#define PREFETCH_URAM 4096    /* the same, where there are URAMs, which have as many words */
#define PREFETCH_TILES 3      /* so many times of it where tiles of tokens use each word for longer than memory takes to bring it: they are there when a head of one row begins, which takes a word a cycle; */
#define HEAD_SHARE 30         /* where its words are one part in so many of all cycles; else the URAMs are worth more elsewhere */
#define LOADED_TOGETHER 8     /* slices whose words one process brings, where its loops are many */
#define AHEAD 32              /* words of the FIFOs inside: one LUT a bit */
#define SUMS_KEPT 512         /* words of sums: so deep is a block RAM */
#define AHEAD_WIDE 16         /* of those of groups: half a LUT a bit */
#define SCALE_LANES 32        /* f16 in a word of a port: the scales of all slices */
#define CHAIN 6               /* processes of slices that hand groups on to each other */
#define BLOCK_MOST 64
#define MEMORY_WAITS 30       /* hundredths: so little counts what stands behind a phase's words where memory brings them slower than a slice takes them, and goes on meanwhile */
#define KEPT_ROWS 4           /* from where the last token of a group is kept to where it is used */
#define SUM_KEPT 2            /* cycles in which a sum is chosen from an array of registers, and written */

struct process unit_process(const struct unit *unit, const char *name)
{
	struct process p = process_new(unit->design, name);
	attr_set(p.module, p.function, "stream.style", attr_string(p.module, "flp"));      /* its next input may depend on what is in its pipeline */
	return p;
}

int unit_loops(const struct unit *unit, struct process *p, const struct phase *phase, struct value *counter[UNIT_LOOPS])
{
	const int64_t trip[UNIT_LOOPS] = {phase->blocks, phase->contract.groups, phase->block, phase->words};
	int loops = unit->words_most > 1 ? UNIT_LOOPS : UNIT_LOOPS - 1;
	counter[UNIT_LOOPS - 1] = NULL;
	for (int i = 0; i < loops; i++) {
		bool bound = i == UNIT_LOOPS - 1 && phase->words_there;
		counter[i] = bound ? process_loop_to(p, trip[i], phase->words_there) : process_loop_of(p, make_own_index(p, trip[i]));
		if (!i)
			process_mark(p, NEST_MARK);
	}
	process_pipeline(p, 1);
	return loops;
}

static struct value *row_there(struct process *p, const struct phase *phase, struct value *const *counter)
{
	struct value *last = make_same(p, counter[0], make_own_index(p, phase->blocks - 1));
	return make_below(p, counter[2], make_select(p, last, make_own_index(p, phase->rows), make_own_index(p, phase->block)));
}

struct value *unit_take_word(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, struct value *fifo)
{
	struct value *token = counter[UNIT_LOOPS - 1], *there = token ? make_equal(p, token, 0) : unit->short_rows ? row_there(p, phase, counter) : NULL;
	struct value *word = make_take(p, there, fifo);
	if (there && !token)                  /* of the rows beyond, nothing is used */
		attr_set(p->module, word->def, "stream.unkept", attr_unit(p->module));
	return word;
}

static struct value *inner_fifo(const struct unit *unit, const char *name, const struct type *word, int64_t depth)
{
	unit->design->layers = unit->phases.data[0].layers;
	struct value *fifo = design_fifo(unit->design, name, word, depth);
	unit->design->layers = 0;
	return fifo;
}

/* ---- what lies in memory */

static int64_t words_of(const struct phase *phase)
{
	return phase->contract.groups * ((phase->blocks - 1) * phase->block + phase->rows);
}

/* Blocks of a phase that have as many rows each. */
struct part {
	int64_t first, blocks, rows;
};

/* All blocks, or the full ones and the last. */
static int parts_of(const struct phase *phase, struct part part[2])
{
	bool ragged = phase->rows < phase->block && phase->blocks > 1;
	part[0] = (struct part){0, phase->blocks - ragged, ragged ? phase->block : phase->rows};
	part[1] = (struct part){phase->blocks - 1, 1, phase->rows};
	return 1 + ragged;
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
	struct value **port, **out;
	int first;                /* phase whose words begin at `base`; each layer's are `pitch` behind those of the one before */
	int64_t base, pitch;
};

static int64_t words_between(const struct unit *unit, int first, int end)
{
	int64_t words = 0;
	for (int i = first; i < end; i++)
		words += words_of(&unit->phases.data[i]);
	return words;
}

/* Words of phases that follow each other in memory. */
static void add_words(const struct unit *unit, struct process *p, int first, int end, void *context)
{
	const struct words *w = context;
	struct value *counter[2] = {process_loop(p, words_between(unit, first, end)), p->layer};
	const int64_t step[2] = {1, w->pitch};
	process_pipeline(p, 1);
	struct value *address = make_address(p, 2, counter, step, w->base + p->layers_before * w->pitch + words_between(unit, w->first, first));
	for (int i = 0; i < w->ports; i++)
		make_push(p, NULL, make_load(p, w->port[i], address), w->out[i]);
	process_close(p, 1);
}

/* Phases of one loop: their words of one layer follow each other, then those of the next layer. */
static void add_run(const struct unit *unit, struct process *p, struct words *words, int first, int end)
{
	int64_t layers = unit->phases.data[first].layers;
	words->first = first;
	words->pitch = words_between(unit, first, end);
	unit_walk_loop(unit, p, first, true, add_words, words);
	words->base += words->pitch * (layers ? layers : 1);
}

/* Has the last phase one token, those before it many, and is it worth mention beside them? */
static bool ends_with_row(const struct unit *unit)
{
	const struct phase *last = &unit->phases.data[unit->phases.count - 1];
	int64_t cycles = 0;
	for (const struct phase *phase = unit->phases.data; phase < last; phase++)
		cycles += words_of(phase) * phase->words * phase->tiles * (phase->layers ? phase->layers : 1);
	return unit->abreast > UNIT_LANES && !unit->phases.data[0].contract.rows && last->tile == 1 && words_of(last) * HEAD_SHARE >= cycles;
}

/* The buffer of a port: the words of all phases, layer by layer. */
static void add_buffer(const struct unit *unit, const char *name, const struct type *word, int slice, segment_of *segment)
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
				for (int n = 0, parts = parts_of(phase, part); n < parts; n++) {
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
};

static void load_in_order(const struct unit *unit, const struct loader *loader, struct value **fifo)
{
	struct design *design = unit->design;
	struct arena *arena = design->module->arena;
	bool uram = platform_total(design->context->platform).uram > 0;
	const char **name = ARENA_ARRAY(arena, const char *, loader->ports);
	for (int i = 0; i < loader->ports; i++) {
		name[i] = loader->number < 0 ? loader->name : text_format(arena, "%s%d", loader->name, loader->number + i);
		fifo[i] = inner_fifo(unit, name[i], loader->word, uram ? PREFETCH_URAM * (ends_with_row(unit) ? PREFETCH_TILES : 1) : PREFETCH_WORDS);
		attr_set(design->module, fifo[i]->def, "stream.ahead", attr_unit(design->module));
		design_prefetch(design, fifo[i]);
	}
	struct process p = unit_process(unit, text_format(arena, "load_%s", name[0]));
	struct words words = {.ports = loader->ports, .port = ARENA_ARRAY(arena, struct value *, loader->ports), .out = ARENA_ARRAY(arena, struct value *, loader->ports)};
	for (int i = 0; i < loader->ports; i++) {
		words.port[i] = process_argument(&p, design_port(design, name[i], loader->word, name[i], false), loader->ports > 1 ? text_format(arena, "m%d", i) : "m");
		words.out[i] = process_argument(&p, fifo[i], loader->ports > 1 ? text_format(arena, "y%d", i) : "y");
	}
	for (int first = 0, end; first < (int)unit->phases.count; first = end) {
		end = unit_loop_end(unit, first);
		add_run(unit, &p, &words, first, end);
	}
	process_finish(&p);
	for (int i = 0; i < loader->ports; i++)
		add_buffer(unit, name[i], loader->word, loader->number < 0 ? 0 : loader->number + i, loader->segment);
}

/* Slices' words, a loader for each, or one for several: of tiles that are counted at run time its loops and what counts them take as many LUTs as a slice's scaling. */
static void load_weights(const struct unit *unit, const struct type *word)
{
	int together = unit_counts_tiles(unit->design->source->region[0]) ? LOADED_TOGETHER : 1;
	for (int s = 0; s < unit->slices; s += together) {
		int ports = unit->slices - s < together ? unit->slices - s : together;
		load_in_order(unit, &(struct loader){"unit", word, s, ports, weight_segment}, &unit->weights[s]);
	}
}

/* ---- processes around the slices */

struct feed {
	int chains;
	struct value **chain, *scale;     /* channels of the process */
	struct value **group, **group_scale;      /* [phases] */
};

/* The process's channel of a phase, whose tiles may be worked on in several places. */
static struct value *channel_once(struct process *p, struct value **known, struct value *stream, const char *name)
{
	*known = *known ? *known : process_argument(p, stream_fifo(p->design, stream), name);
	return *known;
}

static void feed_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct feed *feed = context;
	ptrdiff_t number = phase - unit->phases.data;
	const int64_t trip[2] = {phase->contract.groups, phase->tile};
	const struct run_time_trip *bound[2] = {NULL, phase->there.each};
	struct value *counter[2];
	int loops = 1;
	if (phase->contract.rows)
		loops = process_nest_to(p, 2, trip, bound, 1, counter);
	else
		process_loop(p, phase->tile * phase->contract.groups);
	process_pipeline(p, 1);
	make_push(p, NULL, make_take(p, NULL, channel_once(p, &feed->group_scale[number], phase->op->operand[1], "s")), feed->scale);
	struct value *group = make_take(p, NULL, channel_once(p, &feed->group[number], phase->op->operand[0], "x"));
	for (int i = 0; i < feed->chains; i++)
		make_push(p, NULL, group, feed->chain[i]);
	process_close(p, loops);
}

static int processes_of(const struct unit *unit)
{
	return unit->slices / unit->products;
}

static void feed_chains(const struct unit *unit, int chains, struct value *const *chain)
{
	struct process p = unit_process(unit, "feed");
	struct feed feed = {.chains = chains, .scale = process_argument(&p, unit->scales, "scale"), .chain = ARENA_ARRAY(p.module->arena, struct value *, chains + 1)};
	feed.group = ARENA_ARRAY(p.module->arena, struct value *, unit->phases.count);
	feed.group_scale = ARENA_ARRAY(p.module->arena, struct value *, unit->phases.count);
	for (int i = 0; i < chains; i++)
		feed.chain[i] = process_argument(&p, chain[i], text_format(p.module->arena, "slice%d", i * CHAIN * unit->products));
	unit_each(unit, &p, feed_phase, &feed);
	process_finish(&p);
}

/* Processes 0, CHAIN, 2 CHAIN … of slices are fed; the others get what the one before them hands on. */
static void add_feed(const struct unit *unit)
{
	struct value **chain = ARENA_ARRAY(unit->design->module->arena, struct value *, processes_of(unit)), *pairs;
	int chains = 0;
	for (int i = 0; i < processes_of(unit); i += CHAIN)
		chain[chains++] = unit->input[i];
	if (unit->common == 1) {
		feed_chains(unit, chains, chain);
		return;
	}
	pairs = inner_fifo(unit, "s_pairs", unit->group, AHEAD_WIDE);
	feed_chains(unit, 1, &pairs);
	lower_lend(unit, pairs, chains, chain);
}

struct scales {
	struct value *words, **out, **kept, *in;
};

/* An f16 or f32 for each slice of a process. */
static const struct type *word_of(const struct unit *unit, int bits)
{
	const struct type *scalar = type_float(unit->design->module, bits);
	const int64_t lanes = unit->products;
	return lanes > 1 ? type_shaped(unit->design->module, TYPE_VECTOR, 1, &lanes, scalar) : scalar;
}

static void scale_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct scales *scales = context;
	const struct type *half = word_of(unit, 16);
	struct value *counter[UNIT_LOOPS];
	const struct type *real = word_of(unit, 32);
	struct value **own = ARENA_ARRAY(p->module->arena, struct value *, unit->abreast), **product = ARENA_ARRAY(p->module->arena, struct value *, unit->abreast);
	if (!unit->streams)
		unit_begin(unit, p, phase, scales->in, scales->kept, NULL);
	int loops = unit_loops(unit, p, phase, counter);
	struct value *word = unit_take_word(unit, p, phase, counter, scales->words), *place = unit->streams ? NULL : unit_group_place(unit, p, phase, counter);
	for (int q = 0; q < unit->abreast; q++) {
		own[q] = unit->streams ? unit_stream(p, counter, scales->in, scales->kept[q], NULL) : make_load(p, scales->kept[q], place);
		own[q] = unit->products > 1 ? make_op(p, OP_BROADCAST, real, 1, &own[q]) : own[q];
	}
	if (!unit->streams)
		unit_ahead(unit, p, phase, counter, scales->in, scales->kept, NULL);
	for (int i = 0; i < processes_of(unit); i++) {
		struct value *part[2] = {word, make_index(p, i)}, *lanes = make_op(p, OP_SPLIT_LANES, half, 2, part), *wide = make_op(p, OP_EXTF, real, 1, &lanes);
		for (int q = 0; q < unit->abreast; q++)
			product[q] = make_op(p, OP_MULF, real, 2, (struct value *[2]){own[q], wide});
		make_push(p, NULL, unit->abreast > 1 ? make_op(p, OP_JOIN_LANES, unit->real, unit->abreast, product) : product[0], scales->out[i]);
	}
	process_close(p, loops);
}

static void add_scale(const struct unit *unit, struct value *words)
{
	struct process p = unit_process(unit, "scale");
	struct scales scales = {.words = process_argument(&p, words, "w"), .out = ARENA_ARRAY(p.module->arena, struct value *, processes_of(unit))};
	for (int i = 0; i < processes_of(unit); i++)
		scales.out[i] = process_argument(&p, unit->scale[i], text_format(p.module->arena, "slice%d", i * unit->products));
	scales.kept = unit_arrays(unit, &p, "scales", type_float(p.module, 32));
	scales.in = process_argument(&p, unit->scales, "s");
	unit_each(unit, &p, scale_phase, &scales);
	process_finish(&p);
}

struct collect {
	struct value **sums, *kept;       /* channels; array of a tile's words, where a word of the result is narrower than what a process gives, else NULL */
	struct value **out;       /* channels of the phases; at once, where they are collected by one datapath */
	int64_t wide, narrow;     /* lanes of most words then, and of those of the others */
};

/* Where a word of the result stands among those of its row: the turn, the part of it, the word of tokens, the token in it; NULL: the only one. */
struct turn {
	struct value *number, *part, *word, *token;
	int64_t tokens;           /* of a word */
	struct value **there;     /* [rows in turn] is there such a row of each slice?  NULL: there are all */
};

/* A row of the token whose turn it is. */
static struct value *row_of(const struct unit *unit, struct process *p, const struct turn *turn, struct value *word, int64_t slice)
{
	struct value *row = word;
	for (int64_t q = 0; unit->products * unit->abreast > 1 && q < turn->tokens; q++) {
		struct value *part[2] = {word, make_index(p, q * unit->products + slice % unit->products)}, *own = make_op(p, OP_SPLIT_LANES, type_float(p->module, 32), 2, part);
		row = q ? make_select(p, make_equal(p, turn->token, q), own, row) : own;
	}
	return row;
}

/* The word of a process, taken for the first of its tokens. */
static struct value *take_sums(struct process *p, const struct turn *turn, struct value *mine, struct value *sums)
{
	struct value *first = make_and(p, turn->part ? make_equal(p, turn->part, 0) : NULL, turn->token ? make_equal(p, turn->token, 0) : NULL);
	struct value *word = make_take(p, make_and(p, mine, first), sums);
	attr_set(p->module, word->def, "stream.unkept", attr_unit(p->module));
	return word;
}

/* One row: the word of a process is taken in the turn of its first slice, and kept for those of the others. */
static struct value *turn_row(const struct unit *unit, struct process *p, const struct collect *c, const struct turn *turn)
{
	struct value *part[2] = {turn->number, make_index(p, unit->products)}, *slice = make_op(p, OP_REMSI, type_index(p->module), 2, part);
	struct value *place = turn->word ? turn->word : make_index(p, 0), *word = make_load(p, c->kept, place), *row = NULL;
	for (int i = 0; i < processes_of(unit); i++) {
		struct value *mine = make_equal(p, turn->number, i * unit->products);
		word = make_select(p, mine, take_sums(p, turn, mine, c->sums[i]), word);
	}
	make_store(p, word, c->kept, place);
	for (int s = 0; s < unit->products; s++)
		row = s ? make_select(p, make_equal(p, slice, s), row_of(unit, p, turn, word, s), row) : row_of(unit, p, turn, word, s);
	return row;
}

/* Words of the result go over the rows of all slices, one row of each after another: after so many rows of each a word begins with the first slice again. */
static int64_t rows_in_turn(const struct unit *unit, int64_t lanes)
{
	int64_t rows = 1;
	while (rows * unit->slices % lanes)
		rows++;
	return rows;
}

/* Is it the turn in which a slice gives one of its rows?  NULL: it is always. */
static struct value *turn_of(const struct unit *unit, struct process *p, const struct turn *turn, int64_t slice, int64_t lanes)
{
	int64_t rows = rows_in_turn(unit, lanes);
	struct value *mine = NULL;
	if (rows * unit->slices == lanes)
		return NULL;
	for (int64_t r = 0; r < rows; r++) {
		struct value *own = make_and(p, make_equal(p, turn->number, (r * unit->slices + slice) / lanes), turn->there ? turn->there[r] : NULL);
		mine = mine ? make_op(p, OP_ORI, own->type, 2, (struct value *[2]){mine, own}) : own;
	}
	return mine;
}

/* One word of the result: `lanes` slices in turn.  Each slice gives its row in one of the turns. */
static struct value *turn_word(const struct unit *unit, struct process *p, const struct collect *c, const struct turn *turn, int64_t lanes)
{
	int64_t rows = rows_in_turn(unit, lanes);
	const struct type *real = type_float(p->module, 32), *word = type_shaped(p->module, TYPE_VECTOR, 1, &lanes, real);
	struct value **row = ARENA_ARRAY(p->module->arena, struct value *, lanes), **own = ARENA_ARRAY(p->module->arena, struct value *, unit->slices), *taken = NULL;
	for (int64_t s = 0; s < unit->slices; s++) {
		if (s % unit->products == 0)
			taken = take_sums(p, turn, turn_of(unit, p, turn, s, lanes), c->sums[s / unit->products]);
		own[s] = row_of(unit, p, turn, taken, s);
	}
	for (int64_t n = 0; n < rows * unit->slices; n++)
		row[n % lanes] = n < lanes ? own[n % unit->slices] : make_select(p, make_equal(p, turn->number, n / lanes), own[n % unit->slices], row[n % lanes]);
	return lanes > 1 ? make_op(p, OP_JOIN_LANES, word, (int)lanes, row) : row[0];
}

/* Turns of so many rows each in which a slice gives all of its rows. */
static int64_t turns_of_rows(const struct phase *phase, int64_t each)
{
	return (phase->blocks * phase->block + each - 1) / each;
}

/* Where some phase has fewer rows in its last turn. */
static struct value **rows_there(const struct unit *unit, struct process *p, const struct phase *phase, struct value *turn, int64_t each)
{
	const int64_t pitch[1] = {each};
	struct value **there = unit->short_turns ? ARENA_ARRAY(p->module->arena, struct value *, each) : NULL, *rows = there ? make_own_index(p, phase->blocks * phase->block) : NULL;
	for (int64_t r = 1; there && r < each; r++)
		there[r] = make_below(p, make_address(p, 1, &turn, pitch, r), rows);
	return there;
}

/* Tokens of a word: one, where that is all there are.  NULL: always as many. */
static const struct run_time_trip *abreast_there(struct process *p, const struct phase *phase, int64_t most)
{
	struct run_time_trip *trip = phase->there.each ? ARENA_NEW(p->module->arena, struct run_time_trip) : NULL;
	if (trip)
		*trip = (struct run_time_trip){.symbol = phase->there.each->symbol, .tile = 1, .most = most};
	return trip;
}

/* Each slice gives a row for all tokens of a tile; rows beyond the outputs, and tokens beyond the tile, are dropped. */
static void collect_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct collect *c = context;
	const struct value *result = phase->op->result[0];
	int64_t lanes = stream_lanes(result->type), each = rows_in_turn(unit, lanes), turns = unit->slices * each / lanes, rows = turns_of_rows(phase, each);
	struct value *counter[2] = {process_loop(p, rows), process_loop(p, turns)}, *inside = NULL;
	const int64_t pitch[2] = {unit->slices * each, lanes};
	struct turn turn = {.number = counter[1], .tokens = phase->tile < unit->abreast ? phase->tile : unit->abreast};
	turn.word = phase->words > 1 ? process_loop_to(p, phase->words, phase->words_there) : NULL;
	turn.token = turn.tokens > 1 ? process_loop_to(p, turn.tokens, abreast_there(p, phase, turn.tokens)) : NULL;
	process_pipeline(p, 1);
	turn.there = rows_there(unit, p, phase, counter[0], each);
	struct value *word = lanes < unit->products ? turn_row(unit, p, c, &turn) : turn_word(unit, p, c, &turn, lanes);
	if (phase->contract.tokens * rows * turns > itensor_tiles(result->type->itensor))
		inside = make_compare(p, 2, make_address(p, 2, counter, pitch, 0), phase->contract.outputs);
	if (phase->words * turn.tokens > phase->tile || phase->words_there) {
		struct value *token[2] = {turn.word, turn.token};
		const int64_t tokens_each[2] = {turn.tokens, 1};
		struct value *tokens = phase->words_there ? process_count(p, phase->there.each, 1) : make_index(p, phase->tile);
		inside = make_and(p, inside, make_below(p, make_address(p, 2, token, tokens_each, 0), tokens));
	}
	make_push(p, inside, word, channel_once(p, &c->out[phase - unit->phases.data], phase->op->result[0], "y"));
	process_close(p, 2 + (turn.word != NULL) + (turn.token != NULL));
}

static int64_t lanes_of(const struct phase *phase)
{
	return stream_lanes(phase->op->result[0]->type);
}

/* May all phases be collected by one datapath?  Its words are as wide as the widest; where a phase has one token, they may fall into parts. */
static bool collects_alike(const struct unit *unit, struct collect *c)
{
	c->wide = c->narrow = 0;
	for (int i = 0; i < (int)unit->phases.count; i++)
		c->wide = lanes_of(&unit->phases.data[i]) > c->wide ? lanes_of(&unit->phases.data[i]) : c->wide;
	for (int i = 0; i < (int)unit->phases.count; i++) {
		const struct phase *phase = &unit->phases.data[i];
		int64_t lanes = lanes_of(phase);
		if (lanes == c->wide)
			continue;
		if (phase->contract.tokens > 1 || c->wide % lanes || (c->narrow && c->narrow != lanes))
			return false;
		c->narrow = lanes;
	}
	return c->wide >= unit->products && unit->phases.count > 1;
}

/* All loops have the same channels: a word goes to the phase at hand. */
static void push_to_phase(const struct unit *unit, struct process *p, const struct collect *c, const struct turn *turn, struct value *number, struct value *inside, struct value *word)
{
	const struct type *part = type_float(p->module, 32);
	if (c->narrow > 1)
		part = type_shaped(p->module, TYPE_VECTOR, 1, &c->narrow, part);
	struct value *of[2] = {word, turn->part}, *some = c->narrow ? make_op(p, OP_SPLIT_LANES, part, 2, of) : NULL;
	for (int i = 0; i < (int)unit->phases.count; i++)
		make_push(p, make_and(p, inside, make_equal(p, number, i)), lanes_of(&unit->phases.data[i]) < c->wide ? some : word, c->out[i]);
}

/* The same for phases that share a datapath: loops that only some need are there for all. */
static void collect_alike(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct collect *c = context;
	int64_t rows = rows_in_turn(unit, c->wide), turns = unit->slices * rows / c->wide;
	int loops = 2;
	struct value *number = make_own_index(p, phase - unit->phases.data), *outputs = make_own_index(p, phase->contract.outputs);
	struct value *tokens = phase->words_there ? process_count(p, phase->there.each, 1) : make_own_index(p, phase->tile);
	struct turn turn = {.tokens = unit->abreast};
	struct value *row = process_loop_of(p, make_own_index(p, turns_of_rows(phase, rows)));
	process_mark(p, NEST_MARK);
	turn.number = process_loop(p, turns);
	if (c->narrow && loops++)
		turn.part = process_loop_of(p, make_own_index(p, c->wide / lanes_of(phase)));
	if (unit->words_most > 1 && loops++)
		turn.word = phase->words_there ? process_loop_to(p, phase->words, phase->words_there) : process_loop_of(p, make_own_index(p, phase->words));
	if (unit->abreast > 1 && loops++)
		turn.token = phase->words_there ? process_loop_to(p, unit->abreast, abreast_there(p, phase, unit->abreast)) : process_loop_of(p, make_own_index(p, phase->tile < unit->abreast ? phase->tile : unit->abreast));
	process_pipeline(p, 1);
	turn.there = rows_there(unit, p, phase, row, rows);
	struct value *place[3] = {row, turn.number, turn.part}, *token[2] = {turn.word, turn.token};
	const int64_t pitch[3] = {unit->slices * rows, c->wide, c->narrow}, each[2] = {unit->abreast, 1};
	struct value *inside = make_below(p, make_address(p, 3, place, pitch, 0), outputs);
	if (unit->abreast > 1)
		inside = make_and(p, inside, make_below(p, make_address(p, 2, token, each, 0), tokens));
	push_to_phase(unit, p, c, &turn, number, inside, turn_word(unit, p, c, &turn, c->wide));
	process_close(p, loops);
}

static bool has_narrow_words(const struct unit *unit)
{
	for (int i = 0; i < (int)unit->phases.count; i++)
		if (stream_lanes(unit->phases.data[i].op->result[0]->type) < unit->products)
			return true;
	return false;
}

static void add_collect(const struct unit *unit)
{
	struct process p = unit_process(unit, "collect");
	struct collect c = {.sums = ARENA_ARRAY(p.module->arena, struct value *, processes_of(unit))};
	for (int i = 0; i < processes_of(unit); i++)
		c.sums[i] = process_argument(&p, unit->sums[i], text_format(p.module->arena, "slice%d", i * unit->products));
	bool alike = collects_alike(unit, &c);
	c.out = ARENA_ARRAY(p.module->arena, struct value *, unit->phases.count);
	for (int i = 0; alike && i < (int)unit->phases.count; i++) {
		p.design->layers = unit->phases.data[i].layers;
		c.out[i] = process_argument(&p, stream_fifo(p.design, unit->phases.data[i].op->result[0]), text_format(p.module->arena, "y%d", i));
	}
	p.design->layers = 0;
	c.kept = !alike && has_narrow_words(unit) ? make_array(&p, "kept", unit->words_most, unit->real, 1) : NULL;
	unit_each(unit, &p, alike ? collect_alike : collect_phase, &c);
	process_finish(&p);
}

/* ---- the unit */

/* The block with which a phase takes the fewest cycles: its own, or those of memory where it is slower, and those in which the rows of the last block are collected.  It has a row for every cycle that an
 * addition takes, with the sum's way out of its array and back, and for every token of a tile, which come one a row; if need be of padding, so that all phases begin an iteration every cycle.
 * Where many groups would be kept for a second block, it has one of all rows. */
static void choose_block(const struct unit *unit, struct phase *phase)
{
	const struct contract *contract = &phase->contract;
	int latency = platform_operator(unit->design->context->platform, OP_ADDF, type_float(unit->design->module, 32)).latency + SUM_KEPT;
	int64_t rows = (contract->outputs + unit->slices - 1) / unit->slices, lanes = stream_lanes(phase->op->result[0]->type), best = INT64_MAX;
	const struct platform *platform = unit->design->context->platform;
	double channel_bytes = platform_channel_rate(platform);
	int64_t word_hundredths = (int64_t)(UNIT_WORD_BITS / 8 * 100 / channel_bytes);
	int64_t behind_hundredths = word_hundredths > 100 ? MEMORY_WAITS : 100;
	int64_t least = phase->tile > 1 && phase->tile + KEPT_ROWS > latency ? phase->tile + KEPT_ROWS : latency;
	bool few = unit->streams && rows < least;
	for (int64_t block = least; block <= (least > BLOCK_MOST ? least : BLOCK_MOST); block++) {
		int64_t blocks = (rows + block - 1) / block, words = few ? rows : blocks * block, behind = block * unit->slices / lanes;
		int64_t cycles = unit->streams ? words * contract->groups * word_hundredths + behind * behind_hundredths : words * contract->groups + behind;
		if (cycles >= best || (unit->streams && blocks * block % rows_in_turn(unit, unit_lanes(unit->abreast))))
			continue;
		best = cycles;
		phase->block = block;
		phase->blocks = blocks;
	}
	phase->rows = unit->streams ? rows - (phase->blocks - 1) * phase->block : phase->block;
	if (phase->tile > 1 && phase->blocks > 1 && unit_block_once((double)rows, phase->contract.groups, (double)phase->words)) {
		phase->block = rows > least ? rows : least;
		phase->rows = phase->block;
		phase->blocks = 1;
	}
}

/* Words of the tokens that are there: so many of a tile, abreast. */
static const struct run_time_trip *words_there(struct arena *arena, const struct launch_rows *there, int abreast, int64_t words)
{
	struct run_time_trip *trip = there->each ? ARENA_NEW(arena, struct run_time_trip) : NULL;
	if (trip)
		*trip = (struct run_time_trip){.symbol = there->each->symbol, .tile = abreast, .most = words};
	return trip;
}

static void collect_phases(struct unit *unit, const struct block *block, int64_t layers)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			collect_phases(unit, op->region[0], attr_get(op->operand[1]->def, "value")->integer);
		if (op->code != OP_CONTRACT)
			continue;
		struct phase phase = {.op = op, .layers = layers};
		INVARIANT(unit->design->module->guard, contract_of(op, &phase.contract), "a contraction whose operands do not fit together");
		VEC_PUSH(unit->design->module->arena, &unit->phases, phase);
	}
}

/* Groups that are kept: those that a second block takes again.  Of one token they lie one after the other. */
static int64_t slots_of(const struct unit *unit, const struct phase *phase)
{
	if (unit->abreast > 1 && phase->blocks == 1)
		return 2;
	return phase->tile > 1 ? phase->contract.groups : (phase->contract.groups + unit->words_most - 1) / unit->words_most;
}

/* Of a slice, if there were as many as ports. */
static int64_t words_about(const struct unit *unit)
{
	int64_t words = 0;
	for (int i = 0; i < (int)unit->phases.count; i++) {
		const struct phase *phase = &unit->phases.data[i];
		words += phase->contract.groups * phase->contract.outputs * (phase->layers ? phase->layers : 1);
	}
	return words / unit->design->context->platform->ports;
}

/* As many slices as the other ports leave room for, beside the one for scales; and what each does of a phase. */
static void plan_slices(struct unit *unit, const struct block *body)
{
	struct design *design = unit->design;
	const struct contract *first = &unit->phases.data[0].contract;
	int bits = first->weight[0]->type->element->width;
	unit->abreast = unit_abreast(body);
	struct dot dot = unit_dot(design->context, bits, unit->abreast);
	unit->products = dot.words;
	unit->common = dot.commons;
	unit->slices = slices_within(design->context, design->module, bits, unit->abreast, first->rows != NULL, design->context->platform->ports - adapters_beside_unit(design) - adapters_for_states(design, words_about(unit)) - 1);
	for (int i = 0; i < (int)unit->phases.count; i++) {
		struct phase *phase = &unit->phases.data[i];
		phase->there = rows_of_launch(design->module->arena, phase->contract.rows, phase->contract.tokens);
		phase->tile = phase->there.tile;
		phase->tiles = phase->contract.tokens / phase->tile;
		phase->words = (phase->tile + unit->abreast - 1) / unit->abreast;
		phase->words_there = words_there(design->module->arena, &phase->there, unit->abreast, phase->words);
		unit->words_most = phase->words > unit->words_most ? phase->words : unit->words_most;
	}
	unit->streams = unit->words_most == 1 && unit->abreast == 1;
	for (int i = 0; i < (int)unit->phases.count; i++) {
		struct phase *phase = &unit->phases.data[i];
		choose_block(unit, phase);
		unit->short_rows |= phase->rows < phase->block;
		unit->short_turns |= phase->blocks * phase->block % rows_in_turn(unit, lanes_of(phase));
		int64_t words = phase->words_there ? 1 : phase->words, distance = phase->block * words;
		int64_t ahead = (phase->block - phase->tile + 1) * words + words - 1;
		unit->distance = i && unit->distance < distance ? unit->distance : distance;
		unit->ahead = i && unit->ahead < ahead ? unit->ahead : ahead;
		unit->block_most = phase->block > unit->block_most ? phase->block : unit->block_most;
	}
	for (int i = 0; i < (int)unit->phases.count; i++) {
		int64_t slots = slots_of(unit, &unit->phases.data[i]);
		unit->slots = unit->slots > slots ? unit->slots : slots;
	}
	unit_find_series(unit);
}

static struct value **fifos(const struct unit *unit, const char *name, const struct type *word, int64_t depth)
{
	struct value **fifo = ARENA_ARRAY(unit->design->module->arena, struct value *, processes_of(unit));
	for (int i = 0; i < processes_of(unit); i++)
		fifo[i] = inner_fifo(unit, name, word, depth);
	return fifo;
}

/* Does a phase sum up its rows in fewer cycles than they are collected in, while the next layer's phases do not wait for its last one? */
static bool sums_outrun(const struct unit *unit)
{
	bool outrun = false;
	for (size_t i = 0; i < unit->phases.count; i++) {
		const struct phase *phase = &unit->phases.data[i];
		int64_t collected = phase->tile * unit->slices / lanes_of(phase);
		outrun |= phase->around && phase->contract.groups * phase->words < collected;
	}
	return outrun;
}

/* Words of sums that wait to be collected: a block's, or more, so that the unit goes on with a phase of longer sums. */
static int64_t sums_kept(const struct unit *unit)
{
	int64_t block = unit->words_most * unit->block_most;
	if (unit->words_most <= 1)
		return AHEAD;
	return block < SUMS_KEPT && sums_outrun(unit) ? SUMS_KEPT : block;
}

void lower_unit(struct design *design, const struct block *body)
{
	struct module *module = design->module;
	struct unit unit = {.design = design};
	collect_phases(&unit, body, 0);
	if (!unit.phases.count)
		return;
	plan_slices(&unit, body);
	for (int i = 0; i < (int)unit.phases.count; i++)
		if (unit.phases.data[i].around)
			attr_set(module, design->function, "stream.around", attr_unit(module));
	int others = design->block->arguments;
	const struct contract *first = &unit.phases.data[0].contract;
	const struct type *weight = type_shaped(module, TYPE_VECTOR, 1, &first->size, first->weight[0]->type->element);
	unit.group = type_shaped(module, TYPE_VECTOR, 1, &first->size, type_integer(module, 8));
	const int64_t lanes = SCALE_LANES;
	unit.input = fifos(&unit, "s_groups", unit.group, AHEAD_WIDE);
	const int64_t numbers = unit.products * unit.abreast;
	unit.real = numbers > 1 ? type_shaped(module, TYPE_VECTOR, 1, &numbers, type_float(module, 32)) : type_float(module, 32);
	unit.scale = fifos(&unit, "s_scale", unit.real, AHEAD);
	unit.scales = inner_fifo(&unit, "s_scales", type_float(module, 32), AHEAD);
	unit.sums = fifos(&unit, "s_sums", unit.real, sums_kept(&unit));
	unit.weights = ARENA_ARRAY(module->arena, struct value *, unit.slices);
	load_weights(&unit, weight);
	struct value *scales;
	load_in_order(&unit, &(struct loader){"unit_scales", type_shaped(module, TYPE_VECTOR, 1, &lanes, type_float(module, 16)), -1, 1, scale_segment}, &scales);
	bundle_ports(design, others);
	add_feed(&unit);
	add_scale(&unit, scales);
	for (int i = 0; i < processes_of(&unit); i++)
		lower_slice(&unit, i, (i + 1) % CHAIN && i + 1 < processes_of(&unit) ? unit.input[i + 1] : NULL);
	add_collect(&unit);
}
