/* The option --quant: SCHEME[,KEY=VALUE …]. */
#ifndef STC_QUANT_OPTION_H
#define STC_QUANT_OPTION_H
#include "base/diag.h"
#include "options/pass_context.h"

/* *scheme NULL: fp32, or no option at all.  false after a diagnostic. */
bool quant_parse(struct arena *arena, struct diag *diag, const char *text,
        const struct quant_scheme **scheme);
#endif
