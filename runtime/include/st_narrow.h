/* Numbers of few bits: half floats, kept as bits and computed in float, and words of 4-bit
 * integers as they lie in memory, two a byte. */
#ifndef ST_NARROW_H
#define ST_NARROW_H

#include "hls_vector.h"
#include "st_math.h"

/* IEEE half: rounded to nearest even whenever a value is made. */
struct st_f16 {
	uint16_t bits;

	st_f16() = default;
	st_f16(float x) : bits(st_f16_bits(x))
	{
	}
	operator float() const
	{
		return st_f16_value(bits);
	}
};

/* The upper half of a float. */
struct st_bf16 {
	uint16_t bits;

	st_bf16() = default;
	st_bf16(float x) : bits(st_bf16_bits(x))
	{
	}
	operator float() const
	{
		return st_float(static_cast<uint32_t>(bits) << 16);
	}
};

/* The four bits of an integer, as they are. */
struct st_nibble {
	uint8_t bits;

	template <class T> st_nibble(T x) : bits(static_cast<uint8_t>(x & 15))
	{
	}
	operator uint8_t() const
	{
		return bits;
	}
};

/* The low half of a byte comes first. */
template <class T, std::size_t N>
inline hls::vector<T, N> st_unpack_i4(const hls::vector<uint8_t, N / 2> &bytes)
{
#pragma HLS inline
	hls::vector<T, N> word;

	for (std::size_t i = 0; i < N / 2; i++) {
#pragma HLS unroll
		word[2 * i] = T(bytes[i] & 15);
		word[2 * i + 1] = T(bytes[i] >> 4);
	}
	return word;
}

template <class T, std::size_t N>
inline hls::vector<uint8_t, N / 2> st_pack_i4(const hls::vector<T, N> &word)
{
#pragma HLS inline
	hls::vector<uint8_t, N / 2> bytes;

	for (std::size_t i = 0; i < N / 2; i++) {
#pragma HLS unroll
		bytes[i] = static_cast<uint8_t>((word[2 * i] & 15) | (word[2 * i + 1] & 15) << 4);
	}
	return bytes;
}

#endif
