/* Three processes in a row, one loader; prints the result and the high-water marks. */
#include "hls_stream.h"
#include "hls_vector.h"

#include <cstdio>

typedef hls::vector<float, 16> f32x16;
enum { words = 1000 };

static void p_load(const f32x16 *m_x, hls::stream<f32x16> &out)
{
	for (int i = 0; i < words; ++i)
		out.write(m_x[i]);
}

static void p_scale(hls::stream<f32x16> &in, hls::stream<f32x16> &out)
{
	for (int i = 0; i < words; ++i)
		out.write(in.read() * f32x16(2.0f) + 1.0f);
}

static void p_sum(hls::stream<f32x16> &in, float *m_y)
{
	float sum = 0.0f;

	for (int i = 0; i < words; ++i) {
		f32x16 v = in.read();

		for (int l = 0; l < 16; ++l)
			sum += v[static_cast<std::size_t>(l)];
	}
	m_y[0] = sum;
}

extern "C" void top(const f32x16 *m_x, float *m_y)
{
	hls::stream<f32x16, 64> s_x("s_x");
	hls::stream<f32x16> s_y("s_y");

	ST_PROCESS(p_load, m_x, s_x);
	ST_PROCESS(p_scale, s_x, s_y);
	ST_PROCESS(p_sum, s_y, m_y);
	ST_REGION_END();
}

int main()
{
	static f32x16 x[words];
	float y = 0.0f;

	for (int i = 0; i < words; ++i)
		x[i] = f32x16(static_cast<float>(i % 7));
	for (int launch = 0; launch < 3; ++launch) {
		top(x, &y);
		std::printf("%g %s\n", static_cast<double>(y), st_region_error() ? st_region_error() : "ok");
	}
	for (unsigned long i = 0; i < st_region_fifos(); ++i) {
		const char *name = "";
		unsigned long depth = 0, most = 0;

		st_region_fifo(i, &name, &depth, &most);
		std::printf("%s %lu %lu\n", name, depth, most);
	}
	return st_region_fifo(st_region_fifos(), nullptr, nullptr, nullptr) == -1 ? 0 : 1;
}
