/* The six kernels of the ScaleHLS poster in loops of our own. TRMM reads rows of B that are new. */
#ifndef N
#define N 4096
#endif

void bicg(const float A[N][N], float s[N], float q[N], const float p[N], const float r[N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			s[j] += r[i] * A[i][j];
			q[i] += A[i][j] * p[j];
		}
}

void gemm(float alpha, float beta, float C[N][N], const float A[N][N], const float B[N][N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			C[i][j] *= beta;
			for (int k = 0; k < N; k++)
				C[i][j] += alpha * A[i][k] * B[k][j];
		}
}

void gesummv(float alpha, float beta, const float A[N][N], const float B[N][N], float tmp[N],
        const float x[N], float y[N])
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++) {
			tmp[i] += A[i][j] * x[j];
			y[i] += B[i][j] * x[j];
		}
		y[i] = alpha * tmp[i] + beta * y[i];
	}
}

void syr2k(float alpha, float beta, float C[N][N], const float A[N][N], const float B[N][N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j <= i; j++) {
			C[i][j] *= beta;
			for (int k = 0; k < N; k++)
				C[i][j] += alpha * (A[i][k] * B[j][k] + B[i][k] * A[j][k]);
		}
}

void syrk(float alpha, float beta, float C[N][N], const float A[N][N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j <= i; j++) {
			C[i][j] *= beta;
			for (int k = 0; k < N; k++)
				C[i][j] += alpha * A[i][k] * A[j][k];
		}
}

void trmm(float alpha, const float A[N][N], float B[N][N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			for (int k = 0; k <= i; k++)
				B[i][j] += A[i][k] * B[k][j];
			B[i][j] *= alpha;
		}
}
