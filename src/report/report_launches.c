/* A design with several tokens a launch is reported for a launch of the most tokens with an empty
 * KV cache, as at the beginning of a prompt.  Beside it is modeled what cached tokens cost, and a
 * single token. */
#include "report/report.h"
#include "report/simulate.h"
#include "ir/sliding_window.h"
#include "ir/launch_tokens.h"

static const struct other_launch {
	bool one;   /* one token, if the design counts tokens at run time */
	bool first; /* with an empty KV cache, if its length is a run-time extent */
} other_launch[LAUNCHES] = { { true, false }, { false, false }, { true, true } };

/* most: [extents] the largest run-time extents.  Cycles 0: there is no such launch. */
static struct launch modeled(const struct session *session, struct arena *arena, int extents,
        const struct extent_value *most, struct other_launch how)
{
	struct launch launch = { .tokens = how.one ? 1 : report_tokens(session->module) };
	struct extent_value *extent = ARENA_ARRAY(arena, struct extent_value, extents + 1);
	bool counted = false;
	bool has_past = false;
	for (int i = 0; i < extents; i++) {
		bool counts = tokens_counted_by(module_main(session->module), most[i].symbol);
		/* the last tile of a loop may reach beyond the extent */
		int64_t room = simulate_extent_most(session->module, most[i].symbol);
		extent[i] = most[i];
		extent[i].value = room < extent[i].value ? room : extent[i].value;
		if (counts && how.one)
			extent[i].value = 1;
		if (!counts && how.first)
			extent[i].value = 0;
		if (!counts && extent[i].value > launch.past)
			launch.past = extent[i].value;
		counted |= counts;
		has_past |= !counts;
	}
	struct token_detail detail = token_detail_predicted;
	detail.extents = extents;
	detail.extent = extent;
	bool reported = !how.one && !has_past;
	if (!reported && (counted || !how.one) && (has_past || !how.first))
		launch.cycles = report_cycles(session, detail);
	return launch;
}

/* Removes the extents of sliding windows, which follow from the number of rows: the model takes
 * their mean over the layers.  Returns the number of the others. */
static int drop_windows(const struct module *module, int extents, struct extent_value *extent)
{
	struct sliding_window sliding_window;
	int count = 0;
	for (int i = 0; i < extents; i++)
		if (!sliding_window_named(module, extent[i].symbol, &sliding_window))
			extent[count++] = extent[i];
	return count;
}

struct extent_list headline_extents(struct arena *arena, const struct module *module)
{
	struct extent_value *most;
	struct extent_list headline = { 0 };
	if (report_tokens(module) <= 1)
		return headline;
	int all = timing_extents(arena, module, &most);
	int extents = drop_windows(module, all, most);
	for (int i = 0; i < extents; i++)
		if (!tokens_counted_by(module_main(module), most[i].symbol))
			most[headline.count++] = (struct extent_value){ most[i].symbol, 0 };
	headline.value = most;
	return headline;
}

struct launches launches_modeled(const struct session *session, struct arena *arena)
{
	struct launches launches = { 0 };
	struct extent_value *most;
	int all = timing_extents(arena, session->module, &most);
	int extents = drop_windows(session->module, all, most);
	for (int i = 0; report_tokens(session->module) > 1 && i < LAUNCHES; i++) {
		struct launch launch = modeled(session, arena, extents, most, other_launch[i]);
		if (launch.cycles > 0)
			launches.launch[launches.count++] = launch;
	}
	return launches;
}

void launches_text(const struct report *report, struct text *out)
{
	for (int i = 0; i < report->launches.count; i++) {
		const struct launch *launch = &report->launches.launch[i];
		text_add(out,
		        "%s%lld token%s after %lld cached: %lld cycles, %.4g ms    (modeled)\n",
		        i ? "                " : "other launches  ", (long long)launch->tokens,
		        launch->tokens > 1 ? "s" : "", (long long)launch->past,
		        (long long)launch->cycles,
		        platform_launch_ms(report->platform, launch->cycles));
	}
}

void launches_json(const struct report *report, struct text *out)
{
	if (!report->launches.count)
		return;
	text_add(out, "  \"launches\": [");
	for (int i = 0; i < report->launches.count; i++) {
		const struct launch *launch = &report->launches.launch[i];
		text_add(out,
		        "%s{\"tokens\": %lld, \"past_tokens\": %lld, \"model\": %lld, "
		        "\"latency_ms\": %.6g}",
		        i ? ", " : "", (long long)launch->tokens, (long long)launch->past,
		        (long long)launch->cycles,
		        platform_launch_ms(report->platform, launch->cycles));
	}
	text_add(out, "],\n");
}
