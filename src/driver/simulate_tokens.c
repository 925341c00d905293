/* stc simulate --tokens: the cycles of a launch of several steps, a token each, which follow one another while positions grow.  Where rows count the first may be about several.
 * The first and the last are simulated, and of those between as many as it takes for the others to lie on straight lines between them. */
#include "driver/simulate.h"
#include "ir/rows.h"
#include "model/feedback.h"

#define BENT 0.002            /* part of its cycles by which a token may lie off the line */
#define APART 8               /* tokens between two that are simulated, at most: rows of a cache come in blocks of so many or more */

struct sweep {
	struct session *session;
	const struct flow_options *options;
	int extents;
	const struct extent_value *extent;
	int64_t simulated;
	bool failed;
};

/* Of the first step; 1 where they do not count. */
static int64_t rows_at_first(const struct module *module, int extents, const struct extent_value *extent)
{
	struct feedback feedback;
	int64_t rows = 1;
	if (feedback_read(module_main(module), &feedback) && feedback.rows)
		timing_extent(feedback.rows, extents, extent, &rows);
	return rows;
}

void tokens_extents(const struct module *module, int64_t token, int extents, const struct extent_value *from, struct extent_value *extent)
{
	const struct op *main = module_main(module);
	const struct attr *inputs = attr_get(main, "stream.inputs");
	int64_t before = token ? rows_at_first(module, extents, from) + token - 1 : 0;
	for (int i = 0; i < extents; i++) {
		bool one = token && rows_counted_by(main, from[i].symbol);
		extent[i] = (struct extent_value){from[i].symbol, one ? 1 : from[i].value + before * feedback_step(attr_entry(inputs, from[i].symbol))};
	}
}

static double cycles_at(struct sweep *s, int64_t token)
{
	struct session *session = s->session;
	struct arena *arena = arena_within(session->module->arena);
	struct extent_value *extent = ARENA_ARRAY(arena, struct extent_value, s->extents + 1);
	struct flow_options options = {.budget = s->options->budget, .stop = s->options->stop, .depth = s->options->depth};
	struct flow_result result = {0};
	tokens_extents(session->module, token, s->extents, s->extent, extent);
	struct flow_network *network = flow_open_at(arena, session->platform, session->module, s->extents, extent);
	s->failed |= !network || flow_run(network, &options, &result) != FLOW_DONE;
	s->simulated++;
	arena_free(arena);
	return (double)result.cycles;
}

/* Of the tokens between `first` and `last`, which take `from` and `to` cycles. */
static double sum_between(struct sweep *s, int64_t first, int64_t last, double from, double to)
{
	if (last - first < 2 || s->failed)
		return 0;
	int64_t middle = first + (last - first) / 2;
	double here = cycles_at(s, middle), line = from + (to - from) * (double)(middle - first) / (double)(last - first), off = here > line ? here - line : line - here;
	if (off > BENT * here || last - first > APART)
		return sum_between(s, first, middle, from, here) + here + sum_between(s, middle, last, here, to);
	return (double)(middle - first - 1) * (from + here) / 2 + here + (double)(last - middle - 1) * (here + to) / 2;
}

/* What grows or shrinks and bounds loops has a value to begin with. */
static bool check_begin(struct session *session, int extents, const struct extent_value *extent)
{
	const struct attr *inputs = attr_get(module_main(session->module), "stream.inputs");
	for (int i = 0; i < inputs->count; i++) {
		const char *name = attr_item_text(inputs->items[i].value, "name");
		int64_t begin;
		bool moves = feedback_step(inputs->items[i].value) || rows_counted_by(module_main(session->module), name);
		if (!moves || !simulate_is_extent(session->module, name) || timing_extent(name, extents, extent, &begin))
			continue;
		diag_error(&session->diag, NOWHERE, "--tokens: %s changes from token to token, and where it begins is not said", name);
		return diag_note(&session->diag, "--extent %s=COUNT", name);
	}
	return true;
}

bool tokens_check(struct session *session, int extents, const struct extent_value *extent)
{
	const struct options *options = &session->options;
	struct feedback feedback;
	if (!feedback_read(module_main(session->module), &feedback)) {
		diag_error(&session->diag, NOWHERE, "--tokens %lld: a launch of this design is one token", (long long)options->tokens);
		return diag_note(&session->diag, "a design of decode that chooses the token itself (--argmax) takes several");
	}
	if (options->tokens > feedback.most) {
		diag_error(&session->diag, NOWHERE, "--tokens %lld: the launch is too long", (long long)options->tokens);
		return diag_note(&session->diag, "accepted are 1 to %lld", (long long)feedback.most);
	}
	if (options->launches > 1 || options->overlap) {
		diag_error(&session->diag, NOWHERE, "--tokens goes with neither --launches nor --overlap");
		return diag_note(&session->diag, "accepted is one of them");
	}
	return check_begin(session, extents, extent);
}

bool tokens_simulate(struct session *session, const struct flow_options *options, int extents, const struct extent_value *extent, struct simulated *simulated)
{
	struct sweep s = {.session = session, .options = options, .extents = extents, .extent = extent, .simulated = 1};
	int64_t end = simulated->tokens - 1, begin = rows_at_first(session->module, extents, extent) > 1 && end ? 1 : 0;
	double last = (double)simulated->flow->cycles, chunk = begin ? cycles_at(&s, 0) : 0, first = end > begin ? cycles_at(&s, begin) : 0;
	simulated->cycles = (int64_t)(chunk + first + sum_between(&s, begin, end, first, last) + last + 0.5);
	simulated->sampled = s.simulated;
	return !s.failed || diag_error(&session->diag, NOWHERE, "a token of the launch cannot be simulated to its end");
}
