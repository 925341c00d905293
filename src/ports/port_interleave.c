/* Interleaves the words of a KV cache over several loaders. With dynamic tiles one stream brings
 * all past rows of a state; with n loaders, each of which reads every n-th word through ports of
 * its own, n times as many of the engine's adapters share the load. Words are distributed head by
 * head, and each loader reads as many words of a head as the one that has most. */
#include "ports/append_internal.h"
#include "ir/workload.h"
#include "ports/port_interleave.h"
#include "ir/sliding_window.h"

#define PARTS_MOST 4        /* loaders at most */
#define LOADER_PORTS_MOST 4 /* ports of a loader at most: wider words come in halves */
#define MERGE_FIFO_WORDS 16 /* depth of the FIFOs to the process that merges words */

int image_repeat_loops(const struct image *image)
{
	return image->order.dims > 1 && image->order.run_time && image->order.run_time[0] &&
	        !image->pitch[0];
}

static const struct run_time_trip *tiles_of(const struct image *image, int dim)
{
	return image->order.run_time && dim < image->order.dims ? image->order.run_time[dim] : NULL;
}

/* Do the loops from `from` on walk consecutive words? */
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

static int64_t head_words(const struct image *image, const struct port_interleave *port_interleave)
{
	return port_interleave->head_loop > image_repeat_loops(image)
	        ? image->pitch[port_interleave->head_loop - 1]
	        : image->words;
}

/* A gap between the rows that are read is whole tiles; if it would change which loader has a word,
 * words are not interleaved. */
static bool fits_heads(const struct module *module, const struct image *image,
        const struct port_interleave *port_interleave)
{
	struct sliding_window sliding_window;
	bool gap = sliding_window_named(
	        module, tiles_of(image, port_interleave->head_loop)->symbol, &sliding_window);
	return head_words(image, port_interleave) % port_interleave->parts == 0 &&
	        (port_interleave->tile % port_interleave->parts == 0 || !gap);
}

/* each word as two of half as many lanes */
static struct image split_in_halves(struct arena *arena, const struct image *image)
{
	int dims = image->order.dims;
	struct image half = *image;
	int64_t *trip = ARENA_ARRAY(arena, int64_t, dims + 1);
	int64_t *stride = ARENA_ARRAY(arena, int64_t, dims + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, dims + 1);
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

static int64_t tile_words(const struct image *image, int head_loop)
{
	int64_t words = image->order.trip[head_loop] / tiles_of(image, head_loop)->most;
	for (int i = head_loop + 1; i < image->order.dims; i++)
		words *= image->order.trip[i];
	return words;
}

/* Interleaves words, or halves of them, over `parts` loaders, or over as many fewer as fit. */
static struct port_interleave interleave_image(const struct module *module,
        const struct image *image, int head_loop, bool half_words, int parts)
{
	struct port_interleave port_interleave = { .parts = parts,
		.half_words = half_words,
		.head_loop = head_loop,
		.tile = tile_words(image, head_loop),
		.head_start = image->order.offset / image->order.lanes };
	while (port_interleave.parts > 1 && !fits_heads(module, image, &port_interleave))
		port_interleave.parts--;
	port_interleave.even = port_interleave.tile % port_interleave.parts == 0;
	return port_interleave;
}

struct port_interleave port_interleave_of(struct design *design, struct image *image,
        const char *state, int64_t bits, bool half_words)
{
	int head_loop = image_repeat_loops(image);
	int most = (int)choice_count(&design->context->choices, CHOICE_KV_LOADERS);
	/* logic that is as wide as the word takes more room on its die */
	int whole = most > 2 ? most - 1 : most;
	head_loop += !tiles_of(image, head_loop);
	if (workload_of(design->source) != WORKLOAD_TILED_COUNTED_TOKENS ||
	        !tiles_of(image, head_loop) || !is_dense(image, head_loop) ||
	        !append_has_rows(design, state))
		return (struct port_interleave){ .parts = 1 };
	if (half_words && bits > LOADER_PORTS_MOST * PORT_BITS) {
		struct image half = split_in_halves(design->module->arena, image);
		struct port_interleave port_interleave =
		        interleave_image(design->module, &half, head_loop, true, most);
		if (port_interleave.parts > 1) {
			*image = half;
			return port_interleave;
		}
	}
	return interleave_image(design->module, image, head_loop, false,
	        bits > FEW_PORTS * PORT_BITS ? whole : most);
}

static const struct run_time_trip *shared_trip(
        struct arena *arena, const struct run_time_trip *tiles, int parts)
{
	struct run_time_trip *trip = arena_copy(arena, tiles, sizeof *tiles);
	trip->interleave = parts;
	return trip;
}

struct port_nest {
	int dims;
	int64_t *trip, *pitch;
	const struct run_time_trip **run_time;
};

static void add_loop(
        struct port_nest *nest, int64_t trip, int64_t pitch, const struct run_time_trip *run_time)
{
	nest->trip[nest->dims] = trip;
	nest->pitch[nest->dims] = pitch;
	nest->run_time[nest->dims++] = run_time;
}

/* the loops outside of a head, and those over rounds of its words; pitches are in words of a
 * loader's buffer */
static struct port_nest nest_of(struct arena *arena, const struct image *image,
        const struct port_interleave *port_interleave)
{
	int most = port_interleave->head_loop + 4;
	struct port_nest nest = { 0, ARENA_ARRAY(arena, int64_t, most),
		ARENA_ARRAY(arena, int64_t, most),
		ARENA_ARRAY(arena, const struct run_time_trip *, most) };
	const struct run_time_trip *tiles = tiles_of(image, port_interleave->head_loop);
	for (int i = 0; i < port_interleave->head_loop; i++)
		add_loop(&nest, image->order.trip[i], image->pitch[i] / port_interleave->parts,
		        tiles_of(image, i));
	if (port_interleave->even) {
		int64_t rounds = port_interleave->tile / port_interleave->parts;
		add_loop(&nest, tiles->most, rounds, tiles);
		add_loop(&nest, rounds, 1, NULL);
	} else {
		add_loop(&nest, tiles->most * port_interleave->tile, 1,
		        shared_trip(arena, tiles, port_interleave->parts));
	}
	return nest;
}

struct image port_interleave_part(struct arena *arena, const struct image *image,
        const struct port_interleave *port_interleave, int number)
{
	struct image part = *image;
	if (port_interleave->parts == 1)
		return part;
	struct port_nest nest = nest_of(arena, image, port_interleave);
	int64_t first = (port_interleave->head_start + port_interleave->parts - 1 - number) /
	        port_interleave->parts;
	part.order = (struct sequence){ .dims = nest.dims,
		.trip = nest.trip,
		.stride = nest.pitch,
		.run_time = nest.run_time,
		.lanes = image->order.lanes,
		.lane_stride = image->order.lane_stride };
	part.order.offset = first * part.order.lanes;
	part.pitch = nest.pitch;
	part.words = image->words / port_interleave->parts;
	return part;
}

int64_t port_interleave_padding(const struct port_interleave *port_interleave)
{
	return port_interleave->parts > 1 && !port_interleave->even;
}

/* Loops that select a loader: with four one for each bit, as one of four words is selected in
 * two steps. */
static int select_loops(const struct port_interleave *port_interleave)
{
	return port_interleave->parts == 4 ? 2 : 1;
}

/* Has the head a word in this iteration? NULL: always. round: counter of rounds, followed by those
 * of select_loops. */
static struct value *head_has_word(struct process *p, const struct image *image,
        const struct port_interleave *port_interleave, struct value *const *round)
{
	int loops = select_loops(port_interleave);
	const int64_t pitch[3] = { port_interleave->parts, loops, 1 };
	if (port_interleave->even)
		return NULL;
	struct value *rows = process_trip_count(
	        p, tiles_of(image, port_interleave->head_loop), port_interleave->tile);
	return make_below(p, make_address(p, 1 + loops, round, pitch, 0), rows);
}

/* of the words that are popped, the one of this iteration */
static struct value *choose_word(struct process *p, const struct port_interleave *port_interleave,
        struct value *const *selected, struct value *const *selects, struct value *const *taken)
{
	struct value *word = taken[0];
	if (select_loops(port_interleave) > 1) {
		struct value *low = make_equal(p, selected[1], 1);
		struct value *high = make_equal(p, selected[0], 1);
		struct value *first = make_select(p, low, taken[1], taken[0]);
		struct value *last = make_select(p, low, taken[3], taken[2]);
		return make_select(p, high, last, first);
	}
	for (int i = 1; i < port_interleave->parts; i++)
		word = make_select(p, selects[i], taken[i], word);
	return word;
}

struct value **port_interleave_merge(struct design *design, const struct image *image,
        const struct port_interleave *port_interleave, struct value *out)
{
	static const int64_t pitch[2] = { 2, 1 };
	struct process p = process_new(design, "interleave");
	struct arena *arena = p.module->arena;
	struct port_nest nest = nest_of(arena, image, port_interleave);
	struct value **fifo = ARENA_ARRAY(arena, struct value *, port_interleave->parts);
	struct value **counter = ARENA_ARRAY(arena, struct value *, nest.dims + 2);
	struct value *selects[PARTS_MOST] = { 0 };
	struct value *taken[PARTS_MOST] = { 0 };
	int first = nest.dims;
	int loops = select_loops(port_interleave);
	for (int i = 0; i < loops; i++)
		add_loop(&nest, port_interleave->parts / loops, 0, NULL);
	process_layers(&p);
	int opened = process_nest_run_time(
	        &p, (struct loop_bounds){ nest.dims, nest.trip, nest.run_time }, 1, counter);
	struct value *selected =
	        loops > 1 ? make_address(&p, loops, counter + first, pitch, 0) : counter[first];
	for (int i = 0; i < port_interleave->parts; i++) {
		int64_t at = (i + port_interleave->parts -
		                     port_interleave->head_start % port_interleave->parts) %
		        port_interleave->parts;
		fifo[i] = design_fifo(design, "s_interleave", out->type->element, MERGE_FIFO_WORDS);
		design_prefetch(design, fifo[i]);
		selects[at] = make_equal(&p, selected, at);
		taken[at] = make_pop(&p, selects[at],
		        process_argument(&p, fifo[i], text_format(arena, "x%d", i)));
	}
	struct value *word = choose_word(&p, port_interleave, counter + first, selects, taken);
	struct value *to = process_argument(&p, out, "y");
	make_push(&p, head_has_word(&p, image, port_interleave, counter + first - 1), word, to);
	process_close(&p, opened + (design->layers > 0));
	process_finish(&p);
	return fifo;
}
