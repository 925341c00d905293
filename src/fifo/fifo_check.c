/* A module of hardware level as it was read.  What the passes before would have made holds for
 * what they made; somebody may have changed it since. */
#include "fifo/fifo.h"

#define REPORTED_MOST 4 /* who wait; the others are counted */
/* of a run: where that does not last, sizing FIFOs says that nothing is shown */
#define BUDGET 36000000

/* Who waits for what where a launch stops: first those that wait for room, as others mostly wait
 * behind them. */
static const char *waits(const struct fifo_network *n, const struct token_network *tokens,
        const struct token_counter *counter, const struct value **channel)
{
	static const enum token_side order[TOKEN_SIDES] = { TOKEN_WRITER, TOKEN_READER };
	struct text text = text_new(n->arena);
	int told = 0;
	int others = 0;
	for (int s = 0; s < TOKEN_SIDES; s++)
		for (int i = 0; i < n->count; i++) {
			int process = tokens->channels.data[i].process[order[s]];
			const char *name = attr_text_or(n->fifo[i].channel->def, KEY_NAME, "?");
			if (!token_counter_waits(counter, i, order[s]) || process < 0)
				continue;
			*channel = told ? *channel : n->fifo[i].channel;
			if (told == REPORTED_MOST)
				others++;
			else if (order[s] == TOKEN_READER)
				text_add(&text, "%s%s waits for a word of %s", told++ ? "; " : "",
				        fifo_end_name(n, process), name);
			else
				text_add(&text, "%s%s waits for space in %s, whose depth is %lld",
				        told++ ? "; " : "", fifo_end_name(n, process), name,
				        (long long)n->fifo[i].channel->type->depth);
		}
	if (others)
		text_add(&text, "; and %d more wait", others);
	return text.data;
}

/* NULL: a launch ends, or it takes too long to tell. */
static const char *stops(const struct fifo_network *n, const struct token_network *tokens,
        bool in_order, const struct value **channel)
{
	int64_t *depth = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	int64_t work = 0;
	for (int i = 0; i < n->count; i++)
		depth[i] = n->fifo[i].channel->type->depth;
	struct token_counter *counter = token_counter_new(n->arena, tokens, depth, in_order);
	return token_counter_run(counter, BUDGET, &work) == TOKEN_STUCK
	        ? waits(n, tokens, counter, channel)
	        : NULL;
}

static bool ends(const struct fifo_network *n, struct diag *diag)
{
	const struct value *channel = NULL;
	const char *why = NULL;
	for (int i = 0; !why && i < n->extents; i++)
		for (int way = 0; n->at[i].tokens && !why && way < 1 + n->at[i].tokens->freezes;
		        way++)
			why = stops(n, n->at[i].tokens, !way, &channel);
	if (!why)
		return true;
	diag_error(diag, channel->def->location, "a launch deadlocks: %s", why);
	return diag_note(diag,
	        "accepted are loops that take words in an order in which they come, and FIFOs that "
	        "are deep enough for it");
}

bool fifo_report_unbalanced(struct diag *diag, const struct value *channel, const char *unbalanced)
{
	diag_error(diag, channel->def->location, "%s", unbalanced);
	return diag_note(diag,
	        "accepted are as many words as are read: the loops around a stream.push or "
	        "stream.take, and its condition, or the type of a stream, say how many there are");
}

bool fifo_check(struct pass_context *context, struct module *module, bool depths)
{
	struct arena *arena = arena_within(module->arena);
	struct fifo_network *n = fifo_collect(arena, context, module);
	const struct value *channel;
	fifo_open_extents(n);
	const char *unbalanced = fifo_unbalanced(n, &channel);
	bool fine = unbalanced ? fifo_report_unbalanced(module->diag, channel, unbalanced)
	                       : !depths || ends(n, module->diag);
	arena_free(arena);
	return fine;
}
