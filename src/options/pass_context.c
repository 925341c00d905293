/* What several passes decide alike: whether a design has a shared matmul engine, and which tensors
 * are too large to wait on chip. */
#include "options/pass_context.h"

/* minimum ports of the platform: the engine takes one per PE, besides those of all other
 * operands */
#define PORTS_LEAST 24
#define PASSING_SHARE 4 /* several tensors may wait at once */

bool engine_allowed(const struct pass_context *context)
{
	return choice_word(&context->choices, CHOICE_MATMUL) == MATMUL_ENGINE &&
	        context->platform->ports >= PORTS_LEAST;
}

int64_t passing_bytes_most(const struct pass_context *context)
{
	return choice_resolve(&context->choices, context->platform, CHOICE_ON_CHIP) / PASSING_SHARE;
}
