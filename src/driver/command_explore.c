/* `stc explore`: finds a Pareto set of designs, and stores all trials in a file with which a later
 * run continues.  `stc search-space`: lists what is varied. */
#define _POSIX_C_SOURCE 200809L
#include "driver/command_line.h"
#include "explore/explore.h"
#include "explore/limits.h"
#include "pipeline/output.h"
#include "explore/point.h"
#include "driver/quant_option.h"
#include <string.h>
#include <sys/stat.h>

/* Rewrites the state file after a trial. */
static bool save_state(struct session *session, const struct exploration *exploration)
{
	struct arena *arena = arena_new(&session->guard);
	struct text text = text_new(arena);
	exploration_json(exploration, &text);
	bool written = file_write_whole(
	        arena, &session->diag, session->options.output, text.data, text.size);
	arena_free(arena);
	return written;
}

static bool open_state(struct session *session, struct exploration *exploration)
{
	const char *path = session->options.output;
	struct stat status;
	if (text_same(path, "-")) {
		diag_error(&session->diag, NOWHERE,
		        "-o is '-', but explore reads its state file back");
		return diag_note(&session->diag, "-o STATE.json: the file that stores all trials");
	}
	if (stat(path, &status))
		return output_place_check(session->arena, &session->diag, path);
	if (S_ISDIR(status.st_mode)) {
		diag_error(&session->diag, (struct location){ .file = path }, "is a folder");
		return diag_note(&session->diag, "-o STATE.json: the file that stores all trials");
	}
	if (session->options.resume)
		return exploration_read(session, path, exploration);
	diag_error(&session->diag, (struct location){ .file = path }, "exists");
	return diag_note(&session->diag, "--resume continues it; or choose another file");
}

static void add_choices(struct text *out, const struct choices *choices)
{
	for (int c = 0, listed = 0; c < CHOICES; c++) {
		if (!choices->value[c])
			continue;
		text_add(out, "%s%s=", listed++ ? " " : "", choice_info[c].name);
		choice_print(out, (enum choice)c, choices->value[c], false);
	}
}

/* Prints the Pareto front, the fastest design first. */
static void print_front(struct session *session, const struct exploration *exploration)
{
	struct text *out = &session->out;
	bool *listed = ARENA_ARRAY(session->arena, bool, exploration->trials.count + 1);
	text_add(out, "%5s %12s %12s %7s %10s %6s ", "id", "modeled", "simulated", "error", "ms",
	        "DSP");
	if (exploration->of_c)
		text_add(out, "%10s %10s  choices\n", "LUT", "BRAM18");
	else
		text_add(out, "%10s %10s %10s  choices\n", "on chip", "mJ", "1/s");
	for (;;) {
		const struct trial *next = NULL;
		for (size_t i = 0; i < exploration->trials.count; i++) {
			const struct trial *trial = &exploration->trials.data[i];
			if (!listed[i] && exploration_on_front(exploration, i) &&
			        (!next || trial->ms < next->ms))
				next = trial;
		}
		if (!next)
			return;
		size_t id = (size_t)(next - exploration->trials.data);
		listed[id] = true;
		const char *simulated = "-";
		const char *error = "-";
		if (next->simulated) {
			simulated = text_format(session->arena, "%lld", (long long)next->simulated);
			error = text_format(session->arena, "%+.1f %%",
			        100 * ((double)next->cycles / (double)next->simulated - 1));
		}
		text_add(out, "%5zu %12lld %12s %7s %10.4g %6lld ", id, (long long)next->cycles,
		        simulated, error, next->ms, (long long)next->used.dsp);
		if (exploration->of_c)
			text_add(out, "%10lld %10lld  ", (long long)next->used.lut,
			        (long long)next->used.bram18);
		else
			text_add(out, "%10lld %10.4g %10.4g  ", (long long)next->on_chip,
			        next->energy_mj, next->per_second);
		add_choices(out, &next->asked);
		text_add(out, "\n");
	}
}

static bool any_design(const struct exploration *exploration)
{
	for (size_t i = 0; i < exploration->trials.count; i++)
		if (exploration_on_front(exploration, i))
			return true;
	return false;
}

/* No trial fits the limits: the first trial's diagnostic says what is missing. */
static bool refuse_all(struct session *session, const struct exploration *exploration)
{
	size_t count = exploration->trials.count;
	diag_error(&session->diag, NOWHERE,
	        "none of %zu trial%s gives a design; the one with default settings fails with: %s",
	        count, count == 1 ? "" : "s", exploration->trials.data[0].refused);
	return diag_note(&session->diag,
	        "%s lists the reason of each; try other limits and another state file",
	        session->options.output);
}

bool command_explore(struct session *session)
{
	const struct options *options = &session->options;
	struct exploration exploration;
	if (!options->output && !options->dry_run) {
		diag_error(&session->diag, NOWHERE, "explore lacks -o STATE.json");
		return diag_note(&session->diag, "-o STATE.json: the file that stores all trials");
	}
	if (!quant_parse(session->arena, &session->diag, options->quant, &session->quant) ||
	        !point_choose(session))
		return false;
	if (!load_platform(session) || !limits_read(session))
		return false;
	if (options->dry_run)
		return true;
	if (!load_module(session, session->options.file) ||
	        !exploration_begin(session, &exploration) || !open_state(session, &exploration))
		return false;
	int64_t trials = options->trials ? options->trials : DEFAULT_TRIALS;
	if (session->module->level != LEVEL_TENSOR) {
		diag_error(&session->diag, NOWHERE, "%s is at level %s, after all design decisions",
		        options->file, level_name(session->module->level));
		return diag_note(&session->diag,
		        "MLIR of level tensor: linalg, or a dump before choose_register_tiles");
	}
	if (!run_passes(session, 0, pass_find("choose_register_tiles") - 1))
		return false;
	session->diag.count = 0;
	bool done = explore(session, &exploration, trials, save_state);
	if (!done && !exploration.trials.count && session->diag.count && !session->stop)
		return false;
	if (done && exploration.trials.count && !any_design(&exploration))
		return refuse_all(session, &exploration);
	print_front(session, &exploration);
	if (!session->stop)
		return done;
	session->diag.count = 0;
	diag_error(&session->diag, NOWHERE, "interrupted after %zu of %lld trials",
	        exploration.trials.count, (long long)trials);
	return diag_note(&session->diag,
	        exploration.trials.count ? "they are stored in %s: --resume continues"
	                                 : "%s was not written",
	        options->output);
}

/* --- stc search-space */

/* The values that are tried; no kernel may have more DSPs than the design. */
static void print_candidates(struct session *session, enum choice choice, int64_t own)
{
	int64_t most = choice == CHOICE_DSP ? session->limit.dsp : INT64_MAX;
	bool at_most = false;
	for (int n = 0; n < choice_candidates(choice); n++) {
		int64_t value = choice_candidate(session->platform, choice, n);
		bool beyond = value >= most && value != own;
		if (beyond && at_most)
			continue;
		at_most |= beyond;
		text_add(&session->out, "%s", n ? ", " : "");
		choice_print(&session->out, choice, beyond ? most : value, session->options.json);
	}
}

/* Prints each choice with the compiler's own value and the values that are tried. */
bool command_search_space(struct session *session)
{
	struct text *out = &session->out;
	const struct choices none = { 0 };
	bool json = session->options.json;
	if (!load_platform(session) || !limits_read(session))
		return false;
	for (int c = 0, listed = 0; c < CHOICES; c++) {
		if (!choice_candidates((enum choice)c))
			continue;
		int64_t own = choice_resolve(&none, session->platform, (enum choice)c);
		if (json)
			text_add(out, "%s{\"name\": \"%s\", \"default\": ", listed++ ? ",\n " : "[",
			        choice_info[c].name);
		else
			text_add(out, "%-16s ", choice_info[c].name);
		choice_print(out, (enum choice)c, own, json);
		text_add(out, json ? ", \"candidates\": [" : "    candidates: ");
		print_candidates(session, (enum choice)c, own);
		text_add(out, json ? "]}" : "\n");
	}
	text_add(out, json ? "]\n" : "");
	return true;
}
