// stc compile --platform xc7z020 --stop-after name_arguments -o %o
void f(float y[8], float z[8], float A[8][8], const float x[8])
{
#pragma HLS INTERFACE m_axi port = x
#pragma HLS DATAFLOW
#pragma HLS ARRAY_PARTITION variable = x cyclic factor = 4
	for (int i = 0; i < 8; i++) {
#pragma HLS PIPELINE II = 1
#pragma HLS UNROLL factor = 4
		y[i] = 2 * x[i];
	}
	for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL
#pragma HLS DEPENDENCE variable = z inter false
		z[i] += y[i];
	}
	for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL factor = 2
		for (int j = 0; j < 8; j++)
			A[i][j] += y[j];
	}
#pragma HLS ALLOCATION operation instances = fmul limit = 1
}
