/* Two modules as phases of one kernel: what of the second is the first's, and what is its own. */
#ifndef STC_JOIN_PHASES_H
#define STC_JOIN_PHASES_H
#include "emit/emit.h"
#include "platform/platform.h"

struct joined {
	int ports, adapters;           /* of the kernel; that they are */
	struct resources shared_ports; /* what the ports of both take, once */
	/* of the second's weights and states: in the first's memory, and beside it */
	int64_t shared_bytes, own_bytes;
};

/* Both at hardware level.  Buffers of the second that hold just what one of the first holds
 * become that one; its other buffers, and ports that no port of the first can stand for, get the
 * phase's name in front.  false: diagnostics, they are not of one model. */
bool join_phases(const struct platform *platform, const struct phase *first,
        const struct phase *second, struct joined *joined);

#endif
