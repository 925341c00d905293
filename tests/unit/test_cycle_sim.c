/* Cycles of networks small enough to count by hand, deadlocks, and the words that flow against
 * the evaluator's. */
#include "design_case.h"
#include "predict/timing.h"
#include "predict/token.h"
#include "evaluate/eval_network.h"
#include "simulate/cycle_sim.h"

#define ANY INT64_MAX
#define CHANNELS_MOST 64

/* --- texts of modules */

#define PROCESS(name, style, types, body)                                                          \
	FUNCTION(name, style, "{stream.name = \"a\"}, {stream.name = \"b\"}", types, body)
#define FUNCTION(name, style, names, types, body)                                                  \
	"\"func.func\"() ({\n" body "\"func.return\"() : () -> ()\n}) {arg_attrs = [" names        \
	"], function_type = (" types                                                               \
	") -> (), stream.die = 0 : i64, stream.process, stream.style = \"" style                   \
	"\", sym_name = \"" name "\", sym_visibility = \"private\"} : () -> ()\n"
#define INDEX(name, number)                                                                        \
	"%" name " = \"arith.constant\"() {value = " number " : index} : () -> index\n"
#define CONSTANTS(trips)                                                                           \
	INDEX("c0", "0")                                                                           \
	INDEX("c1", "1") INDEX("n", trips) "%t = \"arith.constant\"() {value = true} : () -> i1\n"
#define LOOP(counter, trips, body, attributes)                                                     \
	"\"scf.for\"(%c0, " trips ", %c1) ({\n^bb0(%" counter ": index):\n" body                   \
	"\"scf.yield\"() : () -> ()\n})" attributes " : (index, index, index) -> ()\n"
#define PIPE(counter, trips, interval, body)                                                       \
	LOOP(counter, trips, body, " {stream.pipeline = " interval " : i64}")
#define FIFO "!stream.fifo<f32, 16>"
#define PORT "memref<?xf32>"
#define TAKE(when, channel) "%x = \"stream.pop\"(" when ", " channel ") : (i1, " FIFO ") -> f32\n"
#define PUSH(when, word, channel)                                                                  \
	"\"stream.push\"(" when ", " word ", " channel ") : (i1, f32, " FIFO ") -> ()\n"
#define MULTIPLY "%y = \"arith.mulf\"(%x, %x) : (f32, f32) -> f32\n"
#define COMPARE(predicate, bound)                                                                  \
	"%w = \"arith.cmpi\"(%i, " bound ") {predicate = " predicate                               \
	" : i64} : (index, index) -> i1\n"
#define MAIN(ports, body, attributes)                                                              \
	"\"builtin.module\"() ({\n\"func.func\"() ({\n" ports body                                 \
	"\"func.return\"() : () -> ()\n}) {" attributes                                            \
	"stream.buffers = [], stream.inputs = [], stream.outputs = [], sym_name = \"main\"} : () " \
	"-> ()\n"
#define END "}) {stream.level = \"hardware\"} : () -> ()\n"
#define CALL(name, arguments, types)                                                               \
	"\"func.call\"(" arguments ") {callee = @" name "} : (" types ") -> ()\n"

/* load, square, store: 100 words; the square begins an iteration every `interval` cycles */
#define SQUARES(interval)                                                                          \
	MAIN("^bb0(%m: " PORT ", %r: " PORT "):\n",                                                \
	        "%a = \"stream.fifo\"() {name = \"s_a\"} : () -> " FIFO                            \
	        "\n%b = \"stream.fifo\"() {name = \"s_b\"} : () -> " FIFO "\n" CALL(               \
	                "load", "%m, %a", PORT ", " FIFO) CALL("store", "%r, %b", PORT ", " FIFO)  \
	                CALL("square", "%a, %b", FIFO ", " FIFO),                                  \
	        "arg_attrs = [{stream.buffer = \"x\", stream.channel = 0 : i64, stream.direction " \
	        "= \"read\", stream.port = \"m_x\"}, "                                             \
	        "{stream.buffer = \"y\", stream.channel = 1 : i64, stream.direction = \"write\", " \
	        "stream.port = \"m_y\"}], function_type = (" PORT ", " PORT ") -> (), ")           \
	PROCESS("load", "stp", PORT ", " FIFO,                                                     \
	        "^bb0(%a: " PORT ", %b: " FIFO "):\n" CONSTANTS("100") PIPE("i", "%n", "1",        \
	                "%x = \"memref.load\"(%a, %i) : (" PORT                                    \
	                ", index) -> f32\n" PUSH("%t", "%x", "%b")))                               \
	PROCESS("store", "stp", PORT ", " FIFO,                                                    \
	        "^bb0(%a: " PORT ", %b: " FIFO "):\n" CONSTANTS("100") PIPE("i", "%n", "1",        \
	                TAKE("%t", "%b") "\"memref.store\"(%x, %a, %i) : (f32, " PORT              \
	                                 ", index) -> ()\n"))                                      \
	PROCESS("square", "stp", FIFO ", " FIFO,                                                   \
	        "^bb0(%a: " FIFO ", %b: " FIFO "):\n" CONSTANTS("10") LOOP("i", "%n",              \
	                PIPE("j", "%n", interval,                                                  \
	                        TAKE("%t", "%a") MULTIPLY PUSH("%t", "%y", "%b")),                 \
	                ""))                                                                       \
	END

/* load and store: 100 words, of which a condition says which ones are written */
#define WRITING_HEAD                                                                               \
	MAIN("^bb0(%m: " PORT ", %r: " PORT "):\n",                                                \
	        "%a = \"stream.fifo\"() {name = \"s_a\"} : () -> " FIFO "\n" CALL(                 \
	                "load", "%m, %a", PORT ", " FIFO) CALL("store", "%r, %a", PORT ", " FIFO), \
	        "arg_attrs = [{stream.buffer = \"x\", stream.channel = 0 : i64, stream.direction " \
	        "= \"read\", stream.port = \"m_x\"}, "                                             \
	        "{stream.buffer = \"y\", stream.channel = 1 : i64, stream.direction = \"write\", " \
	        "stream.port = \"m_y\"}], function_type = (" PORT ", " PORT ") -> (), ")           \
	PROCESS("load", "stp", PORT ", " FIFO,                                                     \
	        "^bb0(%a: " PORT ", %b: " FIFO "):\n" CONSTANTS("100") PIPE("i", "%n", "1",        \
	                "%x = \"memref.load\"(%a, %i) : (" PORT                                    \
	                ", index) -> f32\n" PUSH("%t", "%x", "%b")))                               \
	"\"func.func\"() ({\n^bb0(%a: " PORT ", %b: " FIFO "):\n" CONSTANTS("100") INDEX(          \
	        "m", "10") "\"scf.for\"(%c0, %n, %c1) ({\n^bb0(%i: index):\n" TAKE("%t", "%b")
#define WRITING_TAIL                                                                               \
	"\"stream.write\"(%w, %x, %a, %i) : (i1, f32, " PORT                                       \
	", index) -> ()\n\"scf.yield\"() : () -> ()\n}) {stream.pipeline = 1 : i64} : (index, "    \
	"index, index) -> ()\n"                                                                    \
	"\"func.return\"() : () -> ()\n}) {arg_attrs = [{stream.name = \"a\"}, {stream.name = "    \
	"\"b\"}], function_type = (" PORT ", " FIFO                                                \
	") -> (), stream.die = 0 : i64, stream.process, stream.style = \"stp\", sym_name = "       \
	"\"store\", sym_visibility = \"private\"} : () -> ()\n" END

/* 3 blocks of 8 words, each read for 20 cycles */
#define BLOCKS(depth) "!stream.block_channel<memref<8xf32>, " depth ">"
#define BLOCK_LOOP(side, trips, body, depth)                                                       \
	CONSTANTS("3")                                                                             \
	INDEX("m", trips)                                                                          \
	INDEX("k", "0")                                                                            \
	"%z = \"arith.constant\"() {value = 0.0 : f32} : () -> f32\n" LOOP("i", "%n",              \
	        "%v = \"stream.acquire\"(%a) {side = \"" side                                      \
	        "\"} : (" BLOCKS(depth) ") -> memref<8xf32>\n" PIPE(                               \
	                "j", "%m", "1", body) "\"stream.release\"(%v, %a) : "                      \
	                                      "(memref<8xf32>, " BLOCKS(depth) ") -> ()\n",        \
	        "")
#define PING_PONG(depth)                                                                           \
	MAIN("^bb0:\n",                                                                            \
	        "%a = \"stream.block_channel\"() {name = \"b_a\"} : () -> " BLOCKS(                \
	                depth) "\n" CALL("fill", "%a", BLOCKS(depth))                              \
	                CALL("drain", "%a", BLOCKS(depth)),                                        \
	        "function_type = () -> (), ")                                                      \
	FUNCTION("fill", "stp", "{stream.name = \"a\"}", BLOCKS(depth),                            \
	        "^bb0(%a: " BLOCKS(depth) "):\n" BLOCK_LOOP("write", "8",                          \
	                "\"memref.store\"(%z, %v, %j) : (f32, memref<8xf32>, index) -> ()\n",      \
	                depth))                                                                    \
	FUNCTION("drain", "stp", "{stream.name = \"a\"}", BLOCKS(depth),                           \
	        "^bb0(%a: " BLOCKS(depth) "):\n" BLOCK_LOOP("read", "20",                          \
	                "%x = \"memref.load\"(%v, %k) : (memref<8xf32>, index) -> f32\n", depth))  \
	END

/* A word goes round: `ahead` squares what `back` sent, `back` sends all but the last */
#define RING(style)                                                                                \
	MAIN("^bb0:\n",                                                                            \
	        "%a = \"stream.fifo\"() {name = \"s_a\"} : () -> " FIFO                            \
	        "\n%b = \"stream.fifo\"() {name = \"s_b\"} : () -> " FIFO "\n" CALL(               \
	                "ahead", "%b, %a", FIFO ", " FIFO) CALL("back", "%a, %b", FIFO ", " FIFO), \
	        "function_type = () -> (), ")                                                      \
	PROCESS("ahead", style, FIFO ", " FIFO,                                                    \
	        "^bb0(%a: " FIFO ", %b: " FIFO "):\n" CONSTANTS("10") PIPE("i", "%n", "1",         \
	                COMPARE("4", "%c0") TAKE("%w", "%a") MULTIPLY PUSH("%t", "%y", "%b")))     \
	PROCESS("back", style, FIFO ", " FIFO,                                                     \
	        "^bb0(%a: " FIFO ", %b: " FIFO "):\n" CONSTANTS("10") INDEX("l", "9") PIPE("i",    \
	                "%n", "1", COMPARE("2", "%l") TAKE("%t", "%a") PUSH("%w", "%x", "%b")))    \
	END

/* The writer fills s_a before it begins s_b; the reader wants s_b first */
#define CROSSED                                                                                    \
	MAIN("^bb0:\n",                                                                            \
	        "%a = \"stream.fifo\"() {name = \"s_a\"} : () -> " FIFO                            \
	        "\n%b = \"stream.fifo\"() {name = \"s_b\"} : () -> " FIFO "\n" CALL("writer",      \
	                "%a, %b", FIFO ", " FIFO) CALL("reader", "%a, %b", FIFO ", " FIFO),        \
	        "function_type = () -> (), ")                                                      \
	PROCESS("writer", "stp", FIFO ", " FIFO,                                                   \
	        "^bb0(%a: " FIFO ", %b: " FIFO                                                     \
	        "):\n" CONSTANTS("100") "%x = \"arith.constant\"() {value = 0.0 : f32} : () -> "   \
	                                "f32\n" PIPE("i", "%n", "1", PUSH("%t", "%x", "%a"))       \
	                                        PIPE("j", "%n", "1", PUSH("%t", "%x", "%b")))      \
	PROCESS("reader", "stp", FIFO ", " FIFO,                                                   \
	        "^bb0(%a: " FIFO ", %b: " FIFO                                                     \
	        "):\n" CONSTANTS("100") PIPE("i", "%n", "1", TAKE("%t", "%b")) PIPE(               \
	                "j", "%n", "1", "%y = \"stream.pop\"(%t, %a) : (i1, " FIFO ") -> f32\n"))  \
	END

/* --- running */

struct simulated {
	struct design_case c;
	const struct platform *platform;
	struct cycle_result flow;
	enum cycle_outcome outcome;
};

static void simulate(struct simulated *s, const char *text, int64_t budget)
{
	struct cycle_network *network;
	case_start(&s->c, text);
	s->platform = platform_load(s->c.arena, &s->c.diag, "u55c");
	assert_non_null(s->platform);
	assert_non_null(network = cycle_open(s->c.arena, s->platform, s->c.module));
	s->outcome = cycle_run(network,
	        &(struct cycle_options){
	                .arena = s->c.arena, .budget = budget, .path = true, .remedy = true },
	        &s->flow);
	assert_string_equal(case_messages(&s->c), "");
}

static const struct cycle_process_result *process_of(const struct simulated *s, const char *name)
{
	for (int i = 0; i < s->flow.processes; i++)
		if (!strcmp(s->flow.process[i].name, name))
			return &s->flow.process[i];
	fail_msg("no process %s", name);
	return NULL;
}

static const struct cycle_channel_result *channel_of(const struct simulated *s, const char *name)
{
	for (int i = 0; i < s->flow.channels; i++)
		if (!strcmp(s->flow.channel[i].name, name))
			return &s->flow.channel[i];
	fail_msg("no channel %s", name);
	return NULL;
}

static int64_t multiply_latency(const struct simulated *s)
{
	return s->platform->cost[OP_MULF].latency;
}

/* The path covers the launch, and `name` has at least so many of its cycles. */
static void check_path(const struct simulated *s, const char *name, int64_t cycles)
{
	const struct cycle_result *flow = &s->flow;
	int64_t at = 0;
	int64_t sum = 0;
	for (int i = 0; i < flow->segments; i++) {
		assert_int_equal(flow->segment[i].begin, at);
		at = flow->segment[i].end;
	}
	assert_int_equal(at, flow->cycles);
	for (int i = 0; i < flow->processes; i++) {
		sum += flow->on_path[i];
		assert_true(strcmp(flow->process[i].name, name) || flow->on_path[i] >= cycles);
	}
	/* a word takes a cycle from process to process */
	assert_true(sum <= flow->cycles && sum > flow->cycles - flow->processes);
}

/* Word i is loaded in 1 + i and pushed L later, taken in 2 + L + i, squared (1 + M) and pushed,
 * taken in 4 + L + M + i, stored in the next cycle; the last one is requested to be written in
 * the cycle after, and has arrived 1 + L after that. */
static void chain_of_three(void **state)
{
	struct simulated s;
	(void)state;
	simulate(&s, SQUARES("1"), ANY);
	int64_t both = s.platform->memory_latency + multiply_latency(&s);
	assert_int_equal(s.outcome, CYCLE_DONE);
	assert_int_equal(s.flow.first_output, 5 + both);
	assert_int_equal(s.flow.cycles, 108 + both + s.platform->memory_latency);
	assert_int_equal(s.flow.events, 300);
	assert_int_equal(process_of(&s, "store")->memory, 1 + s.platform->memory_latency);
	assert_int_equal(process_of(&s, "store")->input, 3 + both);
	assert_int_equal(process_of(&s, "load")->output, 0);
	assert_int_equal(channel_of(&s, "s_a")->most, 2);
	assert_int_equal(channel_of(&s, "s_a")->words, 100);
	case_finish(&s.c);
}

/* Every tenth word of a hundred; those of which a number of the data tells count as if all were
 * written, for the model as well. */
static void words_on_a_condition(void **state)
{
	(void)state;
	static const struct {
		const char *when;
		int64_t words;
	} row[] = { { "%r = \"arith.remsi\"(%i, %m) : (index, index) -> index\n%w = "
		      "\"arith.cmpi\"(%r, %c0) {predicate = 0 : i64} : (index, index) -> i1\n",
		            10 },
		{ "%w = \"arith.cmpf\"(%x, %x) {predicate = 1 : i64} : (f32, f32) -> i1\n", 100 } };
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct simulated s;
		struct guard guard;
		struct arena *arena = arena_new(&guard);
		simulate(&s, text_format(arena, "%s%s%s", WRITING_HEAD, row[i].when, WRITING_TAIL),
		        ANY);
		assert_int_equal(s.outcome, CYCLE_DONE);
		assert_int_equal(s.flow.ports, 2);
		assert_string_equal(s.flow.port[1].name, "m_y");
		assert_int_equal(s.flow.port[1].bytes, 4 * row[i].words);
		/* a round of requests under way more or less */
		assert_in_range(token_cycles(s.platform, s.c.module), s.flow.cycles * 5 / 6,
		        s.flow.cycles * 6 / 5);
		case_finish(&s.c);
		arena_free(arena);
	}
}

/* The square takes word i in 2 + L + 4 i; the loader pushes word 99 when word 83 has left, in 3
 * + L + 4 * 83 instead of 100 + L. */
static void slow_reader(void **state)
{
	struct simulated s;
	(void)state;
	simulate(&s, SQUARES("4"), ANY);
	int64_t load = s.platform->memory_latency;
	assert_int_equal(s.flow.cycles, 405 + 2 * load + multiply_latency(&s));
	assert_int_equal(process_of(&s, "load")->end, 338 + load);
	assert_int_equal(process_of(&s, "load")->output, 235);
	assert_int_equal(channel_of(&s, "s_a")->most, 16);
	assert_int_equal(channel_of(&s, "s_b")->most, 1);
	check_path(&s, "square", 4 * 99);
	case_finish(&s.c);
}

/* One block: filled 1 to 10, read 11 to 33, filled 34 to 43, read 44 to 66, filled 67 to 76,
 * read 77 to 99.  Two: read 11 to 33, 55 and 77. */
static void blocks(void **state)
{
	struct simulated s;
	(void)state;
	simulate(&s, PING_PONG("1"), ANY);
	assert_int_equal(s.flow.cycles, 101);
	assert_int_equal(process_of(&s, "fill")->end, 78);
	assert_int_equal(process_of(&s, "drain")->input, 10 + 11 + 11);
	assert_int_equal(channel_of(&s, "b_a")->words, 3);
	case_finish(&s.c);
	simulate(&s, PING_PONG("2"), ANY);
	assert_int_equal(s.flow.cycles, 79);
	assert_int_equal(channel_of(&s, "b_a")->most, 2);
	case_finish(&s.c);
}

/* Flushing, a round takes 4 + M cycles: the product 1 + M, a cycle in each FIFO, a cycle in
 * `back`.  Frozen, word 1 is awaited before word 0 has left. */
static void styles(void **state)
{
	struct simulated s;
	(void)state;
	simulate(&s, RING("flp"), ANY);
	int64_t round = 4 + multiply_latency(&s);
	assert_int_equal(s.outcome, CYCLE_DONE);
	assert_int_equal(
	        process_of(&s, "ahead")->end, 1 + 9 * round + (2 + multiply_latency(&s)) + 2);
	assert_int_equal(channel_of(&s, "s_a")->words, 10);
	assert_int_equal(channel_of(&s, "s_b")->words, 9);
	case_finish(&s.c);
	simulate(&s, RING("stp"), ANY);
	assert_int_equal(s.outcome, CYCLE_DEADLOCK);
	assert_non_null(strstr(s.flow.deadlock, "ahead waits"));
	assert_non_null(strstr(s.flow.deadlock, "back waits"));
	case_finish(&s.c);
}

static void deadlock(void **state)
{
	struct simulated s;
	(void)state;
	simulate(&s, CROSSED, ANY);
	assert_int_equal(s.outcome, CYCLE_DEADLOCK);
	assert_string_equal(s.flow.deadlock,
	        "writer waits for space in s_a (full, depth 16); reader waits for a word of s_b "
	        "(empty, depth 16)");
	assert_int_equal(channel_of(&s, "s_a")->most, 16);
	assert_false(process_of(&s, "writer")->ended);
	assert_int_equal(s.flow.waits, 2);
	assert_int_equal(s.flow.cycle, 2);
	assert_true(
	        s.flow.wait[0].room && s.flow.wait[0].depth == 16 && s.flow.wait[0].since == 16);
	assert_int_equal(s.flow.wait[0].needed, 100);
	assert_int_equal(s.flow.wait[1].needed, 0);
	case_finish(&s.c);
}

static void budget(void **state)
{
	struct simulated s;
	(void)state;
	simulate(&s, SQUARES("1"), 299);
	assert_int_equal(s.outcome, CYCLE_OVER_BUDGET);
	assert_int_equal(s.flow.events, 300);
	case_finish(&s.c);
	simulate(&s, SQUARES("1"), 300);
	assert_int_equal(s.outcome, CYCLE_DONE);
	case_finish(&s.c);
}

/* --- against the evaluator */

static const struct channel *counted[CHANNELS_MOST];
static int64_t words[CHANNELS_MOST];

static const struct instruction *count_word(
        struct network *network, struct kahn_process *process, const struct instruction *at)
{
	const struct instruction *next =
	        (at->channel->blocks ? do_release : do_push)(network, process, at);
	bool made = next &&
	        (at->channel->blocks ? at->side == SIDE_WRITE
	                             : *(const unsigned char *)at->in[0] != 0);
	for (int i = 0; made && i < CHANNELS_MOST; i++)
		words[i] += counted[i] == at->channel;
	return next;
}

static void evaluate(struct design_case *c)
{
	struct evaluation e = { .module = c->module, .arena = c->arena };
	struct network network = { .e = &e };
	struct op *function = module_main(c->module);
	struct block *body = function->region[0];
	for (int i = 0; i < body->arguments; i++) {
		int64_t count = 1 << 12;
		char *zeros = arena_alloc(c->arena,
		        (size_t)(count * type_bits(body->argument[i]->type->element) / 8));
		body->argument[i]->data =
		        array_new(c->arena, "port", body->argument[i]->type, count, zeros);
	}
	for (struct op *op = body->first; op; op = op->next)
		if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
			op->result[0]->data = channel_new(&network, op);
		else if (op->code == OP_CALL)
			assert_true(network_add_process(&network, op));
	assert_true(network.channels.count <= CHANNELS_MOST);
	for (size_t i = 0; i < network.channels.count; i++) {
		counted[i] = network.channels.data[i];
		words[i] = 0;
	}
	for (size_t i = 0; i < network.processes.count; i++)
		for (size_t j = 0; j < network.processes.data[i]->program.count; j++) {
			struct instruction *at = &network.processes.data[i]->program.data[j];
			at->run =
			        at->run == do_push || at->run == do_release ? count_word : at->run;
		}
	assert_true(network_run(&network));
}

static void check_words(const char *text)
{
	struct simulated s;
	simulate(&s, text, ANY);
	assert_int_equal(s.outcome, CYCLE_DONE);
	evaluate(&s.c);
	for (int i = 0; i < s.flow.channels; i++) {
		assert_int_equal(s.flow.channel[i].words, words[i]);
		assert_true(s.flow.channel[i].most >= 1 &&
		        s.flow.channel[i].most <= s.flow.channel[i].depth);
	}
	struct design_cost cost = design_cost(s.c.arena, s.platform, s.c.module);
	struct design_time time =
	        design_time(s.c.arena, s.platform, s.c.module, &cost, (struct extent_list){ 0 });
	assert_true(s.flow.cycles >= time.least);
	for (int i = 0; i < s.flow.processes; i++) {
		const struct cycle_process_result *process = &s.flow.process[i];
		if (!process->memory)
			assert_int_equal(process->end - process->input - process->output,
			        time.process[i].busy);
	}
	case_finish(&s.c);
}

static const char *perceptron(struct arena *arena)
{
	size_t size;
	const char *reason;
	const char *text =
	        file_read(arena, STC_SOURCE_DIR "/examples/perceptron.mlir", &size, &reason);
	assert_non_null(text);
	return text;
}

/* The same words as with values; and without its waits a process that memory does not hold up
 * takes what the model says. */
static void words_and_busy_cycles(void **state)
{
	struct guard guard;
	(void)state;
	struct arena *arena = arena_new(&guard);
	check_words(perceptron(arena));
	check_words(SQUARES("1"));
	check_words(SQUARES("4"));
	check_words(RING("flp"));
	check_words(PING_PONG("2"));
	arena_free(arena);
}

static void twice_the_same(void **state)
{
	struct simulated s;
	struct guard guard;
	struct cycle_result again;
	(void)state;
	struct arena *arena = arena_new(&guard);
	simulate(&s, perceptron(arena), ANY);
	assert_int_equal(
	        cycle_simulate(s.c.arena, s.platform, s.c.module, ANY, &again), CYCLE_DONE);
	assert_memory_equal(
	        again.process, s.flow.process, sizeof *again.process * (size_t)again.processes);
	for (int i = 0; i < again.channels; i++)
		assert_int_equal(again.channel[i].most, s.flow.channel[i].most);
	case_finish(&s.c);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain_of_three),
		cmocka_unit_test(words_on_a_condition),
		cmocka_unit_test(slow_reader),
		cmocka_unit_test(blocks),
		cmocka_unit_test(styles),
		cmocka_unit_test(deadlock),
		cmocka_unit_test(budget),
		cmocka_unit_test(words_and_busy_cycles),
		cmocka_unit_test(twice_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
