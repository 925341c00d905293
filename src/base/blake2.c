/* The BLAKE2b compression function and its incremental interface. */
#include "base/blake2.h"
#include <stdio.h>
#include <string.h>

static const uint64_t start[8] = {
	0x6a09e667f3bcc908,
	0xbb67ae8584caa73b,
	0x3c6ef372fe94f82b,
	0xa54ff53a5f1d36f1,
	0x510e527fade682d1,
	0x9b05688c2b3e6c1f,
	0x1f83d9abfb41bd6b,
	0x5be0cd19137e2179,
};

static const uint8_t order[12][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
	{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
	{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
	{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
	{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
};

static inline uint64_t rotate(uint64_t x, int n)
{
	return x >> n | x << (64 - n);
}

static uint64_t little_endian(const uint8_t *p)
{
	uint64_t word = 0;
	for (int i = 7; i >= 0; i--)
		word = word << 8 | p[i];
	return word;
}

#define MIX(a, b, c, d, x, y)                                                                      \
	do {                                                                                       \
		v[a] += v[b] + (x);                                                                \
		v[d] = rotate(v[d] ^ v[a], 32);                                                    \
		v[c] += v[d];                                                                      \
		v[b] = rotate(v[b] ^ v[c], 24);                                                    \
		v[a] += v[b] + (y);                                                                \
		v[d] = rotate(v[d] ^ v[a], 16);                                                    \
		v[c] += v[d];                                                                      \
		v[b] = rotate(v[b] ^ v[c], 63);                                                    \
	} while (0)

static void compress(struct blake2 *hash, const uint8_t *block, uint64_t bytes, int last)
{
	uint64_t v[16];
	uint64_t m[16];
	for (int i = 0; i < 16; i++)
		m[i] = little_endian(block + 8 * i);
	memcpy(v, hash->state, sizeof hash->state);
	memcpy(v + 8, start, sizeof start);
	v[12] ^= bytes;
	v[14] = last ? ~v[14] : v[14];
#pragma GCC unroll 12
	for (int r = 0; r < 12; r++) { /* unrolled, so that the order is a constant */
		const uint8_t *s = order[r];
		MIX(0, 4, 8, 12, m[s[0]], m[s[1]]);
		MIX(1, 5, 9, 13, m[s[2]], m[s[3]]);
		MIX(2, 6, 10, 14, m[s[4]], m[s[5]]);
		MIX(3, 7, 11, 15, m[s[6]], m[s[7]]);
		MIX(0, 5, 10, 15, m[s[8]], m[s[9]]);
		MIX(1, 6, 11, 12, m[s[10]], m[s[11]]);
		MIX(2, 7, 8, 13, m[s[12]], m[s[13]]);
		MIX(3, 4, 9, 14, m[s[14]], m[s[15]]);
	}
	for (int i = 0; i < 8; i++)
		hash->state[i] ^= v[i] ^ v[i + 8];
}

void blake2_start(struct blake2 *hash)
{
	*hash = (struct blake2){ 0 };
	memcpy(hash->state, start, sizeof start);
	hash->state[0] ^= 0x01010000 ^ 32; /* no key, 32 bytes out */
}

void blake2_add(struct blake2 *hash, const void *data, size_t size)
{
	const uint8_t *byte = data;
	while (size) {
		if (hash->buffered == sizeof hash->block) {
			compress(hash, hash->block, hash->bytes, 0);
			hash->buffered = 0;
		}
		while (!hash->buffered && size > sizeof hash->block) {
			hash->bytes += sizeof hash->block;
			compress(hash, byte, hash->bytes, 0);
			byte += sizeof hash->block;
			size -= sizeof hash->block;
		}
		size_t room = sizeof hash->block - hash->buffered;
		size_t part = size < room ? size : room;
		memcpy(hash->block + hash->buffered, byte, part);
		hash->buffered += part;
		hash->bytes += part;
		byte += part;
		size -= part;
	}
}

void blake2_end(struct blake2 *hash, char hex[65])
{
	memset(hash->block + hash->buffered, 0, sizeof hash->block - hash->buffered);
	compress(hash, hash->block, hash->bytes, 1);
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x",
		        (unsigned)(hash->state[i / 8] >> (8 * (i % 8)) & 0xff));
}

void blake2_hex(const void *data, size_t size, char hex[65])
{
	struct blake2 hash;
	blake2_start(&hash);
	blake2_add(&hash, data, size);
	blake2_end(&hash, hex);
}
