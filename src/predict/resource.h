/* Estimates the resources of a hardware-level design: operators, memories, FIFOs, memory ports.
 * Pure functions of the module and the platform. */
#ifndef STC_RESOURCE_H
#define STC_RESOURCE_H
#include "platform/platform.h"

/* Numbers of a nest that a rewinding process reads from its own channel: about ten of 8 bits. */
#define NEST_ENTRY_BITS 80
/* Is what issues the nests of a rewinding process on the die of the kernel's control?  The kernel
 * starts what reads no channel. */
bool nests_are_apart(const struct op *process);

enum storage { STORAGE_AUTO, STORAGE_REGISTERS, STORAGE_LUTRAM, STORAGE_BRAM, STORAGE_URAM };

/* spelling in the attribute stream.storage */
extern const char *const storage_name[];
enum storage storage_find(const char *name); /* NULL or unknown: STORAGE_AUTO */
/* the storage that AUTO means for such a memory: the cheapest */
enum storage storage_choose(int64_t bits, int64_t depth, bool uram);
/* one memory of `depth` words of `bits`, with one read and one write port */
struct resources storage_cost(enum storage storage, int64_t bits, int64_t depth);

struct memory { /* an array, or the blocks of a channel, in equal banks */
	int64_t banks, bits, depth;
	enum storage storage;
};
/* of a memref.alloca, stream.fifo or stream.block_channel */
struct memory memory_of(const struct platform *platform, const struct op *op);
struct resources memory_cost(const struct platform *platform, const struct op *op);
/* the same with another kind of storage */
struct resources memory_cost_as(
        const struct platform *platform, const struct op *op, enum storage storage);
int64_t memory_bytes(const struct op *op); /* payload */
/* of a channel, at the depth that was required */
int64_t needed_bytes(const struct op *op);

struct process_cost {
	const char *name;
	struct op *function, *call;
	int die;
	/* operators, arrays, memory adapters and loops, without channels */
	struct resources resources;
	int64_t lanes, interval; /* lanes of its widest pipelined loop, and its interval */
};

struct channel_cost {
	struct op *op;      /* stream.fifo or stream.block_channel */
	int writer, reader; /* processes; -1: none */
	int die;            /* of its reader */
	struct resources resources;
	int64_t depth, bytes;
	/* bytes at the required depth; the memory may be deeper */
	int64_t needed;
};

struct design_cost {
	int processes, channels, ports;
	struct process_cost *process; /* in the order of calls */
	struct channel_cost *channel;
	struct resources die[PLATFORM_DIES], total;
	int64_t wires[PLATFORM_DIES]; /* data of FIFOs over the boundary of dies d and d + 1 */
	int crossings[PLATFORM_DIES]; /* FIFOs over it */
};

struct design_cost design_cost(
        struct arena *arena, const struct platform *platform, const struct module *module);
/* one memory adapter for words of this type */
struct resources port_resources(
        const struct platform *platform, const struct type *word, bool writes);
struct resources process_resources(const struct platform *platform, const struct op *function);

/* Name of the first resource of which more is used than available, with both numbers; NULL: all
 * fit. */
const char *resources_exceeded(
        struct resources used, struct resources available, int64_t *have, int64_t *need);
#endif
