/* Checks a module of hardware level that was read as a dump, since someone may have changed what
 * earlier passes guarantee. */
#include "fifo/fifo.h"

#define REPORTED_MOST 4 /* waits that are listed; further ones are only counted */
/* of a run; if it is exceeded, the launch counts as ending, and FIFO sizing reports that nothing is
 * proven */
#define BUDGET 36000000

/* Lists what processes wait for in a deadlock, first those that wait for space, since they mostly
 * cause the others. */
static const char *describe_waits(const struct fifo_network *n, const struct token_network *tokens,
        const struct token_counter *counter, const struct value **channel)
{
	static const enum token_side order[TOKEN_SIDES] = { TOKEN_WRITER, TOKEN_READER };
	struct text text = text_new(n->arena);
	int listed = 0;
	int others = 0;
	for (int s = 0; s < TOKEN_SIDES; s++)
		for (int i = 0; i < n->count; i++) {
			int process = tokens->channels.data[i].process[order[s]];
			const char *name = attr_text_or(n->fifo[i].channel->def, KEY_NAME, "?");
			if (!token_counter_waits(counter, i, order[s]) || process < 0)
				continue;
			*channel = listed ? *channel : n->fifo[i].channel;
			if (listed == REPORTED_MOST)
				others++;
			else if (order[s] == TOKEN_READER)
				text_add(&text, "%s%s waits for a word of %s", listed++ ? "; " : "",
				        fifo_end_name(n, process), name);
			else
				text_add(&text, "%s%s waits for space in %s, whose depth is %lld",
				        listed++ ? "; " : "", fifo_end_name(n, process), name,
				        (long long)n->fifo[i].channel->type->depth);
		}
	if (others)
		text_add(&text, "; and %d more wait", others);
	return text.data;
}

/* Describes the deadlock of a launch; NULL: it ends, or the budget is exceeded. */
static const char *describe_deadlock(const struct fifo_network *n,
        const struct token_network *tokens, bool in_order, const struct value **channel)
{
	int64_t *depth = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	int64_t work = 0;
	for (int i = 0; i < n->count; i++)
		depth[i] = n->fifo[i].channel->type->depth;
	struct token_counter *counter = token_counter_new(n->arena, tokens, depth, in_order);
	return token_counter_run(counter, BUDGET, &work) == TOKEN_STUCK
	        ? describe_waits(n, tokens, counter, channel)
	        : NULL;
}

static bool check_ends(const struct fifo_network *n, struct diag *diag)
{
	const struct value *channel = NULL;
	const char *why = NULL;
	for (int i = 0; !why && i < n->extents; i++)
		for (int run = 0; n->at[i].tokens && !why && run < 1 + n->at[i].tokens->freezes;
		        run++)
			why = describe_deadlock(n, n->at[i].tokens, !run, &channel);
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
	        "stream.pop, and its condition, or the type of a stream, say how many there are");
}

bool fifo_check(struct pass_context *context, struct module *module, bool depths)
{
	struct arena *arena = arena_within(module->arena);
	struct fifo_network *n = fifo_collect(arena, context, module);
	const struct value *channel;
	fifo_open_extents(n);
	const char *unbalanced = fifo_unbalanced(n, &channel);
	bool fine = unbalanced ? fifo_report_unbalanced(module->diag, channel, unbalanced)
	                       : !depths || check_ends(n, module->diag);
	arena_free(arena);
	return fine;
}
