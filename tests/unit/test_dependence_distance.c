/* Dependence distances that arrays claim by stream.distance: the evaluator refuses a module whose
 * results depend on a nearer read.  Every test that evaluates a hardware-level design checks its
 * claims this way. */
#include "design_case.h"
#include "ir/verify.h"

/* y: four words that a process makes of the eight of x: `body` computes %new and %place of
 * iteration %i from %x, array %acc has `distance`, and another loop sends what it holds. */
#define MODULE(distance, body)                                                                     \
	"module attributes {stream.level = \"hardware\"} {\n"                                      \
	"  func.func @main(%in: memref<?xf32> {stream.port = \"m_x\", stream.buffer = \"x\", "     \
	"stream.channel = 0 : i64, stream.direction = \"read\"},\n"                                \
	"                  %out: memref<?xf32> {stream.port = \"m_y\", stream.buffer = \"y\", "    \
	"stream.channel = 1 : i64, stream.direction = \"write\"})\n"                               \
	"      attributes {stream.inputs = [{name = \"x\", role = \"input\", type = "              \
	"tensor<8xf32>}], stream.outputs = [{name = \"y\", role = \"output\", type = "             \
	"tensor<4xf32>}], stream.buffers = [\n"                                                    \
	"        {name = \"x\", words = 8 : i64, word = f32, segments = [{name = \"x\", role = "   \
	"\"input\", offset = 0 : i64, base = 0 : i64, trips = array<i64: 8>, strides = "           \
	"array<i64: 1>, conditions = []}]},\n"                                                     \
	"        {name = \"y\", words = 4 : i64, word = f32, segments = [{name = \"y\", role = "   \
	"\"output\", offset = 0 : i64, base = 0 : i64, trips = array<i64: 4>, strides = "          \
	"array<i64: 1>, conditions = []}]}]} {\n"                                                  \
	"    func.call @sums(%in, %out) : (memref<?xf32>, memref<?xf32>) -> ()\n"                  \
	"    return\n"                                                                             \
	"  }\n"                                                                                    \
	"  func.func private @sums(%in: memref<?xf32>, %out: memref<?xf32>) attributes "           \
	"{stream.process, stream.style = \"stp\", stream.die = 0 : i64} {\n"                       \
	"    %acc = memref.alloca() {stream.name = \"acc\", stream.distance = " distance           \
	" : i64} : memref<4xf32>\n"                                                                \
	"    %c0 = arith.constant 0 : index\n"                                                     \
	"    %c1 = arith.constant 1 : index\n"                                                     \
	"    %c3 = arith.constant 3 : index\n"                                                     \
	"    %c4 = arith.constant 4 : index\n"                                                     \
	"    %c8 = arith.constant 8 : index\n"                                                     \
	"    %zero = arith.constant 0.0 : f32\n"                                                   \
	"    scf.for %i = %c0 to %c8 step %c1 {\n"                                                 \
	"      %x = memref.load %in[%i] : memref<?xf32>\n"                                         \
	"      %early = arith.cmpi slt, %i, %c4 : index\n"                                         \
	"      %never = arith.cmpi eq, %i, %c8 : index\n"                                          \
	"      %turn = arith.remsi %i, %c4 : index\n" body                                         \
	"      memref.store %new, %acc[%place] : memref<4xf32>\n"                                  \
	"    } {stream.pipeline = 1 : i64}\n"                                                      \
	"    scf.for %j = %c0 to %c4 step %c1 {\n"                                                 \
	"      %sum = memref.load %acc[%j] : memref<4xf32>\n"                                      \
	"      memref.store %sum, %out[%j] : memref<?xf32>\n"                                      \
	"    } {stream.pipeline = 1 : i64}\n"                                                      \
	"    return\n"                                                                             \
	"  }\n"                                                                                    \
	"}\n"

/* Four interleaved sums. */
#define SUMS                                                                                       \
	"      %place = arith.remsi %turn, %c4 : index\n"                                          \
	"      %old = memref.load %acc[%place] : memref<4xf32>\n"                                  \
	"      %before = arith.select %early, %zero, %old : f32\n"                                 \
	"      %new = arith.addf %before, %x : f32\n"

/* The same, and the sum of the iteration before, which is used where `when` holds. */
#define SUMS_AND(when)                                                                             \
	"      %place = arith.remsi %turn, %c4 : index\n"                                          \
	"      %three = arith.addi %turn, %c3 : index\n"                                           \
	"      %last = arith.remsi %three, %c4 : index\n"                                          \
	"      %old = memref.load %acc[%place] : memref<4xf32>\n"                                  \
	"      %near = memref.load %acc[%last] : memref<4xf32>\n"                                  \
	"      %before = arith.select %early, %zero, %old : f32\n"                                 \
	"      %other = arith.select " when ", %near, %before : f32\n"                             \
	"      %new = arith.addf %other, %x : f32\n"

/* Four words are stored; in every iteration after them the first is sent and stored anew. */
#define AGAIN                                                                                      \
	"      %place = arith.select %early, %i, %c0 : index\n"                                    \
	"      %old = memref.load %acc[%place] : memref<4xf32>\n"                                  \
	"      %new = arith.select %early, %x, %old : f32\n"

static const struct {
	const char *module, *wrong; /* wrong: NULL where the claim holds */
} cases[] = {
	{ MODULE("4", SUMS), NULL },
	{ MODULE("5", SUMS),
	        "stream.distance of acc in process sums is 5, and results depend on what is read "
	        "sooner than so many iterations after it was written, the soonest after 4" },
	{ MODULE("4", SUMS_AND("%never")), NULL },
	{ MODULE("2", SUMS_AND("%early")),
	        "stream.distance of acc in process sums is 2, and results depend on what is read "
	        "sooner than so many iterations after it was written, the soonest after 1" },
	{ MODULE("1", SUMS_AND("%early")), NULL },
	{ MODULE("4", AGAIN), NULL },
	{ MODULE("5", AGAIN),
	        "stream.distance of acc in process sums is 5, and results depend on what is read "
	        "sooner than so many iterations after it was written, the soonest after 4" },
};

static void evaluate(size_t number)
{
	struct design_case c = { 0 };
	CASE_BEGIN(&c);
	case_import(&c, cases[number].module);
	assert_true(ir_verify(c.module));
	c.input[0] = (struct tensor){
		attr_item(attr_get(module_main(c.module), KEY_STREAM_INPUTS)->items[0].value,
		        KEY_TYPE)
		        ->type,
		(float[]){ 1, 2, 3, 4, 5, 6, 7, 8 }
	};
	bool holds = eval_module(c.module, c.arena, 1, c.input, c.result);
	if (holds != !cases[number].wrong ||
	        (!holds && !strstr(case_messages(&c), cases[number].wrong)))
		fail_msg("case %zu: %s", number, holds ? "no message" : case_messages(&c));
	arena_free(c.arena);
}

static void test_claims(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		evaluate(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_claims) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
