/* SHA-256 (FIPS 180-4). */
#ifndef STC_SHA256_H
#define STC_SHA256_H
#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];        /* what does not fill a block yet */
};

void sha256_start(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t size);
void sha256_end(struct sha256 *hash, char hex[65]);
void sha256_hex(const void *data, size_t size, char hex[65]);

#endif
