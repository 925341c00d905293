/* Which kernels of a module can be folded (fold_convolutions.c), and which of their loops walk
 * channels. */
#ifndef STC_FOLD_CHANNELS_H
#define STC_FOLD_CHANNELS_H
#include "ir/kernel.h"

enum { FOLD_TAPS = 2 }; /* dimensions of a window that a line buffer reads at once */

/* A kernel of the pipeline. */
struct folded_kernel {
	struct op *op;
	int image;      /* the operand that is an image; 0 where none is told from the others */
	int channel;    /* the parallel loop over channels of its result */
	int64_t groups; /* elements between groups of channels of its result; 0: none are known */
	int term;       /* the reduction over channels of its operand; -1: none */
	int taps;       /* reductions over a window that can be unrolled, */
	int tap[FOLD_TAPS]; /* far elements first: the first one, or all */
	bool narrow;        /* neighbouring channels have other operands, so that none are lanes */
	bool products;      /* it sums up products of two operands */
	bool slides;        /* it is a convolution: places of an image share its weights */
	/* images have one pixel for it, so that its first result needs a whole one: only the images
	 * of a batch share its weights */
	bool dense;
	/* loops of pixels outside its blocks of so many channels; no block: all of them
	 * (fold_memory.h) */
	int pixels_outside;
	int64_t block;
};

struct folded_kernels {
	int count;
	struct folded_kernel *kernel; /* in program order */
};

struct folded_kernels find_folded_kernels(struct module *module, struct block *block);
/* Does the reduction run along a dimension of the image that a parallel loop moves too, as in a
 * window?  Else it takes whole images. */
bool is_window_loop(const struct op *op, int image, int loop);
/* Does the parallel loop walk the images of a batch? No other one moves as far within the operand.
 */
bool is_image_loop(const struct op *op, int image, int loop);

#endif
