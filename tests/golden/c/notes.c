// stc compile --platform xc7z020 --stop-after name_arguments -D SCALE=2.0f -o %o
void f(int n, float y[8], const float x[8])
{
#pragma HLS INTERFACE m_axi port = x
	for (int i = 0; i < n; i++) {
#pragma HLS PIPELINE II = 1
		y[i] = SCALE * x[i];
	}
}
