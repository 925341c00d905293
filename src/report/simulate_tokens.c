/* `stc simulate --tokens`: the cycles of a launch of several steps.  The first steps may be chunks
 * of a prompt, with several tokens each; the others have one token, at growing positions.  Chunks
 * are simulated; of the other steps the first, the last, and as many between them as are needed for
 * the rest to be interpolated linearly. */
#include "report/simulate.h"
#include "ir/launch_tokens.h"
#include "predict/feedback.h"

/* deviation of a step from the line, as a part of its cycles */
#define LINEARITY_TOLERANCE 0.002
/* most steps between two that are simulated: tiles of a KV cache have at least as many rows */
#define SAMPLE_SPACING 8

struct sweep {
	struct session *session;
	const struct cycle_options *options;
	int extents;
	const struct extent_value *extent;
	int64_t simulated;
	bool failed;
};

struct prompt {               /* that the launch reads; one token if tokens are not counted */
	const char *rows;     /* the input that is the token count; NULL: none */
	int64_t tokens, most; /* of all chunks; of one chunk, at most */
	bool goes_on;         /* a token count above `most` says that another chunk follows */
};

static struct prompt prompt_of(
        const struct module *module, int extents, const struct extent_value *extent)
{
	struct feedback feedback;
	struct prompt prompt = { .tokens = 1, .most = 1 };
	if (!feedback_read(module_main(module), &feedback) || !feedback.rows)
		return prompt;
	prompt.rows = feedback.rows;
	prompt.most = feedback.chunk_tokens;
	prompt.goes_on = launch_may_continue(module_main(module));
	timing_extent(feedback.rows, extents, extent, &prompt.tokens);
	return prompt;
}

static int64_t chunks_of(const struct prompt *prompt)
{
	return (prompt->tokens + prompt->most - 1) / prompt->most;
}

static int64_t rows_before(const struct prompt *prompt, int64_t step)
{
	int64_t chunks = chunks_of(prompt);
	return step < chunks ? step * prompt->most : prompt->tokens + step - chunks;
}

static int64_t rows_at(const struct prompt *prompt, int64_t step)
{
	int64_t left = prompt->tokens - step * prompt->most;
	if (left > prompt->most)
		return prompt->most;
	return left > 1 ? left : 1;
}

/* The token count as the launch is told it. */
static int64_t count_at(const struct prompt *prompt, int64_t step)
{
	return rows_at(prompt, step) +
	        (prompt->goes_on && prompt->tokens - step * prompt->most > prompt->most);
}

int64_t tokens_rows_most(
        const struct module *module, const char *symbol, int64_t tokens, int64_t most)
{
	struct feedback feedback;
	if (!tokens || !feedback_read(module_main(module), &feedback) ||
	        !text_same(feedback.rows, symbol))
		return most;
	return feedback.chunk_tokens * (tokens < feedback.most ? tokens : feedback.most);
}

void tokens_extents(const struct module *module, int64_t token, int extents,
        const struct extent_value *from, struct extent_value *extent)
{
	const struct attr *inputs = attr_get(module_main(module), KEY_STREAM_INPUTS);
	const struct prompt prompt = prompt_of(module, extents, from);
	int64_t before = rows_before(&prompt, token);
	for (int i = 0; i < extents; i++) {
		const char *symbol = from[i].symbol;
		extent[i].symbol = symbol;
		if (text_same(symbol, prompt.rows))
			extent[i].value = count_at(&prompt, token);
		else
			extent[i].value = from[i].value +
			        before * feedback_increment(attr_entry(inputs, symbol));
	}
}

static double cycles_at(struct sweep *s, int64_t token)
{
	struct session *session = s->session;
	struct arena *arena = arena_within(session->module->arena);
	struct extent_value *extent = ARENA_ARRAY(arena, struct extent_value, s->extents + 1);
	struct cycle_options options = {
		.budget = s->options->budget, .stop = s->options->stop, .depth = s->options->depth
	};
	struct cycle_result result = { 0 };
	tokens_extents(session->module, token, s->extents, s->extent, extent);
	struct cycle_network *network =
	        cycle_open_at(arena, session->platform, session->module, s->extents, extent);
	s->failed |= !network || cycle_run(network, &options, &result) != CYCLE_DONE;
	s->simulated++;
	arena_free(arena);
	return (double)result.cycles;
}

/* Cycles of the steps strictly between `first` and `last`, which take `from` and `to` cycles. */
static double sum_between(struct sweep *s, int64_t first, int64_t last, double from, double to)
{
	if (last - first < 2 || s->failed)
		return 0;
	int64_t middle = first + (last - first) / 2;
	double here = cycles_at(s, middle);
	double line = from + (to - from) * (double)(middle - first) / (double)(last - first);
	double off = here > line ? here - line : line - here;
	if (off > LINEARITY_TOLERANCE * here || last - first > SAMPLE_SPACING)
		return sum_between(s, first, middle, from, here) + here +
		        sum_between(s, middle, last, here, to);
	return (double)(middle - first - 1) * (from + here) / 2 + here +
	        (double)(last - middle - 1) * (here + to) / 2;
}

/* Every extent that changes from step to step needs an initial value. */
static bool check_begin(struct session *session, int extents, const struct extent_value *extent)
{
	const struct attr *inputs = attr_get(module_main(session->module), KEY_STREAM_INPUTS);
	for (int i = 0; i < inputs->count; i++) {
		const char *name = attr_item_text(inputs->items[i].value, KEY_NAME);
		int64_t begin;
		bool moves = feedback_increment(inputs->items[i].value) ||
		        tokens_counted_by(module_main(session->module), name);
		if (!moves || !simulate_is_extent(session->module, name) ||
		        timing_extent(name, extents, extent, &begin))
			continue;
		diag_error(&session->diag, NOWHERE,
		        "--tokens: %s grows from token to token, and its first value is not given",
		        name);
		return diag_note(&session->diag, "--extent %s=COUNT", name);
	}
	return true;
}

/* A prompt of several chunks must fit the context. */
static bool check_room(struct session *session, int extents, const struct extent_value *extent)
{
	const struct attr *inputs = attr_get(module_main(session->module), KEY_STREAM_INPUTS);
	const struct prompt prompt = prompt_of(session->module, extents, extent);
	int64_t last = session->options.tokens - 1;
	int64_t rows = rows_before(&prompt, last) + rows_at(&prompt, last);
	for (int i = 0; prompt.tokens > prompt.most && i < inputs->count; i++) {
		const char *name = attr_item_text(inputs->items[i].value, KEY_NAME);
		int64_t begin = 0;
		int64_t most = simulate_extent_most(session->module, name);
		timing_extent(name, extents, extent, &begin);
		if (!feedback_increment(inputs->items[i].value) || rows - 1 <= most - begin)
			continue;
		diag_error(&session->diag, NOWHERE,
		        "--extent %s=%lld: %lld tokens after %lld cached ones exceed the context",
		        prompt.rows, (long long)prompt.tokens, (long long)rows, (long long)begin);
		return diag_note(&session->diag, "the context is %lld tokens", (long long)most + 1);
	}
	return true;
}

bool tokens_check(struct session *session, int extents, const struct extent_value *extent)
{
	const struct options *options = &session->options;
	struct feedback feedback;
	if (!feedback_read(module_main(session->module), &feedback)) {
		diag_error(&session->diag, NOWHERE,
		        "--tokens %lld: a launch of this design processes one token",
		        (long long)options->tokens);
		return diag_note(&session->diag,
		        "a decode design that selects the next token on the device (--argmax) "
		        "takes several");
	}
	if (options->tokens > feedback.most) {
		diag_error(&session->diag, NOWHERE, "--tokens %lld: the launch is too long",
		        (long long)options->tokens);
		return diag_note(
		        &session->diag, "accepted are 1 to %lld", (long long)feedback.most);
	}
	if (options->launches > 1 || options->overlap) {
		diag_error(&session->diag, NOWHERE,
		        "--tokens cannot be combined with --launches or --overlap-launches");
		return diag_note(&session->diag, "accepted is one of them");
	}
	return check_begin(session, extents, extent) && check_room(session, extents, extent);
}

/* Cycles that feeding back `rows` tokens to the next step takes more than feeding back one, which
 * the cycles of a step include. */
static int64_t feedback_excess(const struct session *session, int64_t rows)
{
	const struct op *main = module_main(session->module);
	return feedback_cycles(session->platform, main, rows) -
	        feedback_cycles(session->platform, main, 1);
}

bool tokens_simulate(struct session *session, const struct cycle_options *options, int extents,
        const struct extent_value *extent, struct simulated *simulated)
{
	struct sweep s = { .session = session,
		.options = options,
		.extents = extents,
		.extent = extent,
		.simulated = 1 };
	const struct prompt prompt = prompt_of(session->module, extents, extent);
	int64_t end = simulated->steps - 1;
	int64_t chunks = prompt.tokens > 1 ? chunks_of(&prompt) : 0;
	int64_t begin = chunks < end ? chunks : end;
	double read = 0;
	double last = (double)simulated->cycle_result->cycles;
	for (int64_t step = 0; step < begin && !s.failed; step++)
		read += cycles_at(&s, step) +
		        (double)feedback_excess(session, rows_at(&prompt, step + 1));
	double first = end > begin ? cycles_at(&s, begin) : 0;
	simulated->cycles =
	        (int64_t)(read + first + sum_between(&s, begin, end, first, last) + last + 0.5);
	simulated->sampled = s.simulated;
	simulated->tokens = rows_before(&prompt, end) + rows_at(&prompt, end);
	return !s.failed ||
	        diag_error(&session->diag, NOWHERE,
	                "a token of the launch cannot be simulated to its end");
}
