/* A target board: resources per die without the shell, memory channels, clock, operator latencies
 * and costs. Read from platforms/NAME.json, where every figure names its source. Nothing here
 * depends on a design. */
#ifndef STC_PLATFORM_H
#define STC_PLATFORM_H
#include "ir/ir.h"

#define PORT_BITS 512 /* maximum bits of a memory word */
/* Results of fewer elements are written one by one, through a port that they share: that takes no
 * longer than the latency of memory. */
#define OWN_ELEMENTS 128
/* Where no port is left, results of fewer elements share one. */
#define FEW_RESULTS 1024

#define PLATFORM_DIES 4

struct resources {
	int64_t lut, ff, dsp, bram18, uram;
};

struct operator_cost {
	int latency; /* cycles, fully pipelined */
	int dsp, lut, ff;
	int parts; /* operations that a function is composed of; 0: it is one operator */
};

struct platform {
	const char *name, *part, *xpfm;
	const char *memory_tag; /* of a memory channel in link.cfg: HBM, DDR, HP */
	double clock_mhz;
	/* percent of a die: a fuller die routes badly, and the clock period grows by
	 * crowded_period */
	struct resources crowded;
	double crowded_period;
	/* `crowded` at a period of crowded_period or more; LUT and DSP limits stay */
	struct resources slower;
	int64_t slower_wires; /* percent of crossing_wires at that period */
	int dies;
	struct resources die[PLATFORM_DIES]; /* after the shell */
	int memory_die;                      /* the die that the memory ports reach */
	int channels;                        /* memory channels */
	int64_t channel_bytes;               /* capacity of one */
	double channel_gbps;                 /* peak of one, 1e9 bytes a second */
	double channel_efficiency;           /* sustained / peak, long bursts */
	int memory_latency;                  /* cycles from request to first beat */
	int ports;                           /* maximum memory ports of a design */
	int burst;                           /* maximum words per request of a port */
	int outstanding;                     /* maximum outstanding requests of a port */
	int port_bits;                       /* widest memory port */
	int64_t crossing_wires;              /* per boundary between dies */
	double launch_us;                    /* host launch */
	double watts;                        /* the board's limit */
	double idle_watts;                   /* board configured but idle */
	/* for f32, or i32 where the op is an integer op */
	struct operator_cost cost[OP_COUNT];
	/* for f64; where the platform has no figures, derived from those for f32 */
	struct operator_cost double_cost[OP_COUNT];
	/* one m_axi adapter of port_bits that writes, with default outstanding requests and
	 * burst */
	struct resources port_cost;
	struct resources read_cost; /* LUTs and registers of an adapter that only reads */
	int fifo_word_lut;          /* control logic of one FIFO */
};

/* name: of a file platforms/NAME.json in the data directory, or a path ending in .json. NULL after
 * diagnostics (unknown name: lists the known ones; a missing or absurd figure: its key). */
const struct platform *platform_load(struct arena *arena, struct diag *diag, const char *name);
/* lists the platforms, sorted; returns their number */
int platform_names(struct arena *arena, const char *const **names);
/* Is it a divider of integers?  It has a stage and a row of subtractions for each bit of the
 * quotient. */
bool operator_divides(enum op_code code);
/* cost: an integer operator of 32 bits; returns the one of `width` bits */
struct operator_cost operator_of_width(struct operator_cost cost, enum op_code code, int width);
struct operator_cost platform_operator(
        const struct platform *platform, enum op_code code, const struct type *scalar);
/* a float product with a narrow factor (ir/narrow_product.h) */
struct operator_cost platform_narrow(const struct platform *platform);
/* a float of a narrow integer */
struct operator_cost platform_narrow_integer(const struct platform *platform);
/* a float times a power of two */
struct operator_cost platform_scale(const struct platform *platform);
/* a product of two integers of so many bits */
struct operator_cost platform_product(const struct platform *platform, int bits, int other);
struct resources resources_add(struct resources left, struct resources right);
struct resources resources_times(struct resources one, int64_t count);
/* the difference, each at least 0 */
struct resources resources_subtract(struct resources all, struct resources used);
int64_t resources_bytes(struct resources resources); /* capacity of its block RAMs and URAMs */
/* the largest of used / has over the five resources */
double resources_share(struct resources used, struct resources has);
struct resources platform_total(const struct platform *platform); /* sum over all dies */
/* resources of a die up to which it is not crowded */
struct resources platform_uncrowded(const struct platform *platform, int die);
/* the platform at a slower clock */
const struct platform *platform_slower(
        struct arena *arena, const struct platform *platform, double mhz);
/* time of a launch, with the host's part */
double platform_launch_ms(const struct platform *platform, int64_t cycles);
/* bytes per cycle that a memory channel sustains with long bursts */
double platform_channel_rate(const struct platform *platform);
#endif
