/* Beside many counted tokens all of a state's past rows come through one stream.  Every second, third or fourth word is brought by another loader, through ports of its own: then so many times as many of the slices' adapters have
 * something to bring, each less.  Words are dealt out head by head, and each loader reads as many of a head's as the one that has most. */
#include "ir/workload.h"
#include "ports/dealt.h"
#include "ir/lookback.h"

#define PARTS_MOST 4          /* loaders */
#define SIDE_BY_SIDE 4        /* ports that a loader has at most: wider words come in halves */
#define WAITING 16            /* words on their way to the process that takes them */

int loops_again(const struct image *image)
{
	return image->order.dims > 1 && image->order.run_time && image->order.run_time[0] && !image->pitch[0];
}

static const struct run_time_trip *tiles_of(const struct image *image, int dim)
{
	return image->order.run_time && dim < image->order.dims ? image->order.run_time[dim] : NULL;
}

/* Do the loops from one on walk words that follow each other? */
static bool is_dense(const struct image *image, int from)
{
	int64_t words = 1;
	for (int i = image->order.dims - 1; i >= from; i--) {
		if (image->pitch[i] != words)
			return false;
		words *= image->order.trip[i];
	}
	return true;
}

static int64_t head_words(const struct image *image, const struct dealt *dealt)
{
	return dealt->inside > loops_again(image) ? image->pitch[dealt->inside - 1] : image->words;
}

/* A gap between rows that are read is whole tiles: where it would change whose turn it is, nothing is dealt out. */
static bool fits(const struct module *module, const struct image *image, const struct dealt *dealt)
{
	struct lookback lookback;
	bool gap = lookback_find(module, tiles_of(image, dealt->inside)->symbol, &lookback);
	return head_words(image, dealt) % dealt->parts == 0 && (dealt->tile % dealt->parts == 0 || !gap);
}

/* Each word as two of half as many lanes. */
static struct image halved(struct arena *arena, const struct image *image)
{
	int dims = image->order.dims;
	struct image half = *image;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, dims + 1), *stride = ARENA_ARRAY(arena, int64_t, dims + 1);
	const struct run_time_trip **run_time = ARENA_ARRAY(arena, const struct run_time_trip *, dims + 1);
	half.pitch = ARENA_ARRAY(arena, int64_t, dims + 1);
	half.order.lanes /= 2;
	half.words *= 2;
	for (int i = 0; i < dims; i++) {
		trip[i] = image->order.trip[i];
		stride[i] = image->order.stride[i];
		run_time[i] = image->order.run_time ? image->order.run_time[i] : NULL;
		half.pitch[i] = 2 * image->pitch[i];
	}
	trip[dims] = 2;
	stride[dims] = half.order.lanes * half.order.lane_stride;
	half.pitch[dims] = 1;
	half.order.trip = trip;
	half.order.stride = stride;
	half.order.run_time = run_time;
	half.order.dims++;
	return half;
}

static int64_t tile_words(const struct image *image, int inside)
{
	int64_t words = image->order.trip[inside] / tiles_of(image, inside)->most;
	for (int i = inside + 1; i < image->order.dims; i++)
		words *= image->order.trip[i];
	return words;
}

/* An image whose words are the load's, or halves of them: among so many loaders, or fewer. */
static struct dealt deal(const struct module *module, const struct image *image, int inside, bool halves, int parts)
{
	struct dealt dealt = {.parts = parts, .halves = halves, .inside = inside, .tile = tile_words(image, inside), .lead = image->order.offset / image->order.lanes};
	while (dealt.parts > 1 && !fits(module, image, &dealt))
		dealt.parts--;
	dealt.even = dealt.tile % dealt.parts == 0;
	return dealt;
}

struct dealt dealt_of(struct design *design, struct image *image, const char *state, int64_t bits, bool halves)
{
	int inside = loops_again(image), most = (int)choice_count(&design->context->choices, CHOICE_STATE_LOADERS), whole = most > 2 ? most - 1 : most;       /* what is as wide as the word takes more room on its die */
	inside += !tiles_of(image, inside);
	if (!unit_counts_tiles(design->source->region[0]) || !tiles_of(image, inside) || !is_dense(image, inside) || !append_has_rows(design, state))
		return (struct dealt){.parts = 1};
	if (halves && bits > SIDE_BY_SIDE * PORT_BITS) {
		struct image half = halved(design->module->arena, image);
		struct dealt dealt = deal(design->module, &half, inside, true, most);
		if (dealt.parts > 1) {
			*image = half;
			return dealt;
		}
	}
	return deal(design->module, image, inside, false, bits > FEW_PORTS * PORT_BITS ? whole : most);
}

static const struct run_time_trip *shared_trip(struct arena *arena, const struct run_time_trip *tiles, int parts)
{
	struct run_time_trip *trip = arena_copy(arena, tiles, sizeof *tiles);
	trip->among = parts;
	return trip;
}

struct nest {
	int dims;
	int64_t *trip, *pitch;
	const struct run_time_trip **run_time;
};

static void add_loop(struct nest *nest, int64_t trip, int64_t pitch, const struct run_time_trip *run_time)
{
	nest->trip[nest->dims] = trip;
	nest->pitch[nest->dims] = pitch;
	nest->run_time[nest->dims++] = run_time;
}

/* The loops outside of words, then those over the turns of a head; pitches are in words of a loader's buffer. */
static struct nest nest_of(struct arena *arena, const struct image *image, const struct dealt *dealt)
{
	int most = dealt->inside + 4;
	struct nest nest = {0, ARENA_ARRAY(arena, int64_t, most), ARENA_ARRAY(arena, int64_t, most), ARENA_ARRAY(arena, const struct run_time_trip *, most)};
	const struct run_time_trip *tiles = tiles_of(image, dealt->inside);
	for (int i = 0; i < dealt->inside; i++)
		add_loop(&nest, image->order.trip[i], image->pitch[i] / dealt->parts, tiles_of(image, i));
	if (dealt->even) {
		int64_t turns = dealt->tile / dealt->parts;
		add_loop(&nest, tiles->most, turns, tiles);
		add_loop(&nest, turns, 1, NULL);
	} else {
		add_loop(&nest, tiles->most * dealt->tile, 1, shared_trip(arena, tiles, dealt->parts));
	}
	return nest;
}

struct image dealt_part(struct arena *arena, const struct image *image, const struct dealt *dealt, int number)
{
	struct image part = *image;
	if (dealt->parts == 1)
		return part;
	struct nest nest = nest_of(arena, image, dealt);
	int64_t first = (dealt->lead + dealt->parts - 1 - number) / dealt->parts;
	part.order = (struct sequence){.dims = nest.dims, .trip = nest.trip, .stride = nest.pitch, .run_time = nest.run_time, .lanes = image->order.lanes, .lane_stride = image->order.lane_stride};
	part.order.offset = first * part.order.lanes;
	part.pitch = nest.pitch;
	part.words = image->words / dealt->parts;
	return part;
}

int64_t dealt_beyond(const struct dealt *dealt)
{
	return dealt->parts > 1 && !dealt->even;
}

/* Loops over whose turn it is: of four, one for each bit, as four words are chosen among in two steps. */
static int loops_of_turns(const struct dealt *dealt)
{
	return dealt->parts == 4 ? 2 : 1;
}

/* Does the head have the word whose turn it is?  NULL: always.  round: the counter of rounds, in front of those of turns. */
static struct value *is_there(struct process *p, const struct image *image, const struct dealt *dealt, struct value *const *round)
{
	int turns = loops_of_turns(dealt);
	const int64_t pitch[3] = {dealt->parts, turns, 1};
	return dealt->even ? NULL : make_below(p, make_address(p, 1 + turns, round, pitch, 0), process_count(p, tiles_of(image, dealt->inside), dealt->tile));
}

/* Of the words that are taken at each turn, that of this one. */
static struct value *choose_word(struct process *p, const struct dealt *dealt, struct value *const *turn, struct value *const *mine, struct value *const *taken)
{
	struct value *word = taken[0];
	if (loops_of_turns(dealt) > 1) {
		struct value *low = make_equal(p, turn[1], 1), *high = make_equal(p, turn[0], 1);
		return make_select(p, high, make_select(p, low, taken[3], taken[2]), make_select(p, low, taken[1], taken[0]));
	}
	for (int i = 1; i < dealt->parts; i++)
		word = make_select(p, mine[i], taken[i], word);
	return word;
}

struct value **dealt_join(struct design *design, const struct image *image, const struct dealt *dealt, struct value *out)
{
	static const int64_t pitch[2] = {2, 1};
	struct process p = process_new(design, "turns");
	struct arena *arena = p.module->arena;
	struct nest nest = nest_of(arena, image, dealt);
	struct value **fifo = ARENA_ARRAY(arena, struct value *, dealt->parts), **counter = ARENA_ARRAY(arena, struct value *, nest.dims + 2), *mine[PARTS_MOST] = {0}, *taken[PARTS_MOST] = {0};
	int first = nest.dims, turns = loops_of_turns(dealt);
	for (int i = 0; i < turns; i++)
		add_loop(&nest, dealt->parts / turns, 0, NULL);
	process_layers(&p);
	int opened = process_nest_to(&p, nest.dims, nest.trip, nest.run_time, 1, counter);
	struct value *turn = turns > 1 ? make_address(&p, turns, counter + first, pitch, 0) : counter[first];
	for (int i = 0; i < dealt->parts; i++) {
		int64_t at = (i + dealt->parts - dealt->lead % dealt->parts) % dealt->parts;
		fifo[i] = design_fifo(design, "s_turn", out->type->element, WAITING);
		design_prefetch(design, fifo[i]);
		mine[at] = make_equal(&p, turn, at);
		taken[at] = make_take(&p, mine[at], process_argument(&p, fifo[i], text_format(arena, "x%d", i)));
	}
	struct value *word = choose_word(&p, dealt, counter + first, mine, taken);
	make_push(&p, is_there(&p, image, dealt, counter + first - 1), word, process_argument(&p, out, "y"));
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
	return fifo;
}
