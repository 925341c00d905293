/* Interval and latency of the images of a launch: of designs whose inputs are images, and of
 * simulated launches. */
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

void images_json(const struct report *report, struct text *out)
{
	if (!report->images || report->deadlock)
		return;
	add_json(out, report->platform, report->images, &report->image);
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
