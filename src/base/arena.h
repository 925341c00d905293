/* Arenas own all memory of the compiler: objects live until their arena is freed. arena.c is the
 * only caller of malloc. An arena that cannot grow, or a broken invariant, leaves through the guard
 * of its session (guard.h). */
#ifndef STC_ARENA_H
#define STC_ARENA_H
#include <stddef.h>

struct guard;
struct arena;

/* NULL only if guard is NULL and memory is exhausted */
struct arena *arena_new(struct guard *guard);
/* a child arena: freed with its parent at the latest, so that scratch abandoned by a broken
 * invariant does not leak */
struct arena *arena_within(struct arena *parent);
/* the guard through which it leaves; NULL: it gives NULL where memory is exhausted */
struct guard *arena_guard(const struct arena *arena);
/* makes the arena and its children leave through the guard of the other: for memory that another
 * thread fills */
void arena_share_guard(struct arena *arena, const struct arena *other);
void arena_free(struct arena *arena);                /* NULL is accepted */
void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned to 16 */
void *arena_copy(struct arena *arena, const void *data, size_t size);

/* Leaves as where memory is exhausted: for libraries that allocate themselves and found none. */
_Noreturn void arena_exhausted(const struct arena *arena, size_t size);

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count)                                                            \
	((type *)arena_alloc((arena), sizeof(type) * (size_t)(count)))

/* A growing array in an arena: declare `VEC(struct op *) ops;`, zero it, push. */
#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *data;                                                                        \
		size_t count, capacity;                                                            \
	}
#define VEC_PUSH(arena, vec, item)                                                                 \
	((vec)->count < (vec)->capacity                                                            \
	                ? (void)0                                                                  \
	                : vec_grow((arena), (void **)&(vec)->data, &(vec)->capacity, (vec)->count, \
	                          sizeof *(vec)->data),                                            \
	        (vec)->data[(vec)->count++] = (item))
void vec_grow(struct arena *arena, void **data, size_t *capacity, size_t count, size_t item_size);

#endif
