/* The register tile of one contraction: how many of its sums are formed side by side, in which
 * blocks its loops run, and from where on its operands are held on chip. */
#ifndef STC_REGISTER_TILE_H
#define STC_REGISTER_TILE_H
#include "platform/platform.h"
#include "schedule/kernel_schedule.h"

/* What a register tile may take. */
struct tile_limits {
	int64_t dsp;             /* DSPs of its operators */
	struct resources memory; /* block RAMs and URAMs of its sums and of held operands */
	int ports;               /* memory ports */
	/* few words may come through the loader that small operands share: no other tile would wait
	 * for its words there */
	bool shares;
};

/* A kernel for which a register tile is chosen. */
struct tile_kernel {
	struct module *module;
	const struct platform *platform;
	const struct op *op;
	int *loads; /* [operands] 1: it comes from memory through ports of its own */
	/* [loops] the reader of the result walks along it outermost, by so many elements: results
	 * are wanted in its order; 0: it does not */
	const int64_t *wanted;
	/* [loops] elements along it in a word of the result's reader; a converter between other
	 * words passes on what they have in common; 0: none reads it in such words */
	const int64_t *wanted_lanes;
	bool is_read;   /* by another register tile, in whole words; */
	bool is_stored; /* or in words of a memory port; else by elementwise kernels, */
	/* of which a lane takes so many DSPs; they have as many lanes as DSPs are left */
	int64_t reader_dsp;
};

/* A register tile, and what the closed form says of it. */
struct tile_choice {
	bool found;
	struct schedule schedule; /* `held` is set */
	double cycles;
	int64_t dsp;
	int ports;
	int64_t result_lanes; /* elements of the result that elementwise readers take in a cycle */
};

/* Is the kernel a reduction with a parallel loop that some operand does not vary along, so that
 * sums side by side share what they read? Updates may depend on reduction loops. */
bool is_contraction(const struct op *op);
/* Lanes in which a reader takes words of so many: the most that divide them, at most `most`. */
int64_t tile_reader_lanes(int64_t lanes, int64_t most);
/* Memory ports that bring words of so many lanes: the fewest that have equal parts of a word. */
int tile_ports(int64_t lanes, int64_t bits);
/* Words of overlapping windows are loaded once, where they have no elements in common: a part whose
 * steps are steps of a part inside of it is loaded with that one, which becomes longer. Sets the
 * iterations of each part in which the operand's loader sends other words; returns the outermost
 * part that is loaded with another one, or the number of parts that are not unrolled. */
int tile_windows(
        const struct kernel *kernel, const struct schedule *schedule, int operand, int64_t *trip);
/* Lanes that so many ports bring at a time of words of `lanes`: all, or a part if all are too wide
 * for them. */
int64_t tile_part(int64_t lanes, int64_t bits, int ports);
/* DSPs of one product and its addition */
int64_t tile_term_dsp(const struct platform *platform, const struct kernel *kernel);
/* The fastest register tile within the limits; of equal ones that of the least memory. Branch and
 * bound: tiles of more iterations than the best one takes cycles are not priced. */
struct tile_choice choose_register_tile(
        const struct tile_kernel *kernel, const struct tile_limits *limits);
#endif
