/* Chooses the register tile of a contraction by closed forms.
 *
 *     blocks of rows │ blocks of lanes │ reductions │ rows / u │ lanes / v │ u rows │ v lanes
 *
 * An iteration forms u * v terms from u + v words; the tiles inside the reductions are the
 * independent sums that hide the adder's latency. Parallel loops that are not unrolled run outside
 * of all, or with these tiles. An operand that a loop does not move is read
 * again in each of its iterations: from memory, or from a buffer on chip that holds what the loops
 * inside read.
 *
 * A product of a matrix and a vector has no two such loops. Its lanes are terms of one sum, which a
 * tree adds up, where sums may be formed in another order:
 *
 *     blocks of rows │ reductions, terms / v │ rows / u │ u rows │ v terms
 *
 * If the matrix is transposed, neighbors in memory are terms of neighboring sums. Then the lanes
 * are sums and the rows are terms, of which a tree for each lane adds up u:
 *
 *     blocks of lanes │ reductions, terms / u │ lanes / v │ u terms │ v lanes */
#include "base/number.h"
#include "schedule/register_tile.h"
#include "ir/kernel_edit.h"
#include "predict/resource.h"
#include "predict/store_width.h"
#include <math.h>

#define MOST_HELD 4     /* places where an operand may be held, per operand */
#define READER_LANES 16 /* most lanes of an elementwise kernel that reads a register tile */
/* words come in parts if that takes one part in so many of a launch, or no longer than whole
 * ones */
#define SELDOM 2
/* elements may come through the loader that small operands share if they are fewer, or take one
 * part in so many of a launch */
#define SHARED_ELEMENTS 4096
#define SHARED_PART 8
/* a board full of memory is worth so many launches, and a cycle in which memory brings words so
 * many cycles, as ports wait for each other there */
#define MEMORY_PRICE 0.02
#define TRAFFIC_PRICE 0.002
/* so much faster than sums in the source's order must trees be, and save so many cycles */
#define TREES_GAIN 1.1
#define TREES_CYCLES 1024

bool is_contraction(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	if (!kernel_has_reduction(kernel) || kernel->scan || kernel->ordered ||
	        kernel->tile_outermost || op->operands < 2)
		return false;
	for (int l = 0; l < kernel->loops; l++) {
		bool shared = !kernel->loop[l].reduction;
		if (kernel->loop[l].run_time ||
		        (shared &&
		                (!kernel->result.stride[l] || kernel_is_guarded(op, l) ||
		                        body_uses_counter(&kernel->update, l))))
			return false;
	}
	for (int j = 0; j < op->operands; j++)
		if (kernel->operand[j].index_operand >= 0 || kernel->operand[j].causal_pitch)
			return false;
	return kernel_shares_operands(kernel, op->operands);
}

int64_t tile_term_dsp(const struct platform *platform, const struct kernel *kernel)
{
	return schedule_body_dsp(platform, &kernel->update);
}

int64_t tile_reader_lanes(int64_t lanes, int64_t most)
{
	int64_t taken = most < lanes ? most : lanes;
	while (lanes % taken)
		taken--;
	return taken;
}

int tile_ports(int64_t lanes, int64_t bits)
{
	int64_t ports = (lanes * bits + PORT_BITS - 1) / PORT_BITS;
	while (lanes % ports)
		ports++;
	return (int)ports;
}

/* The search for one kernel. */
struct register_tiler {
	const struct tile_kernel *of;
	const struct kernel *kernel;
	const struct tile_limits *limits;
	struct resources board;
	int latency;
	int64_t terms;       /* iterations of all reductions */
	int64_t outside;     /* of parallel loops that are not unrolled, */
	int64_t others;      /* or those inside the reductions */
	int row, lane;       /* the loops that are unrolled; row -1: none */
	bool tree;           /* the lanes are terms of one sum, */
	bool row_terms;      /* or the rows are, of as many sums as there are lanes */
	int64_t most_rows;   /* unrolled */
	bool rows_outside;   /* blocks of rows run outside those of lanes */
	bool others_inside;  /* parallel loops that are not unrolled run inside the reductions */
	int64_t first, more; /* DSPs of the first lane of a row, and of each other one */
	const int64_t *held; /* of a schedule before its operands are chosen */
	/* scratch: iterations of parts with words of their own; where each operand is held */
	int64_t *trip, *level;
	struct tile_choice best;
	double best_price;
};

/* Sizes of a tile: unrolled rows and lanes, tiles in a block, blocks. */
struct tile_size {
	int64_t rows, lanes;
	int64_t row_tiles, lane_tiles;
	int64_t row_blocks, lane_blocks;
};

static void add_part(struct schedule *schedule, int source, int64_t trip, int64_t step)
{
	schedule->part[schedule->parts++] = (struct schedule_part){ source, trip, step };
}

/* Adds the parallel loops that are not unrolled. */
static void add_others(const struct register_tiler *t, struct schedule *schedule)
{
	const struct kernel *kernel = t->kernel;
	for (int l = 0; l < kernel->loops; l++)
		if (!kernel->loop[l].reduction && l != t->row && l != t->lane)
			add_part(schedule, l, kernel->loop[l].extent, 1);
}

/* The schedule of a size; `held` is not set. */
static struct schedule schedule_of(const struct register_tiler *t, const struct tile_size *size)
{
	const struct kernel *kernel = t->kernel;
	struct schedule schedule = { .lanes = size->lanes,
		.row_unroll = size->lanes > 1 && t->row >= 0 ? size->rows : 1,
		.held = t->held,
		.part = ARENA_ARRAY(
		        t->of->module->arena, struct schedule_part, kernel->loops + 6) };
	if (!t->others_inside)
		add_others(t, &schedule);
	int64_t row_block = size->row_tiles * size->rows;
	if (t->row >= 0 && t->rows_outside && !t->row_terms)
		add_part(&schedule, t->row, size->row_blocks, row_block);
	if (!t->tree)
		add_part(&schedule, t->lane, size->lane_blocks, size->lane_tiles * size->lanes);
	if (t->row >= 0 && !t->rows_outside)
		add_part(&schedule, t->row, size->row_blocks, row_block);
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].reduction && l != t->lane && l != t->row)
			add_part(&schedule, l, kernel->loop[l].extent, 1);
	if (t->tree)
		add_part(&schedule, t->lane, size->lane_blocks, size->lanes);
	if (t->row_terms)
		add_part(&schedule, t->row, size->row_blocks, size->rows);
	if (t->others_inside)
		add_others(t, &schedule);
	if (t->row >= 0 && !t->row_terms)
		add_part(&schedule, t->row, size->row_tiles, size->rows);
	if (!t->tree)
		add_part(&schedule, t->lane, size->lane_tiles, size->lanes);
	if (schedule.row_unroll > 1)
		add_part(&schedule, t->row, size->rows, 1);
	if (schedule.lanes > 1)
		add_part(&schedule, t->lane, size->lanes, 1);
	schedule.padded =
	        size->lane_blocks * size->lane_tiles * size->lanes > kernel->loop[t->lane].extent ||
	        (t->row >= 0 && size->row_blocks * row_block > kernel->loop[t->row].extent);
	return schedule;
}

/* Where an operand is held: words that are loaded, how many of them follow one another in memory,
 * words that are held, and how often the words that are loaded first are taken before the next
 * ones. */
struct holding {
	int operand;
	int64_t level;
	double loaded, run, taken, passes;
	int64_t words;
};

/* Iterations of a part in which the operand is read. */
static int64_t trip_of(
        const struct register_tiler *t, const struct schedule *schedule, int operand, int part)
{
	const struct schedule_part *of = &schedule->part[part];
	const struct guard_range *guard = access_guard(&t->kernel->operand[operand], of->source);
	return guard ? guard->high - guard->low : of->trip;
}

static bool moves(
        const struct register_tiler *t, const struct schedule *schedule, int operand, int part)
{
	return t->kernel->operand[operand].stride[schedule->part[part].source] &&
	        trip_of(t, schedule, operand, part) > 1;
}

/* Elements that a step of a part moves an operand by. */
static int64_t step_of(const struct schedule *schedule, const struct access *access, int part)
{
	const struct schedule_part *of = &schedule->part[part];
	return of->trip > 1 ? access->stride[of->source] * of->step : 0;
}

/* Does the part move the operand to words that share elements with others, as it moves by less than
 * the lanes of a word? */
static bool moves_in_word(const struct schedule *schedule, const struct access *access, int part)
{
	int64_t step = step_of(schedule, access, part);
	for (int i = schedule_loops(schedule); step && i < schedule->parts; i++) {
		int64_t lane = step_of(schedule, access, i);
		if (lane && step % lane == 0 && step < lane * schedule->part[i].trip)
			return true;
	}
	return false;
}

int tile_windows(
        const struct kernel *kernel, const struct schedule *schedule, int operand, int64_t *trip)
{
	const struct access *access = &kernel->operand[operand];
	int loops = schedule_loops(schedule);
	int first = loops;
	int same = loops; /* the operand's buffer holds what the parts from here on move to */
	for (int i = loops - 1; i >= 0; i--) {
		trip[i] = schedule->part[i].trip;
		if (i >= schedule->held[operand] && !access->stride[schedule->part[i].source])
			same = i;
	}
	for (int i = 0; !access->guards && i < loops; i++) {
		int64_t far = step_of(schedule, access, i);
		bool whole = far > 0;
		for (int k = i < same ? i : same; whole && k < loops; k++)
			whole = !moves_in_word(schedule, access, k);
		for (int j = loops - 1; whole && j > i; j--) {
			int64_t near = step_of(schedule, access, j);
			if (near <= 0 || far % near || far / near >= trip[j])
				continue;
			trip[j] += far / near * (trip[i] - 1);
			trip[i] = 1;
			first = i < first ? i : first;
			break;
		}
	}
	return first;
}

static struct holding holding_at(
        const struct register_tiler *t, const struct schedule *schedule, int operand, int level)
{
	struct schedule held = *schedule;
	struct holding holding = { operand, level, 1, 1, 1, 1, 1 };
	int64_t *trip = t->trip;
	int64_t window = 1;
	bool replayed = false;
	bool reduced = false;
	int used = schedule_loops(schedule);
	while (used > 0 && !moves(t, schedule, operand, used - 1))
		used--;
	t->level[operand] = level;
	held.held = t->level;
	int first = t->of->loads[operand] ? tile_windows(t->kernel, &held, operand, trip) : used;
	for (int i = 0; i < used; i++) {
		int64_t trips = trip_of(t, schedule, operand, i);
		bool moved = moves(t, schedule, operand, i);
		int64_t loaded = first < used && moved ? trip[i] : trips;
		reduced = reduced || t->kernel->loop[schedule->part[i].source].reduction;
		holding.taken *= (double)trips;
		holding.loaded *= moved || i < level ? (double)loaded : 1;
		holding.run = moved ? holding.run * (double)loaded : holding.run;
		holding.run = !moved && i < level && trips > 1 ? 1 : holding.run;
		holding.passes *= !moved && i >= level && !reduced ? (double)trips : 1;
		replayed = replayed || (!moved && i >= level && trips > 1);
		holding.words *= replayed && moved ? loaded : 1;
		window *= first <= i && moved ? loaded : 1;
	}
	holding.words = replayed ? holding.words : 0;
	if (first < used && window > holding.words)
		holding.words = window;
	return holding;
}

/* The places where an operand may be held, the last one not at all; returns how many. */
static int list_holdings(const struct register_tiler *t, const struct schedule *schedule,
        int operand, struct holding *holding)
{
	int count = 0;
	int loops = schedule_loops(schedule);
	for (int i = 0; i < loops && count < MOST_HELD - 1; i++) {
		struct holding at = holding_at(t, schedule, operand, i);
		bool repeats =
		        !moves(t, schedule, operand, i) && trip_of(t, schedule, operand, i) > 1;
		if (repeats && at.words > 1)
			holding[count++] = at;
	}
	holding[count++] = holding_at(t, schedule, operand, loops);
	return count;
}

static int64_t lanes_of_access(const struct schedule *schedule, const struct access *access)
{
	int64_t lanes = 1;
	for (int i = schedule_loops(schedule); i < schedule->parts; i++)
		lanes *= access->stride[schedule->part[i].source] ? schedule->part[i].trip : 1;
	return lanes;
}

static int64_t lanes_of_operand(
        const struct register_tiler *t, const struct schedule *schedule, int operand)
{
	return lanes_of_access(schedule, &t->kernel->operand[operand]);
}

int64_t tile_part(int64_t lanes, int64_t bits, int ports)
{
	int64_t part = lanes;
	while (part > ports && (lanes % part || part % ports || part * bits > ports * PORT_BITS))
		part--;
	return part;
}

/* May so many ports bring equal parts of an operand's words, each of one row of a word, or of whole
 * rows without padding? */
static bool ports_fit(
        const struct schedule *schedule, const struct access *access, int64_t bits, int64_t ports)
{
	int64_t row = 1;
	int64_t lanes = lanes_of_access(schedule, access);
	int64_t part = lanes / ports;
	for (int i = schedule_first_lane(schedule); i < schedule->parts; i++)
		row *= access->stride[schedule->part[i].source] ? schedule->part[i].trip : 1;
	row = row > 1 ? row : lanes;
	if (ports < tile_ports(lanes, bits))
		return row % tile_part(lanes, bits, (int)ports) == 0;
	return lanes % ports == 0 &&
	        (row % part == 0 || (part % row == 0 && power_of_two_from(part) == part));
}

static int64_t operand_bits(const struct register_tiler *t, int operand)
{
	return type_bits(type_scalar(t->of->op->operand[operand]->type));
}

static struct resources storage_of(const struct register_tiler *t, int64_t bits, int64_t words)
{
	if (words < 1)
		return (struct resources){ 0 };
	return storage_cost(storage_choose(bits, words, t->board.uram > 0), bits, words);
}

/* Cycles and resources of a schedule while its operands are chosen one after the other. */
struct tile_price {
	double compute, late, bytes;
	/* of a port of an operand, the one with least to do: cycles, and words, of which an
	 * adapter passes one a cycle */
	double least, words;
	struct resources memory;
	int ports;
	int64_t *held, *operand_ports;
	double *operand_bytes, *passes; /* [operands] of its loader */
};

/* Adds an operand that is held there. */
static void add_holding(const struct register_tiler *t, const struct schedule *schedule,
        struct tile_price *price, const struct holding *holding)
{
	int operand = holding->operand;
	int64_t bits = lanes_of_operand(t, schedule, operand) * operand_bits(t, operand);
	price->memory = resources_add(price->memory, storage_of(t, bits, holding->words));
	price->held[operand] = holding->level;
	price->operand_ports[operand] = 0;
	price->operand_bytes[operand] = 0;
}

/* Adds the loader of an operand with so many ports, 0: the one that small operands share; returns
 * the cycles that it takes. */
static double add_loader(const struct register_tiler *t, const struct schedule *schedule,
        struct tile_price *price, const struct holding *holding, int ports)
{
	int operand = holding->operand;
	int64_t bits = operand_bits(t, operand);
	int64_t lanes = lanes_of_operand(t, schedule, operand);
	int64_t part = ports ? tile_part(lanes, bits, ports) : 1;
	int64_t word = bits;
	while (word * (ports ? ports : 1) < part * bits)
		word *= 2;
	double port_bytes = (double)word / 8;
	double words = holding->loaded * (double)(lanes / part);
	const struct platform *platform = t->of->platform;
	double rate = platform_channel_rate(platform);
	double burst =
	        holding->run < (double)platform->burst ? holding->run : (double)platform->burst;
	double wait = platform->memory_latency / (burst * platform->outstanding);
	/* ports beyond the channels of memory share them */
	double shared = ports ? ceil((double)ports / platform->channels) : 1;
	double word_cycles = port_bytes * shared > rate ? port_bytes * shared / rate : 1;
	double cycles = words * (wait > word_cycles ? wait : word_cycles);
	double late = cycles - price->compute / holding->passes;
	price->ports += ports;
	price->least = ports ? fmin(cycles, price->least) : price->least;
	price->words = ports ? fmin(words, price->words) : price->words;
	price->operand_ports[operand] = ports;
	price->operand_bytes[operand] = words * port_bytes * (ports ? ports : 1);
	price->passes[operand] = holding->passes;
	price->bytes += price->operand_bytes[operand];
	price->late = late > price->late ? late : price->late;
	return cycles;
}

/* Iterations of the outermost loop, if it moves all operands that come from other kernels. */
static double steps_of_operands(const struct register_tiler *t, const struct schedule *schedule)
{
	bool any = false;
	int first = 0;
	while (first + 1 < schedule_loops(schedule) && schedule->part[first].trip == 1)
		first++;
	double steps = (double)schedule->part[first].trip;
	for (int j = 0; j < t->of->op->operands; j++) {
		if (t->of->loads[j])
			continue;
		any = true;
		steps = moves(t, schedule, j, first) ? steps : 1;
	}
	return any ? steps : 0;
}

/* Parts of the results that the reader takes while the next one is made: the outermost loop is the
 * one in whose order results are wanted, the blocks of one side are whole ones of the other, and
 * there is no padding, which the reader would not take as it comes. */
static double steps_of_results(const struct register_tiler *t, const struct schedule *schedule)
{
	int first = 0;
	while (first + 1 < schedule_loops(schedule) && schedule->part[first].trip == 1)
		first++;
	const struct schedule_part *outer = &schedule->part[first];
	int64_t all = 1;
	for (int i = 0; i < schedule->parts; i++)
		all *= schedule->part[i].source == outer->source ? schedule->part[i].trip : 1;
	bool whole = all == t->kernel->loop[outer->source].extent;
	int64_t wanted = t->of->wanted[outer->source];
	int64_t most = wanted > outer->step ? wanted : outer->step;
	int64_t least = wanted > outer->step ? outer->step : wanted;
	return wanted && whole && most % least == 0
	        ? (double)t->kernel->loop[outer->source].extent / (double)most
	        : 1;
}

/* Cycles in which a kernel waits for the first operands from others, or its reader for the first
 * results. */
static double cycles_waited(
        const struct register_tiler *t, const struct schedule *schedule, double compute)
{
	double steps = steps_of_operands(t, schedule);
	double cycles = steps ? compute / steps : 0;
	return cycles + (t->of->is_read ? compute / steps_of_results(t, schedule) : 0);
}

static int64_t dsp_of(const struct register_tiler *t, const struct tile_size *size)
{
	return size->rows * (t->first + (size->lanes - 1) * t->more);
}

/* Is the result so small that it leaves element by element? */
static bool leaves_singly(const struct register_tiler *t, const struct tile_price *price)
{
	bool left = price->ports <= t->limits->ports;
	return type_elements(t->of->op->result[0]->type) < (left ? OWN_ELEMENTS : FEW_RESULTS);
}

/* Elements of a word of the result that leave in a cycle. */
static int64_t lanes_leaving(const struct register_tiler *t, const struct tile_size *size,
        const struct tile_price *price)
{
	const struct tile_kernel *of = t->of;
	int64_t word = t->tree ? size->rows : size->lanes;
	int64_t most = READER_LANES;
	int64_t left = t->limits->dsp - dsp_of(t, size);
	if (of->is_read)
		return word;
	if (leaves_singly(t, price))
		most = 1;
	else if (of->is_stored)
		most = PORT_BITS / type_bits(t->kernel->type);
	else if (of->reader_dsp && left / of->reader_dsp < most - 1)
		most = 1 + left / of->reader_dsp;
	return tile_reader_lanes(word, most);
}

/* Cycles in which a converter passes the words of the result to another register tile. */
static double converter_cycles(const struct register_tiler *t, const struct tile_size *size)
{
	double elements = 1;
	for (int l = 0; l < t->kernel->loops; l++)
		elements *= t->kernel->loop[l].reduction ? 1 : (double)t->kernel->loop[l].extent;
	int loop = t->tree ? t->row : t->lane;
	int64_t lanes = t->tree ? size->rows : size->lanes;
	int64_t wanted = loop < 0 ? 0 : t->of->wanted_lanes[loop];
	return elements / (double)(wanted ? common_divisor(wanted, lanes) : 1);
}

/* Memory ports that operands may take. The last one is that of small operands and results: a tile
 * that is alone may take it, too, and then two of its ports share an adapter. */
static int most_ports(const struct register_tiler *t)
{
	return t->limits->ports + t->limits->shares;
}

/* Memory ports through which results leave: what the operands leave, one at least. */
static int store_ports(const struct register_tiler *t, const struct tile_price *price)
{
	int left = t->limits->ports + 1 - price->ports;
	for (int j = 0; j < t->of->op->operands; j++)
		if (t->of->loads[j] && !price->operand_ports[j]) {
			left--;
			break;
		}
	int most = t->of->platform->channels / 2;
	left = left < most ? left : most;
	return left > 1 ? left : 1;
}

/* How the results are written; no lanes: other kernels read them, or they are few. */
static struct store_width stored_in(const struct register_tiler *t, const struct tile_price *price,
        double elements, int64_t word)
{
	const struct tile_kernel *of = t->of;
	struct store_width best = { 0 };
	if (!of->is_stored || leaves_singly(t, price))
		return best;
	int most = store_ports(t, price);
	for (int n = 1; n <= most && elements * best.cycles >= (n > 1 ? price->compute : 0); n++) {
		struct store_width now =
		        store_width(of->platform, word, type_bits(t->kernel->type), n);
		if (now.lanes && (!best.lanes || now.cycles < best.cycles))
			best = now;
	}
	return best;
}

/* Bytes a cycle of the memory channels of the ports. */
static double channels_rate(const struct register_tiler *t, const struct tile_price *price)
{
	const struct platform *platform = t->of->platform;
	int channels = price->ports < platform->channels ? price->ports : platform->channels;
	return platform_channel_rate(platform) * (channels ? channels : 1);
}

/* Cycles in which memory brings the bytes of a launch; `stored`: those of results. While a held
 * operand is taken for the first time all of it comes, beside a part of the others. */
static double memory_cycles(
        const struct register_tiler *t, const struct tile_price *price, double stored)
{
	double rate = channels_rate(t, price);
	double all = price->bytes + stored;
	double cycles = all / rate;
	for (int j = 0; j < t->of->op->operands; j++) {
		double own = price->operand_bytes[j];
		double first = (own + (all - own) / price->passes[j]) / rate;
		if (own > 0)
			cycles = fmax(
			        cycles, price->compute + first - price->compute / price->passes[j]);
	}
	return cycles;
}

/* Cycles of a launch: iterations, or what memory takes for the bytes; words that come late in the
 * first pass over a held operand; and the last block of results. */
static double cycles_of(const struct register_tiler *t, const struct tile_size *size,
        const struct tile_price *price)
{
	double tiles = (double)(size->row_tiles * size->lane_tiles * t->others);
	int64_t word = t->tree ? size->rows : size->lanes;
	int64_t words = t->tree || t->row_terms ? 1 : size->rows;
	double leave = (double)(words * word / lanes_leaving(t, size, price));
	int64_t terms = t->tree ? size->lanes : 1;
	int64_t levels = schedule_tree_levels(t->row_terms ? size->rows : terms);
	int64_t blocks = t->outside * (t->row_terms ? 1 : size->row_blocks) *
	        (t->tree ? 1 : size->lane_blocks);
	double elements = (double)blocks * tiles * (double)(words * word);
	struct store_width stored = stored_in(t, price, elements, word);
	leave = stored.lanes ? (double)(words * word) * stored.cycles : leave;
	double all = (double)blocks * tiles * leave;
	double bytes = stored.lanes ? elements * (double)type_bits(t->kernel->type) / 8 : 0;
	double cycles = fmax(price->compute, memory_cycles(t, price, bytes));
	cycles = all > cycles ? all : cycles;
	/* results share an adapter with a port that reads if their words make up full ones */
	bool full = !stored.lanes || PORT_BITS / type_bits(t->kernel->type) % stored.lanes == 0;
	if (price->ports > t->limits->ports)
		cycles = full ? fmax(cycles, fmax(price->least + all, 2 * price->words)) : HUGE_VAL;
	if (t->of->is_read)
		cycles = fmax(cycles, converter_cycles(t, size));
	return cycles + price->late + tiles * leave + (double)(levels * t->latency);
}

/* DSPs of a row of so many lanes; what is the same in all lanes is computed once. */
static int64_t row_dsp(const struct register_tiler *t, int64_t lanes)
{
	const struct body *body = &t->kernel->update;
	bool *varies = ARENA_ARRAY(t->of->module->arena, bool, body->count + 1);
	int64_t dsp = 0;
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		varies[n] = node->kind == NODE_ACCUMULATOR ||
		        (node->kind == NODE_OPERAND &&
		                t->kernel->operand[node->integer].stride[t->lane]);
		if (node->kind != NODE_OP)
			continue;
		for (int k = 0; k < body_arguments(node); k++)
			varies[n] = varies[n] || varies[node->argument[k]];
		dsp += (varies[n] ? lanes : 1) *
		        platform_operator(t->of->platform, node->code, node->type).dsp;
	}
	return dsp;
}

static void choose_held(struct register_tiler *t, const struct schedule *schedule,
        const struct tile_size *size, const struct tile_price *before, int operand);

/* Chooses the memory ports of an operand that is held there, and then what follows: as few as bring
 * its words, or more, while they are what the tile waits for; few words may come through the shared
 * loader. */
static void choose_ports(struct register_tiler *t, const struct schedule *schedule,
        const struct tile_size *size, const struct tile_price *before,
        const struct holding *holding)
{
	int operand = holding->operand;
	int64_t lanes = lanes_of_operand(t, schedule, operand);
	int64_t bits = operand_bits(t, operand);
	int most = most_ports(t) - before->ports;
	int all = tile_ports(lanes, bits);
	struct tile_price scratch = *before;
	double whole = add_loader(t, schedule, &scratch, holding, all);
	double cycles = HUGE_VAL;
	for (int ports = 1; ports <= most && cycles > before->compute; ports++) {
		struct tile_price price = *before;
		if (!ports_fit(schedule, &t->kernel->operand[operand], bits, ports))
			continue;
		add_holding(t, schedule, &price, holding);
		double now = add_loader(t, schedule, &price, holding, ports);
		if (ports < all && now > whole && now * SELDOM > before->compute)
			continue;
		if (now < cycles)
			choose_held(t, schedule, size, &price, operand + 1);
		cycles = now < cycles ? now : cycles;
	}
	double elements = holding->loaded * (double)lanes;
	if (!t->limits->shares ||
	        (elements >= SHARED_ELEMENTS && elements * SHARED_PART > before->compute))
		return;
	struct tile_price price = *before;
	add_holding(t, schedule, &price, holding);
	add_loader(t, schedule, &price, holding, 0);
	choose_held(t, schedule, size, &price, operand + 1);
}

/* Chooses where the operands from `operand` on are held. */
static void choose_held(struct register_tiler *t, const struct schedule *schedule,
        const struct tile_size *size, const struct tile_price *before, int operand)
{
	const struct tile_limits *limits = t->limits;
	struct holding holding[MOST_HELD];
	if (before->ports > most_ports(t) || before->memory.bram18 > limits->memory.bram18 ||
	        before->memory.uram > limits->memory.uram || before->compute >= t->best_price)
		return;
	if (operand < t->of->op->operands) {
		int count = list_holdings(t, schedule, operand, holding);
		for (int i = 0; i < count; i++) {
			struct tile_price price = *before;
			if (t->of->loads[operand]) {
				choose_ports(t, schedule, size, before, &holding[i]);
				continue;
			}
			add_holding(t, schedule, &price, &holding[i]);
			choose_held(t, schedule, size, &price, operand + 1);
		}
		return;
	}
	double cycles = cycles_of(t, size, before) + cycles_waited(t, schedule, before->compute);
	double share = resources_share(before->memory, t->board);
	double price = cycles * (1 + MEMORY_PRICE * share);
	if (t->limits->shares)
		price += TRAFFIC_PRICE * before->bytes / channels_rate(t, before);
	if (price >= t->best_price)
		return;
	int operands = t->of->op->operands;
	t->best_price = price;
	int64_t lanes = lanes_leaving(t, size, before);
	bool elementwise = !t->of->is_read && !t->of->is_stored;
	t->best = (struct tile_choice){ true, *schedule, cycles, dsp_of(t, size), before->ports,
		elementwise ? lanes : 0 };
	t->best.dsp += elementwise ? (lanes - 1) * t->of->reader_dsp : 0;
	t->best.schedule.held = arena_copy(
	        t->of->module->arena, before->held, sizeof *before->held * (size_t)operands);
	t->best.schedule.ports = arena_copy(t->of->module->arena, before->operand_ports,
	        sizeof *before->operand_ports * (size_t)operands);
}

static void price_size(struct register_tiler *t, const struct tile_size *size)
{
	double blocks = (double)(t->outside * size->row_blocks * size->lane_blocks);
	double tiles = (double)(size->row_tiles * size->lane_tiles * t->others);
	double iterations = blocks * (double)t->terms * tiles;
	if (iterations >= t->best_price)
		return;
	struct schedule schedule = schedule_of(t, size);
	double interval = (double)schedule_interval(t->kernel, &schedule, t->latency);
	int64_t rows = t->row_terms ? 1 : size->rows;
	int64_t lanes = t->tree ? 1 : size->lanes;
	int64_t bits = rows * lanes * type_bits(t->kernel->type);
	struct resources sums = storage_of(t, bits, (int64_t)tiles);
	struct tile_price price = { .compute = iterations * interval,
		.least = HUGE_VAL,
		.words = HUGE_VAL,
		/* the results of a block wait while the next block is summed up */
		.memory = resources_add(sums, sums),
		.held = ARENA_ARRAY(t->of->module->arena, int64_t, t->of->op->operands + 1),
		.operand_ports =
		        ARENA_ARRAY(t->of->module->arena, int64_t, t->of->op->operands + 1),
		.operand_bytes = ARENA_ARRAY(t->of->module->arena, double, t->of->op->operands + 1),
		.passes = ARENA_ARRAY(t->of->module->arena, double, t->of->op->operands + 1) };
	if (t->of->op->operands && schedule_fits(t->of->module, t->of->op, &schedule))
		choose_held(t, &schedule, size, &price, 0);
}

/* Is each term a product of two operands that both vary along the loop, so that zeros behind its
 * last iteration add nothing? */
static bool pads_with_zeros(const struct kernel *kernel, int loop)
{
	int term;
	if (kernel_combine(kernel, &term) != OP_ADDF)
		return false;
	const struct node *product = &kernel->update.node[term];
	bool zeros = product->kind == NODE_OP && product->code == OP_MULF;
	for (int k = 0; zeros && k < 2; k++) {
		const struct node *factor = &kernel->update.node[product->argument[k]];
		zeros = factor->kind == NODE_OPERAND &&
		        kernel->operand[factor->integer].stride[loop];
	}
	return zeros;
}

/* May the loop be padded? An operand from another kernel has no elements beyond its edge. */
static bool can_pad(const struct register_tiler *t, int loop)
{
	if (t->kernel->loop[loop].reduction && !pads_with_zeros(t->kernel, loop))
		return false;
	for (int j = 0; j < t->of->op->operands; j++)
		if (!t->of->loads[j] && t->kernel->operand[j].stride[loop])
			return false;
	return true;
}

/* Prices the blocks of the unrolled loops: any number of tiles that divides theirs. */
static void price_blocks(struct register_tiler *t, int64_t rows, int64_t lanes)
{
	int64_t row_extent = t->row < 0 ? 1 : t->kernel->loop[t->row].extent;
	int64_t row_all = ceil_div(row_extent, rows);
	int64_t lane_all = ceil_div(t->kernel->loop[t->lane].extent, lanes);
	double least = (double)(t->outside * t->others * t->terms);
	least *= (double)row_all * (double)lane_all;
	bool padded = row_all * rows > row_extent;
	bool lanes_padded = lane_all * lanes > t->kernel->loop[t->lane].extent;
	if (least >= t->best_price || (padded && !can_pad(t, t->row)) ||
	        (lanes_padded && !can_pad(t, t->lane)))
		return;
	for (int64_t r = 1; r <= (t->row_terms ? 1 : row_all); r++)
		for (int64_t l = 1; row_all % r == 0 && l <= (t->tree ? 1 : lane_all); l++)
			if (lane_all % l == 0)
				price_size(t,
				        &(struct tile_size){
				                rows, lanes, r, l, row_all / r, lane_all / l });
}

/* Does each operand vary along one of the two loops at most, and is each term added alike? */
static bool is_outer_product(const struct op *op, int row, int lane)
{
	int term;
	if (row >= 0 &&
	        (kernel_combine(op->kernel, &term) == OP_NONE ||
	                body_uses_counters(&op->kernel->update)))
		return false;
	for (int j = 0; j < op->operands; j++)
		if (op->kernel->operand[j].stride[row] && op->kernel->operand[j].stride[lane])
			return false;
	return true;
}

/* Is one of the loops a sum, whose terms may be added in another order, and the other parallel? */
static bool is_tree(const struct op *op, int row, int lane)
{
	int term;
	const struct kernel *kernel = op->kernel;
	return row >= 0 && kernel->loop[lane].reduction != kernel->loop[row].reduction &&
	        kernel_combine(kernel, &term) == OP_ADDF && kernel->init == 0 &&
	        !body_uses_counters(&kernel->update);
}

/* Do two loops form an outer product? */
static bool has_outer_product(const struct op *op)
{
	const struct loop *loop = op->kernel->loop;
	bool found = false;
	for (int i = 0; i < op->kernel->loops; i++)
		for (int j = 0; j < i; j++)
			found = found ||
			        (!loop[i].reduction && !loop[j].reduction && loop[i].extent > 1 &&
			                loop[j].extent > 1 && is_outer_product(op, i, j));
	return found;
}

/* Is there no smaller unroll with as few tiles, which takes fewer DSPs and pads less, or none that
 * more lanes of a memory port divide? */
static bool is_worth_trying(
        const struct register_tiler *t, int64_t extent, int64_t unroll, bool terms)
{
	int64_t word = PORT_BITS / operand_bits(t, 0);
	if (terms && unroll < word)
		return true;
	int64_t least = ceil_div(extent, ceil_div(extent, unroll));
	for (int64_t part = 1; part < word; part *= 2)
		if (unroll % part == 0 && unroll < least + part)
			return true;
	return unroll % word == 0;
}

/* Prices all unrolls of two loops, most terms first. */
static void price_loops(struct register_tiler *t)
{
	const struct kernel *kernel = t->kernel;
	int64_t most = t->limits->dsp;
	int64_t one = row_dsp(t, 1);
	int64_t more = row_dsp(t, 2) - one;
	t->first = one;
	t->more = more;
	if (more)
		most = most < one ? 0 : 1 + (most - one) / more;
	int64_t row_extent = t->row < 0 ? 1 : kernel->loop[t->row].extent;
	int64_t lane_extent = kernel->loop[t->lane].extent;
	int64_t *beside = t->others_inside ? &t->others : &t->outside;
	t->outside = t->others = t->terms = 1;
	for (int l = 0; l < kernel->loops; l++)
		if (l != t->row && l != t->lane)
			*(kernel->loop[l].reduction ? &t->terms : beside) *= kernel->loop[l].extent;
	if (t->others_inside && t->others == 1)
		return;
	for (int64_t terms = most; terms > 0; terms--)
		for (int64_t rows = 1; rows <= terms && rows <= t->most_rows; rows++)
			if (terms % rows == 0 && terms / rows <= lane_extent &&
			        (rows == 1 || terms / rows > 1) &&
			        rows * (one + (terms / rows - 1) * more) <= t->limits->dsp &&
			        is_worth_trying(t, row_extent, rows, t->row_terms) &&
			        is_worth_trying(t, lane_extent, terms / rows, t->tree))
				price_blocks(t, rows, terms / rows);
}

/* Prices all pairs of loops that are outer products, or those whose terms trees add up. */
static void price_pairs(struct register_tiler *t, bool trees)
{
	const struct op *op = t->of->op;
	const struct kernel *kernel = op->kernel;
	for (t->lane = 0; t->lane < kernel->loops; t->lane++) {
		t->tree = kernel->loop[t->lane].reduction;
		if ((t->tree && !trees) || kernel->loop[t->lane].extent == 1)
			continue;
		for (t->row = -1; t->row < kernel->loops; t->row++) {
			bool rows = t->row >= 0;
			if (t->row == t->lane || (rows && kernel->loop[t->row].extent == 1))
				continue;
			t->row_terms = rows && kernel->loop[t->row].reduction;
			bool tree = t->tree || t->row_terms;
			if (tree != trees || (tree && !is_tree(op, t->row, t->lane)))
				continue;
			bool several = tree || (rows && is_outer_product(op, t->row, t->lane));
			t->most_rows = several ? kernel->loop[t->row].extent : 1;
			for (int outside = tree; outside < 2; outside++) {
				t->rows_outside = outside;
				for (int inside = 0; inside < 2; inside++) {
					t->others_inside = inside;
					price_loops(t);
				}
			}
		}
	}
}

struct tile_choice choose_register_tile(
        const struct tile_kernel *of, const struct tile_limits *limits)
{
	const struct kernel *kernel = of->op->kernel;
	struct register_tiler t = { .of = of,
		.kernel = kernel,
		.limits = limits,
		.board = platform_total(of->platform),
		.latency = schedule_chain_latency(of->platform, of->module->arena, kernel),
		.held = ARENA_ARRAY(of->module->arena, int64_t, of->op->operands + 1),
		.trip = ARENA_ARRAY(of->module->arena, int64_t, kernel->loops + 6),
		.level = ARENA_ARRAY(of->module->arena, int64_t, of->op->operands + 1),
		.best_price = HUGE_VAL };
	price_pairs(&t, false);
	/* trees change the order of sums, and other kernels may set the pace or wait for results in
	 * another order */
	bool ordered = has_outer_product(of->op);
	if (ordered)
		t.best_price = fmin(t.best_price / TREES_GAIN, t.best_price - TREES_CYCLES);
	if (!ordered || limits->shares)
		price_pairs(&t, true);
	return t.best;
}
