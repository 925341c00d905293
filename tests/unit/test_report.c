/* Time, resources and reports of a hardware-level design small enough to count by hand: load,
 * square 100 words, store. */
#include "report/report.h"
#include "import/import.h"
#include "predict/images.h"
#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PROCESS(name, types, body)                                                                 \
	"\"func.func\"() ({\n" body "\"func.return\"() : () -> ()\n}) {arg_attrs = [{stream.name " \
	"= \"a\"}, {stream.name = \"b\"}], function_type = (" types                                \
	") -> (), stream.die = 0 : i64, stream.process, stream.style = \"stp\", sym_name = "       \
	"\"" name "\", sym_visibility = \"private\"} : () -> ()\n"
#define CONSTANTS(trips)                                                                           \
	"%c0 = \"arith.constant\"() {value = 0 : index} : () -> index\n%c1 = "                     \
	"\"arith.constant\"() {value = 1 : index} : () -> index\n"                                 \
	"%n = \"arith.constant\"() {value = " trips                                                \
	" : index} : () -> index\n%t = \"arith.constant\"() {value = true} : () -> i1\n"
#define LOOP(counter, body, attributes)                                                            \
	"\"scf.for\"(%c0, %n, %c1) ({\n^bb0(%" counter ": index):\n" body                          \
	"\"scf.yield\"() : () -> ()\n})" attributes " : (index, index, index) -> ()\n"
#define FIFO "!stream.fifo<f32, 16>"
#define PORT "memref<?xf32>"
#define SQUARE                                                                                     \
	"%x = \"stream.pop\"(%t, %a) : (i1, " FIFO                                                 \
	") -> f32\n%y = \"arith.mulf\"(%x, %x) : (f32, f32) -> f32\n"                              \
	"\"stream.push\"(%t, %y, %b) : (i1, f32, " FIFO ") -> ()\n"
#define TAKE "%x = \"stream.pop\"(%t, %b) : (i1, " FIFO ") -> f32\n"

#define DESIGN(square)                                                                             \
	"\"builtin.module\"() ({\n\"func.func\"() ({\n^bb0(%m: " PORT ", %r: " PORT "):\n"         \
	"%a = \"stream.fifo\"() {name = \"s_a\"} : () -> " FIFO                                    \
	"\n%b = \"stream.fifo\"() {name = \"s_b\"} : () -> " FIFO "\n"                             \
	"\"func.call\"(%m, %a) {callee = @load} : (" PORT ", " FIFO ") -> ()\n"                    \
	"\"func.call\"(%r, %b) {callee = @store} : (" PORT ", " FIFO ") -> ()\n"                   \
	"\"func.call\"(%a, %b) {callee = @square} : (" FIFO ", " FIFO                              \
	") -> ()\n\"func.return\"() : () -> ()\n"                                                  \
	"}) {arg_attrs = [{stream.buffer = \"x\", stream.channel = 0 : i64, stream.direction = "   \
	"\"read\", stream.port = \"m_x\"}, "                                                       \
	"{stream.buffer = \"y\", stream.channel = 1 : i64, stream.direction = \"write\", "         \
	"stream.port = \"m_y\"}], function_type = (" PORT ", " PORT ") -> (), "                    \
	"stream.buffers = [], stream.inputs = [{name = \"w\", role = \"weight\", type = "          \
	"tensor<100xf32>}, {gathered_elements = 10 : i64, name = \"t\", role = \"weight\", type "  \
	"= tensor<500x10xf32>}], "                                                                 \
	"stream.outputs = [{name = \"r\", role = \"output\", type = tensor<100xf32>}], sym_name "  \
	"= \"main\"} : () -> ()\n" PROCESS("load", PORT ", " FIFO,                                 \
	        "^bb0(%a: " PORT ", %b: " FIFO "):\n" CONSTANTS("100") LOOP("i",                   \
	                "%x = \"memref.load\"(%a, %i) : (" PORT                                    \
	                ", index) -> f32\n\"stream.push\"(%t, %x, %b) : (i1, f32, " FIFO           \
	                ") -> ()\n",                                                               \
	                " {stream.pipeline = 1 : i64}")) PROCESS("store", PORT ", " FIFO,          \
	        "^bb0(%a: " PORT ", %b: " FIFO "):\n" CONSTANTS("100") LOOP("i",                   \
	                TAKE "\"memref.store\"(%x, %a, %i) : (f32, " PORT ", index) -> ()\n",      \
	                " {stream.pipeline = 1 : i64}")) square                                    \
	        "}) {stream.level = \"hardware\"} : () -> ()\n"

#define PLAIN                                                                                      \
	PROCESS("square", FIFO ", " FIFO,                                                          \
	        "^bb0(%a: " FIFO ", %b: " FIFO "):\n" CONSTANTS("100")                             \
	                LOOP("i", SQUARE, " {stream.pipeline = 1 : i64}"))
#define SLOW                                                                                       \
	PROCESS("square", FIFO ", " FIFO,                                                          \
	        "^bb0(%a: " FIFO ", %b: " FIFO "):\n" CONSTANTS("100")                             \
	                LOOP("i", SQUARE, " {stream.pipeline = 4 : i64}"))
#define MOVING                                                                                     \
	PROCESS("square", FIFO ", " FIFO,                                                          \
	        "^bb0(%a: " FIFO ", %b: " FIFO "):\n" CONSTANTS("100") LOOP("i",                   \
	                "%x = \"stream.pop\"(%t, %a) : (i1, " FIFO                                 \
	                ") -> f32\n\"stream.push\"(%t, %x, %b) : (i1, f32, " FIFO ") -> ()\n",     \
	                " {stream.pipeline = 4 : i64}"))
#define NESTED                                                                                     \
	PROCESS("square", FIFO ", " FIFO,                                                          \
	        "^bb0(%a: " FIFO ", %b: " FIFO "):\n" CONSTANTS("10")                              \
	                LOOP("i", LOOP("j", SQUARE, " {stream.pipeline = 1 : i64}"), ""))
#define TWICE                                                                                      \
	PROCESS("square", FIFO ", " FIFO,                                                          \
	        "^bb0(%a: " FIFO ", %b: " FIFO "):\n" CONSTANTS("10") LOOP("i",                    \
	                LOOP("j", SQUARE, " {stream.pipeline = 1 : i64}")                          \
	                        LOOP("k", SQUARE, " {stream.pipeline = 1 : i64}"),                 \
	                ""))

static int open_session(void **state)
{
	struct session *session = session_new();
	session->platform = platform_load(session->arena, &session->diag, "u55c");
	*state = session;
	return session->platform ? 0 : -1;
}

static int close_session(void **state)
{
	session_free(*state);
	return 0;
}

static struct report report_of(struct session *session, const char *text)
{
	session->module = import_mlir(
	        session->arena, &session->guard, &session->diag, "test", text, strlen(text));
	if (!session->module)
		print_error("%s\n", session->diag.entry[0].message);
	assert_non_null(session->module);
	return report_make(session, "square");
}

static int64_t busy(const struct report *report, const char *name)
{
	for (int i = 0; i < report->cost.processes; i++)
		if (!strcmp(report->cost.process[i].name, name))
			return report->time.process[i].busy;
	return -1;
}

static void loops_take_their_cycles(void **state)
{
	/* a body of take 1, product 4, push 1; entering a loop 1, a process 2 */
	struct report report = report_of(*state, DESIGN(PLAIN));
	assert_int_equal(busy(&report, "square"), 99 + 6 + 1 + 2);
	assert_int_equal(busy(&report, "load"), 99 + 101 + 1 + 2);
	assert_int_equal(busy(&report, "store"), 99 + 2 + 1 + 2);
	report = report_of(*state, DESIGN(SLOW));
	assert_int_equal(busy(&report, "square"), 4 * 99 + 6 + 1 + 2);
	report = report_of(*state, DESIGN(NESTED));
	assert_int_equal(busy(&report, "square"), 99 + 6 + 1 + 2);
	report = report_of(*state, DESIGN(TWICE));
	assert_int_equal(busy(&report, "square"), 10 * 2 * (9 + 6 + 1) + 1 + 2);
}

static void words_pass_from_process_to_process(void **state)
{
	struct report report = report_of(*state, DESIGN(PLAIN));
	assert_int_equal(report.time.least, 203); /* the loader */
	assert_true(report.predicted);
	/* The last word: loaded, sent, taken, squared, sent, taken; its burst arrives in memory;
	 * the loop and the process end */
	assert_int_equal(report.time.most, 1 + 99 + 101 + 1 + 4 + 1 + 1 + (1 + 1 + 100) + 1 + 1);
	assert_int_equal(report.time.multiplies, 100);
	assert_int_equal(report.time.multipliers, 1);
}

static void resources_are_counted(void **state)
{
	struct report report = report_of(*state, DESIGN(PLAIN));
	assert_int_equal(report.cost.total.dsp, 3);
	assert_int_equal(report.cost.ports, 2);
	assert_int_equal(report.cost.channels, 2);
	assert_int_equal(report.fifos.bytes, 2 * 16 * 4);
	assert_int_equal(report.cost.die[0].lut, report.cost.total.lut);
	/* read, of a table what is gathered, and written */
	assert_true(report.host_bytes == 400 + 40 + 400);
	report = report_of(*state, DESIGN(TWICE));
	assert_int_equal(report.cost.total.dsp, 6); /* two loops do not share */
}

static double number(const cJSON *json, const char *key)
{
	const cJSON *item = cJSON_GetObjectItem(json, key);
	assert_true(cJSON_IsNumber(item));
	return item->valuedouble;
}

static void json_has_the_stable_keys(void **state)
{
	struct session *session = *state;
	struct report report = report_of(session, DESIGN(PLAIN));
	struct text text = text_new(session->arena);
	struct text timing = text_new(session->arena);
	report_json(&report, &text);
	cJSON *json = cJSON_Parse(text.data);
	assert_non_null(json);
	assert_true(number(json, "schema") == 1);
	assert_string_equal(cJSON_GetObjectItem(json, "name")->valuestring, "square");
	assert_true(number(cJSON_GetObjectItem(json, "cycles"), "model") == 312);
	assert_true(number(cJSON_GetObjectItem(json, "resources"), "dsp") == 3);
	assert_true(number(cJSON_GetObjectItem(json, "available"), "dsp") == 8304);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "kernels")), 3);
	assert_null(cJSON_GetObjectItem(json, "tokens_per_s")); /* no state, no tokens */
	cJSON_Delete(json);
	report_timing(session, 0, &timing);
	json = cJSON_Parse(timing.data);
	assert_true(number(json, "peak_rss_bytes") > 0);
	cJSON_Delete(json);
}

static void text_answers_first(void **state)
{
	struct session *session = *state;
	struct report report = report_of(session, DESIGN(PLAIN));
	struct text text = text_new(session->arena);
	report_text(&report, &text);
	assert_true(!strncmp(text.data, "square on u55c\n\none launch      312 cycles", 42));
	assert_non_null(strstr(text.data, "memory ports    2 of 32"));
}

static struct report_answer answer_of(struct session *session, const char *text, double launch_us)
{
	const struct platform *whole = session->platform;
	struct platform *platform = ARENA_NEW(session->arena, struct platform);
	*platform = *whole;
	platform->launch_us = launch_us;
	session->platform = platform;
	struct report report = report_of(session, text);
	report_simulate(session, &report);
	assert_true(report.simulated);
	session->platform = whole;
	return report_answer(session->arena, &report);
}

static bool advises(const struct report_answer *answer, const char *part)
{
	for (int i = 0; i < answer->count; i++)
		if (strstr(answer->advice[i], part))
			return true;
	return false;
}

static void answers_name_the_limit(void **state)
{
	struct report_answer answer = answer_of(*state, DESIGN(PLAIN), 45);
	assert_non_null(strstr(answer.limit, "launch overhead of the host: 45 us"));
	assert_true(advises(&answer, "more work"));
	answer = answer_of(*state, DESIGN(PLAIN), 0);
	assert_non_null(strstr(answer.limit, "memory: "));
	assert_true(advises(&answer, "uses 32 of the 512 bits"));
	answer = answer_of(*state, DESIGN(SLOW), 0);
	assert_non_null(strstr(answer.limit, "one process: square is busy"));
	assert_true(advises(&answer, "has an initiation interval of 4") &&
	        advises(&answer, "a larger --kernel-dsp"));
	answer = answer_of(*state, DESIGN(MOVING), 0);
	assert_non_null(strstr(answer.limit, "one process: square is busy"));
	assert_true(advises(&answer, "only moves data") && !advises(&answer, "--kernel-dsp"));
}

static void page_holds_the_figures(void **state)
{
	struct session *session = *state;
	struct report report = report_of(session, DESIGN(PLAIN));
	report.name = "a</script>";
	report_simulate(session, &report);
	struct text page = text_new(session->arena);
	assert_true(report_page(&report, &session->diag, &page));
	const char *mark = "id=\"report\">";
	const char *begin = strstr(page.data, mark);
	assert_non_null(begin);
	const char *json_text = begin + strlen(mark);
	const char *end = strstr(json_text, "</script>");
	cJSON *json = cJSON_ParseWithLength(json_text, (size_t)(end - json_text));
	assert_string_equal(
	        cJSON_GetObjectItem(cJSON_GetObjectItem(json, "report"), "name")->valuestring,
	        "a</script>");
	cJSON *graph = cJSON_GetObjectItem(json, "graph");
	cJSON *channel = cJSON_GetArrayItem(cJSON_GetObjectItem(graph, "channels"), 0);
	static const char *const kinds[] = { "load", "store", "kernel" };
	for (int i = 0; i < 3; i++)
		assert_string_equal(
		        cJSON_GetObjectItem(
		                cJSON_GetArrayItem(cJSON_GetObjectItem(graph, "processes"), i),
		                "kind")
		                ->valuestring,
		        kinds[i]);
	assert_true(number(channel, "from") == 0 && number(channel, "to") == 2 &&
	        number(channel, "bits") == 32 && number(channel, "words") == 100);
	cJSON *port = cJSON_GetArrayItem(cJSON_GetObjectItem(graph, "ports"), 0);
	assert_true(number(port, "bytes") == 400 && number(port, "process") == 0);
	cJSON_Delete(json);
}

static void too_large_is_refused(void **state)
{
	struct session *session = *state;
	struct platform small = *session->platform;
	for (int i = 0; i < small.dies; i++)
		small.die[i].dsp = 0;
	session->platform = &small;
	struct report report = report_of(session, DESIGN(PLAIN));
	assert_false(report_fits(session, &report.cost));
	assert_string_equal(session->diag.entry[0].message,
	        "the design does not fit: it needs 3 DSP slices, 3 more than the 0 that u55c has");
	assert_non_null(strstr(session->diag.entry[0].note, "--kernel-dsp"));
	session->diag.count = 0;
	small.die[0].dsp = 3;
	assert_true(report_fits(session, &report.cost));
	small.ports = 1;
	assert_false(report_fits(session, &report.cost));
	assert_non_null(
	        strstr(session->diag.entry[0].message, "2 memory ports, 1 more than the 1"));
}

/* Three images whose results follow each other much faster than the busiest process takes an image
 * have waited: an image's interval is its share of the launch. */
static void results_wait_for_other_images(void **state)
{
	(void)state;
	const struct image_times waited = { .first = 711, .interval = 2 };
	struct image_times found = image_times_of(waited, 3, 831, 399);
	assert_true(found.together && found.first == 711 && found.interval == 277);
	const struct image_times followed = { .first = 581, .interval = 130 };
	found = image_times_of(followed, 3, 780, 399);
	assert_true(!found.together && found.first == 581 && found.interval == 133);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_session, close_session)
	const struct CMUnitTest tests[] = {
		TEST(loops_take_their_cycles),
		TEST(words_pass_from_process_to_process),
		TEST(resources_are_counted),
		TEST(json_has_the_stable_keys),
		TEST(text_answers_first),
		TEST(answers_name_the_limit),
		TEST(page_holds_the_figures),
		TEST(too_large_is_refused),
		TEST(results_wait_for_other_images),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
