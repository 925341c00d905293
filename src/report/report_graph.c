/* The design as a JSON graph for report.html: processes, channels and memory ports, with their
 * figures by the models and by the simulation. */
#include "base/json.h"
#include "report/report.h"
#include "emit/emit.h"
#include <string.h>

#define TENSORS_NAMED 3   /* of a buffer; the others are only counted */
#define CHANNELS_DRAWN 16 /* channels whose occupancy is drawn over time */

struct survey { /* of one process */
	const struct block *entry;
	bool *reads; /* [arguments] channels that the process reads */
	bool loads, stores, blocks, computes;
	int64_t array_bits, widest;  /* of its largest array; of its widest channel */
	int64_t operators[OP_COUNT]; /* lanes of real and integer arithmetic, by op */
};

static bool is_arithmetic(const struct op *op)
{
	if (op->results != 1 || !(op_info[op->code].levels & LEVEL_BODY) ||
	        op->code == OP_CONSTANT || op->code == OP_SELECT)
		return false;
	const struct type *scalar = type_scalar(op->result[0]->type);
	return scalar->kind != TYPE_INDEX && type_bits(scalar) > 1;
}

static void survey_op(struct op *op, void *context)
{
	struct survey *survey = context;
	const struct value *channel = NULL;
	if (op->code == OP_POP)
		channel = op->operand[1];
	else if (op->code == OP_ACQUIRE && text_same(attr_text_or(op, KEY_SIDE, ""), "read"))
		channel = op->operand[0];
	if (channel && !channel->def)
		survey->reads[channel->index] = true;
	survey->blocks |= op->code == OP_ACQUIRE;
	int64_t bits = op->code == OP_ALLOCA ? type_bits(op->result[0]->type) : 0;
	survey->array_bits = bits > survey->array_bits ? bits : survey->array_bits;
	const struct value *memory = op_accessed(op);
	bool port = memory && type_is_port(memory->type);
	survey->loads |= port && op->code == OP_MEMREF_LOAD;
	survey->stores |= port && op_writes(op, memory);
	if (op->code == OP_TREE || is_arithmetic(op)) {
		const struct type *type =
		        op->code == OP_TREE ? op->operand[0]->type : op->result[0]->type;
		survey->computes = true;
		survey->operators[op->code] += type_lanes(type);
	}
	if (op->code == OP_DOT) {
		survey->computes = true;
		survey->operators[op->code] +=
		        type_elements(op->result[0]->type) * type_elements(op->operand[0]->type);
	}
}

static struct survey survey_process(struct arena *arena, const struct process_cost *process)
{
	struct survey survey = { .entry = process->function->region[0],
		.reads = ARENA_ARRAY(arena, bool, process->call->operands + 1) };
	ir_walk(process->function->region[0], survey_op, &survey);
	for (int i = 0; i < survey.entry->arguments; i++) {
		const struct type *type = survey.entry->argument[i]->type;
		int64_t bits = type->kind == TYPE_FIFO ? type_bits(type->element) : 0;
		survey.widest = bits > survey.widest ? bits : survey.widest;
	}
	return survey;
}

static const char *kind_of(const struct survey *survey)
{
	int in = 0;
	int out = 0;
	for (int i = 0; i < survey->entry->arguments; i++) {
		in += survey->reads[i];
		out += !survey->reads[i] && !type_is_port(survey->entry->argument[i]->type);
	}
	if (survey->loads || survey->stores)
		return survey->stores ? "store" : "load";
	if (survey->computes)
		return "kernel";
	if (survey->blocks || survey->array_bits > survey->widest)
		return "convert";
	if (in > 1)
		return out > 1 ? "move" : "join";
	return out > 1 ? "fork" : "cast";
}

static void add_operators(const struct survey *survey, struct text *out)
{
	int listed = 0;
	for (int code = 0; code < OP_COUNT; code++)
		if (survey->operators[code])
			text_add(out, "%s\"%s\":%lld", listed++ ? "," : ",\"operators\":{",
			        op_info[code].name, (long long)survey->operators[code]);
	text_add(out, "%s", listed ? "}" : "");
}

/* A letter for each point of time, by what took most of it: b(usy), i(nput), o(utput), m(emory), or
 * '.' if the process was not active. */
static void add_timeline(const struct report *report, int index, struct text *out)
{
	static const char letter[CAUSES] = {
		[CAUSE_NONE] = '.', [CAUSE_INPUT] = 'i', [CAUSE_OUTPUT] = 'o', [CAUSE_MEMORY] = 'm'
	};
	const struct cycle_process_result *process = &report->cycle_result.process[index];
	text_add(out, ",\"timeline\":\"");
	for (int s = 0; s < cycle_points(&report->cycle_result); s++) {
		int64_t step = report->cycle_result.sample_cycles;
		int64_t rest = report->cycles - s * step;
		int64_t left = rest < step ? rest : step;
		int64_t most = 0;
		char what = 'b';
		for (int cause = 0; cause < CAUSES; cause++) {
			int64_t cycles = process->waited[cause][s];
			left -= cycles;
			what = cycles > most ? letter[cause] : what;
			most = cycles > most ? cycles : most;
		}
		text_add(out, "%c", left >= most ? 'b' : what);
	}
	text_add(out, "\"");
}

static void add_series(const char *key, const int64_t *series, int samples, struct text *out)
{
	text_add(out, ",\"%s\":[", key);
	for (int s = 0; s < samples; s++)
		text_add(out, "%s%lld", s ? "," : "", (long long)series[s]);
	text_add(out, "]");
}

static void add_process(
        const struct report *report, int index, const struct survey *survey, struct text *out)
{
	const struct process_cost *process = &report->cost.process[index];
	text_add(out, "%s\n{\"name\":", index ? "," : "");
	json_quote(out, process->name);
	text_add(out, ",\"kind\":\"%s\",\"model\":%lld,\"die\":%d", kind_of(survey),
	        (long long)report->time.process[index].busy, process->die);
	text_add(out, ",\"lanes\":%lld,\"ii\":%lld,\"style\":", (long long)process->lanes,
	        (long long)process->interval);
	json_quote(out, attr_text_or(process->function, KEY_STREAM_STYLE, ""));
	text_add(out, ",\"lut\":%lld,\"ff\":%lld,\"dsp\":%lld,\"bram18\":%lld,\"uram\":%lld",
	        (long long)process->resources.lut, (long long)process->resources.ff,
	        (long long)process->resources.dsp, (long long)process->resources.bram18,
	        (long long)process->resources.uram);
	if (attr_get(process->function, KEY_STREAM_LAYERS))
		text_add(out, ",\"layers\":%lld",
		        (long long)attr_integer_or(process->function, KEY_STREAM_LAYERS, 0));
	add_operators(survey, out);
	if (report->simulated) {
		const struct cycle_process_result *cycle_result =
		        &report->cycle_result.process[index];
		text_add(out, ",\"end\":%lld,\"input\":%lld,\"output\":%lld,\"memory\":%lld",
		        (long long)cycle_result->end, (long long)cycle_result->input,
		        (long long)cycle_result->output, (long long)cycle_result->memory);
		if (report->cycle_result.segments)
			text_add(out, ",\"path\":%lld",
			        (long long)report->cycle_result.on_path[index]);
		if (report->cycle_result.samples)
			add_timeline(report, index, out);
	}
	text_add(out, "}");
}

struct ends {
	int from, to; /* processes; -1: none */
};

static struct ends ends_of(
        const struct report *report, const struct survey *survey, const struct value *channel)
{
	struct ends ends = { -1, -1 };
	for (int i = 0; i < report->cost.processes; i++)
		for (int j = 0; j < report->cost.process[i].call->operands; j++)
			if (report->cost.process[i].call->operand[j] == channel)
				*(survey[i].reads[j] ? &ends.to : &ends.from) = i;
	return ends;
}

/* Bytes in a channel at its highest occupancy. */
static int64_t peak_bytes(const struct report *report, int index)
{
	const struct channel_cost *channel = &report->cost.channel[index];
	return report->cycle_result.channel[index].most * channel->bytes / channel->depth;
}

/* Is the channel one of those with the most bytes? */
static bool is_drawn(const struct report *report, int index)
{
	int before = 0;
	const int64_t own = peak_bytes(report, index);
	for (int i = 0; i < report->cost.channels; i++) {
		int64_t other = peak_bytes(report, i);
		before += other > own || (other == own && i < index);
	}
	return before < CHANNELS_DRAWN;
}

static void add_channel(
        const struct report *report, int index, const struct survey *survey, struct text *out)
{
	const struct channel_cost *channel = &report->cost.channel[index];
	const struct value *value = channel->op->result[0];
	struct ends ends = ends_of(report, survey, value);
	const char *storage = attr_text_or(channel->op, KEY_STREAM_STORAGE, NULL);
	text_add(out, "%s\n{\"name\":", index ? "," : "");
	json_quote(out, attr_text_or(channel->op, KEY_NAME, ""));
	text_add(out,
	        ",\"kind\":\"%s\",\"from\":%d,\"to\":%d,\"depth\":%lld,\"bytes\":%lld,\"die\":%d",
	        channel->op->code == OP_FIFO ? "fifo" : "blocks", ends.from, ends.to,
	        (long long)channel->depth, (long long)channel->bytes, channel->die);
	if (channel->op->code == OP_FIFO)
		text_add(out, ",\"elements\":%lld",
		        (long long)(value->type->element->kind == TYPE_VECTOR
		                        ? type_elements(value->type->element)
		                        : 1));
	text_add(out, ",\"bits\":%lld",
	        (long long)(channel->depth ? channel->bytes * 8 / channel->depth : 0));
	if (storage) {
		text_add(out, ",\"storage\":");
		json_quote(out, storage);
	}
	if (report->simulated)
		text_add(out, ",\"words\":%lld,\"peak_occupancy\":%lld",
		        (long long)report->cycle_result.channel[index].words,
		        (long long)report->cycle_result.channel[index].most);
	if (report->simulated && report->cycle_result.samples && is_drawn(report, index))
		add_series("occupancy", report->cycle_result.channel[index].occupancy,
		        cycle_points(&report->cycle_result), out);
	text_add(out, "}");
}

static const struct cycle_port_result *simulated_port(const struct report *report, int argument)
{
	for (int i = 0; report->simulated && i < report->cycle_result.ports; i++)
		if (report->cycle_result.port[i].number == argument)
			return &report->cycle_result.port[i];
	return NULL;
}

/* Are the names equal except for numbers, such as those of layers? */
static bool same_kind(const char *left, const char *right)
{
	for (;;) {
		left += strspn(left, "0123456789");
		right += strspn(right, "0123456789");
		if (*left != *right || !*left)
			return *left == *right;
		left++;
		right++;
	}
}

/* Names of the tensors in a buffer, one for all layers.  Adjacent segments of a tensor count
 * once. */
static void add_tensors(const struct op *main, const char *buffer, struct text *out)
{
	const struct attr *segments =
	        attr_item(attr_entry(attr_get(main, KEY_STREAM_BUFFERS), buffer), KEY_SEGMENTS);
	const char *last = NULL;
	int count = 0;
	VEC(const char *) kinds = { 0 };
	text_add(out, ",\"tensors\":[");
	for (int i = 0; segments && i < segments->count; i++) {
		const char *name = attr_item(segments->items[i].value, KEY_NAME)->text;
		if (text_same(name, last))
			continue;
		last = name;
		count++;
		size_t kind = 0;
		while (kind < kinds.count && !same_kind(kinds.data[kind], name))
			kind++;
		if (kind < kinds.count)
			continue;
		if (kind < TENSORS_NAMED) {
			text_add(out, "%s", kind ? "," : "");
			json_quote(out, name);
		}
		VEC_PUSH(out->arena, &kinds, name);
	}
	text_add(out, "],\"tensor_count\":%d,\"tensor_kinds\":%zu", count, kinds.count);
	if (segments && segments->count) {
		text_add(out, ",\"role\":");
		json_quote(out, attr_item(segments->items[0].value, KEY_ROLE)->text);
	}
}

/* The process whose port it is; -1: none. */
static int process_of(const struct report *report, const struct value *port)
{
	for (int i = 0; i < report->cost.processes; i++) {
		const struct op *call = report->cost.process[i].call;
		for (int j = 0; j < call->operands; j++)
			if (call->operand[j] == port)
				return i;
	}
	return -1;
}

/* Bytes through a port: simulated, or from trip counts at the largest run-time extents. */
static double port_bytes(const struct report *report, int argument)
{
	const struct block *main = module_main(report->module)->region[0];
	const struct cycle_port_result *simulated = simulated_port(report, argument);
	const struct type *word = main->argument[argument]->type->element;
	if (simulated)
		return (double)simulated->bytes;
	return (double)bundle_words(report->module, main, main->argument[argument], false,
	               (struct extent_list){ 0 }) *
	        (double)type_bits(word) / 8;
}

static void add_port(const struct report *report, int argument, struct text *out)
{
	const struct op *main = module_main(report->module);
	struct memory_port port = emit_port(main, argument);
	int process = process_of(report, main->region[0]->argument[argument]);
	double bytes = port_bytes(report, argument);
	text_add(out, "%s\n{\"name\":", argument ? "," : "");
	json_quote(out, port.name);
	text_add(out, ",\"adapter\":");
	json_quote(out, port.bundle);
	text_add(out, ",\"channel\":%lld,\"direction\":\"%s\",\"bits\":%lld,\"process\":%d",
	        (long long)port.channel, port.write ? "write" : "read",
	        (long long)type_bits(port.word), process);
	if (bytes > 0)
		text_add(out, ",\"bytes\":%.0f", bytes);
	if (simulated_port(report, argument) && report->cycle_result.samples)
		add_series("bytes_over_time", simulated_port(report, argument)->moved,
		        cycle_points(&report->cycle_result), out);
	add_tensors(main, port.buffer, out);
	text_add(out, "}");
}

void report_graph(const struct report *report, struct text *out)
{
	const struct design_cost *cost = &report->cost;
	struct survey *survey = ARENA_ARRAY(out->arena, struct survey, cost->processes + 1);
	for (int i = 0; i < cost->processes; i++)
		survey[i] = survey_process(out->arena, &cost->process[i]);
	text_add(out, "{\"processes\":[");
	for (int i = 0; i < cost->processes; i++)
		add_process(report, i, &survey[i], out);
	text_add(out, "],\n\"channels\":[");
	for (int i = 0; i < cost->channels; i++)
		add_channel(report, i, survey, out);
	text_add(out, "],\n\"ports\":[");
	for (int i = 0; i < emit_ports(report->module); i++)
		add_port(report, i, out);
	text_add(out, "]}");
}
