/* Contractions as phases of one unit: the processes around its slices.
 * All that the unit reads from memory lies in the order of use, so its loaders run ahead, whatever the phase at hand still waits for.  What a phase takes and gives
 * passes through FIFOs that hold all of it, and phases come in an order in which none waits for a later one (unit_order.c); so the unit adds no cycle of waits. */
#include "ir/workload.h"
#include "engine/unit.h"

#define AHEAD 32              /* words of the FIFOs inside: one LUT a bit */
#define SUMS_KEPT 512         /* words of sums: so deep is a block RAM */
#define OTHERS_LEAST 2        /* adapters beside the slices': of scales and of small operands */
#define AHEAD_WIDE 16         /* of those of groups: half a LUT a bit */

struct process unit_process(const struct unit *unit, const char *name)
{
	struct process p = process_new(unit->design, name);
	attr_set(p.module, p.function, KEY_STREAM_STYLE, attr_string(p.module, "flp"));      /* its next input may depend on what is in its pipeline */
	return p;
}

struct process unit_datapath(const struct unit *unit, const char *name)
{
	struct process p = unit_process(unit, name);
	if (!unit->streams)
		attr_set(p.module, p.function, KEY_STREAM_REWIND, attr_unit(p.module));
	return p;
}

struct value *unit_loop(struct process *p, int64_t trips, const struct run_time_trip *there)
{
	return there ? process_loop_to(p, trips, there) : process_loop_of(p, make_own_index(p, trips));
}

int unit_loops(const struct unit *unit, struct process *p, const struct phase *phase, struct value *counter[UNIT_LOOPS])
{
	const int64_t trip[UNIT_LOOPS] = {phase->blocks, phase->contract.groups, phase->block, phase->words};
	int loops = unit->words_most > 1 ? UNIT_LOOPS : UNIT_LOOPS - 1;
	counter[UNIT_LOOPS - 1] = NULL;
	for (int i = 0; i < loops; i++) {
		counter[i] = unit_loop(p, trip[i], i == UNIT_LOOPS - 1 ? phase->words_there : NULL);
		if (!i)
			process_mark(p, KEY_STREAM_DATAPATH);
	}
	process_pipeline(p, 1);
	return loops;
}

const struct run_time_trip *unit_abreast_there(struct process *p, const struct phase *phase, int64_t most)
{
	struct run_time_trip *trip = phase->there.each ? ARENA_NEW(p->module->arena, struct run_time_trip) : NULL;
	if (trip)
		*trip = (struct run_time_trip){.symbol = phase->there.each->symbol, .tile = 1, .most = most};
	return trip;
}

struct value *unit_loop_tokens(const struct unit *unit, struct process *p, const struct phase *phase)
{
	bool few = !phase->there.each && phase->tile < unit->abreast;
	return unit_loop(p, few ? phase->tile : unit->abreast, unit_abreast_there(p, phase, unit->abreast));
}

static int64_t rows_had(int64_t rows, int having, int slice)
{
	return rows - (slice >= having);
}

int64_t phase_rows(const struct phase *phase, int slice)
{
	return rows_had(phase->rows, phase->having, slice);
}

bool phase_lacks_row(const struct unit *unit, const struct phase *phase, int slice)
{
	return slice >= 0 && unit_loaded_until(unit, slice / unit->dealt) * unit->dealt <= phase->start;
}

static bool some_lack_row(const struct unit *unit, int slice)
{
	bool some = false;
	for (int i = 0; i < (int)unit->phases.count; i++)
		some |= phase_lacks_row(unit, &unit->phases.data[i], slice);
	return some;
}

/* Has some phase a last block of fewer rows than the others there? */
static bool has_short_rows(const struct unit *unit, int slice)
{
	for (int i = 0; i < (int)unit->phases.count; i++)
		if (phase_rows(&unit->phases.data[i], slice) < unit->phases.data[i].block)
			return true;
	return false;
}

static struct value *row_below_end(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, int slice)
{
	struct value *rows = NULL;
	for (int i = 0; i < unit->ends_most; i++) {
		const struct phase_end *end = &phase->end[i < phase->ends ? i : 0];
		struct value *last = make_same(p, counter[0], make_own_index(p, end->blocks - 1)), *own = make_own_index(p, rows_had(end->rows, end->having, slice));
		rows = make_select(p, last, own, rows ? rows : make_own_index(p, phase->block));
	}
	return make_below(p, counter[2], rows);
}

static struct value *row_from_start(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, int slice)
{
	const int64_t one[2] = {1, 1};
	struct value *lacks = make_own_index(p, phase_lacks_row(unit, phase, slice)), *place[2] = {counter[0], counter[2]};
	return make_below(p, lacks, make_address(p, 2, place, one, 1));
}

/* Some slices have no words of some rows between phases of a block. */
static struct value *row_not_between(const struct unit *unit, struct process *p, const struct phase *phase, struct value *there, struct value *const *counter, int slice)
{
	int64_t gap[GAPS_MOST];
	int gaps = unit_gaps(unit, phase->stack, slice, gap);
	for (int i = 0; slice >= 0 && i < unit->gaps_most; i++)
		there = make_and(p, there, make_other(p, counter[2], make_own_index(p, i < gaps ? gap[i] : unit->block_most)));
	return there;
}

struct value *unit_take_word(const struct unit *unit, struct process *p, const struct phase *phase, struct value *const *counter, int slice, struct value *fifo)
{
	int first = unit_loaded_with(unit, slice);
	struct value *token = counter[UNIT_LOOPS - 1], *there = make_and(p, token ? make_equal(p, token, 0) : NULL, has_short_rows(unit, first) ? row_below_end(unit, p, phase, counter, first) : NULL);
	bool lacks = some_lack_row(unit, first);
	if (lacks)
		there = make_and(p, there, row_from_start(unit, p, phase, counter, first));
	there = row_not_between(unit, p, phase, there, counter, first);
	struct value *word = make_take(p, there, fifo);
	if (lacks || unit->gaps_most || (there && !token))       /* of the rows beyond and before, nothing is used */
		attr_set(p->module, word->def, KEY_STREAM_VALUE_NOT_HELD, attr_unit(p->module));
	return word;
}

struct value *unit_fifo(const struct unit *unit, const char *name, const struct type *word, int64_t depth)
{
	unit->design->layers = unit->phases.data[0].layers;
	struct value *fifo = design_fifo(unit->design, name, word, depth);
	unit->design->layers = 0;
	return fifo;
}

int unit_sets(const struct unit *unit)
{
	return unit->slices / unit->products;
}

/* Each chain has its own where tokens of many tiles are counted and nearly every adapter is a slice's: a pair of slices takes an f32 for each of its tokens, eight in all, and would take their wires from the die on which scales are multiplied. */
int unit_scalers(const struct unit *unit)
{
	const struct platform *platform = unit->design->context->platform;
	bool apart = unit_counts_tiles(unit->design->source->region[0]) && platform->dies > 1 && unit->ports + OTHERS_LEAST >= platform->ports;
	return apart ? (unit_sets(unit) + unit->chain - 1) / unit->chain : 1;
}

struct scaled unit_scaled(const struct unit *unit, int scaler)
{
	int sets = unit_sets(unit), first = scaler * unit->chain, end = first + unit->chain;
	return unit_scalers(unit) > 1 ? (struct scaled){first, end < sets ? end : sets} : (struct scaled){0, sets};
}

int64_t phase_lanes(const struct phase *phase)
{
	return stream_lanes(phase->op->result[0]->type);
}

int64_t phase_outputs(const struct unit *unit, const struct phase *phase)
{
	return phase->contract.outputs + phase->start - phase->from * unit->slices;
}

int phase_number(const struct unit *unit, const struct phase *phase)
{
	int number = 0;
	while (unit->phases.data[number].op != phase->op)
		number++;
	return number;
}

int64_t unit_widest(const struct unit *unit)
{
	int64_t widest = 0;
	for (int i = 0; i < (int)unit->phases.count; i++)
		widest = phase_lanes(&unit->phases.data[i]) > widest ? phase_lanes(&unit->phases.data[i]) : widest;
	return widest;
}

int64_t unit_rows_in_turn(const struct unit *unit, int64_t lanes)
{
	int64_t rows = 1;
	while (rows * unit->slices % lanes)
		rows++;
	return rows;
}

struct value *unit_channel(struct process *p, struct value **known, struct value *stream, const char *name)
{
	*known = *known ? *known : process_argument(p, stream_fifo(p->design, stream), name);
	return *known;
}

struct feed {
	int chains, scalers;
	struct value **chain, **scale;    /* channels of the process */
	struct value **group, **group_scale;      /* [phases] */
	struct value *kept, *kept_scale;  /* arrays: those of a tile, for other parts of a contraction; NULL: none has any */
};

/* What comes through a channel, or was kept of it. */
static struct value *fed(struct process *p, bool again, bool goes_on, struct value **known, struct value *stream, const char *name, struct value *kept, struct value *place)
{
	struct value *word = again ? make_load(p, kept, place) : make_take(p, NULL, unit_channel(p, known, stream, name));
	if (goes_on && !again)
		make_store(p, word, kept, place);
	return word;
}

/* The loops of a phase whose tiles are counted stand in several places, and are one datapath. */
static void mark_phase(const struct unit *unit, struct process *p, const struct phase *phase, int loops)
{
	struct op *outermost = p->block->parent;
	int number = (int)(phase - unit->phases.data);
	for (; loops > 1; loops--)
		outermost = outermost->parent->parent;
	if (phase->there.tiles && number < NEST_MARKS)
		attr_set(p->module, outermost, KEY_STREAM_DATAPATH, attr_integer(p->module, number));
}

static void feed_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct feed *feed = context;
	int number = phase_number(unit, phase);
	const int64_t trip[2] = {phase->contract.groups, phase->tile};
	const struct run_time_trip *bound[2] = {NULL, phase->there.each};
	struct value *counter[2] = {NULL};
	int loops = 1;
	if (phase->contract.rows)
		loops = process_nest_to(p, 2, trip, bound, 1, counter);
	else
		counter[1] = process_loop(p, phase->tile * phase->contract.groups);
	process_pipeline(p, 1);
	mark_phase(unit, p, phase, loops);
	const int64_t pitch[2] = {phase->tile, 1};
	bool again = phase->from, goes_on = phase->part;
	struct value *place = again || goes_on ? make_address(p, 2, counter, pitch, 0) : NULL;
	struct value *scale = fed(p, again, goes_on, &feed->group_scale[number], phase->op->operand[1], "s", feed->kept_scale, place);
	for (int i = 0; !phase->kept && i < feed->scalers; i++)
		make_push(p, NULL, scale, feed->scale[i]);
	struct value *group = fed(p, again, goes_on, &feed->group[number], phase->op->operand[0], "x", feed->kept, place);
	for (int i = 0; !phase->kept && i < feed->chains; i++)
		make_push(p, NULL, group, feed->chain[i]);
	process_close(p, loops);
}

/* Numbers of a tile that are given again. */
static int64_t fed_again(const struct unit *unit)
{
	int64_t most = 0;
	for (int i = 0; i < (int)unit->phases.count; i++) {
		const struct phase *phase = &unit->phases.data[i];
		int64_t words = phase->from ? phase->tile * phase->contract.groups : 0;
		most = words > most ? words : most;
	}
	return most;
}

static void feed_chains(const struct unit *unit, int chains, struct value *const *chain)
{
	struct process p = unit_process(unit, "feed");
	struct feed feed = {.chains = chains, .scalers = unit_scalers(unit), .chain = ARENA_ARRAY(p.module->arena, struct value *, chains + 1)};
	feed.scale = ARENA_ARRAY(p.module->arena, struct value *, feed.scalers);
	for (int i = 0; i < feed.scalers; i++)
		feed.scale[i] = process_argument(&p, unit->scales[i], i ? text_format(p.module->arena, "scale%d", i) : "scale");
	feed.group = ARENA_ARRAY(p.module->arena, struct value *, unit->phases.count);
	feed.group_scale = ARENA_ARRAY(p.module->arena, struct value *, unit->phases.count);
	for (int i = 0; i < chains; i++)
		feed.chain[i] = process_argument(&p, chain[i], text_format(p.module->arena, "slice%d", i * unit->chain * unit->products));
	int64_t again = fed_again(unit);
	feed.kept = again ? make_array(&p, "kept", again, unit->group, 1) : NULL;
	feed.kept_scale = again ? make_array(&p, "kept_scale", again, type_float(p.module, 32), 1) : NULL;
	unit_each(unit, &p, feed_phase, &feed);
	process_finish(&p);
}

/* The first set of each chain is fed; the others get what the one before them hands on. */
static void add_feed(const struct unit *unit)
{
	struct value **chain = ARENA_ARRAY(unit->design->module->arena, struct value *, unit_sets(unit)), *pairs;
	int chains = 0;
	for (int i = 0; i < unit_sets(unit); i += unit->chain)
		chain[chains++] = unit->input[i];
	if (unit->common == 1) {
		feed_chains(unit, chains, chain);
		return;
	}
	pairs = unit_fifo(unit, "s_pairs", unit->group, AHEAD_WIDE);
	feed_chains(unit, 1, &pairs);
	lower_lend(unit, pairs, chains, chain);
}

struct scales {
	struct value **words, **out, **kept, *in; /* words: [dealt], each with a scale for as many slices */
	int slices;               /* sets of them */
};

/* An f16 or f32 for each slice of a set. */
static const struct type *word_of(const struct unit *unit, int bits)
{
	const struct type *scalar = type_float(unit->design->module, bits);
	const int64_t lanes = unit->products;
	return lanes > 1 ? type_shaped(unit->design->module, TYPE_VECTOR, 1, &lanes, scalar) : scalar;
}

/* Those of a set: neighbours in a word, or one of each word, since these are dealt out as the slices' are. */
static struct value *scales_of(const struct unit *unit, struct process *p, struct value *const *word, int set)
{
	struct value *part[DEALT_MOST];
	const struct type *half = word_of(unit, 16);
	if (unit->dealt == 1 || unit->products == 1)
		return make_op(p, OP_SPLIT_LANES, half, 2, (struct value *[2]){word[set % unit->dealt], make_index(p, set / unit->dealt)});
	for (int i = 0; i < unit->dealt; i++)
		part[i] = make_op(p, OP_SPLIT_LANES, half->element, 2, (struct value *[2]){word[i], make_index(p, set)});
	return make_op(p, OP_JOIN_LANES, half, unit->dealt, part);
}

static void scale_phase(const struct unit *unit, struct process *p, const struct phase *phase, void *context)
{
	const struct scales *scales = context;
	struct value *counter[UNIT_LOOPS];
	const struct type *real = word_of(unit, 32);
	struct value **own = ARENA_ARRAY(p->module->arena, struct value *, unit->abreast), **product = ARENA_ARRAY(p->module->arena, struct value *, unit->abreast);
	if (!unit->streams)
		unit_begin(unit, p, phase, scales->in, scales->kept, NULL);
	int loops = unit_loops(unit, p, phase, counter);
	struct value *word[DEALT_MOST], *place = unit->streams ? NULL : unit_group_place(unit, p, phase, counter);
	for (int i = 0; i < unit->dealt; i++)
		word[i] = unit_take_word(unit, p, phase, counter, -1, scales->words[i]);
	for (int q = 0; q < unit->abreast; q++) {
		own[q] = unit->streams ? unit_stream(p, counter, scales->in, scales->kept[q], NULL) : make_load(p, scales->kept[q], place);
		own[q] = unit->products > 1 ? make_op(p, OP_BROADCAST, real, 1, &own[q]) : own[q];
	}
	if (!unit->streams)
		unit_ahead(unit, p, phase, counter, scales->in, scales->kept, NULL);
	for (int i = 0; i < scales->slices; i++) {
		struct value *lanes = scales_of(unit, p, word, i), *wide = make_op(p, OP_EXTF, real, 1, &lanes);
		for (int q = 0; q < unit->abreast; q++)
			product[q] = make_op(p, OP_MULF, real, 2, (struct value *[2]){own[q], wide});
		make_push(p, NULL, unit->abreast > 1 ? make_op(p, OP_JOIN_LANES, unit->real, unit->abreast, product) : product[0], scales->out[i]);
	}
	process_close(p, loops);
}

static void add_scaler(const struct unit *unit, struct value *const *words, int number)
{
	struct process p = unit_datapath(unit, "scale");
	struct scaled of = unit_scaled(unit, number);
	struct scales scales = {.words = ARENA_ARRAY(p.module->arena, struct value *, unit->dealt), .slices = of.end - of.first, .out = ARENA_ARRAY(p.module->arena, struct value *, of.end - of.first)};
	for (int i = 0; i < unit->dealt; i++)
		scales.words[i] = process_argument(&p, words[i], i ? text_format(p.module->arena, "w%d", i) : "w");
	for (int i = of.first; i < of.end; i++)
		scales.out[i - of.first] = process_argument(&p, unit->scale[i], text_format(p.module->arena, "slice%d", i * unit->products));
	scales.kept = unit_arrays(unit, &p, "scales", type_float(p.module, 32));
	scales.in = process_argument(&p, unit->scales[number], "s");
	unit_each_joined(unit, &p, scale_phase, &scales);
	process_finish(&p);
}

static struct value **fifos(const struct unit *unit, const char *name, const struct type *word, int64_t depth)
{
	struct value **fifo = ARENA_ARRAY(unit->design->module->arena, struct value *, unit_sets(unit));
	for (int i = 0; i < unit_sets(unit); i++)
		fifo[i] = unit_fifo(unit, name, word, depth);
	return fifo;
}

/* Does a phase sum up its rows in fewer cycles than they are collected in, while the next layer's phases do not wait for its last one? */
static bool sums_outrun(const struct unit *unit)
{
	bool outrun = false;
	for (size_t i = 0; i < unit->phases.count; i++) {
		const struct phase *phase = &unit->phases.data[i];
		int64_t collected = phase->tile * unit->slices / phase_lanes(phase);
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

/* A slice gives one row of a word of results at most. */
static bool has_slices_for_words(const struct unit *unit)
{
	struct design *design = unit->design;
	int64_t lanes = unit_widest(unit);
	if (lanes <= unit->slices)
		return true;
	design->context->few_slices = unit->ports;
	diag_error(design->module->diag, NOWHERE, "beside the design's other memory ports the unit has %d slices, fewer than the %lld numbers of a word of its results", unit->slices, (long long)lanes);
	return diag_note(design->module->diag, "--slices %d, or --on-chip with more, which keeps more out of external memory", unit->ports);
}

bool lower_unit(struct design *design, const struct block *body)
{
	struct module *module = design->module;
	struct unit unit = {.design = design};
	plan_unit(&unit, body);
	if (!unit.phases.count)
		return true;
	if (!has_slices_for_words(&unit))
		return false;
	for (int i = 0; i < (int)unit.phases.count; i++)
		if (unit.phases.data[i].around)
			attr_set(module, design->function, KEY_STREAM_LAYER_OVERLAP, attr_unit(module));
	int others = design->block->arguments;
	const struct contract *first = &unit.phases.data[0].contract;
	unit.group = type_shaped(module, TYPE_VECTOR, 1, &first->size, type_integer(module, 8));
	unit.input = ARENA_ARRAY(module->arena, struct value *, unit_sets(&unit));
	for (int i = 0; i < unit_sets(&unit); i++)
		unit.input[i] = i % unit.chain % unit.together_sets ? NULL : unit_fifo(&unit, "s_groups", unit.group, AHEAD_WIDE);
	const int64_t numbers = unit.products * unit.abreast;
	unit.real = numbers > 1 ? type_shaped(module, TYPE_VECTOR, 1, &numbers, type_float(module, 32)) : type_float(module, 32);
	unit.scale = fifos(&unit, "s_scale", unit.real, AHEAD);
	unit.scales = ARENA_ARRAY(module->arena, struct value *, unit_scalers(&unit));
	for (int i = 0; i < unit_scalers(&unit); i++)
		unit.scales[i] = unit_fifo(&unit, "s_scales", type_float(module, 32), AHEAD);
	unit.sums = fifos(&unit, "s_sums", unit.real, sums_kept(&unit));
	unit.collected = unit.serial ? fifos(&unit, "s_serial", word_of(&unit, 32), AHEAD) : unit.sums;
	lower_words(&unit);
	bundle_ports(design, others);
	add_feed(&unit);
	for (int i = 0; i < unit_scalers(&unit); i++)
		add_scaler(&unit, &unit.shares[i * unit.dealt], i);
	for (int i = 0; i < unit_sets(&unit); )
		i = lower_slice(&unit, i);
	for (int i = 0; unit.serial && i < unit_sets(&unit); i += unit.together_sets)
		lower_serial(&unit, i);
	lower_collect(&unit);
	return true;
}
