/* What designs compute in f64: operations that are exact or correctly rounded, so that the bits
 * are those of C. Elementary functions have forms in f32 only. */
#ifndef STC_DOUBLE_FORMS_H
#define STC_DOUBLE_FORMS_H
#include "ir/ir.h"

bool type_is_double(const struct type *scalar);
/* Can the operation have operands or a result of f64? */
bool has_double_form(enum op_code code);
#endif
