/* The cost of a choice of loop orders, in bytes on chip.
 *
 * Converters: one for each order that readers of a value want and its producer does not give.
 * Accumulators: as the options say. FIFOs: where paths from one value meet again, the shorter one
 * waits for the longer one. A path's lag is counted in parts of the value: a kernel whose outermost
 * reduction is inside P iterations of loops that use the operand has read 1/P of it before its
 * first result, and a converter of P blocks delays it as much; along a path the largest part
 * counts, since blocks are pipelined. An operand that arrives before another one of the same kernel
 * is buffered for that part. */
#include "schedule/loop_orders.h"
#include "schedule/tensor_sources.h"

/* in larger graphs the words buffered where paths meet are not part of the cost */
#define FIFO_KERNELS 96
/* FIFO bytes count 3/4: the lag is an upper bound, and one buffer may serve several readers */
#define BUFFERED_QUARTERS 3
/* what the two processes of a converter cost in bytes, so that fewer converters win */
#define CONVERTER_BYTES 256

/* Result of loop_order_fifos. */
struct found {
	int64_t bytes;
	bool all; /* false: there are more bytes than these */
};

static const struct loop_order_option *chosen(
        const struct loop_order_graph *graph, const int *choice, int kernel)
{
	return &graph->kernel[kernel].option[choice[kernel]];
}

static int wanted_row(
        const struct loop_order_graph *graph, const int *choice, struct loop_order_reader reader)
{
	return reader.kernel < 0 ? reader.operand
	                         : chosen(graph, choice, reader.kernel)->operand[reader.operand];
}

static const struct order *order_of_row(const struct loop_order_value *value, int row)
{
	int written = (int)value->written.order.count;
	return row < written ? &value->written.order.data[row]
	                     : &value->wanted.order.data[row - written];
}

static const struct loop_order_buffer *find_buffer(
        const struct loop_order_value *value, int from, int to)
{
	struct loop_order_buffer **row = &value->buffer[from];
	if (!*row)
		*row = ARENA_ARRAY(
		        value->arena, struct loop_order_buffer, value->wanted.order.count);
	struct loop_order_buffer *found = &(*row)[to];
	found->needed = value->into_layers
	        ? (struct order_buffer){ value->elements, 1 }
	        : order_buffer(order_of_row(value, from), &value->wanted.order.data[to],
	                  value->elements);
	found->delayed_part = found->needed.elements ? LOOP_ORDER_WHOLE / found->needed.blocks : 0;
	return found;
}

static inline const struct loop_order_buffer *buffer_between(
        const struct loop_order_value *value, int from, int to)
{
	const struct loop_order_buffer *row = value->buffer[from];
	return row && row[to].needed.blocks ? &row[to] : find_buffer(value, from, to);
}

int64_t loop_order_bytes(const struct loop_order_value *value, int written, int wanted)
{
	return buffer_between(value, written, wanted)->needed.elements * value->bytes;
}

/* Bytes of the converter that reader i of a value needs if it is written in order `from`; 0 where
 * an earlier reader wants the same order. */
static int64_t converter_from(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value, int from, size_t i)
{
	int to = wanted_row(graph, choice, value->reader.data[i]);
	for (size_t e = 0; e < i; e++)
		if (wanted_row(graph, choice, value->reader.data[e]) == to)
			return 0;
	int64_t bytes = loop_order_bytes(value, from, to);
	return bytes ? (bytes + CONVERTER_BYTES) * value->copies : 0;
}

static int64_t converters_from(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value, int from)
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

static bool takes_all(const struct loop_order_value *value, int wanted)
{
	return elements_sent(&value->wanted.order.data[wanted]) >= value->elements;
}

static bool can_drain_as(const struct loop_order_value *value, const struct order *order)
{
	return order_of_words(order, value->lanes, value->lane_stride) &&
	        (!value->stored || elements_sent(order) == value->elements);
}

/* How badly an order suits the readers: first by the orders that need a converter, then by the
 * readers that wait for the whole value. made: one more reader wants the producer's own order. */
static int count_unsatisfied(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value, int from, bool made)
{
	int orders = made;
	int readers = made;
	int most = (int)value->reader.count + 2;
	for (size_t i = 0; i < value->reader.count; i++) {
		orders += converter_from(graph, choice, value, from, i) > 0;
		readers += loop_order_bytes(value, from,
		                   wanted_row(graph, choice, value->reader.data[i])) > 0;
	}
	return orders * most + readers;
}

/* Is it a kernel's result that the layer also hands to the next one? */
static bool is_carried(const struct loop_order_graph *graph, const struct loop_order_value *value)
{
	const struct loop_order_kernel *maker = &graph->kernel[value->writer];
	return maker->carried >= 0 && value == &graph->value[maker->value];
}

/* A value that is handed to the next layer can have another order than its producer's only if
 * nobody reads it from the producer directly. */
static bool may_reorder(const struct loop_order_graph *graph, const struct loop_order_value *value)
{
	const struct loop_order_value *made = &graph->value[graph->kernel[value->writer].value];
	return value == made || (!made->reader.count && !made->stored);
}

/* The order in which a producer that holds all sums drains them: the one that suits its readers
 * best among its own and those that readers want, if all readers want all of it.
 * choose_drain_order.c decides the same from types. */
static int drain_row(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value, int own)
{
	int best = own;
	int least = count_unsatisfied(graph, choice, value, own, false);
	bool worth = value->elements * value->bytes >= DRAIN_ORDER_MIN_BYTES;
	for (size_t i = 0; i < value->reader.count; i++)
		worth = worth && takes_all(value, wanted_row(graph, choice, value->reader.data[i]));
	for (size_t i = 0; i < value->reader.count && least && worth; i++) {
		int row = (int)value->written.order.count +
		        wanted_row(graph, choice, value->reader.data[i]);
		int others = count_unsatisfied(graph, choice, value, row, is_carried(graph, value));
		if (others < least && can_drain_as(value, order_of_row(value, row))) {
			least = others;
			best = row;
		}
	}
	return best;
}

int loop_order_written(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value)
{
	if (value->writer < 0)
		return value->fixed;
	const struct loop_order_option *option = chosen(graph, choice, value->writer);
	return option->holds_sums && !value->into_layers && may_reorder(graph, value)
	        ? drain_row(graph, choice, value, option->result)
	        : option->result;
}

static int64_t converter_of(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value, size_t i)
{
	return converter_from(graph, choice, value, loop_order_written(graph, choice, value), i);
}

int64_t loop_order_converters(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value)
{
	return converters_from(graph, choice, value, loop_order_written(graph, choice, value));
}

/* Walks the paths from a fork. */
struct fork_walk {
	const struct loop_order_graph *graph;
	const int *choice;
	const struct loop_order_fork *fork;
	struct loop_order_fork_cache *cache;
	/* only the readers that share the converter to this order count, and lags are measured
	 * from that converter; -1: all readers, from the fork's value */
	int row;
};

/* Lag of an operand behind the fork, after its converter; -1: it does not depend on the fork. */
static inline int64_t operand_lag(
        const struct fork_walk *w, const struct loop_order_option *option, int source, int j)
{
	const int64_t *lag = w->cache->lag;
	bool shares = source == w->fork->value && w->row >= 0;
	if (source < 0 || lag[source] < 0 || (shares && option->operand[j] != w->row))
		return -1;
	if (shares)
		return lag[source];
	const struct loop_order_buffer *buffer = buffer_between(
	        &w->graph->value[source], w->graph->written[source], option->operand[j]);
	return buffer->delayed_part > lag[source] ? buffer->delayed_part : lag[source];
}

/* Computes the lag of kernel i of the fork, and the bytes that its operands buffer meanwhile. */
static void meet_paths(const struct fork_walk *w, int i)
{
	const struct loop_order_graph *graph = w->graph;
	struct loop_order_fork_cache *cache = w->cache;
	int k = w->fork->kernel[i];
	const struct loop_order_kernel *kernel = &graph->kernel[k];
	const struct loop_order_option *option = chosen(graph, w->choice, k);
	struct loop_order_buffered *buffered = cache->buffered + i * graph->ports;
	struct loop_order_buffered *first = buffered;
	int64_t start = -1;
	int64_t ready = -1;
	int64_t *lag = graph->scratch + graph->kernels * graph->ports;
	for (int j = 0; j < kernel->operands; j++) {
		lag[j] = operand_lag(w, option, kernel->source[j], j);
		if (lag[j] < 0 || kernel->post_operand[j])
			continue;
		start = lag[j] > start ? lag[j] : start;
		ready = option->lag[j] > ready ? option->lag[j] : ready;
	}
	ready = start > ready ? start : ready;
	for (int j = 0; j < kernel->operands; j++) {
		int64_t until = kernel->post_operand[j] ? ready : start;
		if (lag[j] < 0 || lag[j] >= until)
			continue;
		const struct loop_order_value *value = &graph->value[kernel->source[j]];
		int64_t bytes = (int64_t)((double)value->elements * (double)value->bytes *
		        ((double)until / LOOP_ORDER_WHOLE));
		*buffered++ = (struct loop_order_buffered){ k * graph->ports + j, bytes };
	}
	cache->holds_sums[i] = (int)(buffered - first);
	for (int j = 0; j < kernel->operands; j++)
		ready = kernel->post_operand[j] && lag[j] > ready ? lag[j] : ready;
	cache->lag[kernel->value] = ready;
}

static void set_word_lanes(const struct kernel *kernel, const struct schedule *schedule,
        struct loop_order_value *value)
{
	int64_t stride = schedule->lanes > 1
	        ? kernel->result.stride[schedule->part[schedule->parts - 1].source]
	        : 0;
	value->lanes = stride ? schedule->lanes : 1;
	value->lane_stride = stride;
}

static void make_buffers(struct loop_order_graph *graph, const struct schedule *first)
{
	for (int v = 0; v < graph->values; v++) {
		struct loop_order_value *value = &graph->value[v];
		/* what a layer hands to the next one has the orders of its producer */
		if (value->writer >= 0) {
			value->written = graph->value[graph->kernel[value->writer].value].written;
			set_word_lanes(graph->kernel[value->writer].op->kernel,
			        &first[value->writer], value);
		}
		value->arena = graph->arena;
		value->buffer = ARENA_ARRAY(graph->arena, struct loop_order_buffer *,
		        value->written.order.count + value->wanted.order.count + 1);
	}
}

static bool forks(const struct loop_order_value *value)
{
	for (size_t i = 1; value->streams && i < value->reader.count; i++)
		if (value->reader.data[i].kernel != value->reader.data[0].kernel &&
		        value->reader.data[i].kernel >= 0 && value->reader.data[0].kernel >= 0)
			return true;
	return false;
}

static bool read_after(const struct loop_order_value *value, int kernel)
{
	for (size_t i = 0; i < value->reader.count; i++)
		if (value->reader.data[i].kernel > kernel)
			return true;
	return false;
}

/* Is the result of kernel k the only value left on the paths? */
static bool meets_in(const struct loop_order_graph *graph, const bool *reached, int k)
{
	for (int v = 0; v < graph->values; v++)
		if (reached[v] && v != graph->kernel[k].value && read_after(&graph->value[v], k))
			return false;
	return forks(&graph->value[graph->kernel[k].value]);
}

static struct loop_order_fork find_paths(const struct loop_order_graph *graph, int value)
{
	struct loop_order_fork fork = { .value = value,
		.kernel = ARENA_ARRAY(graph->arena, int, graph->kernels + 1) };
	fork.cache = ARENA_ARRAY(graph->arena, struct loop_order_fork_cache,
	        graph->value[value].wanted.order.count + 1);
	bool *reached = ARENA_ARRAY(graph->arena, bool, graph->values + 1);
	reached[value] = true;
	for (int k = 0; k < graph->kernels; k++) {
		bool reads = false;
		for (int j = 0; j < graph->kernel[k].operands; j++)
			reads = reads ||
			        (graph->kernel[k].source[j] >= 0 &&
			                reached[graph->kernel[k].source[j]]);
		if (!reads)
			continue;
		fork.kernel[fork.kernels++] = k;
		reached[graph->kernel[k].value] = true;
		if (meets_in(graph, reached, k))
			break;
	}
	return fork;
}

static void find_forks(struct loop_order_graph *graph)
{
	graph->fork = ARENA_ARRAY(graph->arena, struct loop_order_fork, graph->values + 1);
	graph->written = ARENA_ARRAY(graph->arena, int, graph->values + 1);
	graph->known = ARENA_NEW(graph->arena, struct memo);
	*graph->known = memo_new(graph->arena, graph->kernels, sizeof(struct found));
	graph->scratch =
	        ARENA_ARRAY(graph->arena, int64_t, (graph->kernels + 1) * graph->ports + 1);
	graph->moved = ARENA_ARRAY(graph->arena, bool, graph->values + 1);
	for (int v = 0; v < graph->values && graph->kernels <= FIFO_KERNELS; v++)
		if (forks(&graph->value[v]))
			graph->fork[graph->forks++] = find_paths(graph, v);
}

void loop_order_prepare(struct loop_order_graph *graph, const struct platform *platform,
        const struct schedule *first)
{
	struct loop_order_splits **splits = loop_order_find_splits(graph, first);
	for (int k = 0; k < graph->kernels; k++)
		graph->ports = graph->kernel[k].operands > graph->ports ? graph->kernel[k].operands
		                                                        : graph->ports;
	for (int k = 0; k < graph->kernels; k++)
		loop_order_options(graph, k, platform, &first[k], splits[k]);
	make_buffers(graph, first);
	find_forks(graph);
}

static void begin_fork_cache(const struct loop_order_graph *graph,
        const struct loop_order_fork *fork, struct loop_order_fork_cache *cache)
{
	cache->asked = ARENA_ARRAY(graph->arena, int, 2 * fork->kernels + 1);
	cache->lag = ARENA_ARRAY(graph->arena, int64_t, graph->values + 1);
	cache->holds_sums = ARENA_ARRAY(graph->arena, int, fork->kernels + 1);
	cache->buffered = ARENA_ARRAY(
	        graph->arena, struct loop_order_buffered, fork->kernels * graph->ports + 1);
	for (int i = 0; i <= 2 * fork->kernels; i++)
		cache->asked[i] = -1;
	for (int v = 0; v < graph->values; v++)
		cache->lag[v] = -1;
	cache->lag[fork->value] = 0;
}

static bool take_asked(int *asked, int now)
{
	bool same = *asked == now;
	*asked = now;
	return same;
}

/* The first kernel of a fork whose option or order has changed. */
static int first_changed_kernel(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_fork *fork, const int *asked)
{
	int i = 0;
	while (i < fork->kernels && asked[2 * i] == choice[fork->kernel[i]] &&
	        asked[2 * i + 1] == graph->written[graph->kernel[fork->kernel[i]].value])
		i++;
	return i;
}

static bool reads_moved(
        const struct loop_order_graph *graph, const struct loop_order_kernel *kernel)
{
	for (int j = 0; j < kernel->operands; j++)
		if (kernel->source[j] >= 0 && graph->moved[kernel->source[j]])
			return true;
	return false;
}

/* Lags of all values on the paths; row: as in struct fork_walk. */
static const struct loop_order_fork_cache *fork_lags(const struct loop_order_graph *graph,
        const int *choice, const struct loop_order_fork *fork, int row)
{
	struct loop_order_fork_cache *cache = &fork->cache[row + 1];
	const struct fork_walk walk = { graph, choice, fork, cache, row };
	bool *moved = graph->moved;
	if (!cache->asked)
		begin_fork_cache(graph, fork, cache);
	moved[fork->value] =
	        !take_asked(&cache->asked[2 * fork->kernels], graph->written[fork->value]);
	int first =
	        moved[fork->value] ? 0 : first_changed_kernel(graph, choice, fork, cache->asked);
	for (int i = first; i < fork->kernels; i++) {
		const struct loop_order_kernel *kernel = &graph->kernel[fork->kernel[i]];
		int64_t before = cache->lag[kernel->value];
		bool same = take_asked(&cache->asked[2 * i], choice[fork->kernel[i]]);
		if (!same || reads_moved(graph, kernel))
			meet_paths(&walk, i);
		moved[kernel->value] =
		        !take_asked(&cache->asked[2 * i + 1], graph->written[kernel->value]) ||
		        cache->lag[kernel->value] != before;
	}
	moved[fork->value] = false;
	for (int i = first; i < fork->kernels; i++)
		moved[graph->kernel[fork->kernel[i]].value] = false;
	return cache;
}

/* Records the largest buffer of each operand over all forks; returns the bytes that this fork
 * adds. */
static int64_t add_buffered(const struct loop_order_graph *graph,
        const struct loop_order_fork *fork, const struct loop_order_fork_cache *cache,
        int64_t *buffered)
{
	int64_t more = 0;
	for (int i = 0; i < fork->kernels; i++)
		for (int n = 0; n < cache->holds_sums[i]; n++) {
			const struct loop_order_buffered *found =
			        &cache->buffered[i * graph->ports + n];
			more += found->bytes > buffered[found->at]
			        ? found->bytes - buffered[found->at]
			        : 0;
			buffered[found->at] = found->bytes > buffered[found->at]
			        ? found->bytes
			        : buffered[found->at];
		}
	return more;
}

/* Is reader i the second one of a converter? Then the converter is a fork, too. */
static bool shares_converter(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value, size_t i)
{
	int row = wanted_row(graph, choice, value->reader.data[i]);
	int earlier = 0;
	for (size_t e = 0; e < i && value->reader.data[i].kernel >= 0; e++)
		earlier += value->reader.data[e].kernel >= 0 &&
		        wanted_row(graph, choice, value->reader.data[e]) == row;
	return earlier == 1 && loop_order_bytes(value, graph->written[value - graph->value], row);
}

static int64_t count_fork(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_fork *fork, int64_t *buffered)
{
	const struct loop_order_value *value = &graph->value[fork->value];
	int64_t bytes = add_buffered(graph, fork, fork_lags(graph, choice, fork, -1), buffered);
	for (size_t i = 0; i < value->reader.count; i++)
		if (shares_converter(graph, choice, value, i))
			bytes += add_buffered(graph, fork,
			        fork_lags(graph, choice, fork,
			                wanted_row(graph, choice, value->reader.data[i])),
			        buffered);
	return bytes;
}

/* Stops when the bytes reach `enough`; *all: it did not stop. */
static int64_t count_fifos(
        const struct loop_order_graph *graph, const int *choice, int64_t enough, bool *all)
{
	int64_t bytes = 0;
	int64_t *buffered = graph->scratch;
	int f = 0;
	for (int i = 0; i < graph->kernels * graph->ports; i++)
		buffered[i] = 0;
	for (int v = 0; v < graph->values; v++)
		graph->written[v] = loop_order_written(graph, choice, &graph->value[v]);
	for (; f < graph->forks && bytes / 4 * BUFFERED_QUARTERS < enough; f++)
		bytes += count_fork(graph, choice, &graph->fork[f], buffered);
	*all = f == graph->forks;
	return bytes / 4 * BUFFERED_QUARTERS;
}

int64_t loop_order_fifos(const struct loop_order_graph *graph, const int *choice, int64_t enough)
{
	struct found *found = graph->forks ? memo_at(graph->known, choice) : NULL;
	if (found && !found->all && found->bytes < enough)
		found->bytes = count_fifos(graph, choice, enough, &found->all);
	return found ? found->bytes : 0;
}

/* Only a converter that holds the whole tensor can be spilled to memory (spill_to_budget.c). */
static bool can_be_spilled(const struct loop_order_graph *graph, const int *choice,
        const struct loop_order_value *value, size_t i)
{
	return buffer_between(value, loop_order_written(graph, choice, value),
	               wanted_row(graph, choice, value->reader.data[i]))
	               ->needed.blocks == 1;
}

/* Bytes of the largest converters that can be spilled. */
static int64_t spilled_bytes(const struct loop_order_graph *graph, const int *choice)
{
	int64_t sum = 0;
	int64_t largest[LOOP_ORDER_SPILLS + 1]; /* in decreasing order */
	int most = graph->spills < LOOP_ORDER_SPILLS ? graph->spills : LOOP_ORDER_SPILLS;
	int count = 0;
	for (int v = 0; most && v < graph->values; v++)
		for (size_t i = 0; i < graph->value[v].reader.count; i++) {
			int64_t bytes = can_be_spilled(graph, choice, &graph->value[v], i)
			        ? converter_of(graph, choice, &graph->value[v], i)
			        : 0;
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

struct loop_order_cost loop_order_cost(const struct loop_order_graph *graph, const int *choice)
{
	struct loop_order_cost cost = { .fifos = loop_order_fifos(graph, choice, INT64_MAX) };
	for (int v = 0; v < graph->values; v++)
		cost.converters += loop_order_converters(graph, choice, &graph->value[v]);
	for (int k = 0; k < graph->kernels; k++)
		cost.accumulators += chosen(graph, choice, k)->accumulators;
	cost.converters -= spilled_bytes(graph, choice);
	cost.all = cost.converters + cost.accumulators + cost.fifos;
	return cost;
}
