/* Termination proofs of processes that end one layer and begin the next in the same iteration:
 * walking some of the layers is enough. */
#include "design_case.h"
#include "predict/token.h"

#define WORDS 8 /* that the engine sends in a layer before it reads any */
#define LAYERS 12
#define WALKED 5

#define NUMBER(name, value)                                                                        \
	"%" name " = \"arith.constant\"() {value = " value " : index} : () -> index\n"
#define NUMBERS                                                                                    \
	"%t = \"arith.constant\"() {value = true} : () -> i1\n" NUMBER("c0", "0")                  \
	        NUMBER("c1", "1") NUMBER("words", "8") NUMBER("layers", "12") NUMBER("less", "11")
#define LOOP(counter, trips) "\"scf.for\"(%c0, %" trips ", %c1) ({\n^bb0(%" counter ": index):\n"
#define CLOSE(attributes)                                                                          \
	"\"scf.yield\"() : () -> ()\n})" attributes " : (index, index, index) -> ()\n"
#define FIFO "!stream.fifo<f32, 8>"
#define TAKE(channel) "%x = \"stream.pop\"(%t, %" channel ") : (i1, " FIFO ") -> f32\n"
#define PUSH(channel, word)                                                                        \
	"\"stream.push\"(%t, %" word ", %" channel ") : (i1, f32, " FIFO ") -> ()\n"
#define ITERATION(body) LOOP("j", "words") body CLOSE(" {stream.pipeline = 1 : i64}")
#define PROCESS(name, body)                                                                        \
	"\"func.func\"() ({\n^bb0(%a: " FIFO ", %b: " FIFO                                         \
	"):\n%zero = \"arith.constant\"() {value = 0.0 : f32} : () -> f32\n" NUMBERS body          \
	"\"func.return\"() : () -> ()\n"                                                           \
	"}) {arg_attrs = [{stream.name = \"a\"}, {stream.name = \"b\"}], function_type = (" FIFO   \
	", " FIFO ") -> (), stream.die = 0 : i64, stream.layers = 12 : i64, stream.process, "      \
	"stream.style = \"flp\", sym_name = \"" name                                               \
	"\", sym_visibility = \"private\"} : () -> ()\n"
#define CALL(name) "\"func.call\"(%a, %b) {callee = @" name "} : (" FIFO ", " FIFO ") -> ()\n"
#define MADE(name)                                                                                 \
	"%" name " = \"stream.fifo\"() {name = \"" name "\", stream.in_layer} : () -> " FIFO "\n"

static const char text[] = "\"builtin.module\"() ({\n\"func.func\"() ({\n^bb0:\n" MADE("a")
        MADE("b") CALL("unit") CALL(
                "kernel") "\"func.return\"() : () -> ()\n"
                          "}) {sym_name = \"main\", function_type = () -> (), "
                          "stream.layer_overlap, stream.buffers = [], stream.inputs = [], "
                          "stream.outputs = []} : () -> ()\n" PROCESS("unit",
                                  ITERATION(PUSH("a", "zero")) LOOP("i", "less")
                                          ITERATION(TAKE("b") PUSH("a", "x"))
                                                  CLOSE(" {stream.layer_overlap, stream.layer}")
                                                          ITERATION(TAKE("b"))) PROCESS("kernel",
                                  LOOP("i", "layers") ITERATION(TAKE("a") PUSH("b", "x"))
                                          CLOSE(" {stream.layer}")) "}) {stream.level = "
                                                                    "\"hardware\"} : () -> ()\n";

static bool ends(struct design_case *c, const struct token_network *network, const int64_t *depth,
        bool *holds)
{
	int64_t work = 0;
	struct token_counter *counter = token_counter_new(c->arena, network, depth, true);
	bool ended = token_counter_run(counter, INT64_MAX, &work) == TOKEN_ENDS;
	*holds = token_counter_ends_all(counter);
	return ended;
}

/* What is sent before anything is asked back has to lie in the two FIFOs, with room for one word
 * more. */
static void layer_overlap(void **state)
{
	struct design_case c = { 0 };
	(void)state;
	CASE_BEGIN(&c);
	const struct pass_context context = case_import(&c, text);
	const struct token_network *all = token_network_new(
	        c.arena, context.platform, c.module, (struct token_detail){ .stretches = 1 });
	const struct token_network *some = token_network_new(c.arena, context.platform, c.module,
	        (struct token_detail){ .stretches = 1, .layers = WALKED });
	const struct token_network *few = token_network_new(c.arena, context.platform, c.module,
	        (struct token_detail){ .stretches = 1, .layers = WALKED - 1 });
	assert_int_equal(some->skipped, LAYERS - WALKED);
	for (int64_t i = 0; i < WORDS * WORDS; i++) {
		const int64_t depth[] = { 1 + i % WORDS, 1 + i / WORDS };
		bool holds, ended = ends(&c, all, depth, &holds);
		assert_int_equal(ended, depth[0] + depth[1] > WORDS);
		assert_int_equal(ends(&c, some, depth, &holds), ended);
		assert_int_equal(holds, ended);
		ends(&c, few, depth, &holds);
		assert_false(holds);
	}
	arena_free(c.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(layer_overlap) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
