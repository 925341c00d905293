/* What a choice of orders costs in bytes.
 *
 * Converters: one for each order that readers of a value ask for and its writer does not give.  Accumulators: as the options say.
 * FIFOs: where paths from one value meet again, the shorter one waits.  How long is told in parts of the value: a kernel whose outermost reduction runs inside P
 * trips of loops that use the operand has taken 1/P of it before it gives anything, a converter of P blocks as well; along a path the largest part
 * counts, since blocks follow each other through it.  An operand that is ahead of another of the same kernel is held for that part. */
#include "schedule/orders.h"
#include "schedule/sources.h"

#define FIFO_KERNELS 96      /* in larger graphs the words held at meetings are not part of the cost */
#define HELD_QUARTERS 3      /* what waits is told from above, and one buffer may serve several readers: it counts less than what is surely there */
#define CONVERTER_BYTES 256  /* what the two processes of a converter are worth: with few bytes between them, the fewer converters the better */

struct found {                /* what orders_fifos has found */
	int64_t bytes;
	bool all;                 /* else there are more */
};

static const struct orders_option *chosen(const struct orders_graph *graph, const int *choice, int kernel)
{
	return &graph->kernel[kernel].option[choice[kernel]];
}

static int wanted_row(const struct orders_graph *graph, const int *choice, struct orders_reader reader)
{
	return reader.kernel < 0 ? reader.operand : chosen(graph, choice, reader.kernel)->operand[reader.operand];
}

static const struct order *order_of_row(const struct orders_value *value, int row)
{
	int written = (int)value->written.order.count;
	return row < written ? &value->written.order.data[row] : &value->wanted.order.data[row - written];
}

static const struct orders_buffer *find_buffer(const struct orders_value *value, int from, int to)
{
	struct orders_buffer **row = &value->buffer[from];
	if (!*row)
		*row = ARENA_ARRAY(value->arena, struct orders_buffer, value->wanted.order.count);
	struct orders_buffer *found = &(*row)[to];
	found->needed = value->crossing ? (struct order_buffer){value->elements, 1} : order_buffer(order_of_row(value, from), &value->wanted.order.data[to], value->elements);
	found->held_back = found->needed.elements ? ORDERS_WHOLE / found->needed.blocks : 0;
	return found;
}

static inline const struct orders_buffer *buffer_between(const struct orders_value *value, int from, int to)
{
	const struct orders_buffer *row = value->buffer[from];
	return row && row[to].needed.blocks ? &row[to] : find_buffer(value, from, to);
}

int64_t orders_bytes(const struct orders_value *value, int written, int wanted)
{
	return buffer_between(value, written, wanted)->needed.elements * value->bytes;
}

/* Of the converter that reader i of a value needs, of what is written in this order; 0 where an earlier reader asks for the same order. */
static int64_t converter_from(const struct orders_graph *graph, const int *choice, const struct orders_value *value, int from, size_t i)
{
	int to = wanted_row(graph, choice, value->reader.data[i]);
	for (size_t e = 0; e < i; e++)
		if (wanted_row(graph, choice, value->reader.data[e]) == to)
			return 0;
	int64_t bytes = orders_bytes(value, from, to);
	return bytes ? (bytes + CONVERTER_BYTES) * value->copies : 0;
}

static int64_t converters_from(const struct orders_graph *graph, const int *choice, const struct orders_value *value, int from)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < value->reader.count; i++)
		bytes += converter_from(graph, choice, value, from, i);
	return bytes;
}

static int64_t elements_sent(const struct order *order)
{
	int64_t elements = 1;
	for (int l = 0; l < order->loops; l++)
		elements *= order->loop[l].trip;
	return elements;
}

static bool takes_all(const struct orders_value *value, int wanted)
{
	return elements_sent(&value->wanted.order.data[wanted]) >= value->elements;
}

static bool can_be_given_as(const struct orders_value *value, const struct order *order)
{
	return order_of_words(order, value->lanes, value->lane_stride) && (!value->stored || elements_sent(order) == value->elements);
}

/* How badly a row serves the readers: by the orders that they do not get, and then by the readers, each of which waits for all of the value.  `made`: one more wants the maker's own. */
static int unserved(const struct orders_graph *graph, const int *choice, const struct orders_value *value, int from, bool made)
{
	int orders = made, readers = made, most = (int)value->reader.count + 2;
	for (size_t i = 0; i < value->reader.count; i++) {
		orders += converter_from(graph, choice, value, from, i) > 0;
		readers += orders_bytes(value, from, wanted_row(graph, choice, value->reader.data[i])) > 0;
	}
	return orders * most + readers;
}

/* A kernel's result that it hands on to the next layer as well. */
static bool is_handed_on(const struct orders_graph *graph, const struct orders_value *value)
{
	const struct orders_kernel *maker = &graph->kernel[value->writer];
	return maker->carried >= 0 && value == &graph->value[maker->value];
}

/* What is handed on to the next layer has another order than its maker's only where nobody takes it from the maker itself. */
static bool may_turn(const struct orders_graph *graph, const struct orders_value *value)
{
	const struct orders_value *made = &graph->value[graph->kernel[value->writer].value];
	return value == made || (!made->reader.count && !made->stored);
}

/* A writer that holds its result gives it in the order that serves its readers best: its own, or what a reader wants, if that is an order of its words, where all readers want all of it.
 * resolve_given.c asks the same of types. */
static int given_row(const struct orders_graph *graph, const int *choice, const struct orders_value *value, int own)
{
	int best = own, least = unserved(graph, choice, value, own, false);
	bool worth = value->elements * value->bytes >= GIVEN_BYTES;
	for (size_t i = 0; i < value->reader.count; i++)
		worth = worth && takes_all(value, wanted_row(graph, choice, value->reader.data[i]));
	for (size_t i = 0; i < value->reader.count && least && worth; i++) {
		int row = (int)value->written.order.count + wanted_row(graph, choice, value->reader.data[i]);
		int others = unserved(graph, choice, value, row, is_handed_on(graph, value));
		if (others < least && can_be_given_as(value, order_of_row(value, row))) {
			least = others;
			best = row;
		}
	}
	return best;
}

int orders_written(const struct orders_graph *graph, const int *choice, const struct orders_value *value)
{
	if (value->writer < 0)
		return value->fixed;
	const struct orders_option *option = chosen(graph, choice, value->writer);
	return option->holds && !value->crossing && may_turn(graph, value) ? given_row(graph, choice, value, option->result) : option->result;
}

static int64_t converter_of(const struct orders_graph *graph, const int *choice, const struct orders_value *value, size_t i)
{
	return converter_from(graph, choice, value, orders_written(graph, choice, value), i);
}

int64_t orders_converters(const struct orders_graph *graph, const int *choice, const struct orders_value *value)
{
	return converters_from(graph, choice, value, orders_written(graph, choice, value));
}

/* How far an operand is behind the fork, when it is behind its converter; -1: it does not come from there.  row: only the readers of the fork's value that want this order look at it, behind their converter; -1: all. */
static inline int64_t behind_of(const struct orders_graph *graph, const struct orders_option *option, const struct orders_fork *fork, int source, int j, int row, const int64_t *lag)
{
	bool shares = source == fork->value && row >= 0;
	if (source < 0 || lag[source] < 0 || (shares && option->operand[j] != row))
		return -1;
	int64_t back = shares ? 0 : buffer_between(&graph->value[source], graph->written[source], option->operand[j])->held_back;
	return back > lag[source] ? back : lag[source];
}

/* What comes from the fork through its kernel i, and what that one's operands hold meanwhile. */
static void meet(const struct orders_graph *graph, const int *choice, const struct orders_fork *fork, struct orders_look *look, int i, int row)
{
	int k = fork->kernel[i];
	const struct orders_kernel *kernel = &graph->kernel[k];
	const struct orders_option *option = chosen(graph, choice, k);
	struct orders_held *held = look->held + i * graph->ports, *first = held;
	int64_t start = -1, ready = -1, *behind = graph->scratch + graph->kernels * graph->ports;
	for (int j = 0; j < kernel->operands; j++) {
		behind[j] = behind_of(graph, option, fork, kernel->source[j], j, row, look->lag);
		if (behind[j] < 0 || kernel->late[j])
			continue;
		start = behind[j] > start ? behind[j] : start;
		ready = option->lag[j] > ready ? option->lag[j] : ready;
	}
	ready = start > ready ? start : ready;
	for (int j = 0; j < kernel->operands; j++) {
		int64_t until = kernel->late[j] ? ready : start;
		if (behind[j] < 0 || behind[j] >= until)
			continue;
		const struct orders_value *value = &graph->value[kernel->source[j]];
		int64_t bytes = (int64_t)((double)value->elements * (double)value->bytes * ((double)until / ORDERS_WHOLE));
		*held++ = (struct orders_held){k * graph->ports + j, bytes};
	}
	look->holds[i] = (int)(held - first);
	for (int j = 0; j < kernel->operands; j++)
		ready = kernel->late[j] && behind[j] > ready ? behind[j] : ready;
	look->lag[kernel->value] = ready;
}

static void find_words(const struct kernel *kernel, const struct plan *plan, struct orders_value *value)
{
	int64_t stride = plan->lanes > 1 ? kernel->result.stride[plan->part[plan->parts - 1].source] : 0;
	value->lanes = stride ? plan->lanes : 1;
	value->lane_stride = stride;
}

static void make_buffers(struct orders_graph *graph, const struct plan *first)
{
	for (int v = 0; v < graph->values; v++) {
		struct orders_value *value = &graph->value[v];
		if (value->writer >= 0) {             /* what a layer hands to the next one has its maker's orders */
			value->written = graph->value[graph->kernel[value->writer].value].written;
			find_words(graph->kernel[value->writer].op->kernel, &first[value->writer], value);
		}
		value->arena = graph->arena;
		value->buffer = ARENA_ARRAY(graph->arena, struct orders_buffer *, value->written.order.count + value->wanted.order.count + 1);
	}
}

static bool forks(const struct orders_value *value)
{
	for (size_t i = 1; value->streams && i < value->reader.count; i++)
		if (value->reader.data[i].kernel != value->reader.data[0].kernel && value->reader.data[i].kernel >= 0 && value->reader.data[0].kernel >= 0)
			return true;
	return false;
}

static bool read_after(const struct orders_value *value, int kernel)
{
	for (size_t i = 0; i < value->reader.count; i++)
		if (value->reader.data[i].kernel > kernel)
			return true;
	return false;
}

/* Is the result of kernel k all that is left of what was reached? */
static bool meets_in(const struct orders_graph *graph, const bool *reached, int k)
{
	for (int v = 0; v < graph->values; v++)
		if (reached[v] && v != graph->kernel[k].value && read_after(&graph->value[v], k))
			return false;
	return forks(&graph->value[graph->kernel[k].value]);
}

static struct orders_fork find_paths(const struct orders_graph *graph, int value)
{
	struct orders_fork fork = {.value = value, .kernel = ARENA_ARRAY(graph->arena, int, graph->kernels + 1)};
	fork.look = ARENA_ARRAY(graph->arena, struct orders_look, graph->value[value].wanted.order.count + 1);
	bool *reached = ARENA_ARRAY(graph->arena, bool, graph->values + 1);
	reached[value] = true;
	for (int k = 0; k < graph->kernels; k++) {
		bool reads = false;
		for (int j = 0; j < graph->kernel[k].operands; j++)
			reads = reads || (graph->kernel[k].source[j] >= 0 && reached[graph->kernel[k].source[j]]);
		if (!reads)
			continue;
		fork.kernel[fork.kernels++] = k;
		reached[graph->kernel[k].value] = true;
		if (meets_in(graph, reached, k))
			break;
	}
	return fork;
}

static void find_forks(struct orders_graph *graph)
{
	graph->fork = ARENA_ARRAY(graph->arena, struct orders_fork, graph->values + 1);
	graph->written = ARENA_ARRAY(graph->arena, int, graph->values + 1);
	graph->known = ARENA_NEW(graph->arena, struct memo);
	*graph->known = memo_new(graph->arena, graph->kernels, sizeof(struct found));
	graph->scratch = ARENA_ARRAY(graph->arena, int64_t, (graph->kernels + 1) * graph->ports + 1);
	graph->moved = ARENA_ARRAY(graph->arena, bool, graph->values + 1);
	for (int v = 0; v < graph->values && graph->kernels <= FIFO_KERNELS; v++)
		if (forks(&graph->value[v]))
			graph->fork[graph->forks++] = find_paths(graph, v);
}

void orders_prepare(struct orders_graph *graph, const struct platform *platform, const struct plan *first)
{
	struct orders_splits **splits = orders_find_splits(graph, first);
	for (int k = 0; k < graph->kernels; k++)
		graph->ports = graph->kernel[k].operands > graph->ports ? graph->kernel[k].operands : graph->ports;
	for (int k = 0; k < graph->kernels; k++)
		orders_options(graph, k, platform, &first[k], splits[k]);
	make_buffers(graph, first);
	find_forks(graph);
}

static void begin_look(const struct orders_graph *graph, const struct orders_fork *fork, struct orders_look *look)
{
	look->asked = ARENA_ARRAY(graph->arena, int, 2 * fork->kernels + 1);
	look->lag = ARENA_ARRAY(graph->arena, int64_t, graph->values + 1);
	look->holds = ARENA_ARRAY(graph->arena, int, fork->kernels + 1);
	look->held = ARENA_ARRAY(graph->arena, struct orders_held, fork->kernels * graph->ports + 1);
	for (int i = 0; i <= 2 * fork->kernels; i++)
		look->asked[i] = -1;
	for (int v = 0; v < graph->values; v++)
		look->lag[v] = -1;
	look->lag[fork->value] = 0;
}

static bool take_asked(int *asked, int now)
{
	bool same = *asked == now;
	*asked = now;
	return same;
}

/* The first kernel of a fork that is asked for something else than it was. */
static int first_asked_anew(const struct orders_graph *graph, const int *choice, const struct orders_fork *fork, const int *asked)
{
	int i = 0;
	while (i < fork->kernels && asked[2 * i] == choice[fork->kernel[i]] && asked[2 * i + 1] == graph->written[graph->kernel[fork->kernel[i]].value])
		i++;
	return i;
}

static bool reads_moved(const struct orders_graph *graph, const struct orders_kernel *kernel)
{
	for (int j = 0; j < kernel->operands; j++)
		if (kernel->source[j] >= 0 && graph->moved[kernel->source[j]])
			return true;
	return false;
}

/* From the fork's value, or (row) from the converter that some of its readers share; -1: none. */
static const struct orders_look *look_from(const struct orders_graph *graph, const int *choice, const struct orders_fork *fork, int row)
{
	struct orders_look *look = &fork->look[row + 1];
	bool *moved = graph->moved;
	if (!look->asked)
		begin_look(graph, fork, look);
	moved[fork->value] = !take_asked(&look->asked[2 * fork->kernels], graph->written[fork->value]);
	int first = moved[fork->value] ? 0 : first_asked_anew(graph, choice, fork, look->asked);
	for (int i = first; i < fork->kernels; i++) {
		const struct orders_kernel *kernel = &graph->kernel[fork->kernel[i]];
		int64_t before = look->lag[kernel->value];
		bool same = take_asked(&look->asked[2 * i], choice[fork->kernel[i]]);
		if (!same || reads_moved(graph, kernel))
			meet(graph, choice, fork, look, i, row);
		moved[kernel->value] = !take_asked(&look->asked[2 * i + 1], graph->written[kernel->value]) || look->lag[kernel->value] != before;
	}
	moved[fork->value] = false;
	for (int i = first; i < fork->kernels; i++)
		moved[graph->kernel[fork->kernel[i]].value] = false;
	return look;
}

/* The bytes by which what is held is more than at the forks before. */
static int64_t add_held(const struct orders_graph *graph, const struct orders_fork *fork, const struct orders_look *look, int64_t *held)
{
	int64_t more = 0;
	for (int i = 0; i < fork->kernels; i++)
		for (int n = 0; n < look->holds[i]; n++) {
			const struct orders_held *found = &look->held[i * graph->ports + n];
			more += found->bytes > held[found->at] ? found->bytes - held[found->at] : 0;
			held[found->at] = found->bytes > held[found->at] ? found->bytes : held[found->at];
		}
	return more;
}

/* Is reader i the second one behind a converter? */
static bool shares_converter(const struct orders_graph *graph, const int *choice, const struct orders_value *value, size_t i)
{
	int row = wanted_row(graph, choice, value->reader.data[i]), earlier = 0;
	for (size_t e = 0; e < i && value->reader.data[i].kernel >= 0; e++)
		earlier += value->reader.data[e].kernel >= 0 && wanted_row(graph, choice, value->reader.data[e]) == row;
	return earlier == 1 && orders_bytes(value, graph->written[value - graph->value], row);
}

static int64_t count_fork(const struct orders_graph *graph, const int *choice, const struct orders_fork *fork, int64_t *held)
{
	const struct orders_value *value = &graph->value[fork->value];
	int64_t bytes = add_held(graph, fork, look_from(graph, choice, fork, -1), held);
	for (size_t i = 0; i < value->reader.count; i++)
		if (shares_converter(graph, choice, value, i))
			bytes += add_held(graph, fork, look_from(graph, choice, fork, wanted_row(graph, choice, value->reader.data[i])), held);
	return bytes;
}

/* Stops at `enough`; *all: it did not. */
static int64_t count_fifos(const struct orders_graph *graph, const int *choice, int64_t enough, bool *all)
{
	int64_t bytes = 0, *held = graph->scratch;
	int f = 0;
	for (int i = 0; i < graph->kernels * graph->ports; i++)
		held[i] = 0;
	for (int v = 0; v < graph->values; v++)
		graph->written[v] = orders_written(graph, choice, &graph->value[v]);
	for (; f < graph->forks && bytes / 4 * HELD_QUARTERS < enough; f++)
		bytes += count_fork(graph, choice, &graph->fork[f], held);
	*all = f == graph->forks;
	return bytes / 4 * HELD_QUARTERS;
}

int64_t orders_fifos(const struct orders_graph *graph, const int *choice, int64_t enough)
{
	struct found *found = graph->forks ? memo_at(graph->known, choice) : NULL;
	if (found && !found->all && found->bytes < enough)
		found->bytes = count_fifos(graph, choice, enough, &found->all);
	return found ? found->bytes : 0;
}

/* Only what holds the whole tensor can go through memory (fuse_streams.c). */
static bool can_be_cut(const struct orders_graph *graph, const int *choice, const struct orders_value *value, size_t i)
{
	return buffer_between(value, orders_written(graph, choice, value), wanted_row(graph, choice, value->reader.data[i]))->needed.blocks == 1;
}

/* The largest converters that can be cut. */
static int64_t cut_bytes(const struct orders_graph *graph, const int *choice)
{
	int64_t sum = 0, largest[ORDERS_CUTS + 1];               /* largest first */
	int most = graph->cuts < ORDERS_CUTS ? graph->cuts : ORDERS_CUTS, count = 0;
	for (int v = 0; most && v < graph->values; v++)
		for (size_t i = 0; i < graph->value[v].reader.count; i++) {
			int64_t bytes = can_be_cut(graph, choice, &graph->value[v], i) ? converter_of(graph, choice, &graph->value[v], i) : 0;
			int at = count < most ? count : most;
			for (; at > 0 && largest[at - 1] < bytes; at--)
				largest[at] = largest[at - 1];
			largest[at] = bytes;
			count += count < most && bytes;
		}
	for (int i = 0; i < count; i++)
		sum += largest[i];
	return sum;
}

struct orders_cost orders_cost(const struct orders_graph *graph, const int *choice)
{
	struct orders_cost cost = {.fifos = orders_fifos(graph, choice, INT64_MAX)};
	for (int v = 0; v < graph->values; v++)
		cost.converters += orders_converters(graph, choice, &graph->value[v]);
	for (int k = 0; k < graph->kernels; k++)
		cost.accumulators += chosen(graph, choice, k)->accumulators;
	cost.converters -= cut_bytes(graph, choice);
	cost.all = cost.converters + cost.accumulators + cost.fifos;
	return cost;
}
