/* Why converters stand where they stand, for reports. */
#ifndef STC_EXPLAIN_H
#define STC_EXPLAIN_H
#include "options/pass_context.h"

int64_t converter_bytes(const struct op *convert); /* of all halves, cut or not */
/* Main's attribute stream.converters: one dictionary for each converter and cut with its writer,
 * readers, types, bytes, and what would avoid it. */
void explain_converters(struct module *module);
#endif
