/* The time of a launch in closed form, from the widths of all kernels.
 *
 * A kernel begins when what it reads begins to flow.  It gives its first result when it has
 * taken of each operand what that needs, its last one no sooner than its own work takes, and no
 * sooner than what is left to do after an operand's last word.  A rolled layer is walked three
 * times, each begun by what the one before hands on, and a kernel never before it has ended the
 * last layer: what the third adds to the second is what every further layer adds.  Where the
 * unit goes on with the next layer while one ends (engine_job_order.c), a further one takes what
 * the unit or the slowest kernel takes.  The loader that small operands share serves them in
 * program order. Buffers have room, and no two ports share a channel. */
#include "schedule/parallelism.h"
#include <math.h>

#define WALKED 3       /* layers */
#define PARSIMONY 0.02 /* all of the board's operators are worth so much of the time, */
/* or so much where attention takes a block of keys after the other, whose time is told to a
 * hundredth */
#define PARSIMONY_TOLD 0.01
#define OVERFLOW 100.0 /* what does not fit is worse than any time */
/* a kernel that stands between two tiles' phases takes so many times its cycles: a sum's last
 * turn, casts, and what it waits for others as slow */
#define WAVEFRONT_FACTOR 1.1
#define THROUGH_CONVERTER 24 /* cycles of a word on its way, which a unit of one token waits for */

static double larger(double left, double right)
{
	return left > right ? left : right;
}

void parallelism_scratch(struct parallelism_space *space, struct arena *arena, int kernels)
{
	space->state = ARENA_ARRAY(arena, struct parallelism_state, kernels + 1);
	space->done = ARENA_ARRAY(arena, struct parallelism_job_done, space->jobs + 1);
	space->taken = ARENA_ARRAY(
	        arena, struct parallelism_weights_taken, (WALKED + 1) * space->jobs + 1);
	space->step = ARENA_ARRAY(arena, struct parallelism_step, PARALLELISM_PRICED * kernels + 1);
}

struct walk {
	const struct parallelism_space *space;
	struct parallelism_step *step;
	const int *choice;
	int extent;                /* of those priced */
	double loader_time;        /* the shared loader's cycles so far */
	double busy;               /* until when the unit is */
	double weights;            /* cycles that memory took for those of its phases so far */
	double weight_load_cycles; /* when it has brought them */
	double words;              /* of a slice in them; */
	int taken;                 /* phases */
	double run;                /* since when it works on the numbers at hand … */
	int run_number;            /* … of these phases */
	int64_t run_layer;
	int64_t layer; /* that is walked, from 1 */
};

/* When the unit had taken so many words. */
static double taken_by(const struct walk *walk, double words)
{
	int i = walk->taken - 1;
	const struct parallelism_weights_taken *taken = walk->space->taken;
	while (i > 0 && taken[i - 1].words >= words)
		i--;
	if (i < 0 || words <= 0)
		return 0;
	double before = i ? taken[i - 1].words : 0;
	return taken[i].begin +
	        (words - before) / (taken[i].words - before) * (taken[i].end - taken[i].begin);
}

/* When memory has brought the words of a phase, so many ahead of the unit at most. */
static double load_weights(
        struct walk *walk, const struct parallelism_job *job, double start, double last)
{
	const struct parallelism_space *space = walk->space;
	double prefetch = space->prefetched_words;
	double cycles = job->sums * space->weight_load_cycles;
	if (space->weight_load_cycles <= 0 || job->sums <= 0)
		return 0;
	walk->weights += cycles;
	walk->words += job->sums;
	double room = job->sums > prefetch
	        ? start + (job->sums - prefetch) * space->weight_load_cycles
	        : taken_by(walk, walk->words - prefetch);
	walk->weight_load_cycles = larger(walk->weight_load_cycles + cycles, room);
	space->taken[walk->taken++] = (struct parallelism_weights_taken){ walk->words, start,
		larger(last, walk->weight_load_cycles) };
	return walk->weight_load_cycles;
}

/* A phase begins when those that it works on have begun to come and the one before it is over,
 * and ends no sooner than its work on the last part of them.  Of one token the unit goes on
 * while the last rows are collected. */
static void through_engine(
        struct walk *walk, const struct parallelism_job *job, double *begin, double *end)
{
	struct parallelism_job_done *done = &walk->space->done[job->number];
	if (done->layer != walk->layer) {
		double start = larger(*begin + job->part * (*end - *begin), walk->busy);
		double before = job->before + job->cycles;
		if (walk->run_layer != walk->layer || walk->run_number != job->run) {
			walk->run = start;
			walk->run_layer = walk->layer;
			walk->run_number = job->run;
		}
		double first = walk->run + job->tile * job->before + job->first;
		double last = larger(walk->run + before + (1 - job->tile) * job->after,
		        *end + job->part * before);
		if (job->last > 0) {
			first = larger(larger(*begin, walk->busy) + job->first, *end + job->last);
			last = first + job->cycles - job->first;
		}
		last = larger(last, load_weights(walk, job, start, last));
		walk->busy = job->last > 0 ? last - job->collect_cycles - job->transit : last;
		*done = (struct parallelism_job_done){ walk->layer, first, last };
	}
	*begin = done->begin;
	*end = done->end;
}

/* Numbers come in order, evenly but for the last ones. */
static inline void through_part(const struct parallelism_input *input, double *begin, double *end,
        struct parallelism_burst *burst)
{
	const struct parallelism_part *part = &input->part;
	double all = *end - *begin;
	if (!input->parted) {
		burst->part = burst->part < 1 ? burst->part : 1;
		return;
	}
	burst->part = part->high < 1                   ? 0
	        : burst->part < part->high - part->low ? burst->part / (part->high - part->low)
	                                               : 1;
	*end = *begin + part->high * all;
	*begin += part->low * all;
}

/* Where words of several rows take turns and the reader's are of another width, a converter puts
 * a block of all these rows together before it hands it on.  In front of a kernel that sums up
 * one stands at any width, or the words are those of its state. */
static struct parallelism_interleaved interleaved_between(const struct walk *walk,
        const struct parallelism_kernel *kernel, const struct parallelism_option *option,
        int operand)
{
	int number = kernel->source[operand];
	const struct parallelism_kernel *source = number < 0 ? NULL : &walk->space->kernel[number];
	if (!source || !source->interleave || kernel->job[operand].number)
		return (struct parallelism_interleaved){ 0 };
	const struct parallelism_option *written = &source->option[walk->choice[number]];
	double in = (double)option->in[operand];
	double out = (double)written->out;
	double interleave = (double)source->interleave;
	if (kernel->sums)
		return (struct parallelism_interleaved){
			.pace = larger(option->timing[walk->extent].handover,
			        option->in[operand] < written->out
			                ? option->timing[walk->extent].split
			                : 0)
		};
	if (option->in[operand] == written->out || written->out >= source->row)
		return (struct parallelism_interleaved){ 0 };
	double filled = interleave * larger(in, out) / out;
	double drained = interleave * larger(in, out) / in;
	double taken = written->cycles[walk->extent] * (1 + BLOCK_HANDOVER / filled);
	double given = option->cycles[walk->extent] * (1 + BLOCK_HANDOVER / drained);
	return (struct parallelism_interleaved){ larger(taken, given), filled, drained };
}

static struct parallelism_input input_of(const struct walk *walk,
        const struct parallelism_kernel *kernel, const struct parallelism_option *option, int j)
{
	const struct parallelism_timing *timing = &option->timing[walk->extent];
	struct parallelism_input input = { .source = kernel->source[j],
		.entry = kernel->carried[j] ? kernel->entry[j] : kernel->source[j],
		.enters = kernel->carried[j] };
	input.buffered = larger(kernel->buffered[j].part[walk->extent], timing->buffered);
	input.transit = input.buffered > 0 && walk->space->single_token ? THROUGH_CONVERTER : 0;
	input.post_operand = kernel->post_operand[j];
	input.job = walk->space->extent[walk->extent] == EXTENT_ONE ? &kernel->single[j]
	                                                            : &kernel->job[j];
	input.job = input.job->number ? input.job : NULL;
	input.part = kernel->part[j];
	input.parted = input.part.low != 0 || input.part.high != 1;
	input.need = timing->need[j];
	input.left = larger(1 - timing->taken[j], input.buffered);
	if (kernel->interleaved)
		input.interleaved = interleaved_between(walk, kernel, option, j);
	input.plain = !input.enters && !input.job && !input.post_operand && !input.parted &&
	        input.buffered <= 0 && input.transit <= 0 && input.interleaved.filled <= 0;
	return input;
}

/* What the walks of all layers ask, side by side: a kernel's options and operands lie far apart. */
static void lay_out(const struct walk *walk, int k)
{
	const struct parallelism_space *space = walk->space;
	const struct parallelism_kernel *kernel = &space->kernel[k];
	const struct parallelism_option *option = &kernel->option[walk->choice[k]];
	struct parallelism_input *input = walk->step[k].input;
	input = input ? input
	              : ARENA_ARRAY(space->arena, struct parallelism_input, kernel->operands + 1);
	struct parallelism_step step = { .depth = option->depth,
		.shared = option->shared[walk->extent],
		.prefetch = option->prefetch[walk->extent],
		.input = input,
		.laid = 1 + walk->choice[k] };
	step.cycles = option->cycles[walk->extent] * (1 + space->slack);
	for (int j = 0; j < kernel->operands; j++) {
		if (kernel->source[j] < 0 && !kernel->carried[j])
			continue;
		input[step.inputs] = input_of(walk, kernel, option, j);
		step.cycles = larger(step.cycles, input[step.inputs++].interleaved.pace);
	}
	for (int i = 0; i < step.inputs; i++)
		input[i].left *= step.cycles;
	step.first = option->timing[walk->extent].first * step.cycles;
	walk->step[k] = step;
}

/* When a kernel may begin, has all for its first result, and has it behind its reduction; when
 * it ends at the earliest. */
struct reading {
	double start, ready, post_operand, tail;
	struct parallelism_burst burst;
};

/* It begins and ends so, and those of `last` come together. */
static inline void read_numbers(const struct parallelism_step *step,
        const struct parallelism_input *input, double begin, double end,
        struct parallelism_burst last, struct reading *r)
{
	r->start = larger(r->start, begin);
	r->ready = larger(r->ready, begin + input->need * (end - begin));
	r->tail = larger(r->tail, end + input->left);
	if (last.part <= 0)
		return;
	double rest = last.begin + last.part * step->cycles;
	r->tail = larger(r->tail, rest);
	if (input->need > last.part)
		r->ready = larger(r->ready, rest);
	else if (last.begin >= r->burst.begin)
		r->burst = last;
}

static inline void read_plain(const struct parallelism_state *made,
        const struct parallelism_step *step, const struct parallelism_input *input,
        struct reading *r)
{
	read_numbers(step, input, made->begin, made->end,
	        (struct parallelism_burst){
	                made->burst.part < 1 ? made->burst.part : 1, made->burst.begin },
	        r);
}

static inline void read_input(struct walk *walk, const struct parallelism_step *step,
        const struct parallelism_input *input, bool first_layer, struct reading *r)
{
	bool enters = input->enters && first_layer;
	int source = enters ? input->entry : input->source;
	if (source < 0)
		return;
	const struct parallelism_state *made = &walk->space->state[source];
	double begin = made->begin;
	double end = made->end;
	struct parallelism_burst last = made->burst;
	if (input->job && !enters) {
		through_engine(walk, input->job, &begin, &end);
		last = (struct parallelism_burst){ input->job->burst_part,
			end - input->job->collect_cycles };
	}
	through_part(input, &begin, &end, &last);
	begin += input->buffered * (end - begin) + input->transit;
	end += input->transit;
	begin += input->interleaved.filled;
	end += input->interleaved.drained;
	if (input->post_operand) {
		r->post_operand = larger(r->post_operand, begin);
		r->tail = larger(r->tail, end);
		return;
	}
	read_numbers(step, input, begin, end, last, r);
}

static void walk_kernels(struct walk *walk, int first, int end, bool first_layer)
{
	for (int k = first; k < end; k++) {
		const struct parallelism_step *step = &walk->step[k];
		struct parallelism_state *state = &walk->space->state[k];
		walk->loader_time += step->shared;
		struct reading r = { .start = state->before, .tail = walk->loader_time };
		for (int j = 0; j < step->inputs; j++) {
			const struct parallelism_input *input = &step->input[j];
			if (input->plain)
				read_plain(&walk->space->state[input->source], step, input, &r);
			else
				read_input(walk, step, input, first_layer, &r);
		}
		state->burst =
		        (struct parallelism_burst){ r.burst.part, r.burst.begin + step->depth };
		/* the room for it is free when the layer before has begun */
		if (step->prefetch > 0) {
			state->arrived = larger(state->arrived, state->begin) + step->prefetch;
			r.tail = larger(r.tail, state->arrived);
		}
		state->begin = larger(larger(r.start + step->first, r.ready), r.post_operand) +
		        step->depth;
		state->end =
		        larger(larger(r.start + step->cycles, r.tail) + step->depth, state->begin);
	}
}

static double latest(const struct parallelism_space *space, int first, int end)
{
	double cycles = 0;
	for (int k = first; k < end; k++)
		cycles = larger(cycles, space->state[k].end);
	return cycles;
}

static double overlap_cycles(const struct walk *walk, const struct parallelism_loop *loop)
{
	double cycles = loop->engine_cycles;
	for (int k = loop->first; k < loop->end; k++)
		cycles = larger(cycles, WAVEFRONT_FACTOR * walk->step[k].cycles);
	return cycles;
}

/* What is made in front of layers is kept for all of them, by converters that give nothing
 * before they are full; where layers follow each other without a break, the first one alone
 * waits for that. */
static void wait_for_front(const struct walk *walk, const struct parallelism_loop *loop)
{
	double full = 0;
	for (int k = loop->first; k < loop->end; k++)
		for (int j = 0; j < walk->step[k].inputs; j++) {
			const struct parallelism_input *input = &walk->step[k].input[j];
			bool kept =
			        !input->enters && input->source >= 0 && input->source < loop->first;
			full = kept ? larger(full, walk->space->state[input->source].end) : full;
		}
	for (int k = loop->first; k < loop->end; k++)
		walk->space->state[k].before = full;
}

/* Layers beyond those walked only move what follows. */
static void walk_loop(struct walk *walk, const struct parallelism_loop *loop)
{
	const struct parallelism_space *space = walk->space;
	int64_t layers = loop->layers < WALKED ? loop->layers : WALKED;
	double before = walk->loader_time;
	double ends[WALKED] = { 0 };
	double weights = 0;
	if (loop->engine_cycles > 0)
		wait_for_front(walk, loop);
	for (int64_t layer = 0; layer < layers; layer++) {
		walk->layer++;
		weights = walk->weights;
		walk->weights += space->states[walk->extent];
		walk->weight_load_cycles += space->states[walk->extent];
		walk_kernels(walk, loop->first, loop->end, !layer);
		ends[layer] = latest(space, loop->first, loop->end);
		for (int k = loop->first; k < loop->end; k++)
			space->state[k].before = space->state[k].end;
	}
	walk->loader_time += (double)(loop->layers - layers) * (walk->loader_time - before) /
	        (double)(layers ? layers : 1);
	double each = loop->engine_cycles > 0
	        ? overlap_cycles(walk, loop)
	        : larger(ends[WALKED - 1] - ends[WALKED - 2], walk->weights - weights);
	double more = layers < WALKED ? 0 : (double)(loop->layers - WALKED) * each;
	for (int k = loop->first; k < loop->end; k++) {
		space->state[k].begin += more;
		space->state[k].end += more;
	}
	walk->busy += more;
	walk->weight_load_cycles += more;
	for (int i = 0; i < walk->taken; i++) {
		space->taken[i].begin += more;
		space->taken[i].end += more;
	}
	walk->layer++;
}

static bool is_laid_out(const struct walk *walk, int k)
{
	return walk->step[k].laid == 1 + walk->choice[k] && !walk->space->kernel[k].interleaved;
}

/* anew: the space may have changed since it was last asked. */
static double cycles_at(
        const struct parallelism_space *space, const int *choice, int extent, bool anew)
{
	struct walk walk = { .space = space,
		.step = space->step + extent * space->kernels,
		.choice = choice,
		.extent = extent,
		.layer = 1 };
	for (int p = 0; p <= space->jobs; p++)
		space->done[p].layer = 0;
	for (int k = 0; k < space->kernels; k++)
		space->state[k].before = space->state[k].begin = space->state[k].arrived = 0;
	for (int k = 0; k < space->kernels; k++)
		if (anew || !is_laid_out(&walk, k))
			lay_out(&walk, k);
	for (int k = 0; k < space->kernels;) {
		int loop = space->kernel[k].loop;
		if (loop < 0) {
			walk_kernels(&walk, k, k + 1, false);
			k++;
			continue;
		}
		walk_loop(&walk, &space->loop[loop]);
		k = space->loop[loop].end;
	}
	return latest(space, 0, space->kernels);
}

struct parallelism_cost parallelism_resources(
        const struct parallelism_space *space, const int *choice)
{
	struct parallelism_cost cost = { 0 };
	for (int k = 0; k < space->kernels; k++) {
		const struct parallelism_option *option = &space->kernel[k].option[choice[k]];
		cost.dsp += option->dsp;
		cost.lut += option->lut;
		cost.ports += option->parallelism.bulk >= 0 ? option->parallelism.ports : 0;
	}
	return cost;
}

static struct parallelism_cost cost_of(
        const struct parallelism_space *space, const int *choice, bool anew)
{
	struct parallelism_cost cost = parallelism_resources(space, choice);
	for (int e = 0; e < space->extents; e++)
		cost.cycles += space->weight[e] * cycles_at(space, choice, e, anew);
	return cost;
}

double parallelism_cycles_cached(
        const struct parallelism_space *space, const int *choice, int extent)
{
	return space->weight[extent] * cycles_at(space, choice, extent, false);
}

struct parallelism_cost parallelism_total_cost(
        const struct parallelism_space *space, const int *choice)
{
	return cost_of(space, choice, true);
}

struct parallelism_cost parallelism_cost_cached(
        const struct parallelism_space *space, const int *choice)
{
	return cost_of(space, choice, false);
}

static double over(double need, double have)
{
	return need > have ? (need - have) / (have > 0 ? have : 1) : 0;
}

double parallelism_objective(const struct parallelism_space *space,
        const struct parallelism_cost *cost, double reference)
{
	const struct parallelism_budget *budget = &space->budget;
	double dsp = (double)cost->dsp;
	double lut = (double)cost->lut;
	double all_dsp = (double)budget->dsp;
	double all_lut = (double)budget->lut;
	double missing = over(dsp, all_dsp) + over(lut, all_lut) + over(cost->ports, budget->ports);
	double used = dsp / (all_dsp > 0 ? all_dsp : 1) + lut / (all_lut > 0 ? all_lut : 1) +
	        (double)cost->ports / (budget->ports > 0 ? budget->ports : 1);
	return cost->cycles / reference +
	        (space->blocks_first ? PARSIMONY_TOLD : PARSIMONY) / 3 * used +
	        (missing > 0 ? OVERFLOW * (1 + missing) : 0);
}

double parallelism_price(
        const struct parallelism_space *space, const int *choice, double reference, double bound)
{
	struct parallelism_cost cost = parallelism_resources(space, choice);
	double price = parallelism_objective(space, &cost, reference);
	for (int e = 0; e < space->extents && price < bound; e++) {
		cost.cycles += parallelism_cycles_cached(space, choice, e);
		price = parallelism_objective(space, &cost, reference);
	}
	return price < bound ? price : INFINITY;
}

void parallelism_follow(const struct parallelism_space *space, int *choice)
{
	for (int k = 0; k < space->kernels; k++)
		if (space->kernel[k].follows >= 0)
			choice[k] = space->kernel[k].follow[choice[space->kernel[k].follows]];
}
