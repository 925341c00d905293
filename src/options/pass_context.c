/* Whether a point of the design space asks for the contraction unit. */
#include "options/pass_context.h"

/* of a platform: a unit has a port for each slice, beside those of all else */
#define PORTS_LEAST 24

bool has_engine(const struct pass_context *context)
{
	return choice_word(&context->choices, CHOICE_MATMUL) == MATMUL_ENGINE &&
	        context->platform->ports >= PORTS_LEAST;
}
