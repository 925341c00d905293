/* Joins two modules as phases (such as decode and prefill) of one kernel: which buffers, ports and
 * adapters of the second are those of the first. */
#ifndef STC_JOIN_PHASES_H
#define STC_JOIN_PHASES_H
#include "emit/emit.h"
#include "platform/platform.h"

struct joined {
	int ports, adapters;           /* of the kernel: ports, AXI adapters */
	struct resources shared_ports; /* of the ports that both phases use, counted once */
	/* weights and states of the second phase: in buffers of the first, and in its own */
	int64_t shared_bytes, own_bytes;
};

/* Both modules are at hardware level; the second one is changed.  Its buffers with the contents of
 * a buffer of the first become that one (same_as); its other buffers and ports get the phase's name
 * as a prefix.  false: a diagnostic, the phases are not of one model. */
bool join_phases(const struct platform *platform, const struct phase *first,
        const struct phase *second, struct joined *joined);

#endif
