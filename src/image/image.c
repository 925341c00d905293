/* Packs and unpacks memory images. Loops that are contiguous in memory are merged; then the
 * innermost loop is copied at once, bounded by the conditions. */
#include "base/number.h"
#include "image/image.h"
#include <string.h>

#define DIMS_MOST 16
#define CONDITIONS_MOST 16
/* iterations of the next outer loop that are packed at once when the innermost loop strides through
 * host memory */
#define BLOCK 16

typedef void copy_function(
        void *to, const void *from, int64_t to_stride, int64_t from_stride, int64_t count);

struct merged_segment {
	const struct segment *segment;
	int dims, conditions; /* of merged loops */
	int64_t trip[DIMS_MOST], stride[DIMS_MOST], at[DIMS_MOST];
	int64_t coefficient[CONDITIONS_MOST][DIMS_MOST];
	/* limit - Σ coefficient * at over all loops but the innermost */
	int64_t room[CONDITIONS_MOST];
	int64_t base; /* host element at the current counters, the innermost being 0 */
};

int64_t segment_elements(const struct segment *segment)
{
	int64_t elements = 1;
	for (int d = 0; d < segment->dims; d++)
		elements *= segment->trip[d];
	return elements;
}

int64_t segment_place(const struct segment *segment, int64_t element)
{
	return segment->offset +
	        (segment->run ? element / segment->run * segment->pitch + element % segment->run
	                      : element);
}

int64_t segment_span(const struct segment *segment)
{
	int64_t elements = segment_elements(segment);
	return elements ? segment_place(segment, elements - 1) + 1 - segment->offset : 0;
}

int64_t segment_bytes(const struct segment *segment, int64_t elements)
{
	return segment->halves ? (elements + 1) / 2 : elements * segment->image_bytes;
}

/* Tensors of a file need not be aligned, so elements are copied as bytes; compilers make that as
 * fast where they are. */
#define COPY(name, to_type, from_type)                                                             \
	static void name(                                                                          \
	        void *to, const void *from, int64_t to_stride, int64_t from_stride, int64_t count) \
	{                                                                                          \
		char *y = to;                                                                      \
		const char *x = from;                                                              \
		for (int64_t i = 0; i < count; i++) {                                              \
			from_type read;                                                            \
			memcpy(&read, x + i * from_stride * (int64_t)sizeof read, sizeof read);    \
			to_type written = (to_type)read;                                           \
			memcpy(y + i * to_stride * (int64_t)sizeof written, &written,              \
			        sizeof written);                                                   \
		}                                                                                  \
	}
COPY(copy1, int8_t, int8_t)
COPY(copy2, int16_t, int16_t)
COPY(copy4, int32_t, int32_t)
COPY(copy8, int64_t, int64_t)
COPY(copy1to2, int16_t, int8_t)
COPY(copy1to4, int32_t, int8_t)
COPY(copy1to8, int64_t, int8_t)
COPY(copy2to1, int8_t, int16_t)
COPY(copy2to4, int32_t, int16_t)
COPY(copy2to8, int64_t, int16_t)
COPY(copy4to1, int8_t, int32_t)
COPY(copy4to2, int16_t, int32_t)
COPY(copy4to8, int64_t, int32_t)
COPY(copy8to1, int8_t, int64_t)
COPY(copy8to2, int16_t, int64_t)
COPY(copy8to4, int32_t, int64_t)

static int size_index(int bytes)
{
	int index = 0;
	while (index < 3 && (1 << index) != bytes)
		index++;
	return index;
}

static copy_function *copy_of(int to_bytes, int from_bytes)
{
	static copy_function *const table[4][4] = {
		/* [from][to] */
		{ copy1, copy1to2, copy1to4, copy1to8 },
		{ copy2to1, copy2, copy2to4, copy2to8 },
		{ copy4to1, copy4to2, copy4, copy4to8 },
		{ copy8to1, copy8to2, copy8to4, copy8 },
	};
	return table[size_index(from_bytes)][size_index(to_bytes)];
}

static bool merges(
        const struct merged_segment *segment_walk, const struct segment *segment, int dim)
{
	int last = segment_walk->dims - 1;
	if (last < 0 || segment_walk->stride[last] != segment->stride[dim] * segment->trip[dim])
		return false;
	for (int c = 0; c < segment->conditions; c++)
		if (segment_walk->coefficient[c][last] !=
		        segment->condition[c * (segment->dims + 1) + dim] * segment->trip[dim])
			return false;
	return true;
}

/* Starts a walk at element `first`; false if the segment has more loops or conditions than a walk
 * holds (the compiler makes none such). */
static bool walk_start(
        struct merged_segment *segment_walk, const struct segment *segment, int64_t first)
{
	*segment_walk = (struct merged_segment){
		.segment = segment, .conditions = segment->conditions, .base = segment->base
	};
	if (segment->conditions > CONDITIONS_MOST)
		return false;
	for (int d = 0; d < segment->dims; d++) {
		if (segment->trip[d] == 1)
			continue;
		bool merged = merges(segment_walk, segment, d);
		int to = merged ? segment_walk->dims - 1 : segment_walk->dims++;
		if (to >= DIMS_MOST)
			return false;
		segment_walk->trip[to] =
		        merged ? segment_walk->trip[to] * segment->trip[d] : segment->trip[d];
		segment_walk->stride[to] = segment->stride[d];
		for (int c = 0; c < segment->conditions; c++)
			segment_walk->coefficient[c][to] =
			        segment->condition[c * (segment->dims + 1) + d];
	}
	if (!segment_walk->dims)
		segment_walk->trip[segment_walk->dims++] = 1;
	for (int c = 0; c < segment->conditions; c++)
		segment_walk->room[c] = segment->condition[c * (segment->dims + 1) + segment->dims];
	for (int d = segment_walk->dims - 1; d >= 0; d--) {
		segment_walk->at[d] = first % segment_walk->trip[d];
		first /= segment_walk->trip[d];
	}
	for (int d = 0; d < segment_walk->dims - 1; d++) {
		segment_walk->base += segment_walk->at[d] * segment_walk->stride[d];
		for (int c = 0; c < segment_walk->conditions; c++)
			segment_walk->room[c] -=
			        segment_walk->at[d] * segment_walk->coefficient[c][d];
	}
	return true;
}

static void walk_shift(struct merged_segment *segment_walk, int dim, int64_t steps)
{
	segment_walk->at[dim] += steps;
	segment_walk->base += steps * segment_walk->stride[dim];
	for (int c = 0; c < segment_walk->conditions; c++)
		segment_walk->room[c] -= steps * segment_walk->coefficient[c][dim];
}

/* Advances loop `dim` by `steps` iterations, which must not pass its end. */
static void walk_next(struct merged_segment *segment_walk, int dim, int64_t steps)
{
	for (; dim >= 0; dim--, steps = 1) {
		walk_shift(segment_walk, dim, steps);
		if (segment_walk->at[dim] < segment_walk->trip[dim])
			return;
		walk_shift(segment_walk, dim, -segment_walk->trip[dim]);
	}
}

/* Narrows the range low … high - 1 of innermost counters to that where every condition holds. */
static void clip(const struct merged_segment *segment_walk, int64_t *low, int64_t *high)
{
	int inner = segment_walk->dims - 1;
	int64_t end = *high;
	for (int c = 0; c < segment_walk->conditions; c++) {
		int64_t factor = segment_walk->coefficient[c][inner];
		int64_t room = segment_walk->room[c];
		if (factor == 0 && room <= 0)
			*high = 0;
		if (factor > 0 && ceil_div(room, factor) < *high)
			*high = ceil_div(room, factor);
		if (factor < 0 && 1 - ceil_div(room, -factor) > *low)
			*low = 1 - ceil_div(room, -factor);
	}
	*low = *low < end ? *low : end;
	*high = *high > *low ? *high : *low;
}

static void pack_row(const struct merged_segment *segment_walk, const char *host, char *image,
        int64_t from, int64_t count)
{
	const struct segment *segment = segment_walk->segment;
	copy_function *copy = copy_of(segment->image_bytes, segment->host_bytes);
	int64_t stride = segment_walk->stride[segment_walk->dims - 1];
	int64_t low = from;
	int64_t high = from + count;
	clip(segment_walk, &low, &high);
	int64_t head = low - from;
	int64_t body = high - low;
	int64_t bytes = segment->image_bytes;
	const char *source = host + (segment_walk->base + low * stride) * segment->host_bytes;
	memset(image, 0, (size_t)(head * bytes));
	if (body && stride == 1 && segment->host_bytes == segment->image_bytes)
		memcpy(image + head * bytes, source, (size_t)(body * bytes));
	else if (body)
		copy(image + head * bytes, source, 1, stride, body);
	memset(image + (head + body) * bytes, 0, (size_t)((count - head - body) * bytes));
}

/* Iterations of the next outer loop that may be packed at once, so that host memory is read along
 * it; 0: none. */
static int64_t block_rows(const struct merged_segment *segment_walk, int64_t left)
{
	int inner = segment_walk->dims - 1;
	if (segment_walk->conditions || segment_walk->dims < 2 || segment_walk->at[inner] ||
	        segment_walk->stride[inner] == 1 || segment_walk->stride[inner - 1] != 1 ||
	        segment_walk->trip[inner] < 4)
		return 0;
	int64_t rows = segment_walk->trip[inner - 1] - segment_walk->at[inner - 1];
	rows = rows < BLOCK ? rows : BLOCK;
	return rows * segment_walk->trip[inner] <= left ? rows : 0;
}

static void pack_block(
        const struct merged_segment *segment_walk, const char *host, char *image, int64_t rows)
{
	const struct segment *segment = segment_walk->segment;
	copy_function *copy = copy_of(segment->image_bytes, segment->host_bytes);
	int64_t trip = segment_walk->trip[segment_walk->dims - 1];
	int64_t stride = segment_walk->stride[segment_walk->dims - 1];
	for (int64_t i = 0; i < trip; i++)
		copy(image + i * segment->image_bytes,
		        host + (segment_walk->base + i * stride) * segment->host_bytes, trip, 1,
		        rows);
}

#define HALVES 1024 /* elements packed as bytes before they are joined in pairs */

static void put_halves(const int8_t *from, uint8_t *image, int64_t first, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		uint8_t *byte = &image[(first + i) / 2];
		uint8_t bits = (uint8_t)(from[i] & 15);
		*byte = (uint8_t)((first + i) % 2 ? (*byte & 15) | bits << 4
		                                  : (*byte & 0xf0) | bits);
	}
}

static void get_halves(const uint8_t *image, int64_t first, int64_t count, int8_t *to)
{
	for (int64_t i = 0; i < count; i++) {
		int bits = image[(first + i) / 2] >> ((first + i) % 2 ? 4 : 0) & 15;
		to[i] = (int8_t)((bits ^ 8) - 8);
	}
}

static void pack_halves(const struct segment *segment, const void *host, void *image,
        int64_t image_at, int64_t first, int64_t count)
{
	int8_t part[HALVES];
	struct segment bytes = *segment;
	bytes.halves = false;
	for (int64_t done = 0; done < count; done += HALVES) {
		int64_t some = count - done < HALVES ? count - done : HALVES;
		segment_pack(
		        &bytes, host, part, segment->offset + first + done, first + done, some);
		put_halves(part, image, segment->offset + first + done - image_at, some);
	}
}

/* Packs each run as a segment of its own. */
static void pack_runs(const struct segment *segment, const void *host, void *image,
        int64_t image_at, int64_t first, int64_t count)
{
	struct segment run = *segment;
	run.run = 0;
	for (int64_t some; count > 0; first += some, count -= some) {
		some = segment->run - first % segment->run;
		some = some < count ? some : count;
		run.offset = segment_place(segment, first) - first;
		segment_pack(&run, host, image, image_at, first, some);
	}
}

void segment_pack(const struct segment *segment, const void *host, void *image, int64_t image_at,
        int64_t first, int64_t count)
{
	struct merged_segment segment_walk;
	if (segment->run) {
		pack_runs(segment, host, image, image_at, first, count);
		return;
	}
	if (segment->halves) {
		pack_halves(segment, host, image, image_at, first, count);
		return;
	}
	char *to = (char *)image + (segment->offset + first - image_at) * segment->image_bytes;
	if (!walk_start(&segment_walk, segment, first))
		return;
	int inner = segment_walk.dims - 1;
	while (count > 0) {
		int64_t rows = block_rows(&segment_walk, count);
		int64_t from = segment_walk.at[inner];
		int64_t left = segment_walk.trip[inner] - from;
		int64_t step = left < count ? left : count;
		if (rows)
			step = rows * segment_walk.trip[inner];
		if (rows)
			pack_block(&segment_walk, host, to, rows);
		else
			pack_row(&segment_walk, host, to, from, step);
		to += step * segment->image_bytes;
		count -= step;
		segment_walk.at[inner] = 0;
		walk_next(&segment_walk, inner - 1, rows ? rows : 1);
	}
}

void segment_unpack(const struct segment *segment, const void *image, void *host)
{
	struct merged_segment segment_walk;
	copy_function *copy = copy_of(segment->host_bytes, segment->image_bytes);
	const char *from = image;
	int64_t left = segment_elements(segment);
	int64_t at = segment->offset;
	if (!walk_start(&segment_walk, segment, 0))
		return;
	int inner = segment_walk.dims - 1;
	int64_t trip = segment_walk.trip[inner];
	int64_t stride = segment_walk.stride[inner];
	for (; left > 0; left -= trip) {
		int64_t low = 0;
		int64_t high = trip;
		clip(&segment_walk, &low, &high);
		char *to = (char *)host + (segment_walk.base + low * stride) * segment->host_bytes;
		for (int64_t i = low, some; segment->halves && i < high; i += some) {
			int8_t part[HALVES];
			some = high - i < HALVES ? high - i : HALVES;
			get_halves(image, at + i, some, part);
			copy(to + (i - low) * stride * segment->host_bytes, part, stride, 1, some);
		}
		if (low < high && !segment->halves)
			copy(to, from + (at + low) * segment->image_bytes, stride, 1, high - low);
		at += trip;
		walk_next(&segment_walk, inner - 1, 1);
	}
}
