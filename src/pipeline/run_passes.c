/* Runs passes of the table: verifies the module after each, writes dumps, and in stress mode checks
 * text and values. */
#define _POSIX_C_SOURCE 200809L
#include "pipeline/session.h"
#include "schedule/recorded_choices.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool write_file(struct session *session, const char *path, const char *data, size_t size)
{
	FILE *file = fopen(path, "wb");
	bool written = file && fwrite(data, 1, size, file) == size;
	if (file && fclose(file))
		written = false;
	return written ||
	        diag_error(&session->diag, (struct location){ .file = path },
	                "cannot be written: %s", strerror(errno));
}

static bool dump(struct session *session, int number, const char *name)
{
	const char *folder = session->options.dump_dir;
	if (!folder)
		return true;
	if (mkdir(folder, 0777) && errno != EEXIST)
		return diag_error(&session->diag, (struct location){ .file = folder },
		        "cannot be made: %s", strerror(errno));
	struct text text = text_new(session->arena);
	ir_print(session->module, &text);
	return write_file(session,
	        text_format(session->arena, "%s/%02d-%s.mlir", folder, number, name), text.data,
	        text.size);
}

/* A module that is invalid after a pass is a bug of the pass, not a fault of the input. */
static void verify(struct session *session, const struct pass *pass)
{
	int before = session->diag.count;
	bool fine = ir_verify(session->module) && session->module->level == pass->produced;
	if (fine)
		return;
	const char *why =
	        text_format(session->arena, "it left level %s", level_name(session->module->level));
	if (session->diag.count > before)
		why = session->diag.entry[before].message;
	session->diag.count = before;
	guard_leave(&session->guard, GUARD_INVARIANT, "%s", why);
}

static bool run_pass(struct session *session, const struct pass *pass)
{
	const struct options *options = &session->options;
	session->context = (struct pass_context){ .platform = session->platform,
		.choices = session->choices,
		.quant = session->quant,
		.images = options->images,
		.fifo_events = options->events,
		.parallelism_table = session->parallelism_table,
		.follows = session->follows,
		.search_cache = &session->search_cache,
		.lp = options->lp ? &session->lp : NULL,
		.dumped = session->read > LEVEL_TENSOR,
		.on_chip_bytes = session->context.on_chip_bytes,
		.least_on_chip_bytes = session->context.least_on_chip_bytes,
		.register_tiles = session->context.register_tiles,
		.limit = session->limit,
		.limited = options->limit[LIMIT_BRAM] || options->limit[LIMIT_URAM] };
	struct stress *stress = stress_on() ? stress_begin(session) : NULL;
	if (!session_stage(session, pass->name) || !pass->run(&session->context, session->module))
		return false;
	if (session->diag.count)
		return false;
	verify(session, pass);
	if (stress)
		stress_check(session, stress, pass);
	return true;
}

bool run_passes(struct session *session, int first, int last)
{
	if (!first && !dump(session, 0, "import"))
		return false;
	if (first <= pass_choosing())
		forget_recorded_choices(session->module);
	for (int i = first; i <= last; i++)
		if (!run_pass(session, &passes[i]) || !dump(session, i + 1, passes[i].name))
			return false;
	return true;
}
