/* Loops that carry values from one iteration to the next, as test inputs: stencils over time,
 * prefix sums, triangular solves. */
#include <math.h>

#define T 4
#define N 11

void jacobi_1d(float A[N], float B[N])
{
	for (int t = 0; t < T; t++) {
		for (int i = 1; i < N - 1; i++)
			B[i] = 0.33333f * (A[i - 1] + A[i] + A[i + 1]);
		for (int i = 1; i < N - 1; i++)
			A[i] = 0.33333f * (B[i - 1] + B[i] + B[i + 1]);
	}
}

void jacobi_2d(float A[N][N], float B[N][N])
{
	for (int t = 0; t < T; t++) {
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				B[i][j] = 0.2f *
				        (A[i][j] + A[i][j - 1] + A[i][1 + j] + A[1 + i][j] +
				                A[i - 1][j]);
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				A[i][j] = 0.2f *
				        (B[i][j] + B[i][j - 1] + B[i][1 + j] + B[1 + i][j] +
				                B[i - 1][j]);
	}
}

void fdtd_2d(float ex[N][N], float ey[N][N], float hz[N][N], const float fict[T])
{
	for (int t = 0; t < T; t++) {
		for (int j = 0; j < N; j++)
			ey[0][j] = fict[t];
		for (int i = 1; i < N; i++)
			for (int j = 0; j < N; j++)
				ey[i][j] = ey[i][j] - 0.5f * (hz[i][j] - hz[i - 1][j]);
		for (int i = 0; i < N; i++)
			for (int j = 1; j < N; j++)
				ex[i][j] = ex[i][j] - 0.5f * (hz[i][j] - hz[i][j - 1]);
		for (int i = 0; i < N - 1; i++)
			for (int j = 0; j < N - 1; j++)
				hz[i][j] = hz[i][j] -
				        0.7f * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
	}
}

void prefix_sum(const float x[N], float y[N])
{
	float sum = 0.0f;
	for (int i = 0; i < N; i++) {
		sum += x[i];
		y[i] = sum;
	}
}

void trisolv(const float A[N][N], const float b[N], float x[N])
{
	for (int i = 0; i < N; i++) {
		x[i] = b[i];
		for (int j = 0; j < i; j++)
			x[i] -= A[i][j] * x[j];
		x[i] = x[i] / A[i][i];
	}
}

void durbin(const float r[N], float y[N])
{
	float z[N];
	float alpha = -r[0];
	float beta = 1.0f;
	float sum;
	y[0] = -r[0];
	for (int k = 1; k < N; k++) {
		beta = (1 - alpha * alpha) * beta;
		sum = 0.0f;
		for (int i = 0; i < k; i++)
			sum += r[k - i - 1] * y[i];
		alpha = -(r[k] + sum) / beta;
		for (int i = 0; i < k; i++)
			z[i] = y[i] + alpha * y[k - i - 1];
		for (int i = 0; i < k; i++)
			y[i] = z[i];
		y[k] = alpha;
	}
}

void gramschmidt(float A[N][7], float R[7][7], float Q[N][7])
{
	float nrm;
	for (int k = 0; k < 7; k++) {
		nrm = 0.0f;
		for (int i = 0; i < N; i++)
			nrm += A[i][k] * A[i][k];
		R[k][k] = sqrtf(nrm);
		for (int i = 0; i < N; i++)
			Q[i][k] = A[i][k] / R[k][k];
		for (int j = k + 1; j < 7; j++) {
			R[k][j] = 0.0f;
			for (int i = 0; i < N; i++)
				R[k][j] += Q[i][k] * A[i][j];
			for (int i = 0; i < N; i++)
				A[i][j] = A[i][j] - Q[i][k] * R[k][j];
		}
	}
}

void lu(float A[6][6])
{
	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < i; j++) {
			for (int k = 0; k < j; k++)
				A[i][j] -= A[i][k] * A[k][j];
			A[i][j] /= A[j][j];
		}
		for (int j = i; j < 6; j++)
			for (int k = 0; k < i; k++)
				A[i][j] -= A[i][k] * A[k][j];
	}
}

void floyd_warshall(int path[5][5])
{
	for (int k = 0; k < 5; k++)
		for (int i = 0; i < 5; i++)
			for (int j = 0; j < 5; j++)
				path[i][j] = path[i][j] < path[i][k] + path[k][j]
				        ? path[i][j]
				        : path[i][k] + path[k][j];
}

void seidel_2d(float A[6][6])
{
	for (int t = 0; t < 2; t++)
		for (int i = 1; i <= 4; i++)
			for (int j = 1; j <= 4; j++)
				A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] +
				                  A[i][j - 1] + A[i][j] + A[i][j + 1] +
				                  A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) /
				        9.0f;
}
