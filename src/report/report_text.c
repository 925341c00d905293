/* Writes report.txt: first time, bottleneck and advice, then the figures behind them. */
#include "report/report_loops.h"

#define BUSIEST 12 /* processes listed */

static void row(struct text *out, const char *name, int64_t used, int64_t available)
{
	double share = available ? 100.0 * (double)used / (double)available : 0;
	text_add(out, "  %-8s %12lld %12lld %7.1f %%\n", name, (long long)used,
	        (long long)available, share);
}

void report_table(struct text *out, const char *title, struct resources used, struct resources has)
{
	text_add(out, "%-10s %12s %12s\n", title, "used", "available");
	row(out, "LUT", used.lut, has.lut);
	row(out, "FF", used.ff, has.ff);
	row(out, "DSP", used.dsp, has.dsp);
	row(out, "BRAM18", used.bram18, has.bram18);
	row(out, "URAM", used.uram, has.uram);
}

static void add_launch(const struct report *report, struct text *out)
{
	const struct platform *platform = report->platform;
	bool ends = report_ends(report);
	if (ends)
		text_add(out,
		        "one launch      %lld cycles at %g MHz, %.4g ms including %g us launch "
		        "overhead    (simulated)\n",
		        (long long)report->cycles, platform->clock_mhz, report->latency_ms,
		        platform->launch_us);
	if (report->deadlock)
		text_add(out, "deadlock        in the simulation: %s\n", report->deadlock);
	const char *basis = "upper bound: no overlap along the longest chain of kernels";
	if (report->predicted)
		basis = "token-level timing model";
	text_add(out,
	        "%s %lld cycles at %g MHz, %.4g ms including %g us launch overhead    (%s%s)\n",
	        ends ? "modeled        " : "one launch     ", (long long)report->time.most,
	        platform->clock_mhz, report->model_ms, platform->launch_us, ends ? "" : "modeled, ",
	        basis);
	launches_text(report, out);
	const char *proof = ends ? "one simulated launch completed" : "not proven";
	if (report->termination_proof)
		proof = text_format(
		        out->arena, "%s, for all run-time extents", report->termination_proof);
	text_add(out, "deadlock-free   (%s)\n", proof);
}

static const struct type *state_type(const struct attr *inputs, int number)
{
	const struct attr *entry = inputs->items[number].value;
	if (!text_same(attr_item_text(entry, KEY_ROLE), "state"))
		return NULL;
	return type_scalar(attr_item(entry, KEY_TYPE)->type);
}

/* With --quant, the types of the states: a state is not quantized if its use is not recognized. */
static void add_numbers(const struct report *report, struct text *out)
{
	const struct attr *inputs = attr_get(module_main(report->module), KEY_STREAM_INPUTS);
	if (text_same(report->quant, "none"))
		return;
	text_add(out, "quantization    %s", report->quant);
	const char *before = "; KV cache: ";
	for (int i = 0; i < inputs->count; i++) {
		const struct type *type = state_type(inputs, i);
		int first = 0;
		int count = 0;
		while (type && state_type(inputs, first) != type)
			first++;
		if (!type || first < i)
			continue;
		for (int j = i; j < inputs->count; j++)
			count += state_type(inputs, j) == type;
		text_add(out, "%s%d of %s", before, count, type->text);
		before = ", ";
	}
	text_add(out, "\n");
}

static void add_lower_bound(const struct report *report, struct text *out)
{
	const struct design_time *time = &report->time;
	const char *by = text_format(
	        out->arena, "busiest process: %s", report->cost.process[time->longest].name);
	if (report->memory_least)
		by = text_format(out->arena,
		        "bandwidth of memory channel %d, shared by %d memory port%s",
		        report->channel.number, report->channel.adapters,
		        report->channel.adapters > 1 ? "s" : "");
	text_add(out, "at least        %lld cycles, %.4g ms    (modeled, %s)\n",
	        (long long)time->least, report->least_ms, by);
}

static void add_token_rate(const struct report *report, struct text *out)
{
	const char *launches = "one launch per token";
	if (report->tokens > 1)
		launches = text_format(out->arena, "up to %lld per launch%s",
		        (long long)report->tokens,
		        report->extents.count ? " with an empty KV cache" : "");
	if (report->sequences > 1)
		launches = text_format(out->arena, "%s of each of %lld sequences", launches,
		        (long long)report->sequences);
	double per_s = (double)(report->tokens * report->sequences) * 1e3;
	if (report->tokens_per_launch)
		text_add(out,
		        "tokens          %.4g/s with %lld per launch (greedy decoding on the "
		        "device), context %lld; with one per launch: %.4g/s\n",
		        per_s / report->token_ms, (long long)report->tokens_per_launch,
		        (long long)report->context, per_s / report->latency_ms);
	else if (report->decodes && (report->simulated || report->predicted))
		text_add(out, "tokens          %.4g/s, %s, context %lld\n",
		        per_s / report->latency_ms, launches, (long long)report->context);
	else if (report->decodes)
		text_add(out, "tokens          %.4g to %.4g/s, %s, context %lld\n",
		        per_s / report->model_ms, per_s / report->least_ms, launches,
		        (long long)report->context);
}

static void add_energy(const struct report *report, struct text *out)
{
	text_add(out,
	        "energy          %.4g mJ per launch at %.4g W; %.4g mJ at the board's limit of %g "
	        "W    (estimate: %g W idle, up to the limit by utilization of LUTs, DSPs and "
	        "memory; platform table)\n",
	        report->energy.launch_mj, report->energy.watts, report->energy.limit_mj,
	        report->platform->watts, report->platform->idle_watts);
	if (report->tokens_per_launch)
		text_add(out, "per token       %.4g ms and %.4g mJ in a launch of %lld\n",
		        report->token_ms, report->token_energy.launch_mj,
		        (long long)report->tokens_per_launch);
}

static void add_bounds(const struct report *report, struct text *out)
{
	const struct design_time *time = &report->time;
	if (report->memory_ms > 0)
		text_add(out,
		        "memory bound    %.4g ms: %.4g MB moved once at %.4g GB/s    (signature, "
		        "platform table)\n",
		        report->memory_ms, report->host_bytes / 1e6,
		        report->platform->channels * report->platform->channel_gbps *
		                report->platform->channel_efficiency);
	if (!time->multipliers)
		return;
	text_add(out,
	        "compute bound   %.4g ms: %lld multiplications on %lld multipliers    "
	        "(counted in the processes)\n",
	        report->mac_ms, (long long)time->multiplies, (long long)time->multipliers);
	text_add(out,
	        "utilization     %.4g of %lld multipliers on average, %.3g %%    (%s, "
	        "launch overhead included)\n",
	        report_products(report), (long long)time->multipliers,
	        100 * report->mac_ms / report->latency_ms,
	        report_ends(report) ? "simulated" : "modeled");
}

static void add_answer(const struct report *report, struct text *out)
{
	text_add(out, "%s on %s\n\n", report->name, report->platform->name);
	images_text(report, out);
	add_launch(report, out);
	add_lower_bound(report, out);
	add_token_rate(report, out);
	struct report_answer answer = report_answer(out->arena, report);
	text_add(out, "bottleneck      %s\n", answer.limit);
	for (int i = 0; i < answer.count; i++)
		text_add(out, "%s%s\n", i ? "                " : "suggestions     ",
		        answer.advice[i]);
	add_energy(report, out);
	add_numbers(report, out);
	add_bounds(report, out);
	text_add(out, "\n");
}

static void add_busiest(const struct report *report, struct text *out)
{
	int64_t below = INT64_MAX;
	text_add(out,
	        "\nbusiest processes (modeled: II x (trips - 1) + depth, latencies from the "
	        "platform's table)\n  %-32s %12s %4s %6s %6s\n",
	        "", "cycles", "II", "lanes", "DSP");
	for (int listed = 0; listed < BUSIEST && below;) {
		int64_t next = -1;
		for (int i = 0; i < report->cost.processes; i++) {
			int64_t busy = report->time.process[i].busy;
			next = busy < below && busy > next ? busy : next;
		}
		for (int i = 0; i < report->cost.processes && listed < BUSIEST; i++) {
			const struct process_cost *process = &report->cost.process[i];
			if (report->time.process[i].busy != next)
				continue;
			text_add(out, "  %-32s %12lld %4lld %6lld %6lld\n", process->name,
			        (long long)next, (long long)process->interval,
			        (long long)process->lanes, (long long)process->resources.dsp);
			listed++;
		}
		below = next < 0 ? 0 : next;
	}
}

void report_text(const struct report *report, struct text *out)
{
	const struct design_cost *cost = &report->cost;
	add_answer(report, out);
	text_add(out,
	        "resources (modeled: operators from the platform's table, memories by their true "
	        "shapes; available: after the shell)\n");
	report_table(out, "all", cost->total, platform_total(report->platform));
	for (int i = 0; i < report->platform->dies && report->platform->dies > 1; i++)
		report_table(out, text_format(out->arena, "die %d", i), cost->die[i],
		        report->platform->die[i]);
	for (int i = 0; i + 1 < report->platform->dies; i++)
		text_add(out,
		        "dies %d and %d    %lld wires of %d FIFOs between them, %lld there are\n",
		        i, i + 1, (long long)cost->wires[i], cost->crossings[i],
		        (long long)report->platform->crossing_wires);
	text_add(out, "\nprocesses       %d\nmemory ports    %d of %d\n", cost->processes,
	        cost->ports, report->platform->ports);
	text_add(out,
	        "FIFOs           %d, %lld bytes (%lld needed; rounded up to memory blocks), "
	        "deepest %lld words\n",
	        report->fifos.count, (long long)report->fifos.bytes,
	        (long long)report->fifos.needed, (long long)report->fifos.most_depth);
	text_add(out, "converters      %d, %lld bytes\n", report->converters.count,
	        (long long)report->converters.bytes);
	loops_text(report, out);
	report_layer_text(report, out);
	add_busiest(report, out);
}
