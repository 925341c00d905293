/* The rates of a pipeline of kernels: a stage takes iterations / (PE × SIMD) cycles an image, and
 * the slowest one sets the interval between images. */
#ifndef STC_FOLD_RATES_H
#define STC_FOLD_RATES_H
#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

struct fold_stage {
	double points;    /* iterations of its loops if nothing is unrolled */
	int64_t channels; /* that can be unrolled as lanes; 1: none */
	bool narrow;      /* channels cannot be unrolled */
	int64_t terms;    /* that can be unrolled as terms of a sum; 1: none */
	bool windows;     /* windows of an image are read; */
	int taps;         /* dimensions of a window that can be unrolled beside terms: */
	int64_t tap[2];   /* the first one, or both */
	double image;     /* elements that come, of which a window takes a word a cycle: */
	bool apart;       /* PE of them, since channels are apart; else all terms */
	double late;      /* words for which all pixels wait that taps are read for; where channels
	                     are apart each of them does, of the first one too */
	double between;   /* the share of the image that comes between rows, while none is read */
	int64_t dsp;      /* of what one lane computes beside products */
	bool products;    /* each lane and term has a product of integers; */
	bool packed;      /* two of them share a DSP */
	int64_t bits;     /* of the widest element that differs by lane and term */
	/* its first result needs a whole image, so that stages behind it wait for all its cycles */
	bool dense;
	bool splits;      /* it can be split by channels, of which the reader takes one part's at */
	double places;    /* each of the places of its result */
	int64_t pe, simd; /* out: channels, and terms with taps, unrolled */
	int parts;        /* out: stages to split it into, whose words have PE / parts channels */
	int unrolled;     /* out: dimensions of taps */
	double cycles;    /* out: an image */
};

/* The taps of a window that are terms. */
int64_t unrolled_taps(const struct fold_stage *stage);

struct fold_budget {
	int64_t dsp;
	int64_t port_bits; /* of a memory port */
	int ports;         /* for the weights that dense stages use in a cycle */
};

/* Sets PE and SIMD of all stages for the least interval whose DSPs are within the budget, of each
 * stage the fewest DSPs that keep it; the narrowest words where no interval is.  Exact, since with
 * the interval fixed the stages are independent, so it is found by bisection.  DSPs and ports that
 * are left make dense stages wider than the interval asks for: an image is sooner through. */
void choose_fold_rates(
        struct arena *arena, struct fold_stage *stage, int stages, struct fold_budget budget);

#endif
