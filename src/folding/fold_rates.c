/* Chooses lanes and terms of all stages of a pipeline together (fold_rates.h). */
#include "folding/fold_rates.h"
#include "base/number.h"
#include "folding/fold_channels.h"
#include "schedule/kernel_schedule.h"
#include <stdlib.h>

#define WIDTHS_MOST 64 /* divisors of an extent */
#define BLOCK_BITS 72  /* of a word of a large memory block */
#define PARTS_MOST 8   /* stages of a convolution; each has rows of the image of its own */

/* The words that a stage may have. */
struct fold_words {
	int count;
	struct fold_stage *choice;
};

int64_t unrolled_taps(const struct fold_stage *stage)
{
	int64_t taps = 1;
	for (int i = 0; i < stage->unrolled; i++)
		taps *= stage->tap[i];
	return taps;
}

static int64_t stage_dsp(const struct fold_stage *stage)
{
	int64_t products = stage->pe * stage->simd;
	bool packed = stage->packed && stage->pe > 1 && stage->simd > 1 && products % 2 == 0;
	if (!stage->products)
		return stage->pe * stage->simd * stage->dsp;
	return stage->pe * stage->dsp + (packed ? products / 2 : products);
}

/* Cycles of an image: those of its products, or of the words that a window takes. */
static double cycles_of(const struct fold_stage *stage)
{
	double cycles = stage->points / (double)(stage->pe * stage->simd);
	int64_t wide = stage->apart ? stage->pe : stage->simd / unrolled_taps(stage);
	double words = stage->image / (double)wide;
	if (stage->unrolled == 2 || (stage->unrolled && stage->apart))
		cycles += stage->late * (double)(stage->apart ? stage->channels / stage->pe : 1);
	cycles += stage->windows ? words * stage->between : 0;
	cycles = stage->windows && cycles < words ? words : cycles;
	double joined = stage->parts > 1 ? stage->places * stage->parts : 0;
	return cycles < joined ? joined : cycles;
}

/* Ascending divisors of a number, those within a word. */
static int list_widths(int64_t extent, int64_t width[WIDTHS_MOST])
{
	int count = 0;
	for (int64_t lanes = 1; lanes <= extent && lanes <= WORD_BITS; lanes++)
		if (extent % lanes == 0 && count < WIDTHS_MOST)
			width[count++] = lanes;
	return count;
}

/* Does the stage have such words?  Those of dense weights fill memory ports, or parts of one. */
static bool is_word(const struct fold_stage *stage, int64_t port_bits)
{
	int64_t bits = stage->pe * stage->simd * stage->bits;
	return bits <= WORD_BITS * stage->parts &&
	        (!stage->dense || port_bits % bits == 0 || bits % port_bits == 0);
}

/* The fewest parts whose words are narrow enough; 1: there are none. */
static int parts_of(const struct fold_stage *stage)
{
	int64_t bits = stage->pe * stage->simd * stage->bits;
	for (int parts = 1; stage->splits && parts <= PARTS_MOST && parts <= stage->pe; parts++)
		if (stage->pe % parts == 0 && bits <= WORD_BITS * parts)
			return parts;
	return 1;
}

/* Adds a choice: lanes, and terms of so many dimensions of taps.  A window of both dimensions has
 * all channels, since its registers move by a place. */
static void add_word(
        struct fold_words *words, const struct fold_stage *stage, int unrolled, int64_t port_bits)
{
	struct fold_stage *choice = &words->choice[words->count];
	*choice = *stage;
	choice->unrolled = unrolled;
	if (unrolled == FOLD_TAPS && choice->simd < stage->terms)
		return;
	choice->simd *= unrolled_taps(choice);
	choice->parts = parts_of(choice);
	choice->cycles = cycles_of(choice);
	words->count += is_word(choice, port_bits);
}

static struct fold_words list_words(struct arena *arena, struct fold_stage stage, int64_t port_bits)
{
	int64_t lanes[WIDTHS_MOST];
	int64_t terms[WIDTHS_MOST];
	int lane_widths = list_widths(stage.narrow ? 1 : stage.channels, lanes);
	int term_widths = list_widths(stage.terms, terms);
	struct fold_words words = { .choice = ARENA_ARRAY(arena, struct fold_stage,
		                            lane_widths * term_widths * (stage.taps + 1)) };
	for (int unrolled = 0; unrolled <= stage.taps; unrolled++)
		for (int i = 0; i < lane_widths * term_widths; i++) {
			stage.pe = lanes[i % lane_widths];
			stage.simd = terms[i / lane_widths];
			add_word(&words, &stage, unrolled, port_bits);
		}
	return words;
}

/* DSPs; of equal ones those words cost less whose terms fill memory blocks, and then whose sides
 * are more alike. */
static double cost_of(const struct fold_stage *stage)
{
	int64_t bits = stage->simd * stage->bits;
	double filled = (double)bits / (double)(ceil_div(bits, BLOCK_BITS) * BLOCK_BITS);
	return (double)stage_dsp(stage) + (stage->products ? (1 - filled) / 2 : 0) +
	        (double)(stage->pe + stage->simd) / (4 * WORD_BITS);
}

/* Of two that keep the interval the cheaper one, else the faster one. */
static bool is_better(
        const struct fold_stage *stage, const struct fold_stage *than, double interval)
{
	bool keeps = stage->cycles <= interval;
	if (keeps != (than->cycles <= interval))
		return keeps;
	return keeps ? cost_of(stage) < cost_of(than) : stage->cycles < than->cycles;
}

/* Sets the best words of all stages; false: they do not keep the interval within the DSPs. */
static bool set_stages(const struct fold_words *words, struct fold_stage *stage, int stages,
        double interval, int64_t dsp)
{
	int64_t taken = 0;
	bool kept = true;
	for (int i = 0; i < stages; i++) {
		stage[i] = words[i].choice[0];
		for (int w = 1; w < words[i].count; w++)
			if (is_better(&words[i].choice[w], &stage[i], interval))
				stage[i] = words[i].choice[w];
		kept = kept && stage[i].cycles <= interval;
		taken += stage_dsp(&stage[i]);
	}
	return kept && taken <= dsp;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;
	return (a > b) - (a < b);
}

/* Takes the quickest word of a dense stage that memory ports of so many bits fill and the DSPs
 * suffice for; false: it has none that is quicker, or as quick for less. */
static bool widen_dense(
        const struct fold_words *words, struct fold_stage *stage, int64_t bits, int64_t *dsp)
{
	const struct fold_stage was = *stage;
	int64_t most = *dsp + stage_dsp(stage);
	for (int w = 0; w < words->count; w++) {
		const struct fold_stage *choice = &words->choice[w];
		bool fits = choice->pe * choice->simd * choice->bits <= bits &&
		        stage_dsp(choice) <= most;
		if (fits &&
		        (choice->cycles < stage->cycles ||
		                (choice->cycles <= stage->cycles &&
		                        cost_of(choice) < cost_of(stage))))
			*stage = *choice;
	}
	*dsp = most - stage_dsp(stage);
	return stage->pe != was.pe || stage->simd != was.simd;
}

static int ports_of(const struct fold_stage *stage, int64_t port_bits)
{
	int64_t bits = stage->pe * stage->simd * stage->bits;
	return bits > port_bits ? (int)(bits / port_bits) : 1;
}

/* The slowest dense stage that has not as many ports as help it; -1: there is none. */
static int slowest_dense(const struct fold_stage *stage, int stages, const int *ports)
{
	int slowest = -1;
	for (int i = 0; i < stages; i++)
		if (ports[i] && (slowest < 0 || stage[i].cycles > stage[slowest].cycles))
			slowest = i;
	return slowest;
}

/* Dense stages read their weights as fast as they use them: each takes a memory port, and the
 * slowest one further ports while there are some. */
static void spend_rest(struct arena *arena, const struct fold_words *words,
        struct fold_stage *stage, int stages, struct fold_budget budget)
{
	int *ports = ARENA_ARRAY(arena, int, stages); /* 0: more do not help */
	for (int i = 0; i < stages; i++)
		budget.dsp -= stage_dsp(&stage[i]);
	for (int i = 0; i < stages; i++)
		if (stage[i].dense && budget.dsp > 0) {
			widen_dense(&words[i], &stage[i], budget.port_bits, &budget.dsp);
			ports[i] = ports_of(&stage[i], budget.port_bits);
			budget.ports -= ports[i];
		}
	for (int i; (i = slowest_dense(stage, stages, ports)) >= 0;) {
		int64_t bits = 2 * ports[i] * budget.port_bits;
		bool wider = budget.dsp > 0 && ports[i] <= budget.ports &&
		        widen_dense(&words[i], &stage[i], bits, &budget.dsp);
		budget.ports -= wider ? ports[i] : 0;
		ports[i] = wider ? 2 * ports[i] : 0;
	}
}

void choose_fold_rates(
        struct arena *arena, struct fold_stage *stage, int stages, struct fold_budget budget)
{
	struct fold_words *words = ARENA_ARRAY(arena, struct fold_words, stages + 1);
	VEC(double) interval = { 0 };
	for (int i = 0; i < stages; i++) {
		words[i] = list_words(arena, stage[i], budget.port_bits);
		for (int w = 0; w < words[i].count; w++)
			VEC_PUSH(arena, &interval, words[i].choice[w].cycles);
	}
	if (!stages)
		return;
	qsort(interval.data, interval.count, sizeof *interval.data, compare);
	size_t low = 0;
	size_t high = interval.count - 1;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (set_stages(words, stage, stages, interval.data[middle], budget.dsp))
			high = middle;
		else
			low = middle + 1;
	}
	set_stages(words, stage, stages, interval.data[low], budget.dsp);
	spend_rest(arena, words, stage, stages, budget);
}
