// stc model --top shared --platform u55c --clock 4
#define LANES 4
float product(float a, float b)
{
	return a * b;
}
/* Loops one after the other lend each other their operators, but not those of functions that they
 * call: 4 products of the first two loops, and 4 more. */
void shared(float x[64], float y[64], float z[64], float w[64])
{
#pragma HLS ARRAY_PARTITION variable=x cyclic factor=LANES
#pragma HLS ARRAY_PARTITION variable=y cyclic factor=LANES
#pragma HLS ARRAY_PARTITION variable=z cyclic factor=LANES
#pragma HLS ARRAY_PARTITION variable=w cyclic factor=LANES
	for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE II = 1
#pragma HLS UNROLL factor=LANES
		y[i] = x[i] * x[i];
	}
	for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE II = 1
#pragma HLS UNROLL factor=LANES
		z[i] = y[i] * x[i];
	}
	for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE II = 1
#pragma HLS UNROLL factor=LANES
		w[i] = product(z[i], x[i]);
	}
}
