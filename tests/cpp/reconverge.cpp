/* A residual: the long path takes a whole row before it gives anything, the short path must hold it. */
#include "hls_stream.h"

#include <cstdio>

#ifndef SHORT_DEPTH
#define SHORT_DEPTH 32
#endif
enum { row = 32 };

static void p_fork(const float *m_x, hls::stream<float> &longer, hls::stream<float> &shorter)
{
	for (int i = 0; i < row; ++i) {
		longer.write(m_x[i]);
		shorter.write(m_x[i]);
	}
}

static void p_reduce(hls::stream<float> &in, hls::stream<float> &out)
{
	float sum = 0.0f;

	for (int i = 0; i < row; ++i)
		sum += in.read();
	for (int i = 0; i < row; ++i)
		out.write(sum);
}

static void p_join(hls::stream<float> &total, hls::stream<float> &shorter, hls::stream<float> &out)
{
	for (int i = 0; i < row; ++i) {
		float sum = total.read();

		out.write(sum + shorter.read());
	}
}

static void p_store(hls::stream<float> &in, float *m_y)
{
	for (int i = 0; i < row; ++i)
		m_y[i] = in.read();
}

extern "C" void top(const float *m_x, float *m_y)
{
	hls::stream<float, 4> s_long("s_long");
	hls::stream<float, SHORT_DEPTH> s_short("s_short");
	hls::stream<float, 2> s_total("s_total");
	hls::stream<float, 2> s_y("s_y");

	ST_PROCESS(p_fork, m_x, s_long, s_short);
	ST_PROCESS(p_reduce, s_long, s_total);
	ST_PROCESS(p_join, s_total, s_short, s_y);
	ST_PROCESS(p_store, s_y, m_y);
	ST_REGION_END();
}

int main()
{
	float x[row], y[row];

	for (int i = 0; i < row; ++i)
		x[i] = static_cast<float>(i);
	top(x, y);
	if (st_region_error() != nullptr) {
		std::printf("%s", st_region_error());
		return 1;
	}
	std::printf("ok %g\n", static_cast<double>(y[1]));
	return 0;
}
