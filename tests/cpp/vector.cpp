/* hls::vector: alignment, broadcast, element-wise arithmetic. */
#include "hls_vector.h"

#include <cstdint>
#include <cstdio>
#include <type_traits>

typedef hls::vector<float, 16> f32x16;
typedef hls::vector<std::int8_t, 64> i8x64;
typedef hls::vector<float, 12> f32x12;

static_assert(sizeof(f32x16) == 64 && alignof(f32x16) == 64, "one word of 512 bits");
static_assert(sizeof(i8x64) == 64 && alignof(i8x64) == 64, "one word of 512 bits");
static_assert(sizeof(f32x12) == 48 && alignof(f32x12) == 16, "greatest power of two that divides 48");
static_assert(std::is_trivially_copyable<f32x16>::value, "plain data");

int main()
{
	f32x16 a(3.0f), b = 2.0f, c;

	c = (a + b) * b - a / b;
	c += a;
	c -= 1.0f;
	c *= 2.0f;
	c /= b;
	for (std::size_t i = 0; i < f32x16::size(); ++i)
		if (c[i] != 10.5f)
			return 1;
	std::printf("ok\n");
	return 0;
}
