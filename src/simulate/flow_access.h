/* What every iteration of the time simulator does: conditions, channels and ports, word by word. */
#ifndef STC_FLOW_ACCESS_H
#define STC_FLOW_ACCESS_H
#include "simulate/flow_network.h"

#define FLOW_INLINE static inline __attribute__((always_inline))    /* called for every word */

/* innermost 0 begins a row: the other counters may have changed. */
static inline uint64_t flow_condition_bits(struct flow_condition *condition, int64_t innermost)
{
	if (!condition->when.count)
		return 0;
	if (!innermost)
		flow_condition_row(condition);
	return condition->row[condition->trips > 1 ? innermost : 0];
}

/* An iteration enters: its conditions, and the counters of the next one. */
static inline void flow_issue(struct flow_pipe *pipe)
{
	int64_t slot = pipe->issued++ & pipe->mask;
	if (!pipe->condition.when.count)
		return;
	pipe->bits[slot] = flow_condition_bits(&pipe->condition, pipe->inner);
	if (++pipe->inner == pipe->trips[pipe->levels - 1])
		flow_next_row(pipe);
}

/* The condition of an access of an iteration in flight. */
static inline bool flow_is_made(const struct flow_pipe *pipe, const struct flow_access *access, int64_t iteration)
{
	return access->bit < 0 || (pipe->bits[iteration & pipe->mask] >> access->bit & 1);
}

static inline void flow_not_before(int64_t *time, const struct flow_access **why, int64_t known, const struct flow_access *access)
{
	if (known > *time) {
		*time = known;
		*why = access;
	}
}

static inline int64_t flow_cycle_of(int64_t parts)
{
	return (parts + MEMORY_FRACTION - 1) / MEMORY_FRACTION;
}

FLOW_INLINE bool flow_port_time(struct flow_network *network, const struct flow_access *access, int64_t *time, const struct flow_access **why)
{
	struct flow_port *port = access->port;
	if (!port->left && !flow_port_first(network, port))
		return false;
	flow_not_before(time, why, flow_cycle_of(port->next), access);
	return true;
}

FLOW_INLINE void flow_port_sample(struct flow_network *network, const struct flow_port *port, int64_t time)
{
	if (!network->samples)
		return;
	flow_sample_reach(network, time);
	port->moved[time >> network->sample_bits] += port->bytes;
}

FLOW_INLINE void flow_port_make(struct flow_network *network, const struct flow_access *access, int64_t time)
{
	struct flow_port *port = access->port;
	port->next += port->write ? 0 : port->word;
	port->words++;
	if (port->write && (network->first_output < 0 || time < network->first_output))
		network->first_output = time;
	flow_port_sample(network, port, time);
	if (!--port->left)
		flow_port_end_burst(network, port, time);
}

/* Moves `time` on to when the access can be made.  false: not known yet, and the process is marked as waiting. */
FLOW_INLINE bool flow_access_time(struct flow_network *network, struct flow_process *process, const struct flow_access *access, int64_t *time, const struct flow_access **why)
{
	struct flow_channel *channel = access->channel;
	if (!channel)
		return flow_port_time(network, access, time, why) || flow_unknown(process, access);
	if (access->kind == ACCESS_TAKE || access->kind == ACCESS_ACQUIRE_READ) {
		if (channel->popped == channel->pushed)
			return flow_unknown(process, access);
		flow_not_before(time, why, channel->full_at[channel->popped & channel->mask], access);
	} else if (access->kind == ACCESS_PUSH || access->kind == ACCESS_ACQUIRE_WRITE) {
		if (channel->pushed - channel->popped == channel->limit && flow_full(network, channel))
			return flow_unknown(process, access);
		if (channel->pushed >= channel->depth)
			flow_not_before(time, why, channel->free_at[(channel->pushed - channel->depth) & channel->mask], access);
	}
	return true;
}

FLOW_INLINE void flow_done(struct flow_network *network, struct flow_channel *channel, enum flow_side side)
{
	enum flow_side other = flow_other(side);
	if (channel->waiting[other]) {
		channel->waiting[other] = false;
		flow_wake(network, channel->process[other]);
	}
}

FLOW_INLINE void flow_access_make(struct flow_network *network, const struct flow_access *access, int64_t time)
{
	struct flow_channel *channel = access->channel;
	if (!channel) {
		flow_port_make(network, access, time);
	} else if (access->kind == ACCESS_TAKE || access->kind == ACCESS_RELEASE_READ) {
		channel->free_at[channel->popped++ & channel->mask] = time + 1;
		flow_done(network, channel, FLOW_READER);
	} else if (access->kind == ACCESS_PUSH || access->kind == ACCESS_RELEASE_WRITE) {
		channel->full_at[channel->pushed++ & channel->mask] = time + 1;
		flow_done(network, channel, FLOW_WRITER);
	}
}

static inline bool flow_out_of_fuel(struct flow_network *network, struct flow_process *process)
{
	process->yielded = --network->fuel < 0;
	return process->yielded;
}

static inline void flow_ask(struct flow_network *network, const struct flow_pipe *pipe, const struct flow_access *access, int64_t iteration, int64_t time)
{
	if (access->kind == ACCESS_LOAD && iteration >= 0 && iteration < pipe->iterations)
		flow_port_ask(network, access->port, time);
}
#endif
