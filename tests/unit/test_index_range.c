/* How many bits of an index are there, by every number that goes in. */
#include "design_case.h"
#include "platform/index_range.h"

#define NUMBER(name, value)                                                                        \
	"%" name " = \"arith.constant\"() {value = " value " : index} : () -> index\n"
#define TWO(name, code, a, b)                                                                      \
	"%" name " = \"arith." code "\"(%" a ", %" b ") : (index, index) -> index\n"
#define APPLY(name, map, a)                                                                        \
	"%" name " = \"affine.apply\"(%" a ") {map = affine_map<(d0) -> (" map                     \
	")>} : (index) -> index\n"

#define ENDS(name)                                                                                 \
	"}) {arg_attrs = [{stream.name = \"a\"}, {stream.name = \"b\"}], function_type = "         \
	"(!stream.fifo<i8, 2>, !stream.fifo<i64, 2>) -> (), stream.die = 0 : i64, "                \
	"stream.process, "                                                                         \
	"stream.style = \"flp\", sym_name = \"" name                                               \
	"\", sym_visibility = \"private\"} : () -> ()\n"

/* Tiles of eight of a number of tokens, four at most, and what is made of it; of 64 bits nothing
 * is known. */
static const char text[] =
        "\"builtin.module\"() ({\n\"func.func\"() ({\n^bb0(%a: !stream.fifo<i8, 2>, %b: "
        "!stream.fifo<i64, 2>):\n%t = \"arith.constant\"() {value = true} : () -> i1\n" NUMBER(
                "c0", "0") NUMBER("c4", "4") NUMBER("c8", "8") NUMBER("minus",
                "-3") "%x = \"stream.pop\"(%t, %a) : (i1, !stream.fifo<i8, 2>) -> i8\n%n = "
                      "\"arith.index_cast\"(%x) : (i8) -> index\n" TWO(
                              "p", "maxsi", "n", "c0") APPLY("q", "d0 + 7", "p") TWO("d", "divsi",
                              "q", "c8") TWO("m", "minsi", "d", "c4") APPLY("r", "d0 * -8 + 40",
                              "m") TWO("low", "minsi", "n", "minus") TWO("half", "divsi", "n",
                              "c8") "%y = \"stream.pop\"(%t, %b) : (i1, !stream.fifo<i64, "
                                    "2>) -> i64\n%w = \"arith.index_cast\"(%y) : (i64) -> "
                                    "index\n" TWO("bound", "minsi", "w", "c4") TWO("wide", "maxsi",
                                            "w", "c0") "\"func.return\"() : () -> "
                                                       "()\n" ENDS("p") "\"func.func\"() "
                                                                        "({\n^bb0(%a: "
                                                                        "!stream.fifo<i8, "
                                                                        "2>, %b: "
                                                                        "!stream.fifo<i64, "
                                                                        "2>):\n%t = "
                                                                        "\"arith."
                                                                        "constant\"() "
                                                                        "{value = true} : "
                                                                        "() -> i1\n"
                                                                        "%x = "
                                                                        "\"arith."
                                                                        "constant\"() "
                                                                        "{value = 1 : i8} "
                                                                        ": () -> i8\n%y = "
                                                                        "\"arith."
                                                                        "constant\"() "
                                                                        "{value = 1 : i64} "
                                                                        ": () -> i64\n"
                                                                        "\"stream.push\"(%"
                                                                        "t, %x, %a) : (i1, "
                                                                        "i8, "
                                                                        "!stream.fifo<i8, "
                                                                        "2>) -> "
                                                                        "()\n\"stream."
                                                                        "push\"(%t, %y, "
                                                                        "%b) : (i1, i64, "
                                                                        "!stream.fifo<i64, "
                                                                        "2>) -> "
                                                                        "()\n\"func."
                                                                        "return\"() : () "
                                                                        "-> ()\n" ENDS("w") "\"fun"
                                                                                            "c."
                                                                                            "func"
                                                                                            "\"() "
                                                                                            "({\n%"
                                                                                            "a = "
                                                                                            "\"str"
                                                                                            "eam."
                                                                                            "fifo"
                                                                                            "\"() "
                                                                                            "{name"
                                                                                            " = "
                                                                                            "\"a\""
                                                                                            "} : "
                                                                                            "() "
                                                                                            "-> "
                                                                                            "!stre"
                                                                                            "am."
                                                                                            "fifo<"
                                                                                            "i8, "
                                                                                            "2>\n%"
                                                                                            "b = "
                                                                                            "\"str"
                                                                                            "eam."
                                                                                            "fifo"
                                                                                            "\"() "
                                                                                            "{name"
                                                                                            " = "
                                                                                            "\"b\""
                                                                                            "} : "
                                                                                            "() "
                                                                                            "-> "
                                                                                            "!stre"
                                                                                            "am."
                                                                                            "fifo<"
                                                                                            "i64, "
                                                                                            "2>\n"
                                                                                            "\"fun"
                                                                                            "c."
                                                                                            "call"
                                                                                            "\"(%"
                                                                                            "a, "
                                                                                            "%b) "
                                                                                            "{call"
                                                                                            "ee = "
                                                                                            "@w} "
                                                                                            ": "
                                                                                            "(!"
                                                                                            "strea"
                                                                                            "m."
                                                                                            "fifo<"
                                                                                            "i8, "
                                                                                            "2>, "
                                                                                            "!stre"
                                                                                            "am."
                                                                                            "fifo<"
                                                                                            "i64, "
                                                                                            "2>) "
                                                                                            "-> "
                                                                                            "()"
                                                                                            "\n\"f"
                                                                                            "unc."
                                                                                            "call"
                                                                                            "\"(%"
                                                                                            "a, "
                                                                                            "%b) "
                                                                                            "{call"
                                                                                            "ee = "
                                                                                            "@p} "
                                                                                            ": "
                                                                                            "(!"
                                                                                            "strea"
                                                                                            "m."
                                                                                            "fifo<"
                                                                                            "i8, "
                                                                                            "2>, "
                                                                                            "!stre"
                                                                                            "am."
                                                                                            "fifo<"
                                                                                            "i64, "
                                                                                            "2>) "
                                                                                            "-> "
                                                                                            "()"
                                                                                            "\n\"f"
                                                                                            "unc."
                                                                                            "retur"
                                                                                            "n\"()"
                                                                                            " : "
                                                                                            "() "
                                                                                            "-> "
                                                                                            "()\n"
                                                                                            "}) "
                                                                                            "{sym_"
                                                                                            "name "
                                                                                            "= "
                                                                                            "\"mai"
                                                                                            "n\", "
                                                                                            "funct"
                                                                                            "ion_"
                                                                                            "type "
                                                                                            "= () "
                                                                                            "-> "
                                                                                            "(), "
                                                                                            "strea"
                                                                                            "m."
                                                                                            "buffe"
                                                                                            "rs = "
                                                                                            "[], "
                                                                                            "strea"
                                                                                            "m."
                                                                                            "input"
                                                                                            "s = "
                                                                                            "[], "
                                                                                            "strea"
                                                                                            "m."
                                                                                            "outpu"
                                                                                            "ts = "
                                                                                            "[]} "
                                                                                            ": () "
                                                                                            "-> "
                                                                                            "()\n}"
                                                                                            ") "
                                                                                            "{stre"
                                                                                            "am."
                                                                                            "level"
                                                                                            " = "
                                                                                            "\"har"
                                                                                            "dware"
                                                                                            "\"} "
                                                                                            ": () "
                                                                                            "-> "
                                                                                            "()\n";

static int64_t count(int64_t n)
{
	return n;
}
static int64_t positive(int64_t n)
{
	return n > 0 ? n : 0;
}
static int64_t rounded(int64_t n)
{
	return positive(n) + 7;
}
static int64_t tiles(int64_t n)
{
	return rounded(n) / 8;
}
static int64_t few(int64_t n)
{
	return tiles(n) < 4 ? tiles(n) : 4;
}
static int64_t rest(int64_t n)
{
	return 40 - 8 * few(n);
}
static int64_t low(int64_t n)
{
	return n < -3 ? n : -3;
}

/* The fewest bits in which all of it fits, with a sign if one is needed. */
static int least_bits(int64_t (*of)(int64_t))
{
	int bits = 0;
	for (int64_t n = INT8_MIN; n <= INT8_MAX; n++) {
		int own = of(n) < 0;
		for (int64_t size = of(n) < 0 ? -(of(n) + 1) : of(n); size; size /= 2)
			own++;
		bits = own > bits ? own : bits;
	}
	bool sign = false, wide = false;
	for (int64_t n = INT8_MIN; n <= INT8_MAX; n++) {
		sign = sign || of(n) < 0;
		wide = wide || (of(n) >= 0 && of(n) >> (bits - 1));
	}
	return bits + (sign && wide);
}

static void bits_of_indices(void **state)
{
	int64_t (*const expected[])(int64_t) = { count, positive, rounded, tiles, few, rest, low };
	struct design_case c = { 0 };
	(void)state;
	CASE_BEGIN(&c);
	case_import(&c, text);
	const struct op *op = module_find(c.module, "p")->region[0]->first;
	while (op->code != OP_INDEX_CAST)
		op = op->next;
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++, op = op->next) {
		assert_int_equal(index_bits(op->result[0]), least_bits(expected[i]));
		assert_int_equal(index_is_below_zero(op->result[0]), expected[i](INT8_MIN) < 0);
	}
	/* a quotient that may be of a number below 0 is not followed */
	assert_int_equal(index_bits(op->result[0]), INDEX_BITS);
	for (op = op->next->next; op->code != OP_RETURN; op = op->next)
		assert_int_equal(index_bits(op->result[0]),
		        op->code == OP_MAXSI ? INDEX_BITS - 1 : INDEX_BITS);
	arena_free(c.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(bits_of_indices) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
