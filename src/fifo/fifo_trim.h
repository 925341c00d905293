/* A search for depths by runs of a launch (fifo_trim.c), and what predicts the runs
 * (fifo_predict.c). */
#ifndef STC_FIFO_TRIM_H
#define STC_FIFO_TRIM_H
#include "fifo/fifo.h"
#include "simulate/cycle_sim.h"

#define TRIM_EXTENTS 2 /* the most run-time extents, and lesser ones */

struct fifo_prediction {
	const struct fifo_network *network;
	const struct token_network *tokens;
	struct token_options options;
	bool ended;
	/* of all layers, about, where some are left out: else what is behind them could hide
	 * that they are slow */
	int64_t cycles, work;
	int64_t *most, *end; /* [channels], [processes] */
};

struct trimming {
	struct fifo_network *network;
	struct cycle_network *simulated; /* NULL: the token model */
	struct fifo_prediction prediction[TRIM_EXTENTS];
	/* of depths that may be tried next, at the most extents */
	struct fifo_prediction speculative;
	int64_t *speculative_depth; /* [channels] those; */
	bool has_speculative;       /* there are some */
	int extents;
	bool enough;                  /* the last prediction that was asked was */
	int64_t cycles[TRIM_EXTENTS]; /* of the last run */
	int64_t allowed[TRIM_EXTENTS];
	int64_t *end[TRIM_EXTENTS]; /* [processes] of the last earliest run */
	const int64_t *limit;       /* NULL, or depths that were predicted first; */
	int64_t *limit_end[TRIM_EXTENTS], limit_work; /* and what came of it */
	int64_t reserve;                              /* of the budget, for the proof */
	int64_t *trial, *most;                        /* [channels] */
};

/* What predictions need of a trimming whose network is set. */
void fifo_predict_begin(struct trimming *trimming);
/* Fills cycles and most; false: the launch does not end.  Both extents are predicted side by
 * side. */
bool fifo_predict(struct trimming *trimming, const int64_t *depth, enum token_mode mode);
/* For fifo_predict_ends: what has just been predicted is of these depths, which stay. */
void fifo_predict_set_limit(struct trimming *trimming, const int64_t *limit, int64_t work);
/* Fills end as fifo_predict does, with the same budget spent. */
bool fifo_predict_ends(struct trimming *trimming, const int64_t *depth);
/* Do launches with these depths take no longer than is allowed?  next: depths that are asked
 * about next where they take longer, for which there may be time beside these; NULL: that is not
 * known. */
bool fifo_predict_enough(struct trimming *trimming, const int64_t *depth, const int64_t *next);

#endif
