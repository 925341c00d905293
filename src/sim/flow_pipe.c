/* Pipelined loops of the time simulator. */
#include "sim/flow_network.h"

/* --- building */

/* Stages of the accesses, and the depth: the longest way through the body.  value->id: when a value is ready. */
static void schedule(struct flow_network *network, struct flow_pipe *pipe, const struct block *body)
{
	int count = 0;
	for (const struct op *op = body->first; op; op = op->next)
		count += flow_is_access(op);
	pipe->access = ARENA_ARRAY(network->arena, struct flow_access, count + 1);
	for (const struct op *op = body->first; op; op = op->next) {
		int64_t ready = 0;
		for (int i = 0; i < op->operands; i++)
			if (op->operand[i]->def && op->operand[i]->def->parent == body && op->operand[i]->id > ready)
				ready = op->operand[i]->id;
		if (flow_is_access(op)) {
			struct flow_access *access = &pipe->access[pipe->accesses++];
			*access = flow_access_of(op);
			access->stage = ready;
		}
		ready += operation_latency(network->platform, op);
		for (int i = 0; i < op->results; i++)
			op->result[i]->id = (int)ready;
		pipe->depth = ready > pipe->depth ? ready : pipe->depth;
	}
}

static bool add_conditions(struct flow_network *network, struct flow_pipe *pipe, const struct block *body)
{
	struct flow_access *access = pipe->access;
	pipe->condition.innermost = pipe->counter[pipe->levels - 1];
	pipe->condition.trips = pipe->trips[pipe->levels - 1];
	for (const struct op *op = body->first; op; op = op->next) {
		bool conditional = op->code == OP_TAKE || op->code == OP_PUSH;
		if (conditional && !flow_condition_add(network, &pipe->condition, op->operand[0], &access->bit))
			return false;
		access += flow_is_access(op);
	}
	flow_condition_finish(network->arena, &pipe->condition);
	return true;
}

static int64_t group_key(const struct flow_pipe *pipe, int64_t stage)
{
	return pipe->flushes ? stage : stage % pipe->interval;
}

static void sort_accesses(struct flow_pipe *pipe)
{
	for (int i = 1; i < pipe->accesses; i++) {
		struct flow_access moved = pipe->access[i];
		int j = i;
		for (; j && group_key(pipe, pipe->access[j - 1].stage) > group_key(pipe, moved.stage); j--)
			pipe->access[j] = pipe->access[j - 1];
		pipe->access[j] = moved;
	}
}

/* A flushing loop begins with a group in stage 0, where iterations enter. */
static void make_groups(struct arena *arena, struct flow_pipe *pipe)
{
	pipe->group = ARENA_ARRAY(arena, struct flow_group, pipe->accesses + 1);
	if (pipe->flushes)
		pipe->group[pipe->groups++] = (struct flow_group){0};
	for (int i = 0; i < pipe->accesses; i++) {
		int64_t key = group_key(pipe, pipe->access[i].stage);
		if (!pipe->groups || pipe->group[pipe->groups - 1].stage != key)
			pipe->group[pipe->groups++] = (struct flow_group){.first = i, .stage = key};
		pipe->group[pipe->groups - 1].count++;
	}
}

static void make_rings(struct arena *arena, struct flow_pipe *pipe)
{
	int64_t most = 1;
	pipe->lag = ARENA_ARRAY(arena, int64_t, pipe->accesses + 1);
	for (int i = 0; i < pipe->accesses; i++) {
		pipe->lag[i] = pipe->access[i].stage / pipe->interval;
		most = pipe->lag[i] > most ? pipe->lag[i] : most;
	}
	for (int i = 0; i + 1 < pipe->groups; i++)
		pipe->group[i].room = (pipe->group[i + 1].stage - pipe->group[i].stage + pipe->interval - 1) / pipe->interval;
	for (pipe->ring = 1; pipe->ring <= most + pipe->groups;)
		pipe->ring *= 2;
	pipe->bits = ARENA_ARRAY(arena, uint64_t, pipe->ring);
	for (int i = 0; pipe->flushes && i < pipe->groups; i++)
		pipe->group[i].times = ARENA_ARRAY(arena, int64_t, pipe->ring);
}

bool flow_pipe_build(struct flow_network *network, struct flow_process *process, const struct op *loop, int64_t repeats)
{
	struct arena *arena = network->arena;
	struct flow_pipe *pipe = ARENA_NEW(arena, struct flow_pipe);
	for (const struct op *inner = loop; inner; inner = attr_get(inner, "stream.pipeline") ? NULL : timing_only_loop(inner->region[0]))
		pipe->levels++;
	pipe->counter = ARENA_ARRAY(arena, int64_t *, pipe->levels);
	pipe->trips = ARENA_ARRAY(arena, int64_t, pipe->levels);
	pipe->iterations = 1;
	for (int i = 0; i < pipe->levels; i++) {
		loop = i ? timing_only_loop(loop->region[0]) : loop;
		loop->region[0]->argument[0]->data = pipe->counter[i] = ARENA_NEW(arena, int64_t);
		pipe->trips[i] = flow_trips(loop);
		pipe->iterations *= pipe->trips[i];
	}
	pipe->interval = attr_integer_or(loop, "stream.pipeline", 1);
	pipe->flushes = process->flushes;
	schedule(network, pipe, loop->region[0]);
	if (!add_conditions(network, pipe, loop->region[0]))
		return false;
	sort_accesses(pipe);
	make_groups(arena, pipe);
	make_rings(arena, pipe);
	pipe->last_window = pipe->iterations - 1;
	for (int i = 0; i < pipe->accesses; i++)
		if (pipe->iterations - 1 + pipe->lag[i] > pipe->last_window)
			pipe->last_window = pipe->iterations - 1 + pipe->lag[i];
	network->events += pipe->iterations * repeats;
	VEC_PUSH(arena, &process->steps, ((struct flow_step){.kind = STEP_PIPE, .pipe = pipe}));
	return true;
}

/* --- running */

static void begin(const struct flow_process *process, struct flow_pipe *pipe)
{
	pipe->running = true;
	pipe->start = process->time;
	pipe->inner = pipe->issued = pipe->window = pipe->cycle = 0;
	pipe->at = 0;
	for (int i = 0; i < pipe->levels; i++)
		*pipe->counter[i] = 0;
	for (int i = 0; i < pipe->groups; i++)
		pipe->group[i].done = pipe->group[i].time = pipe->group[i].cause = 0;
}

/* An iteration enters: its conditions, and the counters of the next one. */
static void issue(struct flow_pipe *pipe)
{
	int64_t slot = pipe->issued++ & (pipe->ring - 1);
	if (!pipe->condition.row)
		return;
	pipe->bits[slot] = flow_condition_bits(&pipe->condition, pipe->inner);
	if (++pipe->inner < pipe->trips[pipe->levels - 1])
		return;
	pipe->inner = 0;
	for (int i = pipe->levels - 2; i >= 0; i--) {
		if (++*pipe->counter[i] < pipe->trips[i])
			return;
		*pipe->counter[i] = 0;
	}
}

static inline bool is_made(const struct flow_pipe *pipe, const struct flow_access *access, int64_t iteration)
{
	return access->bit < 0 || (pipe->bits[iteration & (pipe->ring - 1)] >> access->bit & 1);
}

static bool run_cycle(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe, const struct flow_group *group)
{
	int64_t cycle = pipe->window * pipe->interval + group->stage, begins = process->time + cycle - pipe->cycle, time = begins;
	enum flow_cause cause = CAUSE_NONE;
	for (int pass = 0; pass < 2; pass++)
		for (int i = group->first; i < group->first + group->count; i++) {
			int64_t iteration = pipe->window - pipe->lag[i];
			const struct flow_access *access = &pipe->access[i];
			if (iteration < 0 || iteration >= pipe->iterations || !is_made(pipe, access, iteration))
				continue;
			if (pass)
				flow_access_make(network, access, time);
			else if (!flow_access_time(process, access, &time, &cause))
				return false;
		}
	process->waited[cause] += time - begins;
	process->time = time;
	pipe->cycle = cycle;
	return true;
}

/* Style stp. */
static bool run_frozen(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe)
{
	process->waits_for = NULL;
	for (; pipe->window <= pipe->last_window; pipe->window++, pipe->at = 0) {
		if (pipe->issued == pipe->window && pipe->issued < pipe->iterations)
			issue(pipe);
		for (; pipe->at < pipe->groups; pipe->at++)
			if (!run_cycle(network, process, pipe, &pipe->group[pipe->at]))
				return false;
	}
	process->time += (pipe->iterations - 1) * pipe->interval + pipe->depth - pipe->cycle;
	return true;
}

/* When the next iteration reaches the group, channels and ports aside.  false: not known yet. */
static bool arrival(const struct flow_pipe *pipe, int number, int64_t *begins, int64_t *time, enum flow_cause *cause)
{
	const struct flow_group *group = &pipe->group[number];
	int64_t iteration = group->done, mask = pipe->ring - 1;
	if (number && iteration == group[-1].done)
		return false;
	*begins = number ? group[-1].times[iteration & mask] + group->stage - group[-1].stage : pipe->start;
	if (iteration && group->time + pipe->interval > *begins)
		*begins = group->time + pipe->interval;
	*time = *begins;
	if (number + 1 == pipe->groups || iteration < group->room)
		return true;
	if (iteration - group->room >= group[1].done)
		return false;
	flow_not_before(time, cause, group[1].times[(iteration - group->room) & mask], group[1].cause);
	return true;
}

/* The next iteration passes the group. */
static bool pass_group(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe, int number)
{
	struct flow_group *group = &pipe->group[number];
	int64_t begins, time, iteration = group->done;
	enum flow_cause cause = CAUSE_NONE;
	if (iteration == pipe->iterations || !arrival(pipe, number, &begins, &time, &cause))
		return false;
	if (!number && pipe->issued == iteration)
		issue(pipe);
	for (int pass = 0; pass < 2; pass++)
		for (int i = group->first; i < group->first + group->count; i++) {
			const struct flow_access *access = &pipe->access[i];
			if (!is_made(pipe, access, iteration))
				continue;
			if (pass)
				flow_access_make(network, access, time);
			else if (!flow_access_time(process, access, &time, &cause))
				return false;
		}
	group->times[iteration & (pipe->ring - 1)] = group->time = time;
	group->cause = cause ? cause : group->cause;
	group->done++;
	process->waited[cause] += number ? 0 : time - begins;
	return true;
}

/* Style flp.  The oldest iterations go first, so that the first access that cannot be made is the one that the process really waits for. */
static bool run_flushing(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe)
{
	struct flow_group *first = &pipe->group[0], *last = &pipe->group[pipe->groups - 1];
	for (bool moved = true; moved && last->done < pipe->iterations;) {
		moved = false;
		process->waits_for = NULL;
		for (int i = pipe->groups - 1; i >= 0; i--)
			while (pass_group(network, process, pipe, i))
				moved = true;
	}
	process->time = last->done ? last->time : pipe->start;
	if (last->done < pipe->iterations)
		return false;
	process->waited[last->cause] += last->time - last->stage - first->time;
	process->time += pipe->depth - last->stage;
	return true;
}

bool flow_pipe_run(struct flow_network *network, struct flow_process *process, struct flow_pipe *pipe)
{
	if (!pipe->running)
		begin(process, pipe);
	if (pipe->iterations && !(pipe->flushes ? run_flushing : run_frozen)(network, process, pipe))
		return false;
	pipe->running = false;
	process->time += LOOP_CYCLES;
	return true;
}
