/* The small commands, and what commands share: reading the module and the platform. */
#include "base/data.h"
#include "base/json.h"
#include "driver/session.h"
#include "frontend/import.h"
#include "pass/fifo.h"

#define DEFAULT_PLATFORM "u55c"
#define MLIR_VERSION "19"

/* A module below tensor level that is read has all that the passes before would have written; parts of one may lack it. */
static bool is_whole(struct session *session)
{
	static const char *const lists[] = {"stream.inputs", "stream.outputs", "stream.buffers"};
	const struct op *main = module_main(session->module);
	enum level level = session->module->level;
	int count = level == LEVEL_TENSOR ? 0 : level == LEVEL_STREAM ? 2 : 3;
	for (int i = 0; i < count; i++)
		if (!attr_get(main, lists[i])) {
			diag_error(&session->diag, main->location, "the function '%s' has no list %s", attr_text_or(main, "sym_name", ""), lists[i]);
			return diag_note(&session->diag, "a dump has it, empty where there are none; docs/ir.md says what is in it");
		}
	return true;
}

bool load_module(struct session *session, const char *file)
{
	const char *reason, *name = text_same(file, "-") ? "<stdin>" : file;
	size_t size;
	if (!session_stage(session, "read"))
		return false;
	const char *text = file_read(session->arena, file, &size, &reason);
	if (!text)
		return diag_error(&session->diag, (struct location){.file = name}, "cannot be read: %s", reason);
	session->module = import_mlir(session->arena, &session->guard, &session->diag, name, text, size);
	session->read = session->module ? session->module->level : LEVEL_TENSOR;
	return session->module && ir_verify(session->module) && !session->diag.count && is_whole(session);
}

bool load_platform(struct session *session)
{
	const char *name = session->options.platform;
	session->platform = platform_load(session->arena, &session->diag, name ? name : DEFAULT_PLATFORM);
	if (session->platform && !name)
		text_add(&session->notices, "stc: platform %s (--platform chooses another)\n", DEFAULT_PLATFORM);
	return session->platform != NULL;
}

/* Which platform times are of is all the same to the words. */
bool check_words(struct session *session, bool depths)
{
	struct pass_context context = {.platform = session->platform};
	if (session->module->level != LEVEL_HARDWARE)
		return true;
	if (!context.platform && !(context.platform = platform_load(session->arena, &session->diag, DEFAULT_PLATFORM)))
		return false;
	return fifo_check(&context, session->module, depths);
}

static void count_op(struct op *op, void *count)
{
	(void)op;
	++*(int *)count;
}

bool command_check(struct session *session)
{
	int count = 0;
	if (!load_module(session, session->options.file) || !check_words(session, true))
		return false;
	ir_walk(module_body(session->module), count_op, &count);
	text_add(&session->out, "%s: level %s, %d operations, valid\n", session->options.file, level_name(session->module->level), count);
	return true;
}

static void list_platform(struct session *session, const struct platform *platform)
{
	struct resources all = platform_total(platform);
	text_add(&session->out, "%-10s %-26s %d die%s  %lld LUT  %lld DSP  %lld BRAM18  %lld URAM  %d x %.4g GB/s  %d port%s  %g MHz\n", platform->name, platform->part,
		 platform->dies, platform->dies > 1 ? "s" : " ", (long long)all.lut, (long long)all.dsp, (long long)all.bram18, (long long)all.uram,
		 platform->channels, platform->channel_gbps, platform->ports, platform->ports > 1 ? "s" : "", platform->clock_mhz);
}

static void list_platform_json(struct session *session, const struct platform *platform)
{
	struct resources all = platform_total(platform);
	text_add(&session->out, "{\"name\": ");
	json_quote(&session->out, platform->name);
	text_add(&session->out, ", \"part\": ");
	json_quote(&session->out, platform->part);
	text_add(&session->out, ", \"dies\": %d, \"lut\": %lld, \"dsp\": %lld, \"bram18\": %lld, \"uram\": %lld, \"channels\": %d, \"channel_gbps\": %.6g, \"ports\": %d, \"clock_mhz\": %.6g}", platform->dies,
		 (long long)all.lut, (long long)all.dsp, (long long)all.bram18, (long long)all.uram, platform->channels, platform->channel_gbps, platform->ports, platform->clock_mhz);
}

/* All, or the one that is named. */
bool command_platforms(struct session *session)
{
	const char *const *names = &session->options.platform;
	int count = session->options.platform ? 1 : platform_names(session->arena, &names);
	bool json = session->options.json;
	for (int i = 0; i < count; i++) {
		const struct platform *platform = platform_load(session->arena, &session->diag, names[i]);
		if (!platform)
			continue;
		text_add(&session->out, "%s", !json ? "" : i ? ",\n " : "[");
		(json ? list_platform_json : list_platform)(session, platform);
	}
	text_add(&session->out, json ? "]\n" : "");
	return !session->diag.count;
}

bool command_passes(struct session *session)
{
	for (int i = 0; i < pass_count; i++) {
		const struct pass *pass = &passes[i];
		text_add(&session->out, "%-16s %s -> %s, %s\n    needs: %s\n    guarantees: %s\n", pass->name, level_name(pass->needed), level_name(pass->produced),
			 numeric_name[pass->numeric], pass->needs, pass->guarantees);
	}
	return true;
}

bool command_help(struct session *session)
{
	const char *name = session->options.file;
	const struct command *command = name ? command_find(name) : NULL;
	if (name && !command) {
		diag_error(&session->diag, NOWHERE, "unknown command '%s'", name);
		return diag_note(&session->diag, "`stc --help` lists all");
	}
	options_help(&session->out, command);
	return true;
}

void version_text(struct text *out)
{
	text_add(out, "stc %s, MLIR %s, design %d\n", STC_VERSION, MLIR_VERSION, DESIGN_VERSION);
}
