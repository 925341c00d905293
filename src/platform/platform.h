/* A target board: resources per die after the shell, memory channels, clock, operator latencies
 * and costs.  Read from platforms/NAME.json; every figure there names its source.  Pure data:
 * nothing here depends on a design. */
#ifndef STC_PLATFORM_H
#define STC_PLATFORM_H
#include "ir/ir.h"

#define PORT_BITS 512 /* of a word of memory */

#define PLATFORM_DIES 4

struct resources {
	int64_t lut, ff, dsp, bram18, uram;
};

struct operator_cost {
	int latency; /* cycles, fully pipelined */
	int dsp, lut, ff;
};

struct platform {
	const char *name, *part, *xpfm;
	double clock_mhz;
	/* percent of what a die has: a fuller one routes badly, and the clock's period is then
	 * crowded_period times as long */
	struct resources crowded;
	double crowded_period;
	/* `crowded` at so long a period or a longer one; of LUTs and DSPs it is the same */
	struct resources slower;
	int64_t slower_wires; /* percent of crossing_wires, then */
	int dies;
	struct resources die[PLATFORM_DIES]; /* after the shell */
	int memory_die;                      /* the die that the memory ports reach */
	int channels;                        /* memory channels */
	int64_t channel_bytes;               /* capacity of one */
	double channel_gbps;                 /* peak of one, 1e9 bytes a second */
	double channel_efficiency;           /* sustained / peak, long bursts */
	int memory_latency;                  /* cycles from request to first beat */
	int ports;                           /* most memory ports of a design */
	int burst;                           /* words that one request of a port asks for at most */
	int outstanding;                     /* requests of a port under way at most */
	int port_bits;                       /* widest memory port */
	int64_t crossing_wires;              /* per boundary between dies */
	double launch_us;                    /* host launch */
	double watts;                        /* the board's limit */
	double idle_watts;                   /* of the board, configured and doing nothing */
	/* on f32; integers where the op is an integer op */
	struct operator_cost cost[OP_COUNT];
	/* one m_axi adapter of port_bits that writes, default outstanding and burst; */
	struct resources port_cost;
	struct resources read_cost; /* LUTs and registers of one that only reads */
	int fifo_word_lut;          /* control of one FIFO */
};

/* name: a file platforms/NAME.json in the data directory, or a path ending in .json.  NULL after
 * diagnostics (unknown name: lists those there are; a missing or absurd figure: its key). */
const struct platform *platform_load(struct arena *arena, struct diag *diag, const char *name);
/* sorted; returns how many */
int platform_names(struct arena *arena, const char *const **names);
struct operator_cost platform_operator(
        const struct platform *platform, enum op_code code, const struct type *scalar);
/* a product of floats as ir/narrow_product.h has them */
struct operator_cost platform_narrow(const struct platform *platform);
/* and a float of an integer */
struct operator_cost platform_narrow_integer(const struct platform *platform);
/* of two integers of at most `bits` bits */
struct operator_cost platform_product(const struct platform *platform, int bits);
struct resources resources_add(struct resources left, struct resources right);
/* what is left, at least nothing */
struct resources resources_subtract(struct resources all, struct resources used);
int64_t resources_bytes(struct resources resources); /* that its block RAMs and URAMs hold */
/* the largest of used / has over the five */
double resources_share(struct resources used, struct resources has);
struct resources platform_total(const struct platform *platform); /* over all dies */
/* what it holds before it is crowded */
struct resources platform_uncrowded(const struct platform *platform, int die);
/* at a slower clock */
const struct platform *platform_slower(
        struct arena *arena, const struct platform *platform, double mhz);
/* of a launch of so many cycles, with what the host takes */
double platform_launch_ms(const struct platform *platform, int64_t cycles);
/* bytes a cycle that a memory channel sustains, of long bursts */
double platform_channel_rate(const struct platform *platform);
#endif
