/* Builds the cycle simulator's form of a pipelined loop nest.
 * Before: nested scf.for, the innermost with stream.pipeline.
 * After:  a cycle_pipe: iterations, initiation interval, depth, and the accesses with their stages
 *         and conditions, grouped by stage (flp) or by cycle of the interval (stp). */
#include "simulate/cycle_network.h"
#include "predict/port_run.h"

/* Bursts of an access; a second access through one port goes through the port's twin. */
static void add_stretch(struct cycle_network *network, struct cycle_pipe *pipe,
        struct cycle_access *access, const struct op *op)
{
	for (int i = 0; i < access->order - 1; i++)
		if (pipe->access[i].port == access->port)
			access->port = cycle_port_twin(network, access->port);
	access->requests =
	        cycle_requests_of(access->port, op, network->platform->memory_latency, pipe);
	pipe->asks |= access->kind == ACCESS_LOAD && !access->requests.prefetches;
}

/* As-soon-as-possible schedule: stages of the accesses, and the depth as the longest path through
 * the body.  value->id becomes the cycle in which a value is ready. */
static void schedule(
        struct cycle_network *network, struct cycle_pipe *pipe, const struct block *body)
{
	int count = 0;
	for (const struct op *op = body->first; op; op = op->next)
		count += cycle_is_access(op);
	pipe->access = ARENA_ARRAY(network->arena, struct cycle_access, count + 1);
	for (const struct op *op = body->first; op; op = op->next) {
		int64_t ready = operands_ready(op);
		if (cycle_is_access(op)) {
			struct cycle_access *access = &pipe->access[pipe->accesses++];
			*access = cycle_access_of(op);
			access->stage = ready;
			access->order = pipe->accesses;
			if (access->port)
				add_stretch(network, pipe, access, op);
		}
		ready += operation_latency(network->platform, op);
		for (int i = 0; i < op->results; i++)
			op->result[i]->id = (int)ready;
		pipe->depth = ready > pipe->depth ? ready : pipe->depth;
	}
}

static bool add_conditions(
        struct cycle_network *network, struct cycle_pipe *pipe, const struct block *body)
{
	struct cycle_access *access = pipe->access;
	pipe->condition.innermost = pipe->counter[pipe->levels - 1];
	pipe->condition.trips = pipe->trips[pipe->levels - 1];
	for (const struct op *op = body->first; op; op = op->next) {
		if (op_is_conditional(op) &&
		        !cycle_condition_add(network, &pipe->condition, op, &access->bit))
			return false;
		access += cycle_is_access(op);
	}
	cycle_condition_finish(network->arena, &pipe->condition);
	return true;
}

static int64_t group_key(const struct cycle_pipe *pipe, int64_t stage)
{
	return pipe->flushes ? stage : stage % pipe->interval;
}

static void sort_accesses(struct cycle_pipe *pipe)
{
	for (int i = 1; i < pipe->accesses; i++) {
		struct cycle_access moved = pipe->access[i];
		int j = i;
		for (; j &&
		        group_key(pipe, pipe->access[j - 1].stage) > group_key(pipe, moved.stage);
		        j--)
			pipe->access[j] = pipe->access[j - 1];
		pipe->access[j] = moved;
	}
}

/* A flushing loop has a group in stage 0 even without accesses: iterations enter there. */
static void make_groups(struct arena *arena, struct cycle_pipe *pipe)
{
	pipe->group = ARENA_ARRAY(arena, struct cycle_group, pipe->accesses + 1);
	if (pipe->flushes)
		pipe->group[pipe->groups++] = (struct cycle_group){ 0 };
	for (int i = 0; i < pipe->accesses; i++) {
		int64_t key = group_key(pipe, pipe->access[i].stage);
		if (!pipe->groups || pipe->group[pipe->groups - 1].stage != key)
			pipe->group[pipe->groups++] =
			        (struct cycle_group){ .first = i, .stage = key };
		pipe->group[pipe->groups - 1].count++;
	}
}

/* Fills the cache of access lists with those for bits 0. */
static void make_made(struct arena *arena, const struct cycle_pipe *pipe, struct cycle_group *group)
{
	for (int i = group->first; i < group->first + group->count; i++)
		group->conditions |=
		        pipe->access[i].bit < 0 ? 0 : (uint64_t)1 << pipe->access[i].bit;
	group->only = group->count == 1 ? &pipe->access[group->first] : NULL;
	group->made = ARENA_ARRAY(arena, struct cycle_made, CYCLE_MADE);
	for (int k = 0; k < CYCLE_MADE; k++) {
		group->made[k].access =
		        ARENA_ARRAY(arena, const struct cycle_access *, group->count + 1);
		cycle_list_made(pipe, group, 0, &group->made[k]);
	}
}

static void make_flushing(struct arena *arena, struct cycle_pipe *pipe)
{
	for (int i = 0; i < pipe->groups; i++) {
		pipe->group[i].times = ARENA_ARRAY(arena, int64_t, pipe->ring);
		make_made(arena, pipe, &pipe->group[i]);
	}
	for (int i = 1; i < pipe->groups; i++) {
		pipe->group[i].before = pipe->group[i - 1].times;
		pipe->group[i].distance = pipe->group[i].stage - pipe->group[i - 1].stage;
		pipe->group[i - 1].next_times = pipe->group[i].times;
	}
}

static void make_rings(struct arena *arena, struct cycle_pipe *pipe)
{
	int64_t most = 1;
	pipe->lag = ARENA_ARRAY(arena, int64_t, pipe->accesses + 1);
	for (int i = 0; i < pipe->accesses; i++) {
		pipe->lag[i] = pipe->access[i].stage / pipe->interval;
		most = pipe->lag[i] > most ? pipe->lag[i] : most;
	}
	for (int i = 0; i + 1 < pipe->groups; i++)
		pipe->group[i].room =
		        (pipe->group[i + 1].stage - pipe->group[i].stage + pipe->interval - 1) /
		        pipe->interval;
	for (pipe->ring = 1; pipe->ring <= most + pipe->groups;)
		pipe->ring *= 2;
	pipe->mask = pipe->ring - 1;
	pipe->bits = ARENA_ARRAY(arena, uint64_t, pipe->ring);
	if (pipe->flushes)
		make_flushing(arena, pipe);
}

/* A flushing loop whose first group only prefetches affects no other process until iterations
 * reach the next group, or until its next requests. */
static void set_leads(struct cycle_pipe *pipe, int64_t latency)
{
	const struct cycle_group *first = &pipe->group[0];
	bool reads = pipe->flushes && pipe->groups > 1;
	for (int i = 0; reads && i < first->count; i++)
		reads = pipe->access[i].kind == ACCESS_LOAD && pipe->access[i].requests.prefetches;
	for (int i = 0; reads && i < first->count; i++)
		pipe->access[i].requests.lookahead =
		        first[1].stage < latency ? first[1].stage : latency;
}

static const struct op *inner_loop(const struct op *loop)
{
	if (attr_get(loop, KEY_STREAM_PIPELINE))
		return NULL;
	return timing_only_loop(loop->region[0]);
}

/* Counters and trip counts of the nest; returns the pipelined loop, or NULL after a diagnostic. */
static const struct op *flatten_nest(
        struct cycle_network *network, struct cycle_pipe *pipe, const struct op *loop)
{
	struct arena *arena = network->arena;
	for (const struct op *inner = loop; inner; inner = inner_loop(inner))
		pipe->levels++;
	pipe->counter = ARENA_ARRAY(arena, int64_t *, pipe->levels);
	pipe->trips = ARENA_ARRAY(arena, int64_t, pipe->levels);
	pipe->iterations = 1;
	for (int i = 0; i < pipe->levels; i++) {
		loop = i ? timing_only_loop(loop->region[0]) : loop;
		loop->region[0]->argument[0]->data = pipe->counter[i] = ARENA_NEW(arena, int64_t);
		if (!cycle_trips(network, loop, &pipe->trips[i]))
			return NULL;
		pipe->iterations = cycle_multiply_counts(pipe->iterations, pipe->trips[i]);
	}
	return loop;
}

bool cycle_pipe_build(struct cycle_network *network, struct cycle_process *process,
        const struct op *loop, int64_t repeats)
{
	struct arena *arena = network->arena;
	struct cycle_pipe *pipe = ARENA_NEW(arena, struct cycle_pipe);
	pipe->counts_by_hand = port_run_counts_by_hand(loop);
	loop = flatten_nest(network, pipe, loop);
	if (!loop)
		return false;
	if (!pipe->iterations)
		return true;
	pipe->interval = attr_integer_or(loop, KEY_STREAM_PIPELINE, 1);
	pipe->flushes = process->flushes;
	schedule(network, pipe, loop->region[0]);
	if (!add_conditions(network, pipe, loop->region[0]))
		return false;
	sort_accesses(pipe);
	make_groups(arena, pipe);
	make_rings(arena, pipe);
	set_leads(pipe, network->platform->memory_latency);
	pipe->last_window = pipe->iterations - 1;
	for (int i = 0; i < pipe->accesses; i++)
		if (pipe->iterations - 1 + pipe->lag[i] > pipe->last_window)
			pipe->last_window = pipe->iterations - 1 + pipe->lag[i];
	for (int i = 0; i < pipe->accesses; i++)
		if (pipe->access[i].kind == ACCESS_PUSH)
			cycle_add_words(pipe->access[i].channel,
			        cycle_multiply_counts(pipe->iterations, repeats));
	network->events =
	        cycle_add_counts(network->events, cycle_multiply_counts(pipe->iterations, repeats));
	VEC_PUSH(arena, &process->steps, ((struct cycle_step){ .kind = STEP_PIPE, .pipe = pipe }));
	return true;
}
