/* The cycle simulator against a slow one that steps through every cycle: random networks of
 * stalling (stp) and flushing (flp) loops, rings, and memory ports that share channels. */
#include "design_case.h"
#include "predict/timing.h"
#include "simulate/cycle_sim.h"

#define PARTS 65536 /* of a cycle */
#define PROCESSES_MOST 6
#define CHANNELS_MOST 10
#define PORTS_MOST 6
#define ACCESSES_MOST 8
#define WORDS_MOST 4096 /* through one channel, or bursts of a port */
#define QUIET 4000      /* cycles after which nothing will move any more */

enum kind { TAKE, PUSH, LOAD, STORE };
enum when { ALWAYS, EVEN, FIRST_ROW, WHENS };

struct use {
	enum kind kind;
	int at; /* channel or port */
	enum when when;
	int muls; /* after a take or a load, before a push or a store */
	/* 0: in a row; 1: every other word; 2: not known when the loop begins */
	int address;
	int64_t stage;
};

struct pipe {
	/* repeats: of the loop around, where it holds nothing else */
	int64_t repeats, rows, columns, interval, depth;
	int accesses;
	struct use access[ACCESSES_MOST];
};

struct network {
	int processes, channels, ports;
	struct {
		bool flushes;
		int64_t repeats;
		int pipes;
		struct pipe pipe[2];
	} process[PROCESSES_MOST];
	int64_t depth[CHANNELS_MOST];
	struct {
		bool write;
		int memory;
	} port[PORTS_MOST];
	int64_t launches, gap;
	bool overlap;
};

/* --- the slow simulator */

struct port_state {
	int posted, granted, used;
	int64_t request[WORDS_MOST], start[WORDS_MOST], left, next, last;
	const struct use *access;
	const struct pipe *pipe;
};

struct process_state {
	int64_t ready, launch, repeat, start, cycle, began;
	int pipe;
	/* 0 before, 1 in the pipe, 2 its words arrive, 3 after the loops, 4 ended */
	int phase;
	int64_t done[ACCESSES_MOST + 1], times[ACCESSES_MOST + 1][WORDS_MOST];
	int64_t end;
};

struct slow {
	const struct network *n;
	const struct platform *platform;
	int64_t now, moved, launches_done;
	struct process_state process[PROCESSES_MOST];
	int64_t pushed[CHANNELS_MOST], popped[CHANNELS_MOST];
	int64_t push[CHANNELS_MOST][WORDS_MOST], pop[CHANNELS_MOST][WORDS_MOST];
	struct port_state port[PORTS_MOST];
	int64_t free[2], word;
	int64_t depth[CHANNELS_MOST];
};

static bool holds(enum when when, const struct pipe *pipe, int64_t iteration)
{
	return when == ALWAYS ||
	        (when == EVEN ? iteration % pipe->columns % 2 == 0
	                      : iteration / pipe->columns % pipe->rows == 0);
}

static int64_t iterations(const struct pipe *pipe)
{
	return pipe->repeats * pipe->rows * pipe->columns;
}

/* Words in a row. */
static int64_t run_of(const struct port_state *port)
{
	return port->access->address || port->access->when != ALWAYS
	        ? 1
	        : port->pipe->rows * port->pipe->columns;
}

static int64_t bursts_a_run(const struct slow *s, const struct port_state *port)
{
	return (run_of(port) + s->platform->burst - 1) / s->platform->burst;
}

static int64_t bursts_of(const struct slow *s, const struct port_state *port)
{
	return iterations(port->pipe) / run_of(port) * bursts_a_run(s, port);
}

static int64_t length_of(const struct slow *s, const struct port_state *port, int64_t burst)
{
	int64_t each = bursts_a_run(s, port);
	return burst % each == each - 1 ? run_of(port) - (each - 1) * s->platform->burst
	                                : s->platform->burst;
}

static void post(struct port_state *port, int64_t time)
{
	port->last = port->last >= time ? port->last + 1 : time;
	port->request[port->posted++] = port->last;
}

static bool is_ahead(const struct port_state *port)
{
	return port->access->kind == LOAD && port->access->address != 2;
}

static int64_t cycle_of(int64_t parts)
{
	return (parts + PARTS - 1) / PARTS;
}

static int64_t arrival(const struct slow *s, const struct port_state *port, int64_t burst)
{
	return cycle_of(port->start[burst] + length_of(s, port, burst) * s->word) +
	        s->platform->memory_latency;
}

/* Requests of this cycle, in the order of ports. */
static void serve(struct slow *s)
{
	for (int i = 0; i < s->n->ports; i++) {
		struct port_state *port = &s->port[i];
		int64_t *free = &s->free[s->n->port[i].memory];
		while (port->granted < port->posted && port->request[port->granted] == s->now) {
			int64_t wanted = s->now * PARTS;
			port->start[port->granted] = wanted > *free ? wanted : *free;
			*free = port->start[port->granted] +
			        length_of(s, port, port->granted) * s->word;
			port->granted++;
			s->moved = s->now;
		}
	}
}

static bool word_is_there(struct slow *s, struct port_state *port)
{
	bool write = port->access->kind == STORE;
	int64_t before = port->used - s->platform->outstanding;
	if (port->left)
		return s->now >= cycle_of(port->next);
	if (write ? before >= port->granted : port->used >= port->granted)
		return false;
	port->next = !write   ? port->start[port->used]
	        : before >= 0 ? arrival(s, port, before) * PARTS
	                      : 0;
	port->left = length_of(s, port, port->used);
	return s->now >= cycle_of(port->next);
}

static bool can(struct slow *s, const struct use *access)
{
	int c = access->at;
	if (access->kind == TAKE)
		return s->popped[c] < s->pushed[c] && s->push[c][s->popped[c]] < s->now;
	if (access->kind == PUSH)
		return s->pushed[c] < s->depth[c] ||
		        (s->pushed[c] - s->depth[c] < s->popped[c] &&
		                s->pop[c][s->pushed[c] - s->depth[c]] < s->now);
	return word_is_there(s, &s->port[c]);
}

static void make(struct slow *s, const struct use *access)
{
	int c = access->at;
	s->moved = s->now;
	if (access->kind == TAKE)
		s->pop[c][s->popped[c]++] = s->now;
	if (access->kind == PUSH)
		s->push[c][s->pushed[c]++] = s->now;
	if (access->kind == TAKE || access->kind == PUSH)
		return;
	struct port_state *port = &s->port[c];
	port->next += access->kind == LOAD ? s->word : 0;
	if (--port->left)
		return;
	port->used++;
	if (access->kind == STORE)
		post(port, s->now + 1);
	else if (is_ahead(port) && port->posted < bursts_of(s, port))
		post(port, s->now + s->platform->memory_latency);
}

/* Loads whose address was not known are requested where their iteration has come to them. */
static void ask_all(struct slow *s, const struct use *const *list, int count)
{
	for (int i = 0; i < count; i++) {
		struct port_state *port = list[i]->kind == LOAD ? &s->port[list[i]->at] : NULL;
		if (port && !is_ahead(port) && port->posted == port->used && !port->left)
			post(port, s->now);
	}
}

static bool can_all(struct slow *s, const struct use *const *list, int count)
{
	for (int i = 0; i < count; i++)
		if (!can(s, list[i]))
			return false;
	return true;
}

/* Accesses of a frozen pipeline in this cycle. */
static int list_frozen(const struct pipe *pipe, int64_t cycle, const struct use **list)
{
	int count = 0;
	for (int i = 0; i < pipe->accesses; i++) {
		const struct use *access = &pipe->access[i];
		int64_t at = cycle - access->stage;
		if (at >= 0 && at % pipe->interval == 0 && at / pipe->interval < iterations(pipe) &&
		        holds(access->when, pipe, at / pipe->interval))
			list[count++] = access;
	}
	return count;
}

static bool step_frozen(struct slow *s, struct process_state *p, const struct pipe *pipe, bool ask)
{
	const struct use *list[ACCESSES_MOST] = { 0 };
	if (p->cycle == (iterations(pipe) - 1) * pipe->interval + pipe->depth)
		return true;
	int count = list_frozen(pipe, p->cycle, list);
	if (ask)
		ask_all(s, list, count);
	if (ask || !can_all(s, list, count))
		return false;
	for (int i = 0; i < count; i++)
		make(s, list[i]);
	p->cycle++;
	return false;
}

/* Stages at which a flushing loop has accesses; the first is 0. */
static int stages_of(const struct pipe *pipe, int64_t *stage)
{
	int count = 1;
	stage[0] = 0;
	for (int64_t at = 1; at <= pipe->depth; at++)
		for (int i = 0; i < pipe->accesses; i++)
			if (pipe->access[i].stage == at) {
				stage[count++] = at;
				break;
			}
	return count;
}

static bool pass_group(struct slow *s, struct process_state *p, const struct pipe *pipe, int group,
        int groups, const int64_t *stage, bool ask)
{
	const struct use *list[ACCESSES_MOST] = { 0 };
	int64_t j = p->done[group];
	int64_t count = 0;
	int64_t room = group + 1 < groups
	        ? (stage[group + 1] - stage[group] + pipe->interval - 1) / pipe->interval
	        : 0;
	if (j == iterations(pipe) ||
	        (group &&
	                (j >= p->done[group - 1] ||
	                        p->times[group - 1][j] + stage[group] - stage[group - 1] > s->now)))
		return false;
	if (j && p->times[group][j - 1] + pipe->interval > s->now)
		return false;
	for (int i = 0; i < pipe->accesses; i++)
		if (pipe->access[i].stage == stage[group] && holds(pipe->access[i].when, pipe, j))
			list[count++] = &pipe->access[i];
	if (ask)
		ask_all(s, list, (int)count);
	if (ask || (group + 1 < groups && j - room >= p->done[group + 1]) ||
	        !can_all(s, list, (int)count))
		return false;
	for (int i = 0; i < count; i++)
		make(s, list[i]);
	p->times[group][p->done[group]++] = s->now;
	s->moved = s->now;
	return true;
}

/* true: the last iteration has left. */
static bool step_flushing(
        struct slow *s, struct process_state *p, const struct pipe *pipe, bool ask)
{
	int64_t stage[ACCESSES_MOST + 1];
	int groups = stages_of(pipe, stage);
	for (int group = groups - 1; group >= 0; group--)
		pass_group(s, p, pipe, group, groups, stage, ask);
	int64_t total = iterations(pipe);
	return p->done[groups - 1] == total &&
	        s->now == p->times[groups - 1][total - 1] + pipe->depth - stage[groups - 1];
}

static void begin_pipe(struct slow *s, struct process_state *p, const struct pipe *pipe)
{
	p->phase = 1;
	p->start = s->now;
	p->cycle = 0;
	memset(p->done, 0, sizeof p->done);
	for (int i = 0; i < pipe->accesses; i++) {
		const struct use *access = &pipe->access[i];
		struct port_state *port = &s->port[access->at];
		if (access->kind != LOAD && access->kind != STORE)
			continue;
		port->access = access;
		port->pipe = pipe;
		port->posted = port->granted = port->used = 0;
		port->left = 0;
		while (is_ahead(port) && port->posted < s->platform->outstanding &&
		        port->posted < bursts_of(s, port))
			post(port, s->now + access->stage);
	}
}

static bool has_arrived(struct slow *s, const struct pipe *pipe)
{
	for (int i = 0; i < pipe->accesses; i++) {
		const struct port_state *port = &s->port[pipe->access[i].at];
		if (pipe->access[i].kind == STORE && port->posted &&
		        (port->granted < port->posted ||
		                arrival(s, port, port->posted - 1) > s->now))
			return false;
	}
	return true;
}

static void begin_process(struct process_state *p, int64_t time)
{
	p->phase = 0;
	p->pipe = 0;
	p->repeat = 0;
	p->began = time;
	p->ready = time + PROCESS_CYCLES / 2;
}

static void end_process(struct slow *s, struct process_state *p)
{
	p->phase = 4;
	p->end = s->now;
	if (s->n->overlap && ++p->launch < s->n->launches)
		begin_process(p, s->now + s->n->gap);
}

/* Goes on as far as this cycle lets it. */
static void step(struct slow *s, int number, bool ask)
{
	struct process_state *p = &s->process[number];
	bool flushes = s->n->process[number].flushes;
	while (p->phase != 4 && p->ready <= s->now) {
		const struct pipe *pipe = &s->n->process[number].pipe[p->pipe];
		if (p->phase == 3) {
			end_process(s, p);
			continue;
		}
		if (p->phase == 0)
			begin_pipe(s, p, pipe);
		if (p->phase == 1 && !(flushes ? step_flushing : step_frozen)(s, p, pipe, ask))
			return;
		p->phase = 2;
		if (!has_arrived(s, pipe))
			return;
		s->moved = s->now;
		p->ready = s->now + LOOP_CYCLES;
		p->phase = 0;
		if (++p->pipe < s->n->process[number].pipes)
			continue;
		p->pipe = 0;
		if (s->n->process[number].pipes > 1 && ++p->repeat < s->n->process[number].repeats)
			continue;
		p->phase = 3;
		p->ready += (s->n->process[number].pipes > 1 ? LOOP_CYCLES : 0) + PROCESS_CYCLES -
		        PROCESS_CYCLES / 2;
	}
}

static bool all_ended(const struct slow *s)
{
	for (int i = 0; i < s->n->processes; i++)
		if (s->process[i].phase != 4)
			return false;
	return true;
}

static void run_slow(struct slow *s)
{
	for (int i = 0; i < s->n->ports; i++)
		s->port[i].last = -1;
	for (int i = 0; i < s->n->processes; i++)
		begin_process(&s->process[i], 0);
	for (s->now = 0; s->now - s->moved < QUIET; s->now++) {
		for (int i = 0; i < s->n->processes; i++)
			step(s, i, true);
		serve(s);
		for (int i = 0; i < s->n->processes; i++)
			step(s, i, false);
		if (!all_ended(s))
			continue;
		if (s->n->overlap || ++s->launches_done == s->n->launches)
			return;
		for (int i = 0; i < s->n->processes; i++)
			begin_process(&s->process[i], s->now + s->n->gap);
		for (int i = 0; !s->n->gap && i < s->n->processes; i++)
			step(s, i, false);
	}
}

/* --- random networks */

static int64_t number(int64_t low, int64_t high)
{
	return low + (int64_t)(case_random() % (uint64_t)(high - low + 1));
}

static void add_access(struct pipe *pipe, struct use access)
{
	assert_true(pipe->accesses < ACCESSES_MOST);
	pipe->access[pipe->accesses++] = access;
}

static struct pipe *some_pipe(struct network *n, int process)
{
	return &n->process[process].pipe[number(0, n->process[process].pipes - 1)];
}

static void add_channel(struct network *n)
{
	int writer = (int)number(0, n->processes - 1);
	int reader = (int)number(0, n->processes - 1);
	bool back = number(0, 9) == 0;
	if (writer == reader || (writer > reader && !back))
		return;
	struct pipe *from = some_pipe(n, writer);
	struct pipe *to = some_pipe(n, reader);
	if (from->accesses > 4 || to->accesses > 4)
		return;
	enum when when = (enum when)number(0, WHENS - 1);
	add_access(to, (struct use){ TAKE, n->channels, when, (int)number(0, 1), 0, 0 });
	add_access(from, (struct use){ PUSH, n->channels, when, (int)number(0, 1), 0, 0 });
	n->depth[n->channels++] = number(1, 8);
}

static void add_port(struct network *n)
{
	struct pipe *pipe = some_pipe(n, (int)number(0, n->processes - 1));
	bool write = number(0, 1);
	if (pipe->accesses > 6)
		return;
	add_access(pipe,
	        (struct use){ write ? STORE : LOAD, n->ports,
	                write ? (enum when)number(0, WHENS - 1) : ALWAYS, 0, (int)number(0, 2),
	                0 });
	n->port[n->ports].write = write;
	n->port[n->ports++].memory = (int)number(0, 1);
}

/* When each access is made: the body is a chain in which the last word read is multiplied and
 * sent on. */
static void schedule(struct pipe *pipe, const struct platform *platform)
{
	int64_t ready = 0;
	int64_t multiply = platform->cost[OP_MULF].latency;
	for (int i = 0; i < pipe->accesses; i++) {
		struct use *access = &pipe->access[i];
		int64_t when = access->when == ALWAYS ? 0 : platform->cost[OP_CMPI].latency;
		bool reads = access->kind == TAKE || access->kind == LOAD;
		int64_t from = reads ? 0 : ready + access->muls * multiply;
		access->stage = from > when ? from : when;
		if (reads)
			ready = access->stage +
			        (access->kind == TAKE ? 1 : platform->memory_latency) +
			        access->muls * multiply;
		int64_t end = reads ? ready : access->stage + 1;
		pipe->depth = end > pipe->depth ? end : pipe->depth;
	}
}

static struct network random_network(const struct platform *platform)
{
	struct network n = { .processes = (int)number(2, PROCESSES_MOST),
		.launches = number(1, 3),
		.gap = number(0, 5),
		.overlap = number(0, 1) };
	int64_t rows = number(1, 4);
	int64_t columns = number(1, 8);
	int64_t repeats = number(1, 3);
	for (int i = 0; i < n.processes; i++) {
		n.process[i].flushes = number(0, 1);
		n.process[i].pipes = (int)number(1, 2);
		n.process[i].repeats = repeats;
		for (int j = 0; j < n.process[i].pipes; j++)
			n.process[i].pipe[j] =
			        (struct pipe){ .repeats = n.process[i].pipes > 1 ? 1 : repeats,
				        .rows = rows,
				        .columns = columns,
				        .interval = number(1, 3) };
	}
	for (int64_t i = number(1, CHANNELS_MOST); i > 0; i--)
		add_channel(&n);
	for (int64_t i = number(0, PORTS_MOST); i > 0; i--)
		add_port(&n);
	for (int i = 0; i < n.processes; i++)
		for (int j = 0; j < n.process[i].pipes; j++)
			schedule(&n.process[i].pipe[j], platform);
	return n;
}

/* --- as a module */

static void print_when(struct text *out, enum when when, int i)
{
	if (when == EVEN)
		text_add(out,
		        "%%r%d = \"arith.remsi\"(%%j, %%two) : (index, index) -> index\n%%w%d = "
		        "\"arith.cmpi\"(%%r%d, %%c0) {predicate = 0 : i64} : (index, index) -> "
		        "i1\n",
		        i, i, i);
	else if (when == FIRST_ROW)
		text_add(out,
		        "%%w%d = \"arith.cmpi\"(%%i, %%c0) {predicate = 0 : i64} : (index, index) "
		        "-> i1\n",
		        i);
}

static void print_muls(struct text *out, const char **word, int count, int i, struct arena *arena)
{
	for (int k = 0; k < count; k++) {
		const char *name = text_format(arena, "%%m%d_%d", i, k);
		text_add(out, "%s = \"arith.mulf\"(%s, %s) : (f32, f32) -> f32\n", name, *word,
		        *word);
		*word = name;
	}
}

static const char *print_address(struct text *out, const struct pipe *pipe,
        const struct use *access, int i, struct arena *arena)
{
	const char *name = text_format(arena, "%%a%d", i);
	if (access->address == 2)
		text_add(out, "%s = \"arith.remsi\"(%%j, %%two) : (index, index) -> index\n", name);
	else
		text_add(out,
		        "%s = \"affine.apply\"(%%i, %%j) {map = affine_map<(d0, d1) -> (d0 * %lld "
		        "+ d1 * %d)>} : (index, index) -> index\n",
		        name, (long long)(pipe->columns * (access->address + 1)),
		        access->address + 1);
	return name;
}

#define FIFO "!stream.fifo<f32, %lld>"
static void print_access(struct text *out, const struct network *n, const struct pipe *pipe, int i,
        const char **word, struct arena *arena)
{
	const struct use *access = &pipe->access[i];
	const char *when = access->when == ALWAYS ? "%t" : text_format(arena, "%%w%d", i);
	long long depth =
	        access->kind == TAKE || access->kind == PUSH ? (long long)n->depth[access->at] : 0;
	print_when(out, access->when, i);
	const char *sent = *word;
	if (access->kind == PUSH || access->kind == STORE)
		print_muls(out, &sent, access->muls, i, arena);
	const char *address = access->kind == LOAD || access->kind == STORE
	        ? print_address(out, pipe, access, i, arena)
	        : "";
	const char *name = text_format(arena, "%%x%d", i);
	if (access->kind == TAKE)
		text_add(out, "%s = \"stream.pop\"(%s, %%f%d) : (i1, " FIFO ") -> f32\n", name,
		        when, access->at, depth);
	if (access->kind == PUSH)
		text_add(out, "\"stream.push\"(%s, %s, %%f%d) : (i1, f32, " FIFO ") -> ()\n", when,
		        sent, access->at, depth);
	if (access->kind == LOAD)
		text_add(out, "%s = \"memref.load\"(%%p%d, %s) : (memref<?xf32>, index) -> f32\n",
		        name, access->at, address);
	if (access->kind == STORE && access->when != ALWAYS)
		text_add(out,
		        "\"stream.write\"(%s, %s, %%p%d, %s) : (i1, f32, memref<?xf32>, index) -> "
		        "()\n",
		        when, sent, access->at, address);
	else if (access->kind == STORE)
		text_add(out,
		        "\"memref.store\"(%s, %%p%d, %s) : (f32, memref<?xf32>, index) -> ()\n",
		        sent, access->at, address);
	if (access->kind == TAKE || access->kind == LOAD) {
		*word = name;
		print_muls(out, word, access->muls, i, arena);
	}
}

static void print_pipe(
        struct text *out, const struct network *n, const struct pipe *pipe, struct arena *arena)
{
	const char *word = "%z";
	text_add(out,
	        "\"scf.for\"(%%c0, %%rows, %%c1) ({\n^bb0(%%i: index):\n\"scf.for\"(%%c0, "
	        "%%columns, %%c1) ({\n^bb0(%%j: index):\n");
	for (int i = 0; i < pipe->accesses; i++)
		print_access(out, n, pipe, i, &word, arena);
	text_add(out,
	        "\"scf.yield\"() : () -> ()\n}) {stream.pipeline = %lld : i64} : (index, index, "
	        "index) -> ()\n\"scf.yield\"() : () -> ()\n}) : (index, index, index) -> ()\n",
	        (long long)pipe->interval);
}

static bool touches(const struct network *n, int process, bool port, int number_of)
{
	for (int j = 0; j < n->process[process].pipes; j++)
		for (int i = 0; i < n->process[process].pipe[j].accesses; i++) {
			const struct use *access = &n->process[process].pipe[j].access[i];
			if (access->at == number_of &&
			        port == (access->kind == LOAD || access->kind == STORE))
				return true;
		}
	return false;
}

/* Channels and ports of a process, as values, as types, or as arguments. */
static void print_list(struct text *out, const struct network *n, int process, int form)
{
	int count = 0;
	for (int port = 0; port < 2; port++)
		for (int i = 0; i < (port ? n->ports : n->channels); i++) {
			if (!touches(n, process, port, i))
				continue;
			text_add(out, "%s", count++ ? ", " : "");
			if (form == 3)
				text_add(out, "{}");
			if (form == 0 || form == 2)
				text_add(out, "%%%c%d", port ? 'p' : 'f', i);
			text_add(out, "%s", form == 2 ? ": " : "");
			if (form == 3 || form == 0)
				continue;
			if (port)
				text_add(out, "memref<?xf32>");
			else
				text_add(out, FIFO, (long long)n->depth[i]);
		}
}

static void print_process(
        struct text *out, const struct network *n, int process, struct arena *arena)
{
	int pipes = n->process[process].pipes;
	text_add(out, "\"func.func\"() ({\n^bb0(");
	print_list(out, n, process, 2);
	text_add(out, "):\n");
	const struct {
		const char *name;
		int64_t value;
	} constants[] = { { "c0", 0 }, { "c1", 1 }, { "two", 2 },
		{ "rows", n->process[process].pipe[0].rows },
		{ "columns", n->process[process].pipe[0].columns },
		{ "repeats", n->process[process].repeats } };
	for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
		text_add(out, "%%%s = \"arith.constant\"() {value = %lld : index} : () -> index\n",
		        constants[i].name, (long long)constants[i].value);
	text_add(out,
	        "%%t = \"arith.constant\"() {value = true} : () -> i1\n%%z = \"arith.constant\"() "
	        "{value = 0.0 : f32} : () -> f32\n");
	text_add(out, "\"scf.for\"(%%c0, %%repeats, %%c1) ({\n^bb0(%%k: index):\n");
	for (int j = 0; j < pipes; j++)
		print_pipe(out, n, &n->process[process].pipe[j], arena);
	text_add(out,
	        "\"scf.yield\"() : () -> ()\n}) : (index, index, index) -> ()\n\"func.return\"() : "
	        "() -> ()\n}) {arg_attrs = [");
	print_list(out, n, process, 3);
	text_add(out, "], function_type = (");
	print_list(out, n, process, 1);
	text_add(out,
	        ") -> (), stream.die = 0 : i64, stream.process, stream.style = \"%s\", sym_name = "
	        "\"k%d\", sym_visibility = \"private\"} : () -> ()\n",
	        n->process[process].flushes ? "flp" : "stp", process);
}

static const char *print_network(const struct network *n, struct arena *arena)
{
	struct text out = text_new(arena);
	text_add(&out, "\"builtin.module\"() ({\n\"func.func\"() ({\n^bb0(");
	for (int i = 0; i < n->ports; i++)
		text_add(&out, "%s%%p%d: memref<?xf32>", i ? ", " : "", i);
	text_add(&out, "):\n");
	for (int i = 0; i < n->channels; i++)
		text_add(&out, "%%f%d = \"stream.fifo\"() {name = \"f%d\"} : () -> " FIFO "\n", i,
		        i, (long long)n->depth[i]);
	for (int i = 0; i < n->processes; i++) {
		text_add(&out, "\"func.call\"(");
		print_list(&out, n, i, 0);
		text_add(&out, ") {callee = @k%d} : (", i);
		print_list(&out, n, i, 1);
		text_add(&out, ") -> ()\n");
	}
	text_add(&out, "\"func.return\"() : () -> ()\n}) {arg_attrs = [");
	for (int i = 0; i < n->ports; i++)
		text_add(&out,
		        "%s{stream.buffer = \"b%d\", stream.channel = %d : i64, stream.direction = "
		        "\"%s\", stream.port = \"m%d\"}",
		        i ? ", " : "", i, n->port[i].memory, n->port[i].write ? "write" : "read",
		        i);
	text_add(&out, "], function_type = (");
	for (int i = 0; i < n->ports; i++)
		text_add(&out, "%smemref<?xf32>", i ? ", " : "");
	text_add(&out,
	        ") -> (), stream.buffers = [], stream.inputs = [], stream.outputs = [], sym_name = "
	        "\"main\"} : () -> ()\n");
	for (int i = 0; i < n->processes; i++)
		print_process(&out, n, i, arena);
	text_add(&out, "}) {stream.level = \"hardware\"} : () -> ()\n");
	return out.data;
}

/* --- comparing */

/* A word counts from the cycle after its push to the end of the cycle after its pop. */
static int64_t most_of(const struct slow *s, int channel)
{
	int64_t most = 0;
	for (int64_t i = 0, gone = 0; i < s->pushed[channel]; i++) {
		while (gone < s->popped[channel] && s->pop[channel][gone] < s->push[channel][i])
			gone++;
		most = i + 1 - gone > most ? i + 1 - gone : most;
	}
	return most;
}

static void check_samples(const struct cycle_result *flow)
{
	for (int i = 0; i < flow->channels; i++) {
		int64_t most = 0;
		for (int j = 0; j < flow->samples; j++)
			most = flow->channel[i].occupancy[j] > most ? flow->channel[i].occupancy[j]
			                                            : most;
		assert_true(most <= flow->channel[i].most && most >= flow->channel[i].most - 1);
	}
	for (int i = 0; i < flow->ports; i++) {
		int64_t bytes = 0;
		for (int j = 0; j < flow->samples; j++)
			bytes += flow->port[i].moved[j];
		assert_int_equal(bytes, flow->port[i].bytes);
	}
	for (int i = 0; i < flow->processes; i++) {
		const struct cycle_process_result *process = &flow->process[i];
		int64_t sum[CAUSES] = { 0 };
		for (int cause = 0; cause < CAUSES; cause++)
			for (int j = 0; j < flow->samples; j++)
				sum[cause] += process->waited[cause][j];
		assert_int_equal(sum[CAUSE_INPUT], process->input);
		assert_int_equal(sum[CAUSE_OUTPUT], process->output);
		assert_int_equal(sum[CAUSE_MEMORY], process->memory);
		if (process->ended)
			assert_int_equal(sum[CAUSE_NONE] + process->active, flow->cycles);
	}
}

static int deadlocks, contended, remedies;

static void compare(
        const struct slow *s, const struct cycle_result *flow, enum cycle_outcome outcome)
{
	bool ended = all_ended(s);
	assert_int_equal(outcome, ended ? CYCLE_DONE : CYCLE_DEADLOCK);
	deadlocks += !ended;
	for (int i = 0; i < s->n->channels; i++) {
		assert_int_equal(flow->channel[i].words, s->pushed[i]);
		assert_int_equal(flow->channel[i].most, most_of(s, i));
	}
	for (int i = 0; i < s->n->processes; i++) {
		assert_int_equal(flow->process[i].ended, s->process[i].phase == 4);
		if (flow->process[i].ended)
			assert_int_equal(flow->process[i].end, s->process[i].end);
	}
	check_samples(flow);
}

/* With the depth that is called the least all processes end, with one less they do not. */
static void check_remedies(
        struct cycle_network *network, const struct slow *s, const struct cycle_result *flow)
{
	struct cycle_options options = {
		.launches = s->n->launches, .gap = s->n->gap, .overlap = s->n->overlap
	};
	for (int i = 0; i < flow->cycle; i++) {
		int64_t depth[CHANNELS_MOST];
		int64_t needed = flow->wait[i].needed;
		struct cycle_result other;
		for (int c = 0; c < s->n->channels; c++)
			depth[c] = flow->channel[c].depth;
		options.depth = depth;
		depth[flow->wait[i].channel] = needed;
		if (!flow->wait[i].room)
			continue;
		remedies += needed > 0;
		assert_int_equal(
		        cycle_run(network, &options, &other), needed ? CYCLE_DONE : CYCLE_DEADLOCK);
		depth[flow->wait[i].channel] = needed - 1;
		assert_true(needed <= 1 || cycle_run(network, &options, &other) == CYCLE_DEADLOCK);
	}
}

static void check_network(const struct platform *platform, const struct network *n)
{
	struct design_case c;
	struct cycle_result flow;
	struct guard guard;
	struct arena *arena = arena_new(&guard);
	int64_t depth[CHANNELS_MOST];
	case_start(&c, print_network(n, arena));
	struct cycle_network *network = cycle_open(c.arena, platform, c.module);
	assert_non_null(network);
	assert_int_equal(cycle_channels(network), n->channels);
	for (int round = 0; round < 3; round++) {
		struct slow *s = ARENA_NEW(arena, struct slow);
		s->n = n;
		s->platform = platform;
		s->word = (int64_t)(4 /
		                (platform->channel_gbps * platform->channel_efficiency * 1e3 /
		                        platform->clock_mhz) *
		                PARTS +
		        0.5);
		for (int i = 0; i < n->channels; i++) {
			depth[i] = round == 1 ? number(0, 4) : n->depth[i];
			s->depth[i] = depth[i] ? depth[i] : WORDS_MOST;
		}
		run_slow(s);
		struct cycle_options options = { .arena = arena,
			.launches = n->launches,
			.gap = n->gap,
			.overlap = n->overlap,
			.samples = 32,
			.depth = round == 1 ? depth : NULL,
			.path = round == 2,
			.remedy = round < 2 };
		compare(s, &flow, cycle_run(network, &options, &flow));
		if (options.remedy)
			check_remedies(network, s, &flow);
	}
	contended += n->ports > 2;
	arena_free(arena);
	case_finish(&c);
}

static void same_as_cycle_by_cycle(void **state)
{
	const char *mode = getenv("STC_TEST_MODE");
	int count = mode && !strcmp(mode, "long") ? 5000 : 300;
	struct guard guard;
	struct diag diag = { 0 };
	(void)state;
	struct arena *arena = arena_new(&guard);
	diag.arena = arena;
	struct platform platform = *platform_load(arena, &diag, "u55c");
	platform.memory_latency = 20;
	platform.burst = 4;
	platform.outstanding = 2;
	platform.channels = 2;
	platform.channel_gbps = 1.0;
	for (int i = 0; i < count; i++) {
		struct network n = random_network(&platform);
		check_network(&platform, &n);
	}
	print_message("%d networks, %d runs that do not end, %d depths that end one, %d networks "
	              "whose ports contend\n",
	        count, deadlocks, remedies, contended);
	assert_true(deadlocks > 0 && remedies > 0 && contended > 0);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(same_as_cycle_by_cycle) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
