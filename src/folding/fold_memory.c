/* Chooses the kernels whose weights are held block by block instead of all at once
 * (fold_memory.h).  What a choice needs is counted in bytes, which the user's budget is about, and
 * in bits of the memory blocks that its words would fill, of which the board has so many; what is
 * filled while it is read counts twice. */
#include "folding/fold_memory.h"
#include "predict/resource.h"
#include "schedule/kernel_schedule.h"
#include <math.h>

#define BRAM_BITS (18 * 1024)
#define URAM_BITS (288 * 1024)
#define BUDGET_SHARE 0.75 /* the rest is for FIFOs and buffers between kernels */

enum { NEED_BYTES, NEED_BLOCK_BITS, NEED_DIE_SHARE, NEEDS };

struct memory_choices { /* of a kernel; zero: it has no weights that pixels share */
	double whole[NEEDS];
	double blocks[NEEDS];
	/* what a dense one needs in addition if the images of a batch share each block */
	double together[NEEDS];
	double reads; /* of a weight from memory with blocks, in a launch */
	bool in_blocks;
	double load; /* cycles in which the ports that its words fill bring all weights */
};

struct buffer_word { /* parts of it, each in a bank of its own, and lanes of a part */
	int64_t banks, lanes;
};

struct memory_search {
	const struct platform *platform;
	struct folded_kernels folded;
	const struct fold_stage *stage;
	struct memory_choices *choices;
};

/* Does the loop walk parts of the channels, as groups or the operands of a concatenation? */
static bool is_outer_channel(const struct folded_kernel *folded, int loop)
{
	const struct kernel *kernel = folded->op->kernel;
	const struct type *type = folded->op->result[0]->type;
	const int64_t *stride = kernel->result.stride;
	int64_t step;
	if (folded->groups && stride[loop] == folded->groups)
		return true;
	int dim = schedule_data_dim(
	        type, stride[folded->channel], kernel->loop[folded->channel].extent, &step);
	return dim >= 0 && stride[loop] > stride[folded->channel] &&
	        schedule_data_dim(type, stride[loop], kernel->loop[loop].extent, &step) == dim;
}

int list_pixel_loops(const struct folded_kernel *folded, int *loop)
{
	int loops = kernel_parallel_order(folded->op->kernel, loop);
	int *outer = loop + loops; /* behind those that are kept */
	int count = 0;
	int last = 0;
	for (int i = 0; i < loops; i++) {
		if (loop[i] == folded->channel)
			continue;
		if (is_outer_channel(folded, loop[i]))
			outer[last++] = loop[i];
		else
			loop[count++] = loop[i];
	}
	for (int i = 0; i < last; i++)
		loop[count++] = outer[i];
	return count;
}

static double bits_of_blocks(struct resources blocks)
{
	return (double)blocks.bram18 * BRAM_BITS + (double)blocks.uram * URAM_BITS;
}

/* The share of the die with most memory that the blocks take; memory of one kind does not stand in
 * for the other. */
static double die_share(const struct platform *platform, struct resources blocks)
{
	double least = INFINITY;
	for (int d = 0; d < platform->dies; d++) {
		double bram = (double)blocks.bram18 / ((double)platform->die[d].bram18 + 1e-9);
		double uram = (double)blocks.uram / ((double)platform->die[d].uram + 1e-9);
		least = fmin(least, fmax(bram, uram));
	}
	return least;
}

/* Adds a buffer for a share of a value. */
static void add_buffer(const struct memory_search *s, const struct value *value, double share,
        struct buffer_word word, double *need)
{
	int64_t bits = word.lanes * type_bits(type_scalar(value->type));
	double words = (double)type_elements(value->type) * share / (double)word.lanes;
	int64_t depth = (int64_t)(words / (double)word.banks) + 1;
	enum storage storage = storage_choose(bits, depth, platform_total(s->platform).uram > 0);
	struct resources blocks = storage_cost(storage, bits, depth);
	need[NEED_BYTES] += words * (double)bits / 8;
	need[NEED_BLOCK_BITS] += (double)word.banks * bits_of_blocks(blocks);
	need[NEED_DIE_SHARE] += (double)word.banks * die_share(s->platform, blocks);
}

/* Does a kernel without sums read the result of another one, channel by channel? */
static bool follows(const struct folded_kernel *reader, const struct folded_kernel *kernel)
{
	const struct kernel *from = kernel->op->kernel;
	const struct kernel *to = reader->op->kernel;
	bool found = false;
	for (int j = 0; j < reader->op->operands; j++)
		found = found || reader->op->operand[j] == kernel->op->result[0];
	return found && !kernel_has_reduction(to) &&
	        to->loop[reader->channel].extent == from->loop[kernel->channel].extent;
}

/* A block has as many channels as the widest word of the kernel and of what follows. Returns
 * the value that is passed on in blocks. */
static const struct value *set_block(const struct memory_search *s, struct folded_kernel *kernel)
{
	const struct value *last = kernel->op->result[0];
	for (int i = 0; i < s->folded.count; i++) {
		const struct folded_kernel *other = &s->folded.kernel[i];
		if ((other == kernel || follows(other, kernel)) && s->stage[i].pe > kernel->block)
			kernel->block = s->stage[i].pe;
		if (follows(other, kernel))
			last = other->op->result[0];
	}
	return last;
}

/* Counts the loops over a batch's images and how often a launch reads a weight with blocks. */
static double count_reads(struct folded_kernel *folded, int *loop)
{
	int loops = list_pixel_loops(folded, loop);
	double reads = 1;
	for (int i = 0; i < loops && is_image_loop(folded->op, folded->image, loop[i]); i++) {
		reads *= (double)folded->op->kernel->loop[loop[i]].extent;
		folded->pixels_outside++;
	}
	if (folded->pixels_outside < loops)
		return reads;
	folded->pixels_outside = 0; /* images of one pixel share their weights */
	return 1;
}

/* Weights of a word that takes several of a window are held whole: a line buffer gives its words
 * once. */
static void count_needs(struct memory_search *s, int stage, int *loop)
{
	struct folded_kernel *folded = &s->folded.kernel[stage];
	const struct fold_stage *rate = &s->stage[stage];
	struct memory_choices *choices = &s->choices[stage];
	const struct value *weight = folded->op->operand[1 - folded->image];
	int64_t run = rate->simd > 1 ? rate->simd : rate->pe;
	struct buffer_word product = { rate->pe * rate->simd / run, run };
	struct buffer_word term = { 1, rate->simd };
	struct buffer_word lane = { 1, rate->pe };
	add_buffer(s, weight, 1, product, choices->whole);
	double bits = (double)type_bits(type_scalar(weight->type));
	double words = (double)(rate->pe * rate->simd) * bits / (double)s->platform->port_bits;
	choices->load = (double)type_elements(weight->type) * bits /
	        (double)s->platform->port_bits / fmax(1, words);
	if (rate->unrolled)
		return;
	const struct value *last = set_block(s, folded);
	double block = (double)folded->block / (double)rate->channels;
	double *need = folded->dense ? choices->together : choices->blocks;
	choices->reads = count_reads(folded, loop);
	add_buffer(s, weight, 2 * block, product, need);
	add_buffer(s, folded->op->operand[folded->image], 2 / choices->reads, term, need);
	add_buffer(s, last, 2 / choices->reads, lane, need);
}

/* What blocks save, for each time that a weight is read. */
static double worth_of(const struct memory_choices *choices, int need)
{
	if (choices->in_blocks || !choices->reads)
		return 0;
	return (choices->whole[need] - choices->blocks[need]) / choices->reads;
}

/* Takes blocks for the kernel for which that is best; false: there is none. */
static bool save_memory(struct memory_search *s, int need)
{
	struct memory_choices *best = &s->choices[0];
	for (int i = 1; i < s->folded.count; i++)
		if (worth_of(&s->choices[i], need) > worth_of(best, need))
			best = &s->choices[i];
	if (worth_of(best, need) <= 0)
		return false;
	best->in_blocks = true;
	return true;
}

static double needed(const struct memory_search *s, int need)
{
	double sum = 0;
	for (int i = 0; i < s->folded.count; i++)
		sum += s->choices[i].in_blocks ? s->choices[i].blocks[need]
		                               : s->choices[i].whole[need];
	return sum;
}

/* Takes blocks for as few kernels as the limit asks for; what does not fit even so is spilled. */
static void meet_limit(struct memory_search *s, int need, double limit)
{
	while (needed(s, need) > BUDGET_SHARE * limit && save_memory(s, need))
		;
}

/* The kernel whose weights a window of several words at a time keeps whole and that needs most; -1:
 * there is none, or all fits. */
static int largest_window(const struct memory_search *s, int need, double limit)
{
	int found = -1;
	for (int i = 0; i < s->folded.count && needed(s, need) > limit; i++)
		if (s->folded.kernel[i].slides && s->stage[i].unrolled &&
		        (found < 0 || s->choices[i].whole[need] > s->choices[found].whole[need]))
			found = i;
	return found;
}

/* Weights that fill a die are not held whole. */
static void avoid_large(struct memory_search *s)
{
	for (int i = 0; i < s->folded.count; i++)
		s->choices[i].in_blocks = s->choices[i].whole[NEED_DIE_SHARE] > BUDGET_SHARE &&
		        worth_of(&s->choices[i], NEED_DIE_SHARE) > 0;
}

/* Readers without sums take the order of blocks; so do those that follow them and read nothing
 * else, as paddings: else an image would wait for a buffer in front of them, and for the one behind
 * them. */
static void set_readers(const struct memory_search *s, const struct folded_kernel *kernel)
{
	bool sums = kernel_has_reduction(kernel->op->kernel);
	for (int i = 0; i < s->folded.count; i++) {
		struct folded_kernel *reader = &s->folded.kernel[i];
		if (!follows(reader, kernel) || s->stage[i].pe > kernel->block ||
		        (!sums && reader->op->operands > 1))
			continue;
		reader->pixels_outside = kernel->pixels_outside;
		reader->block = kernel->block;
		set_readers(s, reader);
	}
}

static double images_of(const struct folded_kernel *folded)
{
	const struct kernel *kernel = folded->op->kernel;
	double images = 1;
	for (int l = 0; l < kernel->loops; l++)
		if (!kernel->loop[l].reduction && l != folded->channel)
			images *= (double)kernel->loop[l].extent;
	return images;
}

/* Is a launch shorter if dense kernels whose weights do not fit read them again for each image, as
 * stages of the pipeline, than if all images wait for each block of weights? */
static bool pipelines_dense(const struct memory_search *s)
{
	double interval = 0;
	double together = 0;
	double others = 0;
	for (int i = 0; i < s->folded.count; i++) {
		const struct folded_kernel *folded = &s->folded.kernel[i];
		double cycles = s->stage[i].cycles;
		double load = s->choices[i].load;
		if (folded->dense && s->choices[i].in_blocks) {
			together += fmax(cycles, load);
			cycles = fmax(cycles, images_of(folded) * load);
		} else {
			others = fmax(others, cycles);
		}
		interval = fmax(interval, cycles);
	}
	return interval < others + together;
}

/* Do blocks that a batch's images share fit beside all else? */
static bool fits_together(const struct memory_search *s, int need, double limit)
{
	double sum = needed(s, need);
	for (int i = 0; i < s->folded.count; i++)
		sum += s->choices[i].in_blocks ? s->choices[i].together[need] : 0;
	return sum <= limit;
}

/* Images are outside of all channels, so that weights are read again for each. */
static void pipeline_dense(struct memory_search *s, int *loop)
{
	for (int i = 0; i < s->folded.count; i++) {
		struct folded_kernel *folded = &s->folded.kernel[i];
		if (!folded->dense || !s->choices[i].in_blocks)
			continue;
		folded->pixels_outside = list_pixel_loops(folded, loop);
		folded->block = s->stage[i].channels;
	}
}

/* Starts over: no kernel has blocks. Returns the most loops of one. */
static int clear_choices(struct folded_kernels folded)
{
	int most = 0;
	for (int i = 0; i < folded.count; i++) {
		struct folded_kernel *kernel = &folded.kernel[i];
		most = kernel->op->kernel->loops > most ? kernel->op->kernel->loops : most;
		kernel->pixels_outside = 0;
		kernel->block = 0;
	}
	return most;
}

int choose_fold_memory(struct arena *arena, const struct platform *platform,
        struct folded_kernels folded, const struct fold_stage *stage, int64_t budget)
{
	struct memory_search s = { platform, folded, stage,
		ARENA_ARRAY(arena, struct memory_choices, folded.count + 1) };
	int *loop = ARENA_ARRAY(arena, int, 2 * clear_choices(folded) + 1);
	for (int i = 0; i < folded.count; i++)
		if (folded.kernel[i].slides)
			count_needs(&s, i, loop);
	double blocks = bits_of_blocks(platform_total(platform));
	avoid_large(&s);
	meet_limit(&s, NEED_BYTES, (double)budget);
	meet_limit(&s, NEED_BLOCK_BITS, blocks);
	int large = largest_window(&s, NEED_BYTES, (double)budget);
	if (large < 0)
		large = largest_window(&s, NEED_BLOCK_BITS, blocks);
	if (!fits_together(&s, NEED_BYTES, (double)budget) ||
	        !fits_together(&s, NEED_BLOCK_BITS, blocks) || pipelines_dense(&s))
		pipeline_dense(&s, loop);
	for (int i = 0; i < folded.count; i++) {
		if (folded.kernel[i].slides && !s.choices[i].in_blocks)
			folded.kernel[i].block = 0;
		if (s.choices[i].in_blocks)
			set_readers(&s, &folded.kernel[i]);
	}
	return large;
}
