/* Runs the process network of the hardware level: the instructions, and a round-robin scheduler
 * that runs each ready process until it blocks.  Every run has the same results. */
#include "evaluate/eval_network.h"
#include <string.h>

static int64_t number(const void *registers)
{
	return *(const int64_t *)registers;
}

static void wake(struct network *network, struct channel *channel, enum side side)
{
	if (!channel->waiting[side])
		return;
	channel->waiting[side] = false;
	size_t last = (network->first_ready + network->ready_count++) % network->processes.count;
	network->ready[last] = channel->process[side];
}

static const struct instruction *wait(
        struct kahn_process *process, struct channel *channel, enum side side)
{
	channel->waiting[side] = true;
	process->waits_for = channel;
	process->side = side;
	return NULL;
}

static const struct instruction *fail(struct network *network)
{
	network->failed = true;
	return NULL;
}

static char *slot(const struct channel *channel, int64_t index)
{
	int64_t at = channel->head + index;
	return channel->data +
	        (at < channel->depth ? at : at - channel->depth) * channel->slot_bytes;
}

static void drop_first(struct network *network, struct channel *channel)
{
	channel->head = channel->head + 1 < channel->depth ? channel->head + 1 : 0;
	channel->count--;
	wake(network, channel, SIDE_WRITE);
}

static void add_last(struct network *network, struct channel *channel)
{
	channel->count++;
	wake(network, channel, SIDE_READ);
}

const struct instruction *do_scalar(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	(void)process;
	scalar_run(&at->op, at->out, at->in, at->count);
	return at + 1;
}

const struct instruction *do_broadcast(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	(void)process;
	scalar_fill(at->type, at->out, scalar_get(at->type, at->in[0], 0), at->count);
	return at + 1;
}

const struct instruction *do_tree(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	(void)process;
	memcpy(at->out, at->in[0], (size_t)(at->count * at->op.size));
	scalar_tree(&at->op, at->out, at->count);
	return at + 1;
}

/* Sums of products of one x with each w.  Of two x in one DSP, the second comes less one where the
 * first is negative (ir/dot.h); `first` is that first x, or NULL, and the correction is undone. */
const struct instruction *do_dot(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	(void)process;
	const int64_t *x = at->in[0];
	const int64_t *first = at->part ? at->part[0] : NULL;
	for (int i = 0; i < at->parts; i++) {
		const int64_t *w = at->in[1 + i];
		int64_t sum = 0;
		for (int64_t k = 0; k < at->count; k++)
			sum += (x[k] + (first && first[k] < 0)) * w[k];
		((int64_t *)at->out)[i] = sum;
	}
	return at + 1;
}

/* A word of x with a word of w that holds `parts` columns: one sum per column. */
const struct instruction *do_dot_across(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	(void)process;
	const int64_t *x = at->in[0];
	const int64_t *w = at->in[1];
	int64_t *y = at->out;
	for (int64_t j = 0; j < at->parts; j++) {
		y[j] = 0;
		for (int64_t k = 0; k < at->count; k++)
			y[j] += x[k] * w[k * at->parts + j];
	}
	return at + 1;
}

const struct instruction *do_apply(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	(void)process;
	int64_t sum = at->factor[at->parts];
	for (int i = 0; i < at->parts; i++)
		sum += at->factor[i] * number(at->part[i]);
	*(int64_t *)at->out = sum;
	return at + 1;
}

const struct instruction *do_join(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	(void)process;
	char *out = at->out;
	for (int i = 0; i < at->parts; i++) {
		size_t bytes = (size_t)(at->factor[i] * scalar_register_bytes(at->type));
		memcpy(out, at->part[i], bytes);
		out += bytes;
	}
	return at + 1;
}

static bool lane_exists(
        struct network *network, const struct instruction *at, int64_t lane, int64_t lanes)
{
	if (lane >= 0 && lane < lanes)
		return true;
	diag_error(network->e->module->diag, at->source->location, "part %lld of a word of %lld",
	        (long long)lane, (long long)lanes);
	return false;
}

/* Part `in[1]` of a word of factor[0] lanes: `count` lanes.  vector.extractelement has count 1. */
const struct instruction *do_split(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)process;
	int64_t part = number(at->in[1]);
	int64_t size = scalar_register_bytes(at->type);
	if (!lane_exists(network, at, part, at->factor[0] / at->count))
		return fail(network);
	memcpy(at->out, (const char *)at->in[0] + part * at->count * size,
	        (size_t)(at->count * size));
	return at + 1;
}

const struct instruction *do_set_lane(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)process;
	int64_t lane = number(at->in[2]);
	int64_t size = scalar_register_bytes(at->type);
	if (!lane_exists(network, at, lane, at->count))
		return fail(network);
	memcpy(at->out, at->in[1], (size_t)(at->count * size));
	memcpy((char *)at->out + lane * size, at->in[0], (size_t)size);
	return at + 1;
}

const struct instruction *do_pop(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	struct channel *channel = at->channel;
	if (!number(at->in[0]))
		return at + 1;
	if (!channel->count)
		return wait(process, channel, SIDE_READ);
	memcpy(at->out, slot(channel, 0), (size_t)channel->slot_bytes);
	drop_first(network, channel);
	return at + 1;
}

const struct instruction *do_push(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	struct channel *channel = at->channel;
	if (!number(at->in[0]))
		return at + 1;
	if (channel->count == channel->depth)
		return wait(process, channel, SIDE_WRITE);
	memcpy(slot(channel, channel->count), at->in[1], (size_t)channel->slot_bytes);
	add_last(network, channel);
	return at + 1;
}

const struct instruction *do_acquire(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	struct channel *channel = at->channel;
	(void)network;
	if (at->side == SIDE_READ ? !channel->count : channel->count == channel->depth)
		return wait(process, channel, at->side);
	at->array->data = slot(channel, at->side == SIDE_READ ? 0 : channel->count);
	return at + 1;
}

const struct instruction *do_release(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)process;
	if (at->side == SIDE_READ)
		drop_first(network, at->channel);
	else
		add_last(network, at->channel);
	return at + 1;
}

static bool word_address(struct network *network, const struct kahn_process *process,
        const struct instruction *at, int64_t *word)
{
	const struct array *array = at->array;
	*word = 0;
	for (int d = 0; d < at->parts; d++) {
		int64_t index = number(at->part[d]);
		int64_t extent = at->parts == 1 ? array->words : array->shape[d];
		if (index < 0 || index >= extent)
			return diag_error(network->e->module->diag, at->source->location,
			        "process %s is at index %lld in dim %d of %s, which has %lld",
			        process->name, (long long)index, d, array->name, (long long)extent);
		*word = *word * extent + index;
	}
	return true;
}

const struct instruction *do_load(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	int64_t word;
	if (!word_address(network, process, at, &word))
		return fail(network);
	scalar_read(at->type, at->out, at->array->data, word * at->count, 1, at->count);
	if (at->array->distance_claim)
		claim_load(process, at, word);
	return at + 1;
}

const struct instruction *do_store(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	int64_t word;
	if (!word_address(network, process, at, &word))
		return fail(network);
	if (at->array->distance_claim)
		claim_store(process, at, word);
	scalar_write(at->type, at->in[0], at->array->data, word * at->count, 1, at->count);
	return at + 1;
}

/* in: condition, word. */
const struct instruction *do_write(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	int64_t word;
	if (!number(at->in[0]))
		return at + 1;
	if (!word_address(network, process, at, &word))
		return fail(network);
	scalar_write(at->type, at->in[1], at->array->data, word * at->count, 1, at->count);
	return at + 1;
}

/* in: lower bound, upper bound, step; out: the counter. */
const struct instruction *do_loop(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	*(int64_t *)at->out = number(at->in[0]);
	return number(at->in[0]) < number(at->in[1]) ? at + 1 : process->program.data + at->target;
}

const struct instruction *do_next(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	int64_t *counter = at->out;
	*counter += number(at->in[2]);
	return *counter < number(at->in[1]) ? process->program.data + at->target : at + 1;
}

/* Before a pipeline begins: all iterations so far have drained. */
const struct instruction *do_drain(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	process->drained = process->iteration;
	return at + 1;
}

const struct instruction *do_iterate(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	process->iteration++;
	return at + 1;
}

const struct instruction *do_end(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	(void)network;
	(void)at;
	process->at = NULL;
	return NULL;
}

static void resume(struct network *network, struct kahn_process *process)
{
	const struct instruction *at = process->at;
	process->waits_for = NULL;
	for (const struct instruction *next = at; next;) {
		at = next;
		next = at->run(network, process, at);
	}
	if (process->at)
		process->at = at;
}

static const char *describe_wait(struct network *network, const struct kahn_process *process)
{
	const struct channel *channel = process->waits_for;
	bool reads = process->side == SIDE_READ;
	const char *item = reads ? "a word of" : "space in";
	const char *fill = reads ? "empty" : "full";
	return text_format(network->e->arena, "%s waits for %s %s (%s, depth %lld)", process->name,
	        item, channel->name, fill, (long long)channel->depth);
}

static struct kahn_process *waits_on(const struct kahn_process *process)
{
	const struct channel *channel = process->waits_for;
	return channel->process[process->side == SIDE_READ ? SIDE_WRITE : SIDE_READ];
}

/* A process of the cycle in which the chain of waits from `process` ends, or, if it ends at a
 * process that does not wait, the last one that does. */
static struct kahn_process *find_wait_cycle(
        const struct network *network, struct kahn_process *process)
{
	for (size_t i = 0; i < network->processes.count; i++) {
		struct kahn_process *next = waits_on(process);
		if (!next || !next->at)
			return process;
		process = next;
	}
	return process;
}

static bool report_deadlock(struct network *network, struct kahn_process *stuck)
{
	struct kahn_process *start = find_wait_cycle(network, stuck);
	struct kahn_process *process = start;
	struct text text = text_new(network->e->arena);
	do {
		text_add(&text, "%s%s", process == start ? "" : "; ",
		        describe_wait(network, process));
		struct kahn_process *next = waits_on(process);
		if (!next || !next->at) {
			text_add(&text, ", whose other end %s",
			        next ? "has ended" : "does not exist");
			break;
		}
		process = next;
	} while (process != start);
	return diag_error(network->e->module->diag, NOWHERE, "deadlock: %s", text.data);
}

static bool check_finished(struct network *network)
{
	for (size_t i = 0; i < network->processes.count; i++)
		if (network->processes.data[i]->at)
			return report_deadlock(network, network->processes.data[i]);
	for (size_t i = 0; i < network->channels.count; i++) {
		const struct channel *channel = network->channels.data[i];
		if (channel->count)
			return diag_error(network->e->module->diag, NOWHERE,
			        "%lld %s left in channel %s at the end", (long long)channel->count,
			        channel->blocks ? "blocks are" : "words are", channel->name);
	}
	return true;
}

bool network_run(struct network *network)
{
	size_t count = network->processes.count;
	network->ready = ARENA_ARRAY(network->e->arena, struct kahn_process *, count + 1);
	for (size_t i = 0; i < count; i++)
		network->ready[i] = network->processes.data[i];
	network->ready_count = count;
	while (network->ready_count && !network->failed) {
		struct kahn_process *process = network->ready[network->first_ready];
		network->first_ready = (network->first_ready + 1) % count;
		network->ready_count--;
		resume(network, process);
	}
	return !network->failed && check_finished(network);
}
