/* Runs the token model with times: each process advances stretch by stretch until an access lacks a
 * word or space, and records when words pass; a curve of points per side of a channel. */
#include "predict/token.h"
#include "base/guard.h"
#include "base/parallel.h"
#include <stdlib.h>

#define NO_LIMIT INT64_MAX
/* limit of work of one prediction: about 25 layers of a language model */
#define TOKEN_WORK 8000000

struct channel_state {
	int64_t moved[TOKEN_SIDES];
	/* words that the side may pass, as far as known */
	int64_t limit[TOKEN_SIDES];
	struct token_curve curve[TOKEN_SIDES];
	size_t cursor[TOKEN_SIDES]; /* position of this side in the other side's curve */
	bool waiting[TOKEN_SIDES];
	int64_t depth; /* 0: unlimited */
};

struct process_state {
	const struct token_process *process;
	size_t step; /* steps done */
	int64_t time;
	bool ended, queued;
	/* state of the current pipe */
	bool running;
	int64_t window, began;
	/* [accesses] words of the channel when the pipe started; accesses made since */
	int64_t *base, *made;
	int64_t *high; /* [accesses] accesses made at the end of the current stretch */
	/* [accesses] words possible at the last check, and the first window that needs more */
	int64_t *limit, *stop;
	/* [arguments] when the next word of a memory port may start, in TOKEN_PARTS */
	int64_t *port;
};

struct token_run {
	struct arena *arena;
	const struct token_network *network;
	const struct token_options *options;
	bool back; /* latest mode: time and sides are reversed */
	struct channel_state *channel;
	struct process_state *process, **queue;
	int first, queued;
	int64_t work;
};

/* --- curves */

/* a * b / c, rounded down; where the product exceeds 64 bits the result may be a little off. */
static int64_t scaled(int64_t a, int64_t b, int64_t c)
{
	int64_t product;
	return __builtin_mul_overflow(a, b, &product)
	        ? (int64_t)((double)a * ((double)b / (double)c))
	        : product / c;
}

static int64_t between(const struct token_point *a, const struct token_point *b, int64_t count)
{
	return b->cycle - scaled(b->cycle - a->cycle, b->count - count, b->count - a->count);
}

static inline int64_t cycle_of(const struct token_curve *curve, int64_t count, size_t *cursor)
{
	const struct token_point *point = curve->points.data;
	while (*cursor + 1 < curve->points.count && point[*cursor].count < count)
		++*cursor;
	if (point[*cursor].count <= count || !*cursor)
		return point[*cursor].cycle;
	return between(&point[*cursor - 1], &point[*cursor], count);
}

int64_t token_cycle(const struct token_curve *curve, int64_t count)
{
	size_t low = 0;
	size_t high = curve->points.count - 1;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (curve->points.data[middle].count < count)
			low = middle + 1;
		else
			high = middle;
	}
	return cycle_of(curve, count, &low);
}

static bool on_line(
        const struct token_point *a, const struct token_point *b, int64_t count, int64_t cycle)
{
	int64_t left;
	int64_t right;
	if (!__builtin_mul_overflow(b->count - a->count, cycle - b->cycle, &left) &&
	        !__builtin_mul_overflow(b->cycle - a->cycle, count - b->count, &right))
		return left == right;
	return (long double)(b->count - a->count) * (long double)(cycle - b->cycle) ==
	        (long double)(b->cycle - a->cycle) * (long double)(count - b->count);
}

/* Appends a point; one that continues the line of the last two replaces the last. */
static void add_point(struct arena *arena, struct token_curve *curve, int64_t count, int64_t cycle)
{
	struct token_point *last =
	        curve->points.count ? &curve->points.data[curve->points.count - 1] : NULL;
	if (last && last->count == count)
		return;
	if (curve->points.count > 1 && on_line(&last[-1], last, count, cycle))
		*last = (struct token_point){ count, cycle };
	else
		VEC_PUSH(arena, &curve->points, ((struct token_point){ count, cycle }));
}

/* --- processes and channels */

static inline enum token_side side_of(
        const struct token_run *run, const struct token_access *access)
{
	return run->back ? TOKEN_WRITER - access->side : access->side;
}

static inline bool waits(const struct token_run *run, const struct token_access *access)
{
	return run->back ? access->moves : access->waits;
}

static inline bool moves(const struct token_run *run, const struct token_access *access)
{
	return run->back ? access->waits : access->moves;
}

static void wake_process(struct token_run *run, int number)
{
	struct process_state *process = number < 0 ? NULL : &run->process[number];
	if (!process || process->queued || process->ended)
		return;
	process->queued = true;
	int place = run->first + run->queued++;
	int processes = (int)run->network->processes.count;
	run->queue[place < processes ? place : place - processes] = process;
}

static void pass_words(
        struct token_run *run, int number, enum token_side side, int64_t count, int64_t cycle)
{
	struct channel_state *channel = &run->channel[number];
	const struct token_channel *fixed = &run->network->channels.data[number];
	enum token_side other = TOKEN_WRITER - side;
	add_point(run->arena, &channel->curve[side], count,
	        cycle + 1 + (side == TOKEN_WRITER ? fixed->latency : 0));
	channel->moved[side] = count > channel->moved[side] ? count : channel->moved[side];
	if (channel->limit[other] != NO_LIMIT)
		channel->limit[other] =
		        channel->moved[side] + (other == TOKEN_WRITER ? channel->depth : 0);
	if (channel->waiting[other]) {
		channel->waiting[other] = false;
		wake_process(run, fixed->process[run->back ? side : other]);
	}
}

static bool blocked(struct token_run *run, int channel, enum token_side side)
{
	run->channel[channel].waiting[side] = true;
	return false;
}

/* --- stretches of a pipelined loop */

struct stretch {
	struct token_run *run;
	struct process_state *process;
	const struct token_pipe *pipe;
	int64_t from, to;   /* windows */
	int64_t time;       /* start of `from` without waiting */
	int64_t first, all; /* delay of the first and of the last window */
};

/* Number of accesses in windows before `window`. */
static inline int64_t made_before(const struct token_run *run, const struct token_pipe *pipe,
        const struct token_access *access, int64_t window)
{
	int64_t iteration = (run->back ? pipe->windows - window : window) - access->lag;
	iteration = iteration > pipe->iterations ? pipe->iterations : iteration;
	iteration = iteration < 0 ? 0 : iteration;
	int64_t count = access->pattern.accesses ? token_before(&access->pattern, iteration) : 0;
	return run->back ? access->pattern.accesses - count : count;
}

static inline int64_t window_of(const struct token_run *run, const struct token_pipe *pipe,
        const struct token_access *access, int64_t number)
{
	int64_t window = token_at(&access->pattern,
	                         run->back ? access->pattern.accesses - 1 - number : number) +
	        access->lag;
	return run->back ? pipe->windows - 1 - window : window;
}

static inline int64_t offset_of(const struct token_run *run, const struct token_pipe *pipe,
        const struct token_access *access)
{
	return run->back ? pipe->span - 1 - access->offset : access->offset;
}

static void not_before(struct stretch *s, int64_t window, int64_t cycle)
{
	int64_t late = cycle - s->time - (window - s->from) * s->pipe->interval;
	if (window == s->from && late > s->first)
		s->first = late;
	s->all = late > s->all ? late : s->all;
}

/* Delays the stretch until the words are there that accesses low … high - 1 of the pipe read, or
 * the space that they write to. */
static void wait_for(struct stretch *s, const struct token_access *access, int64_t base,
        int64_t low, int64_t high)
{
	struct token_run *run = s->run;
	struct channel_state *channel = &run->channel[access->channel];
	enum token_side side = side_of(run, access);
	if (run->options->mode == TOKEN_ISOLATED || (side == TOKEN_WRITER && !channel->depth))
		return;
	const struct token_curve *curve = &channel->curve[TOKEN_WRITER - side];
	int64_t shift = side == TOKEN_WRITER ? channel->depth : 0;
	int64_t offset = offset_of(run, s->pipe, access);
	int64_t last = base + high - shift;
	for (int64_t count = base + low + 1 - shift > 1 ? base + low + 1 - shift : 1;
	        count <= last;) {
		int64_t cycle = cycle_of(curve, count, &channel->cursor[side]);
		if (cycle - offset - s->time > s->first) /* otherwise it delays no window */
			not_before(s, window_of(run, s->pipe, access, count + shift - base - 1),
			        cycle - offset);
		run->work++;
		size_t next = channel->cursor[side];
		while (next < curve->points.count && curve->points.data[next].count <= count)
			next++;
		int64_t at = next < curve->points.count ? curve->points.data[next].count : last + 1;
		if (count == last)
			break;
		count = at < last ? at : last;
	}
}

static void wait_for_memory(
        struct stretch *s, const struct token_access *access, int64_t low, int64_t high)
{
	int64_t word = access->word;
	int64_t next = s->process->port[access->port];
	if (high <= low)
		return;
	int64_t begin = (next + TOKEN_PARTS - 1) / TOKEN_PARTS;
	int64_t last = (next + (high - low - 1) * word + TOKEN_PARTS - 1) / TOKEN_PARTS;
	int64_t offset = offset_of(s->run, s->pipe, access);
	not_before(s, window_of(s->run, s->pipe, access, low), begin - offset);
	not_before(s, window_of(s->run, s->pipe, access, high - 1), last - offset);
	if (!access->credit)
		return;
	not_before(s, window_of(s->run, s->pipe, access, low),
	        s->process->began + low / access->credit * access->round + low % access->credit);
	not_before(s, window_of(s->run, s->pipe, access, high - 1),
	        s->process->began + (high - 1) / access->credit * access->round +
	                (high - 1) % access->credit);
}

static int64_t cycle_of_window(const struct stretch *s, int64_t window)
{
	int64_t windows = s->to - s->from - 1;
	int64_t late = windows && s->first != s->all
	        ? s->first + scaled(s->all - s->first, window - s->from, windows)
	        : s->all;
	return s->time + (window - s->from) * s->pipe->interval + late;
}

static void make_accesses(struct stretch *s, const struct token_access *access, int64_t base,
        int64_t low, int64_t high)
{
	struct token_run *run = s->run;
	int64_t offset = offset_of(run, s->pipe, access);
	if (high <= low)
		return;
	int64_t last = cycle_of_window(s, window_of(run, s->pipe, access, high - 1)) + offset;
	if (access->channel < 0) {
		int64_t *next = &s->process->port[access->port];
		int64_t word = access->word;
		int64_t after = *next + (high - low) * word;
		int64_t again = last * TOKEN_PARTS + (1 - access->prefetched) * word;
		/* a word that only its port made wait began within that cycle, not at its start */
		bool waited = last * TOKEN_PARTS >= after - word + TOKEN_PARTS;
		*next = after > again || !waited ? after : again;
	} else if (moves(run, access)) {
		if (high > low + 1)
			pass_words(run, access->channel, side_of(run, access), base + low + 1,
			        cycle_of_window(s, window_of(run, s->pipe, access, low)) + offset);
		pass_words(run, access->channel, side_of(run, access), base + high, last);
	}
}

static void run_stretch(struct stretch *s)
{
	const struct token_pipe *pipe = s->pipe;
	struct process_state *process = s->process;
	int64_t *high = process->high;
	for (int i = 0; i < pipe->accesses; i++) {
		const struct token_access *access = &pipe->access[i];
		high[i] = made_before(s->run, pipe, access, s->to);
		if (access->channel < 0)
			wait_for_memory(s, access, process->made[i], high[i]);
		else if (waits(s->run, access))
			wait_for(s, access, process->base[i], process->made[i], high[i]);
	}
	for (int i = 0; i < pipe->accesses; i++) {
		make_accesses(s, &pipe->access[i], process->base[i], process->made[i], high[i]);
		process->made[i] = high[i];
	}
	process->time += (s->to - s->from) * pipe->interval + s->all;
	process->window = s->to;
	s->run->work++;
}

static void begin_pipe(
        struct token_run *run, struct process_state *process, const struct token_pipe *pipe)
{
	process->running = true;
	process->window = 0;
	process->began = process->time;
	for (int i = 0; i < pipe->accesses; i++) {
		process->made[i] = 0;
		process->limit[i] = -1;
		if (pipe->access[i].channel >= 0)
			process->base[i] = run->channel[pipe->access[i].channel]
			                           .moved[side_of(run, &pipe->access[i])];
		else if (process->port[pipe->access[i].port] < process->began * TOKEN_PARTS)
			process->port[pipe->access[i].port] = process->began * TOKEN_PARTS;
	}
	if (run->back)
		process->time += (pipe->iterations - 1) * pipe->interval + pipe->depth -
		        (pipe->windows - 1) * pipe->interval - pipe->span + 1;
}

/* The first window, up to `to`, in which an access is not known to be possible; *stops: that
 * access. */
static int64_t first_blocked_window(const struct token_run *run, struct process_state *process,
        const struct token_pipe *pipe, int64_t to, const struct token_access **stops)
{
	for (int i = 0; i < pipe->accesses; i++) {
		const struct token_access *access = &pipe->access[i];
		if (access->channel < 0 || !waits(run, access))
			continue;
		int64_t limit = run->channel[access->channel].limit[side_of(run, access)] -
		        process->base[i];
		if (limit != process->limit[i]) {
			process->limit[i] = limit;
			process->stop[i] = limit < access->pattern.accesses
			        ? window_of(run, pipe, access, limit)
			        : NO_LIMIT;
		}
		if (process->stop[i] < to) {
			to = process->stop[i];
			*stops = access;
		}
	}
	return to;
}

static bool run_pipe(
        struct token_run *run, struct process_state *process, const struct token_pipe *pipe)
{
	if (!process->running)
		begin_pipe(run, process, pipe);
	while (process->window < pipe->windows) {
		const struct token_access *stops = NULL;
		int64_t line = (process->window / pipe->grid + 1) * pipe->grid;
		int64_t to = first_blocked_window(
		        run, process, pipe, line < pipe->windows ? line : pipe->windows, &stops);
		if (to <= process->window)
			return blocked(run, stops->channel, side_of(run, stops));
		struct stretch s = { run, process, pipe, process->window, to, process->time, 0, 0 };
		run_stretch(&s);
	}
	process->running = false;
	process->time += run->back
	        ? pipe->span - 1 - pipe->interval
	        : (pipe->iterations - 1 - pipe->windows) * pipe->interval + pipe->depth;
	return true;
}

/* --- processes */

static bool run_access(
        struct token_run *run, struct process_state *process, const struct token_access *access)
{
	if (access->channel < 0) {
		int64_t *next = &process->port[access->port];
		int64_t cycle = (*next + TOKEN_PARTS - 1) / TOKEN_PARTS;
		process->time = cycle > process->time ? cycle : process->time;
		*next = process->time * TOKEN_PARTS + access->word;
		return true;
	}
	struct channel_state *channel = &run->channel[access->channel];
	enum token_side side = side_of(run, access);
	int64_t count = channel->moved[side] + 1;
	if (waits(run, access)) {
		int64_t known = count - (side == TOKEN_WRITER ? channel->depth : 0);
		if (count > channel->limit[side])
			return blocked(run, access->channel, side);
		bool limited = run->options->mode != TOKEN_ISOLATED &&
		        (side == TOKEN_READER || channel->depth) && known > 0;
		int64_t cycle = limited ? cycle_of(&channel->curve[TOKEN_WRITER - side], known,
		                                  &channel->cursor[side])
		                        : 0;
		process->time = cycle > process->time ? cycle : process->time;
	}
	if (moves(run, access))
		pass_words(run, access->channel, side, count, process->time);
	run->work++;
	return true;
}

static void resume_process(struct token_run *run, struct process_state *process)
{
	size_t steps = process->process->steps.count;
	for (; process->step < steps; process->step++) {
		const struct token_step *step =
		        &process->process->steps
		                 .data[run->back ? steps - 1 - process->step : process->step];
		process->time += step->cycles;
		if ((step->access && !run_access(run, process, step->access)) ||
		        (step->pipe && !run_pipe(run, process, step->pipe)))
			return;
	}
	process->ended = true;
}

static bool over_budget(const struct token_run *run)
{
	return run->options->budget && run->work > run->options->budget;
}

static void make_room(const struct token_run *run, struct process_state *state,
        const struct token_process *process)
{
	int most = 0;
	for (size_t s = 0; s < process->steps.count; s++)
		most = process->steps.data[s].pipe && process->steps.data[s].pipe->accesses > most
		        ? process->steps.data[s].pipe->accesses
		        : most;
	int64_t **lists[] = { &state->base, &state->made, &state->high, &state->limit,
		&state->stop };
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		*lists[i] = ARENA_ARRAY(run->arena, int64_t, most + 1);
}

static void start_run(struct token_run *run)
{
	const struct token_network *network = run->network;
	int processes = (int)network->processes.count;
	int64_t latest = 0;
	bool isolated = run->options->mode == TOKEN_ISOLATED;
	run->process = ARENA_ARRAY(run->arena, struct process_state, processes + 1);
	for (int i = 0; i < processes; i++)
		make_room(run, &run->process[i], network->processes.data[i]);
	run->queue = ARENA_ARRAY(run->arena, struct process_state *, processes + 1);
	run->channel = ARENA_ARRAY(run->arena, struct channel_state, network->channels.count + 1);
	for (size_t i = 0; i < network->channels.count; i++) {
		const struct token_channel *channel = &network->channels.data[i];
		int64_t depth = run->options->depth ? run->options->depth[i] : 0;
		if (channel->blocks)
			depth = channel->depth;
		int64_t part = run->options->parts ? channel->words / run->options->parts : 0;
		depth = depth && !channel->blocks && part > depth ? part : depth;
		depth += depth ? channel->between : 0;
		run->channel[i].depth = depth;
		run->channel[i].limit[TOKEN_WRITER] = depth && !isolated ? depth : NO_LIMIT;
		run->channel[i].limit[TOKEN_READER] = isolated ? NO_LIMIT : 0;
	}
	for (int i = 0; run->back && i < processes; i++)
		latest = run->options->end[i] > latest ? run->options->end[i] : latest;
	for (int i = 0; i < processes; i++) {
		run->process[i].process = network->processes.data[i];
		run->process[i].port =
		        ARENA_ARRAY(run->arena, int64_t, network->processes.data[i]->ports + 1);
		if (run->back && !network->processes.data[i]->feeds)
			run->process[i].time = latest - run->options->end[i];
		wake_process(run, run->back ? processes - 1 - i : i);
	}
}

/* --- results */

/* A word that arrives in the cycle in which another one leaves still meets it. */
int64_t token_peak_words(const struct token_flow *flow)
{
	const struct token_curve *come = &flow->curve[TOKEN_WRITER];
	const struct token_curve *go = &flow->curve[TOKEN_READER];
	int64_t most = 0;
	int64_t words = flow->words;
	size_t in = 0;
	size_t out = 0;
	for (size_t i = 0; i < come->points.count; i++) {
		const struct token_point *point = &come->points.data[i];
		while (out < go->points.count && go->points.data[out].cycle < point->cycle)
			out++;
		int64_t gone = out < go->points.count ? 0 : flow->read;
		if (out && out < go->points.count) {
			const struct token_point *a = &go->points.data[out - 1];
			const struct token_point *b = &go->points.data[out];
			int64_t more = b->cycle > a->cycle
			        ? scaled(b->count - a->count, point->cycle - 1 - a->cycle,
			                  b->cycle - a->cycle)
			        : 0;
			gone = a->count + (more > 0 ? more : 0);
		}
		most = point->count - gone > most ? point->count - gone : most;
	}
	for (size_t i = 0; come->points.count && i < go->points.count; i++) {
		/* just before the word leaves */
		const struct token_point *point = &go->points.data[i];
		while (in + 1 < come->points.count && come->points.data[in].cycle <= point->cycle)
			in++;
		const struct token_point *b = &come->points.data[in];
		const struct token_point *a = in ? b - 1 : b;
		int64_t came = in ? a->count : 0;
		if (b->cycle <= point->cycle)
			came = b->count;
		else if (in && b->cycle > a->cycle)
			came += scaled(
			        b->count - a->count, point->cycle - a->cycle, b->cycle - a->cycle);
		int64_t occupancy = came - point->count + 1;
		most = occupancy > most ? occupancy : most;
	}
	return most > words ? words : most;
}

static struct token_result result_of(struct token_run *run)
{
	const struct token_network *network = run->network;
	int processes = (int)network->processes.count;
	struct token_result result = {
		.ended = true, .over_budget = over_budget(run), .work = run->work
	};
	result.end = ARENA_ARRAY(run->arena, int64_t, processes + 1);
	result.flow = ARENA_ARRAY(run->arena, struct token_flow, network->channels.count + 1);
	for (int i = 0; i < processes; i++) {
		result.end[i] = run->process[i].time;
		result.ended &= run->process[i].ended;
		result.cycles = result.end[i] > result.cycles ? result.end[i] : result.cycles;
		if (!network->counts && !network->overlaps_layers &&
		        network->processes.data[i]->rolled &&
		        !network->processes.data[i]->works_after_layers)
			result.layers =
			        result.end[i] > result.layers ? result.end[i] : result.layers;
	}
	for (size_t i = 0; i < network->channels.count; i++) {
		struct channel_state *channel = &run->channel[i];
		struct token_flow *flow = &result.flow[i];
		flow->words = channel->moved[TOKEN_WRITER];
		flow->read = channel->moved[TOKEN_READER];
		flow->curve[TOKEN_READER] = channel->curve[TOKEN_READER];
		flow->curve[TOKEN_WRITER] = channel->curve[TOKEN_WRITER];
		flow->full = channel->waiting[TOKEN_WRITER];
	}
	return result;
}

struct token_result token_run(struct arena *arena, const struct token_network *network,
        const struct token_options *options)
{
	struct token_run run = { .arena = arena,
		.network = network,
		.options = options,
		.back = options->mode == TOKEN_LATEST };
	start_run(&run);
	while (run.queued && !over_budget(&run)) {
		struct process_state *process = run.queue[run.first];
		run.first = run.first + 1 < (int)network->processes.count ? run.first + 1 : 0;
		run.queued--;
		process->queued = false;
		resume_process(&run, process);
	}
	guard_count(arena_guard(arena), run.work);
	return result_of(&run);
}

struct prediction {
	const struct platform *platform;
	const struct module *module;
	struct token_detail detail;
	const struct token_network *network;
	int64_t cycles, layers;
};

/* The cycle in which all channels have brought an image. */
static int64_t image_cycle(
        const struct image_channels *found, const struct token_result *result, int64_t image)
{
	int64_t last = 0;
	for (int i = 0; i < found->count; i++) {
		const struct token_flow *flow = &result->flow[found->channel[i].channel];
		int64_t words = image_end(found->channel[i].words, found->images, image);
		int64_t cycle = token_cycle(&flow->curve[TOKEN_READER], words);
		last = cycle > last ? cycle : last;
	}
	return last;
}

/* An image is there when its words have arrived, which takes each as long as the last one's. */
static struct image_times images_predicted(
        struct arena *arena, const struct module *module, const struct token_result *result)
{
	const struct image_channels found = image_channels_of(arena, module);
	if (!found.images)
		return (struct image_times){ .first = result->cycles };
	int64_t first = image_cycle(&found, result, 0);
	int64_t last = image_cycle(&found, result, found.images - 1);
	return (struct image_times){ .first = first + result->cycles - last,
		.interval = (last - first) / (found.images - 1) };
}

/* Cycles with the depths of the design. */
static void predict(void *data, struct arena *scratch)
{
	struct prediction *p = data;
	struct token_options options = {
		.mode = TOKEN_EARLIEST, .parts = TOKEN_FIFO_PARTS, .budget = TOKEN_WORK
	};
	int64_t *depth = ARENA_ARRAY(scratch, int64_t, p->network->channels.count + 1);
	for (size_t i = 0; i < p->network->channels.count; i++)
		depth[i] = p->network->channels.data[i].depth;
	options.depth = depth;
	struct token_result result = token_run(scratch, p->network, &options);
	p->cycles = result.ended ? result.cycles : 0;
	p->layers = result.layers;
	if (p->cycles && p->detail.images)
		*p->detail.images = images_predicted(scratch, p->module, &result);
}

static void build_and_predict(void *data, struct arena *scratch)
{
	struct prediction *p = data;
	p->network = token_network_new(scratch, p->platform, p->module, p->detail);
	if (p->network)
		predict(p, scratch);
}

const struct token_detail token_detail_predicted = { .stretches = TOKEN_STRETCHES,
	.layers = TOKEN_LAYERS },
                          token_detail_rated = { .stretches = TOKEN_STRETCHES / 4,
	                          .layers = TOKEN_LAYERS - 1 };

/* Skipped layers take as long as the last but one of the walked layers: the difference between a
 * run with one layer fewer and the full run. What follows the layers may wait for memory so long
 * that this difference vanishes, however slow the layers are; then the difference of the layers'
 * end counts. */
int64_t token_cycles_at(
        const struct platform *platform, const struct module *module, struct token_detail detail)
{
	struct arena *arena = arena_within(module->arena);
	struct map digits = map_new(arena);
	detail.digits = detail.digits ? detail.digits : &digits;
	struct prediction all = { .module = module,
		.detail = detail,
		.network = token_network_new(arena, platform, module, detail) };
	struct prediction fewer = { platform, module, detail, NULL, 0, 0 };
	int64_t skipped = all.network ? all.network->skipped : 0;
	fewer.detail.layers--;
	fewer.detail.images = NULL;
	if (skipped)
		tasks_run(module->guard, 2,
		        (struct task[]){ { build_and_predict, &fewer }, { predict, &all } });
	else if (all.network)
		predict(&all, arena);
	arena_free(arena);
	int64_t one = all.cycles - fewer.cycles;
	int64_t last = all.layers - fewer.layers;
	if (!all.cycles || (skipped && !fewer.cycles))
		return 0;
	int64_t cycles = all.cycles + skipped * (one > last ? one : last);
	if (skipped && detail.images)
		*detail.images = (struct image_times){ .first = cycles };
	return cycles;
}

int64_t token_cycles(const struct platform *platform, const struct module *module)
{
	return token_cycles_at(platform, module, token_detail_predicted);
}
