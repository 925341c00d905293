/* Values of design parameters: defaults, platform-relative units, candidates, and --fix-kernel. */
#include "options/choices.h"
#include "base/number.h"
#include "platform/platform.h"
#include <stdlib.h>
#include <string.h>

const char *const fifo_strategy_name[FIFO_STRATEGIES] = { "trim", "minimal", "lp", "normal",
	"conservative", "safe" };
const char *const matmul_form_name[MATMUL_FORMS] = { "engine", "spatial" };
const char *const parallelism_search_name[PARALLELISM_SEARCHES] = { "joint", "intensity",
	"neighbor", "uniform" };
const char *const prologue_pace_name[PROLOGUE_PACES] = { "searched", "paced" };
const char *const register_tiles_name[REGISTER_TILES_FORMS] = { "searched", "none" };
const char *const softmax_form_name[SOFTMAX_FORMS] = { "auto", "online", "two-pass" };

#define CANDIDATES(...) { __VA_ARGS__ }
#define COUNT(                                                                                     \
        code, name, metavar, group, level, least, most, default_value, unit, candidates, meaning)  \
	{ name, NULL, 0, least, most, default_value, unit, candidates },
#define WORD(code, name, metavar, group, level, words, meaning)                                    \
	{ name, words, sizeof words / sizeof *words, 1, sizeof words / sizeof *words, 1, UNIT_ONE, \
		{ 0 } },
const struct choice_info choice_info[CHOICES] = {
#include "options/choices.def"
};
#undef COUNT
#undef WORD

int64_t choice_count(const struct choices *choices, enum choice choice)
{
	return choices->value[choice] ? choices->value[choice] : choice_info[choice].default_value;
}

int choice_word(const struct choices *choices, enum choice choice)
{
	return (int)choice_count(choices, choice) - 1;
}

int choice_word_named(enum choice choice, const char *word)
{
	int number = choice_info[choice].words - 1;
	while (number >= 0 && !text_same(choice_info[choice].word[number], word))
		number--;
	return number;
}

void choice_print(struct text *out, enum choice choice, int64_t value, bool json)
{
	const struct choice_info *info = &choice_info[choice];
	if (info->word)
		text_add(out, json ? "\"%s\"" : "%s", info->word[value - 1]);
	else
		text_add(out, "%lld", (long long)value);
}

int choice_candidates(enum choice choice)
{
	const struct choice_info *info = &choice_info[choice];
	int count = info->words;
	while (!info->word && count < CHOICE_CANDIDATES && info->candidates[count])
		count++;
	return count;
}

static int64_t whole_of(const struct platform *platform, enum choice_unit unit)
{
	switch (unit) {
	case UNIT_ONE: return 1000;
	case UNIT_DSP: return platform_total(platform).dsp;
	case UNIT_LUT: return platform_total(platform).lut;
	case UNIT_MEMORY: return resources_bytes(platform_total(platform));
	case UNIT_CLOCK: return (int64_t)platform->clock_mhz;
	}
	return 1000;
}

static int64_t share_of(
        const struct platform *platform, const struct choice_info *info, int64_t number)
{
	return number * whole_of(platform, info->unit) / 1000;
}

int64_t choice_resolve(
        const struct choices *choices, const struct platform *platform, enum choice choice)
{
	const struct choice_info *info = &choice_info[choice];
	return choices->value[choice] ? choices->value[choice]
	                              : share_of(platform, info, info->default_value);
}

int64_t choice_candidate(const struct platform *platform, enum choice choice, int n)
{
	const struct choice_info *info = &choice_info[choice];
	int64_t value = info->word ? n + 1 : share_of(platform, info, info->candidates[n]);
	return value < info->least ? info->least : value;
}

/* --- fixed parallelism */

const struct fixed_parallelism *fixed_parallelism_of(
        const struct choices *choices, const char *kernel)
{
	for (int i = 0; i < choices->fixed; i++)
		if (text_same(choices->fix[i].kernel, kernel))
			return &choices->fix[i];
	return NULL;
}

static int64_t *key_of(struct fixed_parallelism *fixed, const char *key, size_t size)
{
	const struct {
		const char *name;
		int64_t *value;
	} keys[] = { { "lanes", &fixed->lanes }, { "row-unroll", &fixed->row_unroll },
		{ "ports", &fixed->ports } };
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (strlen(keys[i].name) == size && !strncmp(keys[i].name, key, size))
			return keys[i].value;
	return NULL;
}

static bool report_fix_syntax(struct diag *diag, const char *text)
{
	diag_error(diag, NOWHERE, "--fix-kernel is '%s'", text);
	return diag_note(diag,
	        "KERNEL:lanes=COUNT,row-unroll=COUNT,ports=COUNT, each at most once, counts above "
	        "0");
}

bool fixed_parallelism_parse(struct diag *diag, const char *text, struct fixed_parallelism *fixed)
{
	const char *colon = strchr(text, ':');
	const char *at = colon ? colon + 1 : text;
	if (!colon || colon == text || !*at)
		return report_fix_syntax(diag, text);
	*fixed = (struct fixed_parallelism){ .kernel = text_copy(
		                                     diag->arena, text, (size_t)(colon - text)) };
	while (*at) {
		const char *equals = strchr(at, '=');
		int64_t *value = equals ? key_of(fixed, at, (size_t)(equals - at)) : NULL;
		char *end = NULL;
		long long count = value ? whole_number(equals + 1, &end) : 0;
		if (!value || *value || count < 1 || count > INT32_MAX || (*end && *end != ',') ||
		        (*end == ',' && !end[1]))
			return report_fix_syntax(diag, text);
		*value = count;
		at = *end ? end + 1 : end;
	}
	return true;
}
