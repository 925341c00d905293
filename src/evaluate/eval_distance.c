/* Checks the dependence distances that arrays claim by stream.distance.  A read that is nearer than
 * claimed is no error by itself: kernels read words that they discard, because a memory that is
 * read in every iteration needs no condition.  So eval_hardware.c repeats the launch with wrong
 * numbers for such reads; the claim is false if results change. */
#include "evaluate/eval_network.h"
#include <math.h>
#include <string.h>

/* The wrong integer: 0b01010101, of which narrower words take the high bits. */
#define WRONG 85

struct distance_claim *claim_new(struct network *network, const struct kahn_process *process,
        const struct op *alloca, int64_t words)
{
	int64_t distance = attr_integer_or(alloca, KEY_STREAM_DISTANCE, 0);
	if (!distance)
		return NULL;
	struct arena *arena = network->e->arena;
	struct distance_claim *distance_claim = ARENA_NEW(arena, struct distance_claim);
	*distance_claim = (struct distance_claim){ .process = process->name,
		.array = attr_text_or(alloca, KEY_STREAM_NAME, "an array"),
		.location = alloca->location,
		.distance = distance,
		.rotates = attr_get(alloca, KEY_STREAM_ROTATION),
		.local = attr_get(alloca, KEY_STREAM_LOCAL),
		.written = ARENA_ARRAY(arena, int64_t, words) };
	distance_claim->before =
	        ARENA_ARRAY(arena, int64_t, type_lanes(alloca->result[0]->type->element));
	int number = (int)network->claims.count;
	distance_claim->overtakes = number >= network->overtaken && number < network->overtaken_end;
	VEC_PUSH(arena, &network->claims, distance_claim);
	return distance_claim;
}

/* Storing the value that a word already holds is no write: a read that overtakes it sees the same
 * value. */
void claim_store(const struct kahn_process *process, const struct instruction *store, int64_t word)
{
	struct distance_claim *distance_claim = store->array->distance_claim;
	distance_claim->stores++;
	if (distance_claim->rotates) {
		distance_claim->written[word] = distance_claim->stores;
		return;
	}
	scalar_read(store->type, distance_claim->before, store->array->data, word * store->count, 1,
	        store->count);
	if (!distance_claim->written[word] ||
	        memcmp(distance_claim->before, store->in[0],
	                (size_t)(store->count * scalar_register_bytes(store->type))) != 0)
		distance_claim->written[word] = process->iteration;
}

void claim_load(const struct kahn_process *process, const struct instruction *load, int64_t word)
{
	struct distance_claim *distance_claim = load->array->distance_claim;
	int64_t written = distance_claim->written[word];
	int64_t between = process->iteration - written;
	int width = type_is_real(load->type) ? 8 : load->type->width;
	bool kept = written <= process->drained ? !distance_claim->local
	                                        : !between || between >= distance_claim->distance;
	if (distance_claim->rotates) {
		between = distance_claim->stores - written + 1;
		kept = written && between == distance_claim->distance;
	}
	if (kept)
		return;
	distance_claim->nearest = !distance_claim->nearest || between < distance_claim->nearest
	        ? between
	        : distance_claim->nearest;
	if (distance_claim->overtakes)
		scalar_fill(load->type, load->out,
		        scalar_constant(load->type, NAN, WRONG >> (width < 8 ? 8 - width : 0)),
		        load->count);
}
