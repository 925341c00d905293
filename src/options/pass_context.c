/* Decides whether a design has a shared matmul engine. */
#include "options/pass_context.h"

/* minimum ports of the platform: the engine takes one per PE, besides those of all other
 * operands */
#define PORTS_LEAST 24

bool engine_allowed(const struct pass_context *context)
{
	return choice_word(&context->choices, CHOICE_MATMUL) == MATMUL_ENGINE &&
	        context->platform->ports >= PORTS_LEAST;
}
