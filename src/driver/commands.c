/* The small commands: check, platforms, passes and help. */
#include "driver/command_line.h"
#include "base/data.h"
#include "base/json.h"
#include "pipeline/session.h"
#include "import/import.h"
#include "fifo/fifo.h"

#define MLIR_VERSION "19"

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
	text_add(&session->out, "%s: level %s, %d operations, valid\n", session->options.file,
	        level_name(session->module->level), count);
	return true;
}

static void list_platform(struct session *session, const struct platform *platform)
{
	struct resources all = platform_total(platform);
	text_add(&session->out,
	        "%-10s %-26s %d die%s  %lld LUT  %lld DSP  %lld BRAM18  %lld URAM  %d x %.4g GB/s  "
	        "%d port%s  %g MHz\n",
	        platform->name, platform->part, platform->dies, platform->dies > 1 ? "s" : " ",
	        (long long)all.lut, (long long)all.dsp, (long long)all.bram18, (long long)all.uram,
	        platform->channels, platform->channel_gbps, platform->ports,
	        platform->ports > 1 ? "s" : "", platform->clock_mhz);
}

static void list_platform_json(struct session *session, const struct platform *platform)
{
	struct resources all = platform_total(platform);
	text_add(&session->out, "{\"name\": ");
	json_quote(&session->out, platform->name);
	text_add(&session->out, ", \"part\": ");
	json_quote(&session->out, platform->part);
	text_add(&session->out,
	        ", \"dies\": %d, \"lut\": %lld, \"dsp\": %lld, \"bram18\": %lld, \"uram\": %lld, "
	        "\"channels\": %d, \"channel_gbps\": %.6g, \"ports\": %d, \"clock_mhz\": %.6g}",
	        platform->dies, (long long)all.lut, (long long)all.dsp, (long long)all.bram18,
	        (long long)all.uram, platform->channels, platform->channel_gbps, platform->ports,
	        platform->clock_mhz);
}

/* Lists all platforms, or the one that --platform names. */
bool command_platforms(struct session *session)
{
	const char *const *names = &session->options.platform;
	int count = session->options.platform ? 1 : platform_names(session->arena, &names);
	bool json = session->options.json;
	for (int i = 0; i < count; i++) {
		const struct platform *platform =
		        platform_load(session->arena, &session->diag, names[i]);
		if (!platform)
			continue;
		if (!json) {
			list_platform(session, platform);
			continue;
		}
		text_add(&session->out, "%s", i ? ",\n " : "[");
		list_platform_json(session, platform);
	}
	text_add(&session->out, json ? "]\n" : "");
	return !session->diag.count;
}

bool command_passes(struct session *session)
{
	for (int i = 0; i < pass_count; i++) {
		const struct pass *pass = &passes[i];
		text_add(&session->out, "%-16s %s -> %s, %s\n    needs: %s\n    guarantees: %s\n",
		        pass->name, level_name(pass->needed), level_name(pass->produced),
		        numeric_name[pass->numeric], pass->needs, pass->guarantees);
	}
	return true;
}

bool command_help(struct session *session)
{
	const char *name = session->options.file;
	const struct command *command = name ? command_find(name) : NULL;
	if (name && !command)
		return command_unknown(&session->diag, name);
	options_help(&session->out, command, session->options.help_expert);
	return true;
}

void version_text(struct text *out)
{
	text_add(out, "stc %s, MLIR %s, design %d\n", STC_VERSION, MLIR_VERSION, DESIGN_VERSION);
}
