/* Names the bottleneck of a design and what would help, from the simulation if there is one, else
 * from the model. */
#include "report/report.h"

#define MOST_OF_THE_TIME 0.6
/* a channel that is busy for this part of the time of a process that uses it is its limit */
#define WAITING_SHARE 0.97
#define ADVICE_MOST 6

struct busiest {
	int process;
	int64_t cycles; /* in which it works or waits for memory */
	double share;   /* of the launch */
	bool memory;    /* it has a memory port */
};

int64_t report_active(const struct report *report, int process)
{
	if (!report_ends(report))
		return report->time.process[process].busy;
	const struct cycle_process_result *result = &report->cycle_result.process[process];
	return result->active - result->input - result->output;
}

static int64_t whole(const struct report *report)
{
	return report_ends(report) ? report->cycles : report->time.most;
}

/* all: of all processes; else of those with arithmetic. */
static struct busiest find_busiest(const struct report *report, bool all)
{
	struct busiest found = { 0 };
	for (int i = 0; i < report->cost.processes; i++)
		if (report_active(report, i) > found.cycles &&
		        (all || report->cost.process[i].resources.dsp > 0))
			found = (struct busiest){ .process = i,
				.cycles = report_active(report, i) };
	found.share = whole(report) ? (double)found.cycles / (double)whole(report) : 0;
	found.memory =
	        report->cost.processes && report->time.process[found.process].memory_bytes > 0;
	return found;
}

static const char *name_of(const struct report *report, int process)
{
	return report->cost.process[process].name;
}

static double channel_share(const struct report *report)
{
	return whole(report) ? report->channel.cycles / (double)whole(report) : 0;
}

/* Is a memory channel with several ports the bottleneck?  A process with memory ports counts as
 * active while it waits for its channel. */
static bool is_channel(const struct report *report, struct busiest busiest)
{
	double least = busiest.memory ? WAITING_SHARE * busiest.share : busiest.share;
	return report->channel.adapters > 1 && channel_share(report) > MOST_OF_THE_TIME &&
	        channel_share(report) > least;
}

static const char *milliseconds(struct arena *arena, double ms)
{
	if (ms >= 1)
		return text_format(arena, "%.3g ms", ms);
	if (ms >= 1e-3)
		return text_format(arena, "%.3g us", ms * 1e3);
	return text_format(arena, "%.3g ns", ms * 1e6);
}

static const char *limit(struct arena *arena, const struct report *report, struct busiest busiest)
{
	const char *basis = report_ends(report) ? "time (simulated)" : "modeled time";
	double launch = report->platform->launch_us / 1e3 / report->latency_ms;
	if (report->deadlock)
		return text_format(arena, "deadlock: %s", report->deadlock);
	if (launch > MOST_OF_THE_TIME)
		return text_format(arena, "launch overhead of the host: %g us, %.0f %% of the time",
		        report->platform->launch_us, 100 * launch);
	if (is_channel(report, busiest))
		return text_format(arena,
		        "memory: %d memory ports share channel %d, which is busy %.0f %% of the %s",
		        report->channel.adapters, report->channel.number,
		        100 * channel_share(report), basis);
	if (busiest.share < MOST_OF_THE_TIME)
		return text_format(arena,
		        "latency of the kernel chain: each kernel waits for the previous one; the "
		        "busiest process, %s, works %.0f %% of the %s",
		        name_of(report, busiest.process), 100 * busiest.share, basis);
	return text_format(arena, "%s: %s is busy %.0f %% of the %s",
	        busiest.memory ? "memory" : "one process", name_of(report, busiest.process),
	        100 * busiest.share, basis);
}

static void add(struct report_answer *answer, const char *advice)
{
	if (answer->count < ADVICE_MOST)
		answer->advice[answer->count++] = advice;
}

/* Bits of the process's first memory port; 0: none. */
static int64_t port_bits(const struct report *report, int process)
{
	const struct block *entry = report->cost.process[process].function->region[0];
	for (int i = 0; i < entry->arguments; i++) {
		const struct type *type = entry->argument[i]->type;
		if (type_is_port(type))
			return type_bits(type->element);
	}
	return 0;
}

/* Small tensors share a port that is one element wide. */
static bool is_narrow(const struct report *report, int process)
{
	int64_t bits = port_bits(report, process);
	return bits > 0 && bits < report->platform->port_bits / 4;
}

static void advise_narrow(struct arena *arena, const struct report *report, struct busiest busiest,
        struct report_answer *answer)
{
	if (is_narrow(report, busiest.process))
		add(answer,
		        text_format(arena,
		                "%s uses %lld of the %d bits of its port per cycle: it serves all "
		                "tensors too small for a port of their own",
		                name_of(report, busiest.process),
		                (long long)port_bits(report, busiest.process),
		                report->platform->port_bits));
}

static void advise_busiest(struct arena *arena, const struct report *report, struct busiest busiest,
        struct report_answer *answer)
{
	const struct process_cost *process = &report->cost.process[busiest.process];
	const struct platform *platform = report->platform;
	bool wide = busiest.memory && !is_narrow(report, busiest.process);
	if (wide && report->cost.ports < platform->ports)
		add(answer,
		        text_format(arena,
		                "%s has one port, and %d of %d are used: a kernel with more lanes "
		                "gets more ports",
		                process->name, report->cost.ports, platform->ports));
	if (wide && report->cost.ports >= platform->ports - 1)
		add(answer,
		        text_format(arena,
		                "%d of %d memory ports are used, so %s gets no more bandwidth: "
		                "fewer bytes or a platform with faster memory would help",
		                report->cost.ports, platform->ports, process->name));
	if (!busiest.memory && process->interval > 1)
		add(answer,
		        text_format(arena,
		                "%s has an initiation interval of %lld: with II = 1 it would be "
		                "that many times as fast",
		                process->name, (long long)process->interval));
	if (!busiest.memory && !process->resources.dsp)
		add(answer,
		        text_format(arena,
		                "%s only moves data, so more DSPs do not help: wider or fewer "
		                "words would",
		                process->name));
	if (!busiest.memory && process->resources.dsp)
		add(answer,
		        text_format(arena,
		                "%s has %lld lane%s: a larger --kernel-dsp may give it more (%.0f "
		                "%% of the platform's DSPs are used)",
		                process->name, (long long)process->lanes,
		                process->lanes > 1 ? "s" : "",
		                100.0 * (double)report->cost.total.dsp /
		                        (double)platform_total(platform).dsp));
}

static void advise_channel(
        struct arena *arena, const struct report *report, struct report_answer *answer)
{
	const struct platform *platform = report->platform;
	add(answer,
	        text_format(arena,
	                "%s has %d memory channel%s, so more ports add no bandwidth: fewer bytes "
	                "(--quant) or a platform with faster memory would help",
	                platform->name, platform->channels, platform->channels > 1 ? "s" : ""));
}

/* What makes a launch longer and its parts cheaper. */
static const char *more_work(const struct report *report)
{
	return report->images ? "more images a launch (--images COUNT)"
	                      : "more work per launch (longer input, larger batch)";
}

static void advise_chain(
        struct arena *arena, const struct report *report, struct report_answer *answer)
{
	const struct busiest kernel = find_busiest(report, false);
	const struct process_cost *process = &report->cost.process[kernel.process];
	if (report->memory_ms > 0.02 * report->latency_ms &&
	        report->memory_ms < 0.5 * report->latency_ms)
		add(answer,
		        text_format(arena,
		                "moving all inputs and results once takes %s of the %s: the memory "
		                "ports of each kernel idle while others work; %s would use them",
		                milliseconds(arena, report->memory_ms),
		                milliseconds(arena, report->latency_ms),
		                report->decodes ? "shared ports, the matmul engine or prefetching"
		                                : more_work(report)));
	const char *how = "has one lane";
	if (process->interval > 1)
		how = text_format(arena, "has an initiation interval of %lld cycles",
		        (long long)process->interval);
	else if (process->lanes > 1)
		how = text_format(arena, "has %lld lanes", (long long)process->lanes);
	/* with a simulation, advise_path names the slowest processes */
	bool named = report_ends(report) && report->cycle_result.segments;
	if (kernel.cycles && (!named || process->interval > 1))
		add(answer,
		        text_format(arena,
		                "%s is the longest computation, %.0f %% of the time, and %s",
		                process->name, 100 * kernel.share, how));
}

/* The process with most cycles on the critical path after process `last`, which has `below`; -1:
 * none. */
static int next_on_path(const struct report *report, int64_t below, int last)
{
	const int64_t *on_path = report->cycle_result.on_path;
	int next = -1;
	for (int i = 0; i < report->cost.processes; i++) {
		bool follows = on_path[i] < below || (on_path[i] == below && i > last);
		if (follows && on_path[i] > 0 && (next < 0 || on_path[i] > on_path[next]))
			next = i;
	}
	return next;
}

/* Only processes on the critical path make the launch longer. */
static void advise_path(
        struct arena *arena, const struct report *report, struct report_answer *answer)
{
	struct text text = text_new(arena);
	int64_t below = INT64_MAX;
	int last = -1;
	for (int listed = 0; listed < 3; listed++) {
		int next = next_on_path(report, below, last);
		if (next < 0)
			break;
		text_add(&text, "%s%s %.0f %%", listed ? ", " : "", name_of(report, next),
		        100.0 * (double)report->cycle_result.on_path[next] /
		                (double)report->cycles);
		below = report->cycle_result.on_path[next];
		last = next;
	}
	if (text.size)
		add(answer,
		        text_format(arena,
		                "most of the critical path is in %s: only a faster one of these "
		                "shortens the launch",
		                text.data));
}

static void advise_dies(
        struct arena *arena, const struct report *report, struct report_answer *answer)
{
	const struct platform *platform = report->platform;
	int full = 0;
	int empty = 0;
	for (int i = 1; i < platform->dies; i++) {
		double share = resources_share(report->cost.die[i], platform->die[i]);
		if (share > resources_share(report->cost.die[full], platform->die[full]))
			full = i;
		if (share < resources_share(report->cost.die[empty], platform->die[empty]))
			empty = i;
	}
	double most = 100 * resources_share(report->cost.die[full], platform->die[full]);
	double least = 100 * resources_share(report->cost.die[empty], platform->die[empty]);
	bool crowded =
	        resources_share(report->cost.die[full], platform_uncrowded(platform, full)) > 1;
	if (crowded && least < most / 2)
		add(answer,
		        text_format(arena,
		                "die %d is crowded, %.0f %% full, while die %d is %.0f %% full: a "
		                "smaller --kernel-dsp helps",
		                full, most, empty, least));
}

/* FIFO depths that would end a deadlock. */
static void advise_depths(
        struct arena *arena, const struct report *report, struct report_answer *answer)
{
	for (int i = 0; i < report->cycle_result.cycle; i++) {
		const struct cycle_wait *wait = &report->cycle_result.wait[i];
		if (wait->room && wait->needed)
			add(answer,
			        text_format(arena, "FIFO %s needs depth %lld instead of %lld",
			                report->cycle_result.channel[wait->channel].name,
			                (long long)wait->needed, (long long)wait->depth));
	}
}

struct report_answer report_answer(struct arena *arena, const struct report *report)
{
	struct busiest busiest = find_busiest(report, true);
	struct report_answer answer = { .limit = limit(arena, report, busiest),
		.advice = ARENA_ARRAY(arena, const char *, ADVICE_MOST) };
	double launch = report->platform->launch_us / 1e3 / report->latency_ms;
	if (report->deadlock)
		advise_depths(arena, report, &answer);
	if (report->deadlock || !report->cost.processes)
		return answer;
	if (launch > 0.2 && !report->tokens_per_launch)
		add(&answer,
		        text_format(arena,
		                "launch overhead is %g us for any design: %s amortizes it",
		                report->platform->launch_us, more_work(report)));
	if (report_ends(report) && report->cycle_result.segments)
		advise_path(arena, report, &answer);
	if (is_channel(report, busiest))
		advise_channel(arena, report, &answer);
	else if (busiest.share < MOST_OF_THE_TIME)
		advise_chain(arena, report, &answer);
	else
		advise_busiest(arena, report, busiest, &answer);
	advise_narrow(arena, report, busiest, &answer);
	if (report->decodes && !report->run_time)
		add(&answer,
		        text_format(arena,
		                "the context is fixed at %lld: every token processes all of it; "
		                "compile for the context length that you need",
		                (long long)report->context));
	advise_dies(arena, report, &answer);
	return answer;
}
