/* Interval and latency of the images of a launch: of designs whose inputs are images, and of
 * simulated launches; and the layer that sets the interval. */
#include "base/json.h"
#include "report/report.h"
#include "report/simulate.h"

static double milliseconds(const struct platform *platform, int64_t cycles)
{
	return (double)cycles / (platform->clock_mhz * 1e3);
}

static double steady_rate(const struct platform *platform, const struct image_times *times)
{
	return 1e3 / milliseconds(platform, times->interval);
}

static const char *basis_of(const struct report *report)
{
	if (report_ends(report))
		return "simulated";
	return report->predicted ? "modeled" : "modeled, upper bound";
}

/* One image from the launch to its result, and a further one. */
static void add_times(struct text *out, const struct platform *platform,
        const struct image_times *times, const char *basis)
{
	text_add(out, "one image       %lld cycles, %.4g ms from the launch to its result",
	        (long long)times->first, milliseconds(platform, times->first));
	if (times->interval)
		text_add(out, "; %s %lld cycles, %.4g ms",
		        times->together
		                ? "results wait for other images, its share of the launch is"
		                : "a further one every",
		        (long long)times->interval, milliseconds(platform, times->interval));
	text_add(out, "    (%s)\n", basis);
}

/* The process that sets the interval of images. */
struct slowest {
	int process;
	int kernel;      /* that it brings words; itself, if it is one */
	int64_t cycles;  /* that it works on an image or waits for memory */
	bool memory;     /* it has a memory port */
	bool arithmetic; /* it computes */
};

/* The process that reads what this one gives; itself, if there is none. Calls are in the order of
 * the words, and a channel has one reader. */
static int reader_of(const struct report *report, int process)
{
	const struct op *call = report->cost.process[process].call;
	for (int i = process + 1; i < report->cost.processes; i++)
		for (int j = 0; j < report->cost.process[i].call->operands; j++)
			for (int k = 0; k < call->operands; k++)
				if (report->cost.process[i].call->operand[j] == call->operand[k] &&
				        !type_is_port(call->operand[k]->type))
					return i;
	return process;
}

static bool computes(const struct process_cost *process)
{
	return process->resources.dsp > 0 || process->call->location.layer;
}

static struct slowest find_slowest(const struct report *report)
{
	struct slowest found = { 0 };
	for (int i = 0; i < report->cost.processes; i++) {
		int64_t cycles = report_active(report, i) / report->images;
		if (cycles > found.cycles)
			found = (struct slowest){ .process = i, .cycles = cycles };
	}
	found.memory = report->time.process[found.process].memory_bytes > 0;
	found.arithmetic = computes(&report->cost.process[found.process]);
	found.kernel = found.process;
	int next = reader_of(report, found.kernel);
	while (!computes(&report->cost.process[found.kernel]) && next != found.kernel) {
		found.kernel = next;
		next = reader_of(report, found.kernel);
	}
	return found;
}

static const char *bound_of(const struct slowest *slowest)
{
	if (slowest->memory)
		return "memory";
	return slowest->arithmetic ? "lanes" : "words";
}

static const char *remedy_of(
        struct arena *arena, const struct report *report, const struct slowest *slowest)
{
	int64_t lanes = report->cost.process[slowest->process].lanes;
	if (slowest->memory)
		return "memory: more images a launch share weights, more ports bring them faster";
	if (!slowest->arithmetic)
		return "a word a cycle: wider words would help, more DSPs would not";
	return text_format(arena, "its %lld lane%s: a larger --kernel-dsp may give it more",
	        (long long)lanes, lanes > 1 ? "s" : "");
}

static void add_slowest(const struct report *report, struct text *out)
{
	const struct slowest slowest = find_slowest(report);
	const struct process_cost *process = &report->cost.process[slowest.process];
	const struct process_cost *kernel = &report->cost.process[slowest.kernel];
	const char *layer = kernel->call->location.layer;
	text_add(out, "slowest layer   ");
	if (layer)
		text_add_literal(out, layer);
	text_add(out, "%s%s", layer ? ", " : "", kernel->name);
	if (kernel != process)
		text_add(out, ": %s, which brings it words,", process->name);
	text_add(out, " works %lld cycles an image, bound by %s    (%s)\n",
	        (long long)slowest.cycles, remedy_of(out->arena, report, &slowest),
	        basis_of(report));
}

void images_text(const struct report *report, struct text *out)
{
	if (!report->images || report->deadlock)
		return;
	const struct platform *platform = report->platform;
	double launched = (double)report->images * 1e3 / report->latency_ms;
	add_times(out, platform, &report->image, basis_of(report));
	if (report->image.interval)
		text_add(out,
		        "images          %.4g/s at that interval, %.4g/s in launches of %lld with "
		        "%g us overhead each    (%s)\n",
		        steady_rate(platform, &report->image), launched, (long long)report->images,
		        platform->launch_us, basis_of(report));
	else
		text_add(out, "images          %.4g/s in launches of %lld%s    (%s)\n", launched,
		        (long long)report->images,
		        report->images > 1
		                ? ""
		                : ", which wait for each other: with --images COUNT they do not",
		        basis_of(report));
	if (report->cost.processes)
		add_slowest(report, out);
}

static void add_json(struct text *out, const struct platform *platform, int64_t images,
        const struct image_times *times)
{
	text_add(out, "  \"images\": {\"count\": %lld", (long long)images);
	if (times->first)
		text_add(out, ", \"latency_cycles\": %lld, \"latency_ms\": %.6g",
		        (long long)times->first, milliseconds(platform, times->first));
	if (times->together)
		text_add(out, ", \"together\": true");
	if (times->interval)
		text_add(out,
		        ", \"interval_cycles\": %lld, \"interval_ms\": %.6g, \"steady_per_s\": "
		        "%.6g",
		        (long long)times->interval, milliseconds(platform, times->interval),
		        steady_rate(platform, times));
}

static void add_slowest_json(const struct report *report, struct text *out)
{
	const struct slowest slowest = find_slowest(report);
	text_add(out, ", \"slowest\": {\"kernel\": ");
	json_quote(out, report->cost.process[slowest.kernel].name);
	text_add(out, ", \"process\": ");
	json_quote(out, report->cost.process[slowest.process].name);
	text_add(out, ", \"cycles\": %lld, \"bound\": ", (long long)slowest.cycles);
	json_quote(out, bound_of(&slowest));
	text_add(out, "}");
}

void images_json(const struct report *report, struct text *out)
{
	if (!report->images || report->deadlock)
		return;
	add_json(out, report->platform, report->images, &report->image);
	if (report->cost.processes)
		add_slowest_json(report, out);
	text_add(out, ", \"per_s\": %.6g, \"source\": \"%s\"},\n",
	        (double)report->images * 1e3 / report->latency_ms,
	        report_ends(report) ? "simulated" : "modeled");
}

/* Of several launches: the first one's first image, and what a further image adds. */
static struct image_times times_of(const struct simulated *simulated, int64_t images)
{
	const struct cycle_result *result = simulated->cycle_result;
	if (simulated->wanted > 1)
		return (struct image_times){ .interval = result->steady / images };
	return cycle_image_times(result);
}

static bool has_times(const struct session *session, const struct simulated *simulated)
{
	return images_of(session->module) && !simulated->stopped && !simulated->steps &&
	        !simulated->cycle_result->deadlock;
}

void simulated_images_text(struct session *session, const struct simulated *simulated)
{
	int64_t images = images_of(session->module);
	if (!has_times(session, simulated))
		return;
	const struct image_times times = times_of(simulated, images);
	if (times.first)
		add_times(&session->out, session->platform, &times, "simulated");
	if (times.interval)
		text_add(&session->out,
		        "images          %.4g/s at an interval of %lld cycles    (simulated)\n",
		        steady_rate(session->platform, &times), (long long)times.interval);
}

void simulated_images_json(struct session *session, const struct simulated *simulated)
{
	int64_t images = images_of(session->module);
	if (!has_times(session, simulated))
		return;
	const struct image_times times = times_of(simulated, images);
	add_json(&session->out, session->platform, images, &times);
	text_add(&session->out, ", \"source\": \"simulated\"},\n");
}
