/* Chunked bump allocation, child arenas and growing arrays. */
#include "base/arena.h"
#include "base/cxx_border.h"
#include "base/guard.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define STEP_BYTES 64 /* of an allocation: one more step of work */

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	_Alignas(16) char data[];
};

struct arena {
	struct arena_chunk *chunk; /* the current chunk, then older ones */
	struct guard *guard;
	size_t bytes;
	struct arena *within; /* first child */
	/* siblings; link: the pointer to this one, NULL without a parent */
	struct arena *next, **link;
};

struct arena *arena_new(struct guard *guard)
{
	struct arena *arena = calloc(1, sizeof *arena);
	if (!arena) {
		if (guard)
			guard_leave(guard, GUARD_MEMORY, "out of memory");
		return NULL;
	}
	arena->guard = guard;
	return arena;
}

struct arena *arena_within(struct arena *parent)
{
	struct arena *arena = arena_new(parent->guard);
	if (!arena)
		abort();
	arena->next = parent->within;
	arena->link = &parent->within;
	if (arena->next)
		arena->next->link = &arena->next;
	parent->within = arena;
	return arena;
}

struct guard *arena_guard(const struct arena *arena)
{
	return arena->guard;
}

void arena_share_guard(struct arena *arena, const struct arena *other)
{
	arena->guard = other->guard;
	for (struct arena *inner = arena->within; inner; inner = inner->next)
		arena_share_guard(inner, other);
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	while (arena->within)
		arena_free(arena->within);
	if (arena->link)
		*arena->link = arena->next;
	if (arena->link && arena->next)
		arena->next->link = arena->link;
	for (struct arena_chunk *chunk = arena->chunk; chunk;) {
		struct arena_chunk *next = chunk->next;
		free(chunk);
		chunk = next;
	}
	free(arena);
}

void arena_exhausted(const struct arena *arena, size_t size)
{
	if (arena->guard)
		guard_leave(arena->guard, GUARD_MEMORY,
		        "out of memory: %zu bytes more than the %zu in use", size, arena->bytes);
	abort();
}

static struct arena_chunk *chunk_new(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk =
	        size < SIZE_MAX - sizeof *chunk ? malloc(sizeof *chunk + size) : NULL;
	if (!chunk)
		arena_exhausted(arena, size);
	chunk->used = 0;
	chunk->size = size;
	arena->bytes += size;
	return chunk;
}

/* Memory that is not zeroed; the caller fills it. */
static void *take(struct arena *arena, size_t size)
{
	size_t need = size > SIZE_MAX - 32 ? SIZE_MAX - 32 : (size + 15) / 16 * 16;
	struct arena_chunk *chunk = arena->chunk;
	if (!chunk || chunk->size - chunk->used < need) {
		struct arena_chunk *fresh =
		        chunk_new(arena, need > CHUNK_BYTES / 4 ? need : CHUNK_BYTES);
		/* a large block gets a chunk of its own; the current chunk stays current */
		if (chunk && need > CHUNK_BYTES / 4) {
			fresh->next = chunk->next;
			chunk->next = fresh;
		} else {
			fresh->next = chunk;
			arena->chunk = fresh;
		}
		chunk = fresh;
	}
	void *block = chunk->data + chunk->used;
	chunk->used += need;
	guard_count(arena->guard, 1 + (int64_t)(need / STEP_BYTES));
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	return memset(take(arena, size), 0, size);
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
	void *copy = take(arena, size);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

void vec_grow(struct arena *arena, void **data, size_t *capacity, size_t count, size_t item_size)
{
	if (count < *capacity)
		return;
	size_t larger = *capacity ? 2 * *capacity : 8;
	void *fresh = take(arena, larger * item_size);
	if (count)
		memcpy(fresh, *data, count * item_size);
	*data = fresh;
	*capacity = larger;
}

_Noreturn void guard_leave(struct guard *guard, enum guard_reason reason, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(guard->message, sizeof guard->message, format, arguments);
	va_end(arguments);
	guard->reason = reason;
	cxx_leave();
	longjmp(guard->leave, 1);
}
