/* Subscripts that are data, or no affine forms of the counters, as test inputs. Data is masked, so
 * that it is inside the arrays. */
#define N 16

void gather(const float x[N], const int idx[N], float y[N])
{
	for (int i = 0; i < N; i++)
		y[i] = x[idx[i] & 15] * 2;
}

void histogram(const unsigned char v[64], int h[256], int sum[1])
{
	for (int i = 0; i < 64; i++)
		h[v[i]]++;
	for (int i = 0; i < 256; i++)
		sum[0] += h[i] * i;
}

void halves(const float x[N], float y[N], float z[N / 2])
{
	for (int i = 0; i < N; i++) {
		y[i] = x[i / 2] + x[i % 4];
		z[i / 2] += x[i];
	}
}

void sparse_rows(
        const int first[9], const int column[32], const float v[32], const float x[N], float y[8])
{
	for (int i = 0; i < 8; i++) {
		float s = 0;
		for (int k = 0; k < 4; k++)
			s += v[(first[i] & 7) + 4 * k] * x[column[4 * i + k] & 15];
		y[i] = s;
	}
}

/* Writes twice, reads what it wrote, and leaves the rest. */
void permute(float a[N][N], const short to[N], const float x[N])
{
	float row[N];
	for (int i = 0; i < N; i++)
		row[i] = x[i] + 1;
	for (int i = 0; i < N; i++) {
		row[to[i] & 15] = x[i];
		a[i][to[N - 1 - i] & 15] = row[(to[i] + 1) & 15];
		a[to[i] & 7][i / 3] += row[i];
	}
	for (int i = 0; i < N; i++)
		a[i][0] -= row[i];
}

/* Others read before and after. */
void later(int h[8], const int v[N], int before[8], int after[8], int each[N])
{
	for (int i = 0; i < 8; i++)
		h[i] = i;
	for (int i = 0; i < 8; i++)
		before[i] = h[i] * 3;
	for (int i = 0; i < N; i++) {
		h[v[i] & 7] += v[i];
		each[i] = h[i & 7];
	}
	for (int i = 0; i < 8; i++)
		after[i] = h[i] - before[i];
}

/* What is not executed may be outside. */
void guarded(const float x[N], const int idx[N], float y[N], int n[4])
{
	for (int i = 0; i < N; i++) {
		if (idx[i] >= 0 && idx[i] < N)
			y[i] = x[idx[i]];
		if (idx[i] > 0 && idx[i] < 4)
			n[idx[i]] -= 1;
		else
			n[0] += idx[i] < 0 ? 0 : i < 4 ? n[i] : 1;
	}
}

void table(const unsigned char v[N], int y[N])
{
	static const short square[8] = { 0, 1, 4, 9, 16, 25, 36, 49 };
	for (int i = 0; i < N; i++) {
		int at = v[i] >> 5;
		y[i] += square[at] + square[(at * i) % 8];
	}
}

/* Steps of counters that multiply. */
void stages(float x[N], float y[N])
{
	for (int length = 1; length < N; length *= 2)
		for (int i = 0; i < N - length; i++)
			x[i] += x[i + length] * length;
	for (int i = N - 1; i > 0; i >>= 1)
		y[i] = x[i] + i;
	for (int i = 1; i <= N / 2; i <<= 1)
		for (int j = 0; j < N; j += 2 * i)
			for (int k = j; k < j + i; k++)
				y[k + i - 1] -= y[k];
}
