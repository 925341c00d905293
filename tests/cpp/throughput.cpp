/* Words per second through FIFOs of 64-byte words; prints one line per depth. */
#include "hls_stream.h"
#include "hls_vector.h"

#include <chrono>
#include <cstdio>

typedef hls::vector<float, 16> f32x16;

static void p_source(hls::stream<f32x16> &out, int words)
{
	f32x16 v(1.0f);

	for (int i = 0; i < words; ++i)
		out.write(v);
}

static void p_sink(hls::stream<f32x16> &in, float *m_y, int words)
{
	f32x16 sum(0.0f);

	for (int i = 0; i < words; ++i)
		sum += in.read();
	m_y[0] = sum[0];
}

template <int DEPTH> static void top(float *m_y, int words)
{
	hls::stream<f32x16, DEPTH> s_x("s_x");

	ST_PROCESS(p_source, s_x, words);
	ST_PROCESS(p_sink, s_x, m_y, words);
	ST_REGION_END();
}

template <int DEPTH> static int measure(int words)
{
	float y = 0.0f;
	auto start = std::chrono::steady_clock::now();

	top<DEPTH>(&y, words);
	double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

	std::printf("depth %d: %.0f M words/s\n", DEPTH, words / seconds * 1e-6);
	return st_region_error() == nullptr && y == static_cast<float>(words) ? 0 : 1;
}

int main()
{
	return measure<2>(4000000) + measure<16>(4000000) + measure<64>(8000000) + measure<1024>(8000000);
}
