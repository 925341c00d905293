/* Proves two things about FIFOs at every run-time extent: as many words are written into each as
 * are read from it, and a launch ends with the chosen depths. The token model counts words in
 * closed form. It is run at the extents at which loops start to run, in the middle, just below the
 * most, and at the most; where several inputs bound loops, also with one at its least and the
 * others at their most; and where a launch may be one of several chunks, also as such a chunk. */
#include "ir/sliding_window.h"
#include "ir/launch_tokens.h"
#include "fifo/fifo.h"

/* of a proof: some seconds if all layers are walked; without a proof, FIFOs hold all words */
#define BUDGET 144000000

const char *const fifo_evidence_name[] = { "not proven", "wait-for graph", "token model" };

struct symbols {
	struct fifo_network *network;
	int count;
	/* [count] one per symbol; value: the most that is worth counting to */
	struct extent_value *most;
};

enum extent {
	EXTENT_LEAST,
	EXTENT_ONE,
	EXTENT_TWO,
	EXTENT_EIGHTH,
	EXTENT_HALF,
	EXTENT_LAST,
	EXTENT_MOST,
	EXTENT_MORE
};

static const struct {
	/* of the first input that bounds loops, and of the others */
	enum extent first, others;
} at[FIFO_EXTENTS] = { { EXTENT_MOST, EXTENT_MOST }, { EXTENT_LEAST, EXTENT_MOST },
	{ EXTENT_MOST, EXTENT_LEAST }, { EXTENT_LEAST, EXTENT_LEAST }, { EXTENT_ONE, EXTENT_ONE },
	{ EXTENT_TWO, EXTENT_TWO }, { EXTENT_HALF, EXTENT_HALF }, { EXTENT_LAST, EXTENT_LAST },
	{ EXTENT_MORE, EXTENT_MORE } };

static int64_t value_at(const struct op *main, const struct extent_value *extent, enum extent which)
{
	bool rows = tokens_counted_by(main, extent->symbol);
	int64_t most = extent->value;
	int64_t least = rows;
	const int64_t value[] = { [EXTENT_LEAST] = least,
		[EXTENT_ONE] = 1,
		[EXTENT_TWO] = 2,
		[EXTENT_EIGHTH] = most / 8,
		[EXTENT_HALF] = most / 2,
		[EXTENT_LAST] = most - 1,
		[EXTENT_MOST] = most,
		[EXTENT_MORE] = most };
	int64_t above = value[which] > least ? value[which] : least;
	if (rows && which == EXTENT_MORE)
		return rows_most(main) + 1;
	return above < most ? above : most;
}

static bool is_first(const struct symbols *symbols, int i)
{
	const struct module *module = symbols->network->module;
	return text_same(sliding_window_symbol(module, symbols->most[i].symbol),
	        sliding_window_symbol(module, symbols->most[0].symbol));
}

/* Does the extent count several token tiles? */
static bool counts_tiles(const struct fifo_network *n, const struct extent_value *most)
{
	return tokens_counted_by(n->main, most->symbol) &&
	        token_tile(most->value, true) < most->value;
}

/* The token model at these extents, and with all token tiles if `whole`. Layers with different
 * sliding windows all behave like one of them. */
static struct fifo_extents open_at(
        const struct symbols *symbols, enum extent first, enum extent others, bool whole)
{
	struct fifo_network *n = symbols->network;
	struct extent_value *extent =
	        ARENA_ARRAY(n->arena, struct extent_value, symbols->count + 1);
	struct fifo_extents opened = { .detail = n->detail };
	for (int i = 0; i < symbols->count; i++) {
		const struct extent_value *most = &symbols->most[i];
		enum extent which = is_first(symbols, i) ? first : others;
		if (whole && counts_tiles(n, most))
			which = EXTENT_MOST;
		extent[i] = (struct extent_value){ most->symbol, value_at(n->main, most, which) };
	}
	opened.detail.extents = symbols->count;
	opened.detail.extent = extent;
	opened.tokens = token_network_new(n->arena, n->context->platform, n->module, opened.detail);
	return opened;
}

/* A network that is the same as an earlier one is replaced by it, so that its proof counts for
 * both. */
static const struct token_network *known_or(
        const struct fifo_network *n, const struct token_network *tokens)
{
	for (int i = 0; tokens && i < n->extents; i++)
		if (n->at[i].tokens && token_network_same(n->at[i].tokens, tokens))
			return n->at[i].tokens;
	return tokens;
}

static bool several_inputs(const struct symbols *symbols)
{
	bool several = false;
	for (int i = 1; i < symbols->count; i++)
		several = several || !is_first(symbols, i);
	return several;
}

const char *fifo_end_name(const struct fifo_network *n, int call)
{
	return attr_text_or(n->call[call], KEY_CALLEE, "?");
}

/* The channel into which not as many words are written as are read; -1: there is none. */
static int unbalanced(const struct fifo_extents *extents)
{
	for (size_t i = 0; extents->tokens && i < extents->tokens->channels.count; i++)
		if (extents->tokens->channels.data[i].words !=
		        extents->tokens->channels.data[i].read)
			return (int)i;
	return -1;
}

const char *fifo_unbalanced(const struct fifo_network *n, const struct value **channel)
{
	int number = -1;
	int i = 0;
	for (; i < n->extents && (number = unbalanced(&n->at[i])) < 0; i++)
		;
	if (number < 0)
		return NULL;
	const struct fifo_extents *extents = &n->at[i];
	const struct token_channel *words = &extents->tokens->channels.data[number];
	const struct fifo *fifo = &n->fifo[number];
	struct text what = text_new(n->arena);
	*channel = fifo->channel;
	text_add(&what, "%s writes %lld %s into %s, of which %s reads %lld",
	        fifo_end_name(n, fifo->writer), (long long)words->words,
	        fifo->sized ? "words" : "blocks", attr_text_or(fifo->channel->def, KEY_NAME, "?"),
	        fifo_end_name(n, fifo->reader), (long long)words->read);
	for (int e = 0; e < extents->detail.extents; e++)
		text_add(&what, "%s%s = %lld", e ? ", " : " where ",
		        extents->detail.extent[e].symbol,
		        (long long)extents->detail.extent[e].value);
	return what.data;
}

void fifo_open_extents(struct fifo_network *n)
{
	struct symbols symbols = { .network = n };
	symbols.count = timing_extents(n->arena, n->module, &symbols.most);
	/* n->tokens is the network at the most */
	bool several = several_inputs(&symbols);
	bool most_is_mean = attr_get(n->module->op, KEY_STREAM_SLIDING_WINDOW);
	n->at[n->extents++] = most_is_mean ? open_at(&symbols, at[0].first, at[0].others, false)
	                                   : (struct fifo_extents){ n->detail, n->tokens };
	for (int i = 1; i < FIFO_EXTENTS && symbols.count; i++)
		if ((several || at[i].first == at[i].others) &&
		        (at[i].first != EXTENT_MORE || launch_may_continue(n->main))) {
			struct fifo_extents opened =
			        open_at(&symbols, at[i].first, at[i].others, false);
			opened.tokens = known_or(n, opened.tokens);
			n->at[n->extents++] = opened;
		}
	/* Where layers overlap, the engine is the bottleneck at no single context length and waits
	 * wherever FIFOs are short; token tiles alternate most with attention if the context is
	 * short. */
	bool tiles = attr_get(n->main, KEY_STREAM_LAYER_OVERLAP);
	for (int i = 0; i < symbols.count; i++)
		tiles = tiles || counts_tiles(n, &symbols.most[i]);
	enum extent smaller_extent = tiles ? EXTENT_LEAST : EXTENT_EIGHTH;
	if (symbols.count && n->tokens)
		n->smaller_extent = open_at(&symbols, smaller_extent, smaller_extent, true).tokens;
}

/* Does each FIFO, at its full depth, hold all words of a launch or of a layer? Only then is the
 * wait-for graph a proof. */
static bool holds_layers(const struct fifo_network *n)
{
	bool holds = n->tokens;
	const struct op *process = n->main;
	for (int i = 0; holds && i < n->count; i++) {
		process =
		        module_find_after(n->module, process, fifo_end_name(n, n->fifo[i].writer));
		int64_t layers = attr_get(n->fifo[i].channel->def, KEY_STREAM_IN_LAYER)
		        ? attr_integer_or(process, KEY_STREAM_LAYERS, 1)
		        : 1;
		layers = n->tokens->skipped && layers > n->tokens->layers ? n->tokens->layers
		                                                          : layers;
		holds = !n->fifo[i].sized ||
		        n->tokens->channels.data[i].words <= layers * n->fifo[i].whole;
	}
	return holds;
}

/* A launch that deadlocks whatever FIFO is deeper has another error than a depth. */
static void expect_not_stuck(const struct fifo_network *n, const int64_t *depth)
{
	if (!n->stuck)
		return;
	struct text full = text_new(n->arena);
	text_add(&full, "%s", "");
	for (int i = 0; i < n->count; i++)
		if (n->stuck[i])
			text_add(&full, "; %s waits for space in %s, whose depth is %lld words",
			        fifo_end_name(n, n->fifo[i].writer),
			        attr_text_or(n->fifo[i].channel->def, KEY_NAME, "?"),
			        (long long)depth[i]);
	INVARIANT(n->module->guard, false, "a launch deadlocks%s", full.data);
}

enum fifo_evidence fifo_prove_termination(struct fifo_network *n, bool safe, int64_t *depth)
{
	const struct token_network *tokens = n->tokens;
	const struct token_detail detail = n->detail;
	bool good = true;
	if (fifo_all_terminate(n, BUDGET, depth))
		return FIFO_PROVEN_BY_TOKENS;
	for (int i = 0; good && i < n->extents; i++) {
		n->tokens = n->at[i].tokens;
		n->detail = n->at[i].detail;
		n->budget = BUDGET;
		good = fifo_repair(n, FIFO_RAISED, depth);
		expect_not_stuck(n, depth);
	}
	n->tokens = tokens;
	n->detail = detail;
	if (good)
		return FIFO_PROVEN_BY_TOKENS;
	return safe && holds_layers(n) ? FIFO_PROVEN_BY_GRAPH : FIFO_UNPROVEN;
}
