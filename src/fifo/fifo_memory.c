/* Rounds a FIFO depth up to what its memory holds anyway, since memories come in fixed shapes. */
#include "predict/resource.h"
#include "fifo/fifo.h"

#define SHIFT_HALF 16 /* SRL16: two in a LUT */
#define LUTRAM_ROW 64 /* RAM64M8 */
#define URAM_WORDS 4096

/* The most words that as many block RAMs hold in any of their shapes. */
static int64_t block_depth(int64_t bits, int64_t depth)
{
	int64_t count = storage_cost(STORAGE_BRAM, bits, depth).bram18;
	int64_t most = depth;
	for (int64_t words = 512; words <= 16384; words *= 2) {
		int64_t whole = (depth + words - 1) / words * words;
		while (storage_cost(STORAGE_BRAM, bits, whole).bram18 <= count) {
			most = whole > most ? whole : most;
			whole += words;
		}
	}
	return most;
}

int64_t fifo_free_depth(int64_t bits, int64_t depth)
{
	if (depth <= SHIFT_HALF)
		return SHIFT_HALF;
	if (depth <= FIFO_SHORT)
		return FIFO_SHORT;
	switch (storage_choose(bits, depth, true)) {
	case STORAGE_BRAM: return block_depth(bits, depth);
	case STORAGE_URAM: return (depth + URAM_WORDS - 1) / URAM_WORDS * URAM_WORDS;
	case STORAGE_LUTRAM: return (depth + LUTRAM_ROW - 1) / LUTRAM_ROW * LUTRAM_ROW;
	case STORAGE_AUTO:
	case STORAGE_REGISTERS: return depth;
	}
	return depth;
}
