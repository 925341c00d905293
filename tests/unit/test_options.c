/* The option table, and sessions through the public API. */
#include "driver/command_line.h"
#include "pipeline/session.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PARSE(session, ...)                                                                        \
	parse(session, (char *const[]){ (char *)(uintptr_t)"stc", __VA_ARGS__, NULL })
#define WORD(text) ((char *)(uintptr_t)(text))

static const struct command *chosen;

static bool parse(struct session *session, char *const *arguments)
{
	int count = 0;
	while (arguments[count])
		count++;
	session->diag.count = 0;
	memset(&session->options, 0, sizeof session->options);
	return options_parse(
	        session->arena, &session->diag, count, arguments, &session->options, &chosen);
}

static const char *error(const struct session *session)
{
	return session->diag.count ? session->diag.entry[0].message : "none";
}

static void options_are_read(void **state)
{
	struct session *s = *state;
	assert_true(PARSE(s, WORD("compile"), WORD("x.mlir"), WORD("--platform=u280"), WORD("-o"),
	        WORD("d"), WORD("--on-chip-memory"), WORD("4M"), WORD("--progress")));
	assert_string_equal(chosen->name, "compile");
	assert_string_equal(s->options.file, "x.mlir");
	assert_string_equal(s->options.platform, "u280");
	assert_string_equal(s->options.output, "d");
	assert_int_equal(s->options.choices.value[CHOICE_ON_CHIP], 4 << 20);
	assert_true(s->options.progress);
	assert_true(PARSE(s, WORD("check"), WORD("--"), WORD("-odd")));
	assert_string_equal(s->options.file, "-odd");
	assert_true(PARSE(s, WORD("check"), WORD("-")));
	assert_string_equal(s->options.file, "-");
	assert_true(PARSE(s, WORD("--version")));
	assert_true(s->options.version && !chosen);
}

static void wrong_options_are_refused(void **state)
{
	struct session *s = *state;
	assert_false(PARSE(s, WORD("compile"), WORD("x"), WORD("--outptu"), WORD("d")));
	assert_string_equal(error(s), "unknown option '--outptu' of compile");
	assert_non_null(strstr(s->diag.entry[0].note, "--output;"));
	assert_false(PARSE(s, WORD("chek"), WORD("x")));
	assert_non_null(strstr(s->diag.entry[0].note, "'check'"));
	/* not an option of check */
	assert_false(PARSE(s, WORD("check"), WORD("x"), WORD("--platform"), WORD("u55c")));
	assert_false(PARSE(s, WORD("compile"), WORD("x"), WORD("-o")));
	assert_string_equal(error(s), "option '-o' lacks its value");
	assert_false(PARSE(s, WORD("compile"), WORD("-o"), WORD("d")));
	assert_string_equal(error(s), "compile lacks its FILE");
	assert_false(PARSE(s, WORD("compile"), WORD("a"), WORD("b")));
	assert_false(PARSE(s, WORD("platforms"), WORD("b")));
	assert_false(PARSE(s, WORD("compile"), WORD("a"), WORD("--on-chip-memory"),
	        WORD("99999999999999999999")));
	assert_false(PARSE(s, WORD("compile"), WORD("a"), WORD("--on-chip-memory"),
	        WORD("9223372036854775807K")));
	assert_false(PARSE(s, WORD("compile"), WORD("a"), WORD("--on-chip-memory"), WORD("-4")));
	assert_true(parse(s, (char *const[]){ WORD("stc"), NULL }) == false);
	assert_string_equal(error(s), "no command");
}

static void help_comes_from_the_table(void **state)
{
	struct session *s = *state;
	struct text all = text_new(s->arena);
	struct text one = text_new(s->arena);
	struct text expert = text_new(s->arena);
	options_help(&all, NULL, false);
	for (int i = 0; i < command_count; i++)
		assert_non_null(strstr(all.data, commands[i].name));
	options_help(&one, command_find("compile"), false);
	assert_non_null(strstr(one.data, "-o, --output DIR"));
	assert_null(strstr(one.data, "--version"));
	assert_null(strstr(one.data, "--dump-dir"));
	assert_non_null(strstr(one.data, "\ntarget:\n"));
	assert_non_null(strstr(one.data, "--help-expert` lists"));
	options_help(&expert, command_find("compile"), true);
	assert_non_null(strstr(expert.data, "--dump-dir DIR"));
	assert_null(strstr(expert.data, "--help-expert` lists"));
}

static bool break_invariant(struct session *session)
{
	session_stage(session, "some_pass");
	INVARIANT(&session->guard, false, "kernel k3 lost its %s", "loops");
	return true;
}

static bool ask_for_too_much(struct session *session)
{
	return arena_alloc(session->arena, SIZE_MAX) != NULL;
}

static void the_guard_ends_a_session(void **state)
{
	struct session *s = *state;
	assert_int_equal(session_guarded(s, break_invariant), STC_INTERNAL);
	assert_non_null(
	        strstr(s->last_words, "internal error in some_pass: kernel k3 lost its loops"));
	assert_int_equal(session_guarded(s, ask_for_too_much), STC_REFUSED);
	assert_non_null(strstr(s->last_words, "out of memory"));
}

static void the_pipeline_is_one_chain(void **state)
{
	(void)state;
	enum level level = LEVEL_TENSOR;
	for (int i = 0; i < pass_count; i++) {
		assert_int_equal(passes[i].needed, level);
		assert_true(passes[i].produced >= level);
		assert_int_equal(pass_find(passes[i].name), i);
		level = passes[i].produced;
	}
	assert_int_equal(level, LEVEL_HARDWARE);
	/* between them: the pass that leads there */
	assert_int_equal(pass_first(LEVEL_DEMAND), pass_last(LEVEL_TENSOR) + 2);
	assert_int_equal(pass_first(LEVEL_STREAM), pass_last(LEVEL_DEMAND) + 2);
	assert_int_equal(pass_last(LEVEL_HARDWARE), pass_count - 1);
}

#define MODEL "stress_test.mlir"

static void write_model(const char *name)
{
	FILE *file = fopen(name, "w");
	fputs("func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\n  %0 = math.exp %a : "
	      "tensor<4x4xf32>\n  return %0 : tensor<4x4xf32>\n}\n",
	        file);
	fclose(file);
}

static void change_exp(struct op *op, void *context)
{
	(void)context;
	if (op->code == OP_EXP)
		op->code = OP_TANH;
}

static bool harm_values(struct session *session)
{
	static const struct pass harmful = { .name = "harmful", .numeric = NUMERIC_APPROXIMATING };
	assert_true(load_module(session, session->options.file));
	struct stress *stress = stress_begin(session);
	ir_walk(module_body(session->module), change_exp, NULL);
	stress_check(session, stress, &harmful);
	return true;
}

static bool harm_nothing(struct session *session)
{
	static const struct pass idle = { .name = "idle", .numeric = NUMERIC_EXACT };
	assert_true(load_module(session, session->options.file));
	stress_check(session, stress_begin(session), &idle);
	return true;
}

static void stress_finds_changed_values(void **state)
{
	struct session *s = *state;
	write_model(MODEL);
	s->options.file = MODEL;
	assert_int_equal(session_guarded(s, harm_nothing), STC_OK);
	assert_int_equal(session_guarded(s, harm_values), STC_INTERNAL);
	assert_non_null(strstr(s->last_words, "result 0 is off by"));
	remove(MODEL);
}

static void count_stage(void *user, const char *name)
{
	(void)name;
	++*(int *)user;
}

static void the_api_compiles(void **state)
{
	(void)state;
	int stages = 0;
	struct stc_session *session = stc_session_new();
	assert_int_equal(stc_session_set(session, "to", "stream"), STC_OK);
	assert_int_equal(stc_session_set(session, "platfrom", "u55c"), STC_REFUSED);
	assert_non_null(strstr(stc_session_messages(session), "the nearest is --platform"));
	stc_session_free(session);

	const char *path = "api_test.mlir";
	write_model(path);
	session = stc_session_new();
	stc_session_on_stage(session, count_stage, &stages);
	assert_int_equal(stc_session_set(session, "platform", "u55c"), STC_OK);
	assert_int_equal(stc_session_set(session, "to", "stream"), STC_OK);
	assert_int_equal(stc_session_compile(session, path), STC_OK);
	assert_string_equal(stc_session_messages(session), "");
	assert_non_null(strstr(stc_session_text(session), "stream.kernel"));
	assert_true(stages > 3);
	stc_session_free(session);

	session = stc_session_new();
	stc_session_stop(session);
	assert_int_equal(stc_session_set(session, "to", "stream"), STC_OK);
	assert_int_equal(stc_session_compile(session, path), STC_REFUSED);
	assert_non_null(strstr(stc_session_messages(session), "interrupted"));
	stc_session_free(session);
	remove(path);
}

static int open_session(void **state)
{
	return (*state = session_new()) ? 0 : -1;
}

static int close_session(void **state)
{
	session_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(options_are_read, open_session, close_session),
		cmocka_unit_test_setup_teardown(
		        wrong_options_are_refused, open_session, close_session),
		cmocka_unit_test_setup_teardown(
		        help_comes_from_the_table, open_session, close_session),
		cmocka_unit_test_setup_teardown(
		        the_guard_ends_a_session, open_session, close_session),
		cmocka_unit_test(the_pipeline_is_one_chain),
		cmocka_unit_test_setup_teardown(
		        stress_finds_changed_values, open_session, close_session),
		cmocka_unit_test(the_api_compiles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
