/* Writes a simulation over time as a file for viewers: trace events of Chrome and Perfetto (JSON),
 * or value changes (VCD).  Both have a fixed number of points, so files are bounded; adjacent
 * points with equal values are merged. */
#include "base/json.h"
#include "pipeline/output.h"
#include "report/simulate.h"
#include <string.h>

enum state { STATE_BUSY, STATE_INPUT, STATE_OUTPUT, STATE_MEMORY, STATE_IDLE, STATES };
static const char *const state_names[] = { "busy", "waits for words", "waits for space",
	"waits for memory", "not active" };

struct tracing {
	const struct session *session;
	const struct cycle_result *cycle_result;
	struct text *out;
	int points; /* up to the end */
	bool first;
};

static bool ends_in(const char *path, const char *suffix)
{
	size_t size = strlen(path);
	size_t end = strlen(suffix);
	return size > end && !strcmp(path + size - end, suffix);
}

bool trace_has_format(const char *path)
{
	return ends_in(path, ".json") || ends_in(path, ".vcd");
}

static int64_t cycles_of(const struct tracing *t, int point)
{
	int64_t begin = point * t->cycle_result->sample_cycles;
	int64_t rest = t->cycle_result->cycles - begin;
	return rest < t->cycle_result->sample_cycles ? rest : t->cycle_result->sample_cycles;
}

/* The state that takes most of the point. */
static enum state state_at(
        const struct tracing *t, const struct cycle_process_result *process, int point)
{
	int64_t cycles[STATES] = { 0, process->waited[CAUSE_INPUT][point],
		process->waited[CAUSE_OUTPUT][point], process->waited[CAUSE_MEMORY][point],
		process->waited[CAUSE_NONE][point] };
	enum state most = STATE_BUSY;
	cycles[STATE_BUSY] = cycles_of(t, point) - cycles[1] - cycles[2] - cycles[3] - cycles[4];
	for (int i = 1; i < STATES; i++)
		most = cycles[i] > cycles[most] ? (enum state)i : most;
	return most;
}

static double microseconds(const struct tracing *t, int64_t cycles)
{
	return (double)cycles / t->session->platform->clock_mhz;
}

/* --- trace events */

static void begin_event(struct tracing *t, const char *event_kind, int group, int number)
{
	text_add(t->out, "%s\n{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d", t->first ? "" : ",",
	        event_kind, group, number);
	t->first = false;
}

static void name_event(
        struct tracing *t, int group, int number, const char *entry_kind, const char *name)
{
	begin_event(t, "M", group, number);
	text_add(t->out, ", \"name\": \"%s\", \"args\": {\"name\": ", entry_kind);
	json_quote(t->out, name);
	text_add(t->out, "}}");
}

static void add_states(struct tracing *t, int number)
{
	const struct cycle_process_result *process = &t->cycle_result->process[number];
	name_event(t, 1, number, "thread_name", process->name);
	for (int point = 0, begin = 0; point < t->points; point++) {
		enum state state = state_at(t, process, point);
		if (point + 1 < t->points && state_at(t, process, point + 1) == state)
			continue;
		int64_t from = begin * t->cycle_result->sample_cycles;
		int64_t to = point * t->cycle_result->sample_cycles + cycles_of(t, point);
		begin = point + 1;
		if (state == STATE_IDLE)
			continue;
		begin_event(t, "X", 1, number);
		text_add(t->out,
		        ", \"ts\": %.3f, \"dur\": %.3f, \"name\": \"%s\", \"args\": {\"cycle\": "
		        "%lld, \"cycles\": %lld}}",
		        microseconds(t, from), microseconds(t, to - from), state_names[state],
		        (long long)from, (long long)(to - from));
	}
}

static void add_counter(
        struct tracing *t, int group, const char *name, const char *unit, const int64_t *values)
{
	int64_t last = -1;
	for (int point = 0; point < t->points; point++) {
		if (values[point] == last)
			continue;
		last = values[point];
		begin_event(t, "C", group, 0);
		text_add(t->out, ", \"ts\": %.3f, \"name\": ",
		        microseconds(t, point * t->cycle_result->sample_cycles));
		json_quote(t->out, name);
		text_add(t->out, ", \"args\": {\"%s\": %lld}}", unit, (long long)last);
	}
}

static void add_events(struct tracing *t)
{
	text_add(t->out,
	        "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"clock_mhz\": %g, \"cycles\": "
	        "%lld, \"cycles_a_point\": %lld}, \"traceEvents\": [",
	        t->session->platform->clock_mhz, (long long)t->cycle_result->cycles,
	        (long long)t->cycle_result->sample_cycles);
	t->first = true;
	name_event(t, 1, 0, "process_name", "processes");
	name_event(t, 2, 0, "process_name", "channels");
	name_event(t, 3, 0, "process_name", "memory ports");
	for (int i = 0; i < t->cycle_result->processes; i++)
		add_states(t, i);
	for (int i = 0; i < t->cycle_result->channels; i++)
		add_counter(t, 2, t->cycle_result->channel[i].name,
		        t->cycle_result->channel[i].blocks ? "blocks" : "words",
		        t->cycle_result->channel[i].occupancy);
	for (int i = 0; i < t->cycle_result->ports; i++)
		add_counter(t, 3, t->cycle_result->port[i].name, "bytes",
		        t->cycle_result->port[i].moved);
	text_add(t->out, "\n]}\n");
}

/* --- value changes */

/* Short names of signals: digits from '!' to '~'. */
static const char *code_of(char *text, int number)
{
	char *end = text;
	do {
		*end++ = (char)('!' + number % 94);
		number /= 94;
	} while (number);
	*end = '\0';
	return text;
}

/* A name as one word, since names of VCD end at a space. */
static void add_reference(struct text *out, const char *name)
{
	for (; *name; name++)
		text_add(out, "%c", (unsigned char)*name > ' ' && *name != '$' ? *name : '_');
}

static void declare(struct tracing *t, const char *scope, int *number, const char *name, int bits)
{
	char code[8];
	text_add(t->out, "%s$var wire %d %s ", scope, bits, code_of(code, (*number)++));
	add_reference(t->out, name);
	text_add(t->out, " $end\n");
}

static void add_change(struct tracing *t, int number, int64_t value)
{
	char code[8];
	char bits[33];
	for (int i = 0; i < 32; i++)
		bits[i] = value >> (31 - i) & 1 ? '1' : '0';
	bits[32] = '\0';
	const char *from = strchr(bits, '1');
	text_add(t->out, "b%s %s\n", from ? from : "0", code_of(code, number));
}

static int64_t signal_at(const struct tracing *t, int number, int point)
{
	const struct cycle_result *cycle_result = t->cycle_result;
	if (number < cycle_result->processes)
		return state_at(t, &cycle_result->process[number], point);
	number -= cycle_result->processes;
	return number < cycle_result->channels
	        ? cycle_result->channel[number].occupancy[point]
	        : cycle_result->port[number - cycle_result->channels].moved[point];
}

static void add_values(struct tracing *t)
{
	const struct cycle_result *cycle_result = t->cycle_result;
	int number = 0;
	int signals = cycle_result->processes + cycle_result->channels + cycle_result->ports;
	text_add(t->out,
	        "$comment %s; of a process: 0 busy, 1 waits for words, 2 waits for space, 3 waits "
	        "for memory, 4 not active $end\n$timescale 1 ps $end\n",
	        "stc simulate");
	text_add(t->out, "$scope module processes $end\n");
	for (int i = 0; i < cycle_result->processes; i++)
		declare(t, "", &number, cycle_result->process[i].name, 3);
	text_add(t->out, "$upscope $end\n$scope module channels $end\n");
	for (int i = 0; i < cycle_result->channels; i++)
		declare(t, "", &number, cycle_result->channel[i].name, 32);
	text_add(t->out, "$upscope $end\n$scope module bytes $end\n");
	for (int i = 0; i < cycle_result->ports; i++)
		declare(t, "", &number, cycle_result->port[i].name, 32);
	text_add(t->out, "$upscope $end\n$enddefinitions $end\n");
	for (int point = 0; point < t->points; point++) {
		text_add(t->out, "#%.0f\n",
		        1e6 * microseconds(t, point * cycle_result->sample_cycles));
		for (int i = 0; i < signals; i++)
			if (!point || signal_at(t, i, point) != signal_at(t, i, point - 1))
				add_change(t, i, signal_at(t, i, point));
	}
	text_add(t->out, "#%.0f\n", 1e6 * microseconds(t, cycle_result->cycles));
}

bool simulated_trace(struct session *session, const struct simulated *simulated, const char *path)
{
	const struct cycle_result *cycle_result = simulated->cycle_result;
	struct text out = text_new(session->arena);
	struct tracing t = { .session = session,
		.cycle_result = cycle_result,
		.out = &out,
		.points = cycle_points(cycle_result) };
	(ends_in(path, ".vcd") ? add_values : add_events)(&t);
	return file_write_whole(session->arena, &session->diag, path, out.data, out.size);
}
