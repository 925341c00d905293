/* Computes the figures of a report from the models and the simulation, and checks that a design
 * fits its platform. */
#include "report/report.h"
#include "predict/feedback.h"
#include "predict/token.h"
#include "fifo/fifo.h"
#include <string.h>

/* iterations that a compilation simulates, unless the user limits them */
#define SIMULATED_MOST 24000000
#define SAMPLES 256 /* points over time in report.html */

/* A converter of one process has its buffer as an array. */
static void count_box(struct op *op, void *context)
{
	struct memories *converters = context;
	if (op->code != OP_ALLOCA || !text_same(attr_text_or(op, KEY_STREAM_NAME, ""), "box"))
		return;
	converters->count++;
	converters->bytes += memory_bytes(op);
}

static void count_memories(struct report *report)
{
	for (int i = 0; i < report->cost.channels; i++) {
		const struct channel_cost *channel = &report->cost.channel[i];
		struct memories *kind =
		        channel->op->code == OP_FIFO ? &report->fifos : &report->converters;
		kind->count++;
		kind->bytes += channel->bytes;
		kind->needed += channel->needed;
		kind->most_depth =
		        channel->depth > kind->most_depth ? channel->depth : kind->most_depth;
	}
	for (int i = 0; i < report->cost.processes; i++)
		ir_walk(report->cost.process[i].function->region[0], count_box,
		        &report->converters);
}

/* The part of a tensor that its run-time extents leave, and of a state a sliding window. */
static double valid_part(const struct report *report, const struct attr *item)
{
	const struct op *main = module_main(report->module);
	const struct extent_list *extents = &report->extents;
	const struct attr *dims = attr_item(item, KEY_DIMS);
	const struct type *type = attr_item(item, KEY_TYPE)->type;
	double part = 1;
	for (int d = 0; dims && d < dims->count && d < type->rank; d++) {
		const char *symbol = timing_dim_symbol(dims->items[d].value);
		int64_t rows;
		if (symbol &&
		        timing_mean_extent(main, symbol, extents->count, extents->value, &rows) &&
		        rows < type->shape[d])
			part *= (double)rows / (double)type->shape[d];
	}
	return part;
}

/* Bytes that a launch reads of an input, or writes of a result; of a table, only the rows that it
 * gathers. */
static double item_bytes(const struct report *report, const struct attr *item)
{
	const struct attr *type = attr_item(item, KEY_TYPE);
	if (!type)
		return 0;
	int64_t all = type_elements(type->type);
	return (double)attr_item_integer(item, KEY_GATHERED_ELEMENTS, all) *
	        valid_part(report, item) * (double)type_bits(type_scalar(type->type)) / 8;
}

static bool has_role(const struct attr *item, const char *role)
{
	return text_same(attr_item_text(item, KEY_ROLE), role);
}

/* Is the length of a dim a run-time extent? */
static bool has_extent(const struct attr *dims)
{
	for (int d = 0; dims && d < dims->count; d++)
		if (timing_dim_symbol(dims->items[d].value))
			return true;
	return false;
}

int64_t report_tokens(const struct module *module)
{
	const struct attr *outputs = attr_get(module_main(module), KEY_STREAM_OUTPUTS);
	for (int i = 0; outputs && i < outputs->count; i++) {
		const struct attr *item = outputs->items[i].value;
		const struct attr *axis = attr_item(item, KEY_AXIS);
		if (has_role(item, "state") && axis)
			return attr_item(item, KEY_TYPE)->type->shape[axis->integer];
	}
	return 0;
}

/* Figures that follow from inputs and outputs: tokens, batch, context, bytes moved in a launch. Of
 * a state, what is read. */
static void read_signature(struct report *report)
{
	const struct op *function = module_main(report->module);
	const struct attr *inputs = attr_get(function, KEY_STREAM_INPUTS);
	const struct attr *outputs = attr_get(function, KEY_STREAM_OUTPUTS);
	report->tokens = report_tokens(report->module);
	for (int i = 0; inputs && i < inputs->count; i++)
		report->host_bytes += item_bytes(report, inputs->items[i].value);
	for (int i = 0; outputs && i < outputs->count; i++) {
		const struct attr *item = outputs->items[i].value;
		const struct attr *axis = attr_item(item, KEY_AXIS);
		const struct attr *name = attr_item(item, KEY_NAME);
		if (!has_role(item, "state"))
			report->host_bytes += item_bytes(report, item);
		if (!has_role(item, "state") || !axis || !name)
			continue;
		report->decodes = true;
		report->sequences = attr_item_integer(item, KEY_BATCH, 1);
		const struct attr *input = attr_entry(inputs, name->text);
		const struct attr *type = attr_item(input, KEY_TYPE);
		if (!type || axis->integer >= type->type->rank)
			continue;
		report->run_time = report->run_time || has_extent(attr_item(input, KEY_DIMS));
		report->context =
		        attr_item_integer(item, KEY_PAST, type->type->shape[axis->integer]) +
		        report->run_time;
	}
}

/* Energy by the busy cycles of processes and the bytes moved, simulated or modeled. */
static void estimate_energy(struct report *report, struct arena *arena)
{
	int64_t *busy = ARENA_ARRAY(arena, int64_t, report->cost.processes + 1);
	int64_t cycles = report->simulated ? report->cycles : report->time.most;
	double bytes = 0;
	for (int i = 0; i < report->cost.processes; i++)
		busy[i] = report->simulated ? cycle_busy(&report->cycle_result.process[i])
		                            : report->time.process[i].busy;
	for (int i = 0; report->simulated && i < report->cycle_result.ports; i++)
		bytes += (double)report->cycle_result.port[i].bytes;
	const struct activity activity = { .cycles = cycles,
		.busy = busy,
		.bytes = report->simulated ? bytes : report->time.memory_bytes };
	report->energy = energy_of(report->platform, &report->cost, &activity, report->latency_ms);
	if (report->tokens_per_launch)
		report->token_energy =
		        energy_of(report->platform, &report->cost, &activity, report->token_ms);
}

static void set_latency(struct report *report, int64_t cycles)
{
	const struct platform *platform = report->platform;
	struct feedback feedback;
	report->latency_ms = platform_launch_ms(platform, cycles);
	/* designs with a token count are reported per launch of the most tokens */
	if (!feedback_read(module_main(report->module), &feedback) || feedback.rows)
		return;
	report->tokens_per_launch =
	        feedback.most < FEEDBACK_TOKENS ? feedback.most : FEEDBACK_TOKENS;
	report->token_ms = platform_launch_ms(platform, cycles * report->tokens_per_launch) /
	        (double)report->tokens_per_launch;
}

int64_t report_cycles(const struct session *session, struct token_detail detail)
{
	int64_t cycles = token_cycles_at(session->platform, session->module, detail);
	int64_t moved = (int64_t)bundle_cycles(session->module->arena, session->platform,
	        session->module, detail.extents, detail.extent);
	return cycles > 0 && moved > cycles ? moved : cycles;
}

/* Modeled cycles of the reported launch, and of its images. */
static int64_t headline_cycles(
        const struct session *session, struct extent_list extents, struct image_times *image)
{
	struct token_detail detail = token_detail_predicted;
	detail.extents = extents.count;
	detail.extent = extents.value;
	detail.images = image;
	return report_cycles(session, detail);
}

/* Cached: the cycles of a module are needed when it is built and when it is reported. */
static int64_t predicted_cycles(struct session *session)
{
	if (session->predicted != session->module)
		session->predicted_cycles =
		        headline_cycles(session, headline_extents(session->arena, session->module),
		                &session->predicted_image);
	session->predicted = session->module;
	return session->predicted_cycles;
}

struct forecast *forecast_open(struct session *session)
{
	struct arena *arena = arena_within(session->arena);
	struct forecast *forecast = ARENA_NEW(arena, struct forecast);
	*forecast = (struct forecast){
		.arena = arena, .session = ARENA_NEW(arena, struct session), .of = session->module
	};
	forecast->session->platform = session->platform;
	forecast->session->module = module_clone(session->module, arena);
	forecast->session->module->guard = &forecast->guard;
	return forecast;
}

void forecast_run(void *data, struct arena *scratch)
{
	struct forecast *forecast = data;
	arena_share_guard(forecast->arena, scratch);
	if (setjmp(forecast->guard.leave))
		return;
	forecast->cycles = headline_cycles(forecast->session,
	        headline_extents(forecast->arena, forecast->session->module), &forecast->image);
	forecast->launches = launches_modeled(forecast->session, forecast->arena);
}

struct launches forecast_take(struct session *session, struct forecast *forecast)
{
	struct launches launches = forecast->launches;
	if (forecast->guard.reason != GUARD_NONE)
		guard_leave(&session->guard, forecast->guard.reason, "%s", forecast->guard.message);
	session->predicted = forecast->of;
	session->predicted_cycles = forecast->cycles;
	session->predicted_image = forecast->image;
	arena_share_guard(forecast->arena, session->arena);
	arena_free(forecast->arena);
	return launches;
}

/* A memory channel shared by several ports may take longer than each of their processes. */
static void bound_by_memory(struct report *report)
{
	struct design_time *time = &report->time;
	int64_t brought = (int64_t)report->channel.cycles;
	report->memory_least = brought > time->least;
	time->least = report->memory_least ? brought : time->least;
	time->most = time->most > time->least ? time->most : time->least;
}

/* A launch that memory makes longer does so by its images. */
static void set_image(struct report *report)
{
	struct image_times *image = &report->image;
	int64_t busiest = 0;
	if (!report->predicted || !image->interval) {
		*image = (struct image_times){ .first = report->time.most };
		return;
	}
	image->interval = (report->time.most - image->first) / (report->images - 1);
	for (int i = 0; i < report->cost.processes; i++)
		if (report->time.process[i].busy > busiest && !report->time.process[i].source)
			busiest = report->time.process[i].busy;
	*image = image_times_of(*image, report->images, report->time.most, busiest);
}

/* The element type of most of the numbers that a launch is given with this role. */
static const char *numbers_of(struct arena *arena, const struct module *module, const char *role)
{
	const struct attr *inputs = attr_get(module_main(module), KEY_STREAM_INPUTS);
	const struct type *most = NULL;
	int64_t elements = 0;
	for (int i = 0; inputs && i < inputs->count; i++) {
		const struct attr *type = attr_item(inputs->items[i].value, KEY_TYPE);
		if (!type || !has_role(inputs->items[i].value, role) ||
		        type_elements(type->type) <= elements)
			continue;
		elements = type_elements(type->type);
		most = type_scalar(type->type);
	}
	if (most && most->kind == TYPE_INTEGER)
		return text_format(arena, "int%d", most->width);
	return most ? most->text : NULL;
}

struct report report_make(struct session *session, const char *name)
{
	const struct platform *platform = session->platform;
	struct report report = { .quant = session->quant ? session->quant->text : "none",
		.name = name,
		.module = session->module,
		.platform = platform };
	report.cost = design_cost(session->arena, platform, session->module);
	report.extents = headline_extents(session->arena, session->module);
	report.time = design_time(
	        session->arena, platform, session->module, &report.cost, report.extents);
	report.least = choice_word(&session->choices, CHOICE_FIFO) == FIFO_STRATEGY_MINIMAL;
	count_memories(&report);
	report.unfused = intermediates_noted(session->module, KEY_STREAM_UNFUSED);
	report.fused = intermediates_noted(session->module, KEY_STREAM_FUSED);
	report.on_chip = on_chip_count(&report.cost);
	read_signature(&report);
	report.termination_proof = fifo_proof(session->module);
	int64_t cycles = predicted_cycles(session);
	report.predicted = cycles > 0;
	report.images = images_of(session->module);
	report.numbers = numbers_of(session->arena, session->module, "weight");
	if (!report.numbers)
		report.numbers = numbers_of(session->arena, session->module, "input");
	report.image = session->predicted_image;
	report.time.most = cycles > 0 ? cycles : report.time.most;
	report.channel = bundle_busiest_channel(session->arena, platform, session->module,
	        report.extents.count, report.extents.value);
	bound_by_memory(&report);
	double per_ms = platform->clock_mhz * 1e3;
	report.model_ms = platform_launch_ms(platform, report.time.most);
	report.least_ms = platform_launch_ms(platform, report.time.least);
	set_latency(&report, report.time.most);
	set_image(&report);
	report.memory_ms = report.host_bytes /
	        (platform->channels * platform->channel_gbps * platform->channel_efficiency * 1e6);
	report.mac_ms = report.time.multipliers
	        ? (double)report.time.multiplies / (double)report.time.multipliers / per_ms
	        : 0;
	estimate_energy(&report, session->arena);
	return report;
}

bool report_ends(const struct report *report)
{
	return report->simulated && !report->deadlock;
}

double report_products(const struct report *report)
{
	return (double)report->time.multipliers * report->mac_ms / report->latency_ms;
}

struct simulation simulation_open(struct session *session)
{
	int diagnostics = session->diag.count;
	struct arena *arena = arena_within(session->arena);
	const struct extent_list extents = headline_extents(arena, session->module);
	int64_t budget = session->options.events ? session->options.events : SIMULATED_MOST;
	struct simulation simulation = { .arena = arena,
		.network = cycle_open_at(
		        arena, session->platform, session->module, extents.count, extents.value),
		.outcome = CYCLE_REFUSED,
		.cycle_result = { .first_output = -1 } };
	simulation.options = (struct cycle_options){ .arena = arena,
		.budget = budget,
		.samples = SAMPLES,
		.path = true,
		.remedy = true,
		.stop = &session->stop };
	session->diag.count = diagnostics; /* a design that cannot be simulated is no error */
	return simulation;
}

void simulation_run(void *data, struct arena *scratch)
{
	struct simulation *simulation = data;
	arena_share_guard(simulation->arena, scratch);
	if (simulation->network)
		simulation->outcome = cycle_run(
		        simulation->network, &simulation->options, &simulation->cycle_result);
}

void report_simulated(
        struct session *session, const struct simulation *simulation, struct report *report)
{
	arena_share_guard(simulation->arena, session->arena);
	report->simulated =
	        simulation->outcome == CYCLE_DONE || simulation->outcome == CYCLE_DEADLOCK;
	report->cycle_result = simulation->cycle_result;
	if (!report->simulated)
		return;
	report->cycles = report->cycle_result.cycles;
	report->first_output = report->cycle_result.first_output;
	report->deadlock = report->cycle_result.deadlock;
	if (report->deadlock) {
		text_add(&session->notices, "stc: the simulated design deadlocks: %s\n",
		        report->deadlock);
		return;
	}
	set_latency(report, report->cycles);
	report->image = cycle_image_times(&report->cycle_result);
	estimate_energy(report, session->arena);
}

void report_simulate(struct session *session, struct report *report)
{
	struct simulation simulation = simulation_open(session);
	simulation_run(&simulation, session->arena);
	report_simulated(session, &simulation, report);
}

static const char *remedy(const char *resource)
{
	bool memory = !strncmp(resource, "BRAM", 4) || !strncmp(resource, "URAM", 4);
	return memory ? "a smaller --on-chip-memory, a shorter context, or a larger --platform"
	              : "a smaller --kernel-dsp, or a larger --platform";
}

static bool exceeds(struct session *session, struct resources used, struct resources available,
        const char *where)
{
	int64_t have;
	int64_t need;
	const char *resource = resources_exceeded(used, available, &have, &need);
	if (!resource)
		return false;
	diag_error(&session->diag, NOWHERE,
	        "the design does not fit: it needs %lld %s%s, %lld more than the %lld that %s has",
	        (long long)need, resource, where, (long long)(need - have), (long long)have,
	        session->platform->name);
	diag_note(&session->diag, "%s", remedy(resource));
	return true;
}

bool report_fits(struct session *session, const struct design_cost *cost)
{
	const struct platform *platform = session->platform;
	if (cost->ports > platform->ports) {
		diag_error(&session->diag, NOWHERE,
		        "the design does not fit: it needs %d memory ports, %d more than the %d "
		        "that %s has",
		        cost->ports, cost->ports - platform->ports, platform->ports,
		        platform->name);
		return diag_note(&session->diag,
		        "a smaller --kernel-dsp gives kernels fewer lanes, and so fewer ports");
	}
	if (exceeds(session, cost->total, platform_total(platform), ""))
		return false;
	for (int i = 0; i < platform->dies && pass_find("floorplan") >= 0; i++)
		if (exceeds(session, cost->die[i], platform->die[i],
		            text_format(session->arena, " on die %d", i)))
			return false;
	return true;
}
