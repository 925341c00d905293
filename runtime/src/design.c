/* Copies host tensors to and from the buffers of a design, and runs launches. */
#define _POSIX_C_SOURCE 200809L
#include "design.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct device_class *const classes[] = { &device_cpu, &device_cpu_once, &device_xrt };

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Reads a device name, CLASS or CLASS:INDEX. */
static const struct device_class *class_named(const char *name, int *index)
{
	size_t size = strcspn(name, ":");
	char *end = "";
	*index = name[size] ? (int)strtol(name + size + 1, &end, 10) : 0;
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (strlen(classes[i]->name) == size && !strncmp(classes[i]->name, name, size) &&
		        !*end && *index >= 0)
			return classes[i];
	return NULL;
}

bool design_open(struct design *design, const char *folder, const char *cache)
{
	design->folder = text_copy(design->arena, folder, strlen(folder));
	if (!manifest_read(design))
		return false;
	design->program.cache = cache_folder(design->arena, design->diag, cache);
	return design->program.cache && check_files(design, design->program.cache);
}

bool design_start(struct design *design, const char *device)
{
	const struct device_class *class = class_named(device, &design->program.index);
	if (!class) {
		diag_error(design->diag, NOWHERE, "unknown device '%s'", device);
		return diag_note(design->diag,
		        "cpu, cpu-once to compile for few launches, or xrt:0 for the first card");
	}
	design->device = (struct device){ .class = class,
		.arena = design->arena,
		.diag = design->diag,
		.program = &design->program };
	return class->open(&design->device);
}

bool design_prepare(struct design *design)
{
	const struct device_class *class = design->device.class;
	return !class->prepare || class->prepare(&design->device);
}

void design_close(struct design *design)
{
	if (design->device.class)
		design->device.class->close(&design->device);
	design->device.class = NULL;
}

bool design_choose(struct design *design, const char *name)
{
	struct text known = text_new(design->arena);
	for (int p = 0; p < design->program.phases; p++) {
		if (!name || text_same(design->phase[p].name, name)) {
			design->program.phase = p;
			design->now = &design->phase[p];
			return true;
		}
		text_add(&known, "%s%s", p ? ", " : "",
		        design->phase[p].name ? design->phase[p].name
		                              : "it has one, without a name");
	}
	diag_error(design->diag, NOWHERE, "the design has no phase '%s'", name);
	return diag_note(design->diag, "%s", known.data);
}

static struct design_tensor *find_tensor(struct design *design, const char *name, bool result)
{
	for (size_t i = 0; i < design->now->tensors.count; i++)
		if (design->now->tensors.data[i].result == result &&
		        !strcmp(design->now->tensors.data[i].name, name))
			return &design->now->tensors.data[i];
	return NULL;
}

struct design_tensor *design_argument(struct design *design, const char *name)
{
	return find_tensor(design, name, false);
}

struct design_tensor *design_result(struct design *design, const char *name)
{
	struct design_tensor *argument = find_tensor(design, name, false);
	struct design_tensor *result = find_tensor(design, name, true);
	bool state = argument && text_same(argument->role, "state");
	if (result && !text_same(result->role, "state"))
		return result;
	return state ? argument : NULL;
}

static bool has_bytes(struct design *design, const struct design_tensor *tensor, size_t bytes)
{
	return bytes == tensor->bytes ||
	        diag_error(design->diag, NOWHERE, "'%s' has %zu bytes, not %zu", tensor->name,
	                tensor->bytes, bytes);
}

static size_t segment_at(const struct segment *segment)
{
	return (size_t)(segment->halves ? segment->offset / 2
	                                : segment->offset * segment->image_bytes);
}

static size_t segment_size(const struct segment *segment)
{
	return (size_t)segment_bytes(segment, segment_span(segment));
}

static bool is_of(const struct design *design, const struct design_segment *segment,
        const struct design_tensor *tensor)
{
	return segment->tensor >= 0 && &design->now->tensors.data[segment->tensor] == tensor;
}

/* Writes all segments of a tensor; data NULL: zeros. */
static bool fill(struct design *design, const struct design_tensor *tensor, const void *data)
{
	const struct device *device = &design->device;
	for (size_t i = 0; i < design->now->segments.count; i++) {
		const struct design_segment *segment = &design->now->segments.data[i];
		const struct segment *s = &segment->segment;
		char *map = design->program.buffer[segment->buffer].map;
		if (!is_of(design, segment, tensor))
			continue;
		if (data)
			segment_pack(s, data, map, 0, 0, segment_elements(s));
		else
			memset(map + segment_at(s), 0, segment_size(s));
		if (!device->class->write(
		            &design->device, segment->buffer, segment_at(s), segment_size(s)))
			return false;
	}
	return true;
}

bool design_set(struct design *design, struct design_tensor *tensor, const void *data, size_t bytes)
{
	double start = now();
	if (!has_bytes(design, tensor, bytes) || !fill(design, tensor, data))
		return false;
	tensor->set = true;
	design->last_row_replaced &= !text_same(tensor->role, "state");
	extents_note(tensor, data);
	design->pending += now() - start;
	return true;
}

bool design_get(struct design *design, const struct design_tensor *tensor, void *data, size_t bytes)
{
	double start = now();
	if (!has_bytes(design, tensor, bytes))
		return false;
	if (tensor->result && !design->now->ready)
		return diag_error(
		        design->diag, NOWHERE, "'%s' has no value before a launch", tensor->name);
	if (tensor->last_chunk && design->now->followed)
		return diag_error(design->diag, NOWHERE,
		        "'%s' has no value: the launch said that others follow", tensor->name);
	memset(data, 0, bytes);
	for (size_t i = 0; i < design->now->segments.count; i++) {
		const struct design_segment *segment = &design->now->segments.data[i];
		const struct segment *s = &segment->segment;
		if (!is_of(design, segment, tensor))
			continue;
		if (!design->device.class->read(
		            &design->device, segment->buffer, segment_at(s), segment_size(s)))
			return false;
		segment_unpack(s, design->program.buffer[segment->buffer].map, data);
	}
	design->pending += now() - start;
	return true;
}

static bool all_set(struct design *design)
{
	struct text missing = text_new(design->arena);
	for (size_t i = 0; i < design->now->tensors.count; i++)
		if (!design->now->tensors.data[i].set && !design->now->tensors.data[i].result)
			text_add(&missing, "%s%s", missing.size ? ", " : "",
			        design->now->tensors.data[i].name);
	return !missing.size ||
	        diag_error(design->diag, NOWHERE, "no value was given for %s", missing.data);
}

static bool launch(struct design *design, int64_t tokens, int64_t prompt_tokens)
{
	int64_t further_tokens = design_text(design, tokens, prompt_tokens) - 1;
	if (!all_set(design) || !extents_allow(design, further_tokens))
		return false;
	if (tokens > 1 && prompt_tokens == 1 && extents_followed(design))
		return diag_error(design->diag, NOWHERE,
		        "the first step is marked as continued, but there are no tokens for the "
		        "following step");
	if (!design_prepare(design))
		return false;
	double start = now();
	design->program.tokens = (int)tokens;
	design->program.prompt_tokens = (int)prompt_tokens;
	bool fine = design->device.class->launch(&design->device);
	design->device_seconds = now() - start;
	design->host_seconds = design->pending;
	design->pending = 0;
	design->now->ready = fine;
	design->now->followed = tokens == 1 && extents_followed(design);
	extents_advance(design, further_tokens);
	return fine;
}

bool design_launch(struct design *design)
{
	return launch(design, 1, 1);
}

bool design_takes(struct design *design, int64_t tokens, int64_t prompt_tokens)
{
	const struct design_feedback *feedback = &design->now->feedback;
	struct diag *diag = design->diag;
	if (!feedback->most) {
		diag_error(diag, NOWHERE, "a launch of this design processes one token");
		return diag_note(diag,
		        "a decode design that selects the next token on the device (--argmax) "
		        "takes several");
	}
	if (tokens < 1 || tokens > feedback->most) {
		diag_error(diag, NOWHERE, "a launch of %lld tokens", (long long)tokens);
		return diag_note(diag, "accepted are 1 to %lld", (long long)feedback->most);
	}
	int64_t most = 1 + (tokens - 1) * feedback->chunk_tokens;
	if (prompt_tokens >= 1 && prompt_tokens <= most)
		return true;
	diag_error(diag, NOWHERE, "%lld prompt tokens for a launch of %lld tokens",
	        (long long)prompt_tokens, (long long)tokens);
	return diag_note(diag, "accepted are 1 to %lld", (long long)most);
}

int64_t design_text(const struct design *design, int64_t tokens, int64_t prompt_tokens)
{
	int64_t most = design->now->feedback.chunk_tokens;
	int64_t chunks = (prompt_tokens - 1 + most - 1) / most;
	return prompt_tokens - 1 + tokens - chunks;
}

/* Copies the text's first token and so many rows after it from the host to device memory, or
 * back. */
static bool move_text(struct design *design, int64_t rows, bool back)
{
	const struct design_feedback *feedback = &design->now->feedback;
	const struct device_class *class = design->device.class;
	struct segment text = feedback->text;
	int64_t trip = (1 + rows) * (int64_t)feedback->bytes / text.host_bytes;
	char *map = design->program.buffer[feedback->buffer].map;
	text.trip = &trip;
	if (back &&
	        !class->read(
	                &design->device, feedback->buffer, segment_at(&text), segment_size(&text)))
		return false;
	if (back)
		segment_unpack(&text, map, feedback->host);
	else
		segment_pack(&text, feedback->host, map, 0, 0, trip);
	return back ||
	        class->write(
	                &design->device, feedback->buffer, segment_at(&text), segment_size(&text));
}

bool design_tokens(
        struct design *design, int64_t tokens, int64_t prompt_tokens, void *text, size_t bytes)
{
	if (!design_takes(design, tokens, prompt_tokens))
		return false;
	const struct design_feedback *feedback = &design->now->feedback;
	struct design_tensor *input = &design->now->tensors.data[feedback->input];
	int64_t rows = design_text(design, tokens, prompt_tokens);
	size_t wanted = input->bytes + (size_t)rows * feedback->bytes;
	if (bytes != wanted)
		return diag_error(design->diag, NOWHERE,
		        "%lld tokens and the one that follows take %zu bytes, not %zu",
		        (long long)rows, wanted, bytes);
	memcpy(feedback->host + feedback->bytes, (char *)text + input->bytes,
	        (size_t)(prompt_tokens - 1) * feedback->bytes);
	if (!design_set(design, input, text, input->bytes) || !move_text(design, rows, false) ||
	        !launch(design, tokens, prompt_tokens))
		return false;
	double start = now();
	if (!move_text(design, rows, true))
		return false;
	memcpy((char *)text + input->bytes, feedback->host + feedback->bytes,
	        (size_t)rows * feedback->bytes);
	design->pending += now() - start;
	return true;
}

bool design_reset(struct design *design)
{
	for (size_t i = 0; i < design->now->tensors.count; i++) {
		const struct design_tensor *tensor = &design->now->tensors.data[i];
		if (!tensor->result && text_same(tensor->role, "state") &&
		        !fill(design, tensor, NULL))
			return false;
	}
	design->last_row_replaced = false;
	return true;
}
