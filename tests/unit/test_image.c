/* Packing against the definition in docs/ir.md, element by element, on random segments. */
#include "image/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define HOST_ELEMENTS 20000
#define IMAGE_ELEMENTS 20000
#define ROUNDS 3000

static uint64_t seed = 20;

static int64_t below(int64_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((seed >> 33) % (uint64_t)limit);
}

static int64_t get(const void *data, int bytes, int64_t at)
{
	int64_t value = 0;
	memcpy(&value, (const char *)data + at * bytes, (size_t)bytes);
	return bytes == 8 ? value
	                  : (int64_t)((uint64_t)value << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

static void put(void *data, int bytes, int64_t at, int64_t value)
{
	memcpy((char *)data + at * bytes, &value, (size_t)bytes);
}

static bool holds(const struct segment *s, const int64_t *i)
{
	for (int c = 0; c < s->conditions; c++) {
		int64_t sum = 0;
		for (int d = 0; d < s->dims; d++)
			sum += i[d] * s->condition[c * (s->dims + 1) + d];
		if (sum >= s->condition[c * (s->dims + 1) + s->dims])
			return false;
	}
	return true;
}

/* Host element of segment element n, or -1 for padding. */
static int64_t naive(const struct segment *s, int64_t n)
{
	int64_t i[8];
	int64_t at = s->base;
	for (int d = s->dims - 1; d >= 0; d--) {
		i[d] = n % s->trip[d];
		n /= s->trip[d];
		at += i[d] * s->stride[d];
	}
	return holds(s, i) ? at : -1;
}

struct storage {
	int64_t trip[5], stride[5], condition[3 * 6];
};

static struct segment random_segment(struct storage *store)
{
	static const int sizes[] = { 1, 2, 4, 8 };
	struct segment s = { .dims = (int)below(5),
		.trip = store->trip,
		.stride = store->stride,
		.condition = store->condition };
	int64_t reach = 0;
	for (int d = 0; d < s.dims; d++) {
		store->trip[d] = 1 + below(below(3) ? 5 : 20);
		store->stride[d] = below(3) == 0 ? 1 : below(40);
		reach += (store->trip[d] - 1) * store->stride[d];
	}
	if (s.dims > 1 && below(2)) /* something that merges */
		store->stride[s.dims - 2] = store->stride[s.dims - 1] * store->trip[s.dims - 1];
	reach = 0;
	for (int d = 0; d < s.dims; d++)
		reach += (store->trip[d] - 1) * store->stride[d];
	s.base = below(HOST_ELEMENTS - reach > 0 ? HOST_ELEMENTS - reach : 1);
	if (reach >= HOST_ELEMENTS)
		s.dims = 0;
	s.conditions = (int)below(4);
	for (int c = 0; c < s.conditions; c++)
		for (int d = 0; d <= s.dims; d++)
			store->condition[c * (s.dims + 1) + d] = d == s.dims ? below(60)
			        : below(3)                                   ? below(6) - 1
			                                                     : 0;
	s.host_bytes = sizes[below(4)];
	s.image_bytes = below(2) ? s.host_bytes : sizes[below(4)];
	s.offset = below(50);
	return s;
}

static char *random_bytes(size_t bytes)
{
	char *data = malloc(bytes);
	assert_non_null(data);
	for (size_t i = 0; i < bytes; i++)
		data[i] = (char)below(256);
	return data;
}

static bool segment_fits(const struct segment *s)
{
	return segment_elements(s) + s->offset <= IMAGE_ELEMENTS;
}

static void pack_matches(void **state)
{
	(void)state;
	char *host = random_bytes(8 * HOST_ELEMENTS);
	char *image = malloc(8 * IMAGE_ELEMENTS);
	int64_t checked = 0;
	for (int round = 0; round < ROUNDS; round++) {
		struct storage store;
		struct segment s = random_segment(&store);
		int64_t elements = segment_elements(&s);
		if (!segment_fits(&s))
			continue;
		int64_t first = below(elements);
		int64_t count = 1 + below(elements - first);
		int64_t image_at = s.offset > 3 ? below(3) : 0;
		memset(image, 0x55, 8 * IMAGE_ELEMENTS);
		segment_pack(&s, host, image, image_at, first, count);
		for (int64_t n = first; n < first + count; n++) {
			int64_t at = naive(&s, n);
			int64_t want = at < 0 ? 0 : get(host, s.host_bytes, at);
			char cut[8];
			put(cut, s.image_bytes, 0, want);
			assert_int_equal(get(image, s.image_bytes, s.offset + n - image_at),
			        get(cut, s.image_bytes, 0));
			checked++;
		}
		if (s.offset + first - image_at > 0)
			assert_int_equal(
			        get(image, 1, (s.offset + first - image_at) * s.image_bytes - 1),
			        0x55);
		assert_int_equal(
		        get(image, 1, (s.offset + first + count - image_at) * s.image_bytes), 0x55);
	}
	assert_true(checked > 100000);
	free(host);
	free(image);
}

/* Runs with room between them: what is there before stays, whole or in halves of a byte. */
static void runs_match(void **state)
{
	(void)state;
	char *host = random_bytes(8 * HOST_ELEMENTS);
	char *image = malloc(8 * IMAGE_ELEMENTS);
	int64_t between = 0;
	for (int round = 0; round < ROUNDS / 10; round++) {
		struct storage store;
		struct segment s = random_segment(&store);
		int64_t elements = segment_elements(&s);
		int64_t cut = below(elements + 1);
		s.run = 1 + below(40);
		s.pitch = s.run + below(20);
		if (s.offset + segment_span(&s) > IMAGE_ELEMENTS)
			continue;
		s.halves = below(2);
		s.image_bytes = s.halves ? 1 : s.image_bytes;
		memset(image, 0x55, 8 * IMAGE_ELEMENTS);
		segment_pack(&s, host, image, 0, 0, cut);
		segment_pack(&s, host, image, 0, cut, elements - cut);
		for (int64_t place = s.offset - 1, n = -1; place <= s.offset + segment_span(&s);
		        place++) {
			int64_t behind = place - s.offset;
			int64_t left = s.halves ? 5 : 0x55;
			bool inside = behind >= 0 && behind % s.pitch < s.run &&
			        behind < segment_span(&s);
			char cut_to[8];
			n += inside;
			int64_t at = inside ? naive(&s, n) : -1;
			put(cut_to, s.image_bytes, 0,
			        inside && at >= 0 ? get(host, s.host_bytes, at) : 0);
			if (place < 0)
				continue;
			if (inside)
				assert_int_equal(segment_place(&s, n), place);
			if (s.halves)
				assert_int_equal(image[place / 2] >> (place % 2 * 4) & 15,
				        inside ? cut_to[0] & 15 : left);
			else if (inside)
				assert_int_equal(get(image, s.image_bytes, place),
				        get(cut_to, s.image_bytes, 0));
			else
				assert_int_equal(image[place * s.image_bytes], left);
			between += !inside;
		}
	}
	assert_true(between > 10000);
	free(host);
	free(image);
}

/* Two elements a byte: packed in two parts, unpacked, and the neighbours' halves are left alone. */
static void halves_match(void **state)
{
	(void)state;
	char *host = random_bytes(8 * HOST_ELEMENTS);
	char *back = malloc(8 * HOST_ELEMENTS);
	uint8_t *image = malloc(IMAGE_ELEMENTS);
	for (int round = 0; round < ROUNDS / 10; round++) {
		struct storage store;
		struct segment s = random_segment(&store);
		int64_t elements = segment_elements(&s);
		int64_t cut = below(elements + 1);
		if (!segment_fits(&s))
			continue;
		s.image_bytes = 1;
		s.halves = true;
		memset(image, 0x55, IMAGE_ELEMENTS);
		segment_pack(&s, host, image, 0, 0, cut);
		segment_pack(&s, host, image, 0, cut, elements - cut);
		segment_unpack(&s, image, back);
		for (int64_t n = -1; n <= elements; n++) {
			bool inside = n >= 0 && n < elements;
			int64_t at = inside ? naive(&s, n) : -1;
			int64_t place = s.offset + n;
			int64_t want = at < 0 ? 0 : get(host, s.host_bytes, at);
			if (place < 0)
				continue;
			assert_int_equal(
			        image[place / 2] >> (place % 2 * 4) & 15, inside ? want & 15 : 5);
			if (at >= 0)
				assert_int_equal(get(back, s.host_bytes, at) & 15, want & 15);
		}
		assert_int_equal(segment_bytes(&s, 7), 4);
	}
	free(host);
	free(back);
	free(image);
}

static void unpack_matches(void **state)
{
	(void)state;
	char *host = malloc(8 * HOST_ELEMENTS);
	char *want = malloc(8 * HOST_ELEMENTS);
	char *image = random_bytes(8 * IMAGE_ELEMENTS);
	for (int round = 0; round < ROUNDS; round++) {
		struct storage store;
		struct segment s = random_segment(&store);
		if (!segment_fits(&s))
			continue;
		memset(host, 0x33, 8 * HOST_ELEMENTS);
		memset(want, 0x33, 8 * HOST_ELEMENTS);
		for (int64_t n = 0; n < segment_elements(&s); n++) {
			int64_t at = naive(&s, n);
			if (at >= 0)
				put(want, s.host_bytes, at,
				        get(image, s.image_bytes, s.offset + n));
		}
		segment_unpack(&s, image, host);
		assert_memory_equal(host, want, 8 * HOST_ELEMENTS);
	}
	free(host);
	free(want);
	free(image);
}

/* Not a bound (machines differ): only printed.  A weight of 4096 x 4096 in words of 16 lanes
 * that jump by a row. */
static void transposing_speed(void **state)
{
	(void)state;
	enum { SIDE = 4096 };
	int64_t trip[] = { SIDE / 16, SIDE, 16 };
	int64_t stride[] = { 16 * SIDE, 1, SIDE };
	struct segment s = {
		.dims = 3, .trip = trip, .stride = stride, .host_bytes = 4, .image_bytes = 4
	};
	size_t bytes = (size_t)SIDE * SIDE * 4;
	char *host = malloc(bytes);
	char *image = malloc(bytes);
	assert_non_null(host);
	assert_non_null(image);
	memset(host, 1, bytes);
	memset(image, 0, bytes);
	clock_t start = clock();
	segment_pack(&s, host, image, 0, 0, segment_elements(&s));
	double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	print_message("transposing pack: %.0f MB/s\n", (double)bytes / 1e6 / seconds);
	assert_memory_equal(host, image, bytes);
	free(host);
	free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pack_matches),
		cmocka_unit_test(runs_match),
		cmocka_unit_test(halves_match),
		cmocka_unit_test(unpack_matches),
		cmocka_unit_test(transposing_speed),
	};
	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
