/* Sliding-window attention: layers that see only the last rows of the KV cache. A run-time extent
 * `symbol` counts the rows of the cache. In a layer with a window, loops over them skip whole tiles
 * of older rows. Such a loop is bounded by a derived symbol, an entry of the module attribute
 * `stream.sliding_window`: its value is the extent minus the rows skipped in that layer, so its
 * trip count follows from it as from any other extent. Counters are those of the loop without the
 * gap: iteration i means point i before the gap, and i + the skipped tiles after it. */
#ifndef STC_SLIDING_WINDOW_H
#define STC_SLIDING_WINDOW_H
#include "ir/ir.h"

#define SLIDING_WINDOW_ALL (-1)

struct sliding_window {
	const char *name, *symbol; /* derived symbol; the input it is derived from */
	int64_t tile;              /* rows are skipped in tiles of this many */
	/* First rows, which are never skipped (attention sinks). They and the rows before them in
	 * the operand lie in one tile. */
	int64_t unskipped_rows;
	int64_t most; /* maximum rows */
	int layers;   /* entries of `rows`; 1: the same window in all layers */
	/* [layers] past rows that a layer sees, without those of the launch; SLIDING_WINDOW_ALL:
	 * all */
	const int64_t *rows;
};

/* false: the name is no derived symbol */
bool sliding_window_named(
        const struct module *module, const char *name, struct sliding_window *sliding_window);
/* the same, in the module of this op */
bool sliding_window_of(
        const struct op *op, const char *name, struct sliding_window *sliding_window);
/* adds an entry and returns its name; an equal existing entry is reused */
const char *sliding_window_add(struct module *module, struct sliding_window sliding_window);
/* the input that a derived symbol comes from; other symbols are returned unchanged */
const char *sliding_window_symbol(const struct module *module, const char *name);
/* the same window in other tiles; other symbols are returned unchanged */
const char *sliding_window_in_tiles(
        struct module *module, const char *name, int64_t tile, int64_t unskipped_rows);
/* one symbol for a rolled layer loop that is name[i] in layer i; NULL if the windows do not
 * match */
const char *sliding_window_of_layers(struct module *module, int layers, const char *const *name);
/* rows of the cache for this value of the input */
int64_t sliding_window_extent(const struct sliding_window *sliding_window, int64_t value);
/* rows skipped in a layer for this value of the input */
int64_t sliding_window_rows_skipped(
        const struct sliding_window *sliding_window, int layer, int64_t value);
/* value of the derived symbol in a layer */
int64_t sliding_window_value(const struct sliding_window *sliding_window, int layer, int64_t value);
/* mean over the layers of the fraction of a full cache that a layer reads */
double sliding_window_fraction(const struct sliding_window *sliding_window);
/* fewest rows of a full cache that a layer reads; *layers: number of such layers */
int64_t sliding_window_rows_least(const struct sliding_window *sliding_window, int *layers);
/* iterations before the gap */
int64_t sliding_window_gap_start(
        const struct sliding_window *sliding_window, const struct run_time_trip *trip);
#endif
