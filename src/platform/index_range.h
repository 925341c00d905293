/* Value range of an index, where it follows from its computation: Vitis HLS keeps no more bits than
 * needed. */
#ifndef STC_INDEX_RANGE_H
#define STC_INDEX_RANGE_H
#include "ir/ir.h"

#define INDEX_BITS 32 /* of an unknown index: an int of the emitted text */

/* Bits of the index, with a sign bit if it can be negative. Known for constants, casts of narrow
 * integers and what is computed from them; else INDEX_BITS. */
int index_bits(const struct value *value);
bool index_is_below_zero(const struct value *value); /* Can the index be negative? */
#endif
