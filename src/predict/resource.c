/* Estimates resources of processes: a pipelined loop with interval II needs ⌈operations / II⌉
 * instances of each kind of operator, and loops do not share them. */
#include "base/number.h"
#include "ir/channel_ends.h"
#include "ir/narrow_product.h"
#include "ir/datapath_sharing.h"
#include "platform/index_range.h"
#include "predict/bundle.h"
#include "predict/crossing.h"
#include "platform/dot_cost.h"
#include "predict/resource.h"
#include <string.h>

#define LOOP_LUT 64 /* a counter and its comparison */
/* State machine entry of a loop nest that shares a datapath: the counters exist once, and the
 * numbers of all such nests take about one LUT per bit. */
#define SHARED_STATE_LUT 16
#define BRANCH_LUT 4 /* state that tests whether a loop has an iteration */
/* Of a process with stream.rewind: a queue for the numbers of a nest, with selection; registers
 * hold them once before and twice after the queue. */
#define ENTRY_LUT (2 * NEST_ENTRY_BITS)
#define ENTRY_FF (3 * NEST_ENTRY_BITS)
#define INDEX_TERM_LUT 32 /* one adder of an address */
/* Control registers for the address of a memory buffer, from the synthesis report that the
 * adapter's figures come from (platforms/u55c.json). */
#define CONTROL_LUT 148
#define CONTROL_FF 82
/* Estimate: this fraction of a port's logic is the memory side of its adapter (bursts, registers,
 * arbitration), which the load and store units of one adapter share. */
#define FURTHER_UNIT 2
#define CROSSING_FLAGS 2 /* a word is valid, there is room (runtime/hls/st_crossing.v) */
#define CROSSING_COUNT 6 /* bits that count the words of the queue */

struct counting {
	const struct platform *platform;
	int64_t interval;    /* interval of the current loop; 0: not in a pipelined loop */
	int64_t *operations; /* [OP_COUNT][3 bit widths]: lanes of each kind in this loop */
	int64_t *units;      /* of the open sequential nest: nest_units; NULL: in none */
	int64_t *nest_units; /* the same: instances in the sequential nests so far */
	int64_t copies;      /* of what loops with lanes hold */
	struct resources sum;
	int64_t lanes, widest_interval, products; /* products: of the dot ops of this loop */
	/* loops with this datapath number were counted */
	bool datapath[NEST_DATAPATHS_MOST];
};

static struct resources times(struct operator_cost cost, int64_t count)
{
	return (struct resources){ cost.lut * count, cost.ff * count, cost.dsp * count, 0, 0 };
}

static int64_t shared(int64_t operations, int64_t interval)
{
	return interval ? (operations + interval - 1) / interval : operations;
}

static enum op_code kind_of_tree(const struct op *op)
{
	const char *kind = attr_text_or(op, KEY_KIND, "");
	return op_code_of(kind, strlen(kind));
}

/* Cost of an operation without its arithmetic. */
static struct resources structure_cost(const struct op *op)
{
	if (op->code == OP_POP)
		return (struct resources){ .ff = type_bits(op->result[0]->type), .lut = 4 };
	if (op->code == OP_APPLY)
		return (struct resources){ .lut = INDEX_TERM_LUT * op->operands *
			        index_bits(op->result[0]) / INDEX_BITS };
	if (op->code == OP_FOR)
		return nest_is_branch(op)
		        ? (struct resources){ .lut = BRANCH_LUT, .ff = BRANCH_LUT }
		        : (struct resources){ .lut = LOOP_LUT, .ff = LOOP_LUT };
	bool chooses = op->code == OP_LANE || op->code == OP_SET_LANE || op->code == OP_SPLIT_LANES;
	const struct op *which = chooses ? op->operand[op->operands - 1]->def : NULL;
	if (chooses && (!which || which->code != OP_CONSTANT))
		return (struct resources){
			.lut = type_bits(op->operand[op->code == OP_SET_LANE]->type) / 3
		};
	return (struct resources){ 0 };
}

/* Operations of one kind and bit width share instances. */
static int64_t *operations_of(
        struct counting *c, enum op_code code, const struct type *scalar, bool narrow)
{
	int width = scalar->kind == TYPE_INDEX ? 32 : scalar->width;
	size_t class = width > 32 ? 2 : 1;
	/* the loops of a nest share units that add or subtract */
	code = c->units && code == OP_SUBF ? OP_ADDF : code;
	if (width <= 32 && (narrow || width <= 8))
		class = 0;
	return &c->operations[(size_t)code * 3 + class];
}

/* What makes a number, or the one that is broadcast; NULL: an argument. */
static const struct op *maker_of(const struct value *number)
{
	const struct op *from = number->def;
	return from && from->code == OP_BROADCAST ? from->operand[0]->def : from;
}

/* Bits of an operand of an integer product, without its extension. */
static int factor_bits(const struct value *factor)
{
	const struct op *from = maker_of(factor);
	if (from && from->code == OP_CONSTANT)
		return constant_bits(attr_integer_or(from, KEY_VALUE, INT64_MAX));
	bool extends = from && (from->code == OP_EXTSI || from->code == OP_EXTUI);
	int sign = extends && from->code == OP_EXTUI;
	return type_scalar((extends ? from->operand[0] : factor)->type)->width + sign;
}

static bool by_power_of_two(const struct op *op)
{
	const struct op *by = op->code == OP_MULI || op->code == OP_DIVSI || op->code == OP_REMSI
	        ? maker_of(op->operand[1])
	        : NULL;
	const struct attr *number = by ? attr_get(by, KEY_VALUE) : NULL;
	return number && number->kind == ATTR_INTEGER && number->integer > 0 &&
	        !(number->integer & (number->integer - 1));
}

static int widest_index(const struct op *op)
{
	int bits = 0;
	for (int i = 0; i < op->operands; i++) {
		int own = op->operand[i]->type->kind == TYPE_INDEX ? index_bits(op->operand[i]) : 0;
		bits = own > bits ? own : bits;
	}
	return bits ? bits : INDEX_BITS;
}

/* Of a function that begins every `interval` cycles, operations share operators. */
static struct operator_cost with_shared_parts(struct operator_cost cost, int64_t interval)
{
	int by = interval < cost.parts ? (int)interval : cost.parts;
	return (struct operator_cost){ .latency = cost.latency,
		.dsp = (cost.dsp + by - 1) / by,
		.lut = (cost.lut + by - 1) / by,
		.ff = (cost.ff + by - 1) / by };
}

/* Each row of a divider is as wide as the divisor, which a constant tells. */
static struct operator_cost with_divisor(struct operator_cost cost, const struct op *op, int width)
{
	const struct op *by = operator_divides(op->code) ? maker_of(op->operand[1]) : NULL;
	if (!by || by->code != OP_CONSTANT)
		return cost;
	int64_t bits = constant_bits(attr_integer_or(by, KEY_VALUE, INT64_MAX));
	bits = bits < width ? bits : width;
	cost.lut = (int)ceil_div(cost.lut * bits, width);
	cost.ff = (int)ceil_div(cost.ff * bits, width);
	return cost;
}

static int uses_in_block(const struct value *value)
{
	int uses = 0;
	for (const struct op *op = value->def->next; op; op = op->next)
		for (int i = 0; i < op->operands; i++)
			uses += op->operand[i] == value;
	return uses;
}

/* Is the op the last of three selects that choose among four values? A LUT does that for one bit
 * (UG574); the first two, which have the same condition, are counted as one LUT per two bits
 * each. */
static bool chooses_among_four(const struct op *op)
{
	const struct op *left = op->code == OP_SELECT ? op->operand[1]->def : NULL;
	const struct op *right = left ? op->operand[2]->def : NULL;
	return right && left != right && left->code == OP_SELECT && right->code == OP_SELECT &&
	        left->operand[0] == right->operand[0] && uses_in_block(left->result[0]) == 1 &&
	        uses_in_block(right->result[0]) == 1;
}

/* Loops of a nest run one after the other, on the same instances. */
static int64_t add_units(int64_t *units, int64_t needed)
{
	int64_t more = needed > *units ? needed - *units : 0;
	*units += more;
	return more;
}

static void count_structure(struct counting *c, const struct op *op)
{
	for (int64_t i = 0; i < c->copies; i++)
		c->sum = resources_add(c->sum, structure_cost(op));
	if (op->code == OP_ALLOCA)
		c->sum = resources_add(c->sum, memory_cost(c->platform, op));
}

/* narrow: is it narrower than its type? */
static struct operator_cost cost_of(const struct platform *platform, const struct op *op,
        enum op_code code, const struct type *scalar, bool *narrow)
{
	int power;
	*narrow = true;
	if (narrow_integer(op))
		return platform_narrow_integer(platform);
	if (power_of_two_factor(op, &power) >= 0)
		return platform_scale(platform);
	if (narrow_factor(op) >= 0)
		return platform_narrow(platform);
	*narrow = false;
	if (op->code == OP_MULI && scalar->kind == TYPE_INTEGER)
		return platform_product(
		        platform, factor_bits(op->operand[0]), factor_bits(op->operand[1]));
	return platform_operator(platform, code, scalar);
}

static void count_op(struct counting *c, const struct op *op)
{
	enum op_code code = op->code == OP_TREE ? kind_of_tree(op) : op->code;
	count_structure(c, op);
	struct dot dot;
	if (op->code == OP_DOT && dot_of(op, &dot)) {
		c->sum = resources_add(c->sum, times(dot_cost(c->platform, &dot), 1));
		int64_t products =
		        (dot.columns ? dot.columns : dot.words * dot_x_count(&dot)) * dot.lanes;
		c->products += products;
		c->lanes = c->products > c->lanes ? c->products : c->lanes;
	}
	bool arithmetic = op->results == 1 && code != OP_NONE &&
	        (op_info[code].levels & LEVEL_BODY) && code != OP_CONSTANT;
	/* wires only */
	if (!arithmetic || chooses_among_four(op) ||
	        (op->code == OP_MULI && type_scalar(op->result[0]->type)->kind == TYPE_INTEGER &&
	                by_power_of_two(op)))
		return;
	const struct type *scalar = type_scalar(op->result[0]->type);
	int64_t lanes = op->code == OP_TREE ? type_lanes(op->operand[0]->type) - 1
	                                    : type_lanes(op->result[0]->type);
	if (code == OP_CMPI || code == OP_CMPF)
		scalar = type_scalar(op->operand[0]->type);
	c->lanes = lanes > c->lanes ? lanes : c->lanes;
	bool narrow = false;
	struct operator_cost cost = cost_of(c->platform, op, code, scalar, &narrow);
	int64_t *operations = operations_of(c, code, scalar, narrow);
	int64_t all = *operations += lanes * c->copies;
	int64_t more = shared(all, c->interval) - shared(all - lanes * c->copies, c->interval);
	if (cost.parts && c->interval > 1 && !c->units) {
		cost = with_shared_parts(cost, c->interval);
		more = lanes * c->copies;
	}
	if (c->units)
		more = add_units(&c->units[operations - c->operations], shared(all, c->interval));
	/* addresses: a shift, a mask or a few adders */
	if (scalar->kind == TYPE_INDEX && (code == OP_MULI || by_power_of_two(op)))
		cost = (struct operator_cost){ .lut = by_power_of_two(op) &&
			                !index_is_below_zero(op->operand[0])
			        ? 0
			        : 2 * INDEX_TERM_LUT };
	if (scalar->kind == TYPE_INDEX)
		cost = operator_of_width(cost, code, widest_index(op));
	cost = with_divisor(
	        cost, op, scalar->kind == TYPE_INDEX ? widest_index(op) : scalar->width);
	c->sum = resources_add(c->sum, times(cost, more));
}

static void count_block(struct counting *c, const struct block *block);

static void count_nest(struct counting *c, const struct block *block)
{
	c->units = c->nest_units;
	count_block(c, block);
	c->units = NULL;
}

static void count_lanes(struct counting *c, const struct op *loop)
{
	const struct op *trips = loop->operand[1]->def;
	int64_t outside = c->copies;
	c->copies *= trips->code == OP_CONSTANT ? attr_get(trips, KEY_VALUE)->integer : 1;
	count_block(c, loop->region[0]);
	c->copies = outside;
}

static void count_block(struct counting *c, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		int64_t interval =
		        op->code == OP_FOR ? attr_integer_or(op, KEY_STREAM_PIPELINE, 0) : 0;
		int mark = nest_datapath(op);
		if (mark >= 0 && c->datapath[mark]) {
			c->sum = resources_add(c->sum,
			        (struct resources){ .lut = SHARED_STATE_LUT, .ff = BRANCH_LUT });
			continue;
		}
		count_op(c, op);
		if (!op->region[0])
			continue;
		if (mark >= 0)
			c->datapath[mark] = true;
		if (interval) {
			memset(c->operations, 0, sizeof *c->operations * OP_COUNT * 3);
			c->products = 0;
			c->interval = interval;
			c->widest_interval =
			        interval > c->widest_interval ? interval : c->widest_interval;
		}
		if (attr_get(op, KEY_STREAM_LANES))
			count_lanes(c, op);
		else if (attr_get(op, KEY_STREAM_CYCLES))
			count_nest(c, op->region[0]);
		else
			count_block(c, op->region[0]);
		c->interval = interval ? 0 : c->interval;
		if (interval && c->units)
			memset(c->operations, 0, sizeof *c->operations * OP_COUNT * 3);
	}
}

struct resources port_resources(
        const struct platform *platform, const struct type *word, bool writes)
{
	struct resources full = writes ? platform->port_cost : platform->read_cost;
	int64_t bits = type_bits(word);
	int64_t most = platform->port_bits;
	bits = bits > most ? most : bits;
	return (struct resources){ full.lut / 4 + full.lut * 3 / 4 * bits / most,
		full.ff / 4 + full.ff * 3 / 4 * bits / most, 0,
		(platform->port_cost.bram18 * bits + most - 1) / most, 0 };
}

static bool is_written(const struct block *block, const struct value *port)
{
	for (const struct op *op = block->first; op; op = op->next)
		if (op_writes(op, port) || (op->region[0] && is_written(op->region[0], port)))
			return true;
	return false;
}

static struct counting count_process(const struct platform *platform, const struct op *function)
{
	int64_t operations[OP_COUNT * 3] = { 0 };
	int64_t units[OP_COUNT * 3] = { 0 };
	struct counting c = { .platform = platform,
		.operations = operations,
		.nest_units = units,
		.copies = 1,
		.lanes = 1,
		.widest_interval = 1 };
	for (int i = 0; i < function->region[0]->arguments; i++) {
		const struct value *port = function->region[0]->argument[i];
		if (type_is_port(port->type))
			c.sum = resources_add(c.sum,
			        resources_add(port_resources(platform, port->type->element,
			                              is_written(function->region[0], port)),
			                (struct resources){
			                        .lut = CONTROL_LUT, .ff = CONTROL_FF }));
	}
	if (attr_get(function, KEY_STREAM_REWIND))
		c.sum = resources_add(
		        c.sum, (struct resources){ .lut = ENTRY_LUT, .ff = ENTRY_FF });
	count_block(&c, function->region[0]);
	c.operations = c.nest_units = NULL;
	return c;
}

struct resources process_resources(const struct platform *platform, const struct op *function)
{
	return count_process(platform, function).sum;
}

static int die_of(const struct platform *platform, const struct op *function)
{
	int64_t die = attr_integer_or(function, KEY_STREAM_DIE, 0);
	return die < 0 || die >= platform->dies ? 0 : (int)die;
}

static bool shares_unit(const struct op *main, const struct value *port, const struct value *other)
{
	if (type_bits(port->type->element) != type_bits(other->type->element) ||
	        !text_same(bundle_of(main, port->index), bundle_of(main, other->index)))
		return false;
	return text_same(function_argument_attr(main, port->index, KEY_STREAM_DIRECTION)->text,
	        function_argument_attr(main, other->index, KEY_STREAM_DIRECTION)->text);
}

static struct resources own_adapter(
        const struct platform *platform, const struct op *main, const struct value *port)
{
	const struct attr *way = function_argument_attr(main, port->index, KEY_STREAM_DIRECTION);
	return port_resources(platform, port->type->element, way && text_same(way->text, "write"));
}

static bool is_used(const struct op *call, const struct value *port, int before)
{
	for (int j = 0; j < before; j++)
		if (call->operand[j] == port)
			return true;
	return false;
}

/* What an adapter saves where words are accessed one by one: it buffers the words of the
 * outstanding requests (UG1399: requests times burst length) and not whole bursts. */
static struct resources single_words(
        const struct platform *platform, const struct op *main, const struct value *port)
{
	int64_t bits = type_bits(port->type->element);
	int64_t words =
	        BUNDLE_SHORT_BURST * bundle_outstanding(main, port->index, platform->outstanding);
	struct resources whole = own_adapter(platform, main, port);
	struct resources small = storage_cost(storage_choose(bits, words, false), bits, words);
	bool single = bundle_is_single(main, port->index) && small.bram18 < whole.bram18;
	return single
	        ? (struct resources){ -small.lut, -small.ff, 0, whole.bram18 - small.bram18, 0 }
	        : (struct resources){ 0 };
}

/* What a process saves because its ports share adapters: it uses one load or store unit of an
 * adapter for all buffers, and the memory side of an adapter exists once. */
static struct resources shared_units(
        const struct platform *platform, const struct op *main, const struct op *call)
{
	struct resources sum = { 0 };
	for (int i = 0; i < call->operands; i++) {
		bool repeated = false; /* the process uses such a port already */
		bool further = false;  /* the adapter has such a port already */
		for (int j = 0; type_is_port(call->operand[i]->type) && j < call->operand[i]->index;
		        j++) {
			const struct value *other = main->region[0]->argument[j];
			bool alike = shares_unit(main, call->operand[i], other);
			repeated |= alike && is_used(call, other, i);
			further |= alike;
		}
		sum = resources_add(sum,
		        type_is_port(call->operand[i]->type) && !repeated
		                ? single_words(platform, main, call->operand[i])
		                : (struct resources){ 0 });
		struct resources own = repeated || further
		        ? own_adapter(platform, main, call->operand[i])
		        : (struct resources){ 0 };
		sum = resources_add(sum,
		        repeated ? own
		                 : (struct resources){ .lut = own.lut / FURTHER_UNIT,
		                           .ff = own.ff / FURTHER_UNIT });
	}
	return sum;
}

static void add_wires(struct design_cost *design, int64_t bits, int from, int to)
{
	int low = from < to ? from : to;
	for (int die = low; die < from + to - low; die++) {
		design->wires[die] += bits;
		design->crossings[die]++;
	}
}

static struct resources queue_cost(const struct platform *platform, int64_t bits, int64_t crossings)
{
	return (struct resources){
		.lut = platform->fifo_word_lut +
		        (crossing_queue(crossings) > 16 ? bits : (bits + 1) / 2),
		.ff = CROSSING_COUNT,
	};
}

struct crossing_parts crossing_parts(const struct platform *platform, int64_t bits)
{
	return (struct crossing_parts){ bits + CROSSING_FLAGS, queue_cost(platform, bits, 1),
		queue_cost(platform, bits, 2) };
}

/* Adds what the registers of a channel between dies take to these; returns the sum. */
static struct resources add_registers(const struct platform *platform, struct design_cost *design,
        int64_t bits, const int ends[2])
{
	struct crossing_parts parts = crossing_parts(platform, bits);
	struct resources used[PLATFORM_DIES] = { 0 };
	struct resources sum = { 0 };
	crossing_add(&parts, ends[0], ends[1], 1, used);
	for (int d = 0; d < platform->dies; d++) {
		design->die[d] = resources_add(design->die[d], used[d]);
		sum = resources_add(sum, used[d]);
	}
	return sum;
}

bool nests_are_apart(const struct op *process)
{
	return attr_get(process, KEY_STREAM_REWIND) && !nests_read_channels(process->region[0]);
}

static void add_process(const struct platform *platform, const struct module *module,
        struct design_cost *design, struct op *call)
{
	const struct op *before = design->processes
	        ? design->process[design->processes - 1].function
	        : module_main(module);
	struct op *function = module_find_after(module, before, attr_text_or(call, KEY_CALLEE, ""));
	struct counting c = count_process(platform, function);
	c.sum = resources_subtract(c.sum, shared_units(platform, module_main(module), call));
	int die = die_of(platform, function);
	design->process[design->processes++] =
	        (struct process_cost){ attr_text_or(function, KEY_SYM_NAME, ""), function, call,
		        die, c.sum, c.lanes, c.widest_interval };
	design->die[die] = resources_add(design->die[die], c.sum);
	if (die && nests_are_apart(function)) {
		add_registers(platform, design, NEST_ENTRY_BITS, (int[]){ 0, die });
		add_wires(design, NEST_ENTRY_BITS, 0, die);
	}
}

static void add_channel(const struct platform *platform, struct design_cost *design, struct op *op,
        const struct channel_ends *ends)
{
	int from = ends->writer < 0 ? 0 : design->process[ends->writer].die;
	int die = ends->reader < 0 ? from : design->process[ends->reader].die;
	int64_t bits = op->code == OP_FIFO ? type_bits(op->result[0]->type->element) : 0;
	struct resources cost = memory_cost(platform, op);
	design->die[die] = resources_add(design->die[die], cost);
	if (crossings_of(op))
		cost = resources_add(
		        cost, add_registers(platform, design, bits, (int[]){ from, die }));
	design->channel[design->channels++] = (struct channel_cost){ op, ends->writer, ends->reader,
		die, cost, op->result[0]->type->depth, memory_bytes(op), needed_bytes(op) };
	if (op->code == OP_FIFO)
		add_wires(design, bits, ends->writer < 0 ? die : from, die);
}

struct design_cost design_cost(
        struct arena *arena, const struct platform *platform, const struct module *module)
{
	struct design_cost design = { 0 };
	struct block *body = module_main(module)->region[0];
	int ops = 0;
	for (struct op *op = body->first; op; op = op->next)
		ops++;
	design.process = ARENA_ARRAY(arena, struct process_cost, ops);
	design.channel = ARENA_ARRAY(arena, struct channel_cost, ops);
	design.ports = bundle_count(arena, module_main(module));
	for (struct op *op = body->first; op; op = op->next)
		if (op->code == OP_CALL)
			add_process(platform, module, &design, op);
	const struct channel_ends *ends = channel_ends_of(arena, module);
	for (struct op *op = body->first; op; op = op->next)
		if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
			add_channel(platform, &design, op, ends++);
	for (int i = 0; i < platform->dies; i++)
		design.total = resources_add(design.total, design.die[i]);
	return design;
}

const char *resources_exceeded(
        struct resources used, struct resources available, int64_t *have, int64_t *need)
{
	const char *name[] = { "DSP slices", "LUTs", "registers", "BRAM18 blocks", "URAM blocks" };
	int64_t needs[] = { used.dsp, used.lut, used.ff, used.bram18, used.uram };
	int64_t haves[] = { available.dsp, available.lut, available.ff, available.bram18,
		available.uram };
	for (int i = 0; i < 5; i++)
		if (needs[i] > haves[i]) {
			*need = needs[i];
			*have = haves[i];
			return name[i];
		}
	return NULL;
}
