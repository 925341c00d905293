/* Statements that need each other's earlier values, in loops of many iterations: sequential nests,
 * alone or between kernels. */
#include <math.h>

#ifndef N
#define N 13
#endif

/* A factorization in place, of a matrix that a kernel makes and another one scales. */
void factors(const float A[N][N], float L[N][N], float scaled[N][N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			L[i][j] = A[i][j] + (i == j ? 8.0f : 0.5f);
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < i; j++) {
			for (int k = 0; k < j; k++)
				L[i][j] -= L[i][k] * L[j][k];
			L[i][j] /= L[j][j];
		}
		for (int k = 0; k < i; k++)
			L[i][i] -= L[i][k] * L[i][k];
		L[i][i] = sqrtf(L[i][i]);
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			scaled[i][j] = 0.5f * L[i][j];
}

/* Two sweeps a turn, each back and forth, through scratch arrays. */
void sweeps(float u[N][N], float v[N][N])
{
	float p[N][N];
	float q[N][N];
	for (int t = 1; t <= 10; t++) {
		for (int i = 1; i < N - 1; i++) {
			v[0][i] = 1.0f;
			p[i][0] = 0.0f;
			q[i][0] = v[0][i];
			for (int j = 1; j < N - 1; j++) {
				p[i][j] = -0.25f / (-0.25f * p[i][j - 1] + 1.5f);
				q[i][j] = (u[j][i - 1] + u[j][i] - u[j][i + 1] +
				                  0.25f * q[i][j - 1]) /
				        (-0.25f * p[i][j - 1] + 1.5f);
			}
			v[N - 1][i] = 1.0f;
			for (int j = N - 2; j >= 1; j--)
				v[j][i] = p[i][j] * v[j + 1][i] + q[i][j];
		}
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				u[i][j] = 0.5f * (v[i - 1][j] + v[i + 1][j]);
	}
}

/* A recurrence of order 2 in each row, forth and back, whose sum is a kernel. */
void recursive_filter(const float x[7][N], float y[7][N])
{
	float forth[7][N];
	float back[7][N];
	float before;
	float earlier;
	float last;
	for (int i = 0; i < 7; i++) {
		before = 0.0f;
		earlier = 0.0f;
		last = 0.0f;
		for (int j = 0; j < N; j++) {
			forth[i][j] =
			        0.5f * x[i][j] + 0.25f * last + 0.75f * before - 0.125f * earlier;
			last = x[i][j];
			earlier = before;
			before = forth[i][j];
		}
	}
	for (int i = 0; i < 7; i++) {
		before = 0.0f;
		earlier = 0.0f;
		for (int j = N - 1; j >= 0; j--) {
			back[i][j] = 0.25f * x[i][j] + 0.5f * before - 0.25f * earlier;
			earlier = before;
			before = back[i][j];
		}
	}
	for (int i = 0; i < 7; i++)
		for (int j = 0; j < N; j++)
			y[i][j] = forth[i][j] + back[i][j];
}

/* Branches inside, and a maximum over pairs of earlier results. */
void pairs(const signed char s[N], float best[N][N])
{
	for (int i = N - 1; i >= 0; i--)
		for (int j = i + 1; j < N; j++) {
			best[i][j] = best[i][j] >= best[i][j - 1] ? best[i][j] : best[i][j - 1];
			if (i + 1 < N)
				best[i][j] =
				        best[i][j] >= best[i + 1][j] ? best[i][j] : best[i + 1][j];
			if (i < j - 1)
				best[i][j] = best[i][j] >= best[i + 1][j - 1] +
				                        (s[i] + s[j] == 3 ? 1.0f : 0.0f)
				        ? best[i][j]
				        : best[i + 1][j - 1] + (s[i] + s[j] == 3 ? 1.0f : 0.0f);
			for (int k = i + 1; k < j; k++)
				best[i][j] = best[i][j] >= best[i][k] + best[k + 1][j]
				        ? best[i][j]
				        : best[i][k] + best[k + 1][j];
		}
}

/* In place, with steps of 2 and a counter that runs down; the second nest reads the first one's. */
void steps(int a[2 * N], int b[2 * N])
{
	for (int i = 2; i < 2 * N; i += 2)
		a[i] = a[i - 2] * 3 + a[i - 1];
	for (int i = 2 * N - 2; i >= 0; i--)
		b[i] = b[i + 1] - a[i] / 2;
}

/* A value that is replaced is read between, and one that is not. */
void replaced(const float x[20], float y[20], float z[20])
{
	float state = x[0];
	for (int i = 1; i < 20; i++) {
		state = 0.5f * state + x[i];
		y[i] = state * 2.0f;
		state = state - 0.25f * y[i];
	}
	for (int i = 0; i < 20; i++)
		z[i] = x[i] + state;
}

/* Lines of an image that depend on the line above and on the number at the left. */
void wavefront(float A[N][N])
{
	for (int t = 0; t < 10; t++)
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				A[i][j] = 0.25f *
				        (A[i - 1][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j]);
}

/* Shortest ways, in integers. */
void ways(int path[N][N])
{
	for (int k = 0; k < N; k++)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++)
				path[i][j] = path[i][j] < path[i][k] + path[k][j]
				        ? path[i][j]
				        : path[i][k] + path[k][j];
}

/* A relaxation in place, whose every loop carries values; only a wavefront of it is parallel. */
void relaxation(float A[N][N])
{
	for (int t = 0; t < 7; t++)
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				A[i][j] = (A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i][j + 1] +
				                  A[i + 1][j - 1]) *
				        0.2f;
}

/* A product below the diagonal, and what is made of it. */
void triangle(const float A[N][N], float C[N][N], float D[N][N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j <= i; j++) {
			C[i][j] *= 0.5f;
			for (int k = 0; k < N; k++)
				C[i][j] += A[i][k] * A[j][k];
		}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			for (int k = 0; k <= j; k++)
				D[i][j] += C[j][k] * A[k][i];
}

/* The same update in two loops, around one of another kind. */
void elimination(float A[N][N])
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < i; j++) {
			for (int k = 0; k < j; k++)
				A[i][j] -= A[i][k] * A[k][j];
			A[i][j] /= A[j][j] + 8.0f;
		}
		for (int j = i; j < N; j++)
			for (int k = 0; k < i; k++)
				A[i][j] -= A[i][k] * A[k][j];
	}
}

/* A row needs those above it and, last, itself: what adds to it comes apart from the others. */
void recurrence(float alpha, const float A[N][N], float B[N][N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			for (int k = 0; k <= i; k++)
				B[i][j] += alpha * A[i][k] * B[k][j];
			B[i][j] *= alpha;
		}
}

/* A factor of a sum that can be multiplied in front of the lanes. */
void factored(float A[N][N])
{
	for (int k = 0; k < N - 1; k++)
		for (int i = k + 1; i < N; i++)
			for (int j = k + 1; j < N; j++)
				A[i][j] -= 0.125f * (A[i][k] * A[k][j] - A[k][i] * A[j][k]);
}
