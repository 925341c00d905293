/* A rolled layer: enter takes the input first and the fed-back value afterwards. */
#include "hls_stream.h"

#include <cstdio>

enum { layers = 12, width = 24 };

static void p_source(hls::stream<float> &out)
{
	for (int i = 0; i < width; ++i)
		out.write(static_cast<float>(i));
}

static void p_enter(hls::stream<float> &first, hls::stream<float> &again, hls::stream<float> &out)
{
	for (int layer = 0; layer < layers; ++layer)
		for (int i = 0; i < width; ++i) {
			float v = 0.0f;

			if (layer == 0)
				v = first.read();
			else
				v = again.read();
			out.write(v);
		}
}

static void p_layer(hls::stream<float> &in, hls::stream<float> &out)
{
	for (int layer = 0; layer < layers; ++layer) {
		float row[width];

		for (int i = 0; i < width; ++i)
			row[i] = in.read();
		for (int i = 0; i < width; ++i)
			out.write(row[i] + row[(i + 1) % width]);
	}
}

static void p_leave(hls::stream<float> &in, hls::stream<float> &again, hls::stream<float> &out)
{
	for (int layer = 0; layer < layers; ++layer)
		for (int i = 0; i < width; ++i) {
			float v = in.read();

			if (layer == layers - 1)
				out.write(v);
			else
				again.write(v);
		}
}

static void p_sink(hls::stream<float> &in, float *m_y)
{
	for (int i = 0; i < width; ++i)
		m_y[i] = in.read();
}

#ifndef RING_DEPTH
#define RING_DEPTH width
#endif

extern "C" void top(float *m_y)
{
	hls::stream<float, 2> s_x("s_x");
	hls::stream<float, 2> s_in("s_in");
	hls::stream<float, 2> s_out("s_out");
	hls::stream<float, RING_DEPTH> s_again("s_again");
	hls::stream<float, 2> s_y("s_y");

	ST_PROCESS(p_source, s_x);
	ST_PROCESS(p_enter, s_x, s_again, s_in);
	ST_PROCESS(p_layer, s_in, s_out);
	ST_PROCESS(p_leave, s_out, s_again, s_y);
	ST_PROCESS(p_sink, s_y, m_y);
	ST_REGION_END();
}

int main()
{
	float want[width], next[width], got[width] = {0};

	for (int i = 0; i < width; ++i)
		want[i] = static_cast<float>(i);
	for (int layer = 0; layer < layers; ++layer) {
		for (int i = 0; i < width; ++i)
			next[i] = want[i] + want[(i + 1) % width];
		for (int i = 0; i < width; ++i)
			want[i] = next[i];
	}
	top(got);
	if (st_region_error() != nullptr) {
		std::printf("%s", st_region_error());
		return 1;
	}
	for (int i = 0; i < width; ++i)
		if (got[i] != want[i])
			return 2;
	std::printf("ok\n");
	return 0;
}
