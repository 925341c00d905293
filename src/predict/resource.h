/* What a hardware-level design costs: operators, memories, FIFOs, memory ports.  Pure functions
 * of the module and the platform. */
#ifndef STC_RESOURCE_H
#define STC_RESOURCE_H
#include "platform/platform.h"

enum storage { STORAGE_AUTO, STORAGE_REGISTERS, STORAGE_LUTRAM, STORAGE_BRAM, STORAGE_URAM };

/* as attribute stream.storage spells it; "auto" */
extern const char *const storage_name[];
enum storage storage_find(const char *name); /* NULL or unknown: STORAGE_AUTO */
/* what AUTO stands for: the cheapest that holds it */
enum storage storage_choose(int64_t bits, int64_t depth, bool uram);
/* one memory of `depth` words of `bits`, one read and one write port */
struct resources storage_cost(enum storage storage, int64_t bits, int64_t depth);

struct memory { /* an array, or the blocks of a channel: equal banks */
	int64_t banks, bits, depth;
	enum storage storage;
};
/* memref.alloca, stream.fifo, stream.block_channel */
struct memory memory_of(const struct platform *platform, const struct op *op);
struct resources memory_cost(const struct platform *platform, const struct op *op);
/* if it were made of that */
struct resources memory_cost_as(
        const struct platform *platform, const struct op *op, enum storage storage);
int64_t memory_bytes(const struct op *op); /* payload */
/* of a channel: of the depth that was asked for */
int64_t needed_bytes(const struct op *op);

struct process_cost {
	const char *name;
	struct op *function, *call;
	int die;
	/* operators, arrays, memory adapters, loops; channels are apart */
	struct resources resources;
	int64_t lanes, interval; /* of its widest pipelined loop */
};

struct channel_cost {
	struct op *op; /* stream.fifo or stream.block_channel */
	int die;       /* of its reader */
	struct resources resources;
	int64_t depth, bytes;
	/* bytes of the depth that was asked for; the memory may be deeper */
	int64_t needed;
};

struct design_cost {
	int processes, channels, ports;
	struct process_cost *process; /* in the order of calls */
	struct channel_cost *channel;
	struct resources die[PLATFORM_DIES], total;
};

struct design_cost design_cost(
        struct arena *arena, const struct platform *platform, const struct module *module);
/* one memory adapter; false: it only reads */
struct resources port_resources(
        const struct platform *platform, const struct type *word, bool writes);
struct resources process_resources(const struct platform *platform, const struct op *function);

/* The first resource that `used` has more of than `available`; NULL: it fits. */
const char *resources_exceeded(
        struct resources used, struct resources available, int64_t *have, int64_t *need);
#endif
