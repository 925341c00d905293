/* Finds FIFOs that need not hold a whole layer, whatever the latencies, by a proof of freedom from
 * deadlock.
 *
 * Wait-for graph: an arc from each process (each node of it, see below) to those that it may wait
 * for within one layer. A reader waits for the writer of an empty FIFO; the writer of a short FIFO
 * (one that holds less than a layer) also waits for its reader. A FIFO that holds a whole layer
 * makes its writer wait only for what the reader does in an earlier layer, and so does layer
 * feedback. Along a cycle of waits the layer never grows; so a deadlock is a cycle of arcs within
 * one layer, other than the pair of one FIFO, which is never empty and full at once. Therefore a
 * FIFO may be short if no other path leads from its reader back to its writer. The largest come
 * first, because each choice may exclude others. */
#include "fifo/fifo.h"
#include <stdlib.h>

/* The channel of the same number. */
struct channel_ends {
	int writer, reader; /* nodes */
	int64_t bytes;
	bool both; /* the writer waits for the reader too */
};

/* A process runs its loop nests one after the other, in every layer: each nest is a node that
 * waits for the one before it. A process is a single node if a channel is used in two of its
 * nests, or outside of them. */
struct wait_node {
	bool follows_previous; /* it waits for the node before it in this table */
	VEC(int) edge;         /* channels that begin or end in it */
};

struct wait_graph {
	struct fifo_network *network;
	int nodes;
	struct wait_node *node;
	struct channel_ends *edge; /* [channels] */
	int *seen;                 /* [nodes] scratch of the search */
};

static const struct block *body_of(const struct wait_graph *p, const struct op *call)
{
	return module_find(p->network->module, attr_text_or(call, KEY_CALLEE, ""))->region[0];
}

static const struct op *layers_of(const struct block *body)
{
	const struct op *op = body->first;
	while (op && (op->code != OP_FOR || !attr_get(op, KEY_STREAM_LAYER)))
		op = op->next;
	return op;
}

/* Number of the only loop of the block that uses the channel, or -1. */
static int loop_of(const struct block *block, const struct value *argument, int *loops)
{
	int number = -1;
	*loops = 0;
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_ACQUIRE && op->operand[0] == argument)
			return -1;
		if (op->code != OP_FOR)
			continue;
		if (channel_direction(op->region[0], argument) >= 0 && number >= 0)
			return -1;
		number = channel_direction(op->region[0], argument) >= 0 ? *loops : number;
		++*loops;
	}
	return number;
}

/* Node that uses the channel: the number of a loop, inside the layer loop if there is one. What
 * precedes the layer loop counts as its first node, what follows it as its last. -1: the process
 * is a single node. */
static int node_of(const struct block *body, const struct value *argument)
{
	const struct op *layers = layers_of(body);
	const struct op *op = body->first;
	int outside;
	int loops;
	int outer = loop_of(body, argument, &outside);
	int node = loop_of(layers ? layers->region[0] : body, argument, &loops);
	if (!layers || outer < 0)
		return layers ? -1 : node;
	if (channel_direction(layers->region[0], argument) >= 0)
		return node;
	while (op != layers &&
	        (op->code != OP_FOR || channel_direction(op->region[0], argument) < 0))
		op = op->next;
	if (op == layers)
		return loops - 1;
	return loops ? 0 : -1;
}

static void add_edge(struct wait_graph *p, const struct value *channel, const struct block *body,
        const struct value *argument, int node)
{
	*(channel_direction(body, argument) ? &p->edge[channel->id].writer
	                                    : &p->edge[channel->id].reader) = node;
	VEC_PUSH(p->network->arena, &p->node[node].edge, channel->id);
}

static void add_process(struct wait_graph *p, const struct op *call)
{
	const struct block *body = body_of(p, call);
	int first = p->nodes;
	int last = 0;
	bool nodes = true;
	for (int a = 0; a < call->operands; a++) {
		int node = call->operand[a]->def ? node_of(body, body->argument[a]) : 0;
		nodes = nodes && node >= 0;
		last = node > last ? node : last;
	}
	p->nodes += nodes ? last + 1 : 1;
	for (int i = first; i < p->nodes; i++)
		p->node[i].follows_previous = i > first;
	for (int a = 0; a < call->operands; a++)
		if (call->operand[a]->def)
			add_edge(p, call->operand[a], body, body->argument[a],
			        first + (nodes ? node_of(body, body->argument[a]) : 0));
}

static int loops_of(const struct block *block)
{
	int loops = 0;
	for (const struct op *op = block->first; op; op = op->next)
		loops += op->code == OP_FOR ? 1 + loops_of(op->region[0]) : 0;
	return loops;
}

static void collect_nodes(struct wait_graph *p)
{
	const struct fifo_network *n = p->network;
	int nodes = 0;
	for (int i = 0; i < n->processes; i++)
		nodes += 1 + loops_of(body_of(p, n->call[i]));
	p->node = ARENA_ARRAY(n->arena, struct wait_node, nodes + 1);
	p->edge = ARENA_ARRAY(n->arena, struct channel_ends, n->count + 1);
	for (int i = 0; i < n->processes; i++)
		add_process(p, n->call[i]);
	p->seen = ARENA_ARRAY(n->arena, int, p->nodes + 1);
	for (int e = 0; e < n->count; e++) {
		p->edge[e].bytes = n->fifo[e].word_bytes * n->fifo[e].whole;
		/* ping-pong: several blocks per layer */
		p->edge[e].both = !n->fifo[e].sized && n->fifo[e].whole > 1;
	}
}

/* Is there a path of waits from one node to another without the channel `except`? */
static bool waits(struct wait_graph *p, int from, int to, int except, int mark)
{
	if (from == to)
		return true;
	if (p->seen[from] == mark)
		return false;
	p->seen[from] = mark;
	if (p->node[from].follows_previous && waits(p, from - 1, to, except, mark))
		return true;
	for (size_t i = 0; i < p->node[from].edge.count; i++) {
		int number = p->node[from].edge.data[i];
		const struct channel_ends *edge = &p->edge[number];
		if (number == except || p->network->fifo[number].feedback)
			continue;
		if (edge->reader == from && waits(p, edge->writer, to, except, mark))
			return true;
		if (edge->both && edge->writer == from && waits(p, edge->reader, to, except, mark))
			return true;
	}
	return false;
}

static int larger_first(const void *left, const void *right)
{
	const struct channel_ends *l = *(const struct channel_ends *const *)left;
	const struct channel_ends *r = *(const struct channel_ends *const *)right;
	if (l->bytes != r->bytes)
		return l->bytes < r->bytes ? 1 : -1;
	return l < r ? -1 : 1;
}

void fifo_prove_safe(struct fifo_network *n)
{
	struct wait_graph p = { .network = n };
	collect_nodes(&p);
	const struct channel_ends **order =
	        ARENA_ARRAY(n->arena, const struct channel_ends *, n->count + 1);
	for (int e = 0; e < n->count; e++)
		order[e] = &p.edge[e];
	qsort(order, (size_t)n->count, sizeof *order, larger_first);
	for (int i = 0; i < n->count; i++) {
		int number = (int)(order[i] - p.edge);
		struct channel_ends *edge = &p.edge[number];
		struct fifo *fifo = &n->fifo[number];
		if (!fifo->sized || fifo->whole <= FIFO_SHORT || fifo->feedback ||
		        waits(&p, edge->reader, edge->writer, number, i + 1))
			continue;
		edge->both = true;
		fifo->safe = FIFO_SHORT;
	}
}
