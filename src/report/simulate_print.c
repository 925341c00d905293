/* Prints the result of `stc simulate`, as text or as JSON. */
#include "base/json.h"
#include "report/simulate.h"

#define LISTED 12 /* rows of a table in the text */
#define SCHEMA 2

/* --- JSON */

static void add_points(struct text *out, const char *key, const int64_t *values, int points)
{
	text_add(out, ", \"%s\": [", key);
	for (int i = 0; i < points; i++)
		text_add(out, "%s%lld", i ? "," : "", (long long)values[i]);
	text_add(out, "]");
}

static void begin_row(struct text *out, int number, const char *key, const char *name)
{
	text_add(out, "%s\n    {\"%s\": ", number ? "," : "", key);
	json_quote(out, name);
}

static void add_processes(struct text *out, const struct cycle_result *cycle_result)
{
	text_add(out, "  \"processes\": [");
	for (int i = 0; i < cycle_result->processes; i++) {
		const struct cycle_process_result *process = &cycle_result->process[i];
		begin_row(out, i, "name", process->name);
		text_add(out,
		        ", \"end\": %lld, \"busy\": %lld, \"input\": %lld, \"output\": %lld, "
		        "\"memory\": %lld, \"ended\": %s",
		        (long long)process->end, (long long)cycle_busy(process),
		        (long long)process->input, (long long)process->output,
		        (long long)process->memory, process->ended ? "true" : "false");
		if (cycle_result->on_path)
			text_add(out, ", \"critical_path_cycles\": %lld",
			        (long long)cycle_result->on_path[i]);
		if (cycle_result->samples) {
			add_points(out, "input_over_time", process->waited[CAUSE_INPUT],
			        cycle_result->samples);
			add_points(out, "output_over_time", process->waited[CAUSE_OUTPUT],
			        cycle_result->samples);
			add_points(out, "memory_over_time", process->waited[CAUSE_MEMORY],
			        cycle_result->samples);
		}
		text_add(out, "}");
	}
	text_add(out, "\n  ],\n");
}

static void add_channels(struct text *out, const struct cycle_result *cycle_result)
{
	text_add(out, "  \"channels\": [");
	for (int i = 0; i < cycle_result->channels; i++) {
		const struct cycle_channel_result *channel = &cycle_result->channel[i];
		begin_row(out, i, "name", channel->name);
		text_add(out,
		        ", \"kind\": \"%s\", \"depth\": %lld, \"peak_occupancy\": %lld, \"words\": "
		        "%lld",
		        channel->blocks ? "blocks" : "fifo", (long long)channel->depth,
		        (long long)channel->most, (long long)channel->words);
		if (cycle_result->samples)
			add_points(out, "occupancy", channel->occupancy, cycle_result->samples);
		text_add(out, "}");
	}
	text_add(out, "\n  ],\n");
}

static void add_ports(struct text *out, const struct cycle_result *cycle_result)
{
	text_add(out, "  \"ports\": [");
	for (int i = 0; i < cycle_result->ports; i++) {
		const struct cycle_port_result *port = &cycle_result->port[i];
		begin_row(out, i, "name", port->name);
		text_add(out, ", \"process\": ");
		json_quote(out, cycle_result->process[port->process].name);
		text_add(out, ", \"channel\": %d, \"direction\": \"%s\", \"bytes\": %lld",
		        port->channel, port->write ? "write" : "read", (long long)port->bytes);
		if (cycle_result->samples)
			add_points(out, "bytes_over_time", port->moved, cycle_result->samples);
		text_add(out, "}");
	}
	text_add(out, "\n  ]");
}

static void add_path(struct text *out, const struct cycle_result *cycle_result)
{
	text_add(out, "  \"critical_path\": [");
	for (int i = 0; i < cycle_result->segments; i++) {
		const struct cycle_path_segment *segment = &cycle_result->segment[i];
		begin_row(out, i, "process", cycle_result->process[segment->process].name);
		text_add(out, ", \"begin\": %lld, \"end\": %lld, \"busy\": %lld, \"memory\": %lld",
		        (long long)segment->begin, (long long)segment->end,
		        (long long)segment->busy, (long long)segment->memory);
		if (segment->via >= 0) {
			text_add(out, ", \"via_channel\": ");
			json_quote(out, cycle_result->channel[segment->via].name);
		}
		text_add(out, "}");
	}
	text_add(out, "\n  ],\n");
}

static void add_waits(struct text *out, const struct cycle_result *cycle_result)
{
	text_add(out, "  \"waits\": [");
	for (int i = 0; i < cycle_result->waits; i++) {
		const struct cycle_wait *wait = &cycle_result->wait[i];
		begin_row(out, i, "process", cycle_result->process[wait->process].name);
		text_add(out, ", \"channel\": ");
		json_quote(out, cycle_result->channel[wait->channel].name);
		text_add(out,
		        ", \"waits_for\": \"%s\", \"since_cycle\": %lld, \"depth\": %lld, "
		        "\"in_cycle\": %s",
		        wait->room ? "space" : "word", (long long)wait->since,
		        (long long)wait->depth, i < cycle_result->cycle ? "true" : "false");
		if (wait->needed)
			text_add(out, ", \"required_depth\": %lld", (long long)wait->needed);
		text_add(out, "}");
	}
	text_add(out, "\n  ],\n");
}

static double ms_of(struct session *session, const struct simulated *simulated)
{
	return platform_launch_ms(session->platform,
	        simulated->steps ? simulated->cycles : simulated->cycle_result->cycles);
}

void simulated_json(struct session *session, const struct simulated *simulated)
{
	const struct cycle_result *cycle_result = simulated->cycle_result;
	struct text *out = &session->out;
	bool whole = !cycle_result->deadlock && !simulated->stopped;
	text_add(out, "{\n  \"schema\": %d,\n  \"name\": ", SCHEMA);
	json_quote(out, simulated->name);
	text_add(out, ",\n  \"platform\": ");
	json_quote(out, session->platform->name);
	text_add(out, ",\n  \"clock_mhz\": %.6g,\n", session->platform->clock_mhz);
	text_add(out, "  \"cycles\": %lld,\n  \"launches\": %lld,\n",
	        (long long)(simulated->steps ? simulated->cycles : cycle_result->cycles),
	        (long long)cycle_result->launches);
	if (simulated->steps)
		text_add(out,
		        "  \"tokens\": %lld,\n  \"steps\": %lld,\n  \"simulated_steps\": %lld,\n  "
		        "\"token_ms\": %.6g,\n",
		        (long long)simulated->tokens, (long long)simulated->steps,
		        (long long)simulated->sampled,
		        ms_of(session, simulated) / (double)simulated->tokens);
	simulated_images_json(session, simulated);
	if (whole)
		text_add(
		        out, "  \"steady_state_cycles\": %lld,\n", (long long)cycle_result->steady);
	if (cycle_result->first_output >= 0)
		text_add(out, "  \"first_output\": %lld,\n", (long long)cycle_result->first_output);
	if (whole && simulated->wanted == 1)
		text_add(out, "  \"latency_ms\": %.6g,\n", ms_of(session, simulated));
	text_add(out, "  \"iterations\": %lld,\n  \"stopped\": %s,\n  \"deadlock\": ",
	        (long long)cycle_result->events, simulated->stopped ? "true" : "false");
	if (cycle_result->deadlock)
		json_quote(out, cycle_result->deadlock);
	else
		text_add(out, "false");
	text_add(out, ",\n");
	if (cycle_result->samples)
		text_add(out, "  \"sample_cycles\": %lld,\n",
		        (long long)cycle_result->sample_cycles);
	if (cycle_result->deadlock)
		add_waits(out, cycle_result);
	add_path(out, cycle_result);
	add_processes(out, cycle_result);
	add_channels(out, cycle_result);
	add_ports(out, cycle_result);
	text_add(out, "\n}\n");
}

/* --- text */

/* The row after `last` in the order of falling keys; -1: none is left. */
static int next_of(int count, const int64_t *key, int last)
{
	int found = -1;
	for (int i = 0; i < count; i++) {
		bool follows = last < 0 || key[i] < key[last] || (key[i] == key[last] && i > last);
		if (follows && (found < 0 || key[i] > key[found]))
			found = i;
	}
	return found;
}

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

static int64_t path_length(const struct cycle_result *cycle_result)
{
	int64_t length = 0;
	for (int i = 0; cycle_result->on_path && i < cycle_result->processes; i++)
		length += cycle_result->on_path[i];
	return length;
}

static const char *plural(int64_t count)
{
	return count > 1 ? "s" : "";
}

/* A launch of several tokens (--tokens). */
static void add_tokens(
        struct session *session, const struct simulated *simulated, const char *count)
{
	const char *steps = "";
	const char *all = "them";
	const char *one = "token";
	if (simulated->tokens > simulated->steps) {
		steps = text_format(session->arena, " in %lld step%s", (long long)simulated->steps,
		        plural(simulated->steps));
		all = "these";
		one = "step";
	}
	text_add(&session->out,
	        "%-15s of %lld token%s%s: %lld cycles at %g MHz, %.4g ms including %g us "
	        "launch overhead, %.4g ms per token    (%lld of %s simulated)\nthe last "
	        "%-6s %lld cycles\n",
	        count, (long long)simulated->tokens, plural(simulated->tokens), steps,
	        (long long)simulated->cycles, session->platform->clock_mhz,
	        ms_of(session, simulated), session->platform->launch_us,
	        ms_of(session, simulated) / (double)simulated->tokens,
	        (long long)simulated->sampled, all, one,
	        (long long)simulated->cycle_result->cycles);
}

static void add_answer(struct session *session, const struct simulated *simulated)
{
	const struct cycle_result *cycle_result = simulated->cycle_result;
	struct text *out = &session->out;
	const char *count = "one launch ";
	if (simulated->wanted != 1)
		count = text_format(session->arena, "%lld launches", (long long)simulated->wanted);
	if (cycle_result->deadlock)
		text_add(out, "%-15s deadlocks: %s\n", count, cycle_result->deadlock);
	else if (simulated->stopped)
		text_add(out, "%-15s up to cycle %lld, then stopped: %.1f %% of the iterations\n",
		        count, (long long)cycle_result->cycles,
		        percent(cycle_result->events, simulated->total));
	else if (simulated->steps)
		add_tokens(session, simulated, count);
	else if (simulated->wanted == 1)
		text_add(out,
		        "%-15s %lld cycles at %g MHz, %.4g ms including %g us launch overhead    "
		        "(simulated)\n",
		        count, (long long)cycle_result->cycles, session->platform->clock_mhz,
		        ms_of(session, simulated), session->platform->launch_us);
	else
		text_add(out,
		        "%-15s %lld cycles at %g MHz; steady state %lld per launch, %.4g ms    "
		        "(simulated)\n",
		        count, (long long)cycle_result->cycles, session->platform->clock_mhz,
		        (long long)cycle_result->steady,
		        (double)cycle_result->steady / (session->platform->clock_mhz * 1e3));
}

static void add_limit(struct session *session, const struct cycle_result *cycle_result)
{
	int most = cycle_result->segments
	        ? next_of(cycle_result->processes, cycle_result->on_path, -1)
	        : -1;
	if (most < 0)
		return;
	const struct cycle_process_result *process = &cycle_result->process[most];
	text_add(&session->out,
	        "bottleneck      %s: on the critical path for %.0f %% of the cycles, busy for %.0f "
	        "%% and waiting for memory for %.0f %% of its time\n",
	        process->name, percent(cycle_result->on_path[most], path_length(cycle_result)),
	        percent(cycle_busy(process), process->active),
	        percent(process->memory, process->active));
}

static void add_remedies(struct text *out, const struct cycle_result *cycle_result)
{
	for (int i = 0; i < cycle_result->cycle; i++)
		if (cycle_result->wait[i].room && cycle_result->wait[i].needed)
			text_add(out,
			        "suggestion      increase the depth of %s to %lld (now %lld)\n",
			        cycle_result->channel[cycle_result->wait[i].channel].name,
			        (long long)cycle_result->wait[i].needed,
			        (long long)cycle_result->wait[i].depth);
}

static void add_path_table(struct session *session, const struct cycle_result *cycle_result)
{
	int64_t length = path_length(cycle_result);
	text_add(&session->out, "\ncritical path, in cycles\n  %-32s %12s %12s\n", "", "on path",
	        "share");
	for (int i = next_of(cycle_result->processes, cycle_result->on_path, -1), listed = 0;
	        i >= 0 && listed < LISTED && cycle_result->on_path[i] > 0;
	        i = next_of(cycle_result->processes, cycle_result->on_path, i), listed++)
		text_add(&session->out, "  %-32s %12lld %10.1f %%\n", cycle_result->process[i].name,
		        (long long)cycle_result->on_path[i],
		        percent(cycle_result->on_path[i], length));
}

static void add_busiest(struct session *session, const struct cycle_result *cycle_result)
{
	struct text *out = &session->out;
	int64_t *key = ARENA_ARRAY(session->arena, int64_t, cycle_result->processes + 1);
	for (int i = 0; i < cycle_result->processes; i++)
		key[i] = cycle_busy(&cycle_result->process[i]);
	text_add(out, "\nbusiest processes, in cycles\n  %-32s %12s %12s %12s %12s %12s\n", "",
	        "busy", "input wait", "output wait", "memory", "end");
	for (int i = next_of(cycle_result->processes, key, -1), listed = 0;
	        i >= 0 && listed < LISTED; i = next_of(cycle_result->processes, key, i), listed++) {
		const struct cycle_process_result *process = &cycle_result->process[i];
		text_add(out, "  %-32s %12lld %12lld %12lld %12lld %12lld\n", process->name,
		        (long long)key[i], (long long)process->input, (long long)process->output,
		        (long long)process->memory, (long long)process->end);
	}
}

static void add_full(struct text *out, const struct cycle_result *cycle_result)
{
	int full = 0;
	text_add(out, "\nchannels that became full\n  %-32s %12s %12s\n", "", "depth", "words");
	for (int i = 0; i < cycle_result->channels; i++) {
		const struct cycle_channel_result *channel = &cycle_result->channel[i];
		if (channel->most < channel->depth || full++ >= LISTED)
			continue;
		text_add(out, "  %-32s %12lld %12lld%s\n", channel->name, (long long)channel->depth,
		        (long long)channel->words, channel->blocks ? "  blocks" : "");
	}
	if (full > LISTED)
		text_add(out, "  and %d more; --json lists all\n", full - LISTED);
}

static void add_memory(struct session *session, const struct cycle_result *cycle_result)
{
	int64_t *key = ARENA_ARRAY(session->arena, int64_t, cycle_result->ports + 1);
	for (int i = 0; i < cycle_result->ports; i++)
		key[i] = cycle_result->port[i].bytes;
	text_add(&session->out, "\nmemory ports\n  %-32s %12s %12s %12s\n", "", "bytes", "channel",
	        "of its peak");
	for (int i = next_of(cycle_result->ports, key, -1), listed = 0; i >= 0 && listed < LISTED;
	        i = next_of(cycle_result->ports, key, i), listed++) {
		double peak = session->platform->channel_gbps * 1e3 / session->platform->clock_mhz *
		        (double)cycle_result->cycles;
		text_add(&session->out, "  %-32s %12lld %12d %10.1f %%\n",
		        cycle_result->port[i].name, (long long)cycle_result->port[i].bytes,
		        cycle_result->port[i].channel, peak > 0 ? 100 * (double)key[i] / peak : 0);
	}
}

void simulated_text(struct session *session, const struct simulated *simulated)
{
	const struct cycle_result *cycle_result = simulated->cycle_result;
	struct text *out = &session->out;
	text_add(out, "%s on %s\n\n", simulated->name, session->platform->name);
	simulated_images_text(session, simulated);
	add_answer(session, simulated);
	if (cycle_result->deadlock)
		add_remedies(out, cycle_result);
	add_limit(session, cycle_result);
	if (cycle_result->first_output >= 0)
		text_add(out, "first output    in cycle %lld\n",
		        (long long)cycle_result->first_output);
	text_add(out, "simulated       %d processes, %d channels, %lld iterations\n",
	        cycle_result->processes, cycle_result->channels, (long long)cycle_result->events);
	if (cycle_result->segments)
		add_path_table(session, cycle_result);
	add_busiest(session, cycle_result);
	add_full(out, cycle_result);
	add_memory(session, cycle_result);
}
