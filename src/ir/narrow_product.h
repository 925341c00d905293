/* Products of two f32 of which one has few significant bits: an f16 or bf16 that was extended,
 * or a sum of narrow integers.  One multiplier makes them, where any two f32 take three. */
#ifndef STC_NARROW_PRODUCT_H
#define STC_NARROW_PRODUCT_H
#include "ir/dot.h"

/* significant ones, as many as a DSP48's narrow port takes without a sign */
#define NARROW_BITS 17

bool narrow_dot(const struct dot *dot); /* has each of its sums so few? */
/* Of an arith.mulf on f32: the operand that has so few; -1: none is known to. */
int narrow_factor(const struct op *op);
/* is it an arith.sitofp to f32 of a number of so few bits? */
bool narrow_integer(const struct op *op);
#endif
