/* Shortens the FIFOs that need not hold a whole layer, without giving up the proof that nothing deadlocks.
 *
 * Draw an arc from each process to those that it may wait for within one layer: a reader waits for the writer of an empty FIFO; the writer of a *short* FIFO
 * (one that holds less than a layer) also waits for its reader.  A FIFO that holds a whole layer makes its writer wait only for what the reader does
 * in an earlier layer, and so does the ring.  Along a cycle of waits the layer never grows; so a deadlock is a cycle of arcs within one layer, other than the
 * pair of one FIFO, which is never empty and full at once.  Therefore: shorten a FIFO only if no other path leads from its reader back to its writer.
 * Needs: every FIFO holds a layer (make_processes).  Guarantees: no cycle of waits.  Largest first, because each choice may exclude others.  Exact. */
#include "pass/pass.h"
#include <stdlib.h>

#define SHORT_DEPTH 32        /* what a shift register gives for one LUT a bit */

struct edge {
	struct value *channel;
	int writer, reader;       /* calls of main */
	int64_t bytes;
	int number;               /* order of creation, for ties */
	bool both;                /* writer waits for reader too */
	bool back;                /* of a ring: what it carries is for the next layer */
};

struct network {
	struct module *module;
	struct op *main;
	int processes, edges;
	struct op **call;
	struct edge *edge;
	struct { VEC(int) edge; } *at;      /* [processes]: edges that begin or end there */
	int *seen;                /* [processes], scratch of the search */
};

/* Does the process write into its argument (1), read from it (0), or neither (-1)? */
static int direction(const struct block *block, const struct value *argument)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_TAKE && op->operand[1] == argument)
			return 0;
		if (op->code == OP_PUSH && op->operand[2] == argument)
			return 1;
		if (op->code == OP_ACQUIRE && op->operand[0] == argument)
			return text_same(attr_text_or(op, "side", ""), "write");
		int below = op->region[0] ? direction(op->region[0], argument) : -1;
		if (below >= 0)
			return below;
	}
	return -1;
}

static struct op *process_of(const struct network *n, int call)
{
	return module_find(n->module, attr_text_or(n->call[call], "callee", ""));
}

static void collect(struct network *n)
{
	struct arena *arena = n->module->arena;
	int ops = 0;
	for (struct op *op = n->main->region[0]->first; op; op = op->next)
		ops++;
	n->call = ARENA_ARRAY(arena, struct op *, ops + 1);
	n->edge = ARENA_ARRAY(arena, struct edge, ops + 1);
	for (struct op *op = n->main->region[0]->first; op; op = op->next) {
		if (op->code == OP_CALL)
			n->call[n->processes++] = op;
		if (op->code != OP_FIFO && op->code != OP_BLOCKS)
			continue;
		op->result[0]->id = n->edges;
		n->edge[n->edges] = (struct edge){.channel = op->result[0], .number = n->edges, .writer = -1, .reader = -1};
		n->edge[n->edges].back = text_same(attr_text_or(op, "stream.ring", NULL), "back");
		n->edges++;
	}
	n->seen = ARENA_ARRAY(arena, int, n->processes + 1);
	n->at = arena_alloc(arena, sizeof *n->at * (size_t)(n->processes + 1));
	for (int c = 0; c < n->processes; c++) {
		const struct block *body = process_of(n, c)->region[0];
		for (int a = 0; a < n->call[c]->operands; a++) {
			struct value *channel = n->call[c]->operand[a];
			if (!channel->def)
				continue;
			int writes = direction(body, body->argument[a]);
			*(writes ? &n->edge[channel->id].writer : &n->edge[channel->id].reader) = c;
			VEC_PUSH(arena, &n->at[c].edge, channel->id);
		}
	}
	for (int e = 0; e < n->edges; e++) {
		const struct type *type = n->edge[e].channel->type;
		n->edge[e].bytes = type->kind == TYPE_FIFO ? (type_bits(type->element) + 7) / 8 * type->depth : 0;
		n->edge[e].both = type->kind == TYPE_BLOCKS && type->depth > 1;      /* ping-pong: several blocks a layer */
	}
}

/* Is there a path of waits from one process to another that does not use `except`? */
static bool waits(struct network *n, int from, int to, int except, int mark)
{
	if (from == to)
		return true;
	if (n->seen[from] == mark)
		return false;
	n->seen[from] = mark;
	for (size_t i = 0; i < n->at[from].edge.count; i++) {
		const struct edge *edge = &n->edge[n->at[from].edge.data[i]];
		if (edge->number == except || edge->back)
			continue;
		if (edge->reader == from && waits(n, edge->writer, to, except, mark))
			return true;
		if (edge->both && edge->writer == from && waits(n, edge->reader, to, except, mark))
			return true;
	}
	return false;
}

static void set_depth(struct network *n, const struct edge *edge, int64_t depth)
{
	struct module *module = n->module;
	const struct type *type = type_channel(module, TYPE_FIFO, edge->channel->type->element, depth);
	edge->channel->type = type;
	const int ends[2] = {edge->writer, edge->reader};
	for (int i = 0; i < 2; i++) {
		struct op *process = process_of(n, ends[i]);
		const struct block *body = process->region[0];
		const struct type **types = ARENA_ARRAY(module->arena, const struct type *, body->arguments);
		for (int a = 0; a < body->arguments; a++) {
			if (n->call[ends[i]]->operand[a] == edge->channel)
				body->argument[a]->type = type;
			types[a] = body->argument[a]->type;
		}
		attr_set(module, process, "function_type", attr_type(module, type_function(module, body->arguments, types, 0, NULL)));
	}
}

static int larger_first(const void *left, const void *right)
{
	const struct edge *l = *(const struct edge *const *)left, *r = *(const struct edge *const *)right;
	if (l->bytes != r->bytes)
		return l->bytes < r->bytes ? 1 : -1;
	return l->number - r->number;
}

bool size_fifos(struct pass_context *context, struct module *module)
{
	(void)context;
	struct network n = {.module = module, .main = module_main(module)};
	collect(&n);
	struct edge **order = ARENA_ARRAY(module->arena, struct edge *, n.edges + 1);
	for (int e = 0; e < n.edges; e++)
		order[e] = &n.edge[e];
	qsort(order, (size_t)n.edges, sizeof *order, larger_first);
	for (int i = 0; i < n.edges; i++) {
		struct edge *edge = order[i];
		INVARIANT(module->guard, edge->writer >= 0 && edge->reader >= 0, "channel %s has no writer or no reader", attr_text_or(edge->channel->def, "name", "?"));
		if (edge->channel->type->kind != TYPE_FIFO || edge->channel->type->depth <= SHORT_DEPTH || edge->back || waits(&n, edge->reader, edge->writer, edge->number, i + 1))
			continue;
		edge->both = true;
		set_depth(&n, edge, SHORT_DEPTH);
	}
	return true;
}
