/* Random affine functions of C: loop nests with boxes and triangles, steps other than 1, conditions
 * on counters and on data, reductions, stencils, updates in place, local arrays and scalars. Every
 * subscript is inside its array, and nothing is read before it is written. */
#ifndef RANDOM_C_H
#define RANDOM_C_H
#include "base/text.h"
#include <stdint.h>

enum { RANDOM_ARRAYS = 5, RANDOM_EXTENT = 7, RANDOM_LOOPS = 3 };

struct random_c {
	struct text *out;
	uint64_t state;
	bool whole;                                /* integers */
	int rank[RANDOM_ARRAYS];                   /* every extent is RANDOM_EXTENT */
	int low[RANDOM_LOOPS], high[RANDOM_LOOPS]; /* range of each counter */
	int loops, scalars; /* around the statement; local scalars with a value */
	int tabs;
};

static inline int random_c_below(struct random_c *c, int below)
{
	c->state = c->state * 6364136223846793005u + 1442695040888963407u;
	return (int)((c->state >> 33) % (uint64_t)below);
}

static inline void random_c_indent(struct random_c *c)
{
	for (int i = 0; i < c->tabs; i++)
		text_add(c->out, "\t");
}

/* A subscript inside the array: a counter with a shift, two counters, or a number. */
static inline void random_c_subscript(struct random_c *c, bool simple)
{
	int loop = c->loops ? random_c_below(c, c->loops) : -1;
	int kind = random_c_below(c, simple ? 4 : 8);
	if (loop < 0 || kind == 3) {
		text_add(c->out, "[%d]", random_c_below(c, RANDOM_EXTENT));
		return;
	}
	int shift = random_c_below(c, 3) - 1;
	bool fits = c->low[loop] + shift >= 0 && c->high[loop] + shift < RANDOM_EXTENT;
	if (kind == 4)
		text_add(c->out, "[%d - i%d]", RANDOM_EXTENT - 1, loop);
	else if (shift && fits && kind > 0)
		text_add(c->out, "[i%d %c 1]", loop, shift < 0 ? '-' : '+');
	else
		text_add(c->out, "[i%d]", loop);
}

static inline void random_c_element(struct random_c *c, int array, bool simple)
{
	text_add(c->out, "a%d", array);
	for (int d = 0; d < c->rank[array]; d++)
		random_c_subscript(c, simple);
}

static inline void random_c_leaf(struct random_c *c)
{
	int kind = random_c_below(c, 8);
	if (kind == 0)
		text_add(c->out, c->whole ? "%d" : "%d.5f", random_c_below(c, 5));
	else if (kind == 1)
		text_add(c->out, "s");
	else if (kind == 2 && c->loops)
		text_add(c->out, "i%d", random_c_below(c, c->loops));
	else if (kind == 3 && c->scalars)
		text_add(c->out, "t%d", random_c_below(c, c->scalars));
	else
		random_c_element(c, random_c_below(c, RANDOM_ARRAYS), false);
}

static inline void random_c_value(struct random_c *c, int depth)
{
	static const char *const operators[] = { "+", "-", "*", "+", "*" };
	int kind = random_c_below(c, 7);
	if (!depth || kind == 0) {
		random_c_leaf(c);
	} else if (kind == 1) {
		text_add(c->out, "(");
		random_c_leaf(c);
		text_add(c->out, " < ");
		random_c_leaf(c);
		text_add(c->out, " ? ");
		random_c_value(c, depth - 1);
		text_add(c->out, " : ");
		random_c_value(c, depth - 1);
		text_add(c->out, ")");
	} else {
		text_add(c->out, "(");
		random_c_value(c, depth - 1);
		text_add(c->out, " %s ", operators[random_c_below(c, 5)]);
		random_c_value(c, depth - 1);
		text_add(c->out, ")");
	}
}

static inline void random_c_statement(struct random_c *c)
{
	static const char *const assigns[] = { "=", "=", "+=", "-=", "*=", "+=" };
	random_c_indent(c);
	int array = random_c_below(c, RANDOM_ARRAYS);
	if (c->scalars && random_c_below(c, 5) == 0)
		text_add(c->out, "t%d", random_c_below(c, c->scalars));
	else
		random_c_element(c, array, true);
	text_add(c->out, " %s ", assigns[random_c_below(c, 6)]);
	random_c_value(c, 2);
	text_add(c->out, ";\n");
}

static inline void random_c_items(struct random_c *c, int count);

static inline void random_c_condition(struct random_c *c)
{
	random_c_indent(c);
	if (c->loops && random_c_below(c, 3)) {
		text_add(c->out, "if (i%d %s i%d + %d) {\n", random_c_below(c, c->loops),
		        random_c_below(c, 2) ? "<" : ">=", random_c_below(c, c->loops),
		        random_c_below(c, 3));
	} else {
		text_add(c->out, "if (");
		random_c_leaf(c);
		text_add(c->out, " > ");
		random_c_leaf(c);
		text_add(c->out, ") {\n");
	}
	c->tabs++;
	random_c_items(c, 1);
	c->tabs--;
	random_c_indent(c);
	text_add(c->out, "}");
	if (random_c_below(c, 2)) {
		text_add(c->out, " else {\n");
		c->tabs++;
		random_c_items(c, 1);
		c->tabs--;
		random_c_indent(c);
		text_add(c->out, "}");
	}
	text_add(c->out, "\n");
}

static inline void random_c_loop(struct random_c *c)
{
	int loop = c->loops;
	int outer = loop ? random_c_below(c, loop) : 0;
	int kind = random_c_below(c, loop ? 7 : 4);
	c->low[loop] = random_c_below(c, 2);
	c->high[loop] = RANDOM_EXTENT - 1 - random_c_below(c, 2);
	random_c_indent(c);
	if (kind == 0)
		text_add(c->out, "for (int i%d = %d; i%d <= %d; i%d += 2) {\n", loop, c->low[loop],
		        loop, c->high[loop], loop);
	else if (kind == 1)
		text_add(c->out, "for (int i%d = %d; i%d >= %d; i%d--) {\n", loop, c->high[loop],
		        loop, c->low[loop], loop);
	else if (kind == 4 || kind == 5)
		text_add(c->out, "for (int i%d = %d; i%d < i%d; i%d++) {\n", loop, c->low[loop],
		        loop, outer, loop);
	else if (kind == 6)
		text_add(c->out, "for (int i%d = i%d; i%d <= %d; i%d++) {\n", loop, outer, loop,
		        c->high[loop], loop);
	else
		text_add(c->out, "for (int i%d = %d; i%d <= %d; i%d++) {\n", loop, c->low[loop],
		        loop, c->high[loop], loop);
	if (kind == 4 || kind == 5)
		c->high[loop] = c->high[outer];
	if (kind == 6)
		c->low[loop] = c->low[outer];
	c->loops++;
	c->tabs++;
	random_c_items(c, 1 + random_c_below(c, 2));
	c->tabs--;
	c->loops--;
	random_c_indent(c);
	text_add(c->out, "}\n");
}

static inline void random_c_items(struct random_c *c, int count)
{
	for (int i = 0; i < count; i++) {
		int kind = random_c_below(c, 8);
		if (c->loops < RANDOM_LOOPS && kind < (c->loops ? 3 : 7))
			random_c_loop(c);
		else if (kind == 7)
			random_c_condition(c);
		else
			random_c_statement(c);
	}
}

/* A function that updates a row in place, each element by an earlier one. */
static inline void random_c_helper(struct text *out, const char *type)
{
	text_add(out,
	        "static void g(%s x[%d], int n, %s f)\n{\n"
	        "\tfor (int i = n; i < %d; i++)\n\t\tx[i] = x[i - n] * f + i;\n}\n",
	        type, RANDOM_EXTENT, type, RANDOM_EXTENT);
}

/* The function f(s, a0, …), with a few local scalars and one local array. */
static inline void random_c(uint64_t seed, struct text *out)
{
	struct random_c c = { .out = out, .state = seed * 977 + 12345 };
	for (int i = 0; i < 5; i++)
		random_c_below(&c, 2);
	c.whole = random_c_below(&c, 4) == 0;
	const char *type = seed % 3 ? "float" : "double";
	bool calls = seed % 4 == 1;
	type = c.whole ? "int" : type;
	if (calls)
		random_c_helper(out, type);
	text_add(out, "void f(%s s", type);
	for (int i = 0; i < RANDOM_ARRAYS - 1; i++) {
		c.rank[i] = 1 + random_c_below(&c, 2);
		text_add(out, ", %s a%d[%d]", type, i, RANDOM_EXTENT);
		if (c.rank[i] == 2)
			text_add(out, "[%d]", RANDOM_EXTENT);
	}
	c.rank[RANDOM_ARRAYS - 1] = 1;
	text_add(out, ")\n{\n\t%s a%d[%d];\n", type, RANDOM_ARRAYS - 1, RANDOM_EXTENT);
	text_add(out, "\tfor (int i = 0; i < %d; i++)\n\t\ta%d[i] = a0%s;\n", RANDOM_EXTENT,
	        RANDOM_ARRAYS - 1, c.rank[0] == 1 ? "[i]" : "[i][0]");
	c.tabs = 1;
	for (int i = 0; i < 2; i++) {
		text_add(out, "\t%s t%d = ", type, i);
		random_c_value(&c, 1);
		text_add(out, ";\n");
		c.scalars++;
	}
	random_c_items(&c, 1 + random_c_below(&c, 3));
	random_c_statement(&c);
	if (calls)
		text_add(out, "\tg(a1%s, %d, t0);\n", c.rank[1] == 1 ? "" : "[2]",
		        1 + (int)(seed / 4 % 3));
	text_add(out, "\ta0%s += t0;\n}\n", c.rank[0] == 1 ? "[0]" : "[0][0]");
}
#endif
