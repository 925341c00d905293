/* Emits the function that runs between the steps of a launch: it writes the next token to where the
 * processes read it, and advances positions.  The token is the host's as long as its text lasts,
 * then the design's own output.  With a token count, steps take chunks of the host's text first,
 * then single tokens. */
#include "emit/hls.h"
#include "ir/launch_tokens.h"
#include "predict/feedback.h"
#include "image/segment.h"

struct feedback_step {
	struct emitter *e;
	const struct op *main;
	struct feedback feedback;
	const char *const *name; /* names of the top function's pointers */
	const char *indent;
	struct text *out;
};

struct buffer_place { /* an element of a tensor in memory */
	const char *buffer;
	int64_t at, element; /* index in the buffer, and in the tensor */
};

struct places {
	VEC(struct buffer_place) all;
};

/* Consecutive elements of a buffer whose indices in the step's rows are number, number + by, … */
struct element_run {
	struct buffer_place first;
	int64_t number, by, count;
};

struct cell { /* an element in memory */
	const char *pointer, *index;
	const struct type *word;
};

static int port_of(const struct op *main, const char *buffer)
{
	int port = 0;
	while (!text_same(emit_port(main, port).buffer, buffer))
		port++;
	return port;
}

static struct cell cell_at(const struct feedback_step *s, const char *buffer, const char *index)
{
	int port = port_of(s->main, buffer);
	return (struct cell){ .pointer = s->name[emit_argument(s->main, port)],
		.index = index,
		.word = emit_port(s->main, port).word };
}

/* "N * " before a number of rows, if a row has N > 1 elements. */
static const char *elements_factor(const struct feedback_step *s)
{
	if (s->feedback.elements <= 1)
		return "";
	return text_format(s->e->arena, "%lld * ", (long long)s->feedback.elements);
}

/* Element `element` of the next token in the text. */
static struct cell text_cell(const struct feedback_step *s, int64_t element)
{
	int64_t first = s->feedback.offset + s->feedback.elements + element;
	return cell_at(s, s->feedback.buffer,
	        text_format(s->e->arena, "%lld + %stoken", (long long)first, elements_factor(s)));
}

static const char *value_of(const struct feedback_step *s, struct cell cell)
{
	long long lanes = type_lanes(cell.word);
	if (lanes == 1)
		return text_format(s->e->arena, "%s[%s]", cell.pointer, cell.index);
	return text_format(s->e->arena, "%s[(%s) / %lld][(%s) %% %lld]", cell.pointer, cell.index,
	        lanes, cell.index, lanes);
}

/* Writes an element; memory is written in whole words, so a word of several is read first. */
static void write_cell(
        const struct feedback_step *s, struct cell cell, const char *how, const char *value)
{
	long long lanes = type_lanes(cell.word);
	const char *in = s->indent;
	if (lanes == 1) {
		text_add(s->out, "%s%s[%s] %s %s;\n", in, cell.pointer, cell.index, how, value);
		return;
	}
	text_add(s->out, "%s{\n%s\t%s word = %s[(%s) / %lld];\n%s\tword[(%s) %% %lld] %s %s;\n", in,
	        in, hls_type(s->e, cell.word), cell.pointer, cell.index, lanes, in, cell.index,
	        lanes, how, value);
	text_add(s->out, "%s\t%s[(%s) / %lld] = word;\n%s}\n", in, cell.pointer, cell.index, lanes,
	        in);
}

static const char *next_name(const struct feedback_step *s, int64_t element)
{
	if (s->feedback.elements <= 1)
		return "next";
	return text_format(s->e->arena, "next%lld", (long long)element);
}

typedef void visitor(
        const struct feedback_step *s, struct cell cell, int64_t element, const char *how);

/* [elements of the segment] index in the host's tensor, from 1; 0: padding. */
static int64_t *host_numbers(struct arena *arena, struct segment segment, int64_t elements)
{
	int64_t *number = ARENA_ARRAY(arena, int64_t, elements + 1);
	int64_t *at = ARENA_ARRAY(arena, int64_t, segment_elements(&segment) + 1);
	for (int64_t n = 0; n < elements; n++)
		number[n] = n + 1;
	segment.host_bytes = segment.image_bytes = (int)sizeof *number;
	segment_pack(&segment, number, at, segment.offset, 0, segment_elements(&segment));
	return at;
}

static int64_t elements_of(const struct feedback_step *s, const char *name, bool output)
{
	enum attr_key key = output ? KEY_STREAM_OUTPUTS : KEY_STREAM_INPUTS;
	const struct attr *entry = attr_entry(attr_get(s->main, key), name);
	return type_elements(attr_item(entry, KEY_TYPE)->type);
}

/* All elements of a tensor in memory. */
static struct places places_of(const struct feedback_step *s, const char *name, bool output)
{
	const struct attr *buffers = attr_get(s->main, KEY_STREAM_BUFFERS);
	struct places places = { { 0 } };
	for (int b = 0; b < buffers->count; b++) {
		const struct attr *buffer = buffers->items[b].value;
		const struct attr *segments = attr_item(buffer, KEY_SEGMENTS);
		for (int i = 0; i < segments->count; i++) {
			struct segment segment;
			if (!feedback_is_of(segments->items[i].value, name, output) ||
			        segment_read(s->e->arena, segments->items[i].value, &segment))
				continue;
			const int64_t *number =
			        host_numbers(s->e->arena, segment, elements_of(s, name, output));
			for (int64_t n = 0; n < segment_elements(&segment); n++)
				if (number[n]) {
					struct buffer_place place = { attr_item_text(
						                              buffer, KEY_NAME),
						segment.offset + n, number[n] - 1 };
					VEC_PUSH(s->e->arena, &places.all, place);
				}
		}
	}
	return places;
}

static void for_each_place(
        const struct feedback_step *s, const char *name, bool output, visitor *act, const char *how)
{
	struct places places = places_of(s, name, output);
	for (size_t i = 0; i < places.all.count; i++) {
		const struct buffer_place *place = &places.all.data[i];
		act(s,
		        cell_at(s, place->buffer,
		                text_format(s->e->arena, "%lld", (long long)place->at)),
		        place->element, how);
	}
}

static void choose_next(
        const struct feedback_step *s, struct cell cell, int64_t element, const char *how)
{
	struct cell text = text_cell(s, element);
	const char *type = hls_type(s->e, type_scalar(text.word));
	const char *next = next_name(s, element);
	(void)how;
	text_add(s->out, "\tconst %s %s = token + 1 < given ? %s : (%s)%s;\n", type, next,
	        value_of(s, text), type, value_of(s, cell));
	write_cell(s, text, "=", next);
}

static void set_input(
        const struct feedback_step *s, struct cell cell, int64_t element, const char *how)
{
	write_cell(s, cell, how, next_name(s, element));
}

static void add_step(
        const struct feedback_step *s, struct cell cell, int64_t element, const char *how)
{
	(void)element;
	write_cell(s, cell, "+=", how);
}

/* Each copy of the token count in memory holds the same number. */
static void read_rows(
        const struct feedback_step *s, struct cell cell, int64_t element, const char *how)
{
	(void)element;
	text_add(s->out, "\t%s = (int)%s;\n", how, value_of(s, cell));
}

static void set_rows(
        const struct feedback_step *s, struct cell cell, int64_t element, const char *how)
{
	(void)element;
	write_cell(s, cell, how, launch_may_continue(s->main) ? "said" : "rows");
}

/* Advances positions by the tokens of this step and sets the token count of the next. */
static void advance_positions(const struct feedback_step *s)
{
	const struct attr *inputs = attr_get(s->main, KEY_STREAM_INPUTS);
	const char *rows = s->feedback.rows;
	if (rows) {
		text_add(s->out, "\tint before = 1;\n");
		for_each_place(s, rows, false, read_rows, "before");
	}
	/* a count above a chunk's tokens said that this step follows */
	if (launch_may_continue(s->main))
		text_add(s->out, "\tbefore = before > %lld ? %lld : before;\n",
		        (long long)s->feedback.chunk_tokens, (long long)s->feedback.chunk_tokens);
	for (int i = 0; i < inputs->count; i++) {
		long long step = feedback_increment(inputs->items[i].value);
		if (step)
			for_each_place(s, attr_item_text(inputs->items[i].value, KEY_NAME), false,
			        add_step,
			        text_format(s->e->arena, rows ? "%lld * before" : "%lld", step));
	}
	if (rows)
		for_each_place(s, rows, false, set_rows, "=");
}

/* ---- with a token count: the next step takes `rows` rows of the text, from row `at` after the
 * first on */

/* Declares of the next step: rows of the host's text used so far and left, its own number of rows,
 * the token count that it is told (one more if another chunk follows), and its first row. */
static void count_rows(const struct feedback_step *s)
{
	long long most = (long long)s->feedback.chunk_tokens;
	text_add(s->out,
	        "\tconst int behind = given - 1, taken = %lld * token < behind ? %lld * token : "
	        "behind, left = behind - taken;\n",
	        most, most);
	text_add(s->out, "\tconst int rows = left > %lld ? %lld : left > 1 ? left : 1;\n", most,
	        most);
	if (launch_may_continue(s->main))
		text_add(s->out, "\tconst int said = left > %lld ? %lld : rows;\n", most, most + 1);
	text_add(s->out,
	        "\tconst int at = left > 0 ? taken : behind + token - (behind + %lld) / %lld;\n",
	        most - 1, most);
}

static struct feedback_step deeper(const struct feedback_step *s)
{
	struct feedback_step inner = *s;
	inner.indent = "\t\t";
	return inner;
}

static struct cell text_of_rows(const struct feedback_step *s, const char *number)
{
	long long first = (long long)(s->feedback.offset + s->feedback.elements);
	return cell_at(s, s->feedback.buffer,
	        text_format(s->e->arena, "%lld + %sat + %s", first, elements_factor(s), number));
}

static void take_output(
        const struct feedback_step *s, struct cell cell, int64_t element, const char *how)
{
	struct cell text = text_of_rows(s, text_format(s->e->arena, "%lld", (long long)element));
	const char *next = text_format(s->e->arena, "next[%lld]", (long long)element);
	text_add(s->out, "%s%s %s (%s)%s;\n", s->indent, next, how,
	        hls_type(s->e, type_scalar(text.word)), value_of(s, cell));
	write_cell(s, text, how, next);
}

static void choose_rows(const struct feedback_step *s)
{
	const struct feedback_step inner = deeper(s);
	struct cell text = text_of_rows(s, "i");
	text_add(s->out, "\t%s next[%lld];\n\tif (left > 0) {\n",
	        hls_type(s->e, type_scalar(text.word)),
	        (long long)(s->feedback.elements * s->feedback.chunk_tokens));
	text_add(s->out,
	        "\t\tfor (int i = 0; i < %srows; i++) {\n#pragma HLS pipeline II=1\n\t\t\tnext[i] "
	        "= %s;\n\t\t}\n\t} else {\n",
	        elements_factor(s), value_of(s, text));
	for_each_place(&inner, s->feedback.output, true, take_output, "=");
	text_add(s->out, "\t}\n");
}

/* Does the place continue the run?  Its indices step by one or by a whole row. */
static bool extends_run(const struct feedback_step *s, const struct element_run *run,
        const struct buffer_place *place)
{
	int64_t by = feedback_text_index(&s->feedback, place->element) - run->number -
	        (run->count - 1) * run->by;
	if (!text_same(place->buffer, run->first.buffer) || place->at != run->first.at + run->count)
		return false;
	return by == run->by || (run->count == 1 && (by == 1 || by == s->feedback.elements));
}

/* Length of the run that the step's rows fill, as an expression. */
static const char *length_of(const struct feedback_step *s, const struct element_run *run)
{
	bool by_row = run->by == s->feedback.elements;
	int64_t before = by_row ? run->number / run->by : run->number;
	int64_t all = s->feedback.chunk_tokens * (by_row ? 1 : s->feedback.elements);
	const char *length = text_format(s->e->arena, "%srows", by_row ? "" : elements_factor(s));
	if (before)
		length = text_format(s->e->arena, "%s - %lld", length, (long long)before);
	if (before + run->count >= all)
		return length;
	return text_format(s->e->arena, "(%s < %lld ? %s : %lld)", length, (long long)run->count,
	        length, (long long)run->count);
}

static void set_run(const struct feedback_step *s, const struct element_run *run)
{
	struct arena *arena = s->e->arena;
	const struct feedback_step inner = deeper(s);
	const char *by = run->by > 1 ? text_format(arena, "%lld * ", (long long)run->by) : "";
	const char *from = run->number ? text_format(arena, "%lld + ", (long long)run->number) : "";
	struct cell cell = cell_at(
	        s, run->first.buffer, text_format(arena, "%lld + i", (long long)run->first.at));
	/* words of several elements are read before they are written: no pipeline */
	text_add(s->out, "\tfor (int i = 0; i < %s; i++) {\n%s", length_of(s, run),
	        type_lanes(cell.word) > 1 ? "" : "#pragma HLS pipeline II=1\n");
	write_cell(&inner, cell, "=", text_format(arena, "next[%s%si]", from, by));
	text_add(s->out, "\t}\n");
}

static void set_rows_of_input(const struct feedback_step *s)
{
	struct places places = places_of(s, s->feedback.input, false);
	struct element_run run = { .count = 0 };
	for (size_t i = 0; i < places.all.count; i++) {
		const struct buffer_place *place = &places.all.data[i];
		int64_t number = feedback_text_index(&s->feedback, place->element);
		if (run.count && extends_run(s, &run, place)) {
			run.by = run.count == 1 ? number - run.number : run.by;
			run.count++;
			continue;
		}
		if (run.count)
			set_run(s, &run);
		run = (struct element_run){
			.first = *place, .number = number, .by = s->feedback.elements, .count = 1
		};
	}
	if (run.count)
		set_run(s, &run);
}

/* Lists the ports that the function reads or writes; returns their number. */
static int touched_ports(const struct op *main, int *port)
{
	const struct attr *buffers = attr_get(main, KEY_STREAM_BUFFERS);
	int count = 0;
	for (int b = 0; b < buffers->count; b++) {
		const char *name = attr_item_text(buffers->items[b].value, KEY_NAME);
		if (feedback_touches(main, name))
			port[count++] = port_of(main, name);
	}
	return count;
}

void hls_feedback(struct emitter *e, const char *name, const char *const *pointer, struct text *out)
{
	struct feedback_step s = {
		.e = e, .main = e->main, .name = pointer, .indent = "\t", .out = out
	};
	int *port = ARENA_ARRAY(e->arena, int, emit_ports(e->module) + 1);
	int ports = touched_ports(e->main, port);
	feedback_read(e->main, &s.feedback);
	text_add(out, "static void %s(", name);
	for (int i = 0; i < ports; i++)
		text_add(out, "%s *%s, ", hls_port_type(e, emit_port(e->main, port[i]).word),
		        pointer[emit_argument(e->main, port[i])]);
	text_add(out, "int token, int given)\n{\n#pragma HLS inline off\n");
	if (s.feedback.rows) {
		count_rows(&s);
		choose_rows(&s);
		set_rows_of_input(&s);
	} else {
		for_each_place(&s, s.feedback.output, true, choose_next, "");
		for_each_place(&s, s.feedback.input, false, set_input, "=");
	}
	advance_positions(&s);
	text_add(out, "}\n\n");
}

void hls_feedback_call(
        const struct op *main, const char *name, const char *const *pointer, struct text *out)
{
	struct arena *arena = out->arena;
	int *port = ARENA_ARRAY(arena, int, main->region[0]->arguments + 1);
	int ports = touched_ports(main, port);
	text_add(out, "%s(", name);
	for (int i = 0; i < ports; i++)
		text_add(out, "%s, ", pointer[emit_argument(main, port[i])]);
	text_add(out, "token, given);\n");
}
