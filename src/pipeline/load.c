/* Reads the input module and the platform, and checks a module below tensor level. */
#include "base/data.h"
#include "pipeline/session.h"
#include "import/import.h"
#include "fifo/fifo.h"

#define DEFAULT_PLATFORM "u55c"

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
	session->module =
	        import_mlir(session->arena, &session->guard, &session->diag, name, text, size);
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
