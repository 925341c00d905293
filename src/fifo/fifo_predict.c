/* Runs the predictions of the depth search, two in parallel: of the same depths at both extents, or
 * of these and of the depths that would be tried next. Unused predictions are dropped and count for
 * nothing, so the search has the same result as a sequential one. */
#include "base/parallel.h"
#include "fifo/fifo_trim.h"
#include <string.h>

static struct fifo_prediction prediction_of(
        const struct fifo_network *n, const struct token_network *tokens)
{
	return (struct fifo_prediction){ .network = n,
		.tokens = tokens,
		.most = ARENA_ARRAY(n->arena, int64_t, n->count + 1),
		.end = ARENA_ARRAY(n->arena, int64_t, n->processes + 1) };
}

void fifo_predict_begin(struct trimming *t)
{
	const struct fifo_network *n = t->network;
	const struct token_network *tokens[TRIM_EXTENTS] = { n->tokens, n->smaller_extent };
	t->extents = n->smaller_extent ? TRIM_EXTENTS : 1;
	t->enough = true;
	t->most = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	for (int e = 0; e < TRIM_EXTENTS; e++) {
		t->end[e] = ARENA_ARRAY(n->arena, int64_t, n->processes + 1);
		t->prediction[e] = prediction_of(n, tokens[e]);
	}
	t->speculative = prediction_of(n, tokens[0]);
	t->speculative_depth = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
}

static void make(void *data, struct arena *scratch)
{
	struct fifo_prediction *p = data;
	struct token_result result = token_run(scratch, p->tokens, &p->options);
	p->ended = result.ended;
	p->cycles = result.cycles +
	        (p->tokens->skipped ? p->tokens->skipped * result.layers / p->tokens->layers : 0);
	p->work = result.work;
	memcpy(p->end, result.end, sizeof *p->end * (size_t)p->network->processes);
	/* most is only read after a launch that ends */
	for (int i = 0; p->ended && i < p->network->count; i++)
		p->most[i] = token_peak_words(&result.flow[i]);
}

/* Predicts at the extents first ... end - 1. */
static void make_at(
        struct trimming *t, int first, int end, const int64_t *depth, enum token_mode mode)
{
	struct task task[TRIM_EXTENTS];
	for (int e = first; e < end; e++) {
		t->prediction[e].options = (struct token_options){
			.mode = mode, .depth = depth, .end = t->end[e], .parts = t->network->parts
		};
		task[e - first] = (struct task){ make, &t->prediction[e] };
	}
	tasks_run(t->network->module->guard, end - first, task);
}

/* Uses a prediction: spends its work and copies its results. */
static bool take(struct trimming *t, int extent)
{
	const struct fifo_prediction *p = &t->prediction[extent];
	struct fifo_network *n = t->network;
	n->budget -= p->work;
	for (int i = 0; i < n->count; i++)
		t->most[i] = extent && t->most[i] > p->most[i] ? t->most[i] : p->most[i];
	for (int i = 0; p->options.mode == TOKEN_EARLIEST && i < n->processes; i++)
		t->end[extent][i] = p->end[i];
	t->cycles[extent] = p->cycles;
	return p->ended;
}

bool fifo_predict(struct trimming *t, const int64_t *depth, enum token_mode mode)
{
	bool ended = true;
	make_at(t, 0, t->extents, depth, mode);
	for (int e = 0; e < t->extents && ended; e++)
		ended = take(t, e);
	return ended;
}

void fifo_predict_set_limit(struct trimming *t, const int64_t *limit, int64_t work)
{
	t->limit = limit;
	t->limit_work = work;
	for (int e = 0; e < t->extents; e++)
		t->limit_end[e] = arena_copy(t->network->arena, t->end[e],
		        sizeof **t->end * (size_t)t->network->processes);
}

bool fifo_predict_ends(struct trimming *t, const int64_t *depth)
{
	if (!t->limit || memcmp(t->limit, depth, sizeof *depth * (size_t)t->network->count) != 0)
		return fifo_predict(t, depth, TOKEN_EARLIEST);
	t->network->budget -= t->limit_work;
	for (int e = 0; e < t->extents; e++)
		memcpy(t->end[e], t->limit_end[e], sizeof **t->end * (size_t)t->network->processes);
	return true;
}

static bool is_made(struct trimming *t, const int64_t *depth)
{
	bool made = t->has_speculative &&
	        !memcmp(t->speculative_depth, depth, sizeof *depth * (size_t)t->network->count);
	struct fifo_prediction other = t->prediction[0];
	if (made) {
		t->prediction[0] = t->speculative;
		t->speculative = other;
	}
	t->has_speculative = false;
	return made;
}

/* Predicts at the most extents, and speculatively also the depths that are tried next. */
static void make_with_next(struct trimming *t, const int64_t *depth, const int64_t *next)
{
	struct task task[] = { { make, &t->prediction[0] }, { make, &t->speculative } };
	t->prediction[0].options = (struct token_options){
		.mode = TOKEN_EARLIEST, .depth = depth, .parts = t->network->parts
	};
	t->speculative.options = (struct token_options){
		.mode = TOKEN_EARLIEST, .depth = next, .parts = t->network->parts
	};
	t->has_speculative = next;
	if (next)
		memcpy(t->speculative_depth, next, sizeof *next * (size_t)t->network->count);
	tasks_run(t->network->module->guard, next ? 2 : 1, task);
}

/* After depths that were enough, or if the next ones are unknown, both extents are predicted at
 * once. Otherwise most depths are not enough, and the smaller extents are predicted only after the
 * most. */
bool fifo_predict_enough(struct trimming *t, const int64_t *depth, const int64_t *next)
{
	int made = t->enough || !next ? t->extents : 1;
	if (is_made(t, depth))
		made = 1;
	else if (made == 1)
		make_with_next(t, depth, next);
	else
		make_at(t, 0, made, depth, TOKEN_EARLIEST);
	t->enough = true;
	for (int e = 0; t->enough && e < t->extents; e++) {
		if (e == made)
			make_at(t, made++, e + 1, depth, TOKEN_EARLIEST);
		t->enough = take(t, e) && t->cycles[e] <= t->allowed[e];
	}
	return t->enough;
}
