/* Scans the text before MLIR's parser sees it, for inputs that crash MLIR 19. The parser recurses
 * at every bracket and overflows its stack at a few thousand, so open brackets outside strings and
 * comments are limited to 256. It also follows a null pointer where the lists of linalg.transpose,
 * broadcast and reduce hold anything but integers, its verifier indexes with the numbers of a
 * permutation, and values must be defined before they are used (scan_name.c). */
#include "import/read.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* maximum prefixes without a bracket or comma in between, where the parser recurses too */
#define OPERATORS_MOST 4096

struct scanner {
	const char *text;
	size_t size, at;
	int line;
	size_t line_start;
	int depth;
	int operators;
	struct alias_scan aliases;
	struct name_scan names;
};

static struct location here(const struct scanner *scanner, const char *file)
{
	return (struct location){ .file = file,
		.line = scanner->line,
		.column = (int)(scanner->at - scanner->line_start) + 1 };
}

static void skip_string(struct scanner *scanner)
{
	for (scanner->at++; scanner->at < scanner->size; scanner->at++) {
		char c = scanner->text[scanner->at];
		if (c == '"' || c == '\n')
			break;
		if (c == '\\')
			scanner->at++;
	}
	if (scanner->at < scanner->size && scanner->text[scanner->at] == '\n')
		scanner->at--;
}

static void skip_comment(struct scanner *scanner)
{
	const char *end = memchr(scanner->text + scanner->at, '\n', scanner->size - scanner->at);
	scanner->at = end ? (size_t)(end - scanner->text) - 1 : scanner->size;
}

static bool is_arrow(const struct scanner *scanner)
{
	return scanner->at > 0 && strchr("-=", scanner->text[scanner->at - 1]);
}

static bool is_relation(const struct scanner *scanner)
{
	return scanner->at + 1 < scanner->size && scanner->text[scanner->at + 1] == '=';
}

/* `>=` and `<=` are not brackets, and `->` closes none. */
static int bracket(const struct scanner *scanner)
{
	switch (scanner->text[scanner->at]) {
	case '(':
	case '[':
	case '{': return 1;
	case ')':
	case ']':
	case '}': return -1;
	case '<': return is_relation(scanner) ? 0 : 1;
	case '>': return is_relation(scanner) || is_arrow(scanner) ? 0 : -1;
	default: return 0;
	}
}

static void count(struct scanner *scanner)
{
	char c = scanner->text[scanner->at];
	int step = bracket(scanner);
	scan_brace(&scanner->names, c);
	scanner->depth += step;
	if (scanner->depth < 0)
		scanner->depth = 0;
	if (c == '+' || c == '-' || c == '*')
		scanner->operators++;
	else if (step != 0 || c == ',')
		scanner->operators = 0;
	if (c == '\n') {
		scanner->line++;
		scanner->line_start = scanner->at + 1;
	}
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_$.%#@!", c));
}

size_t scan_spaces(const char *text)
{
	return strspn(text, " \t\r\n");
}

/* The text after `WORD =`; NULL if there is something else. */
static const char *value_after(const char *text, const char *word)
{
	if (strncmp(text, word, strlen(word)) != 0)
		return NULL;
	text += strlen(word);
	text += scan_spaces(text);
	return *text == '=' ? text + 1 + scan_spaces(text + 1) : NULL;
}

/* Number and maximum of the integers in `[1, 0]`; -1: it is something else. */
static int integers_in(const char *text, int64_t *most)
{
	int count = 0;
	*most = -1;
	if (*text++ != '[')
		return -1;
	text += scan_spaces(text);
	for (; *text != ']'; count++) {
		bool negative = *text == '-';
		text += negative;
		size_t digits = strspn(text, "0123456789");
		int64_t number = digits && digits <= 18 ? strtoll(text, NULL, 10) : 0;
		if (negative || number > *most)
			*most = negative ? INT64_MAX : number;
		text += digits;
		text += scan_spaces(text);
		if (digits == 0 || digits > 18 || (*text != ',' && *text != ']'))
			return -1;
		text += *text == ',';
		text += scan_spaces(text);
	}
	return text[-1] != ',' ? count : -1;
}

/* Inside a dictionary any attribute may have this name. */
static bool is_in_dictionary(const struct scanner *scanner)
{
	size_t at = scanner->at;
	while (at > 0 && isspace((unsigned char)scanner->text[at - 1]))
		at--;
	return at > 0 && strchr("{,", scanner->text[at - 1]);
}

/* A line that starts with a letter or % is an operation and ends a definition. */
static bool is_bad_alias(struct scanner *scanner)
{
	const char *text = scanner->text + scanner->at;
	if (scanner->at == scanner->line_start && (isalpha((unsigned char)*text) || *text == '%'))
		scanner->aliases.current = NULL;
	if ((*text != '#' && *text != '!') || (!scanner->aliases.current && scanner->depth > 0))
		return false;
	return !scan_alias(&scanner->aliases, text, scanner->depth == 0);
}

struct list_syntax {
	const char *word;
	bool places; /* it is a permutation */
	const char *expected, *accepted;
};

/* The message about such a list; NULL: no list is here, or it is fine. */
static const struct list_syntax *wrong_list(const struct scanner *scanner)
{
	static const struct list_syntax lists[] = { { "permutation", true, "a permutation",
		                                            "[N, …], each number from 0 on once" },
		{ "dimensions", false, "a list of integers", "[N, …]" } };
	const char *text = scanner->text + scanner->at;
	if ((*text != 'p' && *text != 'd') || (scanner->at > 0 && is_word(text[-1])))
		return NULL;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		const char *value = value_after(text, lists[i].word);
		int64_t most;
		int count = value && !is_in_dictionary(scanner) ? integers_in(value, &most) : 0;
		if (count < 0 || (count && lists[i].places && most >= count))
			return &lists[i];
	}
	return NULL;
}

static void step_over(struct scanner *scanner)
{
	char c = scanner->text[scanner->at];
	if (c == '"')
		skip_string(scanner);
	else if (c == '/' && scanner->at + 1 < scanner->size &&
	        scanner->text[scanner->at + 1] == '/')
		skip_comment(scanner);
	else
		count(scanner);
}

bool scan_text(struct diag *diag, const char *file, const char *text, size_t size)
{
	struct scanner scanner = { .text = text,
		.size = size,
		.line = 1,
		.aliases = { .arena = diag->arena, .aliases = map_new(diag->arena) },
		.names = name_scan_new(diag->arena) };
	struct location top = { .file = file, .line = 1, .column = 1 };
	if (size == 0)
		return diag_error(diag, top, "the file is empty"), diag_note(diag, SCAN_ACCEPTED),
		       false;
	for (; scanner.at < size; scanner.at++) {
		if (text[scanner.at] == 0)
			return diag_error(diag, here(&scanner, file), "a NUL byte"),
			       diag_note(diag, "accepted is MLIR text"), false;
		if (is_bad_alias(&scanner))
			return diag_error(diag, here(&scanner, file),
			               "an alias that stands for too much"),
			       diag_note(diag,
			               "accepted are aliases of up to 2^24 others, nested up to "
			               "1000 deep"),
			       false;
		const struct list_syntax *list = wrong_list(&scanner);
		if (list)
			return diag_error(diag, here(&scanner, file), "%s is expected here",
			               list->expected),
			       diag_note(diag, "accepted is %s", list->accepted), false;
		if (text[scanner.at] == '%' && !scan_name(&scanner.names, text + scanner.at))
			return diag_error(diag, here(&scanner, file),
			               "a value that is not defined before this use"),
			       diag_note(diag, "accepted are names that the text has defined"),
			       false;
		step_over(&scanner);
		if (scanner.depth > SCAN_DEPTH_MOST)
			return diag_error(diag, here(&scanner, file),
			               "brackets are nested deeper than %d", SCAN_DEPTH_MOST),
			       diag_note(diag,
			               "accepted are up to %d open brackets of all kinds together",
			               SCAN_DEPTH_MOST),
			       false;
		if (scanner.operators > OPERATORS_MOST)
			return diag_error(diag, here(&scanner, file),
			               "an expression of more than %d operators", OPERATORS_MOST),
			       diag_note(diag, "accepted are up to %d operators in an expression",
			               OPERATORS_MOST),
			       false;
	}
	return true;
}
