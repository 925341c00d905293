/* Reads an xclbin: a header, the list of its sections, and of these the memories and the clocks.
 * Sizes and places are those of the vendor's xclbin.h, with which a test compares them; sections
 * may be damaged, so that nothing is read beyond them. */
#define _POSIX_C_SOURCE 200809L /* strnlen */
#include "xclbin.h"
#include "base/text.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	HEADER_BYTES = 456, /* up to the first section header */
	COUNT_AT = 448,     /* where the header holds the number of sections */
	SECTION_BYTES = 40,
	SECTION_PLACE_AT = 24, /* its place and its size in the file */
	MEMORIES = 6,          /* kinds of sections */
	CLOCKS = 11,
	MEMORY_AT = 8, /* first entry of a section */
	MEMORY_BYTES = 40,
	MEMORY_TAG_AT = 24,
	TAG_BYTES = 16,
	CLOCK_AT = 2,
	CLOCK_BYTES = 136,
	DATA_CLOCK = 1, /* kind of the clock that kernels from C++ have */
	SECTIONS_MOST = 1024,
	SECTION_MOST = 1 << 20,
};

static int64_t number_at(const unsigned char *data, int bytes)
{
	uint64_t number = 0;
	for (int i = bytes; i-- > 0;)
		number = number << 8 | data[i];
	return number > INT64_MAX ? -1 : (int64_t)number;
}

static void read_memories(
        struct arena *arena, const unsigned char *data, int64_t size, struct xclbin *out)
{
	int64_t count = size < MEMORY_AT ? 0 : number_at(data, 4);
	if (count > (size - MEMORY_AT) / MEMORY_BYTES)
		count = 0;
	struct xclbin_memory *memory = ARENA_ARRAY(arena, struct xclbin_memory, count + 1);
	for (int64_t i = 0; i < count; i++) {
		const unsigned char *entry = data + MEMORY_AT + i * MEMORY_BYTES;
		int64_t kilobytes = number_at(entry + 8, 8);
		const char *tag = (const char *)entry + MEMORY_TAG_AT;
		bool used = entry[1] && kilobytes > 0 && kilobytes <= INT64_MAX / 1024;
		memory[i] = (struct xclbin_memory){
			.tag = text_copy(arena, tag, strnlen(tag, TAG_BYTES)),
			.bytes = used ? kilobytes * 1024 : 0,
		};
	}
	out->memories = (int)count;
	out->memory = memory;
}

static void read_clocks(const unsigned char *data, int64_t size, struct xclbin *out)
{
	int64_t count = size < CLOCK_AT ? 0 : number_at(data, 2);
	for (int64_t i = 0; i < count && CLOCK_AT + (i + 1) * CLOCK_BYTES <= size; i++) {
		const unsigned char *entry = data + CLOCK_AT + i * CLOCK_BYTES;
		if (entry[2] == DATA_CLOCK && !out->mhz)
			out->mhz = (int)number_at(entry, 2);
	}
}

static bool read_at(FILE *file, int64_t place, void *data, int64_t bytes)
{
	return !fseek(file, (long)place, SEEK_SET) &&
	        fread(data, 1, (size_t)bytes, file) == (size_t)bytes;
}

static bool read_section(
        struct arena *arena, FILE *file, const unsigned char *header, struct xclbin *out)
{
	int64_t kind = number_at(header, 4);
	int64_t place = number_at(header + SECTION_PLACE_AT, 8);
	int64_t size = number_at(header + SECTION_PLACE_AT + 8, 8);
	if (kind != MEMORIES && kind != CLOCKS)
		return true;
	if (place < 0 || size < 0 || size > SECTION_MOST)
		return false;
	unsigned char *data = ARENA_ARRAY(arena, unsigned char, size + 1);
	if (!read_at(file, place, data, size))
		return false;
	if (kind == MEMORIES)
		read_memories(arena, data, size, out);
	else
		read_clocks(data, size, out);
	return true;
}

static const char *read_file(struct arena *arena, FILE *file, struct xclbin *out)
{
	static const char magic[8] = "xclbin2";
	unsigned char header[HEADER_BYTES];
	unsigned char section[SECTION_BYTES];
	if (!read_at(file, 0, header, HEADER_BYTES) || memcmp(header, magic, sizeof magic))
		return "is no xclbin";
	int64_t count = number_at(header + COUNT_AT, 4);
	if (count > SECTIONS_MOST)
		return "is a damaged xclbin";
	for (int64_t i = 0; i < count; i++)
		if (!read_at(file, HEADER_BYTES + i * SECTION_BYTES, section, SECTION_BYTES) ||
		        !read_section(arena, file, section, out))
			return "is a damaged xclbin";
	return NULL;
}

const char *xclbin_read(struct arena *arena, const char *path, struct xclbin *xclbin)
{
	*xclbin = (struct xclbin){ .mhz = 0 };
	FILE *file = fopen(path, "rb");
	if (!file)
		return text_format(arena, "cannot be read: %s", strerror(errno));
	const char *reason = read_file(arena, file, xclbin);
	fclose(file);
	return reason;
}
