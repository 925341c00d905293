/* Types and operators of C, as test inputs. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define N 19

void bytes(const int8_t a[N], const int8_t b[N], int8_t y[N], int16_t z[N])
{
	for (int i = 0; i < N; i++) {
		y[i] = a[i] + b[i];
		z[i] = a[i] * b[i] - (a[i] >> 1);
		y[i] += 200;
		z[i] <<= 1;
	}
}

void unsigned_words(const int32_t a[N], const int32_t b[N], int32_t y[N], int64_t z[N])
{
	for (int i = 0; i < N; i++) {
		unsigned u = (unsigned)a[i];
		unsigned v = (unsigned)b[i] | 1u;
		y[i] = (int)(u / v + u % v + (u >> 3));
		z[i] = (int64_t)a[i] * b[i] + (u > v) + (a[i] > b[i]) - (a[i] ^ ~b[i]);
	}
}

void quotients(const int32_t a[N], int32_t y[N], int32_t z[N])
{
	for (int i = 0; i < N; i++) {
		y[i] = a[i] / 7 + a[i] % 5;
		z[i] = -a[i] + !a[i] + (a[i] && y[i]) + (a[i] < 0 || y[i] > 3);
	}
}

void conversions(const float a[N], const int32_t b[N], int32_t y[N], float z[N], int16_t w[N])
{
	for (int i = 0; i < N; i++) {
		y[i] = (int)(a[i] * 100.0f);
		z[i] = (float)b[i] + i;
		w[i] = (short)(a[i] * 1000);
		z[i] *= 0.5;
	}
}

static inline float clamp(float x, float low, float high)
{
	return x < low ? low : x > high ? high : x;
}

void functions(const float a[N], const float b[N], float y[N], float z[N])
{
	const float table[3] = { 0.25f, 0.5f, 0.25f };
	for (int i = 0; i < N; i++) {
		y[i] = sqrtf(fabsf(a[i])) + fmaxf(a[i], b[i]) - floorf(b[i] * 4.0f);
		z[i] = clamp(a[i] * 2.0f, -0.5f, 0.5f) + ceilf(a[i]) + rintf(b[i] * 3.0f);
	}
	for (int i = 1; i < N - 1; i++)
		for (int k = 0; k < 3; k++)
			z[i] += table[k] * y[i + k - 1];
}

void conditions(const float a[N], int n[1], float y[N], bool found[N])
{
	float most = a[0];
	int where = 0;
	for (int i = 1; i < N; i++)
		if (a[i] > most) {
			most = a[i];
			where = i;
		}
	n[0] = where;
	for (int i = 0; i < N; i++) {
		found[i] = a[i] == most;
		if (i > 3 && a[i] < 0)
			y[i] = a[i - 4];
		else if (i == 2)
			y[i] = most;
	}
}

void chained(float a[N], float b[N], float c)
{
	float t;
	for (int i = 0; i < N; ++i) {
		a[i] = b[N - 1 - i] = t = c * i;
		a[i]++;
		--b[i];
		b[i] = t - b[i];
	}
}

static void upto(const int32_t a[N], int32_t y[N], unsigned char n)
{
	for (int i = 0; i < N; i++)
		if (i < n)
			y[i] = a[i];
}

/* Numbers of few bits, and unsigned ones below 0. */
void wraps(const int32_t a[N], int32_t y[N], int32_t z[N], int64_t w[N], float v[N])
{
	for (unsigned i = 0; i < N; i++)
		if (i - 5 < 3)
			y[i] = a[i];
	for (int i = 0; i < N; i++) {
		int8_t few = i * 20;
		float half = i;
		int64_t wide = i - 4u;
		if (few < 3 || (unsigned char)(i * 30) > 200)
			z[i] = a[i];
		w[i] = wide < 3 ? a[i] : wide;
		v[i] += half / 2;
	}
	for (size_t i = N - 1; i > 0; i--)
		for (unsigned j = 1; j < N - i; j++)
			z[j + i] += a[j - 1];
	upto(a, y, 260);
}
