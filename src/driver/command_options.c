/* `stc options` and `stc completion`: the table of options for programs and for shells. */
#include "base/json.h"
#include "driver/command_line.h"
#include "pipeline/session.h"
#include <string.h>

static const char *const kind_name[] = {
	[OPTION_FLAG] = "flag",
	[OPTION_TEXT] = "text",
	[OPTION_COUNT] = "count",
	[OPTION_LIST] = "list",
	[OPTION_WORD] = "word",
};

/* --- the list */

static void add_member(struct text *out, const char *key, const char *value)
{
	text_add(out, ", \"%s\": ", key);
	if (value)
		json_quote(out, value);
	else
		text_add(out, "null");
}

static void add_words(struct text *out, const struct choice_info *choice)
{
	text_add(out, ", \"words\": ");
	json_quote_list(out, choice->word, (size_t)choice->words);
}

/* The default as the option takes it; NULL: there is none, or it depends on the platform. */
static const char *default_text(struct arena *arena, const struct option *option)
{
	const struct choice_info *choice = option_choice(option);
	struct text text = text_new(arena);
	if (!choice || choice->unit != UNIT_ONE)
		return option->preset;
	choice_print(&text, (enum choice)(choice - choice_info), choice->default_value, false);
	return text.data;
}

static void add_commands(struct text *out, const struct option *option)
{
	bool any = false;
	text_add(out, ", \"commands\": [");
	for (int i = 0; i < command_count; i++) {
		if (!option_applies(option, &commands[i]))
			continue;
		text_add(out, "%s", any ? ", " : "");
		json_quote(out, commands[i].name);
		any = true;
	}
	text_add(out, "]");
}

static void list_option_json(struct text *out, const struct option *option)
{
	const struct choice_info *choice = option_choice(option);
	char letter[2] = { option->letter };
	text_add(out, "{\"name\": ");
	json_quote(out, option->name);
	add_member(out, "letter", option->letter ? letter : NULL);
	add_member(out, "kind", kind_name[option->kind]);
	add_member(out, "value", option->metavar);
	if (choice && choice->word)
		add_words(out, choice);
	else if (choice)
		text_add(out, ", \"least\": %lld, \"most\": %lld", (long long)choice->least,
		        (long long)choice->most);
	add_member(out, "default", default_text(out->arena, option));
	add_member(out, "group", option_group_name[option->group]);
	text_add(out, ", \"expert\": %s", option->level == LEVEL_EXPERT ? "true" : "false");
	text_add(out, ", \"package\": %s", option_of_package(option) ? "true" : "false");
	add_commands(out, option);
	add_member(out, "help", option->help);
	text_add(out, "}");
}

static void list_options_json(struct text *out, const struct command *command)
{
	bool any = false;
	text_add(out, "[");
	for (int i = 0; i < option_count; i++) {
		if (command && !option_applies(&option_table[i], command))
			continue;
		text_add(out, "%s", any ? ",\n " : "");
		list_option_json(out, &option_table[i]);
		any = true;
	}
	text_add(out, "]\n");
}

bool command_options(struct session *session)
{
	const char *name = session->options.file;
	const struct command *command = name ? command_find(name) : NULL;
	if (name && !command)
		return command_unknown(&session->diag, name);
	if (session->options.json) {
		list_options_json(&session->out, command);
		return true;
	}
	for (int i = 0; i < command_count; i++)
		if (!command || command == &commands[i])
			options_help(&session->out, &commands[i], true);
	return true;
}

/* --- completion */

/* The shell command that prints the values of an option; NULL: names of files. */
static const char *values_of(struct arena *arena, const struct option *option)
{
	const struct choice_info *choice = option_choice(option);
	if (choice && choice->word) {
		struct text words = text_new(arena);
		text_add(&words, "echo");
		for (int i = 0; i < choice->words; i++)
			text_add(&words, " %s", choice->word[i]);
		return words.data;
	}
	if (!strcmp(option->name, "platform"))
		return "stc platforms | cut -d ' ' -f 1";
	if (!strcmp(option->name, "channel-depth"))
		return "for i in \"${COMP_WORDS[@]}\"; do [ -f \"$i/design.mlir\" ] && sed -n "
		       "'s/.*\"stream.fifo\"() {.*name = \"\\([^\"]*\\)\".*/\\1=/p' "
		       "\"$i/design.mlir\"; done";
	if (!strcmp(option->metavar, "PASS"))
		return "stc passes | sed -n 's/^\\([a-z_]*\\) .*/\\1/p'";
	return NULL;
}

static void complete_values(struct text *out)
{
	for (int i = 0; i < option_count; i++) {
		const struct option *option = &option_table[i];
		const char *values =
		        option->kind == OPTION_FLAG ? NULL : values_of(out->arena, option);
		if (values)
			text_add(out,
			        "\t--%s)\n\t\tCOMPREPLY=($(compgen -W \"$(%s)\" -- \"$word\"))\n"
			        "\t\treturn ;;\n",
			        option->name, values);
	}
}

static void complete_options(struct text *out)
{
	for (int i = 0; i < command_count; i++) {
		text_add(out, "\t%s) options=\"", commands[i].name);
		for (int j = 0; j < option_count; j++)
			if (option_applies(&option_table[j], &commands[i]))
				text_add(out, "--%s ", option_table[j].name);
		text_add(out, "\" ;;\n");
	}
}

/* zsh runs the script of bash. */
bool command_completion(struct session *session)
{
	struct text *out = &session->out;
	const char *shell = session->options.file;
	bool zsh = !strcmp(shell, "zsh");
	if (!zsh && strcmp(shell, "bash")) {
		diag_error(&session->diag, NOWHERE, "there is no completion for '%s'", shell);
		return diag_note(&session->diag, "bash or zsh");
	}
	text_add(out, "%s",
	        zsh ? "#compdef stc\nautoload -U +X bashcompinit && bashcompinit\n" : "");
	text_add(out,
	        "# To use: source <(stc completion %s)\n_stc()\n{\n"
	        "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
	        "\tlocal options=\"--help --version\"\n"
	        "\t[ \"$word\" = = ] && word=\n"
	        "\t[ \"$before\" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
	        "\tcase \"$before\" in\n",
	        shell);
	complete_values(out);
	text_add(out, "\tesac\n\tcase \"${COMP_WORDS[1]}\" in\n");
	complete_options(out);
	text_add(out,
	        "\tesac\n\tif [ \"${word#-}\" != \"$word\" ]; then\n"
	        "\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
	        "\telif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"");
	for (int i = 0; i < command_count; i++)
		text_add(out, "%s ", commands[i].name);
	text_add(out,
	        "\" -- \"$word\"))\n\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	        "\tfi\n}\ncomplete -o filenames -F _stc stc\n");
	return true;
}
