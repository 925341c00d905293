/* `stc model FILE.cpp`: times and resources of a design in HLS C++, from its pragmas. */
#include "driver/command_line.h"
#include "base/data.h"
#include "hls_model/hls_model.h"
#include "pipeline/session.h"
#include <stdlib.h>

static bool take_clock(struct session *session, struct model_options *options)
{
	const char *text = session->options.clock;
	char *end = NULL;
	options->period = 1000 / session->platform->clock_mhz;
	if (!text)
		return true;
	options->period = strtod(text, &end);
	if (end != text && !*end && options->period >= 0.1 && options->period <= 1000)
		return true;
	diag_error(&session->diag, NOWHERE, "--clock is '%s'", text);
	return diag_note(&session->diag, "accepted is a period in ns, as 3.33");
}

static struct c_list c_list_of(const struct option_list *list)
{
	return (struct c_list){ list->data, list->count };
}

static struct cpp_design *read_design(struct session *session)
{
	const struct options *options = &session->options;
	const char *name = text_same(options->file, "-") ? "<stdin>" : options->file;
	const char *reason;
	size_t size;
	const char *text = file_read(session->arena, options->file, &size, &reason);
	if (!text) {
		diag_error(&session->diag, (struct location){ .file = name }, "cannot be read: %s",
		        reason);
		return NULL;
	}
	struct module *module =
	        module_new(session->arena, &session->guard, &session->diag, LEVEL_TENSOR);
	const struct c_options reading = { options->top, c_list_of(&options->macro),
		c_list_of(&options->include), { 0 } };
	const struct c_source source = { name, text, size };
	return cpp_read(module, &reading, &source);
}

static void add_notes(struct session *session, const struct cpp_design *design)
{
	for (size_t i = 0; i < design->notes.count; i++) {
		const struct cpp_note *note = &design->notes.data[i];
		text_add(&session->notices, "%s:%d:%d: note: %s\n", note->location.file,
		        note->location.line, note->location.column, note->text);
	}
}

bool command_model(struct session *session)
{
	struct model_options options = { .reassociate = session->options.reassociate };
	if (!load_platform(session) || !take_clock(session, &options))
		return false;
	struct cpp_design *design = read_design(session);
	if (!design)
		return false;
	const struct model *model =
	        model_design(session->arena, design, session->platform, &options);
	add_notes(session, design);
	if (session->options.json)
		model_json(model, &session->out);
	else
		model_table(model, &session->out);
	return true;
}
