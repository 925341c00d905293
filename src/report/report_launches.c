/* A design of several tokens a launch is reported with the most of them, behind as many as there
 * may be; what users meet are prompts behind nothing, and single tokens. These are modelled as
 * well. */
#include "report/report.h"
#include "report/simulate.h"
#include "ir/sliding_window.h"
#include "ir/launch_tokens.h"

static const struct shorter {
	/* one token, where tokens are counted; behind none, where it matters behind how many */
	bool one, first;
} shorter[LAUNCHES] = { { true, false }, { false, true }, { true, true } };

/* extents: at their most. */
static struct launch modelled(const struct session *session, struct arena *arena, int extents,
        const struct extent_value *most, struct shorter how)
{
	struct launch launch = { .tokens = how.one ? 1 : report_tokens(session->module) };
	struct extent_value *extent = ARENA_ARRAY(arena, struct extent_value, extents + 1);
	bool counted = false, behind = false;
	for (int i = 0; i < extents; i++) {
		bool counts = tokens_counted_by(module_main(session->module), most[i].symbol);
		/* a loop's last tile goes beyond */
		int64_t room = simulate_extent_most(session->module, most[i].symbol);
		extent[i] = most[i];
		extent[i].value = room < extent[i].value ? room : extent[i].value;
		if (counts && how.one)
			extent[i].value = 1;
		if (!counts && how.first)
			extent[i].value = 0;
		launch.past =
		        !counts && extent[i].value > launch.past ? extent[i].value : launch.past;
		counted |= counts;
		behind |= !counts;
	}
	struct token_detail detail = token_detail_predicted;
	detail.extents = extents;
	detail.extent = extent;
	if ((counted || !how.one) && (behind || !how.first))
		launch.cycles = report_cycles(session, detail);
	return launch;
}

/* What layers that look back see follows from how many rows there are: the mean of them is
 * modelled, not all at the most. */
static int extents_set(const struct module *module, int extents, struct extent_value *extent)
{
	struct sliding_window sliding_window;
	int given = 0;
	for (int i = 0; i < extents; i++)
		if (!sliding_window_named(module, extent[i].symbol, &sliding_window))
			extent[given++] = extent[i];
	return given;
}

struct launches launches_modelled(const struct session *session, struct arena *arena)
{
	struct launches launches = { 0 };
	struct extent_value *most;
	int all = timing_extents(arena, session->module, &most);
	int extents = extents_set(session->module, all, most);
	for (int i = 0; report_tokens(session->module) > 1 && i < LAUNCHES; i++) {
		struct launch launch = modelled(session, arena, extents, most, shorter[i]);
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
