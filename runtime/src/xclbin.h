/* What the file of a card's configuration says of its memories and its clock. */
#ifndef STC_XCLBIN_H
#define STC_XCLBIN_H
#include "base/arena.h"
#include <stdint.h>

struct xclbin_memory {
	const char *tag; /* HBM[3], DDR[0], bank1, … */
	int64_t bytes;   /* 0: no kernel uses it */
};

struct xclbin {
	int memories;
	const struct xclbin_memory *memory; /* in the order of the runtime library's groups */
	int mhz; /* of the kernel; the linker lowers it without an error; 0: not said */
};

/* NULL, or why the file is none. */
const char *xclbin_read(struct arena *arena, const char *path, struct xclbin *xclbin);

#endif
