/* Functions in double precision, and of several widths, as test inputs. */
#include <math.h>
#include <stdint.h>

#define N 14
#define M 10

void gemm(double alpha, double beta, double C[N][M], const double A[N][N], const double B[N][M])
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < M; j++)
			C[i][j] *= beta;
		for (int k = 0; k < N; k++)
			for (int j = 0; j < M; j++)
				C[i][j] += alpha * A[i][k] * B[k][j];
	}
}

void correlation(double data[N][M], double corr[M][M], double mean[M], double stddev[M])
{
	double eps = 0.1;
	for (int j = 0; j < M; j++) {
		mean[j] = 0.0;
		for (int i = 0; i < N; i++)
			mean[j] += data[i][j];
		mean[j] /= N;
	}
	for (int j = 0; j < M; j++) {
		stddev[j] = 0.0;
		for (int i = 0; i < N; i++)
			stddev[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
		stddev[j] /= N;
		stddev[j] = sqrt(stddev[j]);
		stddev[j] = stddev[j] <= eps ? 1.0 : stddev[j];
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < M; j++) {
			data[i][j] -= mean[j];
			data[i][j] /= sqrt((double)N) * stddev[j];
		}
	for (int i = 0; i < M - 1; i++) {
		corr[i][i] = 1.0;
		for (int j = i + 1; j < M; j++) {
			corr[i][j] = 0.0;
			for (int k = 0; k < N; k++)
				corr[i][j] += data[k][i] * data[k][j];
			corr[j][i] = corr[i][j];
		}
	}
	corr[M - 1][M - 1] = 1.0;
}

void jacobi_1d(double A[N], double B[N])
{
	for (int t = 0; t < 3; t++) {
		for (int i = 1; i < N - 1; i++)
			B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1]);
		for (int i = 1; i < N - 1; i++)
			A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1]);
	}
}

void trisolv(const double L[N][N], double x[N], const double b[N])
{
	for (int i = 0; i < N; i++) {
		x[i] = b[i];
		for (int j = 0; j < i; j++)
			x[i] -= L[i][j] * x[j];
		x[i] = x[i] / L[i][i];
	}
}

/* Several precisions in one statement, integers of both signs, functions. */
void mixed(const float a[N], const double b[N], const double c[N], const int64_t n[N],
        const uint32_t u[N], const _Float16 h[N], float y[N], double z[N], int64_t w[N],
        uint8_t v[N], _Float16 k[N])
{
	static const double table[3] = { 0.1, 0.2, 1e-300 };
	for (int i = 0; i < N; i++) {
		y[i] = a[i] * 0.1 + 0.3;
		z[i] = a[i] + b[i] * n[i] - u[i] / 3.0 + i;
		w[i] = (int64_t)(b[i] * 1e15) + (a[i] < b[i]);
		v[i] = (uint8_t)(fabs(b[i]) * 50.0);
		y[i] += b[i] - sqrt(fabs(c[i])) * a[i];
		z[i] *= table[0] + table[1] * table[2];
		z[i] += fmax(c[i], b[i]) - fmin(c[i], 0.25) + floor(c[i] * 7) * ceil(b[i] * 5);
		z[i] -= sqrt(fabs(c[i])) + rint(c[i] * 10) / (b[i] == 0 ? 1 : b[i]);
		k[i] = h[i] * h[i] + (_Float16)1;
		k[i] -= (_Float16)b[i];
		z[i] += h[i] * b[i];
	}
}

/* What the edges of the range go through. */
void edges(const double a[N], const double b[N], double x[N], double y[N], double z[N], float f[N])
{
	for (int i = 0; i < N; i++) {
		x[i] = floor(a[i]);
		x[i] = fmax(x[i], b[i]);
		y[i] = ceil(a[i]) / rint(b[i]);
		z[i] = fmin(a[i], sqrt(b[i])) - fabs(a[i]);
		f[i] = a[i];
	}
}
