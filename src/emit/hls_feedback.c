/* What a design does behind every token, when its processes have ended: the next number of the text goes where they read it, and positions move on.
 * The text is the host's as far as it gives it, then what the design put out.  Where rows count, the next number is the first row's, and the only one that counts. */
#include "emit/hls.h"
#include "model/feedback.h"
#include "model/segment.h"

struct step {
	struct emitter *e;
	const struct op *main;
	struct feedback feedback;
	const char *const *name;  /* of the top function's pointers */
	struct text *out;
};

struct cell {                 /* an element in memory */
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

static struct cell cell_at(const struct step *s, const char *buffer, const char *index)
{
	int port = port_of(s->main, buffer);
	return (struct cell){.pointer = s->name[emit_argument(s->main, port)], .index = index, .word = emit_port(s->main, port).word};
}

/* Of the text: number `element` of the token behind the one at hand. */
static struct cell text_cell(const struct step *s, int64_t element)
{
	int64_t first = s->feedback.offset + s->feedback.elements + element;
	const char *all = s->feedback.elements > 1 ? text_format(s->e->arena, "%lld * ", (long long)s->feedback.elements) : "";
	return cell_at(s, s->feedback.buffer, text_format(s->e->arena, "%lld + %stoken", (long long)first, all));
}

static const char *value_of(const struct step *s, struct cell cell)
{
	long long lanes = type_lanes(cell.word);
	return lanes > 1 ? text_format(s->e->arena, "%s[(%s) / %lld][(%s) %% %lld]", cell.pointer, cell.index, lanes, cell.index, lanes) : text_format(s->e->arena, "%s[%s]", cell.pointer, cell.index);
}

/* Of a word of memory no part is written alone. */
static void write_cell(const struct step *s, struct cell cell, const char *how, const char *value)
{
	long long lanes = type_lanes(cell.word);
	if (lanes == 1) {
		text_add(s->out, "\t%s[%s] %s %s;\n", cell.pointer, cell.index, how, value);
		return;
	}
	text_add(s->out, "\t{\n\t\t%s word = %s[(%s) / %lld];\n\t\tword[(%s) %% %lld] %s %s;\n", hls_type(s->e, cell.word), cell.pointer, cell.index, lanes, cell.index, lanes, how, value);
	text_add(s->out, "\t\t%s[(%s) / %lld] = word;\n\t}\n", cell.pointer, cell.index, lanes);
}

static const char *next_name(const struct step *s, int64_t element)
{
	return s->feedback.elements > 1 ? text_format(s->e->arena, "next%lld", (long long)element) : "next";
}

typedef void visitor(const struct step *s, struct cell cell, int64_t element, const char *how);

/* Of every element of the segment, which of the host's tensor it is, from 1; 0: padding. */
static int64_t *host_numbers(struct arena *arena, struct segment segment, int64_t elements)
{
	int64_t *number = ARENA_ARRAY(arena, int64_t, elements + 1), *at = ARENA_ARRAY(arena, int64_t, segment_elements(&segment) + 1);
	for (int64_t n = 0; n < elements; n++)
		number[n] = n + 1;
	segment.host_bytes = segment.image_bytes = (int)sizeof *number;
	segment_pack(&segment, number, at, segment.offset, 0, segment_elements(&segment));
	return at;
}

static int64_t elements_of(const struct step *s, const char *name, bool output)
{
	return type_elements(attr_item(attr_entry(attr_get(s->main, output ? "stream.outputs" : "stream.inputs"), name), "type")->type);
}

/* Every place in memory of the tensor. */
static void visit(const struct step *s, const char *name, bool output, visitor *act, const char *how)
{
	const struct attr *buffers = attr_get(s->main, "stream.buffers");
	for (int b = 0; b < buffers->count; b++) {
		const struct attr *buffer = buffers->items[b].value, *segments = attr_item(buffer, "segments");
		for (int i = 0; i < segments->count; i++) {
			struct segment segment;
			if (!feedback_is_of(segments->items[i].value, name, output) || segment_read(s->e->arena, segments->items[i].value, &segment))
				continue;
			const int64_t *number = host_numbers(s->e->arena, segment, elements_of(s, name, output));
			for (int64_t n = 0; n < segment_elements(&segment); n++)
				if (number[n])
					act(s, cell_at(s, attr_item_text(buffer, "name"), text_format(s->e->arena, "%lld", (long long)(segment.offset + n))), number[n] - 1, how);
		}
	}
}

static void choose_next(const struct step *s, struct cell cell, int64_t element, const char *how)
{
	struct cell text = text_cell(s, element);
	const char *type = hls_type(s->e, type_scalar(text.word)), *next = next_name(s, element);
	(void)how;
	text_add(s->out, "\tconst %s %s = token + 1 < given ? %s : (%s)%s;\n", type, next, value_of(s, text), type, value_of(s, cell));
	write_cell(s, text, "=", next);
}

static void set_input(const struct step *s, struct cell cell, int64_t element, const char *how)
{
	int64_t fed = feedback_element(&s->feedback, element);
	if (fed >= 0)
		write_cell(s, cell, how, next_name(s, fed));
}

static void add_step(const struct step *s, struct cell cell, int64_t element, const char *how)
{
	(void)element;
	write_cell(s, cell, "+=", how);
}

/* A tensor may lie in several places; each gives its number. */
static void read_rows(const struct step *s, struct cell cell, int64_t element, const char *how)
{
	(void)element;
	text_add(s->out, "\t%s = (int)%s;\n", how, value_of(s, cell));
}

static void one_row(const struct step *s, struct cell cell, int64_t element, const char *how)
{
	(void)element;
	write_cell(s, cell, how, "1");
}

static void go_on(const struct step *s)
{
	const struct attr *inputs = attr_get(s->main, "stream.inputs");
	const char *rows = s->feedback.rows;
	if (rows) {
		text_add(s->out, "\tint rows = 1;\n");
		visit(s, rows, false, read_rows, "rows");
	}
	for (int i = 0; i < inputs->count; i++) {
		long long step = feedback_step(inputs->items[i].value);
		if (step)
			visit(s, attr_item_text(inputs->items[i].value, "name"), false, add_step, text_format(s->e->arena, rows ? "%lld * rows" : "%lld", step));
	}
	if (rows)
		visit(s, rows, false, one_row, "=");
}

static int touched(const struct op *main, int *port)
{
	const struct attr *buffers = attr_get(main, "stream.buffers");
	int count = 0;
	for (int b = 0; b < buffers->count; b++) {
		const char *name = attr_item_text(buffers->items[b].value, "name");
		if (feedback_touches(main, name))
			port[count++] = port_of(main, name);
	}
	return count;
}

void hls_feedback(struct emitter *e, const char *name, const char *const *pointer, struct text *out)
{
	struct step s = {.e = e, .main = e->main, .name = pointer, .out = out};
	int *port = ARENA_ARRAY(e->arena, int, emit_ports(e->module) + 1), ports = touched(e->main, port);
	feedback_read(e->main, &s.feedback);
	text_add(out, "static void %s(", name);
	for (int i = 0; i < ports; i++)
		text_add(out, "%s *%s, ", hls_port_type(e, emit_port(e->main, port[i]).word), pointer[emit_argument(e->main, port[i])]);
	text_add(out, "int token, int given)\n{\n#pragma HLS inline off\n");
	visit(&s, s.feedback.output, true, choose_next, "");
	visit(&s, s.feedback.input, false, set_input, "=");
	go_on(&s);
	text_add(out, "}\n\n");
}

void hls_feedback_call(const struct op *main, const char *name, const char *const *pointer, struct text *out)
{
	struct arena *arena = out->arena;
	int *port = ARENA_ARRAY(arena, int, main->region[0]->arguments + 1), ports = touched(main, port);
	text_add(out, "%s(", name);
	for (int i = 0; i < ports; i++)
		text_add(out, "%s, ", pointer[emit_argument(main, port[i])]);
	text_add(out, "token, given);\n");
}
