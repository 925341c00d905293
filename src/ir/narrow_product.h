/* f32 products with one narrow factor: one that has at most NARROW_BITS significant bits, as an
 * extended f16 or bf16 or a sum of narrow integers. Such a product takes one DSP multiplier, a
 * general f32 product three. */
#ifndef STC_NARROW_PRODUCT_H
#define STC_NARROW_PRODUCT_H
#include "ir/dot.h"

/* significant bits that the narrow port of a DSP48 takes, without the sign */
#define NARROW_BITS 17
#define POWER_MOST 60 /* largest exponent of such a factor, or of its inverse */

/* Has each sum of the dot at most NARROW_BITS significant bits? */
bool narrow_dot(const struct dot *dot);
/* Index of the narrow operand of an arith.mulf on f32; -1: none is known to be narrow. */
int narrow_factor(const struct op *op);
/* Index of the factor of an arith.mulf on f32 that is a power of two within POWER_MOST, so that the
 * product only adds to the exponent; -1: there is none. */
int power_of_two_factor(const struct op *op, int *power);
/* The power of two that a number is; false: it is none, or beyond POWER_MOST. */
bool power_of_two_of(double number, int *power);
/* Bits of a constant as a number with a sign. */
int constant_bits(int64_t number);
/* Is it an arith.sitofp to f32 of such an integer? */
bool narrow_integer(const struct op *op);
#endif
