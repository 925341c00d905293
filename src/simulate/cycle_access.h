/* The inner loop of the cycle simulator: one access of one iteration to a channel or a memory
 * port.  Inlined because it runs for every word of a launch. */
#ifndef STC_CYCLE_ACCESS_H
#define STC_CYCLE_ACCESS_H
#include "simulate/cycle_network.h"

#define CYCLE_INLINE static inline __attribute__((always_inline)) /* called for every word */

/* Bits of all conditions at this value of the innermost counter.  Value 0 begins a row: the outer
 * counters may have changed, so the row is evaluated anew. */
static inline uint64_t cycle_condition_bits(struct cycle_condition *condition, int64_t innermost)
{
	if (!condition->when.count)
		return 0;
	if (!innermost)
		cycle_condition_row(condition);
	return condition->row[condition->trips > 1 ? innermost : 0];
}

/* An iteration enters the pipeline: stores its condition bits and advances the counters. */
static inline void cycle_issue(struct cycle_pipe *pipe)
{
	int64_t slot = pipe->issued++ & pipe->mask;
	if (!pipe->condition.when.count)
		return;
	pipe->bits[slot] = cycle_condition_bits(&pipe->condition, pipe->inner);
	if (++pipe->inner == pipe->trips[pipe->levels - 1])
		cycle_next_row(pipe);
}

/* Does this iteration, which is in flight, make the access? */
static inline bool cycle_is_made(
        const struct cycle_pipe *pipe, const struct cycle_access *access, int64_t iteration)
{
	return access->bit < 0 || (pipe->bits[iteration & pipe->mask] >> access->bit & 1);
}

/* Raises `time` to `known` and remembers the access that did so. */
static inline void cycle_not_before(int64_t *time, const struct cycle_access **why, int64_t known,
        const struct cycle_access *access)
{
	if (known > *time) {
		*time = known;
		*why = access;
	}
}

/* Cycles, rounded up, of a time in 1 / MEMORY_FRACTION cycle. */
static inline int64_t cycle_from_parts(int64_t parts)
{
	return (parts + MEMORY_FRACTION - 1) / MEMORY_FRACTION;
}

CYCLE_INLINE bool cycle_port_time(struct cycle_network *network, const struct cycle_access *access,
        int64_t *time, const struct cycle_access **why)
{
	struct cycle_port *port = access->port;
	if (!port->left && !cycle_port_first(network, port))
		return false;
	cycle_not_before(time, why, cycle_from_parts(port->next), access);
	return true;
}

CYCLE_INLINE void cycle_port_sample(
        struct cycle_network *network, const struct cycle_port *port, int64_t time)
{
	if (!network->samples)
		return;
	cycle_sample_reach(network, time);
	port->moved[time >> network->sample_bits] += port->bytes;
}

CYCLE_INLINE void cycle_port_make(
        struct cycle_network *network, const struct cycle_access *access, int64_t time)
{
	struct cycle_port *port = access->port;
	port->next += port->write ? 0 : port->word;
	port->words++;
	if (port->write && (network->first_output < 0 || time < network->first_output))
		network->first_output = time;
	cycle_port_sample(network, port, time);
	if (!--port->left)
		cycle_port_end_burst(network, port, time);
}

/* Raises `time` to the cycle in which the access can be made.  false: that cycle is not known yet;
 * the process is marked as waiting. */
CYCLE_INLINE bool cycle_access_time(struct cycle_network *network, struct cycle_process *process,
        const struct cycle_access *access, int64_t *time, const struct cycle_access **why)
{
	struct cycle_channel *channel = access->channel;
	if (!channel)
		return cycle_port_time(network, access, time, why) ||
		        cycle_unknown(process, access);
	if (access->kind == ACCESS_TAKE || access->kind == ACCESS_ACQUIRE_READ) {
		if (channel->popped == channel->pushed)
			return cycle_unknown(process, access);
		cycle_not_before(
		        time, why, channel->full_at[channel->popped & channel->mask], access);
	} else if (access->kind == ACCESS_PUSH || access->kind == ACCESS_ACQUIRE_WRITE) {
		if (channel->pushed - channel->popped == channel->limit &&
		        cycle_full(network, channel))
			return cycle_unknown(process, access);
		if (channel->pushed >= channel->depth)
			cycle_not_before(time, why,
			        channel->free_at[(channel->pushed - channel->depth) &
			                channel->mask],
			        access);
	}
	return true;
}

CYCLE_INLINE void cycle_notify(
        struct cycle_network *network, struct cycle_channel *channel, enum cycle_side side)
{
	enum cycle_side other = cycle_other_side(side);
	if (channel->waiting[other]) {
		channel->waiting[other] = false;
		cycle_wake(network, channel->process[other]);
	}
}

CYCLE_INLINE void cycle_access_make(
        struct cycle_network *network, const struct cycle_access *access, int64_t time)
{
	struct cycle_channel *channel = access->channel;
	if (!channel) {
		cycle_port_make(network, access, time);
	} else if (access->kind == ACCESS_TAKE || access->kind == ACCESS_RELEASE_READ) {
		channel->free_at[channel->popped++ & channel->mask] = time + 1;
		if (channel->popped == channel->image_words)
			cycle_image_complete(network, channel, time);
		cycle_notify(network, channel, CYCLE_READER);
	} else if (access->kind == ACCESS_PUSH || access->kind == ACCESS_RELEASE_WRITE) {
		channel->full_at[channel->pushed++ & channel->mask] = time + channel->passes;
		cycle_notify(network, channel, CYCLE_WRITER);
	}
}

static inline bool cycle_must_yield(struct cycle_network *network, struct cycle_process *process)
{
	process->yielded = --network->fuel < 0;
	return process->yielded;
}

static inline void cycle_ask(struct cycle_network *network, const struct cycle_pipe *pipe,
        const struct cycle_access *access, int64_t iteration, int64_t time)
{
	if (access->kind == ACCESS_LOAD && iteration >= 0 && iteration < pipe->iterations)
		cycle_port_ask(network, access->port, time);
}
#endif
