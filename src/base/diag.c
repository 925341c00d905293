/* Stores and prints diagnostics. */
#include "base/diag.h"

static struct diag_entry *last(struct diag *diag)
{
	return diag->dropped ? NULL : &diag->entry[diag->count - 1];
}

bool diag_error(struct diag *diag, struct location location, const char *format, ...)
{
	if (diag->count == DIAG_MOST) {
		diag->dropped++;
		return false;
	}
	struct text text = text_new(diag->arena);
	va_list arguments;
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	diag->entry[diag->count++] =
	        (struct diag_entry){ .location = location, .message = text.data };
	return false;
}

bool diag_note(struct diag *diag, const char *format, ...)
{
	struct diag_entry *entry = diag->count ? last(diag) : NULL;
	if (!entry)
		return false;
	struct text text = text_new(diag->arena);
	va_list arguments;
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	entry->note = text.data;
	return false;
}

void diag_print(const struct diag *diag, struct text *out)
{
	for (int i = 0; i < diag->count; i++) {
		const struct diag_entry *entry = &diag->entry[i];
		const struct location *at = &entry->location;
		if (!at->file)
			text_add(out, "stc: error: %s\n", entry->message);
		else if (!at->line)
			text_add(out, "%s: error: %s\n", at->file, entry->message);
		else
			text_add(out, "%s:%d:%d: error: %s\n", at->file, at->line, at->column,
			        entry->message);
		if (entry->note)
			text_add(out, "note: %s\n", entry->note);
	}
	if (diag->dropped)
		text_add(out, "stc: error: %d more\n", diag->dropped);
}
