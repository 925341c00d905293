/* Where the weights of a folded convolution stay. */
#ifndef STC_FOLD_MEMORY_H
#define STC_FOLD_MEMORY_H
#include "base/arena.h"
#include "folding/fold_channels.h"
#include "folding/fold_rates.h"
#include "platform/platform.h"

/* The parallel loops of a kernel other than its channels, those of far elements of the result
 * first, and those that walk parts of its channels last; returns their number. loop: has room for
 * twice the kernel's loops. */
int list_pixel_loops(const struct folded_kernel *folded, int *loop);

/* Sets `pixels_outside` and `block` of all kernels. No block: all weights are held, and the rows
 * under the window; this reads least from memory and delays an image least. Else the weights of
 * one block of channels are held, and an image is sent again for each block; weights are read
 * again for each image, unless images have a single pixel. The latter is chosen for as few kernels
 * as bring the memories of all of them under `budget` bytes and the board's blocks, those first
 * that save most for each time that a weight is read. Elementwise readers take the order of such a
 * kernel. Returns a kernel that should read its window a word at a time, as others cannot have
 * blocks and the memories are too small; -1: there is none. */
int choose_fold_memory(struct arena *arena, const struct platform *platform,
        struct folded_kernels folded, const struct fold_stage *stage, int64_t budget);

#endif
