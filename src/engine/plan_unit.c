/* What a unit's slices do of each phase: how many slices there are, the blocks of rows that they sum up side by side, and what they keep. */
#include "ir/workload.h"
#include "engine/unit_cost.h"
#include "engine/unit.h"

#define DRAINED 50            /* cycles in which a slice's pipeline drains */
#define MEMORY_WAITS 60       /* hundredths: so little counts what stands behind a phase's words where memory brings them slower than a slice takes them, and goes on meanwhile */
#define LOADED_TOGETHER 8     /* slices whose words one process brings, where its loops are many */
#define LOADERS_BESIDE 6      /* loaders that have keys and values beside them, at most: each has loops of its own */
#define UNIT_CHAIN 6          /* sets of slices whose processes hand groups on to each other, or as many times more as slices share a port */
#define KEPT_ROWS 4           /* from where the last token of a group is kept to where it is used */
#define QUERY_PARTS 3         /* of queries that come in parts, at most, */
#define QUERY_ROWS 16         /* and rows of a slice in each at least, but the last; the first has no more */
#define SUM_KEPT 2            /* cycles in which a sum is chosen from an array of registers, and written */

int64_t unit_rows_left(const struct unit *unit, const struct phase *phase)
{
	return (phase_outputs(unit, phase) + unit->slices - 1) / unit->slices;
}

/* A block has a row for every cycle that an addition takes, with the sum's way out of its array and back, and for every token of a tile, which come one a row; if need be of padding, so that all phases begin an iteration every cycle. */
int64_t unit_rows_least(const struct unit *unit, const struct phase *phase)
{
	int latency = platform_operator(unit->design->context->platform, OP_ADDF, type_float(unit->design->module, 32)).latency + SUM_KEPT;
	return phase->kept ? (latency + phase->words - 1) / phase->words : phase->tile > 1 && phase->tile + KEPT_ROWS > latency ? phase->tile + KEPT_ROWS : latency;
}

static void set_having(const struct unit *unit, struct phase *phase, bool exact)
{
	int64_t last = phase->contract.outputs % unit->slices;
	phase->having = (int)(exact && last && phase->rows > 1 && !phase->part ? last : unit->slices);
}

/* The block with which a phase takes the fewest cycles: its own, or those of memory where it is slower, and those in which the rows of the last block are collected, if phases behind it do not work on other tiles meanwhile.
 * Tokens that slices still have from the phase before it come no more.  Where many groups would be kept for a second block, it has one of all rows. */
static void choose_block(const struct unit *unit, struct phase *phase)
{
	const struct contract *contract = &phase->contract;
	int64_t rows = phase->part ? phase->part : unit_rows_left(unit, phase), lanes = stream_lanes(phase->op->result[0]->type), best = INT64_MAX;
	const struct platform *platform = unit->design->context->platform;
	double channel_bytes = platform_channel_rate(platform);
	int64_t word_hundredths = (int64_t)(UNIT_WORD_BITS / 8 * 100 / channel_bytes);
	int64_t behind_hundredths = word_hundredths > 100 ? MEMORY_WAITS : 100;
	int64_t least = unit_rows_least(unit, phase);
	bool few = unit->streams && rows < least;
	for (int64_t block = least; block <= (least > UNIT_BLOCK_MOST ? least : UNIT_BLOCK_MOST); block++) {
		int64_t blocks = (rows + block - 1) / block, words = few ? rows : blocks * block, behind = phase->turned ? 0 : block * unit->slices / lanes;
		int64_t cycles = unit->streams ? words * contract->groups * word_hundredths + behind * behind_hundredths : words * contract->groups + behind;
		if (cycles >= best)
			continue;
		best = cycles;
		phase->block = block;
		phase->blocks = blocks;
	}
	bool few_words = unit->streams || phase->there.tiles;      /* of one token, which waits for memory */
	phase->rows = few_words ? rows - (phase->blocks - 1) * phase->block : phase->block;
	if (phase->tile > 1 && phase->blocks > 1 && (contract->once || unit_block_once((double)rows, contract->groups, (double)phase->words))) {
		phase->block = rows > least ? rows : least;
		phase->rows = phase->block;
		phase->blocks = 1;
	}
	set_having(unit, phase, few_words && (phase->blocks - 1) * phase->block + phase->rows == rows);
}

/* The rows of a stacked phase are as many as there are; those of the last one have padding behind them, where all are too few. */
static void choose_stacked(const struct unit *unit, int i)
{
	struct phase *phase = &unit->phases.data[i];
	phase->blocks = 1;
	phase->block = phase->rows = unit_rows_left(unit, phase);
	phase->kept = phase->stacked;
	set_having(unit, phase, true);
	int first = i;
	while (unit->phases.data[first].stacked)
		first--;
	if (unit_stack_end(unit, i) > i + 1)
		return;
	int64_t rows = unit_stack_rows(unit, first), least = unit_rows_least(unit, phase);
	phase->block += rows < least ? least - rows : 0;
}

/* A phase that takes the numbers of the one before it may be worked on in the same loops, in blocks of as many rows, if that pads it to no more. */
static void join_phase(const struct phase *before, struct phase *phase)
{
	int64_t rows = phase->blocks * phase->block, blocks = (rows + before->block - 1) / before->block;
	phase->joined = phase->kept && !phase->contract.rows && phase->words == before->words && phase->contract.groups == before->contract.groups && blocks * before->block <= rows;
	if (!phase->joined)
		return;
	phase->block = phase->rows = before->block;
	phase->blocks = blocks;
}

/* One token's: the last block of each may be of fewer rows, and rows beyond cost no more than the drain. */
static void join_stream(struct phase *before, struct phase *phase, int joined)
{
	int64_t rows = (phase->blocks - 1) * phase->block + phase->rows, blocks = (rows + before->block - 1) / before->block;
	int64_t more = (blocks * before->block - phase->blocks * phase->block) * phase->contract.groups;
	phase->joined = phase->kept = phase->contract.same && phase->contract.groups == before->contract.groups && more <= DRAINED && joined < JOINED_MOST;
	if (!phase->joined)
		return;
	phase->block = before->block;
	phase->blocks = blocks;
	phase->rows = rows - (blocks - 1) * before->block;
}

/* Of queries that would be one block: the first are few, the others as many as these leave, in words of the result. */
static int64_t rows_of_part(const struct unit *unit, const struct phase *phase)
{
	int64_t rows = unit_rows_left(unit, phase), turn = unit_rows_in_turn(unit, unit_widest(unit)), least = unit_rows_least(unit, phase), part = phase->from ? (rows + 1) / 2 : 1;
	part = part < QUERY_ROWS ? QUERY_ROWS : part;
	part = part < least ? least : part;
	part = (part + turn - 1) / turn * turn;
	return part < rows ? part : 0;
}

static void insert_phase(struct unit *unit, int at, struct phase phase)
{
	VEC_PUSH(unit->design->module->arena, &unit->phases, phase);
	for (int i = (int)unit->phases.count - 1; i > at; i--)
		unit->phases.data[i] = unit->phases.data[i - 1];
	unit->phases.data[at] = phase;
}

static bool is_of_stack(const struct unit *unit, int i)
{
	return unit->phases.data[i].stacked || unit_stack_end(unit, i) > i + 1;
}

/* The first part stands before values, which attention wants next, the others behind them. */
static void part_queries(struct unit *unit)
{
	for (int i = 0; i < (int)unit->phases.count; i++) {
		struct phase *phase = &unit->phases.data[i], rest = *phase;
		if (is_of_stack(unit, i) || !phase->queries || phase->from || !unit_block_once((double)unit_rows_left(unit, phase), phase->contract.groups, (double)phase->words))
			continue;
		int at = i + 1;
		while (at < (int)unit->phases.count && unit->phases.data[at].contract.same)
			at++;
		rest.contract.same = true;
		for (int part = 0; part < QUERY_PARTS - 1 && rows_of_part(unit, part ? &rest : phase); part++) {
			struct phase *before = part ? &unit->phases.data[at - 1] : &unit->phases.data[i];
			before->part = rows_of_part(unit, before);
			rest.from += before->part;
			insert_phase(unit, at++, rest);
		}
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
			collect_phases(unit, op->region[0], attr_get(op->operand[1]->def, KEY_VALUE)->integer);
		if (op->code != OP_CONTRACT)
			continue;
		struct phase phase = {.op = op, .layers = layers};
		INVARIANT(unit->design->module->guard, contract_of(op, &phase.contract), "a contraction whose operands do not fit together");
		VEC_PUSH(unit->design->module->arena, &unit->phases, phase);
	}
}

/* May slices keep the groups of a tile for the phases behind this one that take the same, and not only for its own blocks? */
static bool keeps_groups(const struct phase *phase)
{
	return phase->tile > 1 && !phase->contract.rows && !unit_block_once(1, phase->contract.groups, (double)phase->words);
}

static void count_gaps(struct unit *unit)
{
	int64_t row[GAPS_MOST];
	for (int first = 0; first < (int)unit->phases.count; first = unit_stack_end(unit, first))
		for (int slice = 0; slice < unit->slices; slice++) {
			int gaps = unit_gaps(unit, first, slice, row);
			unit->gaps_most = gaps > unit->gaps_most ? gaps : unit->gaps_most;
		}
}

/* Blocks that take the same groups as a phase. */
static void count_takers(struct unit *unit)
{
	struct phase *phase = unit->phases.data;
	for (int first = 0, end, count = (int)unit->phases.count; first < count; first = end) {
		int64_t takers = 0;
		for (end = first; end == first || (end < count && phase[end].kept); end++)
			takers += phase[end].stacked ? 0 : phase[end].blocks;
		for (int i = first; i < end; i++)
			phase[i].takers = takers;
	}
}

/* Groups that are kept: those that a second block takes again.  Of one token they lie one after the other. */
static int64_t slots_of(const struct unit *unit, const struct phase *phase)
{
	if (unit->abreast > 1 && phase->takers == 1)
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

/* Of tiles that are counted at run time the loops of a loader, and what counts them, take as many LUTs as a slice's scaling, so it brings the words of several slices.  Its ports go on in step: where rows of a state come through a slice's
 * channel as well they hold up all of them, so the slices of ports that stand side by side have a loader, and the first ones, which have none, another.
 * Where they come through all channels there are as few loaders as can be, and the first has those slices that are left: they have the rows that not all have. */
static void plan_loaders(struct unit *unit, const struct block *body)
{
	unit->together = 1;
	if (!unit_counts_tiles(body))
		return;
	int side, beside = ports_beside_unit(unit->design, &side);
	bool apart = beside && beside < unit->ports && beside % side == 0 && beside / side <= LOADERS_BESIDE;
	unit->together = apart ? side : LOADED_TOGETHER;
	unit->alone = apart ? unit->ports - beside : beside < unit->ports ? 0 : unit->ports % LOADED_TOGETHER;
}

/* Words that a port brings of a phase, for a row of one group. */
static int64_t words_of_row(const struct phase *phase)
{
	return phase->contract.groups * (phase->layers ? phase->layers : 1);
}

static void set_start(const struct unit *unit, struct phase *phase, int64_t start)
{
	int64_t last = (phase->contract.outputs + start) % unit->slices;
	phase->start = (int)start;
	phase->having = phase->end[0].having = (int)(last ? last : unit->slices);
}

/* The most words of all loaders, of which there are `load` yet, and those of the phase. */
static int64_t loaded_most(const struct unit *unit, const struct phase *phase, int64_t *load, bool add)
{
	int64_t most = 0;
	for (int slice = 0; slice < unit->slices; slice++) {
		int64_t words = load[slice] + words_of_row(phase) * (phase_rows(phase, slice) - phase_lacks_row(unit, phase, slice));
		if (unit_loaded_with(unit, slice) != slice)
			continue;
		load[slice] = add ? words : load[slice];
		most = words > most ? words : most;
	}
	return most;
}

/* With as many rows; only where the last one is not all slices'. */
static bool may_start(const struct unit *unit, const struct phase *phase, int64_t start)
{
	int64_t last = phase->contract.outputs % unit->slices;
	return phase->having < unit->slices && !phase->part && !phase->from && last + start <= unit->slices;
}

/* The start with which the loader of most words has the fewest. */
static int64_t start_of_fewest(const struct unit *unit, struct phase *phase, int64_t *load)
{
	int64_t lanes = unit_widest(unit), best = 0, least = loaded_most(unit, phase, load, false);
	for (int64_t start = lanes; may_start(unit, phase, start); start += lanes) {
		set_start(unit, phase, start);
		int64_t most = loaded_most(unit, phase, load, false);
		best = most < least ? start : best;
		least = most < least ? most : least;
		set_start(unit, phase, 0);
	}
	return best;
}

/* Not all outputs are a whole number of rows, and the last row of some slices is a word more that all have to wait for which one loader serves.  So phases begin with different slices, those of most words first,
 * behind those that have no choice; but where rows of states ride on some adapters alone, these have no word more. */
static void choose_starts(struct unit *unit)
{
	struct arena *arena = unit->design->module->arena;
	int64_t *load = ARENA_ARRAY(arena, int64_t, unit->slices), lanes = unit_widest(unit);
	bool *done = ARENA_ARRAY(arena, bool, unit->phases.count);
	for (size_t i = 0; i < unit->phases.count; i++) {
		done[i] = !may_start(unit, &unit->phases.data[i], lanes);
		if (done[i])
			loaded_most(unit, &unit->phases.data[i], load, true);
	}
	for (;;) {
		struct phase *phase = NULL;
		for (size_t i = 0; i < unit->phases.count; i++)
			phase = !done[i] && (!phase || words_of_row(&unit->phases.data[i]) > words_of_row(phase)) ? &unit->phases.data[i] : phase;
		if (!phase)
			return;
		set_start(unit, phase, start_of_fewest(unit, phase, load));
		loaded_most(unit, phase, load, true);
		done[phase - unit->phases.data] = true;
	}
}

static void set_end(struct phase *phase, int stack)
{
	phase->stack = stack;
	phase->ends = 1;
	phase->end[0] = (struct phase_end){phase->blocks, phase->rows, phase->having};
}

static bool states_ride_alike(const struct unit *unit)
{
	int side, beside = ports_beside_unit(unit->design, &side);
	return !beside || beside >= unit->ports;
}

/* How far apart the additions to a sum are. */
static void measure_blocks(struct unit *unit)
{
	for (int first = 0, end; first < (int)unit->phases.count; first = end) {
		const struct phase *phase = &unit->phases.data[first];
		end = unit_stack_end(unit, first);
		int64_t rows = unit_stack_rows(unit, first), words = phase->words_there ? 1 : phase->words, distance = rows * words;
		unit->distance = first && unit->distance < distance ? unit->distance : distance;
		unit->block_most = rows > unit->block_most ? rows : unit->block_most;
		for (int i = first; i < end; i++)
			set_end(&unit->phases.data[i], first);
	}
}

/* joined: phases that are worked on in the same loops so far; returns them with this one. */
static int choose_rows(struct unit *unit, int i, int joined)
{
	struct phase *phase = &unit->phases.data[i];
	if (is_of_stack(unit, i)) {
		choose_stacked(unit, i);
		return 1;
	}
	phase->kept = phase->contract.same && keeps_groups(phase);
	choose_block(unit, phase);
	if (i && unit->streams)
		join_stream(phase - 1, phase, joined);
	else if (i && !is_of_stack(unit, i - 1))
		join_phase(phase - 1, phase);
	joined = phase->joined ? joined + 1 : 1;
	unit->ends_most = unit->streams && joined > unit->ends_most ? joined : unit->ends_most;
	return joined;
}

void plan_unit(struct unit *unit, const struct block *body)
{
	struct design *design = unit->design;
	collect_phases(unit, body, 0);
	if (!unit->phases.count)
		return;
	const struct contract *first = &unit->phases.data[0].contract;
	int bits = first->weight[0]->type->element->width;
	struct unit_shape shape = unit_shape(body);
	unit->abreast = shape.abreast;
	unit->dealt = shape.dealt;
	struct dot dot = unit_dot(design->context, bits, unit->abreast);
	unit->products = dot.words;
	unit->common = dot.commons;
	unit->ports = ports_within(design->context, design->module, bits, unit_uses(shape), first->rows != NULL, design->context->platform->ports - adapters_beside_unit(design) - adapters_for_states(design, words_about(unit)) - 1);
	unit->slices = unit->ports * unit->dealt;
	plan_loaders(unit, body);
	for (int i = 0; i < (int)unit->phases.count; i++) {
		struct phase *phase = &unit->phases.data[i];
		phase->there = rows_of_launch(design->module->arena, phase->contract.rows, phase->contract.tokens);
		phase->tile = phase->there.tile;
		phase->tiles = phase->contract.tokens / phase->tile;
		phase->words = (phase->tile + unit->abreast - 1) / unit->abreast;
		phase->words_there = words_there(design->module->arena, &phase->there, unit->abreast, phase->words);
		unit->words_most = phase->words > unit->words_most ? phase->words : unit->words_most;
	}
	unit_join_queries(unit);
	unit_stack_phases(unit);
	part_queries(unit);
	unit->streams = unit->words_most == 1 && unit->abreast == 1;
	unit->ends_most = 1;
	for (int i = 0, joined = 0; i < (int)unit->phases.count; i++)
		joined = choose_rows(unit, i, joined);
	measure_blocks(unit);
	if (unit_counts_tiles(body) && states_ride_alike(unit))
		choose_starts(unit);
	count_gaps(unit);
	count_takers(unit);
	for (int i = 0; i < (int)unit->phases.count; i++) {
		int64_t slots = slots_of(unit, &unit->phases.data[i]);
		unit->slots = unit->slots > slots ? unit->slots : slots;
	}
	unit_find_series(unit);
	bool counts = unit_counts_tiles(body);
	unit->together_sets = counts ? SETS_TOGETHER * unit->dealt : 1;
	unit->chain = UNIT_CHAIN * unit->dealt;
	unit->serial = unit->abreast > 1 && counts && design->context->platform->dies > 1 && unit_serial_alike(unit) && !unit_has_narrow_words(unit);
}
