/* The longest chain of processes, one after the other, as an upper bound of a launch. The feedback
 * channel of a rolled layer leads from a process to one that was started earlier and that reaches
 * it. It starts the next layer, whose cycles are already in the time of every process, so chains do
 * not follow it. Without such channels the graph is acyclic. */
#include "predict/timing.h"
#include <string.h>

struct chain_graph {
	const struct design_cost *cost;
	struct process_time *process;
	int memory_latency;
	int *writer, *reader; /* [channels] number of the process, or -1 */
	bool *cut;            /* [channels] it leads back, and is ignored */
	bool *seen;           /* [processes] visited by reaches() */
	int64_t *end;         /* [processes] end of the chain; -1: unknown */
};

/* Marks the arguments that a process reads: those it pops from or acquires to read. */
static void find_read(struct op *op, void *context)
{
	bool *reads = context;
	bool acquires = op->code == OP_ACQUIRE && text_same(attr_text_or(op, KEY_SIDE, ""), "read");
	const struct value *channel = acquires ? op->operand[0] : NULL;
	if (op->code == OP_POP)
		channel = op->operand[1];
	if (channel && !channel->def)
		reads[channel->index] = true;
}

static void connect_channels(struct arena *arena, struct chain_graph *graph)
{
	const struct design_cost *cost = graph->cost;
	for (int i = 0; i < cost->channels; i++) {
		cost->channel[i].op->result[0]->id = i;
		graph->writer[i] = graph->reader[i] = -1;
	}
	for (int i = 0; i < cost->processes; i++) {
		const struct process_cost *process = &cost->process[i];
		bool *reads = ARENA_ARRAY(arena, bool, process->call->operands + 1);
		ir_walk(process->function->region[0], find_read, reads);
		for (int j = 0; j < process->call->operands; j++) {
			const struct value *channel = process->call->operand[j];
			if (channel->def)
				(reads[j] ? graph->reader : graph->writer)[channel->id] = i;
		}
	}
}

static bool reaches(struct chain_graph *graph, int from, int to)
{
	if (from == to)
		return true;
	graph->seen[from] = true;
	for (int i = 0; i < graph->cost->channels; i++) {
		int next = graph->writer[i] == from && !graph->cut[i] ? graph->reader[i] : -1;
		if (next >= 0 && !graph->seen[next] && reaches(graph, next, to))
			return true;
	}
	return false;
}

static void cut_rings(struct chain_graph *graph)
{
	for (int i = 0; i < graph->cost->channels; i++) {
		int from = graph->writer[i];
		int to = graph->reader[i];
		memset(graph->seen, 0, sizeof *graph->seen * (size_t)graph->cost->processes);
		graph->cut[i] = from < 0 || to < 0 || (from >= to && reaches(graph, to, from));
	}
}

static void find_sources(struct chain_graph *graph)
{
	for (int i = 0; i < graph->cost->processes; i++)
		graph->process[i].source = graph->process[i].memory_bytes > 0;
	for (int i = 0; i < graph->cost->channels; i++)
		if (graph->reader[i] >= 0)
			graph->process[graph->reader[i]].source = false;
}

/* The end of a process after all before it. A loader runs in parallel with its reader, whose time
 * covers it. */
static int64_t end_of(struct chain_graph *graph, int process)
{
	if (graph->end[process] >= 0)
		return graph->end[process];
	int64_t start = 0;
	int64_t span = graph->process[process].busy;
	for (int i = 0; i < graph->cost->channels; i++) {
		if (graph->cut[i] || graph->reader[i] != process)
			continue;
		const struct process_time *from = &graph->process[graph->writer[i]];
		int64_t end = end_of(graph, graph->writer[i]);
		start = end > start ? end : start;
		span = from->source && from->busy > span ? from->busy : span;
	}
	return graph->end[process] =
	               graph->process[process].source ? graph->memory_latency : start + span;
}

int64_t longest_chain(struct arena *arena, const struct platform *platform,
        const struct design_cost *cost, struct process_time *process)
{
	struct chain_graph graph = {
		.cost = cost, .process = process, .memory_latency = platform->memory_latency
	};
	int64_t most = 0;
	graph.writer = ARENA_ARRAY(arena, int, cost->channels);
	graph.reader = ARENA_ARRAY(arena, int, cost->channels);
	graph.cut = ARENA_ARRAY(arena, bool, cost->channels);
	graph.seen = ARENA_ARRAY(arena, bool, cost->processes);
	graph.end = ARENA_ARRAY(arena, int64_t, cost->processes);
	for (int i = 0; i < cost->processes; i++)
		graph.end[i] = -1;
	connect_channels(arena, &graph);
	cut_rings(&graph);
	find_sources(&graph);
	for (int i = 0; i < cost->processes; i++) {
		int64_t end = end_of(&graph, i);
		most = end > most ? end : most;
	}
	return most;
}
