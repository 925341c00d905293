/* Emits one process as a static function of counted loops, an emit function for each kind of op. */
#include "emit/hls.h"
#include "predict/port_run.h"
#include "predict/sequential_time.h"
#include "st_math.h"
#include <stdlib.h>
#include <string.h>

struct spelling *hls_spelling(struct emitter *e, const struct value *value)
{
	INVARIANT(e->module->guard, value->data, "a value is used before it is emitted");
	return value->data;
}

void hls_bind(struct emitter *e, struct value *value, struct spelling spelling)
{
	value->data = arena_copy(e->arena, &spelling, sizeof spelling);
}

static void bind_name(struct emitter *e, struct value *value, const char *name)
{
	hls_bind(e, value, (struct spelling){ .text = name, .atomic = true });
}

const char *hls_value_name(struct emitter *e, const struct op *op)
{
	const char *name = attr_text_or(op, KEY_STREAM_NAME, NULL);
	return names_add(&e->names, "", name ? name : text_format(e->arena, "v%d", e->values++));
}

const char *hls_element(struct emitter *e, const struct op *op)
{
	struct text text = text_new(e->arena);
	int array = op_access(op);
	text_add(&text, "%s", hls_spelling(e, op->operand[array])->text);
	if (hls_rotates(op->operand[array])) {
		text_add(&text, "[%lld]", (long long)op->operand[array]->type->shape[0] - 1);
		return text.data;
	}
	for (int i = array + 1; i < op->operands; i++)
		text_add(&text, "[%s]", hls_spelling(e, op->operand[i])->text);
	return text.data;
}

bool hls_rotates(const struct value *array)
{
	return array->def && attr_get(array->def, KEY_STREAM_ROTATION);
}

static const struct attr *constant_value(const struct value *value)
{
	return value->def && value->def->code == OP_CONSTANT ? attr_get(value->def, KEY_VALUE)
	                                                     : NULL;
}

/* `if (…) `, or nothing where the condition always holds; NULL: it never does. */
static const char *condition(struct emitter *e, const struct value *when)
{
	const struct attr *value = constant_value(when);
	if (value)
		return value->integer ? "" : NULL;
	return text_format(e->arena, "if (%s) ", hls_spelling(e, when)->text);
}

/* Defines a constant for the value `text` of op. */
static void define_name(struct emitter *e, struct op *op, const char *text)
{
	const char *name = hls_value_name(e, op);
	hls_line(e, "const %s %s = %s;", hls_type(e, op->result[0]->type), name, text);
	bind_name(e, op->result[0], name);
}

/* The same, except that an index or condition with one use is written there. */
static void define(struct emitter *e, struct op *op, struct spelling expression)
{
	const struct type *type = op->result[0]->type;
	bool small = type->kind == TYPE_INDEX || (type->kind == TYPE_INTEGER && type->width == 1);
	if (small && op->result[0]->uses == 1 && strlen(expression.text) <= 100)
		hls_bind(e, op->result[0], expression);
	else
		define_name(e, op, expression.text);
}

/* ---- one function for each kind of operation */

typedef void emit_function(struct emitter *e, struct op *op);

static double splat_real(const struct type *scalar, const void *data)
{
	double wide;
	float real;
	uint16_t half;
	memcpy(&half, data, sizeof half);
	if (scalar->width == 16)
		return (double)(scalar->kind == TYPE_BFLOAT ? st_float((uint32_t)half << 16)
		                                            : st_f16_value(half));
	if (scalar->width == 64)
		return memcpy(&wide, data, sizeof wide), wide;
	memcpy(&real, data, sizeof real);
	return (double)real;
}

static int64_t splat_integer(const struct attr *value)
{
	size_t bytes = value->bytes < 8 ? value->bytes : 8;
	uint64_t number = 0;
	memcpy(&number, value->data, bytes);
	int unused = (int)(64 - 8 * bytes);
	return (int64_t)(number << unused) >> unused;
}

static void emit_constant(struct emitter *e, struct op *op)
{
	const struct attr *value = attr_get(op, KEY_VALUE);
	const struct type *type = op->result[0]->type;
	const struct type *scalar = type_scalar(type);
	if (value->kind == ATTR_DENSE && value->splat) {
		struct attr one = { .kind = type_is_real(scalar) ? ATTR_FLOAT : ATTR_INTEGER,
			.type = scalar };
		if (type_is_real(scalar))
			one.real = splat_real(scalar, value->data);
		else
			one.integer = splat_integer(value);
		value = arena_copy(e->arena, &one, sizeof one);
	}
	const char *text = hls_constant(e, op, value, scalar);
	hls_bind(e, op->result[0],
	        (struct spelling){ .text = text,
	                .atomic = *text != '-' && *text != '(',
	                .splat = type_lanes(type) > 1 });
}

static void emit_scalar(struct emitter *e, struct op *op)
{
	const char *operand[3];
	bool atomic[3];
	for (int i = 0; i < op->operands; i++) {
		operand[i] = hls_spelling(e, op->operand[i])->text;
		atomic[i] = hls_spelling(e, op->operand[i])->atomic;
	}
	define(e, op, hls_scalar(e, op, operand, atomic));
}

static void emit_apply(struct emitter *e, struct op *op)
{
	const struct attr *attr = attr_get(op, KEY_MAP);
	struct text text = text_new(e->arena);
	int terms = 0;
	for (int d = 0; d < attr->map.dims; d++) {
		int64_t factor = affine_at(attr->map, 0, d);
		if (!factor || text_same(hls_spelling(e, op->operand[d])->text, "0"))
			continue;
		const char *counter = hls_bracket(e->arena, hls_spelling(e, op->operand[d]));
		const char *sign = factor < 0 ? "-" : "";
		if (terms++)
			sign = factor < 0 ? " - " : " + ";
		text_add(&text, "%s", sign);
		text_add(&text, llabs(factor) == 1 ? "%s" : "%s * %lld", counter,
		        (long long)llabs(factor));
	}
	int64_t constant = affine_constant(attr->map, 0);
	if (!terms)
		text_add(&text, "%lld", (long long)constant);
	else if (constant)
		text_add(&text, " %c %lld", constant < 0 ? '-' : '+', (long long)llabs(constant));
	define(e, op, (struct spelling){ .text = text.data, .atomic = !strpbrk(text.data, " -") });
}

static void emit_pop(struct emitter *e, struct op *op)
{
	const char *fifo = hls_spelling(e, op->operand[1])->text;
	const char *type = hls_type(e, op->result[0]->type);
	const char *when = condition(e, op->operand[0]);
	bool used = op->result[0]->uses > 0;
	bool always = when && !*when;
	const char *name = names_add(&e->names, "",
	        text_format(e->arena, "%s_word", !strncmp(fifo, "s_", 2) ? fifo + 2 : fifo));
	bind_name(e, op->result[0], name);
	if (!used && when)
		hls_line(e, "%s%s;", when, hls_read(e, op));
	else if (always)
		hls_line(e, "const %s %s = %s;", type, name, hls_read(e, op));
	if (!used || always)
		return;
	text_add(&e->registers, "\t%s %s(0);\n", type, name);
	if (when)
		hls_line(e, "%s%s = %s;", when, name, hls_read(e, op));
}

const char *hls_word(struct emitter *e, const struct value *value)
{
	const struct spelling *spelling = hls_spelling(e, value);
	return spelling->splat
	        ? text_format(e->arena, "%s(%s)", hls_type(e, value->type), spelling->text)
	        : spelling->text;
}

static void emit_push(struct emitter *e, struct op *op)
{
	const char *when = condition(e, op->operand[0]);
	if (when)
		hls_write(e, op, when);
}

static bool conditional_push(struct emitter *e, struct op *op)
{
	const char *when = condition(e, op->operand[0]);
	return when && *when && lanes_push(e, op, when);
}

static struct op *release_of(const struct op *acquire)
{
	for (struct op *op = acquire->next; op; op = op->next)
		if (op->code == OP_RELEASE && op->operand[0] == acquire->result[0])
			return op;
	return NULL;
}

/* Does the acquired block live for the whole body?  Then its lock needs no scope of its own. */
static bool spans_body(const struct op *acquire, const struct op *release)
{
	const struct op *end = release->next;
	bool first = true;
	for (const struct op *op = acquire->previous; op; op = op->previous)
		first = first && op->code == OP_CONSTANT;
	return first && end && (end->code == OP_YIELD || end->code == OP_RETURN);
}

static void emit_acquire(struct emitter *e, struct op *op)
{
	const struct op *release = release_of(op);
	if (!release) {
		hls_fail(e, op, "is not released in the same body");
		return;
	}
	const char *name = names_add(&e->names, "", attr_text_or(op, KEY_STREAM_NAME, "held"));
	if (!spans_body(op, release)) {
		hls_line(e, "{");
		e->indent++;
	}
	bool write = text_same(attr_text_or(op, KEY_SIDE, NULL), "write");
	hls_line(e, "hls::%s<%s> %s(%s);", write ? "write_lock" : "read_lock",
	        hls_type(e, op->result[0]->type), name, hls_spelling(e, op->operand[0])->text);
	bind_name(e, op->result[0], name);
}

static void emit_release(struct emitter *e, struct op *op)
{
	const struct op *acquire = op->operand[0]->def;
	if (spans_body(acquire, op))
		return;
	e->indent--;
	hls_line(e, "}");
}

void hls_banks(struct text *out, const char *name, const struct type *array)
{
	for (int dim = 1; dim < array->rank; dim++)
		text_add(out, "#pragma HLS array_partition variable=%s type=complete dim=%d\n",
		        name, dim);
}

static void add_array(struct emitter *e, struct op *op)
{
	const struct type *type = op->result[0]->type;
	const char *name = hls_value_name(e, op);
	const char *storage = attr_text_or(op, KEY_STREAM_STORAGE, "");
	const char *element = hls_type(e, type->element);
	int64_t partition = attr_integer_or(op, KEY_STREAM_PARTITION, 1);
	int64_t last = type->rank ? type->shape[type->rank - 1] : 1;
	struct text shape = text_new(e->arena);
	for (int d = 0; d < type->rank; d++)
		text_add(&shape, "[%lld]", (long long)type->shape[d]);
	bind_name(e, op->result[0], name);
	/* registers are cleared at no cost; memories are written before they are read */
	bool registers = text_same(storage, "registers");
	const char *dims = type->rank ? shape.data : "[1]";
	hls_line(e, "%s %s%s%s;", element, name, dims, registers ? " = {}" : "");
	if (registers)
		text_add(&e->body, "#pragma HLS array_partition variable=%s type=complete dim=0\n",
		        name);
	else if (partition > 1 && type->rank > 1)
		hls_banks(&e->body, name, type);
	else if (partition > 1 && partition >= last)
		text_add(&e->body, "#pragma HLS array_partition variable=%s type=complete dim=%d\n",
		        name, type->rank);
	else if (partition > 1)
		text_add(&e->body,
		        "#pragma HLS array_partition variable=%s type=cyclic factor=%lld dim=%d\n",
		        name, (long long)partition, type->rank);
	if (attr_get(op, KEY_STREAM_DISTANCE) && !registers)
		text_add(&e->body,
		        "#pragma HLS dependence variable=%s type=inter direction=RAW distance=%lld "
		        "true\n",
		        name, (long long)attr_integer_or(op, KEY_STREAM_DISTANCE, 1));
	if (*storage && !text_same(storage, "registers"))
		text_add(&e->body, "#pragma HLS bind_storage variable=%s type=%s impl=%s\n", name,
		        attr_get(op, KEY_STREAM_READ_PORTS) ? "ram_1wnr" : "ram_s2p", storage);
}

void hls_local_array(struct emitter *e, struct op *op)
{
	struct text body = e->body;
	e->body = e->registers;
	add_array(e, op);
	e->registers = e->body;
	e->body = body;
}

static void emit_alloca(struct emitter *e, struct op *op)
{
	struct text body = e->body;
	if (hls_is_local(e, op->result[0]))
		return;
	if (!e->rewinding) {
		add_array(e, op);
		return;
	}
	e->body = e->rewinding->arrays;
	add_array(e, op);
	e->rewinding->arrays = e->body;
	e->body = body;
}

/* May a loaded word be read where it is used?  Every use must be in this body and before anything
 * that may write the array. */
static bool is_stable(const struct op *load)
{
	int found = 0;
	for (const struct op *op = load->next; op && found < load->result[0]->uses; op = op->next) {
		for (int i = 0; i < op->operands; i++)
			found += op->operand[i] == load->result[0];
		bool writes = op->code == OP_FOR || op->code == OP_RELEASE ||
		        op_writes(op, load->operand[0]);
		if (writes && found < load->result[0]->uses)
			return false;
	}
	return found == load->result[0]->uses;
}

/* A memory whose words are updated is read and written in whole words. */
static bool is_updated_memory(const struct value *array)
{
	return array->def && attr_get(array->def, KEY_STREAM_DISTANCE) && !hls_rotates(array);
}

/* Is the load written where its value is used?  Words, and scalars that are only passed on. */
static bool is_read_at_use(const struct op *load)
{
	const struct op *user = load->next;
	if (type_lanes(load->result[0]->type) > 1)
		return !is_updated_memory(load->operand[0]) && is_stable(load);
	if (load->result[0]->uses != 1)
		return false;
	for (; user; user = user->next)
		for (int i = 0; i < user->operands; i++)
			if (user->operand[i] == load->result[0])
				return (user->code == OP_JOIN_LANES || user->code == OP_PUSH) &&
				        is_stable(load);
	return false;
}

static void emit_load(struct emitter *e, struct op *op)
{
	const char *element = hls_element(e, op);
	bool port = op->operand[0]->type->shape[0] < 0;
	if (op->operands == 1)
		element = text_format(e->arena, "%s[0]", element);
	if (!port && is_read_at_use(op)) {
		bind_name(e, op->result[0], element);
		return;
	}
	const struct type *word = op->result[0]->type;
	if (port && hls_is_packed(word))
		element = text_format(e->arena, "st_unpack_i4<%s, %lld>(%s)",
		        hls_type(e, type_scalar(word)), (long long)type_lanes(word), element);
	define_name(e, op, element);
}

/* A word in its memory format. */
static const char *memory_word(struct emitter *e, const struct value *word)
{
	const char *text = hls_word(e, word);
	if (!hls_is_packed(word->type))
		return text;
	return text_format(e->arena, "st_pack_i4<%s, %lld>(%s)",
	        hls_type(e, type_scalar(word->type)), (long long)type_lanes(word->type), text);
}

static void emit_write(struct emitter *e, struct op *op)
{
	const char *when = condition(e, op->operand[0]);
	if (when)
		hls_line(e, "%s%s = %s;", when, hls_element(e, op), memory_word(e, op->operand[1]));
}

/* A helper function that stores a word in a shift register, whose oldest word is dropped. */
static const char *shift_helper(struct emitter *e, const struct type *array)
{
	const long long words = array->shape[0];
	char *name = text_format(e->arena, "st_shift_%lld", words);
	if (map_get(&e->made, name))
		return name;
	map_set(&e->made, name, name);
	text_add(&e->helpers,
	        "template <class T, class W> static void %s(T (&words)[%lld], const W &word)\n{\n"
	        "#pragma HLS inline\n\tfor (int w = %lld; w > 0; w--) {\n#pragma HLS unroll\n"
	        "\t\twords[w] = words[w - 1];\n\t}\n\twords[0] = word;\n}\n\n",
	        name, words, words - 1);
	return name;
}

static void emit_store(struct emitter *e, struct op *op)
{
	if (type_is_port(op->operand[1]->type) && hls_is_packed(op->operand[0]->type)) {
		hls_line(e, "%s = %s;", hls_element(e, op), memory_word(e, op->operand[0]));
		return;
	}
	if (hls_rotates(op->operand[1])) {
		hls_line(e, "%s(%s, %s);", shift_helper(e, op->operand[1]->type),
		        hls_spelling(e, op->operand[1])->text, hls_word(e, op->operand[0]));
		return;
	}
	hls_copy(e,
	        text_format(e->arena, "%s%s", hls_element(e, op), op->operands == 2 ? "[0]" : ""),
	        hls_word(e, op->operand[0]));
}

/* Is the only use of op a store or a join in the same body? */
static bool only_moved(const struct op *op)
{
	for (const struct op *user = op->next; user; user = user->next)
		for (int i = 0; i < user->operands; i++)
			if (user->operand[i] == op->result[0])
				return user->code == OP_JOIN_LANES || user->code == OP_MEMREF_STORE;
	return false;
}

/* A lane of a named word may be written where it is used, as the word does not change; the element
 * of an array might. */
static void emit_lane(struct emitter *e, struct op *op)
{
	const struct spelling *word = hls_spelling(e, op->operand[0]);
	const struct spelling *lane = hls_spelling(e, op->operand[1]);
	if (word->splat || type_lanes(op->operand[0]->type) == 1) {
		hls_bind(e, op->result[0],
		        (struct spelling){ .text = word->text, .atomic = word->atomic });
		return;
	}
	const char *text = text_format(e->arena, "%s[%s]", word->text, lane->text);
	if (op->result[0]->uses == 1 && !strchr(word->text, '[') && only_moved(op))
		bind_name(e, op->result[0], text);
	else
		define_name(e, op, text);
}

static void emit_set_lane(struct emitter *e, struct op *op)
{
	const char *name = hls_value_name(e, op);
	const char *value = hls_spelling(e, op->operand[0])->text;
	bool scalar = type_lanes(op->result[0]->type) == 1;
	hls_line(e, "%s %s = %s;", hls_type(e, op->result[0]->type), name,
	        scalar ? value : hls_word(e, op->operand[1]));
	if (!scalar)
		hls_line(e, "%s[%s] = %s;", name, hls_spelling(e, op->operand[2])->text, value);
	bind_name(e, op->result[0], name);
}

static void emit_broadcast(struct emitter *e, struct op *op)
{
	const struct spelling *scalar = hls_spelling(e, op->operand[0]);
	bool word = type_lanes(op->result[0]->type) > 1;
	hls_bind(e, op->result[0],
	        (struct spelling){ .text = scalar->text, .atomic = scalar->atomic, .splat = word });
}

static void emit_join(struct emitter *e, struct op *op)
{
	int64_t lanes = type_lanes(op->operand[0]->type);
	const char *name = hls_value_name(e, op);
	bind_name(e, op->result[0], name);
	hls_line(e, "%s %s;", hls_type(e, op->result[0]->type), name);
	for (int i = 0; i < op->operands; i++) {
		const struct spelling *part = hls_spelling(e, op->operand[i]);
		for (int64_t l = 0; l < lanes; l++) {
			const char *lane = part->text;
			if (lanes > 1 && !part->splat)
				lane = text_format(e->arena, "%s[%lld]", lane, (long long)l);
			hls_copy(e,
			        text_format(e->arena, "%s[%lld]", name, (long long)(i * lanes + l)),
			        lane);
		}
	}
}

/* Names inside a function; that of the top function is taken. */
/* A helper function for each operation and word type: a balanced tree over the lanes. */
static const char *tree_helper(struct emitter *e, struct op *op)
{
	const char *kind = attr_text_or(op, KEY_KIND, "");
	const char *dot = strchr(kind, '.');
	const char *word = hls_type(e, op->operand[0]->type);
	const char *scalar = hls_type(e, op->result[0]->type);
	const char *from = "x";
	char *name = text_format(e->arena, "tree_%s_%s", dot ? dot + 1 : kind, word);
	if (map_get(&e->made, name))
		return name;
	map_set(&e->made, name, op);
	struct value left = { .type = op->result[0]->type };
	struct value right = left;
	struct value *operand[] = { &left, &right };
	struct op pair = *op;
	pair.code = op_code_of(kind, strlen(kind));
	pair.operands = 2;
	pair.operand = operand;
	if (pair.code == OP_NONE)
		hls_fail(e, op, "has an unknown kind");
	struct names names = names_new(e->arena);
	int64_t lanes = type_lanes(op->operand[0]->type);
	const bool atomic[] = { true, true };
	names_add(&names, "", from);
	text_add(&e->helpers, "static %s %s(const %s &x)\n{\n#pragma HLS inline\n", scalar, name,
	        word);
	for (; lanes > 2 && !e->failed; lanes = (lanes + 1) / 2) {
		long long half = lanes / 2;
		long long left_over = lanes & 1;
		const char *to =
		        names_add(&names, "", text_format(e->arena, "t%lld", half + left_over));
		const char *text[] = { text_format(e->arena, "%s[2 * l]", from),
			text_format(e->arena, "%s[2 * l + 1]", from) };
		text_add(&e->helpers,
		        "\t%s %s[%lld];\n#pragma HLS array_partition variable=%s type=complete\n",
		        scalar, to, half + left_over, to);
		text_add(&e->helpers,
		        "\tfor (int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n\t\t%s[l] = "
		        "%s;\n\t}\n",
		        half, to, hls_scalar(e, &pair, text, atomic).text);
		if (left_over)
			text_add(&e->helpers, "\t%s[%lld] = %s[%lld];\n", to, half, from,
			        (long long)lanes - 1);
		from = to;
	}
	const char *text[] = { text_format(e->arena, "%s[0]", from),
		text_format(e->arena, "%s[1]", from) };
	text_add(&e->helpers, "\treturn %s;\n}\n\n", hls_scalar(e, &pair, text, atomic).text);
	return name;
}

static void emit_tree(struct emitter *e, struct op *op)
{
	const struct spelling *word = hls_spelling(e, op->operand[0]);
	if (type_lanes(op->operand[0]->type) == 1) {
		hls_bind(e, op->result[0], *word);
		return;
	}
	define_name(e, op,
	        text_format(e->arena, "%s(%s)", tree_helper(e, op), hls_word(e, op->operand[0])));
}

void hls_loop(struct emitter *e, struct op *op)
{
	struct value *counter = op->region[0]->argument[0];
	const char *own = attr_text_or(op, KEY_STREAM_NAME, NULL);
	const char *name =
	        names_add(&e->names, "", own ? own : text_format(e->arena, "i%d", e->depth));
	int64_t interval = attr_integer_or(op, KEY_STREAM_PIPELINE, 0);
	const struct attr *step = constant_value(op->operand[2]);
	if (op->results)
		hls_fail(e, op, "carries values");
	if (nest_is_branch(op)) {
		hls_bind(e, counter, (struct spelling){ .text = "0", .atomic = true });
		hls_line(e, "if (%s > 0) {", hls_spelling(e, op->operand[1])->text);
		e->indent++;
		hls_block(e, op->region[0]);
		e->indent--;
		hls_line(e, "}");
		return;
	}
	bind_name(e, counter, name);
	const char *lower = hls_spelling(e, op->operand[0])->text;
	const char *upper = hls_spelling(e, op->operand[1])->text;
	const char *advance = text_format(e->arena, "%s++", name);
	if (!step || step->integer != 1)
		advance = text_format(
		        e->arena, "%s += %s", name, hls_spelling(e, op->operand[2])->text);
	hls_line(e, "for (int %s = %s; %s < %s; %s) {", name, lower, name, upper, advance);
	if (attr_get(op, KEY_STREAM_RUN_TIME))
		text_add(&e->body, "#pragma HLS loop_tripcount max=%lld\n",
		        (long long)timing_most_trips(op));
	if (interval)
		hls_pipeline(e, op);
	if (interval)
		hls_sequential_pragmas(e, op);
	if (attr_get(op, KEY_STREAM_LANES))
		text_add(&e->body, "#pragma HLS unroll\n");
	e->indent++;
	e->depth++;
	hls_block(e, op->region[0]);
	e->depth--;
	e->indent--;
	hls_line(e, "}");
}

static void emit_for(struct emitter *e, struct op *op)
{
	if (hls_is_datapath(e, op))
		hls_datapath(e, op);
	else if (port_run_is(op))
		hls_run(e, op);
	else if (sequential_rows(op))
		hls_rows(e, op, sequential_rows(op));
	else if (hls_is_nest(op))
		hls_one_loop(e, op, NULL);
	else
		hls_loop(e, op);
}

static emit_function *const functions[OP_COUNT] = {
	[OP_CONSTANT] = emit_constant,
	[OP_APPLY] = emit_apply,
	[OP_POP] = emit_pop,
	[OP_PUSH] = emit_push,
	[OP_ACQUIRE] = emit_acquire,
	[OP_RELEASE] = emit_release,
	[OP_ALLOCA] = emit_alloca,
	[OP_MEMREF_LOAD] = emit_load,
	[OP_MEMREF_STORE] = emit_store,
	[OP_LANE] = emit_lane,
	[OP_SET_LANE] = emit_set_lane,
	[OP_BROADCAST] = emit_broadcast,
	[OP_JOIN_LANES] = emit_join,
	[OP_SPLIT_LANES] = emit_lane,
	[OP_TREE] = emit_tree,
	[OP_FOR] = emit_for,
	[OP_DOT] = hls_dot,
	[OP_WRITE] = emit_write,
};

void hls_op(struct emitter *e, struct op *op)
{
	if (op->code == OP_YIELD || op->code == OP_RETURN)
		return;
	if (op->results && hls_unused(op->result[0]) && op->code != OP_POP &&
	        op->code != OP_ACQUIRE)
		return;
	if (op->code == OP_BROADCAST) {
		emit_broadcast(e, op);
		return;
	}
	if (lanes_take(e, op))
		return;
	if (op->code == OP_PUSH && conditional_push(e, op))
		return;
	lanes_before(e, op);
	if (functions[op->code])
		functions[op->code](e, op);
	else if (op_info[op->code].levels & LEVEL_BODY)
		emit_scalar(e, op);
	else
		hls_fail(e, op, "has no spelling in C++");
}

/* Uses that are not spelled: as the index of a shift register, or by what only has such uses. */
static void count_unspelled(struct op *op)
{
	int access = op_access(op);
	bool rotates = (op->code == OP_MEMREF_LOAD || op->code == OP_MEMREF_STORE) &&
	        hls_rotates(op->operand[access]);
	bool index = op->results == 1 && op->code != OP_POP && op->code != OP_ACQUIRE &&
	        op->result[0]->id && hls_unused(op->result[0]);
	for (int i = rotates ? access + 1 : 0; (rotates || index) && i < op->operands; i++)
		op->operand[i]->id++;
}

bool hls_unused(const struct value *value)
{
	return value->id == value->uses;
}

static void clear_ids(struct op *op, void *context)
{
	(void)context;
	for (int i = 0; i < op->results; i++)
		op->result[i]->id = 0;
	for (int i = 0; op->region[0] && i < op->region[0]->arguments; i++)
		op->region[0]->argument[i]->id = 0;
}

struct op_list {
	struct arena *arena;
	VEC(struct op *) list;
};

static void add_op(struct op *op, void *context)
{
	struct op_list *ops = context;
	VEC_PUSH(ops->arena, &ops->list, op);
}

/* value->id of the process's values: their uses that are not spelled. */
static void mark_unspelled(struct emitter *e, const struct op *process)
{
	struct op_list ops = { .arena = e->arena };
	ir_walk(process->region[0], clear_ids, NULL);
	ir_walk(process->region[0], add_op, &ops);
	for (size_t i = ops.list.count; i-- > 0;)
		count_unspelled(ops.list.data[i]);
}

void hls_block(struct emitter *e, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next)
		hls_op(e, op);
	lanes_close(e);
	hls_flush(e);
}

static struct op *call_of(struct emitter *e, const struct op *process)
{
	const char *symbol = attr_text_or(process, KEY_SYM_NAME, "");
	for (struct op *op = e->main->region[0]->first; op; op = op->next)
		if (op->code == OP_CALL && text_same(attr_text_or(op, KEY_CALLEE, NULL), symbol))
			return op;
	return NULL;
}

/* Parameters for all FIFOs of a channel. */
static const char *fifo_parameter(struct emitter *e, const struct type *channel, const char *name)
{
	struct text text = text_new(e->arena);
	const char *own;
	for (int i = 0; (own = hls_channel_part(e, channel, name, i)); i++)
		text_add(&text, "%shls::stream<%s> &%s", i ? ", " : "",
		        hls_channel_type(e, channel), own);
	return text.data;
}

const char *hls_parameter(struct emitter *e, int argument, const char *name)
{
	const struct value *value = e->call->operand[argument];
	const struct type *type = value->type;
	if (type->kind == TYPE_FIFO)
		return fifo_parameter(e, type, name);
	if (type->kind == TYPE_BLOCKS)
		return text_format(e->arena, "hls::stream_of_blocks<%s> &%s",
		        hls_type(e, type->element), name);
	bool write = emit_port(e->main, value->index).write;
	return text_format(
	        e->arena, "%s%s *%s", write ? "" : "const ", hls_port_type(e, type->element), name);
}

/* Parameters have the names of the process's arguments, or else those of the top function. */
void hls_process(struct emitter *e, struct op *process)
{
	struct block *body = process->region[0];
	e->call = call_of(e, process);
	if (!e->call) {
		hls_fail(e, process, "is never started");
		return;
	}
	e->process = process;
	e->names = names_new(e->arena);
	e->body = text_new(e->arena);
	e->registers = text_new(e->arena);
	e->indent = 1;
	e->values = e->depth = 0;
	struct text head = text_new(e->arena);
	for (int i = 0; i < body->arguments; i++) {
		const struct attr *own = function_argument_attr(process, i, KEY_STREAM_NAME);
		const char *name = names_add(&e->names, "",
		        own ? own->text : hls_spelling(e, e->call->operand[i])->text);
		bind_name(e, body->argument[i], name);
		text_add(&head, "%s%s", i ? ", " : "", hls_parameter(e, i, name));
	}
	e->rewinding = map_get(&e->rewinding_of, attr_text_or(process, KEY_SYM_NAME, ""));
	hls_datapath_begin(e, process);
	mark_unspelled(e, process); /* comparing nests numbers their values */
	if (e->rewinding) {
		hls_rewind(e);
		return;
	}
	hls_block(e, body);
	text_add(e->out, "static void %s(%s)\n{\n#pragma HLS inline off\n",
	        (const char *)map_get(&e->processes, attr_text_or(process, KEY_SYM_NAME, "")),
	        head.data ? head.data : "");
	text_add_bytes(e->out, e->registers.data ? e->registers.data : "", e->registers.size);
	text_add_bytes(e->out, e->body.data ? e->body.data : "", e->body.size);
	text_add(e->out, "}\n\n");
}
