/* Applies a schedule to a kernel, and computes what follows from it: initiation interval, partial
 * sums and their cost, and words read. */
#include "schedule/kernel_schedule.h"
#include "ir/workload.h"
#include "predict/timing.h"
#include "schedule/node_cost.h"
#include <math.h>

#define PARTS_OPERATORS 32 /* most operators that combine partial sums */
/* cycles that partial sums must save each time, since combining them takes a pipeline of its own */
#define PARTS_CYCLES 128
/* partial sums of a reduction with a run-time trip count: a block of keys is so wide a word that
 * one term in four cycles is fast enough, and its adders are then shared */
#define DYNAMIC_PARTS 2
/* most results whose partial sums are combined after the reduction, because the models of time
 * enumerate these loops */
#define PARTS_NESTS 256

/* The first of the parts before `end` whose trip counts are `trips` together. */
static int first_of(const struct schedule *schedule, int end, int64_t trips)
{
	for (int64_t covered = 1; covered < trips && end > 0;)
		covered *= schedule->part[--end].trip;
	return end;
}

int schedule_first_lane(const struct schedule *schedule)
{
	return first_of(schedule, schedule->parts, schedule->lanes);
}

int schedule_loops(const struct schedule *schedule)
{
	return first_of(schedule, schedule_first_lane(schedule), schedule->row_unroll);
}

bool schedule_is_lane(const struct schedule *schedule, int part)
{
	return part >= schedule_first_lane(schedule);
}

bool schedule_is_row(const struct schedule *schedule, int part)
{
	return part >= schedule_loops(schedule) && !schedule_is_lane(schedule, part);
}

bool schedule_is_tree(const struct kernel *kernel, const struct schedule *schedule)
{
	return schedule->lanes > 1 && !kernel->scan &&
	        kernel->loop[schedule->part[schedule->parts - 1].source].reduction;
}

bool schedule_is_register_tile(const struct kernel *kernel, const struct schedule *schedule)
{
	const struct schedule_part *lane = schedule->part + schedule_first_lane(schedule);
	return schedule->row_unroll > 1 && schedule->lanes > 1 &&
	        !kernel->loop[lane->source].reduction && !kernel->loop[lane[-1].source].reduction;
}

/* Cycles between two updates of one accumulator, at one update a cycle. carried: some loop
 * reduces. */
static int64_t update_distance(
        const struct kernel *kernel, const struct schedule *schedule, bool *carried)
{
	int64_t distance = 1;
	*carried = false;
	for (int i = schedule->parts - 1; i >= 0; i--) {
		if (schedule_is_lane(schedule, i) || schedule_is_row(schedule, i) ||
		        schedule->part[i].trip == 1)
			continue;
		if (kernel->loop[schedule->part[i].source].reduction) {
			*carried = true;
			return distance;
		}
		distance *= kernel->loop[schedule->part[i].source].run_time
		        ? 1
		        : schedule->part[i].trip;
	}
	return distance;
}

/* Is the accumulator of each term the one that was updated the longest ago? Then the accumulators
 * are a shift register; otherwise the term has an address in a memory. */
static bool sums_rotate(const struct kernel *kernel, const struct schedule *schedule, int64_t parts)
{
	int64_t iterations = 0; /* of the innermost reduction; 0: not found yet */
	bool between = false;   /* is a loop inside the current one parallel? */
	for (int i = schedule->parts - 1; i >= 0; i--) {
		const struct loop *loop = &kernel->loop[schedule->part[i].source];
		if (schedule_is_lane(schedule, i) || schedule_is_row(schedule, i) ||
		        (schedule->part[i].trip == 1 && !loop->run_time))
			continue;
		if (!iterations && !loop->reduction && loop->run_time)
			return false;
		if (!iterations) {
			iterations = loop->reduction ? schedule->part[i].trip : 0;
			iterations = loop->reduction && loop->run_time ? 1 : iterations;
			continue;
		}
		between |= !loop->reduction;
		if (loop->reduction && (between || iterations % parts))
			return false;
	}
	return true;
}

/* Cycles from an accumulator to its next value, and from there to where it can be read. */
static int64_t update_cycles(
        const struct kernel *kernel, const struct schedule *schedule, int latency, int64_t parts)
{
	bool shift = sums_rotate(kernel, schedule, parts) &&
	        !schedule_is_register_tile(kernel, schedule);
	return shift ? latency : latency + ARRAY_UPDATE_CYCLES;
}

int64_t schedule_body_dsp(const struct platform *platform, const struct body *body)
{
	int64_t dsp = 0;
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP)
			dsp += node_cost(platform, body, &body->node[n], true).dsp;
	return dsp;
}

int schedule_chain_latency(
        const struct platform *platform, struct arena *arena, const struct kernel *kernel)
{
	const struct body *body = &kernel->update;
	int *latency = ARENA_ARRAY(arena, int, body->count + 1);
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		latency[n] = node->kind == NODE_ACCUMULATOR ? 0 : -1;
		for (int a = 0; node->kind == NODE_OP && a < op_info[node->code].operands; a++)
			if (latency[node->argument[a]] > latency[n])
				latency[n] = latency[node->argument[a]];
		if (node->kind == NODE_OP && latency[n] >= 0)
			latency[n] += platform_operator(platform, node->code, node->type).latency;
	}
	return latency[body->result] > 0 ? latency[body->result] : 1;
}

/* May each partial result start with the initial value of the whole? A maximum or minimum may count
 * it several times. */
static bool starts_anywhere(const struct kernel *kernel)
{
	return (kernel->combine == OP_ADDF && kernel->init == 0) ||
	        kernel->combine == OP_MAXIMUMF || kernel->combine == OP_MINIMUMF;
}

/* The post body reads its words when partial sums are combined, the update before that: do they use
 * different operands? */
static bool bodies_are_separate(const struct kernel *kernel)
{
	for (int n = 0; n < kernel->post.count; n++)
		if (kernel->post.node[n].kind == NODE_OPERAND &&
		        body_uses_operand(&kernel->update, (int)kernel->post.node[n].integer))
			return false;
	return !body_has(&kernel->update, OP_INDEX);
}

/* Iterations of the loops inside the outermost reduction; of those outside; of the parallel loops
 * inside, which have one sum each; and elements in a word of sums. */
struct sums {
	int64_t inside, outside, iterations, width;
};

static struct sums sums_of(const struct kernel *kernel, const struct schedule *schedule)
{
	struct sums sums = { 1, 1, 1, 1 };
	bool inside = false;
	for (int i = 0; i < schedule->parts; i++) {
		bool reduction = kernel->loop[schedule->part[i].source].reduction;
		if (schedule_is_lane(schedule, i) || schedule_is_row(schedule, i)) {
			sums.width *= reduction ? 1 : schedule->part[i].trip;
			continue;
		}
		inside = inside || (reduction && schedule->part[i].trip > 1);
		*(inside ? &sums.inside : &sums.outside) *= schedule->part[i].trip;
		sums.iterations *= inside && !reduction ? schedule->part[i].trip : 1;
	}
	return sums;
}

/* Is there one loop directly outside the reductions, and only reductions inside? The partial sums
 * of one result are then combined while the next result's terms arrive, which costs no cycles
 * (reduction_double_buffered.c). */
static bool is_fixed_double_buffered(
        const struct kernel *kernel, const struct schedule *schedule, int64_t parts)
{
	int nest = schedule_loops(schedule);
	int outer = 0;
	while (outer < nest &&
	        !(kernel->loop[schedule->part[outer].source].reduction &&
	                schedule->part[outer].trip > 1))
		outer++;
	for (int i = 0; i < nest; i++) {
		const struct loop *loop = &kernel->loop[schedule->part[i].source];
		/* there may be no terms, or fewer than partial sums */
		bool counted = loop->run_time && (loop->run_time->plus < 1 || i == nest - 1);
		if (i < outer ? loop->run_time || (schedule->part[i].trip > 1) != (i == outer - 1)
		              : !loop->reduction || counted)
			return false;
	}
	return outer > 0 && schedule->part[nest - 1].trip >= parts &&
	        !body_uses_counters(&kernel->post);
}

/* What has been seen of a loop nest so far. */
struct nest_scan {
	/* last: innermost parallel loop with several iterations outside the reductions */
	int last, counted, reductions;
	/* iterations of the innermost reduction; 0: counted at run time */
	int64_t inner;
	bool wrong;
};

static void scan_loop(struct nest_scan *seen, const struct loop *loop, int source, bool columns)
{
	bool several = loop->extent > 1 || loop->run_time;
	if (!loop->reduction) {
		seen->wrong |= seen->reductions && loop->run_time;
		seen->last = several && !seen->reductions ? source : seen->last;
		return;
	}
	if (!several)
		return;
	seen->wrong |= columns || (loop->run_time && loop->run_time->plus < 1);
	seen->inner = loop->run_time ? 0 : loop->extent;
	seen->counted += loop->run_time != NULL;
	seen->reductions++;
}

/* Does the post body read new elements for each result? */
static bool post_changes(const struct kernel *kernel, int last)
{
	for (int n = 0; n < kernel->post.count; n++)
		if (kernel->post.node[n].kind == NODE_OPERAND &&
		        !kernel->operand[kernel->post.node[n].integer].stride[last])
			return false;
	return !body_uses_counters(&kernel->post);
}

bool schedule_is_dynamic_buffered(
        const struct kernel *kernel, const struct schedule *schedule, int64_t parts)
{
	int nest = schedule ? schedule_loops(schedule)
	                    : kernel->loops - (kernel->lanes > 1) - (kernel->row_unroll > 1);
	struct nest_scan seen = { .last = -1 };
	bool columns = false;
	for (int i = 1; i < nest; i++) {
		int source = schedule ? schedule->part[i].source : i;
		const struct loop *of = &kernel->loop[source];
		struct loop loop = { schedule ? schedule->part[i].trip : of->extent, of->reduction,
			of->run_time };
		scan_loop(&seen, &loop, source, columns);
		columns = columns || (seen.reductions && !loop.reduction && loop.extent > 1);
	}
	bool is_spaced = seen.inner ? seen.inner % parts == 0 : seen.reductions == 1;
	return kernel->tile_outermost && parts > 1 && seen.last >= 0 && seen.counted && is_spaced &&
	        !seen.wrong && post_changes(kernel, seen.last);
}

static bool is_double_buffered(
        const struct kernel *kernel, const struct schedule *schedule, int64_t parts)
{
	return is_fixed_double_buffered(kernel, schedule, parts) ||
	        schedule_is_dynamic_buffered(kernel, schedule, parts);
}

/* The most partial sums, at most `parts`, for which two updates of one of them have the needed
 * distance. A term goes to the partial sum given by the innermost reduction's index modulo the
 * number of them. If another reduction encloses that one, its trip count must be a multiple of
 * that number, or the last term of one outer iteration and the first one of the next are too
 * close. Loops with a run-time trip count may have one iteration. */
static int64_t partial_sum_spacing(
        const struct kernel *kernel, const struct schedule *schedule, int64_t parts)
{
	int64_t iterations = 0;
	/* of loops between the innermost reduction and loop i */
	int64_t between = 1;
	for (int i = schedule_loops(schedule) - 1; i >= 0; i--) {
		const struct loop *loop = &kernel->loop[schedule->part[i].source];
		int64_t trip = loop->run_time ? 1 : schedule->part[i].trip;
		if (trip == 1 && !loop->run_time)
			continue;
		if (!iterations)
			iterations = loop->reduction ? trip : 0;
		else if (!loop->reduction)
			between *= trip;
		else
			while (parts > 1 && iterations % parts &&
			        (between - 1) * iterations < parts)
				parts /= 2;
	}
	return parts;
}

int64_t schedule_partial_sums(
        const struct kernel *kernel, const struct schedule *schedule, int latency)
{
	bool carried;
	int64_t distance = update_distance(kernel, schedule, &carried);
	int64_t parts = 1;
	struct sums sums = sums_of(kernel, schedule);
	if (!carried || distance >= update_cycles(kernel, schedule, latency, 1) ||
	        !starts_anywhere(kernel) || !bodies_are_separate(kernel) || schedule->held)
		return 1;
	while (parts * distance < update_cycles(kernel, schedule, latency, parts))
		parts *= 2;
	parts = parts > DYNAMIC_PARTS &&
	                schedule_is_dynamic_buffered(kernel, schedule, DYNAMIC_PARTS)
	        ? DYNAMIC_PARTS
	        : parts;
	parts = partial_sum_spacing(kernel, schedule, parts);
	int64_t saved = (latency - distance) * sums.inside / distance;
	bool pays = (is_double_buffered(kernel, schedule, parts) &&
	                    saved * sums.outside > PARTS_CYCLES) ||
	        (saved > PARTS_CYCLES && sums.outside <= PARTS_NESTS);
	return (parts - 1) * sums.width <= PARTS_OPERATORS && pays ? parts : 1;
}

int64_t schedule_tree_levels(int64_t numbers)
{
	int64_t levels = 0;
	for (; numbers > 1; numbers /= 2)
		levels++;
	return levels;
}

int64_t schedule_combine_cycles(int64_t lanes, int64_t parts, int64_t sums, int latency)
{
	return (schedule_tree_levels(lanes) + 1 + schedule_tree_levels(parts)) * latency + sums - 1;
}

int64_t schedule_drain_cycles(
        const struct kernel *kernel, const struct schedule *schedule, int latency, bool exact)
{
	int64_t parts = schedule_partial_sums(kernel, schedule, latency);
	int64_t lanes = exact && schedule_is_tree(kernel, schedule) ? schedule->lanes : 1;
	if (parts <= 1 || is_double_buffered(kernel, schedule, parts))
		return 0;
	struct sums sums = sums_of(kernel, schedule);
	return sums.outside *
	        schedule_combine_cycles(lanes, parts, exact ? sums.iterations : 1, latency);
}

int schedule_interval(const struct kernel *kernel, const struct schedule *schedule, int latency)
{
	bool carried;
	if (!kernel->loops)
		return SCALAR_INTERVAL;
	int64_t parts = schedule_partial_sums(kernel, schedule, latency);
	int64_t distance = update_distance(kernel, schedule, &carried) * parts;
	int64_t cycles = update_cycles(kernel, schedule, latency, parts);
	return carried ? (int)((cycles + distance - 1) / distance) : 1;
}

bool schedule_needs_interleaving(const struct op *op)
{
	return kernel_has_reduction(op->kernel) && op->kernel->combine == OP_NONE &&
	        !op->kernel->scan && workload_of(op) == WORKLOAD_NONE;
}

bool schedule_interleaved(struct arena *arena, const struct kernel *kernel,
        const struct schedule *schedule, struct schedule *interleaved)
{
	int first = 0;
	int loops = schedule_loops(schedule);
	while (first < loops &&
	        !(!kernel->scan && kernel->loop[schedule->part[first].source].reduction &&
	                schedule->part[first].trip > 1))
		first++;
	int outer = first - 1;
	while (outer >= 0 && schedule->part[outer].trip == 1)
		outer--;
	if (outer < 0 || first == loops || kernel->ordered ||
	        kernel->loop[schedule->part[outer].source].run_time)
		return false;
	*interleaved = *schedule;
	interleaved->part =
	        arena_copy(arena, schedule->part, sizeof *schedule->part * (size_t)schedule->parts);
	for (int i = outer; i + 1 < loops; i++)
		interleaved->part[i] = schedule->part[i + 1];
	interleaved->part[loops - 1] = schedule->part[outer];
	return true;
}

int64_t schedule_words(const struct kernel *kernel, const struct schedule *schedule, int operand)
{
	const struct access *access = &kernel->operand[operand];
	bool is_post = kernel_is_post_operand(kernel, operand);
	int64_t words = 1;
	int64_t all = 1;
	for (int i = 0; i < schedule_loops(schedule); i++) {
		if (is_post && kernel->loop[schedule->part[i].source].reduction)
			continue;
		all *= schedule->part[i].trip;
		words = access->stride[schedule->part[i].source] && schedule->part[i].trip > 1
		        ? all
		        : words;
	}
	return words;
}

/* The loop that a part of the schedule becomes, or is a digit of: parts that are unrolled together
 * are one. */
static int loop_of_part(const struct schedule *schedule, int part)
{
	int rows = schedule_loops(schedule);
	if (schedule_is_lane(schedule, part))
		return rows + (schedule->row_unroll > 1);
	return part < rows ? part : rows;
}

/* A loop over several parts moves in words alone: its stride is that of the last one. */
static void apply_access(struct arena *arena, const struct schedule *schedule,
        const struct access *from, struct access *to)
{
	*to = *from;
	to->causal_pitch = 0; /* the converter in front of the kernel has it */
	to->stride = ARENA_ARRAY(arena, int64_t, schedule->parts + 1);
	for (int i = 0; i < schedule->parts; i++)
		to->stride[loop_of_part(schedule, i)] =
		        from->stride[schedule->part[i].source] * schedule->part[i].step;
	to->guard = ARENA_ARRAY(arena, struct guard_range, from->guards + 1);
	for (int g = 0; g < from->guards; g++) {
		to->guard[g] = from->guard[g];
		for (int i = 0; i < schedule->parts; i++)
			if (schedule->part[i].source == from->guard[g].loop)
				to->guard[g].loop = loop_of_part(schedule, i);
	}
}

/* The index of an unscheduled loop, from the indices of its parts. */
static int counter(
        struct module *module, struct body *body, const struct schedule *schedule, int source)
{
	const struct type *index = type_index(module);
	int sum = -1;
	for (int i = 0; i < schedule->parts; i++) {
		if (schedule->part[i].source != source)
			continue;
		int term = body_add(module, body,
		        (struct node){ .kind = NODE_OP,
		                .code = OP_INDEX,
		                .type = index,
		                .integer = loop_of_part(schedule, i) });
		if (schedule->part[i].step != 1) {
			int step = body_add(module, body,
			        (struct node){ .kind = NODE_CONSTANT,
			                .type = index,
			                .integer = schedule->part[i].step });
			term = body_add(module, body,
			        (struct node){ .kind = NODE_OP,
			                .code = OP_MULI,
			                .type = index,
			                .argument = { term, step } });
		}
		sum = sum < 0 ? term
		              : body_add(module, body,
		                        (struct node){ .kind = NODE_OP,
		                                .code = OP_ADDI,
		                                .type = index,
		                                .argument = { sum, term } });
	}
	return sum < 0
	        ? body_add(module, body, (struct node){ .kind = NODE_CONSTANT, .type = index })
	        : sum;
}

static struct body apply_body(
        struct module *module, const struct schedule *schedule, const struct body *from)
{
	struct body to = { 0 };
	int *renamed = ARENA_ARRAY(module->arena, int, from->count + 1);
	for (int n = 0; n < from->count; n++) {
		struct node node = from->node[n];
		for (int a = 0; node.kind == NODE_OP && a < op_info[node.code].operands; a++)
			node.argument[a] = renamed[node.argument[a]];
		if (node.kind == NODE_OP && node.code == OP_INDEX)
			renamed[n] = counter(module, &to, schedule, (int)node.integer);
		else
			renamed[n] = body_add(module, &to, node);
	}
	to.result = from->count ? renamed[from->result] : 0;
	return to;
}

/* Replaces the padding of the last word of a reduction by the initial value. */
static void drop_padding(struct module *module, const struct schedule *schedule,
        const struct kernel *from, struct kernel *to)
{
	const struct type *index = type_index(module);
	const struct type *type = to->type;
	struct body *body = &to->update;
	int source = schedule->part[schedule->parts - 1].source;
	int term = 0;
	enum op_code combine = kernel_combine(to, &term);
	int extent = body_add(module, body,
	        (struct node){ .kind = NODE_CONSTANT,
	                .type = index,
	                .integer = from->loop[source].extent });
	int at = counter(module, body, schedule, source);
	int inside = body_add(module, body,
	        (struct node){ .kind = NODE_OP,
	                .code = OP_CMPI,
	                .type = type_integer(module, 1),
	                .argument = { at, extent },
	                .integer = CMPI_SLT });
	int start = body_add(module, body,
	        (struct node){ .kind = NODE_CONSTANT,
	                .type = type,
	                .integer = kernel_init_integer(to->init) });
	int term_or_start = body_add(module, body,
	        (struct node){ .kind = NODE_OP,
	                .code = OP_SELECT,
	                .type = type,
	                .argument = { inside, term, start } });
	int acc = body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = type });
	body->result = body_add(module, body,
	        (struct node){ .kind = NODE_OP,
	                .code = combine,
	                .type = type,
	                .argument = { acc, term_or_start } });
	body_remove_dead(module, body);
}

struct kernel *schedule_apply(struct module *module, const struct platform *platform,
        const struct kernel *kernel, int operands, const struct schedule *schedule)
{
	struct kernel *to = arena_copy(module->arena, kernel, sizeof *kernel);
	to->loops = 0;
	to->loop = ARENA_ARRAY(module->arena, struct loop, schedule->parts + 1);
	for (int i = 0; i < schedule->parts; i++) {
		int64_t trip = schedule->part[i].trip;
		if (loop_of_part(schedule, i) < to->loops)
			trip *= to->loop[--to->loops].extent;
		to->loop[to->loops++] =
		        (struct loop){ trip, kernel->loop[schedule->part[i].source].reduction,
			        kernel->loop[schedule->part[i].source].run_time };
	}
	to->operand = ARENA_ARRAY(module->arena, struct access, operands + 1);
	for (int j = 0; j < operands; j++)
		apply_access(module->arena, schedule, &kernel->operand[j], &to->operand[j]);
	apply_access(module->arena, schedule, &kernel->result, &to->result);
	to->update = apply_body(module, schedule, &kernel->update);
	to->post = apply_body(module, schedule, &kernel->post);
	/* operands of a register tile have zeros there */
	if (schedule->padded && schedule_is_tree(kernel, schedule) && !schedule->held)
		drop_padding(module, schedule, kernel, to);
	to->scheduled = true;
	to->lanes = schedule->lanes;
	to->row_unroll = schedule->row_unroll;
	int latency = kernel_has_reduction(kernel)
	        ? schedule_chain_latency(platform, module->arena, kernel)
	        : 1;
	to->partial_sums = schedule_partial_sums(kernel, schedule, latency);
	to->initiation_interval = schedule_interval(kernel, schedule, latency);
	return to;
}
