/* What size_fifos shows of a design, and what it finds broken: a FIFO whose two ends count
 * differently, and one too short whatever the others hold. */
#include "design_case.h"
#include "fifo/fifo.h"
#include "fifo/fifo_passes.h"

/* One process writes `writes` words into a, then into b; the other takes as many of b as `reads`
 * says, then those of a. */
static const char *two_processes(struct arena *arena, int writes, int reads, int depth)
{
	static const char *const loop =
	        "\"scf.for\"(%%c0, %%%s, %%c1) ({\n^bb0(%%%s: index):\n%s\"scf.yield\"() : () -> "
	        "()\n}) {stream.pipeline = 1 : i64} : (index, index, index) -> ()\n";
	static const char *const order[2][2] = { { "a", "b" }, { "b", "a" } };
	struct text text = text_new(arena);
	const char *fifo = text_format(arena, "!stream.fifo<f32, %d>", depth);
	text_add(&text,
	        "\"builtin.module\"() ({\n\"func.func\"() ({\n%%a = \"stream.fifo\"() {name = "
	        "\"s_a\"} : () -> %s\n%%b = \"stream.fifo\"() {name = \"s_b\"} : () -> %s\n",
	        fifo, fifo);
	for (int side = 0; side < 2; side++)
		text_add(&text, "\"func.call\"(%%a, %%b) {callee = @%s} : (%s, %s) -> ()\n",
		        side ? "reader" : "writer", fifo, fifo);
	text_add(&text,
	        "\"func.return\"() : () -> ()\n}) {function_type = () -> (), stream.buffers = [], "
	        "stream.inputs = [], stream.outputs = [], sym_name = \"main\"} : () -> ()\n");
	for (int side = 0; side < 2; side++) {
		text_add(&text,
		        "\"func.func\"() ({\n^bb0(%%a: %s, %%b: %s):\n%%c0 = \"arith.constant\"() "
		        "{value = 0 : index} : () -> index\n%%c1 = \"arith.constant\"() {value = 1 "
		        ": index} : () -> index\n"
		        "%%n = \"arith.constant\"() {value = %d : index} : () -> index\n%%m = "
		        "\"arith.constant\"() {value = %d : index} : () -> index\n%%t = "
		        "\"arith.constant\"() {value = true} : () -> i1\n"
		        "%%z = \"arith.constant\"() {value = 0.0 : f32} : () -> f32\n",
		        fifo, fifo, writes, side ? reads : writes);
		for (int i = 0; i < 2; i++) {
			const char *body = side
			        ? text_format(arena,
			                  "%%x%d = \"stream.pop\"(%%t, %%%s) : (i1, %s) -> f32\n",
			                  i, order[side][i], fifo)
			        : text_format(arena,
			                  "\"stream.push\"(%%t, %%z, %%%s) : (i1, f32, %s) -> ()\n",
			                  order[side][i], fifo);
			text_add(&text, loop, side && !i ? "m" : "n", i ? "j" : "i", body);
		}
		text_add(&text,
		        "\"func.return\"() : () -> ()\n}) {arg_attrs = [{stream.name = \"a\"}, "
		        "{stream.name = \"b\"}], function_type = (%s, %s) -> (), stream.die = 0 : "
		        "i64, stream.process, "
		        "stream.style = \"stp\", sym_name = \"%s\", sym_visibility = \"private\"} "
		        ": () -> ()\n",
		        fifo, fifo, side ? "reader" : "writer");
	}
	text_add(&text, "}) {stream.level = \"hardware\"} : () -> ()\n");
	return text.data;
}

/* The proof is about the depths that it found, not about those of an edited dump. */
static void expect_shallower_is_unproven(struct module *module)
{
	for (struct op *op = module_main(module)->region[0]->first; op; op = op->next) {
		if (op->code != OP_FIFO)
			continue;
		const struct type *proved = op->result[0]->type;
		op->result[0]->type =
		        type_channel(module, TYPE_FIFO, proved->element, proved->depth - 1);
		assert_null(fifo_proof(module));
		op->result[0]->type =
		        type_channel(module, TYPE_FIFO, proved->element, proved->depth + 1);
		assert_non_null(fifo_proof(module));
		op->result[0]->type = proved;
	}
}

/* What the design says it is shown by, or which invariant it breaks. */
static void expect_shown(
        int writes, int reads, int depth, enum fifo_strategy strategy, const char *wanted)
{
	struct design_case c = { 0 };
	c.arena = arena_new(&c.guard);
	c.diag.arena = c.arena;
	const char *volatile said = NULL;
	if (setjmp(c.guard.leave)) {
		said = c.guard.message;
	} else {
		struct pass_context context =
		        case_import(&c, two_processes(c.arena, writes, reads, depth));
		context.choices.value[CHOICE_FIFO] = 1 + (int64_t)strategy;
		if (!c.module || !ir_verify(c.module))
			fail_msg("%s", case_messages(&c));
		assert_true(size_fifos(&context, c.module));
		said = fifo_proof(c.module);
		expect_shallower_is_unproven(c.module);
	}
	assert_string_equal(said, wanted);
	arena_free(c.arena);
}

static void test_what_ends(void **state)
{
	(void)state;
	for (int s = 0; s < FIFO_STRATEGIES; s++)
		expect_shown(400, 400, 400, (enum fifo_strategy)s, "token model");
}

static void test_unequal_ends(void **state)
{
	(void)state;
	expect_shown(400, 401, 401, FIFO_STRATEGY_TRIM,
	        "writer writes 400 words into s_b, of which reader reads 401");
	expect_shown(400, 399, 401, FIFO_STRATEGY_SAFE,
	        "writer writes 400 words into s_b, of which reader reads 399");
}

/* The reader wants words of b, for which the writer has first to be rid of all of a. */
static void test_too_short(void **state)
{
	(void)state;
	expect_shown(400, 400, 399, FIFO_STRATEGY_TRIM,
	        "a launch deadlocks; writer waits for space in s_a, whose depth is 399 words");
	expect_shown(400, 400, 20, FIFO_STRATEGY_SAFE,
	        "a launch deadlocks; writer waits for space in s_a, whose depth is 20 words");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_ends),
		cmocka_unit_test(test_unequal_ends), cmocka_unit_test(test_too_short) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
