// stc model --reassociate
/* Three processes that streams join run at once; a triangle has its mean trips. */
#include "ap_int.h"
#include "hls_stream.h"
static void read(const ap_int<16> *in, hls::stream<ap_int<16>> &out)
{
	for (int i = 0; i < 1024; i++) {
#pragma HLS PIPELINE II=1
		out.write(in[i]);
	}
}
static void square(hls::stream<ap_int<16>> &in, hls::stream<ap_int<32>> &out)
{
	for (int i = 0; i < 1024; i++) {
#pragma HLS PIPELINE II=1
		ap_int<16> x = in.read();
		out.write(x * x);
	}
}
static void write(hls::stream<ap_int<32>> &in, ap_int<32> out[1024])
{
	for (int i = 0; i < 1024; i++) {
#pragma HLS PIPELINE II=1
		out[i] = in.read();
	}
}
void top(const ap_int<16> in[1024], ap_int<32> out[1024])
{
#pragma HLS DATAFLOW
	hls::stream<ap_int<16>> a;
	hls::stream<ap_int<32>> b;
#pragma HLS STREAM variable=a depth=16
	read(in, a);
	square(a, b);
	write(b, out);
}
