/* The state of an exploration as a JSON file, rewritten after every trial, so that an interrupted
 * exploration continues where it was; and the options of one of its trials. */
#include "base/data.h"
#include "base/json.h"
#include "explore/explore.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA 1

static void add_choices(struct text *out, const char *key, const struct choices *choices)
{
	int listed = 0;
	text_add(out, "\"%s\": {", key);
	for (int c = 0; c < CHOICES; c++) {
		if (!choices->value[c])
			continue;
		text_add(out, "%s\"%s\": ", listed++ ? ", " : "", choice_info[c].name);
		choice_print(out, (enum choice)c, choices->value[c], true);
	}
	text_add(out, "}");
}

static void add_trial(struct text *out, const struct exploration *exploration, size_t number)
{
	const struct trial *trial = &exploration->trials.data[number];
	text_add(out, "%s\n    {\"id\": %zu, ", number ? "," : "", number);
	add_choices(out, "requested", &trial->asked);
	if (trial->refused) {
		text_add(out, ", \"rejected\": ");
		json_quote(out, trial->refused);
		text_add(out, "}");
		return;
	}
	text_add(out, ", ");
	add_choices(out, "resolved", &trial->built);
	text_add(out, ", \"cycles\": %lld", (long long)trial->cycles);
	if (trial->simulated)
		text_add(out, ", \"simulated\": %lld", (long long)trial->simulated);
	text_add(out,
	        ", \"latency_ms\": %.17g, \"launches_per_second\": %.17g, \"energy_mj\": %.17g, "
	        "\"lut\": %lld, \"ff\": %lld, \"dsp\": %lld, \"bram18\": %lld, \"uram\": %lld, "
	        "\"on_chip_bytes\": %lld",
	        trial->ms, trial->per_second, trial->energy_mj, (long long)trial->used.lut,
	        (long long)trial->used.ff, (long long)trial->used.dsp,
	        (long long)trial->used.bram18, (long long)trial->used.uram,
	        (long long)trial->on_chip);
	text_add(out, ", \"pareto_optimal\": %s}",
	        exploration_on_front(exploration, number) ? "true" : "false");
}

void exploration_json(const struct exploration *exploration, struct text *out)
{
	const struct {
		const char *key, *value;
	} head[] = { { "model", exploration->model }, { "name", exploration->name },
		{ "platform", exploration->platform }, { "quant", exploration->quant },
		{ "constraints", exploration->constraints } };
	text_add(out, "{\n  \"exploration\": %d", SCHEMA);
	for (size_t i = 0; i < sizeof head / sizeof *head; i++) {
		text_add(out, ",\n  \"%s\": ", head[i].key);
		json_quote(out, head[i].value);
	}
	text_add(out, ",\n  \"fixed_kernels\": ");
	json_quote_list(out, exploration->fix.data, exploration->fix.count);
	text_add(out, ",\n  \"trials\": [");
	for (size_t i = 0; i < exploration->trials.count; i++)
		add_trial(out, exploration, i);
	text_add(out, "\n  ]\n}\n");
}

/* --- reading */

static double number_of(const struct json *object, const char *key)
{
	const struct json *item = json_get(object, key);
	return item && item->kind == JSON_NUMBER ? item->number : -1;
}

static int64_t whole_of(const struct json *object, const char *key)
{
	int64_t value = -1;
	json_integer(json_get(object, key), &value);
	return value;
}

static bool read_choices(const struct json *object, struct choices *choices)
{
	if (!object || object->kind != JSON_OBJECT)
		return false;
	for (const struct json *item = object->first; item; item = item->next) {
		int c = 0;
		while (c < CHOICES && !text_same(choice_info[c].name, item->name))
			c++;
		if (c == CHOICES)
			return false;
		const struct choice_info *info = &choice_info[c];
		if (info->word)
			choices->value[c] = 1 + choice_word_named((enum choice)c, item->text);
		else if (!json_integer(item, &choices->value[c]))
			return false;
		if (choices->value[c] < info->least || choices->value[c] > info->most)
			return false;
	}
	return true;
}

static bool is_measure(double number)
{
	return number > 0 && isfinite(number);
}

static bool read_trial(
        const struct json *json, const struct exploration *exploration, struct trial *trial)
{
	*trial = (struct trial){ .asked = { .fixed = exploration->fixed_choices.fixed,
		                         .fix = exploration->fixed_choices.fix } };
	trial->built = trial->asked;
	if (!read_choices(json_get(json, "requested"), &trial->asked))
		return false;
	trial->refused = json_text(json, "rejected");
	if (trial->refused)
		return true;
	trial->cycles = whole_of(json, "cycles");
	trial->simulated = json_get(json, "simulated") ? whole_of(json, "simulated") : 0;
	trial->ms = number_of(json, "latency_ms");
	trial->per_second = number_of(json, "launches_per_second");
	trial->energy_mj = number_of(json, "energy_mj");
	trial->used = (struct resources){ whole_of(json, "lut"), whole_of(json, "ff"),
		whole_of(json, "dsp"), whole_of(json, "bram18"), whole_of(json, "uram") };
	trial->on_chip = whole_of(json, "on_chip_bytes");
	const struct resources *used = &trial->used;
	return read_choices(json_get(json, "resolved"), &trial->built) && trial->cycles > 0 &&
	        trial->simulated >= 0 && is_measure(trial->ms) && is_measure(trial->per_second) &&
	        is_measure(trial->energy_mj) && used->lut >= 0 && used->ff >= 0 && used->dsp >= 0 &&
	        used->bram18 >= 0 && used->uram >= 0 && trial->on_chip >= 0;
}

static bool damaged(struct session *session, const char *path, const char *what)
{
	diag_error(&session->diag, (struct location){ .file = path },
	        "is not a state file of `stc explore`: %s", what);
	return diag_note(&session->diag, "a file that `stc explore -o` wrote with this version");
}

static bool same(struct session *session, const char *path, const char *what, const char *has,
        const char *wanted)
{
	if (text_same(has, wanted))
		return true;
	diag_error(&session->diag, (struct location){ .file = path },
	        "is the state file of another exploration: its %s is '%s', not '%s'", what,
	        has ? has : "", wanted);
	return diag_note(&session->diag,
	        "use the same input, --platform, --quant, limits and options as before; or another "
	        "file");
}

/* NULL after a diagnostic. */
static const struct json *read_state(struct session *session, const char *path)
{
	const char *reason;
	size_t size;
	const char *text = file_read_regular(session->arena, path, &size, &reason);
	if (!text) {
		diag_error(&session->diag, (struct location){ .file = path }, "cannot be read: %s",
		        reason);
		return NULL;
	}
	const struct json *json = json_parse(session->arena, text, size, NULL);
	const struct json *trials = json_get(json, "trials");
	if (json && whole_of(json, "exploration") == SCHEMA && trials && trials->kind == JSON_ARRAY)
		return json;
	damaged(session, path, json ? "it lacks its version or its trials" : "it is no JSON");
	return NULL;
}

static bool is_of(struct session *session, const char *path, const struct json *json,
        const struct exploration *exploration)
{
	return same(session, path, "model", json_text(json, "model"), exploration->model) &&
	        same(session, path, "platform", json_text(json, "platform"),
	                exploration->platform) &&
	        same(session, path, "quant", json_text(json, "quant"), exploration->quant);
}

bool exploration_read(struct session *session, const char *path, struct exploration *exploration)
{
	const struct json *json = read_state(session, path);
	if (!json || !is_of(session, path, json, exploration) ||
	        !same(session, path, "constraint", json_text(json, "constraints"),
	                exploration->constraints))
		return false;
	for (const struct json *item = json_get(json, "trials")->first; item; item = item->next) {
		struct trial trial;
		if (!read_trial(item, exploration, &trial))
			return damaged(session, path,
			        text_format(session->arena, "its trial %zu is damaged",
			                exploration->trials.count));
		VEC_PUSH(session->arena, &exploration->trials, trial);
	}
	return true;
}

/* --- the options of a trial */

static bool choices_are_free(struct session *session)
{
	bool free = !session->options.fix.count;
	for (int c = 0; c < CHOICES; c++)
		free = free && !session->options.choices.value[c];
	if (free)
		return true;
	diag_error(&session->diag, NOWHERE,
	        "--trial sets all design parameters, and others are set as well");
	return diag_note(&session->diag, "use --trial alone, or the other options without it");
}

static bool refuse_trial(struct session *session, const char *point, const struct json *trials)
{
	diag_error(&session->diag, NOWHERE, "--trial %s names no design", point);
	if (!trials)
		return diag_note(&session->diag, "STATE.json:ID");
	return diag_note(&session->diag,
	        "STATE.json:ID with an id below %d, of a trial that gave a design", trials->count);
}

bool exploration_take(struct session *session, const char *point)
{
	const char *colon = strrchr(point, ':');
	char *end = NULL;
	long id = colon ? strtol(colon + 1, &end, 10) : -1;
	struct exploration exploration;
	struct trial trial;
	if (!colon || end == colon + 1 || *end || id < 0)
		return refuse_trial(session, point, NULL);
	const char *path = text_copy(session->arena, point, (size_t)(colon - point));
	const struct json *json = read_state(session, path);
	if (!json || !choices_are_free(session) || !exploration_begin(session, &exploration) ||
	        !is_of(session, path, json, &exploration))
		return false;
	/* limits stand first in the text; without limits the design is reproduced as it was */
	const char *constraints = json_text(json, "constraints");
	if (strncmp(constraints ? constraints : "", exploration.constraints,
	            strlen(exploration.constraints)) != 0)
		return same(session, path, "constraint", constraints, exploration.constraints);
	const struct json *item = json_get(json, "trials")->first;
	for (long i = 0; item && i < id; i++)
		item = item->next;
	if (!item || !read_trial(item, &exploration, &trial) || trial.refused)
		return refuse_trial(session, point, json_get(json, "trials"));
	session->options.choices = trial.built;
	const struct json *fixed = json_get(json, "fixed_kernels");
	for (const struct json *fix = fixed ? fixed->first : NULL; fix; fix = fix->next)
		if (fix->text)
			VEC_PUSH(session->arena, &session->options.fix, fix->text);
	return true;
}
