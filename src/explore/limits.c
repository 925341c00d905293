/* Reads the user's limits of resources, time and clock, and compares designs with them. */
#include "explore/limits.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const limit_option[LIMITS] = { "max-dsp", "max-lut", "max-bram", "max-uram" };
const char *const limit_unit[LIMITS] = { "DSP slices", "LUTs", "block RAMs", "URAMs" };

static int64_t *place_of(struct resources *resources, enum limit limit)
{
	switch (limit) {
	case LIMIT_DSP: return &resources->dsp;
	case LIMIT_LUT: return &resources->lut;
	case LIMIT_BRAM: return &resources->bram18;
	case LIMIT_URAM:
	case LIMITS: return &resources->uram;
	}
	return &resources->uram;
}

int64_t limit_of(struct resources resources, enum limit limit)
{
	return *place_of(&resources, limit);
}

enum limit limits_exceeded(const struct session *session, struct resources used)
{
	enum limit limit = LIMIT_DSP;
	while (limit < LIMITS && limit_of(used, limit) <= limit_of(session->limit, limit))
		limit++;
	return limit;
}

/* strtod without hexadecimal numbers, infinities and NaNs. */
static double decimal(const char *text, char **end)
{
	double value = strtod(text, end);
	if (*end - text > (ptrdiff_t)strspn(text, "0123456789.eE+-"))
		*end = (char *)text;
	return value;
}

/* COUNT, or P% of what the platform has. */
static bool read_limit(struct session *session, enum limit limit)
{
	const char *text = session->options.limit[limit];
	int64_t *most = place_of(&session->limit, limit);
	int64_t all = *most;
	char *end;
	if (!text)
		return true;
	errno = 0;
	double value = decimal(text, &end);
	bool percent = end != text && *end == '%' && !end[1];
	bool good = end != text && !errno && (percent || !*end) && value >= 0 &&
	        value <= (percent ? 100 : (double)all) &&
	        (percent || value == (double)(int64_t)value);
	if (good) {
		*most = percent ? (int64_t)(value / 100 * (double)all) : (int64_t)value;
		return true;
	}
	diag_error(&session->diag, NOWHERE, "--%s is '%s'", limit_option[limit], text);
	return diag_note(&session->diag,
	        "a whole number up to %lld, which is what %s has, or a percentage such as 50%%",
	        (long long)all, session->platform->name);
}

static bool read_target(struct session *session)
{
	const char *text = session->options.target_ms;
	char *end;
	if (!text)
		return true;
	session->target_ms = decimal(text, &end);
	if (end != text && !*end && session->target_ms > 0 && session->target_ms < 1e9)
		return true;
	diag_error(&session->diag, NOWHERE, "--target-ms is '%s'", text);
	return diag_note(&session->diag, "milliseconds above 0, as 2.5");
}

bool limits_clock(struct session *session)
{
	int64_t clock = session->options.choices.value[CHOICE_CLOCK];
	const struct platform *board = session->platform;
	if (!clock || (double)clock == board->clock_mhz)
		return true;
	if ((double)clock > board->clock_mhz) {
		diag_error(&session->diag, NOWHERE,
		        "--clock is %lld MHz, more than the %g MHz of %s", (long long)clock,
		        board->clock_mhz, board->name);
		return diag_note(&session->diag,
		        "operator latencies are characterized for the platform's clock: choose at "
		        "most that");
	}
	session->platform = platform_slower(session->arena, board, (double)clock);
	return true;
}

bool limits_crowded(const struct session *session, const struct design_cost *cost)
{
	const struct platform *board = session->platform;
	bool crowded = false;
	int64_t have;
	int64_t need;
	for (int d = 0; d < board->dies; d++)
		crowded |= resources_exceeded(cost->die[d], platform_uncrowded(board, d), &have,
		                   &need) != NULL;
	return crowded;
}

bool limits_slower(struct session *session)
{
	session->options.choices.value[CHOICE_CLOCK] =
	        (int64_t)(session->platform->clock_mhz / session->platform->crowded_period);
	return limits_clock(session);
}

bool limits_slow_down(struct session *session, const struct design_cost *cost)
{
	return !session->options.choices.value[CHOICE_CLOCK] && limits_crowded(session, cost) &&
	        limits_slower(session);
}

/* Diagnoses --kernel-dsp above --max-dsp. */
static bool contradict(struct session *session)
{
	int64_t dsp = session->choices.value[CHOICE_DSP];
	if (!session->options.limit[LIMIT_DSP] || dsp <= session->limit.dsp)
		return false;
	diag_error(&session->diag, NOWHERE,
	        "--kernel-dsp %lld and --max-dsp %s contradict each other", (long long)dsp,
	        session->options.limit[LIMIT_DSP]);
	diag_note(&session->diag, "--kernel-dsp of at most %lld, or only --max-dsp",
	        (long long)session->limit.dsp);
	return true;
}

bool limits_read(struct session *session)
{
	session->limit = platform_total(session->platform);
	for (enum limit limit = LIMIT_DSP; limit < LIMITS; limit++)
		if (!read_limit(session, limit))
			return false;
	return read_target(session) && limits_clock(session) && !contradict(session);
}
