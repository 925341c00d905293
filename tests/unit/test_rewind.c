/* A rewinding process, whose pipeline does not drain between nests: the same results as with
 * draining, in the evaluator and in emitted C++, and in all models of time as many cycles fewer as
 * the pipelines took to drain. */
#include "design_case.h"
#include "emitted_cpp.h"
#include "ir/verify.h"
#include "predict/token.h"
#include "simulate/cycle_sim.h"

#define LAYERS 3 /* after the first job, which has more rows */
#define PHASES (1 + LAYERS)
#define STATE_ROWS 2 /* numbers that a job reads first; each row multiplies both */
#define ROWS_FIRST 5
#define ROWS_OTHERS 3
#define NUMBERS (STATE_ROWS * PHASES)
#define WORDS (STATE_ROWS * (ROWS_FIRST + LAYERS * ROWS_OTHERS))
#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)

static const char *port(struct arena *arena, const char *name, int number, const char *way)
{
	return text_format(arena,
	        "{stream.port = \"m_%s\", stream.buffer = \"%s\", stream.channel = %d : i64, "
	        "stream.direction = \"%s\"}",
	        name, name, number, way);
}

static const char *buffer(struct arena *arena, const char *name, int words, const char *role)
{
	return text_format(arena,
	        "{name = \"%s\", words = %d : i64, word = f32, segments = [{name = \"%s\", role = "
	        "\"%s\", offset = 0 : i64, base = 0 : i64, trips = array<i64: %d>, strides = "
	        "array<i64: 1>, conditions = []}]}",
	        name, words, name, role, words);
}

/* Moves so many words between memory and a FIFO. */
static const char *mover(struct arena *arena, const char *name, int words, const char *move)
{
	return text_format(arena,
	        "func.func private @%s(%%m: memref<?xf32>, %%s: !stream.fifo<f32, 32>) attributes "
	        "{stream.process, stream.style = \"stp\", stream.die = 0 : i64} {\n"
	        "  %%t = arith.constant true\n  %%c0 = arith.constant 0 : index\n  %%c1 = "
	        "arith.constant 1 : index\n  %%n = arith.constant %d : index\n"
	        "  scf.for %%i = %%c0 to %%n step %%c1 {\n%s  } {stream.pipeline = 1 : i64}\n  "
	        "return\n}\n",
	        name, words, move);
}

#define FILL                                                                                       \
	"    scf.for %i = %c0 to %kept step %c1 {\n"                                               \
	"      %x = \"stream.pop\"(%t, %a) : (i1, !stream.fifo<f32, 32>) -> f32\n"                 \
	"      memref.store %x, %array[%i] : memref<2xf32>\n"                                      \
	"    } {stream.datapath = 1 : i64, stream.pipeline = 1 : i64}\n"
#define WORK(rows)                                                                                 \
	"    scf.for %r = %c0 to %" rows " step %c1 {\n"                                           \
	"      scf.for %j = %c0 to %kept step %c1 {\n"                                             \
	"        %w = \"stream.pop\"(%t, %b) : (i1, !stream.fifo<f32, 32>) -> f32\n"               \
	"        %k = memref.load %array[%j] : memref<2xf32>\n"                                    \
	"        %y = arith.mulf %k, %w : f32\n"                                                   \
	"        \"stream.push\"(%t, %y, %out) : (i1, f32, !stream.fifo<f32, 32>) -> ()\n"         \
	"      } {stream.pipeline = 1 : i64}\n"                                                    \
	"    } {stream.datapath}\n"

static const char *model(struct arena *arena, const char *rewinding)
{
	struct text text = text_new(arena);
	text_add(&text,
	        "module attributes {stream.level = \"hardware\"} {\nfunc.func @main(%%x: "
	        "memref<?xf32> %s, %%w: memref<?xf32> %s, %%y: memref<?xf32> %s)\n",
	        port(arena, "x", 0, "read"), port(arena, "w", 1, "read"),
	        port(arena, "y", 2, "write"));
	text_add(&text,
	        "    attributes {stream.inputs = [{name = \"x\", role = \"input\", type = "
	        "tensor<%dxf32>}, {name = \"w\", role = \"input\", type = tensor<%dxf32>}], "
	        "stream.outputs = [{name = \"y\", role = \"output\", type = tensor<%dxf32>}],\n    "
	        "  stream.buffers = [%s, %s, %s]} {\n",
	        NUMBERS, WORDS, WORDS, buffer(arena, "x", NUMBERS, "input"),
	        buffer(arena, "w", WORDS, "input"), buffer(arena, "y", WORDS, "output"));
	for (const char *name = "abc"; *name; name++)
		text_add(&text,
		        "  %%%c = \"stream.fifo\"() {name = \"s_%c\", stream.storage = \"srl\"} : "
		        "() -> !stream.fifo<f32, 32>\n",
		        *name, *name);
	text_add(&text, "%s",
	        "  func.call @load_x(%x, %a) : (memref<?xf32>, !stream.fifo<f32, 32>) -> ()\n  "
	        "func.call @load_w(%w, %b) : (memref<?xf32>, !stream.fifo<f32, 32>) -> ()\n"
	        "  func.call @unit(%a, %b, %c) : (!stream.fifo<f32, 32>, !stream.fifo<f32, 32>, "
	        "!stream.fifo<f32, 32>) -> ()\n  func.call @store(%y, %c) : (memref<?xf32>, "
	        "!stream.fifo<f32, 32>) -> ()\n  return\n}\n");
	const char *load = "    %x = memref.load %m[%i] : memref<?xf32>\n    \"stream.push\"(%t, "
	                   "%x, %s) : (i1, f32, !stream.fifo<f32, 32>) -> ()\n";
	const char *store = "    %x = \"stream.pop\"(%t, %s) : (i1, !stream.fifo<f32, 32>) -> "
	                    "f32\n    memref.store %x, %m[%i] : memref<?xf32>\n";
	text_add(&text, "%s%s", mover(arena, "load_x", NUMBERS, load),
	        mover(arena, "load_w", WORDS, load));
	text_add(&text,
	        "func.func private @unit(%%a: !stream.fifo<f32, 32>, %%b: !stream.fifo<f32, 32>, "
	        "%%out: !stream.fifo<f32, 32>) attributes {stream.process, stream.style = \"flp\", "
	        "stream.die = 0 : i64%s} {\n",
	        rewinding);
	text_add(&text, "%s",
	        "  %array = memref.alloca() {stream.name = \"array\", stream.storage = "
	        "\"registers\", stream.partition = 2 : i64} : memref<2xf32>\n  %t = arith.constant "
	        "true\n  %c0 = arith.constant 0 : index\n"
	        "  %c1 = arith.constant 1 : index\n  %kept = arith.constant 2 : index\n  %first = "
	        "arith.constant " TEXT(ROWS_FIRST) " : index\n  %others = arith.constant " TEXT(
	                ROWS_OTHERS) " : index\n"
	                             "  %layers = arith.constant " TEXT(LAYERS) " : index\n" FILL
	                                     WORK("first") "  scf.for %l = %c0 to %layers step %c1 "
	                                                   "{\n" FILL WORK(
	                                                           "others") "  }\n  return\n}\n");
	text_add(&text, "%s}\n", mover(arena, "store", WORDS, store));
	return text.data;
}

struct cycles {
	int64_t simulated, token, busy;
};

static struct cycles cycles_of(struct design_case *c, const struct platform *platform)
{
	struct cycle_result flow;
	const struct cycle_options options = { .arena = c->arena };
	struct cycles cycles = { 0 };
	const struct token_network *network = token_network_new(c->arena, platform, c->module,
	        (struct token_detail){ .stretches = TOKEN_STRETCHES });
	struct token_result token =
	        token_run(c->arena, network, &(struct token_options){ .mode = TOKEN_EARLIEST });
	struct design_cost cost = design_cost(c->arena, platform, c->module);
	struct design_time time =
	        design_time(c->arena, platform, c->module, &cost, (struct extent_list){ 0 });
	assert_int_equal(
	        cycle_run(cycle_open(c->arena, platform, c->module), &options, &flow), CYCLE_DONE);
	for (int i = 0; i < flow.processes; i++)
		if (!strcmp(flow.process[i].name, "unit"))
			cycles = (struct cycles){ flow.process[i].end, token.end[i],
				time.process[i].busy };
	assert_true(token.ended);
	return cycles;
}

/* Words of y, by hand: a job's stored numbers times those of w. */
static void check_results(struct design_case *c)
{
	assert_true(eval_module(c->module, c->arena, 2, c->input, c->result));
	const float *x = c->input[0].data;
	const float *w = c->input[1].data;
	const float *y = c->result[0].data;
	for (int phase = 0, at = 0; phase < PHASES; phase++)
		for (int i = 0; i < STATE_ROWS * (phase ? ROWS_OTHERS : ROWS_FIRST); i++, at++)
			assert_true(y[at] == x[phase * STATE_ROWS + i % STATE_ROWS] * w[at]);
}

static void check_emitted(
        struct design_case *c, const struct platform *platform, const char *name, bool rewinding)
{
	struct text source = text_new(c->arena);
	assert_true(emit_hls(c->module, platform, name, &source));
	assert_int_equal(strstr(source.data, "_nests(") != NULL, rewinding);
	struct emitted emitted = { c->arena, c->module, c->inputs, c->results, c->input,
		c->result };
	void *library = emitted_load(c->arena, c->folder, name, &source, "-O1");
	assert_non_null(library);
	const char *wrong = emitted_run(&emitted, library, name);
	if (wrong)
		fail_msg("%s: %s", name, wrong);
	dlclose(library);
}

static struct cycles run(const char *name, const char *rewinding, struct cycles *saved)
{
	struct design_case c;
	struct guard guard = { 0 };
	struct arena *arena = arena_new(&guard);
	case_start(&c, model(arena, rewinding));
	const struct platform *platform = platform_load(c.arena, &c.diag, "u55c");
	check_results(&c);
	check_emitted(&c, platform, name, *rewinding);
	struct cycles cycles = cycles_of(&c, platform);
	int64_t fill = 2;
	/* a word comes and is stored; one is chosen, multiplied, sent */
	int64_t work = 3 + platform_operator(platform, OP_MULF, type_float(c.module, 32)).latency;
	int64_t whole = PHASES * (fill - 1 + work - 1 + 2 * LOOP_CYCLES) + LOOP_CYCLES;
	/* the last pipeline drains in any case, which the busiest process is not charged with */
	*saved = (struct cycles){ whole - (work - 1), whole - (work - 1), whole };
	case_finish(&c);
	arena_free(arena);
	return cycles;
}

static void saves_what_drained(void **state)
{
	struct cycles saved;
	(void)state;
	struct cycles broken = run("broken", "", &saved);
	struct cycles rewinding = run("unbroken", ", stream.rewind", &saved);
	assert_int_equal(broken.simulated - rewinding.simulated, saved.simulated);
	assert_int_equal(broken.token - rewinding.token, saved.token);
	assert_int_equal(broken.busy - rewinding.busy, saved.busy);
}

static int64_t die_of(const struct placed_cells *placement, const char *name)
{
	for (size_t i = 0; i < placement->cells.count; i++)
		if (!strcmp(placement->cells.data[i].name, name))
			return placement->cells.data[i].die;
	fail_msg("%s is not placed", name);
	return -1;
}

/* What issues nests reads no channel, so the kernel starts it: it stays with the control of the
 * kernel where its process is on another die, and their channel has registers. */
static void nests_come_from_the_control(void **state)
{
	static const struct placed_cell expected[] = { { "p_unit_U0", 2 }, { "p_unit_nests_U0", 0 },
		{ "s_unit_nests_cross_0", 0 }, { "s_unit_nests_cross_1", 1 },
		{ "s_unit_nests_cross_2", 2 }, { "s_unit_nests_U", 2 } };
	struct design_case c;
	struct guard guard = { 0 };
	struct arena *arena = arena_new(&guard);
	struct placed_cells placement = { 0 };
	(void)state;
	case_start(&c, model(arena, ", stream.rewind"));
	const struct platform *platform = platform_load(c.arena, &c.diag, "u55c");
	struct design_cost near = design_cost(c.arena, platform, c.module);
	attr_set(
	        c.module, module_find(c.module, "unit"), KEY_STREAM_DIE, attr_integer(c.module, 2));
	struct text source = text_new(c.arena);
	assert_true(emit_hls_phases(&(struct phases){ 1, &(struct phase){ NULL, c.module } },
	        platform, "far", &source, &placement));
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
		assert_int_equal(die_of(&placement, expected[i].name), expected[i].die);
	struct design_cost far = design_cost(c.arena, platform, c.module);
	/* two channels to the process, and the one from it */
	assert_int_equal(far.wires[1] - near.wires[1], 3 * 32 + NEST_ENTRY_BITS);
	case_finish(&c);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(saves_what_drained),
		cmocka_unit_test(nests_come_from_the_control) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
