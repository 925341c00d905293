/* Layers that look back only so many rows.  A run-time extent `symbol` counts the rows that
 * there are; where a layer sees the last ones only, the loops over them leave whole tiles of
 * older rows out.  Such loops name a symbol of their own, an entry of the module's
 * `stream.sliding_window`, whose value is the extent less the rows that are left out in that
 * layer; so the number of turns follows from it as from any other extent.  Counters are those of
 * the loop without the gap: turn i stands for point i before the gap, and for i + the tiles left
 * out behind it. */
#ifndef STC_LOOKBACK_H
#define STC_LOOKBACK_H
#include "ir/ir.h"

#define SLIDING_WINDOW_ALL (-1)

struct sliding_window {
	const char *name, *symbol; /* its own; the input's */
	int64_t tile;              /* rows are left out in tiles of so many */
	/* the first rows, which are never left out: they lie in one tile with what is in front
	 * of them */
	int64_t unskipped_rows;
	int64_t most; /* rows */
	int layers;   /* 1: the same in all */
	/* [layers] that a layer sees, besides those of the launch; SLIDING_WINDOW_ALL: all */
	const int64_t *rows;
};

/* false: a plain symbol */
bool sliding_window_named(
        const struct module *module, const char *name, struct sliding_window *sliding_window);
/* of the module that the op is in */
bool sliding_window_of(
        const struct op *op, const char *name, struct sliding_window *sliding_window);
/* its name; an equal one is found again */
const char *sliding_window_add(struct module *module, struct sliding_window sliding_window);
/* the input that a symbol comes from */
const char *sliding_window_symbol(const struct module *module, const char *name);
/* the same in larger tiles; a plain symbol stays */
const char *sliding_window_in_tiles(
        struct module *module, const char *name, int64_t tile, int64_t unskipped_rows);
/* the symbol that is name[i] in layer i; NULL: there is none */
const char *sliding_window_of_layers(struct module *module, int layers, const char *const *name);
/* rows, where the input has this value */
int64_t sliding_window_extent(const struct sliding_window *sliding_window, int64_t value);
/* left out where the input has this value */
int64_t sliding_window_rows_skipped(
        const struct sliding_window *sliding_window, int layer, int64_t value);
/* of its own symbol */
int64_t sliding_window_value(const struct sliding_window *sliding_window, int layer, int64_t value);
/* of the most rows, what layers see: the mean */
double sliding_window_fraction(const struct sliding_window *sliding_window);
/* of the most rows, what a layer sees at the least; in so many of them */
int64_t sliding_window_rows_least(const struct sliding_window *sliding_window, int *layers);
/* turns before the gap */
int64_t sliding_window_gap_start(
        const struct sliding_window *sliding_window, const struct run_time_trip *trip);
#endif
