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

template <class T> inline T st_max(T a, T b)
{
	return a > b ? a : b;
}

template <class T> inline T st_min(T a, T b)
{
	return a < b ? a : b;
}

/* To a type of W bits; NaN gives 0. */
template <class T, int W> inline T st_saturate(float a)
{
	const std::uint64_t half = static_cast<std::uint64_t>(1) << (W - 2);
	const float limit = static_cast<float>(half) * 2.0f;
	const std::int64_t most = static_cast<std::int64_t>(half - 1 + half);

	if (a != a)
		return T(0);
	if (a >= limit)
		return static_cast<T>(most);
	return static_cast<T>(a < -limit ? -most - 1 : static_cast<std::int64_t>(a));
}

/* A row number as an array index: indices are int, and clamped after this, so that cutting them
 * off changes nothing. */
inline int st_saturate_index(std::int64_t a)
{
	return static_cast<int>(
	        st_max<std::int64_t>(st_min<std::int64_t>(a, 2147483647), -2147483647));
}

#endif
