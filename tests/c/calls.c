/* Functions that call others, as test inputs: arrays, rows of arrays, scalars by value. */
#define N 16
#define M 12

static void scale(int n, float x[N], float f)
{
	for (int i = 0; i < n; i++)
		x[i] *= f;
}

static void product(const float A[M][N], const float B[N][M], float C[M][M])
{
	for (int i = 0; i < M; i++)
		for (int j = 0; j < M; j++) {
			C[i][j] = 0;
			for (int k = 0; k < N; k++)
				C[i][j] += A[i][k] * B[k][j];
		}
}

static float larger(float a, float b)
{
	return a > b ? a : b;
}

/* Its scalars are copies, which it changes. */
static void shift(float *x, int by, float last)
{
	last += by;
	for (int i = 0; i < M - 1; i++)
		x[i] = x[i + 1];
	x[M - 1] = last;
}

static void rows(float A[M][N], const float f[M], int first)
{
	for (int i = first; i < M; i++) {
		scale(N - first, A[i], f[i] + 1);
		if (f[i] > 0) {
			float twice = 2 * f[i];
			scale(N, A[i], twice);
		}
	}
}

static void add(float *to, float x)
{
	*to += x;
}

static void dot(int n, const float *a, const float b[N], float *result)
{
	*result = 0;
	for (int i = 0; i < n; i++)
		add(result, a[i] * b[i]);
}

void calls(float A[M][N], const float B[N][M], float C[M][M], const float f[M], float last)
{
	float tmp[M][M];
	rows(A, f, 2);
	product(A, B, tmp);
	for (int i = 0; i < M; i++)
		for (int j = 0; j < M; j++)
			C[i][j] = larger(tmp[i][j], larger(f[i], larger(f[j], C[i][j])));
	shift(C[3], 2, last);
	shift(C[4], N, last);
	for (int i = 5; i < 8; i++)
		shift(C[i], i, C[i][0]);
	float sum = 1;
	dot(N, A[0], A[1], &sum);
	dot(M, C[0], A[2], &C[11][2]);
	add(&C[11][3], sum);
}
