/* Storage of memories and placement on dies: small designs whose best answer is known, random
 * problems against trying every placement. */
#define _POSIX_C_SOURCE 200809L /* fileno, dup2 */
#include "floorplan/floorplan_passes.h"
#include "base/random.h"
#include "import/import.h"
#include "ir/print.h"
#include "predict/crossing.h"
#include "fifo/fifo.h"
#include "options/pass_context.h"
#include "floorplan/floorplan.h"
#include "solve/ilp.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

struct test {
	struct guard guard;
	struct diag diag;
	struct arena *arena;
	struct platform platform;
	uint64_t seed;
};

static int open_test(void **state)
{
	struct arena *arena = arena_new(NULL);
	struct test *t = ARENA_NEW(arena, struct test);
	t->arena = arena;
	t->diag.arena = arena;
	t->seed = 1;
	const struct platform *platform = platform_load(arena, &t->diag, "u55c");
	if (!platform)
		return -1;
	t->platform = *platform;
	*state = t;
	return 0;
}

static int close_test(void **state)
{
	arena_free(((struct test *)*state)->arena);
	return 0;
}

static int random_below(struct test *t, int limit)
{
	return (int)(random_next(&t->seed) % (uint64_t)limit);
}

static const char *message(const struct test *t)
{
	assert_true(t->diag.count > 0);
	return t->diag.entry[0].message;
}

/* ---- integer programs */

/* Weights 3 4 5 6 into 10: worth 4 5 6 8; best 13. */
static struct ilp knapsack(struct arena *arena)
{
	static const double weight[] = { 3, 4, 5, 6 };
	static const double worth[] = { 4, 5, 6, 8 };
	struct ilp ilp = ilp_new(arena);
	for (int i = 0; i < 4; i++)
		ilp_column(&ilp, text_format(arena, "x%d", i), 0, 1, -worth[i], true);
	ilp_row(&ilp, "room", 'L', 10);
	for (int i = 0; i < 4; i++)
		ilp_term(&ilp, i, weight[i]);
	return ilp;
}

static void ilp_finds_the_optimum(void **state)
{
	struct test *t = *state;
	struct ilp ilp = knapsack(t->arena);
	const double start[] = { 1, 0, 1, 0 };
	for (int with = 0; with < 4; with++) {
		ilp.hasty = with & 2;
		struct ilp_solution solution = ilp_solve(&ilp, with & 1 ? start : NULL, 100);
		assert_int_equal(solution.status, ILP_OPTIMAL);
		assert_true(solution.objective == -13);
		assert_true(solution.value[1] > 0.5 && solution.value[3] > 0.5);
	}
	ilp_row(&ilp, "much", 'G', 19);
	for (int i = 0; i < 4; i++)
		ilp_term(&ilp, i, 1);
	assert_int_equal(ilp_solve(&ilp, NULL, 100).status, ILP_INFEASIBLE);
}

/* A row that names a column twice gets the sum of the coefficients: CBC would write beyond its
 * arrays. */
static void ilp_adds_up_columns(void **state)
{
	struct test *t = *state;
	struct ilp ilp = ilp_new(t->arena);
	for (int i = 0; i < 40; i++)
		ilp_column(&ilp, text_format(t->arena, "x%d", i), 0, 1e12, 1, false);
	for (int r = 0; r < 200; r++) {
		ilp_row(&ilp, text_format(t->arena, "r%d", r), 'G', 6);
		for (int i = 0; i < 3; i++)
			ilp_term(&ilp, r % 40, i + 1);
	}
	struct ilp_solution solution = ilp_solve(&ilp, NULL, 1);
	assert_int_equal(solution.status, ILP_OPTIMAL);
	assert_true(solution.objective > 39.999 && solution.objective < 40.001);
	ilp_row(&ilp, "never", 'G', 1);
	ilp_term(&ilp, 3, 1);
	ilp_term(&ilp, 3, -1);
	assert_int_equal(ilp_solve(&ilp, NULL, 1).status, ILP_INFEASIBLE);
}

static void ilp_prints_lp_format(void **state)
{
	struct test *t = *state;
	struct ilp ilp = knapsack(t->arena);
	struct text out = text_new(t->arena);
	ilp_print(&ilp, &out);
	assert_string_equal(out.data,
	        "Minimize\n obj: -4 x0 -5 x1 -6 x2 -8 x3\nSubject To\n room: +3 x0 +4 x1 +5 x2 +6 "
	        "x3 <= 10\n"
	        "Bounds\n 0 <= x0 <= 1\n 0 <= x1 <= 1\n 0 <= x2 <= 1\n 0 <= x3 <= 1\nGeneral\n "
	        "x0\n x1\n x2\n x3\nEnd\n");
}

static void ilp_says_nothing(void **state)
{
	struct test *t = *state;
	struct ilp ilp = knapsack(t->arena);
	const double start[] = { 1, 0, 1, 0 };
	FILE *file = tmpfile();
	assert_non_null(file);
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	dup2(fileno(file), STDOUT_FILENO);
	ilp_solve(&ilp, start, 100);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	fseek(file, 0, SEEK_END);
	assert_int_equal(ftell(file), 0);
	fclose(file);
}

static volatile sig_atomic_t asked, told;

static void ask(int number)
{
	(void)number;
	asked++;
	raise(SIGINT);
}

static void tell(int number)
{
	(void)number;
	told++;
}

/* SIGINT at many moments of a solution, one each. */
static void ilp_loses_no_interrupt(void **state)
{
	struct test *t = *state;
	struct ilp ilp = knapsack(t->arena);
	struct sigaction on_alarm = { .sa_handler = ask };
	struct sigaction on_interrupt = { .sa_handler = tell };
	struct sigaction alarm_before;
	struct sigaction interrupt_before;
	sigaction(SIGALRM, &on_alarm, &alarm_before);
	sigaction(SIGINT, &on_interrupt, &interrupt_before);
	asked = told = 0;
	for (int i = 0; i < 200; i++) {
		struct itimerval soon = { .it_value = { .tv_usec = 1 + i * 10 } };
		struct itimerval never = { 0 };
		setitimer(ITIMER_REAL, &soon, NULL);
		ilp_solve(&ilp, NULL, 100);
		setitimer(ITIMER_REAL, &never, NULL);
	}
	assert_int_equal(asked, told);
	assert_true(asked > 0);
	sigaction(SIGALRM, &alarm_before, NULL);
	sigaction(SIGINT, &interrupt_before, NULL);
}

/* ---- placements */

static struct floorplan_problem problem_new(
        struct test *t, int items, int64_t dsp_of_die, int64_t wires)
{
	struct floorplan_problem problem = {
		.arena = t->arena, .items = items, .dies = 3, .wires = wires
	};
	problem.item = ARENA_ARRAY(t->arena, struct floorplan_item, items);
	problem.edge = ARENA_ARRAY(t->arena, struct floorplan_edge, items * items);
	for (int d = 0; d < problem.dies; d++)
		problem.capacity[d] = (struct resources){ 1000, 1000, dsp_of_die, 1000, 1000 };
	return problem;
}

static void add_edge(struct floorplan_problem *problem, int from, int to, int64_t bits)
{
	problem->edge[problem->edges++] = (struct floorplan_edge){ from, to, bits };
}

static struct floorplan_cost try_all(const struct floorplan_problem *problem)
{
	int die[10] = { 0 };
	struct floorplan_cost best = { 1e9, 0 };
	for (int code = 0;; code++) {
		int rest = code;
		bool stays = true;
		for (int i = 0; i < problem->items; i++, rest /= problem->dies) {
			die[i] = rest % problem->dies;
			stays = stays &&
			        (!problem->item[i].memory_die || die[i] == problem->memory_die);
		}
		if (rest)
			return best;
		struct floorplan_cost cost = floorplan_cost(problem, die);
		if (stays && floorplan_better(cost, best))
			best = cost;
	}
}

/* Six in a row, two fit on a die, and the thin edges are those that must be cut. */
static void chain_is_cut_where_it_is_thin(void **state)
{
	struct test *t = *state;
	static const int64_t bits[] = { 512, 32, 512, 64, 512 };
	struct floorplan_problem problem = problem_new(t, 6, 20, 5000);
	for (int i = 0; i < 6; i++)
		problem.item[i].need.dsp = 10;
	problem.item[0].memory_die = true;
	for (int i = 0; i < 5; i++)
		add_edge(&problem, i, i + 1, bits[i]);
	floorplan_index(&problem);
	int die[6];
	int again[6];
	floorplan_search(&problem, die);
	struct floorplan_cost cost = floorplan_ilp(&problem, die);
	assert_true(cost.overflow == 0);
	assert_int_equal(cost.crossing, 96);
	static const int expected[] = { 0, 0, 1, 1, 2, 2 };
	assert_memory_equal(die, expected, sizeof die);
	floorplan_search(&problem, again);
	floorplan_ilp(&problem, again);
	assert_memory_equal(die, again, sizeof die);
}

static void random_edges(struct test *t, struct floorplan_problem *problem)
{
	for (int i = 1; i < problem->items; i++) {
		add_edge(problem, random_below(t, i), i, 1 + random_below(t, 512));
		if (random_below(t, 2))
			add_edge(problem, random_below(t, i), i, 1 + random_below(t, 512));
	}
	floorplan_index(problem);
}

static void exact_is_best(void **state)
{
	struct test *t = *state;
	int fitting = 0;
	for (int round = 0; round < 60; round++) {
		struct floorplan_problem problem =
		        problem_new(t, 6, 14 + random_below(t, 12), 600 + random_below(t, 600));
		for (int i = 0; i < problem.items; i++)
			problem.item[i] =
			        (struct floorplan_item){ .need = { .dsp = 1 + random_below(t, 10) },
				        .memory_die = i == 0 || !random_below(t, 5) };
		random_edges(t, &problem);
		int die[6];
		struct floorplan_cost best = try_all(&problem);
		struct floorplan_cost found = floorplan_search(&problem, die);
		assert_false(floorplan_better(found, best));
		struct floorplan_problem first_fit = problem;
		first_fit.first_fit = true;
		assert_true(
		        (found.overflow > 0) == (floorplan_search(&first_fit, die).overflow > 0));
		assert_true(floorplan_cost(&problem, die).overflow > 0 || best.overflow <= 0);
		found = floorplan_ilp(&problem, die);
		assert_false(floorplan_better(found, best));
		fitting += best.overflow == 0;
		if (best.overflow > 0)
			assert_true(found.overflow > 0);
		else
			assert_int_equal(found.crossing, best.crossing);
	}
	assert_in_range(fitting, 10, 59);
}

/* A word from die 0 to die 2: a register on die 0, two on die 1, one and the queue on die 2. */
static void registers_stand_on_both_sides(void **state)
{
	struct resources used[PLATFORM_DIES] = { 0 };
	struct crossing_parts parts = crossing_parts(&((struct test *)*state)->platform, 100);
	crossing_add(&parts, 0, 2, 1, used);
	int64_t side = used[0].ff;
	assert_in_range(side, 100, 110);
	assert_int_equal(used[1].ff, 2 * side);
	assert_in_range(used[2].ff, side, side + 10);
	assert_int_equal(used[0].lut + used[1].lut, 0);
	assert_in_range(used[2].lut, 100, 150);
	crossing_add(&parts, 0, 2, -1, used);
	crossing_add(&parts, 1, 0, 1, used);
	assert_in_range(used[0].lut, 50, 100);
	assert_int_equal(used[1].ff, side);
	assert_int_equal(used[2].ff + used[2].lut + used[1].lut, 0);
}

/* The integer program is solved for problems that do not fit, and for small ones that do: here a
 * chain of items that alternate between two dies. */
static void large_ones_that_fit_are_left(void **state)
{
	struct test *t = *state;
	for (int items = 60; items <= 61; items++)
		for (int fits = 0; fits < 2; fits++) {
			struct floorplan_problem problem =
			        problem_new(t, items, 1000, fits ? 5000 : 20);
			int die[61];
			for (int i = 0; i < items; i++) {
				die[i] = i % 2;
				if (i)
					add_edge(&problem, i - 1, i, 1);
			}
			floorplan_index(&problem);
			struct floorplan_cost before = floorplan_cost(&problem, die);
			struct floorplan_cost after = floorplan_ilp(&problem, die);
			assert_true(floorplan_better(after, before) == (items == 60 || !fits));
		}
}

/* Items without needs can only follow their bits, so nothing is lost by merging them. */
static void merging_keeps_the_best(void **state)
{
	struct test *t = *state;
	int merged = 0;
	for (int round = 0; round < 40; round++) {
		struct floorplan_problem problem = problem_new(t, 8, 10, 100000);
		for (int i = 0; i < 3; i++)
			problem.item[i].need.dsp = 10;
		problem.item[0].memory_die = true;
		random_edges(t, &problem);
		int group[8];
		struct floorplan_problem smaller = floorplan_merge(&problem, group);
		assert_int_equal(try_all(&smaller).crossing, try_all(&problem).crossing);
		merged += problem.items - smaller.items;
	}
	assert_true(merged > 40);
}

/* ---- designs: load, stages that multiply, store; between them FIFOs, or with `blocks` a block
 * channel after every even stage */

#define PORT "memref<?xf32>"
#define BLOCK "memref<100xf32>"

struct chain {
	int stages, multiplies;
	int64_t depth;
	const char *before; /* operations of each stage before its loop */
	bool blocks;
};

struct part {
	const char *name, *first, *second;   /* function, types of its arguments %a and %b */
	const char *before, *inside, *after; /* the loop over %i */
};

static void add_function(struct text *out, struct part part)
{
	text_add(out, "\"func.func\"() ({\n^bb0(%%a: %s, %%b: %s):\n", part.first, part.second);
	text_add(out,
	        "%%c0 = \"arith.constant\"() {value = 0 : index} : () -> index\n%%c1 = "
	        "\"arith.constant\"() {value = 1 : index} : () -> index\n"
	        "%%n = \"arith.constant\"() {value = 100 : index} : () -> index\n%%t = "
	        "\"arith.constant\"() {value = true} : () -> i1\n%s",
	        part.before);
	text_add(out,
	        "\"scf.for\"(%%c0, %%n, %%c1) ({\n^bb0(%%i: index):\n%s\"scf.yield\"() : () -> "
	        "()\n}) {stream.pipeline = 1 : i64} : (index, index, index) -> ()\n%s",
	        part.inside, part.after);
	text_add(out,
	        "\"func.return\"() : () -> ()\n}) {arg_attrs = [{stream.name = \"a\"}, "
	        "{stream.name = \"b\"}], function_type = (%s, %s) -> (), stream.die = 0 : i64, "
	        "stream.process, stream.style = \"stp\", sym_name = \"%s\", sym_visibility = "
	        "\"private\"} : () -> ()\n",
	        part.first, part.second, part.name);
}

static bool is_block(const struct chain *chain, int channel)
{
	return chain->blocks && channel % 2 == 1;
}

static const char *channel_type(struct test *t, const struct chain *chain, int channel)
{
	return is_block(chain, channel)
	        ? "!stream.block_channel<" BLOCK ", 2>"
	        : text_format(t->arena, "!stream.fifo<f32, %lld>", (long long)chain->depth);
}

static const char *acquire(struct test *t, const char *channel, const char *side)
{
	return text_format(t->arena,
	        "%%k = \"stream.acquire\"(%%%s) {side = \"%s\"} : (!stream.block_channel<" BLOCK
	        ", 2>) -> " BLOCK "\n",
	        channel, side);
}

static const char *release(struct test *t, const char *channel)
{
	return text_format(t->arena,
	        "\"stream.release\"(%%k, %%%s) : (" BLOCK ", !stream.block_channel<" BLOCK
	        ", 2>) -> ()\n",
	        channel);
}

static void add_stage(struct test *t, struct text *out, const struct chain *chain, int stage)
{
	struct text inside = text_new(t->arena);
	bool drains = is_block(chain, stage), fills = is_block(chain, stage + 1);
	struct part part = { text_format(t->arena, "stage%d", stage), channel_type(t, chain, stage),
		channel_type(t, chain, stage + 1), chain->before, "", "" };
	if (drains)
		text_add(&inside, "%%y0 = \"memref.load\"(%%k, %%i) : (" BLOCK ", index) -> f32\n");
	else
		text_add(
		        &inside, "%%y0 = \"stream.pop\"(%%t, %%a) : (i1, %s) -> f32\n", part.first);
	for (int m = 0; m < chain->multiplies; m++)
		text_add(&inside, "%%y%d = \"arith.mulf\"(%%y%d, %%y%d) : (f32, f32) -> f32\n",
		        m + 1, m, m);
	if (fills)
		text_add(&inside,
		        "\"memref.store\"(%%y%d, %%k, %%i) : (f32, " BLOCK ", index) -> ()\n",
		        chain->multiplies);
	else
		text_add(&inside, "\"stream.push\"(%%t, %%y%d, %%b) : (i1, f32, %s) -> ()\n",
		        chain->multiplies, part.second);
	if (drains || fills) {
		part.before = acquire(t, drains ? "a" : "b", drains ? "read" : "write");
		part.after = release(t, drains ? "a" : "b");
	}
	part.inside = inside.data;
	add_function(out, part);
}

static void add_main(struct test *t, struct text *out, const struct chain *chain)
{
	int last = chain->stages;
	text_add(out, "\"func.func\"() ({\n^bb0(%%m: " PORT ", %%r: " PORT "):\n");
	for (int i = 0; i <= last; i++)
		text_add(out, "%%f%d = \"stream.%s\"() {name = \"s_%d\"} : () -> %s\n", i,
		        is_block(chain, i) ? "block_channel" : "fifo", i,
		        channel_type(t, chain, i));
	text_add(out, "\"func.call\"(%%m, %%f0) {callee = @load} : (" PORT ", %s) -> ()\n",
	        channel_type(t, chain, 0));
	for (int i = 0; i < last; i++)
		text_add(out, "\"func.call\"(%%f%d, %%f%d) {callee = @stage%d} : (%s, %s) -> ()\n",
		        i, i + 1, i, channel_type(t, chain, i), channel_type(t, chain, i + 1));
	text_add(out,
	        "\"func.call\"(%%r, %%f%d) {callee = @store} : (" PORT
	        ", %s) -> ()\n\"func.return\"() : () -> ()\n",
	        last, channel_type(t, chain, last));
	text_add(out,
	        "}) {arg_attrs = [{stream.buffer = \"x\", stream.channel = 0 : i64, "
	        "stream.direction = \"read\", stream.port = \"m_x\"}, "
	        "{stream.buffer = \"y\", stream.channel = 1 : i64, stream.direction = \"write\", "
	        "stream.port = \"m_y\"}], function_type = (" PORT ", " PORT ") -> (), "
	        "stream.buffers = [], stream.inputs = [{name = \"w\", role = \"weight\", type = "
	        "tensor<100xf32>}], "
	        "stream.outputs = [{name = \"r\", role = \"output\", type = tensor<100xf32>}], "
	        "sym_name = \"main\"} : () -> ()\n");
}

static const char *text_of(struct test *t, struct chain chain)
{
	struct text out = text_new(t->arena);
	const char *fifo = channel_type(t, &chain, 0);
	text_add(&out, "\"builtin.module\"() ({\n");
	add_main(t, &out, &chain);
	add_function(&out,
	        (struct part){ "load", PORT, fifo, "",
	                text_format(t->arena,
	                        "%%x = \"memref.load\"(%%a, %%i) : (" PORT ", index) -> f32\n"
	                        "\"stream.push\"(%%t, %%x, %%b) : (i1, f32, %s) -> ()\n",
	                        fifo),
	                "" });
	add_function(&out,
	        (struct part){ "store", PORT, fifo, "",
	                text_format(t->arena,
	                        "%%x = \"stream.pop\"(%%t, %%b) : (i1, %s) -> f32\n"
	                        "\"memref.store\"(%%x, %%a, %%i) : (f32, " PORT ", index) -> ()\n",
	                        fifo),
	                "" });
	for (int i = 0; i < chain.stages; i++)
		add_stage(t, &out, &chain, i);
	text_add(&out, "}) {stream.level = \"hardware\"} : () -> ()\n");
	return out.data;
}

static const char *design(
        struct test *t, int stages, int multiplies, int64_t depth, const char *before)
{
	return text_of(t, (struct chain){ stages, multiplies, depth, before, false });
}

static struct module *module_of(struct test *t, const char *text)
{
	struct module *module =
	        import_mlir(t->arena, &t->guard, &t->diag, "test", text, strlen(text));
	if (!module || !ir_verify(module))
		fail_msg("%s", message(t));
	return module;
}

static const char *storage_of(struct module *module, const char *name)
{
	for (const struct op *function = module_body(module)->first; function;
	        function = function->next)
		for (const struct op *op = function->region[0]->first; op; op = op->next)
			if (text_same(attr_text_or(op, KEY_NAME,
			                      attr_text_or(op, KEY_STREAM_NAME, NULL)),
			            name))
				return attr_text_or(op, KEY_STREAM_STORAGE, "none");
	return "missing";
}

static const char *fifo_storage(struct test *t, int64_t depth)
{
	struct module *module = module_of(t, design(t, 2, 1, depth, ""));
	struct pass_context context = { .platform = &t->platform };
	assert_true(bind_storage(&context, module));
	return storage_of(module, "s_1");
}

static void set_memories(struct test *t, int64_t bram18, int64_t uram)
{
	for (int d = 0; d < t->platform.dies; d++) {
		t->platform.die[d].bram18 = bram18;
		t->platform.die[d].uram = uram;
	}
}

static void storage_follows_depth(void **state)
{
	struct test *t = *state;
	assert_string_equal(fifo_storage(t, 16), "srl");
	assert_string_equal(fifo_storage(t, 32), "srl");
	assert_string_equal(fifo_storage(t, 64), "lutram");
	assert_string_equal(fifo_storage(t, 512), "bram");
	assert_string_equal(fifo_storage(t, 4096), "uram");
}

static void storage_follows_what_is_left(void **state)
{
	struct test *t = *state;
	set_memories(t, 1200, 0);
	assert_string_equal(fifo_storage(t, 4096), "bram");
	set_memories(t, 2, 100);
	assert_string_equal(fifo_storage(t, 512), "uram");
}

/* Six FIFOs of 4096 words, each one URAM or eight block RAMs: neither kind alone has a good
 * share for all. */
static void storage_changes_kind_when_one_is_full(void **state)
{
	struct test *t = *state;
	set_memories(t, 9, 2);
	struct module *module = module_of(t, design(t, 5, 1, 4096, ""));
	struct pass_context context = { .platform = &t->platform };
	assert_true(bind_storage(&context, module));
	struct design_cost cost = design_cost(t->arena, &t->platform, module);
	assert_in_range(cost.total.uram, 1, 5);
	assert_in_range(cost.total.bram18, 8, 27);
}

#define ARRAY(name, words, attributes)                                                             \
	"%" name " = \"memref.alloca\"() {stream.name = \"" name "\"" attributes                   \
	"} : () -> memref<" words "xf32>\n"
#define ADD(name, words)                                                                           \
	"%r" name " = \"memref.load\"(%" name ", %c1) : (memref<" words                            \
	"xf32>, index) -> f32\n%s" name " = \"arith.addf\"(%r" name ", %r" name                    \
	") : (f32, f32) -> f32\n"                                                                  \
	"\"memref.store\"(%s" name ", %" name ", %c1) : (f32, memref<" words                       \
	"xf32>, index) -> ()\n"
#define LOOPED(body)                                                                               \
	"\"scf.for\"(%c0, %n, %c1) ({\n^bb0(%k: index):\n" body                                    \
	"\"scf.yield\"() : () -> ()\n}) {stream.pipeline = 1 : i64} : (index, index, index) -> "   \
	"()\n"

/* Words that are updated are in a memory, or a shift register; words that are read at a time are
 * banks of one each. */
static void accumulators_are_memories(void **state)
{
	struct test *t = *state;
	struct module *module = module_of(t,
	        design(t, 1, 1, 16,
	                ARRAY("one", "1", "") ARRAY("few", "4", ", stream.distance = 4 : i64")
	                        ARRAY("turn", "8", ", stream.distance = 8 : i64, stream.rotation")
	                                ARRAY("banks", "8", ", stream.partition = 8 : i64")
	                                        ARRAY("read", "8", "")
	                                                LOOPED(ADD("few", "4") ADD("turn", "8"))));
	struct pass_context context = { .platform = &t->platform };
	assert_true(bind_storage(&context, module));
	assert_string_equal(storage_of(module, "one"), "registers");
	assert_string_equal(storage_of(module, "few"), "lutram");
	assert_string_equal(storage_of(module, "turn"), "registers");
	assert_string_equal(storage_of(module, "banks"), "registers");
	assert_string_equal(storage_of(module, "read"), "lutram");
}

#define PICK(name, when, yes, no)                                                                  \
	"%" name " = \"arith.select\"(%" when ", %" yes ", %" no ") : (i1, i32, i32) -> i32\n"
#define IS(name, number)                                                                           \
	"%" name " = \"arith.cmpi\"(%k, %" number ") {predicate = 0 : i64} : (index, index) -> "   \
	"i1\n"
#define PICKED(second)                                                                             \
	LOOPED("%z = \"arith.constant\"() {value = 1 : i32} : () -> i32\n" IS("low", "c0")         \
	                IS("high", "c1") PICK("p", "low", "z", "z") PICK("q", second, "z", "z")    \
	                        PICK("r", "high", "p", "q"))

static int64_t picking_luts(struct test *t, const char *text)
{
	return process_resources(
	        &t->platform, module_find(module_of(t, design(t, 1, 1, 16, text)), "stage0"))
	        .lut;
}

/* A LUT chooses a bit among four, where the first two choices have their condition in common;
 * else it takes half a LUT more. */
static void four_words_are_chosen_among_at_once(void **state)
{
	struct test *t = *state;
	assert_int_equal(picking_luts(t, PICKED("high")) - picking_luts(t, PICKED("low")), 16);
}

static void memory_that_is_missing_is_named(void **state)
{
	struct test *t = *state;
	set_memories(t, 4, 1);
	struct module *module = module_of(t, design(t, 5, 1, 1 << 16, ""));
	struct pass_context context = { .platform = &t->platform };
	assert_false(bind_storage(&context, module));
	assert_non_null(strstr(message(t),
	        "on-chip memory: the design needs 96 URAM blocks, 93 more than the 3 that u55c "
	        "has; the largest memory, 's_0', has 262144 bytes"));
	assert_non_null(
	        strstr(t->diag.entry[0].note, "take 1572864 bytes: a smaller --on-chip-memory"));
	t->diag.count = 0;
	set_memories(t, 40, 0);
	assert_false(bind_storage(&context, module));
	assert_non_null(strstr(message(t), "needs 770 BRAM18 blocks, 650 more than the 120"));
}

/* ---- dies */

static void set_dsps(struct test *t, int64_t dsp)
{
	for (int d = 0; d < t->platform.dies; d++)
		t->platform.die[d].dsp = dsp;
}

static bool place_text(struct test *t, const char *text, struct module **module)
{
	struct pass_context context = { .platform = &t->platform };
	*module = module_of(t, text);
	return bind_storage(&context, *module) && floorplan(&context, *module);
}

static void check_placed(struct test *t, struct module *module, int percent)
{
	struct design_cost cost = design_cost(t->arena, &t->platform, module);
	int64_t have;
	int64_t need;
	for (int i = 0; i < cost.processes; i++) {
		const char *name = cost.process[i].name;
		assert_in_range(attr_integer_or(cost.process[i].function, KEY_STREAM_DIE, -1), 0,
		        t->platform.dies - 1);
		if (text_same(name, "load") || text_same(name, "store"))
			assert_int_equal(cost.process[i].die, t->platform.memory_die);
	}
	for (int d = 0; d < t->platform.dies; d++) {
		assert_null(resources_exceeded(cost.die[d], t->platform.die[d], &have, &need));
		assert_true(cost.die[d].dsp * 100 <= t->platform.die[d].dsp * percent);
	}
}

static void designs_fit_their_dies(void **state)
{
	struct test *t = *state;
	static const int percent[] = { 75, 80, 90, 100 }; /* three stages of 30 DSPs on a die */
	static const int64_t dsp[] = { 120, 113, 100, 90 };
	for (int i = 0; i < 4; i++) {
		struct module *first;
		struct module *second;
		set_dsps(t, dsp[i]);
		const char *text = design(t, 9, 10, 16, "");
		assert_true(place_text(t, text, &first));
		assert_true(place_text(t, text, &second));
		check_placed(t, first, percent[i]);
		struct text left = text_new(t->arena);
		struct text right = text_new(t->arena);
		ir_print(first, &left);
		ir_print(second, &right);
		assert_string_equal(left.data, right.data);
	}
}

/* Ten FIFOs of eight block RAMs: they, not the processes, fill the dies. */
static void channels_count_on_dies(void **state)
{
	struct test *t = *state;
	struct module *module;
	set_memories(t, 40, 0);
	assert_true(place_text(t, design(t, 9, 1, 4096, ""), &module));
	check_placed(t, module, 100);
	assert_int_equal(design_cost(t->arena, &t->platform, module).total.bram18, 82);
}

static void refused(struct test *t, const char *text, const char *expected)
{
	struct module *module;
	t->diag.count = 0;
	assert_false(place_text(t, text, &module));
	if (!strstr(message(t), expected))
		fail_msg("'%s' lacks '%s'", message(t), expected);
	assert_non_null(strstr(t->diag.entry[0].note, "--platform"));
}

/* The platform has block RAMs enough, but those of the memory die are for its ports: what is
 * read there waits in a URAM. */
static void a_die_without_block_rams_takes_urams(void **state)
{
	struct test *t = *state;
	struct module *module;
	set_memories(t, 1000, 20);
	t->platform.die[0].bram18 = 6;
	assert_true(place_text(t, design(t, 9, 1, 4096, ""), &module));
	check_placed(t, module, 100);
	assert_string_equal(storage_of(module, "s_9"), "uram");
	assert_string_equal(storage_of(module, "s_1"), "bram");
	t->platform.die[0].uram = 0;
	refused(t, design(t, 9, 1, 4096, ""),
	        "processes with memory ports need 10 BRAM18 blocks, 4 more than the 6 of die 0, "
	        "the memory die of u55c");
}

/* Four pairs of 60 DSPs, of which each die holds two. */
static void sides_of_blocks_stay_together(void **state)
{
	struct test *t = *state;
	struct module *module;
	set_dsps(t, 125);
	assert_true(place_text(t, text_of(t, (struct chain){ 8, 10, 16, "", true }), &module));
	check_placed(t, module, 100);
	for (int i = 0; i < 8; i += 2)
		assert_int_equal(
		        attr_integer_or(module_find(module, text_format(t->arena, "stage%d", i)),
		                KEY_STREAM_DIE, -1),
		        attr_integer_or(
		                module_find(module, text_format(t->arena, "stage%d", i + 1)),
		                KEY_STREAM_DIE, -2));
}

static bool finds_room(struct test *t, const char *text, bool shallow)
{
	struct pass_context context = { .platform = &t->platform };
	struct module *module = module_of(t, text);
	if (shallow)
		fifo_shallow(module);
	assert_true(ir_verify(module));
	return bind_storage(&context, module) && floorplan_fits(&t->platform, module);
}

/* Room is below what a crowded die has; and shallow FIFOs take no memory, unless their makers
 * chose their depths. */
static void room_is_found_where_no_die_is_crowded(void **state)
{
	struct test *t = *state;
	t->platform.crowded.dsp = t->platform.crowded.bram18 = 80;
	const int64_t dsp[] = { 120, 113, 112, 100 }; /* nine stages of 30 DSPs, three on a die */
	for (int i = 0; i < 4; i++) {
		set_dsps(t, dsp[i]);
		assert_int_equal(finds_room(t, design(t, 9, 10, 16, ""), false), dsp[i] >= 113);
	}
	set_dsps(t, 1000);
	set_memories(t, 30, 0); /* 82 block RAMs */
	assert_false(finds_room(t, design(t, 9, 1, 4096, ""), false));
	assert_true(finds_room(t, design(t, 9, 1, 4096, ""), true));
	struct module *module = module_of(t, design(t, 2, 1, 4096, ""));
	struct op *first = module_main(module)->region[0]->first;
	attr_set(module, first, KEY_STREAM_FIXED_DEPTH, attr_unit(module));
	fifo_shallow(module);
	assert_int_equal(first->result[0]->type->depth, 4096);
	assert_int_equal(first->next->result[0]->type->depth, FIFO_LEAST);
}

static void small_designs_stay_on_one_die(void **state)
{
	struct test *t = *state;
	struct module *module;
	t->platform.memory_die = 1;
	assert_true(place_text(t, design(t, 4, 2, 16, ""), &module));
	struct design_cost cost = design_cost(t->arena, &t->platform, module);
	assert_true(cost.die[1].dsp == 24 && cost.die[0].dsp == 0 && cost.die[2].dsp == 0);
}

static void what_does_not_fit_is_named(void **state)
{
	struct test *t = *state;
	const struct platform whole = t->platform;
	set_dsps(t, 80);
	refused(t, design(t, 9, 10, 16, ""),
	        "the design needs 270 DSP slices, 30 more than the 240 of u55c");
	refused(t, design(t, 2, 30, 16, ""),
	        "process 'stage0' needs 90 DSP slices, 10 more than the 80 of one die of u55c");
	set_dsps(t, 100);
	t->platform.crossing_wires = 31;
	refused(t, design(t, 9, 10, 16, ""), "no placement on 3 dies was found; in the nearest, ");
	t->platform = whole;
	t->platform.die[0].bram18 = 0;
	refused(t, design(t, 2, 2, 16, ""),
	        "processes with memory ports need 2 BRAM18 blocks, 2 more than the 0 of die 0, the "
	        "memory die of u55c");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_test, close_test)
	const struct CMUnitTest tests[] = {
		TEST(ilp_finds_the_optimum),
		TEST(ilp_adds_up_columns),
		TEST(ilp_prints_lp_format),
		TEST(ilp_says_nothing),
		TEST(ilp_loses_no_interrupt),
		TEST(chain_is_cut_where_it_is_thin),
		TEST(exact_is_best),
		TEST(registers_stand_on_both_sides),
		TEST(large_ones_that_fit_are_left),
		TEST(merging_keeps_the_best),
		TEST(storage_follows_depth),
		TEST(storage_follows_what_is_left),
		TEST(storage_changes_kind_when_one_is_full),
		TEST(accumulators_are_memories),
		TEST(four_words_are_chosen_among_at_once),
		TEST(memory_that_is_missing_is_named),
		TEST(designs_fit_their_dies),
		TEST(channels_count_on_dies),
		TEST(a_die_without_block_rams_takes_urams),
		TEST(sides_of_blocks_stay_together),
		TEST(room_is_found_where_no_die_is_crowded),
		TEST(small_designs_stay_on_one_die),
		TEST(what_does_not_fit_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
