/* Estimates the cycles of a launch in closed form from the parallelism of all kernels.
 *
 * A kernel starts when its operands start to arrive. Its first result comes when it has read what
 * that needs of each operand; its last one no sooner than its own work takes, and no sooner than
 * the work left after an operand's last word. A rolled layer is walked three times: each walk
 * starts from what the previous layer hands over, and a kernel starts only after it has ended the
 * previous layer. What the third walk adds to the second is what every further layer adds. Where
 * layers overlap in the engine (engine_job_order.c), a further layer takes the cycles of the
 * engine or of the slowest kernel. The shared loader of small operands serves them in program
 * order. FIFOs are assumed deep enough, and no two ports share a memory channel. */
#include "schedule/parallelism.h"
#include <math.h>

#define WALKED 3       /* layers */
#define PARSIMONY 0.02 /* price of all operators of the board, as a part of the reference time */
/* the same where attention walks block by block: its estimate is more precise */
#define PARSIMONY_BLOCKS 0.01
#define OVERFLOW 100.0 /* a choice that exceeds a budget is worse than any time */
/* a kernel between the jobs of two token tiles takes so many times its cycles: combining partial
 * sums, casts, and waiting for kernels of the same pace */
#define WAVEFRONT_FACTOR 1.1
/* cycles of latency through a converter, which decode of one token waits for */
#define THROUGH_CONVERTER 24

static double larger(double left, double right)
{
	return left > right ? left : right;
}

void parallelism_scratch(struct parallelism_space *space, struct arena *arena, int kernels)
{
	space->state = ARENA_ARRAY(arena, struct parallelism_state, kernels + 1);
	space->done = ARENA_ARRAY(arena, struct parallelism_job_done, space->jobs + 1);
	/* a job reads its weights once in each walked layer of a loop that uses its results, and
	 * once before, between and after the loops */
	int walks = space->loops * (WALKED + 1) + 1;
	space->taken =
	        ARENA_ARRAY(arena, struct parallelism_weights_taken, walks * space->jobs + 1);
	space->step = ARENA_ARRAY(arena, struct parallelism_step, PARALLELISM_PRICED * kernels + 1);
}

struct layer_walk {
	const struct parallelism_space *space;
	struct parallelism_step *step;
	const int *choice;
	int extent;                /* index of the extent */
	double loader_time;        /* cycles of the shared loader so far */
	double busy;               /* cycle until which the engine is busy */
	double weights;            /* cycles of memory for the weights of all jobs so far */
	double weight_load_cycles; /* cycle at which memory has delivered them */
	double words;              /* words per PE of these weights */
	int taken;                 /* jobs of which `taken` has a row */
	/* cycle at which the current run of jobs with one input started */
	double run;
	int run_number; /* number of the first job of that run */
	int64_t run_layer;
	int64_t layer; /* current layer, from 1 */
};

/* Cycle at which the engine had read so many words per PE, interpolated within a job. */
static double taken_by(const struct layer_walk *walk, double words)
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

/* Cycle at which memory has delivered the weights of a job, prefetched by a limited number of
 * words. */
static double load_weights(
        struct layer_walk *walk, const struct parallelism_job *job, double start, double last)
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

/* Sets *begin and *end to the first and last result of a job, from those of its input. A job starts
 * when its input has begun to arrive and the job before it has ended, and ends no sooner than its
 * work on the last part of the input. In decode of one token the engine starts the next job while
 * the last rows are still collected. */
static void through_engine(
        struct layer_walk *walk, const struct parallelism_job *job, double *begin, double *end)
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

/* When the elements of an operand arrive: the first, the last, and the burst at their end. */
struct arrival {
	double begin, end;
	struct parallelism_burst burst;
};

/* Cuts an arrival down to the part of the source that is read: elements come in row-major
 * order, evenly except for the final burst. */
static inline void through_part(const struct parallelism_input *input, struct arrival *arrival)
{
	const struct parallelism_part *part = &input->part;
	struct parallelism_burst *burst = &arrival->burst;
	double all = arrival->end - arrival->begin;
	if (!input->parted) {
		burst->part = burst->part < 1 ? burst->part : 1;
		return;
	}
	if (part->high < 1)
		burst->part = 0;
	else if (burst->part < part->high - part->low)
		burst->part /= part->high - part->low;
	else
		burst->part = 1;
	arrival->end = arrival->begin + part->high * all;
	arrival->begin += part->low * all;
}

/* The converter between a source with interleaved rows and a reader whose words differ from them:
 * it collects a block of all these rows before it hands it on. In front of a reduction there is one
 * for any word, unless the words are those of its state. */
static struct parallelism_interleaved interleaved_between(const struct layer_walk *walk,
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
	double write = written->cycles[walk->extent] * (1 + BLOCK_HANDOVER / filled);
	double read = option->cycles[walk->extent] * (1 + BLOCK_HANDOVER / drained);
	return (struct parallelism_interleaved){ larger(write, read), filled, drained };
}

static struct parallelism_input input_of(const struct layer_walk *walk,
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

/* Copies the selected option and the inputs of kernel k into one compact row, because the walk
 * reads them for every layer and a kernel's own data is scattered. */
static void lay_out(const struct layer_walk *walk, int k)
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

/* When a kernel can start, has all operands of its first result, and has the operands that it reads
 * after its reduction; tail: when it ends at the earliest, before its latency. */
struct reading {
	double start, ready, post_operand, tail;
	struct parallelism_burst burst;
};

static inline void read_arrival(const struct parallelism_step *step,
        const struct parallelism_input *input, const struct arrival *arrival, struct reading *r)
{
	struct parallelism_burst last = arrival->burst;
	double begin = arrival->begin;
	r->start = larger(r->start, begin);
	r->ready = larger(r->ready, begin + input->need * (arrival->end - begin));
	r->tail = larger(r->tail, arrival->end + input->left);
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
	struct arrival arrival = { made->begin, made->end, made->burst };
	arrival.burst.part = made->burst.part < 1 ? made->burst.part : 1;
	read_arrival(step, input, &arrival, r);
}

static inline void read_input(struct layer_walk *walk, const struct parallelism_step *step,
        const struct parallelism_input *input, bool first_layer, struct reading *r)
{
	bool enters = input->enters && first_layer;
	int source = enters ? input->entry : input->source;
	if (source < 0)
		return;
	const struct parallelism_state *made = &walk->space->state[source];
	struct arrival arrival = { made->begin, made->end, made->burst };
	if (input->job && !enters) {
		through_engine(walk, input->job, &arrival.begin, &arrival.end);
		arrival.burst = (struct parallelism_burst){ input->job->burst_part,
			arrival.end - input->job->collect_cycles };
	}
	through_part(input, &arrival);
	arrival.begin += input->buffered * (arrival.end - arrival.begin) + input->transit;
	arrival.end += input->transit;
	arrival.begin += input->interleaved.filled;
	arrival.end += input->interleaved.drained;
	if (input->post_operand) {
		r->post_operand = larger(r->post_operand, arrival.begin);
		r->tail = larger(r->tail, arrival.end);
		return;
	}
	read_arrival(step, input, &arrival, r);
}

static void walk_kernels(struct layer_walk *walk, int first, int end, bool first_layer)
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
		/* the prefetch FIFO has room as soon as the previous layer has started to read */
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

static double overlap_cycles(const struct layer_walk *walk, const struct parallelism_loop *loop)
{
	double cycles = loop->engine_cycles;
	for (int k = loop->first; k < loop->end; k++)
		cycles = larger(cycles, WAVEFRONT_FACTOR * walk->step[k].cycles);
	return cycles;
}

/* Values from before the layers are held in converters that give nothing until they are full. Where
 * layers overlap, only the first layer waits for that. */
static void wait_for_front(const struct layer_walk *walk, const struct parallelism_loop *loop)
{
	double full = 0;
	for (int k = loop->first; k < loop->end; k++)
		for (int j = 0; j < walk->step[k].inputs; j++) {
			const struct parallelism_input *input = &walk->step[k].input[j];
			bool is_before =
			        !input->enters && input->source >= 0 && input->source < loop->first;
			full = is_before ? larger(full, walk->space->state[input->source].end)
			                 : full;
		}
	for (int k = loop->first; k < loop->end; k++)
		walk->space->state[k].before = full;
}

/* Walks the first layers of a rolled loop; further layers only shift what follows. */
static void walk_loop(struct layer_walk *walk, const struct parallelism_loop *loop)
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

static bool is_laid_out(const struct layer_walk *walk, int k)
{
	return walk->step[k].laid == 1 + walk->choice[k] && !walk->space->kernel[k].interleaved;
}

/* anew: fill all rows again, because the space may have changed since the last call. */
static double cycles_at(
        const struct parallelism_space *space, const int *choice, int extent, bool anew)
{
	struct layer_walk walk = { .space = space,
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

/* Ports of a kernel's large operands, but for one that another kernel's load brings as well. */
static int own_ports(const struct parallelism_space *space, const int *choice, int k)
{
	const struct parallelism_kernel *kernel = &space->kernel[k];
	const struct parallelism_option *option = &kernel->option[choice[k]];
	int operands = operands_with_ports(option->parallelism.bulk, option->parallelism.peers);
	if (kernel->load_of >= 0) {
		const struct parallelism_option *first =
		        &space->kernel[kernel->load_of].option[choice[kernel->load_of]];
		operands -= option->lanes == first->lanes &&
		        option->parallelism.ports <= first->parallelism.ports;
	}
	return operands * option->parallelism.ports;
}

struct parallelism_cost parallelism_resources(
        const struct parallelism_space *space, const int *choice)
{
	struct parallelism_cost cost = { 0 };
	for (int k = 0; k < space->kernels; k++) {
		const struct parallelism_option *option = &space->kernel[k].option[choice[k]];
		cost.dsp += option->dsp;
		cost.lut += option->lut;
		cost.ports += own_ports(space, choice, k);
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

/* need / have, where a budget of 0 counts as 1 */
static double part_of(double need, double have)
{
	return need / (have > 0 ? have : 1);
}

static double part_over(double need, double have)
{
	return need > have ? part_of(need - have, have) : 0;
}

double parallelism_objective(const struct parallelism_space *space,
        const struct parallelism_cost *cost, double reference)
{
	const struct parallelism_budget *budget = &space->budget;
	double dsp = (double)cost->dsp;
	double lut = (double)cost->lut;
	double all_dsp = (double)budget->dsp;
	double all_lut = (double)budget->lut;
	double missing = part_over(dsp, all_dsp) + part_over(lut, all_lut) +
	        part_over(cost->ports, budget->ports);
	double used =
	        part_of(dsp, all_dsp) + part_of(lut, all_lut) + part_of(cost->ports, budget->ports);
	double parsimony = space->blocks_first ? PARSIMONY_BLOCKS : PARSIMONY;
	double price = cost->cycles / reference + parsimony / 3 * used;
	return missing > 0 ? price + OVERFLOW * (1 + missing) : price;
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
