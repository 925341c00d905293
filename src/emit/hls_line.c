/* Writes the lines of a process's body.  Copies between consecutive elements are collected until
 * their number is known, and more than two become an unrolled loop. */
#include "emit/hls.h"
#include <stdlib.h>
#include <string.h>

const char *hls_margin(struct emitter *e)
{
	struct text margin = text_new(e->arena);
	text_add(&margin, "%s", "");
	for (int i = 0; i < e->indent; i++)
		text_add(&margin, "\t");
	return margin.data;
}

static void add_line(struct emitter *e, const char *text)
{
	for (int i = 0; i < e->indent; i++)
		text_add(&e->body, "\t");
	text_add(&e->body, "%s\n", text);
}

/* The element `step` places after `element`: array[4] and 3 give array[7], array[i] and 3 give
 * array[i + 3].  With a name, which then replaces the step: array[l + 4] or array[i + l]. */
static const char *element_after(
        struct emitter *e, const char *element, int64_t step, const char *name)
{
	size_t size = strlen(element);
	size_t digits = size - 1;
	if (!size || element[size - 1] != ']')
		return element;
	while (digits && element[digits - 1] >= '0' && element[digits - 1] <= '9')
		digits--;
	bool number = digits < size - 1 && digits &&
	        (element[digits - 1] == '[' || element[digits - 1] == ' ');
	bool sum = number && digits >= 3 && !strncmp(element + digits - 3, " + ", 3);
	if (number && element[digits - 1] == ' ' && !sum)
		number = false;
	int64_t first = number ? strtoll(element + digits, NULL, 10) : 0;
	size_t head_size = size - 1;
	if (number)
		head_size = sum ? digits - 3 : digits;
	const char *head = text_copy(e->arena, element, head_size);
	bool empty = number && !sum;
	const char *plus = empty ? "" : " + ";
	if (name && first)
		return text_format(e->arena, "%s%s%s + %lld]", head, plus, name, (long long)first);
	if (name)
		return text_format(e->arena, "%s%s%s]", head, plus, name);
	if (!(first + step) && !empty)
		return element;
	return text_format(e->arena, "%s%s%lld]", head, plus, (long long)(first + step));
}

static void write_run(struct emitter *e)
{
	int64_t count = e->run_count;
	e->run_count = 0;
	bool loop = count > 2;
	if (loop) {
		add_line(e,
		        text_format(
		                e->arena, "for (int l = 0; l < %lld; l++) {", (long long)count));
		text_add(&e->body, "#pragma HLS unroll\n");
		e->indent++;
	}
	for (int64_t i = 0; i < (loop ? 1 : count); i++) {
		const char *name = loop ? "l" : NULL;
		add_line(e,
		        text_format(e->arena, "%s = %s;", element_after(e, e->run_target, i, name),
		                element_after(e, e->run_source, i, name)));
	}
	if (loop) {
		e->indent--;
		add_line(e, "}");
	}
}

void hls_flush(struct emitter *e)
{
	if (e->run_count)
		write_run(e);
}

void hls_copy(struct emitter *e, const char *target, const char *source)
{
	int64_t n = e->run_count;
	bool next = n && !strcmp(element_after(e, e->run_target, n, NULL), target) &&
	        !strcmp(element_after(e, e->run_source, n, NULL), source) &&
	        target[strlen(target) - 1] == ']' && source[strlen(source) - 1] == ']';
	if (!next) {
		hls_flush(e);
		e->run_target = target;
		e->run_source = source;
	}
	e->run_count++;
}

void hls_line(struct emitter *e, const char *format, ...)
{
	va_list arguments;
	hls_flush(e);
	va_start(arguments, format);
	for (int i = 0; i < e->indent; i++)
		text_add(&e->body, "\t");
	text_add_arguments(&e->body, format, arguments);
	text_add(&e->body, "\n");
	va_end(arguments);
}
