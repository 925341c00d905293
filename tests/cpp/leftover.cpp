/* One word too many is written: the region must say which channel still holds it. */
#include "hls_stream.h"

#include <cstdio>

static void p_source(hls::stream<int> (&out)[2], int extra)
{
	for (int i = 0; i < 10 + extra; ++i)
		out[1].write(i);
	out[0].write(1);
}

static void p_sink(hls::stream<int> (&in)[2], int *m_y)
{
	for (int i = 0; i < 10; ++i)
		m_y[0] += in[1].read();
	m_y[0] += in[0].read();
}

extern "C" void top(int *m_y, int extra)
{
	hls::stream<int> s_pair[2];

	ST_PROCESS(p_source, s_pair, extra);
	ST_PROCESS(p_sink, s_pair, m_y);
	ST_REGION_END();
}

int main()
{
	int y = 0;

	top(&y, 1);
	std::printf("%d %s", y, st_region_error() ? st_region_error() : "ok\n");
	y = 0;
	top(&y, 0);
	std::printf("%d %s", y, st_region_error() ? st_region_error() : "ok\n");
	hls::stream<int> lonely("lonely");
	lonely.read();
	std::printf("%s\n", st_region_error());
	return 0;
}
