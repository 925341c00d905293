/* Memory ports of the cycle simulator.
 *
 * Words at consecutive addresses travel in bursts of at most `burst` words, where the emitted loop
 * is such that the HLS compiler finds them (predict/port_run.h).  A request names one
 * burst; a port has at most `outstanding` bursts in flight.  A memory channel transfers bursts in
 * the order of their request cycles (ties: order of main's ports), each as a whole, word after
 * word at the channel's bandwidth.
 *   Reading: a word transferred in cycle t reaches its op's result in t + latency, which is part
 *   of the pipeline's depth.  Where all addresses are known when the loop begins, requests run
 *   ahead of the loop, one a cycle; a burst is over when its last word has been used.  Otherwise
 *   a request is made when the iteration that uses its first word reaches the access, whatever
 *   else it waits for.
 *   Writing: a request is made when the last word of its burst was written; a burst is over
 *   `latency` cycles after its last word was transferred; a loop ends when all bursts are over.
 *
 * A request to a channel with several ports is granted once no earlier one can come: every other
 * port has made a later request or its process is at a later time, or all processes wait.  In the
 * last case the earliest request is safe, since all that it makes possible happens after it.  So
 * are further requests before the cycle in which a process woken by a pending one can make
 * another: data read takes a latency to its op's result, data written one to arrive. */
#include "predict/bundle.h"
#include "simulate/cycle_access.h"

#define LEVELS_MOST 64 /* loops of a nest that bursts are looked for in */

/* --- building */

/* An address as a linear form in loop counters. */
struct linear {
	int levels;
	int64_t *const *counter, *factor; /* [levels] */
	/* of the loop: values defined outside it are known when it begins */
	const struct block *body;
	bool other; /* a further term is not known when the loop begins */
};

static void add_terms(struct linear *sum, const struct value *value, int64_t factor)
{
	const struct attr *map =
	        value->def && value->def->code == OP_APPLY ? attr_get(value->def, KEY_MAP) : NULL;
	for (int i = 0; !value->def && i < sum->levels; i++)
		sum->factor[i] += value->data == sum->counter[i] ? factor : 0;
	if (!value->def || value->def->parent != sum->body ||
	        attr_get(value->def, KEY_STREAM_WINDOW_GAP))
		return;
	if (!map || map->kind != ATTR_MAP || map->map.results != 1 ||
	        map->map.dims != value->def->operands) {
		sum->other = true;
		return;
	}
	for (int i = 0; i < value->def->operands; i++)
		add_terms(sum, value->def->operand[i], factor * affine_at(map->map, 0, i));
}

/* Words at consecutive addresses: the trips of the inner loops as far as each loop's stride is
 * the number of words inside it. */
static int64_t words_in_a_row(const struct linear *sum, const int64_t *trips)
{
	int64_t run = 1;
	for (int i = sum->levels - 1; i >= 0; i--) {
		if (trips[i] > 1 && sum->factor[i] != run)
			break;
		run = cycle_multiply_counts(run, trips[i]);
	}
	return run;
}

struct cycle_requests cycle_requests_of(const struct cycle_port *port, const struct op *op,
        int64_t latency, const struct cycle_pipe *loop)
{
	int64_t factor[LEVELS_MOST] = { 0 };
	int64_t words = 1;
	int64_t burst = port->burst;
	bool load = op->code == OP_MEMREF_LOAD;
	int first = op_access(op) + 1;
	int levels = loop ? loop->levels : 0;
	int known = levels < LEVELS_MOST ? levels : LEVELS_MOST;
	struct linear sum = { .levels = known, .factor = factor, .body = op->parent };
	if (loop)
		sum.counter = loop->counter + (levels - known);
	if (op->operands > first)
		add_terms(&sum, op->operand[first], 1);
	for (int i = 0; i < levels; i++)
		words = cycle_multiply_counts(words, loop->trips[i]);
	struct cycle_requests requests = { .run = 1, .prefetches = load && !sum.other };
	if (loop && op->code != OP_WRITE && !loop->counts_by_hand)
		requests.run = words_in_a_row(&sum, loop->trips + (levels - known));
	if (!load)
		requests.lookahead = latency;
	requests.run = requests.run < 1 ? 1 : requests.run;
	requests.bursts_a_run = (requests.run + burst - 1) / burst;
	requests.bursts = words / requests.run * requests.bursts_a_run;
	return requests;
}

struct cycle_port *cycle_port_new(
        struct cycle_network *network, struct cycle_process *process, int number)
{
	struct cycle_port *port = ARENA_NEW(network->arena, struct cycle_port);
	port->process = process;
	port->number = number;
	port->burst = bundle_burst(network->main, number, network->platform->burst);
	VEC_PUSH(network->arena, &network->ports, port);
	return port;
}

struct cycle_port *cycle_port_twin(struct cycle_network *network, struct cycle_port *port)
{
	if (!port->twin) {
		port->twin = cycle_port_new(network, port->process, port->number);
		port->twin->of = port->of ? port->of : port;
		port->twin->write = port->write;
	}
	return port->twin;
}

static bool build_port(struct cycle_network *network, struct cycle_port *port)
{
	const struct platform *platform = network->platform;
	double rate = platform_channel_rate(platform);
	const struct type *word = network->main->region[0]->argument[port->number]->type->element;
	const struct attr *channel =
	        function_argument_attr(network->main, port->number, KEY_STREAM_CHANNEL);
	const struct attr *name =
	        function_argument_attr(network->main, port->number, KEY_STREAM_PORT);
	port->name = name && name->text ? name->text : "";
	if (channel &&
	        (channel->kind != ATTR_INTEGER || channel->integer < 0 ||
	                channel->integer >= platform->channels)) {
		diag_error(network->module->diag, network->main->location,
		        "port %s is on memory channel %lld", port->name,
		        (long long)channel->integer);
		return diag_note(network->module->diag, "%s has the channels 0 to %d",
		        platform->name, platform->channels - 1);
	}
	port->channel = channel ? (int)channel->integer : 0;
	port->memory = &network->memory[port->channel];
	port->bytes = (type_bits(word) + 7) / 8;
	port->word = (int64_t)((double)port->bytes / rate * MEMORY_FRACTION + 0.5);
	port->outstanding = bundle_outstanding(network->main, port->number, platform->outstanding);
	port->latency = platform->memory_latency;
	for (port->mask = 1; port->mask < port->outstanding; port->mask *= 2)
		;
	port->request = ARENA_ARRAY(network->arena, int64_t, port->mask);
	port->start = ARENA_ARRAY(network->arena, int64_t, port->mask);
	port->mask--;
	VEC_PUSH(network->arena, &port->memory->ports, port);
	return true;
}

/* Sorts the ports by main's arguments. */
bool cycle_memory_build(struct cycle_network *network)
{
	struct arena *arena = network->arena;
	for (size_t i = 1; i < network->ports.count; i++) {
		struct cycle_port *moved = network->ports.data[i];
		size_t j = i;
		for (; j && network->ports.data[j - 1]->number > moved->number; j--)
			network->ports.data[j] = network->ports.data[j - 1];
		network->ports.data[j] = moved;
	}
	for (size_t i = 0; i < network->ports.count; i++)
		if (!build_port(network, network->ports.data[i]))
			return false;
	for (size_t i = 0; i < network->ports.count; i++) {
		struct cycle_port *port = network->ports.data[i];
		if (port->memory->ports.count > 1)
			VEC_PUSH(arena, &port->process->ports, port);
	}
	return true;
}

/* --- requests */

static int64_t length_of(const struct cycle_port *port, int64_t burst)
{
	const struct cycle_requests *requests = port->requests;
	bool last = burst % requests->bursts_a_run == requests->bursts_a_run - 1;
	return last ? requests->run - (requests->bursts_a_run - 1) * port->burst : port->burst;
}

static void grant(struct cycle_network *network, struct cycle_port *port)
{
	int64_t slot = port->granted & port->mask;
	int64_t wanted = port->request[slot] * MEMORY_FRACTION;
	struct cycle_memory *memory = port->memory;
	port->start[slot] = wanted > memory->free ? wanted : memory->free;
	memory->free = port->start[slot] + length_of(port, port->granted) * port->word;
	port->granted++;
	if (port->waiting) {
		port->waiting = false;
		cycle_wake(network, port->process);
	}
}

static bool is_pending(const struct cycle_port *port)
{
	return port->granted < port->posted;
}

static int64_t request_of(const struct cycle_port *port)
{
	return port->request[port->granted & port->mask];
}

static bool comes_first(int64_t time, const struct cycle_port *port, int64_t other_time,
        const struct cycle_port *other)
{
	return time < other_time || (time == other_time && port->number < other->number);
}

static struct cycle_port *first_pending(struct cycle_port *const *ports, size_t count)
{
	struct cycle_port *first = NULL;
	for (size_t i = 0; i < count; i++) {
		struct cycle_port *port = ports[i];
		if (is_pending(port) &&
		        (!first || comes_first(request_of(port), port, request_of(first), first)))
			first = port;
	}
	return first;
}

static bool is_safe(const struct cycle_network *network, const struct cycle_port *port)
{
	for (size_t i = 0; i < port->memory->ports.count; i++) {
		const struct cycle_port *other = port->memory->ports.data[i];
		bool over = other->process->ended &&
		        other->process->launch + 1 >= network->options.launches;
		int64_t bound =
		        other->last > other->process->bound ? other->last : other->process->bound;
		if (other != port && !over && !is_pending(other) &&
		        !comes_first(request_of(port), port, bound, other))
			return false;
	}
	return true;
}

void cycle_memory_grant(struct cycle_network *network, struct cycle_memory *memory)
{
	for (struct cycle_port *port;
	        (port = first_pending(memory->ports.data, memory->ports.count)) &&
	        is_safe(network, port);)
		grant(network, port);
}

/* All processes wait: no further request will come before this cycle, because each would follow
 * from a pending one. */
static int64_t next_unknown(const struct cycle_network *network)
{
	int64_t next = INT64_MAX;
	for (size_t i = 0; i < network->ports.count; i++) {
		const struct cycle_port *port = network->ports.data[i];
		int64_t follows =
		        is_pending(port) ? request_of(port) + port->requests->lookahead : INT64_MAX;
		next = follows < next ? follows : next;
	}
	return next;
}

bool cycle_memory_grant_first(struct cycle_network *network)
{
	struct cycle_port *first = first_pending(network->ports.data, network->ports.count);
	struct cycle_port *port;
	int64_t end = next_unknown(network);
	if (!first)
		return false;
	grant(network, first);
	for (size_t i = 0; i < network->ports.count; i++) {
		const struct cycle_memory *memory = network->ports.data[i]->memory;
		while ((port = first_pending(memory->ports.data, memory->ports.count)) &&
		        request_of(port) < end)
			grant(network, port);
	}
	return true;
}

/* Posts a request at `time`, at least one cycle after the last one. */
static void post(struct cycle_network *network, struct cycle_port *port, int64_t time)
{
	port->last = port->last >= time ? port->last + 1 : time;
	port->request[port->posted++ & port->mask] = port->last;
	if (port->memory->ports.count == 1)
		grant(network, port);
}

void cycle_port_begin(struct cycle_network *network, struct cycle_port *port,
        const struct cycle_requests *requests, int64_t time)
{
	port->requests = requests;
	port->posted = port->granted = port->used = port->left = port->next = 0;
	while (requests->prefetches && port->posted < requests->bursts &&
	        port->posted < port->outstanding)
		post(network, port, time);
}

/* --- accesses */

static bool wait_for(struct cycle_port *port)
{
	port->waiting = true;
	return false;
}

/* Cycle in which a burst that was written has arrived. */
static int64_t arrival(const struct cycle_port *port, int64_t burst)
{
	return cycle_from_parts(
	               port->start[burst & port->mask] + length_of(port, burst) * port->word) +
	        port->latency;
}

void cycle_port_ask(struct cycle_network *network, struct cycle_port *port, int64_t time)
{
	if (!port->requests->prefetches && !port->left && port->posted == port->used)
		post(network, port, time);
}

static bool first_word_to_read(struct cycle_network *network, struct cycle_port *port)
{
	if (port->granted <= port->used) {
		cycle_memory_grant(network, port->memory);
		if (port->granted <= port->used)
			return wait_for(port);
	}
	port->next = port->start[port->used & port->mask];
	port->left = length_of(port, port->used);
	return true;
}

static bool first_word_to_write(struct cycle_network *network, struct cycle_port *port)
{
	int64_t before = port->used - port->outstanding;
	if (before >= port->granted) {
		cycle_memory_grant(network, port->memory);
		if (before >= port->granted)
			return wait_for(port);
	}
	port->next = before >= 0 ? arrival(port, before) * MEMORY_FRACTION : 0;
	port->left = length_of(port, port->used);
	return true;
}

bool cycle_port_first(struct cycle_network *network, struct cycle_port *port)
{
	return port->write ? first_word_to_write(network, port) : first_word_to_read(network, port);
}

/* After the last word of a burst: a reading port may request another one, a writing port requests
 * the transfer of this one. */
void cycle_port_end_burst(struct cycle_network *network, struct cycle_port *port, int64_t time)
{
	port->used++;
	if (port->write)
		post(network, port, time + 1);
	else if (port->requests->prefetches && port->posted < port->requests->bursts)
		post(network, port, time + port->latency);
}

bool cycle_port_end(struct cycle_network *network, struct cycle_process *process,
        const struct cycle_access *access)
{
	struct cycle_port *port = access->port;
	if (!port->write || !port->posted)
		return true;
	if (port->granted < port->posted)
		cycle_memory_grant(network, port->memory);
	if (port->granted < port->posted)
		return wait_for(port);
	int64_t arrived = arrival(port, port->posted - 1);
	if (arrived <= process->time)
		return true;
	cycle_log_wait(network, process, access, process->time, arrived);
	cycle_log_stall(network, access, process->time, arrived);
	process->time = arrived;
	return true;
}
