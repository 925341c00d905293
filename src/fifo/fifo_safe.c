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
#include "ir/channel_ends.h"
#include <stdlib.h>

/* The channel of the same number. */
struct waiting {
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
	struct waiting *edge;     /* [channels] */
	int *seen;                /* [nodes] scratch of the search */
	const struct op *process; /* that was looked up last */
};

static const struct block *body_of(struct wait_graph *p, const struct op *call)
{
	p->process = module_find_after(
	        p->network->module, p->process, attr_text_or(call, KEY_CALLEE, ""));
	return p->process->region[0];
}

static const struct op *layers_of(const struct block *body)
{
	const struct op *op = body->first;
	while (op && (op->code != OP_FOR || !attr_get(op, KEY_STREAM_LAYER)))
		op = op->next;
	return op;
}

/* How a process uses the channel that is one of its arguments. */
struct argument_use {
	int outer, inner; /* the last loop of the process, of the layer loop, that uses it; or -1 */
	bool scattered;   /* several loops of the process use it, or something outside of them, */
	bool in_layer_scattered; /* or of the layer loop */
	bool in_layer, writes;
};

struct use_search {
	struct argument_use *use; /* [arguments of the process] */
	bool in_layer;
	int loop; /* that is walked; -1: none */
};

static void note_use(struct op *op, void *context)
{
	const struct use_search *s = context;
	bool writes;
	const struct value *channel = channel_used(op, &writes);
	if (!channel)
		return;
	struct argument_use *use = &s->use[channel->index];
	int *loop = s->in_layer ? &use->inner : &use->outer;
	bool again = *loop >= 0 && s->loop >= 0 && *loop != s->loop;
	bool outside = s->loop < 0 && op->code == OP_ACQUIRE;
	*(s->in_layer ? &use->in_layer_scattered : &use->scattered) |= again || outside;
	*loop = s->loop >= 0 ? s->loop : *loop;
	use->in_layer |= s->in_layer;
	use->writes |= writes;
}

/* Walks the operations of the block, loop by loop; returns the number of its loops. */
static int note_uses(const struct block *block, struct use_search *s)
{
	int loops = 0;
	for (struct op *op = block->first; op; op = op->next) {
		s->loop = op->code == OP_FOR ? loops++ : -1;
		note_use(op, s);
		if (op->region[0])
			ir_walk(op->region[0], note_use, s);
	}
	return loops;
}

/* Loops of a process: of the layer loop, if there is one. */
struct process_loops {
	const struct op *layers; /* NULL: it has no layer loop */
	int count, before;       /* and loops before it */
};

static struct process_loops find_uses(const struct block *body, struct argument_use *use)
{
	struct process_loops loops = { .layers = layers_of(body) };
	struct use_search search = { .use = use };
	for (int a = 0; a < body->arguments; a++)
		use[a] = (struct argument_use){ .outer = -1, .inner = -1 };
	loops.count = note_uses(body, &search);
	if (!loops.layers)
		return loops;
	for (const struct op *op = body->first; op != loops.layers; op = op->next)
		loops.before += op->code == OP_FOR;
	search.in_layer = true;
	loops.count = note_uses(loops.layers->region[0], &search);
	return loops;
}

/* Node that uses the channel: the number of a loop, inside the layer loop if there is one. What
 * precedes the layer loop counts as its first node, what follows it as its last. -1: the process
 * is a single node. */
static int node_of(const struct process_loops *loops, const struct argument_use *use)
{
	int outer = use->scattered ? -1 : use->outer;
	int inner = use->in_layer_scattered ? -1 : use->inner;
	if (!loops->layers)
		return outer;
	if (outer < 0 || use->in_layer)
		return outer < 0 ? -1 : inner;
	if (outer > loops->before)
		return loops->count - 1;
	return loops->count ? 0 : -1;
}

static void add_edge(
        struct wait_graph *p, const struct value *channel, const struct argument_use *use, int node)
{
	*(use->writes ? &p->edge[channel->id].writer : &p->edge[channel->id].reader) = node;
	VEC_PUSH(p->network->arena, &p->node[node].edge, channel->id);
}

static void add_process(struct wait_graph *p, const struct op *call)
{
	const struct block *body = body_of(p, call);
	struct argument_use *use =
	        ARENA_ARRAY(p->network->arena, struct argument_use, body->arguments + 1);
	const struct process_loops loops = find_uses(body, use);
	int first = p->nodes;
	int last = 0;
	bool nodes = true;
	for (int a = 0; a < call->operands; a++) {
		int node = call->operand[a]->def ? node_of(&loops, &use[a]) : 0;
		nodes = nodes && node >= 0;
		last = node > last ? node : last;
	}
	p->nodes += nodes ? last + 1 : 1;
	for (int i = first; i < p->nodes; i++)
		p->node[i].follows_previous = i > first;
	for (int a = 0; a < call->operands; a++)
		if (call->operand[a]->def)
			add_edge(p, call->operand[a], &use[a],
			        first + (nodes ? node_of(&loops, &use[a]) : 0));
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
	p->edge = ARENA_ARRAY(n->arena, struct waiting, n->count + 1);
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
		const struct waiting *edge = &p->edge[number];
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
	const struct waiting *l = *(const struct waiting *const *)left;
	const struct waiting *r = *(const struct waiting *const *)right;
	if (l->bytes != r->bytes)
		return l->bytes < r->bytes ? 1 : -1;
	return l < r ? -1 : 1;
}

void fifo_prove_safe(struct fifo_network *n)
{
	struct wait_graph p = { .network = n, .process = n->main };
	collect_nodes(&p);
	const struct waiting **order = ARENA_ARRAY(n->arena, const struct waiting *, n->count + 1);
	for (int e = 0; e < n->count; e++)
		order[e] = &p.edge[e];
	qsort(order, (size_t)n->count, sizeof *order, larger_first);
	for (int i = 0; i < n->count; i++) {
		int number = (int)(order[i] - p.edge);
		struct waiting *edge = &p.edge[number];
		struct fifo *fifo = &n->fifo[number];
		if (!fifo->sized || fifo->whole <= FIFO_SHORT || fifo->feedback ||
		        waits(&p, edge->reader, edge->writer, number, i + 1))
			continue;
		edge->both = true;
		fifo->safe = FIFO_SHORT;
	}
}
