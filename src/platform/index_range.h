/* What an index can be, where that follows from how it is made: the vendor's compiler keeps no
 * more bits of it. */
#ifndef STC_INDEX_RANGE_H
#define STC_INDEX_RANGE_H
#include "ir/ir.h"

#define INDEX_BITS 32 /* of one that can be anything: an int of the emitted text */

/* Bits of the number, with its sign where it has one: of constants, numbers of narrow inputs,
 * and what is computed of these; else INDEX_BITS. */
int index_bits(const struct value *value);
bool index_is_below_zero(const struct value *value); /* can it be? */
#endif
