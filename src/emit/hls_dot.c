/* Emits stream.dot, sums of products, as a helper function for each pair of word types.  Bit widths
 * are explicit, so that every adder is as wide as its sums.  A product of at most 27 by 18 bits is
 * one DSP48E2, to which bind_op assigns it; ir/dot.h explains how two or four products share it. */
#include "emit/hls.h"
#include "ir/dot.h"

struct dot_types { /* C++ types of the words x and w, and of the result */
	const char *x, *w, *y;
};

struct dot_writer { /* a helper function while it is written */
	struct text *out;
	struct names *names;
	const struct dot *dot;
};

/* Writes the array of products; returns its name. */
static const char *add_products(const struct dot_writer *d)
{
	const char *terms = names_add(
	        d->names, "", text_format(d->out->arena, "t%lld", (long long)d->dot->lanes));
	text_add(d->out,
	        "\tap_int<%d> %s[%lld];\n#pragma HLS array_partition variable=%s type=complete\n",
	        d->dot->product, terms, (long long)d->dot->lanes, terms);
	text_add(d->out, "\tfor (int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n",
	        (long long)d->dot->lanes);
	if (d->dot->words > 1)
		text_add(d->out, "\t\tconst ap_int<%d> w = ap_int<%d>(w1[l]) * %lld + w0[l];\n",
		        d->dot->packed_w_bits, d->dot->packed_w_bits, 1LL << d->dot->offset);
	text_add(d->out,
	        "\t\tconst ap_int<%d> product = %s * x[l];\n#pragma HLS bind_op variable=product "
	        "op=mul impl=dsp\n\t\t%s[l] = product;\n\t}\n",
	        d->dot->packed_w_bits + d->dot->x_bits, d->dot->words > 1 ? "w" : "w0[l]", terms);
	return terms;
}

/* Writes a tree of ternary adders, each level as wide as its sums; returns the result's name. */
static const char *add_tree(const struct dot_writer *d, int64_t terms, int bits, const char *from)
{
	for (int64_t lanes = terms, each = DOT_TREE; lanes > 1;
	        lanes = (lanes + DOT_TREE - 1) / DOT_TREE, each *= DOT_TREE) {
		long long sums = lanes / DOT_TREE;
		long long left_over = lanes % DOT_TREE;
		long long last = lanes - left_over;
		int own = dot_tree_bits(bits, each, terms);
		const char *to = names_add(
		        d->names, "", text_format(d->out->arena, "t%lld", sums + (left_over > 0)));
		text_add(d->out,
		        "\tap_int<%d> %s[%lld];\n#pragma HLS array_partition variable=%s "
		        "type=complete\n",
		        own, to, sums + (left_over > 0), to);
		if (sums)
			text_add(d->out,
			        "\tfor (int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n\t\t%s[l] "
			        "= ap_int<%d>(%s[3 * l]) + %s[3 * l + 1] + %s[3 * l + 2];\n\t}\n",
			        sums, to, own, from, from, from);
		if (left_over == 2)
			text_add(d->out, "\t%s[%lld] = ap_int<%d>(%s[%lld]) + %s[%lld];\n", to,
			        sums, own, from, last, from, last + 1);
		if (left_over == 1)
			text_add(d->out, "\t%s[%lld] = %s[%lld];\n", to, sums, from, last);
		from = to;
	}
	return from;
}

/* Declares an array of `bits` wide numbers, one per lane; returns its name. */
static const char *add_array(const struct dot_writer *d, const char *name, int bits)
{
	const char *own = names_add(d->names, "", name);
	text_add(d->out,
	        "\tap_int<%d> %s[%lld];\n#pragma HLS array_partition variable=%s type=complete\n",
	        bits, own, (long long)d->dot->lanes, own);
	return own;
}

/* Writes the two packed w of every lane, once for all x; returns the array's name. */
static const char *add_joined(const struct dot_writer *d)
{
	const char *joined = add_array(d, "joined", d->dot->packed_w_bits);
	text_add(d->out,
	        "\tfor (int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n\t\t%s[l] = "
	        "ap_int<%d>(w1[l]) * %lld + w0[l];\n\t}\n",
	        (long long)d->dot->lanes, joined, d->dot->packed_w_bits, 1LL << d->dot->offset);
	return joined;
}

/* Writes the four fields of every lane's product (w0 + w1 * 2^offset) * (x0 + x1 * 2^x_offset), and
 * what each field borrows from the one above it. */
static void add_fields(const struct dot_writer *d, int pair, const char *joined,
        const char *field[4], const char *flag[3])
{
	static const char *const fields[4] = { "own0", "across0", "own1", "across1" };
	static const char *const flags[3] = { "low", "middle", "high" };
	int low = d->dot->x_offset;
	int at[4] = { 0, low, d->dot->offset, d->dot->offset + low };
	int first = 2 * pair;
	long long mask = (1LL << low) - 1;
	for (int f = 0; f < 4; f++)
		field[f] = add_array(d, fields[f], d->dot->product);
	for (int f = 0; f < 3; f++)
		flag[f] = add_array(d, flags[f], 2);
	text_add(d->out, "\tfor (int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n",
	        (long long)d->dot->lanes);
	text_add(d->out, "\t\tconst ap_int<%d> x = ap_int<%d>(x%d[l]) * %lld | (x%d[l] & %lld);\n",
	        d->dot->packed_x_bits, d->dot->packed_x_bits, first + 1, 1LL << low, first, mask);
	text_add(d->out,
	        "\t\tconst ap_int<%d> product = %s[l] * x;\n#pragma HLS bind_op variable=product "
	        "op=mul impl=dsp\n",
	        d->dot->packed_w_bits + d->dot->packed_x_bits, joined);
	text_add(d->out,
	        "\t\tconst bool sign = x%d[l] < 0, any = x%d[l] != 0, above = (product >> %d) & "
	        "1;\n",
	        first, first, d->dot->offset - 1);
	for (int f = 0; f < 4; f++)
		text_add(d->out,
		        f % 2 ? "\t\t%s[l] = product >> %d;\n"
		              : "\t\t%s[l] = (product >> %d) & %lld;\n",
		        field[f], at[f], mask);
	text_add(d->out,
	        "\t\t%s[l] = any && w0[l] != 0 && (w0[l] < 0) != sign;\n\t\t%s[l] = above;\n",
	        flag[0], flag[1]);
	text_add(d->out, "\t\t%s[l] = any && w1[l] != 0 ? (w1[l] < 0) != sign : above;\n\t}\n",
	        flag[2]);
}

static void add_pair(const struct dot_writer *d, int pair, const char *joined)
{
	const char *field[4];
	const char *flag[3];
	long long whole = 1LL << d->dot->x_offset;
	int y = 4 * pair;
	add_fields(d, pair, joined, field, flag);
	for (int f = 0; f < 4; f++)
		field[f] = add_tree(d, d->dot->lanes, d->dot->product, field[f]);
	for (int f = 0; f < 3; f++)
		flag[f] = add_tree(d, d->dot->lanes, 2, flag[f]);
	text_add(d->out,
	        "\ty[%d] = %s[0] - ap_int<%d>(%s[0]) * %lld;\n\ty[%d] = ap_int<%d>(%s[0]) + "
	        "%s[0];\n",
	        y, field[0], d->dot->sum, flag[0], whole, y + 2, d->dot->sum, field[1], flag[0]);
	text_add(d->out,
	        "\ty[%d] = ap_int<%d>(%s[0]) + %s[0] - ap_int<%d>(%s[0]) * %lld;\n\ty[%d] = "
	        "ap_int<%d>(%s[0]) + %s[0];\n",
	        y + 1, d->dot->sum, field[2], flag[1], d->dot->sum, flag[2], whole, y + 3,
	        d->dot->sum, field[3], flag[2]);
}

static void add_fours(const struct dot_writer *d, const char *result)
{
	const char *joined = add_joined(d);
	text_add(d->out, "\t%s y;\n", result);
	for (int pair = 0; pair < d->dot->pairs; pair++)
		add_pair(d, pair, joined);
	text_add(d->out, "\treturn y;\n}\n\n");
}

/* Two products of a multiplier, unpacked before they are summed: the lower bits are the first, and
 * the second lacks one where the first is negative. */
static void add_separate(const struct dot_writer *d, const char *result)
{
	const char *first = add_array(d, "own0", d->dot->product);
	const char *second = add_array(d, "own1", d->dot->product);
	const char *low = add_array(d, "low", 2);
	text_add(d->out, "\tfor (int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n",
	        (long long)d->dot->lanes);
	text_add(d->out, "\t\tconst ap_int<%d> w = ap_int<%d>(w1[l]) * %lld + w0[l];\n",
	        d->dot->packed_w_bits, d->dot->packed_w_bits, 1LL << d->dot->offset);
	text_add(d->out,
	        "\t\tconst ap_int<%d> product = w * x[l];\n#pragma HLS bind_op variable=product "
	        "op=mul impl=dsp\n",
	        d->dot->packed_w_bits + d->dot->x_bits);
	text_add(d->out,
	        "\t\t%s[l] = product;\n\t\t%s[l] = product >> %d;\n\t\t%s[l] = (product >> %d) & "
	        "1;\n\t}\n",
	        first, second, d->dot->offset, low, d->dot->offset - 1);
	first = add_tree(d, d->dot->lanes, d->dot->product, first);
	second = add_tree(d, d->dot->lanes, d->dot->product, second);
	low = add_tree(d, d->dot->lanes, 2, low);
	text_add(d->out,
	        "\t%s y;\n\ty[0] = %s[0];\n\ty[1] = ap_int<%d>(%s[0]) + %s[0];\n\treturn y;\n}\n\n",
	        result, first, d->dot->sum, second, low);
}

static void add_one_or_two(const struct dot_writer *d, const char *result)
{
	const char *sum = add_tree(d, d->dot->lanes, d->dot->product, add_products(d));
	if (d->dot->words == 1) {
		text_add(d->out, "\treturn %s[0];\n}\n\n", sum);
		return;
	}
	text_add(d->out, "\tconst ap_int<%d> high = (%s[0] + %lld) >> %d;\n\t%s y;\n",
	        d->dot->sum - d->dot->offset, sum, (1LL << (d->dot->offset - 1)) - 1,
	        d->dot->offset, result);
	text_add(d->out,
	        "\ty[0] = %s[0] - ap_int<%d>(high) * %lld;\n\ty[1] = high;\n\treturn y;\n}\n\n",
	        sum, d->dot->sum, 1LL << d->dot->offset);
}

/* The helper for these word types, written before its first use. */
static const char *dot_helper(
        struct emitter *e, const struct op *op, const struct dot *dot, struct dot_types types)
{
	int x_count = dot_x_count(dot);
	char *name = text_format(e->arena, "dot%d_%s_%s", dot->words * x_count, types.x, types.w);
	if (map_get(&e->made, name))
		return name;
	map_set(&e->made, name, (void *)(uintptr_t)op);
	e->narrow = true;
	struct names names = names_new(e->arena);
	struct text *out = &e->helpers;
	const char *const own[] = { "x", "w0", "w1", "w", "y", "product", "sign", "any", "above" };
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		names_add(&names, "", own[i]);
	text_add(out, "static %s %s(", types.y, name);
	for (int j = 0; j < x_count; j++) {
		const char *common = x_count > 1 ? text_format(out->arena, "x%d", j) : "x";
		names_add(&names, "", common);
		text_add(out, "const %s &%s, ", types.x, common);
	}
	text_add(out, "const %s &w0%s)\n{\n#pragma HLS inline\n", types.w,
	        dot->words > 1 ? text_format(e->arena, ", const %s &w1", types.w) : "");
	struct dot_writer writer = { out, &names, dot };
	if (dot->x_per_dsp > 1)
		add_fours(&writer, types.y);
	else if (dot->unpacks_products)
		add_separate(&writer, types.y);
	else
		add_one_or_two(&writer, types.y);
	return name;
}

static const char *word_of(struct emitter *e, int64_t lanes, int bits)
{
	const struct type *scalar = type_integer(e->module, bits);
	return hls_type(
	        e, lanes > 1 ? type_shaped(e->module, TYPE_VECTOR, 1, &lanes, scalar) : scalar);
}

/* The helper for w with several columns: takes two columns at a time as two words. */
static const char *columns_helper(struct emitter *e, struct op *op, const struct dot *dot)
{
	const char *x = hls_type(e, op->operand[0]->type);
	const char *w = hls_type(e, op->operand[1]->type);
	const char *y = hls_type(e, op->result[0]->type);
	char *name = text_format(e->arena, "across%lld_%s_%s", (long long)dot->columns, x, w);
	if (map_get(&e->made, name))
		return name;
	const char *column = word_of(e, dot->lanes, dot->w_bits);
	const char *pair = word_of(e, dot->words, type_scalar(op->result[0]->type)->width);
	const char *sum = dot_helper(e, op, dot, (struct dot_types){ x, column, pair });
	struct text *out = &e->helpers;
	map_set(&e->made, name, op);
	text_add(out,
	        "static %s %s(const %s &x, const %s &w)\n{\n#pragma HLS inline\n\t%s y;\n\tfor "
	        "(int c = 0; c < %lld; c += %d) {\n#pragma HLS unroll\n\t\t%s w0%s;\n",
	        y, name, x, w, y, (long long)dot->columns, dot->words, column,
	        dot->words > 1 ? ", w1" : "");
	text_add(out,
	        "\t\tfor (int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n\t\t\tw0[l] = w[l * "
	        "%lld + c];\n",
	        (long long)dot->lanes, (long long)dot->columns);
	if (dot->words > 1)
		text_add(out,
		        "\t\t\tw1[l] = w[l * %lld + c + 1];\n\t\t}\n\t\tconst %s sums = %s(x, w0, "
		        "w1);\n\t\ty[c] = sums[0];\n\t\ty[c + 1] = sums[1];\n",
		        (long long)dot->columns, pair, sum);
	else
		text_add(out, "\t\t}\n\t\ty[c] = %s(x, w0);\n", sum);
	text_add(out, "\t}\n\treturn y;\n}\n\n");
	return name;
}

void hls_dot(struct emitter *e, struct op *op)
{
	struct dot dot;
	if (!dot_of(op, &dot)) {
		hls_fail(e, op, "has operands that do not fit together");
		return;
	}
	struct text call = text_new(e->arena);
	for (int i = 0; i < op->operands; i++)
		text_add(&call, "%s%s", i ? ", " : "", hls_word(e, op->operand[i]));
	const char *name = hls_value_name(e, op);
	const struct dot_types types = { .x = hls_type(e, op->operand[0]->type),
		.w = hls_type(e, op->operand[dot_x_count(&dot)]->type),
		.y = hls_type(e, op->result[0]->type) };
	const char *helper =
	        dot.columns ? columns_helper(e, op, &dot) : dot_helper(e, op, &dot, types);
	hls_line(e, "const %s %s = %s(%s);", types.y, name, helper, call.data);
	hls_bind(e, op->result[0], (struct spelling){ .text = name, .atomic = true });
}
