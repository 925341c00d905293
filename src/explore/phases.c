/* Compiles two models as phases of one kernel (such as decode and prefill): each goes through the
 * passes with a part of the platform, then both are joined.  Reports one phase or two. */
#include "pipeline/output.h"
#include "explore/phases.h"
#include "base/json.h"
#include "base/map.h"
#include "explore/limits.h"
#include "explore/point.h"

#define FIRST_ATTEMPTS 6 /* at the first phase, with fewer and fewer ports */
/* at the second phase, as the ports shared with the first become known */
#define SECOND_ATTEMPTS 3

static int die_of_user(const struct design_cost *cost, const struct value *channel, bool last)
{
	int die = -1;
	for (int i = 0; i < cost->processes && (last || die < 0); i++)
		for (int a = 0; a < cost->process[i].call->operands; a++)
			if (cost->process[i].call->operand[a] == channel)
				die = cost->process[i].die;
	return die;
}

/* Bits of the FIFOs across the die boundary that most FIFOs cross. */
static int64_t wires_of(const struct design_cost *cost)
{
	int64_t wires[PLATFORM_DIES] = { 0 };
	int64_t most = 0;
	for (int c = 0; c < cost->channels; c++) {
		const struct value *channel = cost->channel[c].op->result[0];
		int from = die_of_user(cost, channel, false);
		int to = die_of_user(cost, channel, true);
		int low = from < to ? from : to;
		int high = from < to ? to : from;
		for (int d = low; d >= 0 && d < high; d++)
			wires[d] += type_bits(channel->type->element);
	}
	for (int d = 0; d < PLATFORM_DIES; d++)
		most = wires[d] > most ? wires[d] : most;
	return most;
}

/* A copy of the platform, named in messages as a part of it. */
static struct platform *part_of(struct session *session, const struct platform *platform)
{
	struct platform *part = arena_copy(session->arena, platform, sizeof *platform);
	part->name =
	        text_format(session->arena, "%s together with the other phase", platform->name);
	return part;
}

/* What the first phase leaves for the second; `credit` are resources of the first's ports that
 * the second may share. */
static const struct platform *rest_of(struct session *session, const struct platform *platform,
        const struct design_cost *first, struct resources credit)
{
	struct platform *rest = part_of(session, platform);
	for (int d = 0; d < platform->dies; d++)
		rest->die[d] = resources_subtract(platform->die[d], first->die[d]);
	rest->crossing_wires -= wires_of(first);
	rest->die[platform->memory_die] = resources_add(rest->die[platform->memory_die], credit);
	return rest;
}

static const struct platform *half_of(struct session *session, const struct platform *platform)
{
	struct platform *half = part_of(session, platform);
	for (int d = 0; d < platform->dies; d++) {
		struct resources *die = &half->die[d];
		*die = (struct resources){ die->lut / 2, die->ff / 2, die->dsp / 2, die->bram18 / 2,
			die->uram / 2 };
	}
	half->crossing_wires /= 2;
	return half;
}

static struct resources ports_of(const struct platform *platform, const struct module *module)
{
	struct resources sum = { 0 };
	for (int i = 0; i < emit_ports(module); i++)
		sum = resources_add(sum,
		        port_resources(platform, emit_port(module_main(module), i).word,
		                emit_port(module_main(module), i).write));
	return sum;
}

static struct resources smaller(struct resources a, struct resources b)
{
	return resources_subtract(a, resources_subtract(a, b));
}

/* An 8-bit state has room for a launch's own rows before its first row: equally many in both
 * phases. */
static void set_state_lead(struct session *session, const struct module *second)
{
	if (!session->quant || session->quant->state != 8)
		return;
	struct quant_scheme *scheme = arena_copy(session->arena, session->quant, sizeof *scheme);
	const struct op *main = module_main(second);
	const struct type *type = attr_get(main, KEY_FUNCTION_TYPE)->type;
	for (int r = 0; r < type->outputs; r++) {
		const struct attr *axis = function_result_attr(main, r, KEY_STREAM_AXIS);
		int64_t rows = axis ? type->output[r]->shape[axis->integer] : 1;
		scheme->lead = rows > scheme->lead ? rows : scheme->lead;
	}
	session->quant = scheme;
}

static bool read_phase(struct session *session, const char *file, struct phase *phase)
{
	phase->name = emit_identifier(session->arena, design_name(session->arena, file));
	if (!load_module(session, file))
		return false;
	phase->module = session->module;
	if (phase->module->level == LEVEL_TENSOR)
		return true;
	diag_error(&session->diag, (struct location){ .file = file }, "is of level %s",
	        level_name(phase->module->level));
	return diag_note(&session->diag, "phases have to be compiled from the tensor level");
}

/* Runs the passes before the choices, once for all attempts. */
static bool begin_phase(struct session *session, const struct phase *phase)
{
	session->module = phase->module;
	return run_passes(session, 0, pass_choosing() - 1);
}

/* Builds a phase on a part of the platform. */
static bool finish_phase(struct session *session, const struct platform *platform, int number,
        struct design_phases *design)
{
	struct phase *phase = &design->phase[number];
	session->platform = platform;
	session->limit = smaller(session->limit, platform_total(platform));
	if (!point_build(session, pass_choosing(), pass_count - 1))
		return false;
	phase->module = session->module = module_clone(session->module, session->arena);
	design->narrowest[number] = session->narrowest;
	return true;
}

/* Cost of the kernel; ports of both phases are counted once. */
static struct design_cost joint_cost(const struct platform *platform, const struct joined *joined,
        struct design_cost first, const struct design_cost *second)
{
	for (int d = 0; d < platform->dies; d++)
		first.die[d] = resources_add(first.die[d], second->die[d]);
	first.die[platform->memory_die] =
	        resources_subtract(first.die[platform->memory_die], joined->shared_ports);
	first.total =
	        resources_subtract(resources_add(first.total, second->total), joined->shared_ports);
	first.ports = joined->adapters;
	return first;
}

static bool fits(const struct platform *platform, const struct design_cost *cost)
{
	int64_t have;
	int64_t need;
	for (int d = 0; d < platform->dies; d++)
		if (resources_exceeded(cost->die[d], platform->die[d], &have, &need))
			return false;
	return true;
}

/* Builds the second phase on what the first, of cost `first`, leaves of session->platform and
 * session->limit.  Which ports it shares is known only when it is built, and what is built depends
 * on the room that sharing leaves: so it is built until both fit. */
static bool build_second(
        struct session *session, const struct design_cost *first, struct design_phases *design)
{
	const struct platform *platform = session->platform;
	const struct choices choices = session->choices;
	const struct resources limit = session->limit;
	struct module *tensor = session->module;
	struct resources credit = ports_of(platform, design->phase[0].module);
	for (int i = 0; i < SECOND_ATTEMPTS; i++) {
		session->module = tensor;
		session->choices = choices;
		session->limit = limit;
		if (!finish_phase(session, rest_of(session, platform, first, credit), 1, design) ||
		        !join_phases(
		                platform, &design->phase[0], &design->phase[1], &design->joined))
			return false;
		struct design_cost second =
		        design_cost(session->arena, platform, design->phase[1].module);
		struct design_cost both = joint_cost(platform, &design->joined, *first, &second);
		if (fits(platform, &both))
			break;
		credit = smaller(credit, design->joined.shared_ports);
	}
	return true;
}

static bool check_names(struct session *session, const struct design_phases *design)
{
	if (!text_same(design->phase[0].name, design->phase[1].name))
		return true;
	diag_error(&session->diag, NOWHERE, "both phases are called %s", design->phase[0].name);
	return diag_note(
	        &session->diag, "a phase is named after its file: give files with different names");
}

/* begun: [phases] modules after begin_phase. */
static bool build_begun(struct session *session, struct choices choices,
        struct module *const begun[PHASES_MOST], struct design_phases *design)
{
	const struct platform *platform = session->platform;
	struct resources limit = session->limit;
	double target_ms = session->target_ms;
	session->choices = choices;
	session->module = begun[0];
	session->follows = false;
	bool built = finish_phase(session, half_of(session, platform), 0, design);
	if (built) {
		struct design_cost first =
		        design_cost(session->arena, platform, design->phase[0].module);
		choices.fixed = 0; /* --fix-kernel and --target-ms apply to the first phase */
		session->choices = choices;
		session->platform = platform;
		session->limit = resources_subtract(limit, first.total);
		session->target_ms = 0;
		session->follows = true;
		session->module = begun[1];
		built = build_second(session, &first, design);
	}
	session->platform = platform;
	session->limit = limit;
	session->target_ms = target_ms;
	return built;
}

static bool slow_down(struct session *session, const struct design_phases *design)
{
	struct design_cost first =
	        design_cost(session->arena, session->platform, design->phase[0].module);
	struct design_cost second =
	        design_cost(session->arena, session->platform, design->phase[1].module);
	struct design_cost both = joint_cost(session->platform, &design->joined, first, &second);
	return limits_slow_down(session, &both);
}

/* The second phase reads weights through the first's ports.  Where it lacks ports for its own
 * buffers, the first is built again with more ports reserved for the second. */
static bool build_both(struct session *session, struct design_phases *design)
{
	struct choices choices = session->choices;
	struct module *begun[PHASES_MOST];
	int64_t *dsp = &choices.value[CHOICE_DSP];
	*dsp = *dsp > 1 ? *dsp / 2 : *dsp;
	/* both phases read one packing of the weights, so not that of an engine */
	if (!choices.value[CHOICE_MATMUL])
		choices.value[CHOICE_MATMUL] = 1 + MATMUL_SPATIAL;
	session->choices = choices;
	if (!read_phase(session, session->options.file, &design->phase[0]) ||
	        !read_phase(session, session->options.with, &design->phase[1]) ||
	        !check_names(session, design))
		return false;
	set_state_lead(session, design->phase[1].module);
	for (int p = 0; p < PHASES_MOST; p++) {
		if (!begin_phase(session, &design->phase[p]))
			return false;
		begun[p] = session->module;
	}
	for (int i = 0;; i++) {
		bool built = build_begun(session, choices, begun, design) &&
		        (!slow_down(session, design) ||
		                build_begun(session, choices, begun, design));
		int lacks = built ? design->joined.adapters - session->platform->ports
		                  : session->context.excess_ports;
		if (session->stop || lacks <= 0 || i == FIRST_ATTEMPTS)
			return built;
		choices.value[CHOICE_RESERVED_PORTS] =
		        choice_count(&choices, CHOICE_RESERVED_PORTS) + lacks;
		session->diag.count = 0;
	}
}

bool phases_compile(struct session *session, struct design_phases *design)
{
	const struct platform *platform = session->platform;
	struct map parallelism_table = map_new(session->arena);
	struct resources limit = session->limit;
	session->parallelism_table = &parallelism_table;
	bool done = build_both(session, design);
	session->platform = platform;
	session->limit = limit;
	session->parallelism_table = NULL;
	session->follows = false;
	design->phases = (struct phases){ PHASES_MOST, design->phase };
	design->name =
	        text_format(session->arena, "%s_%s", design->phase[0].name, design->phase[1].name);
	return done;
}

/* ---- reports */

static struct design_cost cost_of(const struct design_phases *design, const struct report *report)
{
	return joint_cost(report->platform, &design->joined, report[0].cost, &report[1].cost);
}

/* Bytes of all buffers in the board's memory; buffers of both phases count once. */
static double buffer_bytes(const struct design_phases *design)
{
	double bytes = 0;
	for (int p = 0; p < design->phases.count; p++) {
		const struct attr *list =
		        attr_get(module_main(design->phase[p].module), KEY_STREAM_BUFFERS);
		for (int b = 0; list && b < list->count; b++) {
			const struct attr *buffer = list->items[b].value;
			if (attr_item(buffer, KEY_SAME_AS))
				continue;
			bytes += (double)attr_item_integer(buffer, KEY_WORDS, 0) *
			        (double)type_bits(attr_item(buffer, KEY_WORD)->type) / 8;
		}
	}
	return bytes;
}

static bool memory_fits(struct session *session, const struct design_phases *design)
{
	double need = buffer_bytes(design);
	double have = (double)session->platform->channel_bytes * session->platform->channels;
	if (need <= have)
		return true;
	diag_error(&session->diag, NOWHERE,
	        "the design does not fit: weights, KV cache, inputs and results take %.0f MB, %.0f "
	        "more than the %.0f MB of memory of %s",
	        need / 1e6, (need - have) / 1e6, have / 1e6, session->platform->name);
	return diag_note(
	        &session->diag, "fewer bits (--quant), a shorter context, or another --platform");
}

bool phases_fit(struct session *session, const struct design_phases *design)
{
	struct design_cost cost[PHASES_MOST];
	for (int p = 0; p < design->phases.count; p++)
		cost[p] = design_cost(session->arena, session->platform, design->phase[p].module);
	struct design_cost all = design->phases.count > 1
	        ? joint_cost(session->platform, &design->joined, cost[0], &cost[1])
	        : cost[0];
	return report_fits(session, &all) && memory_fits(session, design);
}

void phases_open(struct session *session, const struct design_phases *design,
        struct simulation *simulation, struct forecast **forecast)
{
	for (int p = 0; p < design->phases.count; p++) {
		session->module = design->phase[p].module;
		simulation[p] = simulation_open(session);
		forecast[p] = forecast_open(session);
	}
}

void phases_make(struct session *session, const struct design_phases *design,
        struct forecast *const *forecast, struct report *report)
{
	for (int p = 0; p < design->phases.count; p++) {
		session->module = design->phase[p].module;
		struct launches launches = forecast_take(session, forecast[p]);
		report[p] = report_make(
		        session, design->phases.count > 1 ? design->phase[p].name : design->name);
		report[p].launches = launches;
	}
}

void phases_simulated(struct session *session, const struct design_phases *design,
        const struct simulation *simulation, struct report *report)
{
	for (int p = 0; p < design->phases.count; p++) {
		report_simulated(session, &simulation[p], &report[p]);
		if (!report[p].termination_proof && !report[p].deadlock)
			text_add(&session->notices,
			        "stc: warning: freedom from deadlock is not proven for every "
			        "launch%s\n",
			        report[p].simulated ? "; the simulated launch completed" : "");
	}
}

static void add_phase(const struct report *report, bool first, struct text *out)
{
	bool simulated = report->simulated && !report->deadlock;
	const char *file = "report.json";
	if (!first)
		file = text_format(out->arena, "%s/report.json", report->name);
	text_add(out, "%s    {\"name\": ", first ? "" : ",\n");
	json_quote(out, report->name);
	text_add(out, ", \"report\": ");
	json_quote(out, file);
	text_add(out, ", \"latency_ms\": %.6g, \"cycles\": %lld, \"ports\": %d}",
	        report->latency_ms, (long long)(simulated ? report->cycles : report->time.most),
	        report->cost.ports);
}

/* Figures of the whole kernel: the last members of the first phase's report. */
static const char *kernel_json(
        struct arena *arena, const struct design_phases *design, const struct report *report)
{
	struct text text = text_new(arena);
	struct design_cost all = cost_of(design, report);
	text_add(&text, "  \"phases\": [\n");
	for (int p = 0; p < design->phases.count; p++)
		add_phase(&report[p], !p, &text);
	text_add(&text,
	        "\n  ],\n  \"kernel\": {\"ports\": %d, \"shared_bytes\": %lld, \"repacked_bytes\": "
	        "%lld,\n",
	        all.ports, (long long)design->joined.shared_bytes,
	        (long long)design->joined.own_bytes);
	report_resources(&text, "resources", all.total);
	text_add(&text, "  \"fits\": true},\n");
	return text.data;
}

static void kernel_text(
        const struct design_phases *design, const struct report *report, struct text *out)
{
	const struct platform *platform = report->platform;
	struct design_cost all = cost_of(design, report);
	text_add(out,
	        "\none kernel of %d phases: %s\nmemory ports    %d of %d\nsecond phase    shares "
	        "%lld bytes of weights and KV cache with the first; %lld bytes are stored again in "
	        "another layout\n",
	        design->phases.count,
	        text_format(out->arena, "%s, %s", design->phase[0].name, design->phase[1].name),
	        all.ports, platform->ports, (long long)design->joined.shared_bytes,
	        (long long)design->joined.own_bytes);
	report_table(out, "both", all.total, platform_total(platform));
	for (int i = 0; i < platform->dies && platform->dies > 1; i++)
		report_table(
		        out, text_format(out->arena, "die %d", i), all.die[i], platform->die[i]);
}

static bool write_report(struct session *session, const char *folder, const struct report *report,
        const struct text *more)
{
	struct text json = text_new(session->arena);
	struct text text = text_new(session->arena);
	struct text page = text_new(session->arena);
	struct output *output = session->output;
	report_json(report, &json);
	report_text(report, &text);
	text_add(&text, "%s", more->size ? more->data : "");
	return report_page(report, &session->diag, &page) &&
	        output_file(output, phase_file(session->arena, folder, "report.json"), json.data,
	                json.size) &&
	        output_file(output, phase_file(session->arena, folder, "report.txt"), text.data,
	                text.size) &&
	        output_file(output, phase_file(session->arena, folder, "report.html"), page.data,
	                page.size);
}

bool phases_report(
        struct session *session, const struct design_phases *design, const struct report *report)
{
	for (int p = 0; p < design->phases.count; p++) {
		struct report own = report[p];
		struct text more = text_new(session->arena);
		if (design->phases.count > 1 && !p) {
			own.kernel = kernel_json(session->arena, design, report);
			kernel_text(design, report, &more);
		}
		if (!write_report(session, p ? design->phase[p].name : NULL, &own, &more))
			return false;
	}
	return true;
}
