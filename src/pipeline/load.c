/* Reads the input module and the platform, and checks a module below tensor level. */
#include "base/data.h"
#include "pipeline/session.h"
#include "import/import.h"
#include "raise/raise.h"
#include "frontend/frontend.h"
#include "fifo/fifo.h"

/* A module read below tensor level needs the lists that earlier passes would have written; a part
 * of a dump may lack them. */
static bool is_whole(struct session *session)
{
	static const enum attr_key lists[] = { KEY_STREAM_INPUTS, KEY_STREAM_OUTPUTS,
		KEY_STREAM_BUFFERS };
	const struct op *main = module_main(session->module);
	enum level level = session->module->level;
	int count = 3;
	if (level == LEVEL_TENSOR)
		count = 0;
	else if (level != LEVEL_HARDWARE)
		count = 2;
	for (int i = 0; i < count; i++)
		if (!attr_get(main, lists[i])) {
			diag_error(&session->diag, main->location,
			        "the function '%s' has no list %s",
			        attr_text_or(main, KEY_SYM_NAME, ""), key_name(lists[i]));
			return diag_note(&session->diag,
			        "a dump has it, empty where there are none; docs/ir.md says what "
			        "is in it");
		}
	return true;
}

static void add_notes(struct session *session, const struct region *region)
{
	for (size_t i = 0; i < region->notes.count; i++) {
		const struct region_note *note = &region->notes.data[i];
		text_add(&session->notices, "%s:%d:%d: note: %s\n", note->location.file,
		        note->location.line, note->location.column, note->message);
	}
}

static struct c_list c_list_of(const struct option_list *list)
{
	return (struct c_list){ list->data, list->count };
}

/* What the operators of a sequential nest may take: it is one process, and stands on one die. */
static void limit_nests(const struct session *session, struct raise_options *raising)
{
	const struct platform *platform = session->platform;
	if (!platform)
		return;
	struct resources die = platform->die[0];
	raising->dsp = choice_resolve(&session->choices, platform, CHOICE_DSP);
	raising->lut = choice_resolve(&session->choices, platform, CHOICE_LUT);
	if (session->limit.dsp && session->limit.dsp < raising->dsp)
		raising->dsp = session->limit.dsp;
	raising->dsp = die.dsp < raising->dsp ? die.dsp : raising->dsp;
	raising->lut = die.lut / 2 < raising->lut ? die.lut / 2 : raising->lut;
}

/* A function of C as a module of kernels. */
static struct module *load_c(struct session *session, const struct c_source *source)
{
	const struct options *options = &session->options;
	struct module *module =
	        module_new(session->arena, &session->guard, &session->diag, LEVEL_TENSOR);
	const struct c_options reading = { options->top, c_list_of(&options->macro),
		c_list_of(&options->include), c_list_of(&options->define) };
	struct raise_options raising = { .reassociate = options->reassociate,
		.platform = session->platform };
	limit_nests(session, &raising);
	const struct region *region = c_read(module, &reading, source);
	if (!region || !raise_region(module, region, &raising))
		return NULL;
	add_notes(session, region);
	return module;
}

/* Options that say how C is read mean nothing for MLIR, so whoever gives one meant another file. */
static bool refuse_c_options(struct session *session, const char *file)
{
	const struct options *options = &session->options;
	const struct {
		bool is_set;
		const char *name;
	} of_c[] = { { options->top, "top" }, { options->macro.count, "macro" },
		{ options->include.count, "include" }, { options->define.count, "define" },
		{ options->reassociate, "reassociate" } };
	for (size_t i = 0; i < sizeof of_c / sizeof *of_c; i++)
		if (of_c[i].is_set) {
			diag_error(&session->diag, (struct location){ .file = file },
			        "--%s is an option of C, and this is read as MLIR", of_c[i].name);
			return !diag_note(&session->diag, "a file whose name ends in .c");
		}
	return false;
}

static struct module *load_text(struct session *session, const struct c_source *source)
{
	if (c_is_source(source->file))
		return load_c(session, source);
	if (refuse_c_options(session, source->file))
		return NULL;
	return import_mlir(session->arena, &session->guard, &session->diag, source->file,
	        source->text, source->size);
}

bool load_module(struct session *session, const char *file)
{
	const char *reason;
	const char *name = text_same(file, "-") ? "<stdin>" : file;
	size_t size;
	if (!session_stage(session, "read"))
		return false;
	const char *text = file_read(session->arena, file, &size, &reason);
	if (!text)
		return diag_error(&session->diag, (struct location){ .file = name },
		        "cannot be read: %s", reason);
	const struct c_source source = { name, text, size };
	session->module = load_text(session, &source);
	session->read = session->module ? session->module->level : LEVEL_TENSOR;
	return session->module && ir_verify(session->module) && !session->diag.count &&
	        is_whole(session);
}

bool load_platform(struct session *session)
{
	const char *name = session->options.platform;
	session->platform =
	        platform_load(session->arena, &session->diag, name ? name : DEFAULT_PLATFORM);
	if (session->platform && !name)
		text_add(&session->notices, "stc: platform %s (--platform chooses another)\n",
		        DEFAULT_PLATFORM);
	return session->platform != NULL;
}

/* Numbers of words do not depend on the platform, so any will do. */
bool check_words(struct session *session, bool depths)
{
	struct pass_context context = { .platform = session->platform };
	if (session->module->level != LEVEL_HARDWARE)
		return true;
	if (!context.platform &&
	        !(context.platform =
	                        platform_load(session->arena, &session->diag, DEFAULT_PLATFORM)))
		return false;
	return fifo_check(&context, session->module, depths);
}
