/* One table of commands and options: it parses the command line and prints the help. */
#ifndef STC_OPTIONS_H
#define STC_OPTIONS_H
#include "base/diag.h"
#include "pass/choices.h"
#include <stdint.h>

struct session;

enum limit { LIMIT_DSP, LIMIT_LUT, LIMIT_BRAM, LIMIT_URAM, LIMITS };

struct options {
	const char *file;         /* the command's operand */
	const char *second;       /* its second one */
	const char *platform;     /* NULL: the default */
	const char *weights;
	const char *quant;
	const char *output;
	const char *dump_dir;
	const char *from, *stop_after;    /* passes */
	const char *to;           /* level */
	struct choices choices;   /* those given */
	const char *limit[LIMITS];        /* --max-…; NULL: what the platform has */
	const char *target_ms;
	int64_t effort;           /* -O; 0: 2 */
	int64_t trials;           /* 0: the default */
	bool resume;
	const char *point;        /* STATE.json:ID */
	const char *lp;           /* file for the linear program of FIFO depths */
	int64_t events;           /* most iterations to simulate; 0: the default */
	int64_t launches;         /* to simulate; 0: one */
	int64_t tokens;           /* of a launch that is run or simulated; 0: not said */
	int64_t samples;          /* points over time; 0: none */
	const char *trace;        /* file for a simulation over time */
	bool progress, help, version, json, overlap;
	struct option_list {
		const char **data;
		size_t count, capacity;
	} in, out, depth, extent, fix;    /* NAME=FILE, CHANNEL=COUNT, INPUT=COUNT, KERNEL:…, in the order given */
	const char *device;       /* NULL: cpu */
	const char *with;         /* module of a second phase; NULL: there is none */
	const char *phase;        /* NULL: the first */
};

struct command {
	const char *name, *operand, *help;
	bool operand_needed;
	bool (*run)(struct session *session);
	unsigned bit;             /* in struct option.commands */
	bool takes_second;        /* a second operand, if one is given */
};

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_COUNT, OPTION_LIST, OPTION_WORD };

struct option {
	const char *name;
	char letter;              /* 0: none */
	const char *metavar, *help;
	unsigned commands;
	enum option_kind kind;
	size_t offset;            /* in struct options */
};

extern const struct command commands[];
extern const int command_count;

/* arguments[0] is the program's name.  *command is NULL where none was named (help or version is set then, or the line is refused). */
bool options_parse(struct arena *arena, struct diag *diag, int count, char *const *arguments, struct options *options, const struct command **command);
bool option_set(struct diag *diag, struct options *options, const struct command *command, const char *name, const char *value);
/* false after a diagnostic: of two options that are given, one would do nothing. */
bool options_agree(struct diag *diag, const struct options *options, const struct command *command);
void options_help(struct text *out, const struct command *command);   /* NULL: of the program */
const struct command *command_find(const char *name);

#endif
