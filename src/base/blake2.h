/* BLAKE2b with 256 bits (RFC 7693), as `b2sum -l 256` prints it. Used instead of SHA-256 because it
 * is faster where the CPU has no instructions for that, and packed weights are hashed. */
#ifndef STC_BLAKE2_H
#define STC_BLAKE2_H
#include <stddef.h>
#include <stdint.h>

struct blake2 {
	uint64_t state[8];
	uint64_t bytes;  /* bytes added so far */
	size_t buffered; /* bytes in `block`; a full last block is only hashed at the end */
	uint8_t block[128];
};

void blake2_start(struct blake2 *hash);
void blake2_add(struct blake2 *hash, const void *data, size_t size);
void blake2_end(struct blake2 *hash, char hex[65]);
void blake2_hex(const void *data, size_t size, char hex[65]);

#endif
