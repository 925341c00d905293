/* The table of commands and options, by which the command line is parsed and the help printed. */
#ifndef STC_COMMAND_LINE_H
#define STC_COMMAND_LINE_H
#include "base/diag.h"
#include "options/options.h"
#include <stddef.h>

struct session;

struct command {
	const char *name, *operand, *help;
	bool operand_needed;
	bool (*run)(struct session *session);
	unsigned bit;      /* in struct option.commands */
	bool takes_second; /* accepts a second operand */
};

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_COUNT, OPTION_LIST, OPTION_WORD };

/* What an option is about; the help prints a heading for each. */
enum option_group {
	GROUP_TARGET,
	GROUP_NUMBERS,
	GROUP_SEARCH,
	GROUP_LIMITS,
	GROUP_STAGES,
	GROUP_OUTPUT,
	OPTION_GROUPS
};

/* Expert options are printed by --help-expert alone. */
enum option_level { LEVEL_EVERYDAY, LEVEL_EXPERT };

struct option {
	const char *name;
	char letter; /* 0: none */
	const char *metavar, *help;
	enum option_group group;
	enum option_level level;
	unsigned commands;
	enum option_kind kind;
	size_t offset;      /* in struct options */
	const char *preset; /* the default, as it is written; NULL: the help says what is done */
};

extern const char *const option_group_name[OPTION_GROUPS];
extern const struct option option_table[];
extern const int option_count;
extern const struct command commands[];
extern const int command_count;

/* Parses the command line; arguments[0] is the program's name.  *command is NULL if none is named:
 * then help or version is set.  false: a diagnostic. */
bool options_parse(struct arena *arena, struct diag *diag, int count, char *const *arguments,
        struct options *options, const struct command **command);
bool option_set(struct diag *diag, struct options *options, const struct command *command,
        const char *name, const char *value);
/* false after a diagnostic: one option makes another one useless. */
bool options_agree(struct diag *diag, const struct options *options, const struct command *command);
/* command: NULL: of the program.  expert: with the expert options. */
void options_help(struct text *out, const struct command *command, bool expert);
const struct command *command_find(const char *name);
/* false, after a diagnostic with the nearest name */
bool command_unknown(struct diag *diag, const char *name);
/* Whether the command has the option; NULL: the program. */
bool option_applies(const struct option *option, const struct command *command);
/* whether the Python package has the option, too */
bool option_of_package(const struct option *option);
/* The choice that an option sets; NULL: it is none. */
const struct choice_info *option_choice(const struct option *option);

bool command_compile(struct session *session);
bool command_explore(struct session *session);
bool command_search_space(struct session *session);
bool command_check(struct session *session);
bool command_run(struct session *session);
bool command_simulate(struct session *session);
bool command_model(struct session *session);
bool command_platforms(struct session *session);
bool command_passes(struct session *session);
bool command_itensor(struct session *session);
bool command_options(struct session *session);
bool command_completion(struct session *session);
bool command_help(struct session *session);
void version_text(struct text *out);

#endif
