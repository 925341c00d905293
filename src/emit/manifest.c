/* Writes manifest.json: the inputs, outputs, buffers and ports of a design for the runtime. */
#include "base/json.h"
#include "emit/emit.h"
#include "platform/platform.h"
#include "predict/feedback.h"

/* What the parts of a manifest are made of. */
struct manifest {
	const struct platform *platform;
	int ports; /* of the kernel */
	const struct kernel_port *kernel;
};

static void add_integers(const int64_t *integers, int count, struct text *out)
{
	text_add(out, "[");
	for (int i = 0; i < count; i++)
		text_add(out, "%s%lld", i ? "," : "", (long long)integers[i]);
	text_add(out, "]");
}

static void add_member(const char *key, const char *text, struct text *out)
{
	text_add(out, "\"%s\":", key);
	json_quote(out, text);
}

static void add_tensor(const struct attr *entry, struct text *out)
{
	static const struct {
		enum attr_key key;
		const char *member;
	} flag[] = { { KEY_MORE_CHUNKS, "more_chunks" },
		{ KEY_LAST_CHUNK_ONLY, "last_chunk_only" } };
	const struct type *type = attr_item(entry, KEY_TYPE)->type;
	const struct attr *axis = attr_item(entry, KEY_AXIS);
	const struct attr *at = attr_item(entry, KEY_POSITION);
	const struct attr *rows = attr_item(entry, KEY_TOKEN_COUNT);
	const struct attr *lead = attr_item(entry, KEY_LEAD);
	const struct attr *past = attr_item(entry, KEY_PAST);
	const struct attr *step = attr_item(entry, KEY_STEP);
	text_add(out, "{");
	add_member("name", attr_item(entry, KEY_NAME)->text, out);
	text_add(out, ",");
	add_member("role", attr_item(entry, KEY_ROLE)->text, out);
	text_add(out, ",\"dtype\":\"%s\",\"shape\":", type_scalar(type)->text);
	add_integers(type->shape, type->rank, out);
	if (axis)
		text_add(out, ",\"axis\":%lld", (long long)axis->integer);
	if (step)
		text_add(out, ",\"step\":%lld", (long long)step->integer);
	if (axis && at) {
		text_add(out, ",");
		add_member("position", at->text, out);
		if (lead)
			text_add(out, ",\"lead\":%lld", (long long)lead->integer);
		if (past)
			text_add(out, ",\"past\":%lld", (long long)past->integer);
	}
	if (rows) {
		text_add(out, ",");
		add_member("token_count", rows->text, out);
	}
	for (int i = 0; i < (int)(sizeof flag / sizeof *flag); i++)
		if (attr_item(entry, flag[i].key))
			text_add(out, ",\"%s\":true", flag[i].member);
	text_add(out, "}");
}

static void add_tensors(const char *key, const struct attr *list, struct text *out)
{
	int count = 0;
	text_add(out, "\"%s\":[", key);
	for (int i = 0; i < list->count; i++) {
		if (text_same(attr_item(list->items[i].value, KEY_ROLE)->text, "constant"))
			continue;
		text_add(out, "%s\n  ", count++ ? "," : "");
		add_tensor(list->items[i].value, out);
	}
	text_add(out, "],\n");
}

static void add_segment(const struct attr *segment, struct text *out)
{
	const struct attr *trips = attr_item(segment, KEY_TRIPS);
	const struct attr *strides = attr_item(segment, KEY_STRIDES);
	const struct attr *conditions = attr_item(segment, KEY_CONDITIONS);
	text_add(out, "{");
	add_member("name", attr_item(segment, KEY_NAME)->text, out);
	text_add(out, ",");
	add_member("role", attr_item(segment, KEY_ROLE)->text, out);
	text_add(out, ",\"offset\":%lld,\"base\":%lld,\"trips\":",
	        (long long)attr_item(segment, KEY_OFFSET)->integer,
	        (long long)attr_item(segment, KEY_BASE)->integer);
	add_integers(trips->integers, trips->count, out);
	if (attr_item(segment, KEY_RUN))
		text_add(out, ",\"run\":%lld,\"pitch\":%lld",
		        (long long)attr_item_integer(segment, KEY_RUN, 0),
		        (long long)attr_item_integer(segment, KEY_PITCH, 0));
	text_add(out, ",\"strides\":");
	add_integers(strides->integers, strides->count, out);
	text_add(out, ",\"conditions\":[");
	for (int c = 0; conditions && c < conditions->count; c++) {
		text_add(out, "%s", c ? "," : "");
		add_integers(conditions->items[c].value->integers,
		        conditions->items[c].value->count, out);
	}
	text_add(out, "]}");
}

static void add_buffer(const struct attr *buffer, struct text *out)
{
	const struct type *word = attr_item(buffer, KEY_WORD)->type;
	const struct attr *segments = attr_item(buffer, KEY_SEGMENTS);
	int64_t bytes = emit_bytes(word);
	int64_t words = attr_item(buffer, KEY_WORDS)->integer;
	text_add(out, "{");
	add_member("name", attr_item(buffer, KEY_NAME)->text, out);
	/* a single i4 takes a whole byte */
	bool padded = text_same(type_scalar(word)->text, "i4") && bytes == type_elements(word);
	const struct attr *same = attr_item(buffer, KEY_SAME_AS);
	if (same) {
		text_add(out, ",");
		add_member("same_as", same->text, out);
	}
	text_add(out, ",\"bytes\":%lld,\"word_bytes\":%lld,\"dtype\":\"%s\",\"segments\":[",
	        (long long)(bytes * words), (long long)bytes,
	        padded ? "i8" : type_scalar(word)->text);
	for (int s = 0; s < segments->count; s++) {
		text_add(out, "%s\n    ", s ? "," : "");
		add_segment(segments->items[s].value, out);
	}
	text_add(out, "]}");
}

static void add_port(
        const struct manifest *manifest, struct memory_port port, int argument, struct text *out)
{
	struct channel_range range = emit_channels(
	        manifest->kernel, manifest->ports, &manifest->kernel[argument], manifest->platform);
	text_add(out, "{");
	add_member("name", port.name, out);
	text_add(out, ",\"argument\":%d,", argument);
	add_member("buffer", port.buffer, out);
	text_add(out, ",\"channel\":%lld,\"channels\":[%lld,%lld],\"direction\":\"%s\"}",
	        (long long)port.channel, (long long)range.first, (long long)range.last,
	        port.write ? "write" : "read");
}

static void add_feedback(const struct op *main, struct text *out)
{
	struct feedback feedback;
	if (!feedback_read(main, &feedback))
		return;
	text_add(out, ",\n\"feedback\":{");
	add_member("input", feedback.input, out);
	text_add(out, ",");
	add_member("output", feedback.output, out);
	text_add(out, ",");
	if (feedback.rows) {
		add_member("token_count", feedback.rows, out);
		text_add(out, ",");
	}
	add_member("buffer", feedback.buffer, out);
	text_add(out, ",\"offset\":%lld,\"most\":%lld}", (long long)feedback.offset,
	        (long long)feedback.most);
}

static void add_signature(
        const struct manifest *manifest, const struct module *module, struct text *out)
{
	const struct op *main = module_main(module);
	const struct attr *buffers = attr_get(main, KEY_STREAM_BUFFERS);
	add_tensors("inputs", attr_get(main, KEY_STREAM_INPUTS), out);
	add_tensors("outputs", attr_get(main, KEY_STREAM_OUTPUTS), out);
	text_add(out, "\"buffers\":[");
	for (int b = 0; b < buffers->count; b++) {
		text_add(out, "%s\n  ", b ? "," : "");
		add_buffer(buffers->items[b].value, out);
	}
	text_add(out, "],\n\"ports\":[");
	for (int i = 0; i < emit_ports(module); i++) {
		text_add(out, "%s\n  ", i ? "," : "");
		add_port(manifest, emit_port(main, i), emit_argument(main, i), out);
	}
	text_add(out, "]");
	add_feedback(main, out);
}

void emit_manifest(const struct phases *phases, const struct platform *platform, const char *design,
        bool packed, struct text *out)
{
	struct manifest manifest = { .platform = platform };
	manifest.ports = emit_kernel_ports(out->arena, phases, &manifest.kernel);
	text_add(out, MANIFEST_BEGIN "%s\",\"design\":%d,\n", STC_VERSION, DESIGN_VERSION);
	add_member("name", design, out);
	text_add(out, ",");
	add_member("top", emit_top_name(out->arena, design), out);
	text_add(out, ",");
	add_member("memory", platform->memory_tag, out);
	text_add(out, ",\"clock_mhz\":%.10g", platform->clock_mhz);
	text_add(out, ",\"packed\":%s,\n", packed ? "true" : "false");
	if (phases->count == 1)
		add_signature(&manifest, phases->phase[0].module, out);
	for (int p = 0; phases->count > 1 && p < phases->count; p++) {
		text_add(out, p ? ",\n" : "\"phases\":[");
		text_add(out, "{");
		add_member("name", phases->phase[p].name, out);
		text_add(out, ",\n");
		add_signature(&manifest, phases->phase[p].module, out);
		text_add(out, "}");
	}
	text_add(out, phases->count > 1 ? "],\n" : ",\n");
}
