/* Compares networks. Networks for different run-time extents often pass the same words, because
 * rows come in blocks of which the last is padded. */
#include "predict/token.h"
#include <string.h>

static bool same_digits(const struct token_pattern *a, const struct token_pattern *b)
{
	bool same = a->accesses == b->accesses && a->digits == b->digits;
	for (int i = 0; same && i < a->digits; i++) {
		const struct token_digit *x = &a->digit[i];
		const struct token_digit *y = &b->digit[i];
		same = x->trips == y->trips && x->active == y->active && x->inside == y->inside &&
		        x->inside_active == y->inside_active && !x->value == !y->value;
		same = same &&
		        (!x->value || x->value == y->value ||
		                !memcmp(x->value, y->value, sizeof *x->value * (size_t)x->active));
	}
	return same;
}

static bool same_access(const struct token_access *a, const struct token_access *b)
{
	bool same = a->channel == b->channel && a->side == b->side && a->waits == b->waits &&
	        a->moves == b->moves && a->lag == b->lag;
	return same && same_digits(&a->pattern, &b->pattern);
}

static bool same_pipe(const struct token_pipe *a, const struct token_pipe *b)
{
	bool same = a->iterations == b->iterations && a->windows == b->windows &&
	        a->layer == b->layer && a->accesses == b->accesses;
	for (int i = 0; same && i < a->accesses; i++)
		same = same_access(&a->access[i], &b->access[i]);
	return same;
}

/* before: the preceding steps, NULL at the start; successive steps often belong to the same loop
 * and need no second comparison. */
static bool same_step(const struct token_step *a, const struct token_step *b,
        const struct token_step *before_a, const struct token_step *before_b)
{
	if (!a->access != !b->access || !a->pipe != !b->pipe)
		return false;
	if (before_a && a->access == before_a->access && a->pipe == before_a->pipe &&
	        b->access == before_b->access && b->pipe == before_b->pipe)
		return true;
	return (!a->access || same_access(a->access, b->access)) &&
	        (!a->pipe || same_pipe(a->pipe, b->pipe));
}

static bool same_process(const struct token_process *a, const struct token_process *b)
{
	bool same = a->rolled == b->rolled && a->steps.count == b->steps.count &&
	        a->layer.count == b->layer.count;
	for (size_t i = 0; same && i < a->layer.count; i++)
		same = a->layer.data[i] == b->layer.data[i];
	for (size_t i = 0; same && i < a->steps.count; i++) {
		const struct token_step *before_a = i ? &a->steps.data[i - 1] : NULL;
		const struct token_step *before_b = i ? &b->steps.data[i - 1] : NULL;
		same = same_step(&a->steps.data[i], &b->steps.data[i], before_a, before_b);
	}
	return same;
}

static bool same_channel(const struct token_channel *a, const struct token_channel *b)
{
	return a->blocks == b->blocks && a->depth == b->depth && a->words == b->words &&
	        a->read == b->read && a->process[TOKEN_READER] == b->process[TOKEN_READER] &&
	        a->process[TOKEN_WRITER] == b->process[TOKEN_WRITER];
}

bool token_network_same(const struct token_network *a, const struct token_network *b)
{
	bool same = a->processes.count == b->processes.count &&
	        a->channels.count == b->channels.count && a->layers == b->layers &&
	        a->skipped == b->skipped && a->freezes == b->freezes;
	same = same && a->alike == b->alike && (!a->skipped || a->alike);
	for (size_t i = 0; same && i < a->channels.count; i++)
		same = same_channel(&a->channels.data[i], &b->channels.data[i]);
	for (size_t i = 0; same && i < a->processes.count; i++)
		same = same_process(a->processes.data[i], b->processes.data[i]);
	return same;
}
