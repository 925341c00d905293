/* Explains in the report why each converter is needed and what would avoid it. */
#ifndef STC_EXPLAIN_CONVERTERS_H
#define STC_EXPLAIN_CONVERTERS_H
#include "options/pass_context.h"

/* Bytes of all halves of a converter's buffer, whether it is spilled or not. */
int64_t converter_bytes(const struct op *convert);
/* Sets main's attribute stream.converters: for each converter its writer, readers, types, bytes,
 * whether it is spilled, and what would avoid it. */
void explain_converters(struct module *module);
#endif
