#include "base/sha256.h"
#include <stdio.h>
#include <string.h>

static const uint32_t round_constant[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
	0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
	0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
	0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
	0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Instead of moving the eight words by one place, the places move. */
#define ROUND(a, b, c, d, e, f, g, h, i) \
	do { \
		s[h] += (rotate(s[e], 6) ^ rotate(s[e], 11) ^ rotate(s[e], 25)) + ((s[e] & s[f]) ^ (~s[e] & s[g])) + round_constant[i] + w[i]; \
		s[d] += s[h]; \
		s[h] += (rotate(s[a], 2) ^ rotate(s[a], 13) ^ rotate(s[a], 22)) + ((s[a] & s[b]) ^ (s[a] & s[c]) ^ (s[b] & s[c])); \
	} while (0)

static void add_blocks(struct sha256 *hash, const uint8_t *data, size_t blocks)
{
	for (; blocks; blocks--, data += 64) {
		uint32_t w[64], s[8];
		for (int i = 0; i < 16; i++)
			w[i] = big_endian(data + 4 * i);
		for (int i = 16; i < 64; i++) {
			uint32_t a = w[i - 15], b = w[i - 2];
			w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
		}
		memcpy(s, hash->state, sizeof s);
		for (int i = 0; i < 64; i += 8) {
			ROUND(0, 1, 2, 3, 4, 5, 6, 7, i);
			ROUND(7, 0, 1, 2, 3, 4, 5, 6, i + 1);
			ROUND(6, 7, 0, 1, 2, 3, 4, 5, i + 2);
			ROUND(5, 6, 7, 0, 1, 2, 3, 4, i + 3);
			ROUND(4, 5, 6, 7, 0, 1, 2, 3, i + 4);
			ROUND(3, 4, 5, 6, 7, 0, 1, 2, i + 5);
			ROUND(2, 3, 4, 5, 6, 7, 0, 1, i + 6);
			ROUND(1, 2, 3, 4, 5, 6, 7, 0, i + 7);
		}
		for (int i = 0; i < 8; i++)
			hash->state[i] += s[i];
	}
}

void sha256_start(struct sha256 *hash)
{
	*hash = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *hash, const void *data, size_t size)
{
	const uint8_t *from = data;
	size_t held = hash->bytes % 64, part = held && 64 - held < size ? 64 - held : held ? size : 0;
	hash->bytes += size;
	if (part) {
		memcpy(hash->block + held, from, part);
		from += part;
		size -= part;
		if (held + part < 64)
			return;
		add_blocks(hash, hash->block, 1);
	}
	add_blocks(hash, from, size / 64);
	if (size % 64)
		memcpy(hash->block, from + size / 64 * 64, size % 64);
}

void sha256_end(struct sha256 *hash, char hex[65])
{
	uint64_t bits = hash->bytes * 8;
	uint8_t tail[72] = {0x80};
	size_t pad = 64 - (hash->bytes + 8) % 64;
	for (int i = 0; i < 8; i++)
		tail[pad + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(hash, tail, pad + 8);
	for (int i = 0; i < 8; i++)
		snprintf(hex + 8 * i, 9, "%08x", (unsigned)hash->state[i]);
}

void sha256_hex(const void *data, size_t size, char hex[65])
{
	struct sha256 hash;
	sha256_start(&hash);
	sha256_add(&hash, data, size);
	sha256_end(&hash, hex);
}
