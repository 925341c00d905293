/* The depth search (fifo_trim.c) and its predictions of launches (fifo_predict.c). */
#ifndef STC_FIFO_TRIM_H
#define STC_FIFO_TRIM_H
#include "fifo/fifo.h"
#include "simulate/cycle_sim.h"

#define TRIM_EXTENTS 2 /* the most run-time extents, and smaller ones */

struct fifo_prediction {
	const struct fifo_network *network;
	const struct token_network *tokens;
	struct token_options options;
	bool ended;
	/* cycles: an estimate for all layers if some are skipped, so that later work cannot hide
	 * slow layers */
	int64_t cycles, work;
	int64_t *most, *end; /* [channels], [processes] */
};

struct trimming {
	struct fifo_network *network;
	struct cycle_network *simulated; /* NULL: the token model is used */
	struct fifo_prediction prediction[TRIM_EXTENTS];
	/* of depths that may be tried next, at the most extents */
	struct fifo_prediction speculative;
	int64_t *speculative_depth; /* [channels] these depths */
	bool has_speculative;       /* speculative is valid */
	int extents;
	bool enough;                  /* the last prediction was within the allowed cycles */
	int64_t cycles[TRIM_EXTENTS]; /* of the last run */
	int64_t allowed[TRIM_EXTENTS];
	/* [processes] end of each in the last run of the earliest schedule */
	int64_t *end[TRIM_EXTENTS];
	const int64_t *limit; /* NULL, or depths that were predicted first */
	int64_t *limit_end[TRIM_EXTENTS], limit_work; /* and the results of that prediction */
	int64_t reserve;                              /* part of the budget for the proof */
	int64_t *trial, *most;                        /* [channels] */
};

/* Prepares the predictions of a search whose network is set. */
void fifo_predict_begin(struct trimming *trimming);
/* Sets cycles and most; false: the launch does not end. Both extents are predicted in parallel. */
bool fifo_predict(struct trimming *trimming, const int64_t *depth, enum token_mode mode);
/* Records that the last prediction was of these depths, for fifo_predict_ends. */
void fifo_predict_set_limit(struct trimming *trimming, const int64_t *limit, int64_t work);
/* Sets end as fifo_predict does, and spends the same budget. */
bool fifo_predict_ends(struct trimming *trimming, const int64_t *depth);
/* Do launches with these depths take no more than the allowed cycles? next: depths that are tried
 * next if they do not, which may be predicted in parallel; NULL: unknown. */
bool fifo_predict_enough(struct trimming *trimming, const int64_t *depth, const int64_t *next);

#endif
