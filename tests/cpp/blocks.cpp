/* Fill and drain of a layout converter: blocks are written by rows and read by columns. */
#include "ap_utils.h"
#include "hls_stream.h"
#include "hls_streamofblocks.h"

#include <cstdio>

enum { side = 8, blocks = 5 };
typedef float tile[side][side];

static void p_fill(hls::stream<float> &in, hls::stream_of_blocks<tile> &out)
{
	for (int b = 0; b < blocks; ++b) {
		hls::write_lock<tile> lock(out);

		for (int r = 0; r < side; ++r)
			for (int c = 0; c < side; ++c)
				lock[static_cast<std::size_t>(r)][c] = in.read();
		ap_wait();
	}
}

static void p_drain(hls::stream_of_blocks<tile> &in, hls::stream<float> &out)
{
	for (int b = 0; b < blocks; ++b) {
		hls::read_lock<tile> lock(in);

		for (int c = 0; c < side; ++c)
			for (int r = 0; r < side; ++r)
				out.write(lock[static_cast<std::size_t>(r)][c]);
	}
}

static void p_source(hls::stream<float> &out)
{
	for (int i = 0; i < blocks * side * side; ++i)
		out.write(static_cast<float>(i));
}

static void p_sink(hls::stream<float> &in, float *m_y)
{
	for (int i = 0; i < blocks * side * side; ++i)
		m_y[i] = in.read();
}

extern "C" void top(float *m_y)
{
	hls::stream<float, 2> s_x("s_x");
	hls::stream_of_blocks<tile, 2> s_tile("s_tile");
	hls::stream<float, 2> s_y("s_y");

	ST_PROCESS(p_source, s_x);
	ST_PROCESS(p_fill, s_x, s_tile);
	ST_PROCESS(p_drain, s_tile, s_y);
	ST_PROCESS(p_sink, s_y, m_y);
	ST_REGION_END();
}

int main()
{
	static float y[blocks * side * side];

	top(y);
	if (st_region_error() != nullptr) {
		std::printf("%s", st_region_error());
		return 1;
	}
	for (int b = 0; b < blocks; ++b)
		for (int c = 0; c < side; ++c)
			for (int r = 0; r < side; ++r)
				if (y[(b * side + c) * side + r] != static_cast<float>((b * side + r) * side + c))
					return 2;
	std::printf("ok\n");
	return 0;
}
