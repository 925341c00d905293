#include "driver/command_line.h"
#include "base/number.h"
#include "base/closest_name.h"
#include "pipeline/session.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMPILE = 1,
	CHECK = 2,
	PLATFORMS = 4,
	PASSES = 8,
	HELP = 16,
	RUN = 32,
	SIMULATE = 64,
	ITENSOR = 128,
	EXPLORE = 256,
	SEARCH_SPACE = 512,
	LIST = 1024,
	COMPLETION = 2048,
	MODEL = 4096,
	DESIGN = COMPILE | EXPLORE,
	ALL = 0x1fff,
	TOOL = 0x2000 /* not an option of the Python package */
};

const struct command commands[] = {
	{ "compile", "FILE", "compile MLIR (linalg on tensors, or a dump) or C to a design folder",
	        true, command_compile, COMPILE, false },
	{ "explore", "FILE",
	        "explore the design space and keep the Pareto front of time, DSPs, on-chip memory, "
	        "energy and throughput",
	        true, command_explore, EXPLORE, false },
	{ "check", "FILE", "verify MLIR, a dump at its level, or C", true, command_check, CHECK,
	        false },
	{ "run", "DIR", "run a design once: inputs from .npy files, results to .npy files", true,
	        command_run, RUN, false },
	{ "simulate", "DIR",
	        "simulate the cycles of a design or hardware-level dump and report the bottleneck",
	        true, command_simulate, SIMULATE, false },
	{ "model", "FILE", "model the times and resources of a design in HLS C++ with pragmas",
	        true, command_model, MODEL, false },
	{ "platforms", NULL, "list the platforms", false, command_platforms, PLATFORMS, false },
	{ "search-space", NULL,
	        "list the design parameters that `stc explore` varies and their candidate values",
	        false, command_search_space, SEARCH_SPACE, false },
	{ "passes", NULL, "list the passes in the order in which they run", false, command_passes,
	        PASSES, false },
	{ "options", "COMMAND",
	        "list the options of a command, or of all, with types, values and defaults", false,
	        command_options, LIST, false },
	{ "completion", "bash|zsh",
	        "print a script by which the shell completes commands, options and their values",
	        true, command_completion, COMPLETION, false },
	{ "itensor", "TYPE [TYPE]",
	        "list the tiles of an itensor type; for two types: the converter between them",
	        true, command_itensor, ITENSOR, true },
	{ "help", "COMMAND", "explain a command", false, command_help, HELP, false },
};
const int command_count = sizeof commands / sizeof *commands;

#define TEXT_OF_WORD(word) #word
#define TEXT_OF(macro) TEXT_OF_WORD(macro)
#define PRESET(name, letter, metavar, group, level, commands, kind, member, preset, help)          \
	{ name, letter, metavar, help, GROUP_##group, LEVEL_##level, commands, kind,               \
		offsetof(struct options, member), preset },
#define OPTION(name, letter, metavar, group, level, commands, kind, member, help)                  \
	PRESET(name, letter, metavar, group, level, commands, kind, member, NULL, help)
#define COUNT(                                                                                     \
        code, name, metavar, group, level, least, most, default_value, unit, candidates, meaning)  \
	OPTION(name, 0, metavar, group, level,                                                     \
	        DESIGN | (CHOICE_##code == CHOICE_CLOCK ? SIMULATE : 0), OPTION_COUNT,             \
	        choices.value[CHOICE_##code], meaning)
#define WORD(code, name, metavar, group, level, words, meaning)                                    \
	OPTION(name, 0, metavar, group, level, DESIGN, OPTION_WORD, choices.value[CHOICE_##code],  \
	        meaning)
const struct option option_table[] = {
#include "driver/options.def"
#include "options/choices.def"
};
#undef OPTION
#undef PRESET
#undef COUNT
#undef WORD
const int option_count = sizeof option_table / sizeof *option_table;

/* Of two options that are given, one would do nothing. */
static const struct {
	const char *first, *second, *note;
} exclusive[] = {
	{ "second-phase", "from", "phases have to be compiled from the tensor level" },
	{ "second-phase", "to",
	        "two phases always make a complete design; stop each file in a compilation of its "
	        "own" },
	{ "second-phase", "stop-after",
	        "two phases always make a complete design; stop each file in a compilation of its "
	        "own" },
	{ "to", "stop-after", "one of them: a level's last pass, or a pass by name" },
};

/* --- parsing --- */

const struct command *command_find(const char *name)
{
	for (int i = 0; i < command_count; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

bool option_applies(const struct option *option, const struct command *command)
{
	return command ? (option->commands & command->bit) != 0
	               : !option->commands || option->commands == ALL;
}

static const struct option *option_find(
        const struct command *command, const char *name, size_t size, char letter)
{
	for (int i = 0; i < option_count; i++) {
		const struct option *option = &option_table[i];
		bool same = letter
		        ? option->letter == letter
		        : strlen(option->name) == size && !strncmp(option->name, name, size);
		if (same && option_applies(option, command))
			return option;
	}
	return NULL;
}

/* An option of a command that stands before it. */
static const struct command *owner_of(const char *name)
{
	for (int i = 0; i < option_count; i++)
		for (int j = 0; j < command_count; j++)
			if (!strcmp(option_table[i].name, name) &&
			        option_applies(&option_table[i], &commands[j]))
				return &commands[j];
	return NULL;
}

static bool unknown_option(
        struct diag *diag, const struct command *command, const char *given, const char *name)
{
	struct closest_name closest_name = { .wanted = name };
	const struct command *owner = command ? NULL : owner_of(name);
	if (owner) {
		diag_error(diag, NOWHERE, "option '%s' has to come after the command", given);
		return diag_note(diag, "stc %s … --%s …", owner->name, name);
	}
	for (int i = 0; i < option_count; i++)
		if (option_applies(&option_table[i], command))
			closest_name_consider(&closest_name, option_table[i].name);
	if (!command) {
		diag_error(diag, NOWHERE, "unknown option '%s'", given);
		return diag_note(
		        diag, "the nearest is --%s; `stc --help` lists all", closest_name.found);
	}
	diag_error(diag, NOWHERE, "unknown option '%s' of %s", given, command->name);
	return diag_note(diag, "the nearest is --%s; `stc %s --help` lists all", closest_name.found,
	        command->name);
}

const struct choice_info *option_choice(const struct option *option)
{
	size_t first = offsetof(struct options, choices.value);
	size_t number = (option->offset - first) / sizeof(int64_t);
	return option->offset >= first && number < CHOICES ? &choice_info[number] : NULL;
}

static bool parse_count(
        struct diag *diag, const struct option *option, const char *value, int64_t *count)
{
	static const char units[] = "KMGT";
	char *end;
	int64_t number = whole_number(value, &end);
	const char *unit = *end ? strchr(units, *end) : NULL;
	int shift = unit ? 10 * (int)(unit - units + 1) : 0;
	bool whole =
	        end != value && number > 0 && !end[unit != NULL] && number <= (INT64_MAX >> shift);
	if (!whole) {
		const struct choice_info *choice = option_choice(option);
		diag_error(diag, NOWHERE, "--%s is '%s'", option->name, value);
		if (strchr(option->metavar, '|'))
			return diag_note(diag, "accepted is %s", option->metavar);
		return diag_note(diag,
		        "a whole number from %lld to %lld, with K, M, G or T for powers of 1024",
		        (long long)(choice ? choice->least : 1),
		        (long long)(choice ? choice->most : INT64_MAX));
	}
	*count = number << shift;
	return true;
}

bool option_of_package(const struct option *option)
{
	return option->commands && option->commands != ALL && !(option->commands & TOOL);
}

static bool store_count(
        struct diag *diag, const struct option *option, const char *value, int64_t *at)
{
	const struct choice_info *choice = option_choice(option);
	if (!parse_count(diag, option, value, at))
		return false;
	if (!choice || (*at >= choice->least && *at <= choice->most))
		return true;
	diag_error(diag, NOWHERE, "--%s is %lld", option->name, (long long)*at);
	return diag_note(
	        diag, "from %lld to %lld", (long long)choice->least, (long long)choice->most);
}

static bool store_word(
        struct diag *diag, const struct option *option, const char *value, int64_t *at)
{
	const struct choice_info *choice = option_choice(option);
	struct closest_name closest_name = { .wanted = value };
	for (*at = 1; *at <= choice->words; ++*at) {
		closest_name_consider(&closest_name, choice->word[*at - 1]);
		if (text_same(value, choice->word[*at - 1]))
			return true;
	}
	diag_error(diag, NOWHERE, "--%s is '%s'", option->name, value);
	return diag_note(
	        diag, "the nearest is %s; `stc compile --help` lists all", closest_name.found);
}

static bool store(
        struct diag *diag, struct options *options, const struct option *option, const char *value)
{
	void *at = (char *)options + option->offset;
	if (option->kind == OPTION_COUNT)
		return store_count(diag, option, value, at);
	if (option->kind == OPTION_WORD)
		return store_word(diag, option, value, at);
	if (option->kind == OPTION_FLAG)
		*(bool *)at = true;
	else if (option->kind == OPTION_TEXT)
		*(const char **)at = value;
	else
		VEC_PUSH(diag->arena, (struct option_list *)at, value);
	if (option->kind != OPTION_FLAG && !*value) {
		diag_error(diag, NOWHERE, "--%s is empty", option->name);
		return diag_note(diag, "--%s %s", option->name, option->metavar);
	}
	return true;
}

bool option_set(struct diag *diag, struct options *options, const struct command *command,
        const char *name, const char *value)
{
	const struct option *option = option_find(command, name, strlen(name), 0);
	return option ? store(diag, options, option, value)
	              : unknown_option(diag, command, name, name);
}

struct argument_list {
	char *const *next, *const *end; /* arguments that are not yet taken */
};

/* One argument that begins with `-`, and its value if the option takes one. */
static bool parse_option(struct arena *arena, struct diag *diag, const struct command *command,
        struct options *options, struct argument_list *arguments)
{
	const char *given = *arguments->next++;
	bool is_long = given[1] == '-';
	const char *name = is_long ? given + 2 : given + 1;
	const char *equals = is_long ? strchr(name, '=') : NULL;
	size_t size = equals ? (size_t)(equals - name) : strlen(name);
	const char letter = is_long ? 0 : *name;
	const struct option *option = option_find(command, name, size, letter);
	bool joins = option && (option->kind == OPTION_LIST || strchr("0123456789", name[1]));
	bool attached = !is_long && size > 1 && joins; /* -O2, -DNAME */
	if (!is_long && size > 1 && !attached)
		option = NULL;
	if (!option)
		return unknown_option(diag, command,
		        equals ? text_copy(arena, given, (size_t)(equals - given)) : given,
		        text_copy(arena, name, size));
	if (attached)
		return store(diag, options, option, name + 1);
	if (option->kind == OPTION_FLAG && !equals)
		return store(diag, options, option, "1");
	if (option->kind == OPTION_FLAG)
		return diag_error(diag, NOWHERE, "option '--%s' takes no value", option->name);
	if (!equals && arguments->next == arguments->end) {
		diag_error(diag, NOWHERE, "option '%s' lacks its value", given);
		return diag_note(diag, "--%s %s", option->name, option->metavar);
	}
	return store(diag, options, option, equals ? equals + 1 : *arguments->next++);
}

bool command_unknown(struct diag *diag, const char *name)
{
	struct closest_name closest_name = { .wanted = name };
	for (int i = 0; i < command_count; i++)
		closest_name_consider(&closest_name, commands[i].name);
	diag_error(diag, NOWHERE, "unknown command '%s'", name);
	return diag_note(diag, "the nearest is '%s'; `stc --help` lists all", closest_name.found);
}

static bool take_operand(struct diag *diag, struct options *options, const struct command *command,
        const char *value)
{
	if (options->file && !options->second && command->takes_second) {
		options->second = value;
		return true;
	}
	if (!command->operand || options->file) {
		diag_error(diag, NOWHERE, "unexpected argument '%s'", value);
		return diag_note(diag, "stc %s%s%s", command->name, command->operand ? " " : "",
		        command->operand ? command->operand : "");
	}
	options->file = value;
	return true;
}

bool options_parse(struct arena *arena, struct diag *diag, int count, char *const *arguments,
        struct options *options, const struct command **command)
{
	struct argument_list rest = { arguments + (count > 0), arguments + count };
	bool only_operands = false;
	*command = NULL;
	while (rest.next < rest.end) {
		const char *argument = *rest.next;
		if (!only_operands && !strcmp(argument, "--")) {
			only_operands = true;
			rest.next++;
		} else if (!only_operands && argument[0] == '-' && argument[1]) {
			if (!parse_option(arena, diag, *command, options, &rest))
				return false;
		} else if (!*command) {
			*command = command_find(argument);
			if (!*command)
				return command_unknown(diag, argument);
			rest.next++;
		} else if (!take_operand(diag, options, *command, *rest.next++)) {
			return false;
		}
	}
	options->help = options->help || options->help_expert;
	if (options->help || options->version)
		return true;
	if (!*command) {
		diag_error(diag, NOWHERE, "no command");
		return diag_note(diag, "`stc --help` lists them");
	}
	if ((*command)->operand_needed && !options->file) {
		diag_error(diag, NOWHERE, "%s lacks its %s", (*command)->name, (*command)->operand);
		return diag_note(diag, "stc %s %s", (*command)->name, (*command)->operand);
	}
	return true;
}

static bool is_set(const struct options *options, const struct command *command, const char *name)
{
	const struct option *option = option_find(command, name, strlen(name), 0);
	return option && *(const char *const *)((const char *)options + option->offset);
}

bool options_agree(struct diag *diag, const struct options *options, const struct command *command)
{
	for (size_t i = 0; i < sizeof exclusive / sizeof *exclusive; i++)
		if (is_set(options, command, exclusive[i].first) &&
		        is_set(options, command, exclusive[i].second)) {
			diag_error(diag, NOWHERE, "--%s cannot be combined with --%s",
			        exclusive[i].second, exclusive[i].first);
			return diag_note(diag, "%s", exclusive[i].note);
		}
	return true;
}

/* --- help --- */

const char *const option_group_name[OPTION_GROUPS] = { "target", "numbers", "search", "limits",
	"stages", "output" };

static void help_option(struct text *out, const struct option *option)
{
	struct text left = text_new(out->arena);
	if (option->letter)
		text_add(&left, "-%c, ", option->letter);
	text_add(&left, "--%s%s%s", option->name, option->metavar ? " " : "",
	        option->metavar ? option->metavar : "");
	text_add(out, "  %-26s %s", left.data, option->help);
	if (option->preset)
		text_add(out, " (default %s)", option->preset);
	text_add(out, "\n");
}

static void help_group(struct text *out, const struct command *command, enum option_group group,
        enum option_level level)
{
	bool begun = false;
	for (int i = 0; i < option_count; i++) {
		if (option_table[i].group != group || option_table[i].level > level ||
		        !option_applies(&option_table[i], command))
			continue;
		if (!begun)
			text_add(out, "\n%s:\n", option_group_name[group]);
		begun = true;
		help_option(out, &option_table[i]);
	}
}

static void help_options(struct text *out, const struct command *command, enum option_level level)
{
	int hidden = 0;
	for (int group = 0; group < OPTION_GROUPS; group++)
		help_group(out, command, (enum option_group)group, level);
	for (int i = 0; i < option_count; i++)
		hidden +=
		        option_table[i].level > level && option_applies(&option_table[i], command);
	if (hidden)
		text_add(out, "\n`stc %s --help-expert` lists %d more options\n", command->name,
		        hidden);
}

void options_help(struct text *out, const struct command *command, bool expert)
{
	enum option_level level = expert ? LEVEL_EXPERT : LEVEL_EVERYDAY;
	if (command) {
		text_add(out, "usage: stc %s", command->name);
		if (command->operand)
			text_add(out, command->operand_needed ? " %s" : " [%s]", command->operand);
		text_add(out, " [OPTION …]\n\n%s\n", command->help);
		help_options(out, command, level);
		return;
	}
	text_add(out,
	        "usage: stc COMMAND [OPTION …]\n\nCompiles tensor programs to stream dataflow "
	        "accelerators.\n\ncommands:\n");
	for (int i = 0; i < command_count; i++) {
		struct text left = text_new(out->arena);
		text_add(&left, "%s %s", commands[i].name,
		        commands[i].operand ? commands[i].operand : "");
		text_add(out, "  %-22s %s\n", left.data, commands[i].help);
	}
	help_options(out, NULL, level);
}
