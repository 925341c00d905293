/* Builds the network of processes and channels in which FIFOs are sized, and finds the channels
 * that are on none of its cycles. */
#include "fifo/fifo.h"
#include "ir/channel_ends.h"

struct graph {
	struct fifo_network *network;
	struct {
		VEC(int) fifo;
	} *at;           /* [processes]: channels that begin or end at it */
	int *seen, *low; /* [processes] scratch */
	int clock;
};

static void add_channel(struct fifo_network *n, struct op *op)
{
	const struct type *type = op->result[0]->type;
	struct fifo *fifo = &n->fifo[n->count];
	*fifo = (struct fifo){ .channel = op->result[0],
		.writer = -1,
		.reader = -1,
		.sized = op->code == OP_FIFO,
		.whole = type->depth,
		.safe = type->depth };
	fifo->feedback = text_same(attr_text_or(op, KEY_STREAM_LAYER_FEEDBACK, NULL), "back");
	fifo->full_depth = attr_get(op, KEY_STREAM_FULL_DEPTH) != NULL;
	fifo->fixed_depth = attr_get(op, KEY_STREAM_FIXED_DEPTH) != NULL;
	fifo->word_bytes = fifo->sized ? (type_bits(type->element) + 7) / 8 : 0;
	op->result[0]->id = n->count++;
}

/* Channels of a process, for the search for prefetched ones. */
struct prefetch_search {
	struct fifo_network *network;
	int *outputs; /* [processes]; tokens that only signal the end of a read do not count */
	int *pending; /* [processes] channels that it reads and that are not known as prefetched */
	int *first, *next; /* [processes], [channels] lists of what it writes; -1: the end */
};

/* Does the process send what a loader sends, or what it computes from that alone, to one reader? It
 * could all be sent in advance. Each process gets there once, so this takes linear time. */
static void mark_prefetch(struct prefetch_search *s, int process)
{
	VEC(int) open = { 0 };
	VEC_PUSH(s->network->arena, &open, process);
	while (open.count) {
		process = open.data[--open.count];
		for (int i = s->first[process]; i >= 0 && s->outputs[process] == 1;
		        i = s->next[i]) {
			int reader = s->network->fifo[i].reader;
			s->network->fifo[i].prefetch = true;
			if (!--s->pending[reader])
				VEC_PUSH(s->network->arena, &open, reader);
		}
	}
}

static void find_prefetch(struct fifo_network *n)
{
	struct prefetch_search s = { .network = n,
		.outputs = ARENA_ARRAY(n->arena, int, n->processes + 1),
		.pending = ARENA_ARRAY(n->arena, int, n->processes + 1),
		.first = ARENA_ARRAY(n->arena, int, n->processes + 1),
		.next = ARENA_ARRAY(n->arena, int, n->count + 1) };
	for (int p = 0; p < n->processes; p++)
		s.first[p] = -1;
	for (int i = 0; i < n->count; i++) {
		const struct fifo *fifo = &n->fifo[i];
		s.outputs[fifo->writer] += !fifo->sized || fifo->whole > FIFO_LEAST;
		s.pending[fifo->reader]++;
		s.next[i] = s.first[fifo->writer];
		s.first[fifo->writer] = i;
	}
	bool *loader = ARENA_ARRAY(n->arena, bool, n->processes + 1);
	for (int p = 0; p < n->processes; p++)
		loader[p] = !s.pending[p];
	for (int p = 0; p < n->processes; p++)
		if (loader[p])
			mark_prefetch(&s, p);
}

/* Bytes that a process reads from FIFOs. */
static int64_t fifo_bytes_read(const struct fifo_network *n, int process)
{
	int64_t bytes = 0;
	for (int i = 0; i < n->count; i++)
		if (n->fifo[i].reader == process)
			bytes += n->fifo[i].whole * n->fifo[i].word_bytes;
	return bytes;
}

/* The same; of a block channel what its writer reads. */
static int64_t bytes_read(const struct fifo_network *n, int process)
{
	int64_t bytes = fifo_bytes_read(n, process);
	for (int i = 0; i < n->count; i++)
		if (n->fifo[i].reader == process && !n->fifo[i].sized)
			bytes += fifo_bytes_read(n, n->fifo[i].writer);
	return bytes;
}

static void find_array(struct op *op, void *found)
{
	*(bool *)found |= op->code == OP_ALLOCA;
}

/* Does the process hold what it reads, in an array or a block channel, rather than read a memory
 * port? */
static bool is_converter(const struct fifo_network *n, int call)
{
	struct op *process = module_find(n->module, attr_text_or(n->call[call], KEY_CALLEE, ""));
	bool holds = false;
	ir_walk(process->region[0], find_array, &holds);
	for (int a = 0; a < n->call[call]->operands; a++)
		if (n->call[call]->operand[a]->type->kind == TYPE_MEMREF)
			return false;
	for (int i = 0; i < n->count; i++)
		holds = holds || (n->fifo[i].reader == call && !n->fifo[i].sized);
	return holds;
}

/* Does a converter send more bytes of words from memory than it reads?  In a layer its memory is
 * filled again for each, which a deep FIFO hides. */
static bool is_replayed(const struct fifo_network *n, int number)
{
	const struct fifo *fifo = &n->fifo[number];
	const struct op *def = fifo->channel->def;
	if (!fifo->sized || !attr_get(def, KEY_STREAM_PREFETCH) ||
	        attr_get(def, KEY_STREAM_IN_LAYER) || !is_converter(n, fifo->writer))
		return false;
	int64_t read = bytes_read(n, fifo->writer);
	return read && fifo->whole * fifo->word_bytes > read;
}

struct fifo_network *fifo_collect(
        struct arena *arena, struct pass_context *context, struct module *module)
{
	struct fifo_network *n = ARENA_NEW(arena, struct fifo_network);
	*n = (struct fifo_network){
		.arena = arena, .context = context, .module = module, .main = module_main(module)
	};
	int ops = 1;
	for (struct op *op = n->main->region[0]->first; op; op = op->next)
		ops++;
	n->call = ARENA_ARRAY(arena, struct op *, ops);
	n->fifo = ARENA_ARRAY(arena, struct fifo, ops);
	struct map digits = map_new(arena);
	bool overlapped = attr_get(n->main, KEY_STREAM_LAYER_OVERLAP) != NULL;
	n->detail = (struct token_detail){ .stretches = FIFO_STRETCHES,
		.layers = overlapped ? FIFO_LAYERS_OVERLAPPED : FIFO_LAYERS,
		.digits = arena_copy(arena, &digits, sizeof digits) };
	n->parts = overlapped ? FIFO_PARTS_OVERLAPPED : FIFO_PARTS;
	n->tokens = token_network_new(arena, context->platform, module, n->detail);
	for (struct op *op = n->main->region[0]->first; op; op = op->next) {
		if (op->code == OP_CALL)
			n->call[n->processes++] = op;
		else if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
			add_channel(n, op);
	}
	const struct channel_ends *ends = channel_ends_of(arena, module);
	for (int i = 0; i < n->count; i++) {
		n->fifo[i].writer = ends[i].writer;
		n->fifo[i].reader = ends[i].reader;
		INVARIANT(module->guard, n->fifo[i].writer >= 0 && n->fifo[i].reader >= 0,
		        "channel %s has no writer or no reader",
		        attr_text_or(n->fifo[i].channel->def, KEY_NAME, "?"));
	}
	find_prefetch(n);
	for (int i = 0; i < n->count; i++)
		n->fifo[i].replayed = is_replayed(n, i);
	return n;
}

int64_t fifo_bytes(const struct fifo_network *n, const int64_t *depth)
{
	int64_t bytes = 0;
	for (int i = 0; i < n->count; i++)
		bytes += n->fifo[i].sized ? n->fifo[i].word_bytes * depth[i] : 0;
	return bytes;
}

/* --- channels that are on no cycle, directions ignored: the bridges of the graph */

static void find_acyclic(struct graph *g, int process, int through)
{
	struct fifo_network *n = g->network;
	g->seen[process] = g->low[process] = ++g->clock;
	for (size_t i = 0; i < g->at[process].fifo.count; i++) {
		int number = g->at[process].fifo.data[i];
		struct fifo *fifo = &n->fifo[number];
		int other = fifo->writer == process ? fifo->reader : fifo->writer;
		if (number == through)
			continue;
		if (!g->seen[other]) {
			find_acyclic(g, other, number);
			fifo->acyclic = g->low[other] > g->seen[process];
			g->low[process] =
			        g->low[other] < g->low[process] ? g->low[other] : g->low[process];
		} else if (g->seen[other] < g->low[process]) {
			g->low[process] = g->seen[other];
		}
	}
}

void fifo_prove(struct fifo_network *n)
{
	struct graph g = { .network = n };
	g.at = arena_alloc(n->arena, sizeof *g.at * (size_t)(n->processes + 1));
	g.seen = ARENA_ARRAY(n->arena, int, n->processes + 1);
	g.low = ARENA_ARRAY(n->arena, int, n->processes + 1);
	for (int i = 0; i < n->count; i++) {
		VEC_PUSH(n->arena, &g.at[n->fifo[i].writer].fifo, i);
		VEC_PUSH(n->arena, &g.at[n->fifo[i].reader].fifo, i);
	}
	fifo_prove_safe(n);
	for (int i = 0; i < n->processes; i++)
		g.seen[i] = 0;
	for (int i = 0; i < n->processes; i++)
		if (!g.seen[i])
			find_acyclic(&g, i, -1);
}
