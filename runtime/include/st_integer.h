/* Integer operations with the meaning of the IR: they wrap, division by zero is 0, and a float
 * is cut off to the nearest number of the type. */
#ifndef ST_INTEGER_H
#define ST_INTEGER_H

#include <cstdint>

template <class T> inline T st_add(T a, T b)
{
	return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

template <class T> inline T st_sub(T a, T b)
{
	return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

template <class T> inline T st_mul(T a, T b)
{
	return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

template <class T> inline T st_quotient(T a, T b)
{
	if (b == 0)
		return T(0);
	return b == T(-1) ? st_sub<T>(0, a) : static_cast<T>(a / b);
}

template <class T> inline T st_remainder(T a, T b)
{
	return b == 0 || b == T(-1) ? T(0) : static_cast<T>(a % b);
}

template <class T> inline T st_quotient_floor(T a, T b)
{
	const T rest = st_remainder<T>(a, b);

	return st_sub<T>(st_quotient<T>(a, b), rest != 0 && (rest < 0) != (b < 0) ? T(1) : T(0));
}

template <class T> inline T st_quotient_unsigned(T a, T b)
{
	return b == 0 ? T(0) : static_cast<T>(a / b);
}

template <class T> inline T st_remainder_unsigned(T a, T b)
{
	return b == 0 ? T(0) : static_cast<T>(a % b);
}

/* Bits of an integer of W bits are moved; a distance below 0 is one beyond the width. */
template <class T, int W> inline T st_shift_up(T a, T b)
{
	const std::uint64_t value = static_cast<std::uint64_t>(a);

	return b < 0 || b >= W ? T(0) : static_cast<T>(value << static_cast<int>(b));
}

template <class T, int W> inline T st_shift_down(T a, T b)
{
	const std::int64_t value = static_cast<std::int64_t>(a);

	return static_cast<T>(value >> (b < 0 || b >= W ? W - 1 : static_cast<int>(b)));
}

template <class T, int W> inline T st_shift_zeros(T a, T b)
{
	const std::uint64_t value = static_cast<std::uint64_t>(a);

	return b >= W ? T(0) : static_cast<T>(value >> static_cast<int>(b));
}

template <class T> inline T st_absolute(T a)
{
	return a < 0 ? st_sub<T>(0, a) : a;
}

template <class T> inline T st_max(T a, T b)
{
	return a > b ? a : b;
}

template <class T> inline T st_min(T a, T b)
{
	return a < b ? a : b;
}

/* From float or double to a type of W bits; NaN gives 0. */
template <class T, int W, class R> inline T st_saturate_real(R a)
{
	const std::uint64_t half = static_cast<std::uint64_t>(1) << (W - 2);
	const R limit = static_cast<R>(half) * R(2);
	const std::int64_t most = static_cast<std::int64_t>(half - 1 + half);

	if (a != a)
		return T(0);
	if (a >= limit)
		return static_cast<T>(most);
	return static_cast<T>(a < -limit ? -most - 1 : static_cast<std::int64_t>(a));
}

/* From float or double to an unsigned integer of W bits, as the low bits of 64; NaN gives 0. */
template <int W, class R> inline std::uint64_t st_saturate_unsigned_real(R a)
{
	const std::uint64_t half = static_cast<std::uint64_t>(1) << (W - 1);

	if (!(a > R(0)))
		return 0;
	if (a >= static_cast<R>(half) * R(2))
		return half - 1 + half;
	return static_cast<std::uint64_t>(a);
}

/* Half floats become float here. */
template <class T, int W> inline T st_saturate(float a)
{
	return st_saturate_real<T, W>(a);
}

template <int W> inline std::uint64_t st_saturate_unsigned(float a)
{
	return st_saturate_unsigned_real<W>(a);
}

/* A row number as an array index: indices are int, and clamped after this, so that cutting them
 * off changes nothing. */
inline int st_saturate_index(std::int64_t a)
{
	return static_cast<int>(
	        st_max<std::int64_t>(st_min<std::int64_t>(a, 2147483647), -2147483647));
}

#endif
