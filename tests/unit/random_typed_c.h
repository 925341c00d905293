/* Random functions of C over many types: arrays of one to three dims and scalars of integers,
 * signed and unsigned, of 8 to 64 bits, and of half, float and double; casts, mixed operands,
 * divisions, shifts, choices, subscripts that are data, compound assignments, locals of loops,
 * functions that return an expression. Real numbers become integers only where C says which. */
#ifndef RANDOM_TYPED_C_H
#define RANDOM_TYPED_C_H
#include "base/text.h"
#include <stdint.h>

enum { TYPED_ARRAYS = 6, TYPED_EXTENT = 5, TYPED_LOOPS = 3, TYPED_SCALARS = 6, TYPED_TYPES = 11 };

static const char *const typed_c_names[TYPED_TYPES] = { "signed char", "unsigned char", "short",
	"unsigned short", "int", "unsigned", "long long", "unsigned long long", "float", "double",
	"_Float16" };

struct typed_c {
	struct text *out;
	uint64_t state;
	int type[TYPED_ARRAYS], rank[TYPED_ARRAYS];
	int scalar[TYPED_SCALARS]; /* types of those in reach */
	int scalars, loops, tabs;
	int names; /* subscripts around that are data */
};

static inline int typed_c_below(struct typed_c *c, int below)
{
	c->state = c->state * 6364136223846793005u + 1442695040888963407u;
	return (int)((c->state >> 33) % (uint64_t)below);
}

static inline bool typed_c_is_real(int type)
{
	return type >= 8;
}

static inline void typed_c_indent(struct typed_c *c)
{
	for (int i = 0; i < c->tabs; i++)
		text_add(c->out, "\t");
}

static inline void typed_c_leaf(struct typed_c *c, bool real);

static inline void typed_c_element(struct typed_c *c, int array)
{
	text_add(c->out, "a%d", array);
	for (int d = 0; d < c->rank[array]; d++) {
		int kind = typed_c_below(c, 20);
		int loop = c->loops ? typed_c_below(c, c->loops) : 0;
		if (kind == 0 && c->names < 3) {
			c->names++;
			text_add(c->out, "[");
			typed_c_leaf(c, false);
			text_add(c->out, " & 3]");
			c->names--;
		} else if (kind < 3 && c->loops) {
			text_add(c->out, kind == 1 ? "[i%d / 2]" : "[i%d * i%d %% 5]", loop, loop);
		} else if (!c->loops || kind < 6)
			text_add(c->out, "[%d]", typed_c_below(c, TYPED_EXTENT));
		else if (kind < 9)
			text_add(c->out, "[%d - i%d]", TYPED_EXTENT - 1, loop);
		else
			text_add(c->out, "[i%d]", loop);
	}
}

/* A variable of that kind, or a number. */
static inline void typed_c_leaf(struct typed_c *c, bool real)
{
	static const char *const whole[] = { "3", "200u", "-7", "5LL", "1", "70000", "'c'",
		"0xffu" };
	static const char *const parts[] = { "0.5f", "1.25", "-3.0f", "0.1f", "2." };
	int kind = typed_c_below(c, 6);
	int scalar = c->scalars ? typed_c_below(c, c->scalars) : -1;
	int array = typed_c_below(c, TYPED_ARRAYS);
	if (kind == 0)
		text_add(c->out, "%s",
		        real ? parts[typed_c_below(c, 5)] : whole[typed_c_below(c, 8)]);
	else if (kind == 1 && c->loops)
		text_add(c->out, real ? "(float)i%d" : "i%d", typed_c_below(c, c->loops));
	else if (kind < 4 && scalar >= 0 && typed_c_is_real(c->scalar[scalar]) == real)
		text_add(c->out, "t%d", scalar);
	else if (typed_c_is_real(c->type[array]) == real)
		typed_c_element(c, array);
	else
		text_add(c->out, real ? "0.25f" : "11");
}

static inline void typed_c_value(struct typed_c *c, bool real, int depth);

static inline void typed_c_test(struct typed_c *c, int depth)
{
	static const char *const compares[] = { "<", "<=", ">", ">=", "==", "!=" };
	bool real = typed_c_below(c, 3) == 0;
	text_add(c->out, "(");
	typed_c_value(c, real, depth - 1);
	text_add(c->out, " %s ", compares[typed_c_below(c, 6)]);
	typed_c_value(c, real, depth - 1);
	text_add(c->out, ")");
}

static inline void typed_c_pair(struct typed_c *c, bool real, const char *with, int depth)
{
	text_add(c->out, "(");
	typed_c_value(c, real, depth - 1);
	text_add(c->out, " %s ", with);
	typed_c_value(c, real, depth - 1);
	text_add(c->out, ")");
}

static inline void typed_c_choice(struct typed_c *c, bool real, int depth)
{
	text_add(c->out, "(");
	typed_c_test(c, depth);
	text_add(c->out, " ? ");
	typed_c_value(c, real, depth - 1);
	text_add(c->out, " : ");
	typed_c_value(c, real, depth - 1);
	text_add(c->out, ")");
}

/* (A op (B & mask)), from 1 on for divisors. */
static inline void typed_c_bounded(
        struct typed_c *c, const char *with, const char *least, int mask, int depth)
{
	text_add(c->out, "(");
	typed_c_value(c, false, depth - 1);
	text_add(c->out, " %s (%s(", with, least);
	typed_c_value(c, false, depth - 1);
	text_add(c->out, " & %d)))", mask);
}

static inline void typed_c_whole(struct typed_c *c, int depth)
{
	static const char *const operators[] = { "+", "-", "*", "&", "|", "^", "+", "*" };
	static const char *const unary[] = { "-", "~", "!" };
	int kind = typed_c_below(c, 12);
	if (kind < 4) {
		typed_c_pair(c, false, operators[typed_c_below(c, 8)], depth);
	} else if (kind == 4) {
		typed_c_bounded(c, typed_c_below(c, 2) ? "/" : "%", "1 + ", 7, depth);
	} else if (kind == 5) {
		typed_c_bounded(c, typed_c_below(c, 2) ? "<<" : ">>", "", 7, depth);
	} else if (kind == 6) {
		typed_c_test(c, depth);
	} else if (kind == 7) {
		text_add(c->out, "((%s)", typed_c_names[typed_c_below(c, 8)]);
		typed_c_value(c, false, depth - 1);
		text_add(c->out, ")");
	} else if (kind == 8) {
		typed_c_choice(c, false, depth);
	} else if (kind == 9) {
		text_add(c->out, "whole(");
		typed_c_value(c, true, depth - 1);
		text_add(c->out, ")");
	} else if (kind == 10) {
		text_add(c->out, "(%s", unary[typed_c_below(c, 3)]);
		text_add(c->out, "(");
		typed_c_value(c, false, depth - 1);
		text_add(c->out, "))");
	} else {
		text_add(c->out, "(");
		typed_c_test(c, depth);
		text_add(c->out, typed_c_below(c, 2) ? " && " : " || ");
		typed_c_value(c, false, depth - 1);
		text_add(c->out, ")");
	}
}

static inline void typed_c_real(struct typed_c *c, int depth)
{
	static const char *const operators[] = { "+", "-", "*", "/", "+" };
	static const char *const calls[] = { "fabsf(", "sqrt(", "mixed(3, ", "-(", "floorf(" };
	int kind = typed_c_below(c, 8);
	if (kind < 4) {
		typed_c_pair(c, true, operators[typed_c_below(c, 5)], depth);
	} else if (kind == 4) {
		text_add(c->out, "((%s)", typed_c_names[8 + typed_c_below(c, 3)]);
		typed_c_value(c, typed_c_below(c, 2), depth - 1);
		text_add(c->out, ")");
	} else if (kind == 5) {
		typed_c_choice(c, true, depth);
	} else if (kind == 6) {
		text_add(c->out, "%s", calls[typed_c_below(c, 5)]);
		typed_c_value(c, true, depth - 1);
		text_add(c->out, ")");
	} else {
		text_add(c->out, "(");
		typed_c_value(c, true, depth - 1);
		text_add(c->out, " + ");
		typed_c_value(c, false, depth - 1);
		text_add(c->out, ")");
	}
}

static inline void typed_c_value(struct typed_c *c, bool real, int depth)
{
	if (depth < 1)
		typed_c_leaf(c, real);
	else if (real)
		typed_c_real(c, depth);
	else
		typed_c_whole(c, depth);
}

static inline void typed_c_statement(struct typed_c *c)
{
	static const char *const whole[] = { "=", "=", "+=", "-=", "*=", "|=", "^=", "&=" };
	static const char *const real[] = { "=", "=", "+=", "-=", "*=", "/=" };
	int array = typed_c_below(c, TYPED_ARRAYS);
	int scalar = c->scalars && typed_c_below(c, 4) == 0 ? typed_c_below(c, c->scalars) : -1;
	int type = scalar < 0 ? c->type[array] : c->scalar[scalar];
	typed_c_indent(c);
	if (scalar < 0)
		typed_c_element(c, array);
	else
		text_add(c->out, "t%d", scalar);
	if (!typed_c_is_real(type) && typed_c_below(c, 6) == 0) {
		text_add(c->out, typed_c_below(c, 2) ? " >>= %d;\n" : " <<= %d;\n",
		        typed_c_below(c, 4));
		return;
	}
	text_add(c->out, " %s ",
	        typed_c_is_real(type) ? real[typed_c_below(c, 6)] : whole[typed_c_below(c, 8)]);
	typed_c_value(c, typed_c_is_real(type), 3);
	text_add(c->out, ";\n");
}

static inline void typed_c_items(struct typed_c *c, int count);

static inline void typed_c_block(struct typed_c *c, int count)
{
	int scalars = c->scalars;
	c->tabs++;
	if (c->scalars < TYPED_SCALARS && typed_c_below(c, 3) == 0) {
		int type = typed_c_below(c, TYPED_TYPES);
		typed_c_indent(c);
		text_add(c->out, "%s t%d = ", typed_c_names[type], c->scalars);
		typed_c_value(c, typed_c_is_real(type), 2);
		text_add(c->out, ";\n");
		c->scalar[c->scalars++] = type;
	}
	typed_c_items(c, count);
	c->tabs--;
	c->scalars = scalars;
	typed_c_indent(c);
	text_add(c->out, "}\n");
}

static inline void typed_c_items(struct typed_c *c, int count)
{
	static const char *const counters[] = { "int", "unsigned", "short", "unsigned char",
		"long" };
	for (int i = 0; i < count; i++) {
		int kind = typed_c_below(c, 8);
		if (c->loops < TYPED_LOOPS && kind < (c->loops ? 3 : 7)) {
			typed_c_indent(c);
			text_add(c->out, "for (%s i%d = 0; i%d < %d; i%d++) {\n",
			        counters[typed_c_below(c, 5)], c->loops, c->loops, TYPED_EXTENT,
			        c->loops);
			c->loops++;
			typed_c_block(c, 1 + typed_c_below(c, 2));
			c->loops--;
		} else if (kind == 7) {
			typed_c_indent(c);
			text_add(c->out, "if ");
			typed_c_test(c, 2);
			text_add(c->out, " {\n");
			typed_c_block(c, 1);
		} else {
			typed_c_statement(c);
		}
	}
}

/* The function f(a0, …). */
static inline void random_typed_c(uint64_t seed, struct text *out)
{
	struct typed_c c = { .out = out, .state = seed * 7919 + 4242 };
	for (int i = 0; i < 5; i++)
		typed_c_below(&c, 2);
	text_add(out,
	        "#include <math.h>\n"
	        "static int whole(double x)\n{\n"
	        "\treturn x > -1000 && x < 1000 ? (int)x : 7;\n}\n"
	        "static float mixed(unsigned char n, float x)\n{\n"
	        "\treturn n * x + (n - 5);\n}\n");
	for (int i = 0; i < TYPED_ARRAYS; i++) {
		c.type[i] = typed_c_below(&c, TYPED_TYPES);
		c.rank[i] = 1 + typed_c_below(&c, 3);
		text_add(out, "%s%s a%d", i ? ", " : "void f(", typed_c_names[c.type[i]], i);
		for (int d = 0; d < c.rank[i]; d++)
			text_add(out, "[%d]", TYPED_EXTENT);
	}
	text_add(out, ")\n{\n");
	c.tabs = 1;
	typed_c_items(&c, 1 + typed_c_below(&c, 3));
	typed_c_statement(&c);
	text_add(out, "}\n");
}
#endif
