/* Which FIFOs need not hold a whole layer, whatever the latencies: the proof that nothing deadlocks.
 *
 * Draw an arc from each process (each stage of it, see below) to those that it may wait for within one layer: a reader waits for the writer of an empty FIFO; the writer of a *short* FIFO
 * (one that holds less than a layer) also waits for its reader.  A FIFO that holds a whole layer makes its writer wait only for what the reader does
 * in an earlier layer, and so does the ring.  Along a cycle of waits the layer never grows; so a deadlock is a cycle of arcs within one layer, other than the
 * pair of one FIFO, which is never empty and full at once.  Therefore: shorten a FIFO only if no other path leads from its reader back to its writer.
 * Largest first, because each choice may exclude others. */
#include "pass/fifo.h"
#include <stdlib.h>

struct edge {
	struct value *channel;
	int writer, reader;       /* stages */
	int64_t bytes;
	int number;               /* order of creation, for ties */
	bool both;                /* writer waits for reader too */
	bool back;                /* of a ring: what it carries is for the next layer */
};

/* A process does its nests one after the other, in every layer anew: each is a stage, which waits for the one before it.  A process is one stage if a channel is
 * used in two of its nests, or outside of them. */
struct stage {
	struct op *call;
	bool later;               /* it waits for the stage before it in this table */
	VEC(int) edge;            /* that begin or end there */
};

struct network {
	struct module *module;
	struct op *main;
	int stages, edges;
	struct stage *stage;
	struct edge *edge;
	int *seen;                /* [stages], scratch of the search */
};

static struct op *process_of(const struct network *n, const struct op *call)
{
	return module_find(n->module, attr_text_or(call, "callee", ""));
}

/* The block whose loops are the stages: inside the layer loop, where everything is. */
static const struct block *stages_of(const struct block *body)
{
	const struct op *layers = NULL;
	int loops = 0;
	for (const struct op *op = body->first; op; op = op->next) {
		loops += op->code == OP_FOR;
		layers = attr_get(op, "stream.layer") && op->code == OP_FOR ? op : layers;
	}
	return !layers ? body : loops == 1 ? layers->region[0] : NULL;
}

/* The only loop of the block in which the channel is used: its number, or -1. */
static int stage_of(const struct block *stages, const struct value *argument)
{
	int number = -1, loops = 0;
	for (const struct op *op = stages ? stages->first : NULL; op; op = op->next) {
		if (op->code == OP_ACQUIRE && op->operand[0] == argument)
			return -1;
		if (op->code != OP_FOR)
			continue;
		if (fifo_direction(op->region[0], argument) >= 0 && number >= 0)
			return -1;
		number = fifo_direction(op->region[0], argument) >= 0 ? loops : number;
		loops++;
	}
	return number;
}

static void add_edge(struct network *n, struct value *channel, const struct block *body, const struct value *argument, int stage)
{
	*(fifo_direction(body, argument) ? &n->edge[channel->id].writer : &n->edge[channel->id].reader) = stage;
	VEC_PUSH(n->module->arena, &n->stage[stage].edge, channel->id);
}

static void add_process(struct network *n, struct op *call)
{
	const struct block *body = process_of(n, call)->region[0], *stages = stages_of(body);
	int first = n->stages, last = 0;
	for (int a = 0; a < call->operands; a++) {
		int stage = call->operand[a]->def ? stage_of(stages, body->argument[a]) : 0;
		stages = stage < 0 ? NULL : stages;
		last = stage > last ? stage : last;
	}
	n->stages += stages ? last + 1 : 1;
	for (int i = first; i < n->stages; i++)
		n->stage[i] = (struct stage){.call = call, .later = i > first};
	for (int a = 0; a < call->operands; a++)
		if (call->operand[a]->def)
			add_edge(n, call->operand[a], body, body->argument[a], first + (stages ? stage_of(stages, body->argument[a]) : 0));
}

static int loops_of(const struct block *block)
{
	int loops = 0;
	for (const struct op *op = block->first; op; op = op->next)
		loops += op->code == OP_FOR ? 1 + loops_of(op->region[0]) : 0;
	return loops;
}

static void collect(struct network *n)
{
	struct arena *arena = n->module->arena;
	int ops = 0, stages = 0;
	for (struct op *op = n->main->region[0]->first; op; op = op->next) {
		ops++;
		stages += op->code == OP_CALL ? 1 + loops_of(process_of(n, op)->region[0]) : 0;
	}
	n->stage = ARENA_ARRAY(arena, struct stage, stages + 1);
	n->edge = ARENA_ARRAY(arena, struct edge, ops + 1);
	for (struct op *op = n->main->region[0]->first; op; op = op->next) {
		if (op->code != OP_FIFO && op->code != OP_BLOCKS)
			continue;
		op->result[0]->id = n->edges;
		n->edge[n->edges] = (struct edge){.channel = op->result[0], .number = n->edges, .writer = -1, .reader = -1};
		n->edge[n->edges].back = text_same(attr_text_or(op, "stream.ring", NULL), "back");
		n->edges++;
	}
	for (struct op *op = n->main->region[0]->first; op; op = op->next)
		if (op->code == OP_CALL)
			add_process(n, op);
	n->seen = ARENA_ARRAY(arena, int, n->stages + 1);
	for (int e = 0; e < n->edges; e++) {
		const struct type *type = n->edge[e].channel->type;
		n->edge[e].bytes = type->kind == TYPE_FIFO ? (type_bits(type->element) + 7) / 8 * type->depth : 0;
		n->edge[e].both = type->kind == TYPE_BLOCKS && type->depth > 1;      /* ping-pong: several blocks a layer */
	}
}

/* Is there a path of waits from one stage to another that does not use `except`? */
static bool waits(struct network *n, int from, int to, int except, int mark)
{
	if (from == to)
		return true;
	if (n->seen[from] == mark)
		return false;
	n->seen[from] = mark;
	if (n->stage[from].later && waits(n, from - 1, to, except, mark))
		return true;
	for (size_t i = 0; i < n->stage[from].edge.count; i++) {
		const struct edge *edge = &n->edge[n->stage[from].edge.data[i]];
		if (edge->number == except || edge->back)
			continue;
		if (edge->reader == from && waits(n, edge->writer, to, except, mark))
			return true;
		if (edge->both && edge->writer == from && waits(n, edge->reader, to, except, mark))
			return true;
	}
	return false;
}

static int larger_first(const void *left, const void *right)
{
	const struct edge *l = *(const struct edge *const *)left, *r = *(const struct edge *const *)right;
	if (l->bytes != r->bytes)
		return l->bytes < r->bytes ? 1 : -1;
	return l->number - r->number;
}

void fifo_prove_safe(struct fifo_network *network)
{
	struct module *module = network->module;
	struct network n = {.module = module, .main = network->main};
	collect(&n);
	struct edge **order = ARENA_ARRAY(module->arena, struct edge *, n.edges + 1);
	for (int e = 0; e < n.edges; e++)
		order[e] = &n.edge[e];
	qsort(order, (size_t)n.edges, sizeof *order, larger_first);
	for (int i = 0; i < n.edges; i++) {
		struct edge *edge = order[i];
		if (edge->channel->type->kind != TYPE_FIFO || edge->channel->type->depth <= FIFO_SHORT || edge->back || waits(&n, edge->reader, edge->writer, edge->number, i + 1))
			continue;
		edge->both = true;
		network->fifo[edge->number].safe = FIFO_SHORT;
	}
}
