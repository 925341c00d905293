/* The token model without times: decides whether a launch ends. Processes only read and write
 * channels, and their behavior does not depend on data, so the words that pass under given depths
 * are the same for every order in which processes run (a Kahn network), and a launch that stopped
 * continues from that point when depths grow. */
#include "base/guard.h"
#include "predict/token.h"

/* recorded layers: the state after the second and the third is compared */
#define LAYERS_SEEN 3

struct position { /* state of a process at the end of a layer */
	/* finished layers; progress in the current one */
	int64_t layers, steps, windows;
};

struct counter_process {
	const struct token_process *process;
	size_t step; /* steps done */
	bool ended, queued, running;
	int64_t layers; /* finished layers, without the last */
	int64_t window; /* windows done of the current pipe */
	int64_t *base;  /* [accesses] words of the channel when the pipe started */
	/* [accesses] words possible at the last check, and the first window that needs more */
	int64_t *limit, *stop;
	struct position seen[LAYERS_SEEN];
};

struct counter_channel {
	int64_t moved[TOKEN_SIDES];
	int64_t depth;              /* the caller's when the run began; 0: unlimited */
	int64_t limit[TOKEN_SIDES]; /* words that the side may pass */
	bool waiting[TOKEN_SIDES];
	int64_t occupancy[LAYERS_SEEN]; /* words in it at the end of a layer */
};

struct token_counter {
	struct arena *arena;
	const struct token_network *network;
	const int64_t *depth; /* owned by the caller */
	bool in_order;
	/* no layer starts before the previous one has ended, except that a process which starts
	 * layers itself may be so many ahead of the others */
	bool by_layer;
	int64_t overlapped_layers;
	int64_t layer, layers; /* the current layer, and their number */
	struct counter_channel *channel;
	struct counter_process *process, **queue;
	int first, queued;
};

static void wake_process(struct token_counter *c, int number)
{
	struct counter_process *process = number < 0 ? NULL : &c->process[number];
	if (!process || process->queued || process->ended)
		return;
	process->queued = true;
	int place = c->first + c->queued++;
	int processes = (int)c->network->processes.count;
	c->queue[place < processes ? place : place - processes] = process;
}

struct token_counter *token_counter_new(struct arena *arena, const struct token_network *network,
        const int64_t *depth, bool in_order)
{
	struct token_counter *c = ARENA_NEW(arena, struct token_counter);
	int processes = (int)network->processes.count;
	*c = (struct token_counter){ .arena = arena,
		.network = network,
		.depth = depth,
		.in_order = in_order,
		.by_layer = network->skipped > 0,
		.layers = network->layers };
	c->overlapped_layers = c->by_layer && network->overlaps_layers;
	c->channel = ARENA_ARRAY(arena, struct counter_channel, network->channels.count + 1);
	c->process = ARENA_ARRAY(arena, struct counter_process, processes + 1);
	c->queue = ARENA_ARRAY(arena, struct counter_process *, processes + 1);
	for (int i = 0; i < processes; i++) {
		const struct token_process *process = network->processes.data[i];
		int most = 0;
		for (size_t s = 0; s < process->steps.count; s++)
			most = process->steps.data[s].pipe &&
			                process->steps.data[s].pipe->accesses > most
			        ? process->steps.data[s].pipe->accesses
			        : most;
		c->process[i] = (struct counter_process){ .process = process };
		c->process[i].base = ARENA_ARRAY(arena, int64_t, most + 1);
		c->process[i].limit = ARENA_ARRAY(arena, int64_t, most + 1);
		c->process[i].stop = ARENA_ARRAY(arena, int64_t, most + 1);
	}
	return c;
}

static void set_limits(struct token_counter *c)
{
	for (size_t i = 0; i < c->network->channels.count; i++) {
		const struct token_channel *fixed = &c->network->channels.data[i];
		struct counter_channel *channel = &c->channel[i];
		channel->depth = fixed->blocks ? fixed->depth : c->depth[i];
		channel->limit[TOKEN_READER] = channel->moved[TOKEN_WRITER];
		channel->limit[TOKEN_WRITER] =
		        channel->depth ? channel->moved[TOKEN_READER] + channel->depth : INT64_MAX;
	}
}

static void pass_words(struct token_counter *c, int number, enum token_side side, int64_t count)
{
	struct counter_channel *channel = &c->channel[number];
	enum token_side other = TOKEN_WRITER - side;
	if (count <= channel->moved[side])
		return;
	channel->moved[side] = count;
	if (other == TOKEN_READER)
		channel->limit[other] = count;
	else if (channel->depth)
		channel->limit[other] = count + channel->depth;
	if (channel->waiting[other]) {
		channel->waiting[other] = false;
		wake_process(c, c->network->channels.data[number].process[other]);
	}
}

static bool blocked(struct token_counter *c, int number, enum token_side side)
{
	c->channel[number].waiting[side] = true;
	return false;
}

static void begin_pipe(const struct token_counter *c, struct counter_process *process,
        const struct token_pipe *pipe)
{
	process->running = true;
	process->window = 0;
	for (int i = 0; i < pipe->accesses; i++) {
		process->limit[i] = -1;
		if (pipe->access[i].channel >= 0)
			process->base[i] =
			        c->channel[pipe->access[i].channel].moved[pipe->access[i].side];
	}
}

/* The first window, up to `to`, in which an access is not possible; *stops: that access. */
static int64_t first_blocked_window(const struct token_counter *c, struct counter_process *process,
        const struct token_pipe *pipe, int64_t to, const struct token_access **stops)
{
	for (int i = 0; i < pipe->accesses; i++) {
		const struct token_access *access = &pipe->access[i];
		if (access->channel < 0 || !access->waits)
			continue;
		int64_t limit = c->channel[access->channel].limit[access->side] - process->base[i];
		if (limit != process->limit[i]) {
			process->limit[i] = limit;
			process->stop[i] = limit < access->pattern.accesses
			        ? token_at(&access->pattern, limit) +
			                (c->in_order ? 0 : access->lag)
			        : INT64_MAX;
		}
		if (process->stop[i] < to) {
			to = process->stop[i];
			*stops = access;
		}
	}
	return to;
}

/* Layers that a process may finish before it waits for the others. */
static int64_t layers_allowed(const struct token_counter *c, const struct counter_process *process)
{
	return c->layer + 1 + (process->process->overlaps_layers ? 0 : c->overlapped_layers);
}

/* Stops the process at the end of a layer, where it waits for the others. */
static bool stop_at_layer_end(struct counter_process *process, int64_t layer)
{
	process->layers = process->window / layer;
	return false;
}

static bool run_pipe(struct token_counter *c, struct counter_process *process,
        const struct token_pipe *pipe, int64_t *work)
{
	int64_t windows = c->in_order ? pipe->iterations : pipe->windows;
	if (!process->running)
		begin_pipe(c, process, pipe);
	while (process->window < windows) {
		const struct token_access *stops = NULL;
		int64_t allowed = layers_allowed(c, process) * pipe->layer;
		int64_t most = c->by_layer && pipe->layer && allowed < windows ? allowed : windows;
		int64_t to = first_blocked_window(c, process, pipe, most, &stops);
		*work += 1;
		if (to <= process->window)
			return stops ? blocked(c, stops->channel, stops->side)
			             : stop_at_layer_end(process, pipe->layer);
		process->window = to;
		for (int i = 0; i < pipe->accesses; i++) {
			const struct token_access *access = &pipe->access[i];
			int64_t iteration = to - (c->in_order ? 0 : access->lag);
			if (access->channel < 0 || !access->moves || iteration <= 0 ||
			        !access->pattern.accesses)
				continue;
			int64_t made = iteration < pipe->iterations
			        ? token_before(&access->pattern, iteration)
			        : access->pattern.accesses;
			pass_words(c, access->channel, access->side, process->base[i] + made);
		}
	}
	process->running = false;
	return true;
}

static bool run_access(struct token_counter *c, const struct token_access *access)
{
	if (access->channel < 0)
		return true;
	int64_t count = c->channel[access->channel].moved[access->side] + 1;
	if (access->waits && count > c->channel[access->channel].limit[access->side])
		return blocked(c, access->channel, access->side);
	if (access->moves)
		pass_words(c, access->channel, access->side, count);
	return true;
}

static void resume_process(struct token_counter *c, struct counter_process *process, int64_t *work)
{
	const struct token_process *fixed = process->process;
	for (; process->step < fixed->steps.count; process->step++) {
		while ((size_t)process->layers < fixed->layer.count &&
		        fixed->layer.data[process->layers] == process->step)
			process->layers++;
		if (c->by_layer && process->layers >= layers_allowed(c, process))
			return;
		const struct token_step *step = &fixed->steps.data[process->step];
		*work += step->access != NULL;
		if ((step->access && !run_access(c, step->access)) ||
		        (step->pipe && !run_pipe(c, process, step->pipe, work)))
			return;
	}
	process->ended = true;
}

/* Have all processes that determine the end of a layer (those with layer loops) finished the
 * current one? */
static bool layer_over(const struct token_counter *c)
{
	bool over = c->by_layer && c->layer < c->layers - 1 - c->overlapped_layers;
	for (size_t i = 0; over && i < c->network->processes.count; i++) {
		const struct counter_process *process = &c->process[i];
		bool paces = c->overlapped_layers ? process->process->overlaps_layers
		                                  : process->process->rolled > 0;
		over = process->ended || !paces || process->layers > c->layer;
	}
	return over;
}

static struct position position_of(const struct counter_process *process)
{
	const struct token_process *fixed = process->process;
	const struct token_pipe *pipe =
	        process->running ? fixed->steps.data[process->step].pipe : NULL;
	int64_t layers = process->layers;
	int64_t windows = pipe ? process->window : 0;
	if (pipe && pipe->layer) {
		layers = windows / pipe->layer;
		windows %= pipe->layer;
	}
	size_t begun = layers > 0 && (size_t)layers <= fixed->layer.count
	        ? fixed->layer.data[layers - 1]
	        : 0;
	return (struct position){ layers, (int64_t)(process->step - begun), windows };
}

static void next_layer(struct token_counter *c)
{
	for (size_t i = 0; c->layer < LAYERS_SEEN && i < c->network->channels.count; i++)
		c->channel[i].occupancy[c->layer] =
		        c->channel[i].moved[TOKEN_WRITER] - c->channel[i].moved[TOKEN_READER];
	for (size_t i = 0; c->layer < LAYERS_SEEN && i < c->network->processes.count; i++)
		c->process[i].seen[c->layer] = position_of(&c->process[i]);
	c->layer++;
}

static void wake_all(struct token_counter *c)
{
	for (size_t i = 0; i < c->network->channels.count; i++)
		c->channel[i].waiting[TOKEN_READER] = c->channel[i].waiting[TOKEN_WRITER] = false;
	for (int i = 0; i < (int)c->network->processes.count; i++)
		wake_process(c, i);
}

enum token_outcome token_counter_run(struct token_counter *c, int64_t budget, int64_t *work)
{
	int64_t done = 0;
	bool ended = true;
	struct guard *guard = arena_guard(c->arena);
	set_limits(c);
	for (bool over = true; over;) {
		wake_all(c);
		while (c->queued && done <= budget && !guard_is_stopped(guard)) {
			struct counter_process *process = c->queue[c->first];
			c->first =
			        c->first + 1 < (int)c->network->processes.count ? c->first + 1 : 0;
			c->queued--;
			process->queued = false;
			resume_process(c, process, &done);
		}
		over = !c->queued && layer_over(c);
		if (over)
			next_layer(c);
	}
	*work += done;
	guard_count(guard, done);
	for (size_t i = 0; i < c->network->processes.count; i++)
		ended &= c->process[i].ended;
	if (ended)
		return TOKEN_ENDS;
	return c->queued ? TOKEN_OVER_BUDGET : TOKEN_STUCK;
}

bool token_counter_waits(const struct token_counter *c, int channel, enum token_side side)
{
	return c->channel[channel].waiting[side];
}

bool token_counter_full(const struct token_counter *c, int channel)
{
	return token_counter_waits(c, channel, TOKEN_WRITER);
}

/* Is the process in the same state after two successive layers, having advanced by one layer or not
 * at all? */
static bool same_after_layers(const struct counter_process *process)
{
	const struct position *before = &process->seen[LAYERS_SEEN - 2];
	const struct position *after = before + 1;
	bool begun = before->layers > 0 && after->layers == before->layers + 1,
	     idle = !process->process->rolled && after->layers == before->layers;
	return (begun || idle) && before->steps == after->steps &&
	        before->windows == after->windows;
}

bool token_counter_ends_all(const struct token_counter *c)
{
	bool holds = !c->by_layer ||
	        (c->network->alike && c->layers > LAYERS_SEEN + c->overlapped_layers);
	for (size_t i = 0; c->by_layer && holds && i < c->network->processes.count; i++)
		holds = same_after_layers(&c->process[i]);
	for (size_t i = 0; c->by_layer && holds && i < c->network->channels.count; i++)
		holds = c->channel[i].occupancy[1] == c->channel[i].occupancy[2];
	return holds;
}
