/* Dynamic trip counts in processes. A process that needs one pops the symbol's value once a launch,
 * as the first thing it does, from a control FIFO of its own; one control process per symbol sends
 * it to all of them. So a launch scalar reaches every process in one way. For layers with a sliding
 * window (ir/sliding_window.h) one more process pops the symbol and sends the window's extent for
 * each layer. */
#include "ir/sliding_window.h"
#include "process/operation_builder.h"
#include <string.h>

#define CONTROL_DEPTH 2
/* with more processes than this on several dies, a symbol passes through relays: neighbours mostly
 * stand on one die, and one FIFO crosses to it for all */
#define RELAY_MIN_PROCESSES 16
#define RELAY_FANOUT 12 /* processes of a relay */
/* bits of the words sent, or twice as many, if no process needs to count beyond: larger values are
 * clamped */
#define CONTROL_BITS 8

/* Ops for the head of `place`: before its first loop, after the constants. */
struct head {
	struct block made, *open, *place;
};

static void begin_head(struct process *p, struct block *place, struct head *head)
{
	*head = (struct head){
		.made = { .parent = place->parent }, .open = p->block, .place = place
	};
	p->block = &head->made;
}

static void end_head(struct process *p, struct head *head)
{
	struct op *loop = head->place->first;
	while (loop && loop->code != OP_FOR && loop->code != OP_ACQUIRE)
		loop = loop->next;
	for (struct op *op = head->made.first, *next; op; op = next) {
		next = op->next;
		op->previous = op->next = NULL;
		if (loop)
			op_insert_before(loop, op);
		else
			op_append(head->place, op);
	}
	p->block = head->open;
}

/* where a symbol's value is known: once a launch, or once a layer if it differs by layer */
static struct block *place_of(struct process *p, const char *symbol)
{
	struct sliding_window sliding_window;
	if (!sliding_window_named(p->module, symbol, &sliding_window) || sliding_window.layers == 1)
		return p->entry;
	INVARIANT(p->module->guard, p->layer,
	        "the run-time extent \"%s\" of a layer is asked for outside", symbol);
	return p->layer->block;
}

/* key of a value that is made in `place` */
static const char *key_at(struct process *p, const struct block *place, const char *what)
{
	return place == p->entry
	        ? what
	        : text_format(p->module->arena, "%s in layers %d", what, p->rolled);
}

/* the FIFO that brings a symbol to this process */
static struct value *symbol_fifo(struct process *p, const char *symbol, const struct type **word)
{
	struct design *design = p->design;
	struct sliding_window sliding_window;
	bool windowed = sliding_window_named(p->module, symbol, &sliding_window);
	struct control *control =
	        map_get(&design->controls, windowed ? sliding_window.symbol : symbol);
	struct control *to = control;
	INVARIANT(
	        p->module->guard, control, "no input provides the run-time extent \"%s\"", symbol);
	*word = control->word;
	for (to = windowed ? control->windowed : control;
	        to && windowed && !text_same(to->symbol, symbol);)
		to = to->windowed;
	if (!to) {
		to = ARENA_NEW(p->module->arena, struct control);
		*to = (struct control){
			.symbol = symbol, .windowed = control->windowed, .word = control->word
		};
		control->windowed = to;
	}
	struct value *fifo = design_fifo(design, text_format(p->module->arena, "s_%s", symbol),
	        control->word, windowed ? sliding_window.layers : CONTROL_DEPTH);
	VEC_PUSH(p->module->arena, &to->fifo, fifo);
	return fifo;
}

/* the symbol's value as an index, at least 0 */
static struct value *symbol_value(struct process *p, const char *symbol)
{
	struct block *place = place_of(p, symbol);
	const struct type *index = type_index(p->module);
	const struct type *type;
	const char *key = key_at(p, place, symbol);
	struct value *known = map_get(&p->constants, key);
	if (known)
		return known;
	struct head head;
	begin_head(p, place, &head);
	struct value *fifo = symbol_fifo(p, symbol, &type);
	struct value *word = make_pop(p, NULL, process_argument(p, fifo, symbol));
	struct value *low[2] = { word };
	if (word->type != index)
		low[0] = make_op(p, OP_INDEX_CAST, index, 1, &word);
	low[1] = make_index(p, 0);
	struct value *value = make_op(p, OP_MAXSI, index, 2, low);
	end_head(p, &head);
	map_set(&p->constants, key, value);
	return value;
}

static struct value *at_least(struct process *p, struct value *number, int64_t least)
{
	struct value *operand[2] = { number, make_index(p, least) };
	return make_op(p, OP_MAXSI, type_index(p->module), 2, operand);
}

static struct value *at_most(struct process *p, struct value *number, int64_t most)
{
	struct value *operand[2] = { number, make_index(p, most) };
	return make_op(p, OP_MINSI, type_index(p->module), 2, operand);
}

struct value *process_trip_count(struct process *p, const struct run_time_trip *trip, int64_t times)
{
	struct block *place = place_of(p, trip->symbol);
	const char *key = key_at(p, place,
	        text_format(p->module->arena, "%s+%lld/%lld<%lldx%lld%s>%lld:%lld", trip->symbol,
	                (long long)trip->plus, (long long)trip->tile, (long long)trip->most,
	                (long long)times, trip->remaining ? " less" : "", (long long)trip->least,
	                (long long)trip->interleave));
	struct value *known = map_get(&p->constants, key);
	if (known)
		return known;
	struct value *symbol = symbol_value(p, trip->symbol);
	struct head head;
	begin_head(p, place, &head);
	const int64_t one = 1;
	struct value *count = make_address(p, 1, &symbol, &one, trip->plus + trip->tile - 1);
	if (trip->plus + trip->tile < 1)
		count = at_least(p, count, 0);
	if (trip->tile > 1)
		count = make_divided(p, OP_DIVSI, count, trip->tile);
	count = at_most(p, count, trip->most);
	count = trip->least ? at_least(p, count, trip->least) : count;
	const int64_t each = trip->remaining ? -times : times;
	int64_t offset = trip->remaining ? times * trip->most : 0;
	if (trip->interleave > 1)
		offset += trip->interleave - 1;
	count = make_address(p, 1, &count, &each, offset);
	if (trip->interleave > 1)
		count = make_divided(p, OP_DIVSI, count, trip->interleave);
	attr_set(p->module, count->def, KEY_STREAM_RUN_TIME, run_time_attr(p->module, trip, times));
	end_head(p, &head);
	map_set(&p->constants, key, count);
	return count;
}

/* rows, in iterations, that a sliding window skips */
static struct value *iterations_skipped(struct process *p,
        const struct sliding_window *sliding_window, const struct run_time_trip *trip,
        int64_t times)
{
	struct block *place = place_of(p, trip->symbol);
	const char *key = key_at(p, place,
	        text_format(p->module->arena, "%s out/%lldx%lld", trip->symbol,
	                (long long)trip->tile, (long long)times));
	struct value *known = map_get(&p->constants, key);
	if (known)
		return known;
	struct value *all = symbol_value(p, sliding_window->symbol);
	struct value *own = symbol_value(p, trip->symbol);
	struct head head;
	begin_head(p, place, &head);
	const struct type *index = type_index(p->module);
	struct value *rows[2] = { at_most(p, all, sliding_window->most), own };
	struct value *parts[2] = { make_op(p, OP_SUBI, index, 2, rows) };
	parts[1] = make_index(p, trip->tile);
	struct value *out = trip->tile > 1 ? make_op(p, OP_DIVSI, index, 2, parts) : parts[0];
	out = make_address(p, 1, &out, &times, 0);
	attr_set(p->module, out->def, KEY_STREAM_WINDOW_GAP, attr_unit(p->module));
	end_head(p, &head);
	map_set(&p->constants, key, out);
	return out;
}

struct value *process_window_index(
        struct process *p, const struct run_time_trip *trip, int64_t times, struct value *counter)
{
	struct sliding_window sliding_window;
	const int64_t factor[2] = { 1, 1 };
	if (!trip || !counter || !sliding_window_named(p->module, trip->symbol, &sliding_window))
		return counter;
	struct value *both[2] = { counter, iterations_skipped(p, &sliding_window, trip, times) };
	int64_t head = sliding_window_gap_start(&sliding_window, trip) * times;
	if (head) {
		struct value *none = make_index(p, 0);
		both[1] = make_select(p, make_compare(p, CMPI_SGE, counter, head), both[1], none);
		attr_set(p->module, both[1]->def, KEY_STREAM_WINDOW_GAP, attr_unit(p->module));
	}
	return make_address(p, 2, both, factor, 0);
}

const struct attr *run_time_attr(
        struct module *module, const struct run_time_trip *trip, int64_t times)
{
	struct named items[9] = { { key_name(KEY_SYMBOL), attr_string(module, trip->symbol) },
		{ key_name(KEY_PLUS), attr_integer(module, trip->plus) },
		{ key_name(KEY_TILE), attr_integer(module, trip->tile) },
		{ key_name(KEY_MOST), attr_integer(module, trip->most) },
		{ key_name(KEY_TIMES), attr_integer(module, times) } };
	int count = 5;
	if (trip->remaining)
		items[count++] = (struct named){ key_name(KEY_REMAINING), attr_unit(module) };
	if (trip->last_chunk)
		items[count++] = (struct named){ key_name(KEY_LAST_CHUNK_ONLY), attr_unit(module) };
	if (trip->interleave > 1)
		items[count++] = (struct named){ key_name(KEY_SHARED_BY),
			attr_integer(module, trip->interleave) };
	if (trip->least)
		items[count++] =
		        (struct named){ key_name(KEY_AT_LEAST), attr_integer(module, trip->least) };
	return attr_dictionary(module, count, items);
}

static int64_t larger(int64_t left, int64_t right)
{
	return left > right ? left : right;
}

/* the largest value of a symbol that makes a difference to a loop bound of the block's types */
static int64_t counts_most(
        const struct module *module, const struct block *block, const char *symbol)
{
	int64_t most = 0;
	for (const struct op *op = block->first; op; op = op->next) {
		most = op->code == OP_FOR ? larger(most, counts_most(module, op->region[0], symbol))
		                          : most;
		for (int r = 0; r < op->results; r++) {
			const struct itensor *order = op->result[r]->type->kind == TYPE_ITENSOR
			        ? op->result[r]->type->itensor
			        : NULL;
			for (int i = 0; order && order->run_time && i < order->dims; i++) {
				const struct run_time_trip *trip = order->run_time[i];
				if (trip &&
				        text_same(sliding_window_symbol(module, trip->symbol),
				                symbol))
					most = larger(most, trip->most * trip->tile - trip->plus);
			}
		}
	}
	return most;
}

static int64_t sent_most(int bits)
{
	return ((int64_t)1 << (bits - 1)) - 1;
}

/* the value, clamped to the range of the words sent */
static struct value *narrowed(struct process *p, const struct control *control, struct value *word)
{
	const struct type *came = word->type;
	if (control->word == came)
		return word;
	struct value *low[2] = { word, make_number(p, 0, came) };
	struct value *high[2] = { make_op(p, OP_MAXSI, came, 2, low) };
	high[1] = make_number(p, (double)sent_most(control->word->width), came);
	struct value *within = make_op(p, OP_MINSI, came, 2, high);
	return make_op(p, OP_TRUNCI, control->word, 1, &within);
}

void lower_extent(struct design *design, const struct op *op)
{
	struct control *control = ARENA_NEW(design->module->arena, struct control);
	control->symbol = attr_text_or(op, KEY_NAME, "");
	control->in = stream_fifo(design, op->operand[0]);
	control->word = stream_word(design->module, op->operand[0]->type);
	int64_t most = counts_most(design->module, design->source->region[0], control->symbol);
	for (int bits = CONTROL_BITS; bits <= 2 * CONTROL_BITS && bits < type_bits(control->word);
	        bits *= 2)
		if (most <= sent_most(bits))
			control->word = type_integer(design->module, bits);
	map_set(&design->controls, control->symbol, control);
}

/* rows of the sliding window of this layer; of layers without one, the most rows there are */
static struct value *window_of_layer(struct process *p, const struct sliding_window *sliding_window)
{
	struct value *rows = NULL;
	for (int i = 0; i < sliding_window->layers; i++) {
		struct value *own = make_index(p,
		        sliding_window->rows[i] == SLIDING_WINDOW_ALL ? sliding_window->most
		                                                      : sliding_window->rows[i]);
		rows = rows && rows != own
		        ? make_select(p, make_compare(p, CMPI_SGE, p->layer, i), own, rows)
		        : own;
	}
	return rows;
}

static struct value *window_extent(struct process *p, const struct sliding_window *sliding_window)
{
	const struct type *index = type_index(p->module);
	const int64_t whole[2] = { 1, -sliding_window->tile };
	struct value *all =
	        at_most(p, symbol_value(p, sliding_window->symbol), sliding_window->most);
	struct value *rows[2] = { all, window_of_layer(p, sliding_window) };
	struct value *outside = make_op(p, OP_SUBI, index, 2, rows);
	const int64_t one = 1;
	struct value *low[2];
	low[0] = make_address(p, 1, &outside, &one, -sliding_window->unskipped_rows);
	low[1] = make_index(p, 0);
	struct value *parts[2] = { make_op(p, OP_MAXSI, index, 2, low) };
	parts[1] = make_index(p, sliding_window->tile);
	struct value *both[2] = { all,
		sliding_window->tile > 1 ? make_op(p, OP_DIVSI, index, 2, parts) : parts[0] };
	return make_address(p, 2, both, whole, 0);
}

static void push_to_all(
        struct process *p, size_t count, struct value *const *fifo, struct value *word)
{
	for (size_t k = 0; k < count; k++)
		make_push(p, NULL, word,
		        process_argument(p, fifo[k], text_format(p->module->arena, "y%zu", k)));
}

static void add_relay(struct design *design, const char *symbol, struct value *from, size_t count,
        struct value *const *fifo)
{
	struct process p =
	        process_new(design, text_format(design->module->arena, "relay_%s", symbol));
	struct value *in = process_argument(&p, from, "x");
	struct value *counter;
	int opened = process_nest(&p, 0, NULL, 1, &counter);
	push_to_all(&p, count, fifo, make_pop(&p, NULL, in));
	process_close(&p, opened);
	process_finish(&p);
}

/* fills `fifo` with the FIFOs that the control process itself writes: those of all processes, or of
 * relays; returns how many */
static size_t add_relays(struct design *design, const struct control *control, struct value **fifo)
{
	size_t count = control->fifo.count;
	size_t relays = 0;
	if (design->context->platform->dies < 2 || count <= RELAY_MIN_PROCESSES) {
		memcpy(fifo, control->fifo.data, sizeof *fifo * count);
		return count;
	}
	for (size_t first = 0; first < count; first += RELAY_FANOUT) {
		fifo[relays] = design_fifo(design,
		        text_format(design->module->arena, "s_%s", control->symbol), control->word,
		        CONTROL_DEPTH);
		add_relay(design, control->symbol, fifo[relays++],
		        count - first < RELAY_FANOUT ? count - first : RELAY_FANOUT,
		        control->fifo.data + first);
	}
	return relays;
}

/* the process that computes the extent of a sliding window for every layer */
static void lower_window_control(struct design *design, const struct control *control)
{
	struct sliding_window sliding_window;
	struct value *counter;
	bool found = sliding_window_named(design->module, control->symbol, &sliding_window);
	INVARIANT(design->module->guard, found, "nothing is said about the run-time extent \"%s\"",
	        control->symbol);
	design->layers = sliding_window.layers > 1 ? sliding_window.layers : 0;
	struct process p = process_new(
	        design, text_format(design->module->arena, "control_%s", control->symbol));
	process_layers(&p);
	int opened = process_nest(&p, 0, NULL, 1, &counter);
	struct value *value = window_extent(&p, &sliding_window);
	push_to_all(&p, control->fifo.count, control->fifo.data,
	        control->word == value->type
	                ? value
	                : make_op(&p, OP_INDEX_CAST, control->word, 1, &value));
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
	design->layers = 0;
}

void lower_controls(struct design *design)
{
	for (size_t i = 0; i < design->controls.entries.count; i++) {
		const struct map_entry *entry = &design->controls.entries.data[i];
		struct control *control = entry->value;
		for (const struct control *windowed = control->windowed; windowed;
		        windowed = windowed->windowed)
			lower_window_control(design, windowed);
		struct value **fifo =
		        ARENA_ARRAY(design->module->arena, struct value *, control->fifo.count + 1);
		size_t fifos = add_relays(design, control, fifo);
		struct process p = process_new(
		        design, text_format(design->module->arena, "control_%s", entry->key));
		struct value *in = process_argument(&p, control->in, "x");
		struct value *counter;
		int opened = process_nest(&p, 0, NULL, 1, &counter);
		push_to_all(&p, fifos, fifo, narrowed(&p, control, make_pop(&p, NULL, in)));
		process_close(&p, opened);
		process_finish(&p);
	}
}
