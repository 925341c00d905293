/* Linear algebra and statistics in plain loops, as test inputs: each function becomes a graph of
 * kernels without cycles. Sizes are small and odd. */
#include <math.h>

#define N 13
#define M 11
#define K 17
#define L 9

void gemm(float alpha, float beta, float C[N][M], const float A[N][K], const float B[K][M])
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < M; j++)
			C[i][j] *= beta;
		for (int k = 0; k < K; k++)
			for (int j = 0; j < M; j++)
				C[i][j] += alpha * A[i][k] * B[k][j];
	}
}

void two_products(float alpha, float beta, const float A[N][K], const float B[K][M],
        const float C[M][L], float D[N][L])
{
	float tmp[N][M];
	for (int i = 0; i < N; i++)
		for (int j = 0; j < M; j++) {
			tmp[i][j] = 0.0f;
			for (int k = 0; k < K; ++k)
				tmp[i][j] += alpha * A[i][k] * B[k][j];
		}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < L; j++) {
			D[i][j] *= beta;
			for (int k = 0; k < M; ++k)
				D[i][j] += tmp[i][k] * C[k][j];
		}
}

void three_products(const float A[N][K], const float B[K][M], const float C[M][L],
        const float D[L][K], float E[N][M], float F[M][K], float G[N][K])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < M; j++) {
			E[i][j] = 0;
			for (int k = 0; k < K; ++k)
				E[i][j] += A[i][k] * B[k][j];
		}
	for (int i = 0; i < M; i++)
		for (int j = 0; j < K; j++) {
			F[i][j] = 0;
			for (int k = 0; k < L; ++k)
				F[i][j] += C[i][k] * D[k][j];
		}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < K; j++) {
			G[i][j] = 0;
			for (int k = 0; k < M; ++k)
				G[i][j] += E[i][k] * F[k][j];
		}
}

void atax(const float A[N][M], const float x[M], float y[M])
{
	float tmp[N];
	for (int i = 0; i < M; i++)
		y[i] = 0;
	for (int i = 0; i < N; i++) {
		tmp[i] = 0.0f;
		for (int j = 0; j < M; j++)
			tmp[i] = tmp[i] + A[i][j] * x[j];
		for (int j = 0; j < M; j++)
			y[j] = y[j] + A[i][j] * tmp[i];
	}
}

void bicg(const float A[N][M], float s[M], float q[N], const float p[M], const float r[N])
{
	int i, j;
	for (i = 0; i < M; i++)
		s[i] = 0;
	for (i = 0; i < N; i++) {
		q[i] = 0.0f;
		for (j = 0; j < M; j++) {
			s[j] = s[j] + r[i] * A[i][j];
			q[i] = q[i] + A[i][j] * p[j];
		}
	}
}

void mvt(float x1[N], float x2[N], const float y1[N], const float y2[N], const float A[N][N])
{
	int i, j;
	for (i = 0; i < N; i++)
		for (j = 0; j < N; j++)
			x1[i] = x1[i] + A[i][j] * y1[j];
	for (i = 0; i < N; i++)
		for (j = 0; j < N; j++)
			x2[i] = x2[i] + A[j][i] * y2[j];
}

void gemver(float alpha, float beta, float A[N][N], const float u1[N], const float v1[N],
        const float u2[N], const float v2[N], float w[N], float x[N], const float y[N],
        const float z[N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			A[i][j] = A[i][j] + u1[i] * v1[j] + u2[i] * v2[j];
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			x[i] = x[i] + beta * A[j][i] * y[j];
	for (int i = 0; i < N; i++)
		x[i] = x[i] + z[i];
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			w[i] = w[i] + alpha * A[i][j] * x[j];
}

void gesummv(float alpha, float beta, const float A[N][N], const float B[N][N], const float x[N],
        float y[N])
{
	float tmp[N];
	for (int i = 0; i < N; i++) {
		tmp[i] = 0.0f;
		y[i] = 0.0f;
		for (int j = 0; j < N; j++) {
			tmp[i] = A[i][j] * x[j] + tmp[i];
			y[i] = B[i][j] * x[j] + y[i];
		}
		y[i] = alpha * tmp[i] + beta * y[i];
	}
}

void doitgen(float A[L][M][K], const float C4[K][K])
{
	float sum[K];
	for (int r = 0; r < L; r++)
		for (int q = 0; q < M; q++) {
			for (int p = 0; p < K; p++) {
				sum[p] = 0.0f;
				for (int s = 0; s < K; s++)
					sum[p] += A[r][q][s] * C4[s][p];
			}
			for (int p = 0; p < K; p++)
				A[r][q][p] = sum[p];
		}
}

void syrk(float alpha, float beta, float C[N][N], const float A[N][M])
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j <= i; j++)
			C[i][j] *= beta;
		for (int k = 0; k < M; k++)
			for (int j = 0; j <= i; j++)
				C[i][j] += alpha * A[i][k] * A[j][k];
	}
}

void syr2k(float alpha, float beta, float C[N][N], const float A[N][M], const float B[N][M])
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j <= i; j++)
			C[i][j] *= beta;
		for (int k = 0; k < M; k++)
			for (int j = 0; j <= i; j++)
				C[i][j] += A[j][k] * alpha * B[i][k] + B[j][k] * alpha * A[i][k];
	}
}

void trmm(float alpha, const float A[N][N], float B[N][M])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < M; j++) {
			for (int k = i + 1; k < N; k++)
				B[i][j] += A[k][i] * B[k][j];
			B[i][j] = alpha * B[i][j];
		}
}

void symm(float alpha, float beta, float C[N][M], const float A[N][N], const float B[N][M])
{
	float above;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < M; j++) {
			above = 0;
			for (int k = 0; k < i; k++) {
				C[k][j] += alpha * B[i][j] * A[i][k];
				above += B[k][j] * A[i][k];
			}
			C[i][j] = beta * C[i][j] + alpha * B[i][j] * A[i][i] + alpha * above;
		}
}

void covariance(float float_n, float data[N][M], float cov[M][M], float mean[M])
{
	for (int j = 0; j < M; j++) {
		mean[j] = 0.0f;
		for (int i = 0; i < N; i++)
			mean[j] += data[i][j];
		mean[j] /= float_n;
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < M; j++)
			data[i][j] -= mean[j];
	for (int i = 0; i < M; i++)
		for (int j = i; j < M; j++) {
			cov[i][j] = 0.0f;
			for (int k = 0; k < N; k++)
				cov[i][j] += data[k][i] * data[k][j];
			cov[i][j] /= (float_n - 1.0f);
			cov[j][i] = cov[i][j];
		}
}

void correlation(float float_n, float data[N][M], float corr[M][M], float mean[M], float stddev[M])
{
	float eps = 0.1f;
	for (int j = 0; j < M; j++) {
		mean[j] = 0.0f;
		for (int i = 0; i < N; i++)
			mean[j] += data[i][j];
		mean[j] /= float_n;
	}
	for (int j = 0; j < M; j++) {
		stddev[j] = 0.0f;
		for (int i = 0; i < N; i++)
			stddev[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
		stddev[j] /= float_n;
		stddev[j] = sqrtf(stddev[j]);
		stddev[j] = stddev[j] <= eps ? 1.0f : stddev[j];
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < M; j++) {
			data[i][j] -= mean[j];
			data[i][j] /= sqrtf(float_n) * stddev[j];
		}
	for (int i = 0; i < M - 1; i++) {
		corr[i][i] = 1.0f;
		for (int j = i + 1; j < M; j++) {
			corr[i][j] = 0.0f;
			for (int k = 0; k < N; k++)
				corr[i][j] += (data[k][i] * data[k][j]);
			corr[j][i] = corr[i][j];
		}
	}
	corr[M - 1][M - 1] = 1.0f;
}

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))

/* The last tile is short. */
void tiles(float C[N][M], float A[N][K], float B[K][M])
{
	for (int ii = 0; ii < N; ii += 4)
		for (int jj = 0; jj < M; jj += 8)
			for (int k = 0; k < K; k++)
				for (int i = ii; i < LEAST(ii + 4, N); i++)
					for (int j = jj; j < LEAST(jj + 8, M); j++)
						C[i][j] += A[i][k] * B[k][j];
}

/* Elements that are inside for some iterations of the box alone, and such as lie between those
 * that were written. */
void addressed(float y[2 * N], float z[N], float x[N], float h[N])
{
	float t[N][N];
	for (int n = 0; n < 2 * N - 1; n++) {
		y[n] = 0;
		for (int k = MOST(0, n - N + 1); k <= LEAST(n, N - 1); k++)
			y[n] += x[k] * h[n - k];
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j <= i; j++)
			t[i - j][j] = x[i] * h[j];
	for (int i = 0; i < N; i++)
		z[i] = t[0][i] - t[i][N - 1 - i];
}
