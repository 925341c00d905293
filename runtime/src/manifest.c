/* Reads manifest.json and checks every figure, since all later memory accesses depend on them. */
#include "base/blake2.h"
#include "base/data.h"
#include "base/json.h"
#include "design.h"
#include <string.h>

#define DIMS_MOST 16 /* maximum loops of a segment (image/image.c) */
#define BYTES_MOST ((int64_t)1 << 40)
#define ROWS_MOST ((int64_t)1 << 28)
#define CHANNELS_MOST 1023
#define TOKENS_MOST ((int64_t)1 << 24) /* maximum tokens of a launch, and elements of a token */

static const struct {
	const char *name, *npy;
	int bytes;
} dtypes[] = {
	{ "f32", "f4", 4 },
	{ "f64", "f8", 8 },
	{ "f16", "f2", 2 },
	{ "bf16", NULL, 2 },
	{ "i64", "i8", 8 },
	{ "i32", "i4", 4 },
	{ "i16", "i2", 2 },
	{ "i8", "i1", 1 },
	{ "i4", "i1", 1 },
	{ "i1", "b1", 1 },
};
#define DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

static bool damaged(struct design *design, const char *what)
{
	const char *path = text_format(design->arena, "%s/manifest.json", design->folder);
	diag_error(design->diag, (struct location){ .file = path }, "%s", what);
	return diag_note(design->diag, "a folder that `stc compile` wrote, as it wrote it");
}

static int dtype_find(const char *name)
{
	for (int i = 0; name && i < DTYPES; i++)
		if (!strcmp(dtypes[i].name, name))
			return i;
	return -1;
}

static bool in_range(const struct json *item, int64_t low, int64_t high, int64_t *value)
{
	return json_integer(item, value) && *value >= low && *value <= high;
}

/* Reads *integers [count]; count < 0: any number up to DIMS_MOST. */
static bool read_integers(
        struct design *design, const struct json *list, int count, const int64_t **integers)
{
	if (!list || list->kind != JSON_ARRAY ||
	        (count < 0 ? list->count > DIMS_MOST : list->count != count))
		return false;
	int64_t *values = ARENA_ARRAY(design->arena, int64_t, list->count + 1);
	int64_t *value = values;
	for (const struct json *item = list->first; item; item = item->next)
		if (!in_range(item, -BYTES_MOST, BYTES_MOST, value++))
			return false;
	*integers = values;
	return true;
}

static bool read_tensor(struct design *design, const struct json *entry, bool result)
{
	struct design_tensor tensor = { .name = json_text(entry, "name"),
		.role = json_text(entry, "role"),
		.dtype = json_text(entry, "dtype"),
		.result = result,
		.last_chunk = json_get(entry, "last_chunk_only") };
	const struct json *shape = json_get(entry, "shape");
	int dtype = dtype_find(tensor.dtype);
	if (!tensor.name || !tensor.role || dtype < 0 || !shape || shape->kind != JSON_ARRAY ||
	        shape->count > DESIGN_RANK_MOST)
		return damaged(design, "describes an invalid input or output");
	int64_t bytes = tensor.element_bytes = dtypes[dtype].bytes;
	tensor.npy = dtypes[dtype].npy;
	for (const struct json *item = shape->first; item; item = item->next) {
		int64_t *extent = &tensor.shape[tensor.rank++];
		if (!in_range(item, 0, BYTES_MOST, extent) ||
		        __builtin_mul_overflow(bytes, *extent, &bytes) || bytes > BYTES_MOST)
			return damaged(
			        design, "describes an input or output of an impossible shape");
	}
	tensor.bytes = (size_t)bytes;
	tensor.set = text_same(tensor.role, "state") ||
	        (text_same(tensor.role, "weight") && design->packed) || !bytes;
	VEC_PUSH(design->arena, &design->now->tensors, tensor);
	return true;
}

static bool read_tensors(struct design *design, const struct json *list, bool result)
{
	if (!list || list->kind != JSON_ARRAY)
		return damaged(design, "lists no inputs or no outputs");
	for (const struct json *entry = list->first; entry; entry = entry->next)
		if (!read_tensor(design, entry, result))
			return false;
	return true;
}

/* Σ factor * at over all loops but the innermost. */
static int64_t outer_sum(const struct segment *segment, const int64_t *factor, const int64_t *at)
{
	int64_t sum = 0;
	for (int d = 0; d < segment->dims - 1; d++)
		sum += factor[d] * at[d];
	return sum;
}

/* First and last innermost counter for which every condition holds; first > last: none. */
static void clip_row(
        const struct segment *segment, const int64_t *at, int64_t *first, int64_t *last)
{
	int inner = segment->dims - 1;
	for (int c = 0; c < segment->conditions; c++) {
		const int64_t *condition = segment->condition + c * (segment->dims + 1);
		int64_t room = condition[segment->dims] - 1 - outer_sum(segment, condition, at);
		int64_t factor = condition[inner];
		if (factor > 0 && (room < 0 || room / factor < *last))
			*last = room < 0 ? -1 : room / factor;
		if (factor < 0 && room < 0 && (-room - factor - 1) / -factor > *first)
			*first = (-room - factor - 1) / -factor;
		if (!factor && room < 0)
			*last = -1;
	}
}

static bool next_row(const struct segment *segment, int64_t *at)
{
	for (int d = segment->dims - 2; d >= 0; d--) {
		if (++at[d] < segment->trip[d])
			return true;
		at[d] = 0;
	}
	return false;
}

/* Checks row by row, for segments that only their conditions keep inside. */
static bool rows_within(const struct segment *segment, int64_t host_elements)
{
	int64_t at[DIMS_MOST] = { 0 };
	int64_t rows = 0;
	int64_t stride = segment->stride[segment->dims - 1];
	do {
		int64_t first = 0;
		int64_t last = segment->trip[segment->dims - 1] - 1;
		clip_row(segment, at, &first, &last);
		int64_t start = segment->base + outer_sum(segment, segment->stride, at);
		int64_t one = start + first * stride;
		int64_t other = start + last * stride;
		if (first <= last &&
		        (one < 0 || other < 0 || one >= host_elements || other >= host_elements))
			return false;
	} while (++rows < ROWS_MOST && next_row(segment, at));
	return rows < ROWS_MOST;
}

/* Checks that factor * counter of every loop is small enough for sums. */
static bool spans_fit(const struct segment *segment, const int64_t *factor)
{
	for (int d = 0; d < segment->dims; d++) {
		int64_t span;
		if (__builtin_mul_overflow(factor[d], segment->trip[d], &span) ||
		        span > BYTES_MOST || span < -BYTES_MOST)
			return false;
	}
	return true;
}

/* Only inputs may have gaps between their runs. */
static bool spreads_beyond(const struct segment *segment, int64_t runs)
{
	int64_t span;
	bool given = text_same(segment->role, "weight") || text_same(segment->role, "constant");
	return !given || segment->pitch < segment->run ||
	        __builtin_mul_overflow(runs, segment->pitch, &span) || span > BYTES_MOST;
}

static bool within(const struct segment *segment, int64_t host_elements, int64_t image_elements)
{
	int64_t low = segment->base;
	int64_t high = segment->base;
	int64_t elements = 1;
	bool sane = spans_fit(segment, segment->stride);
	for (int c = 0; c < segment->conditions; c++)
		sane = sane && spans_fit(segment, segment->condition + c * (segment->dims + 1));
	for (int d = 0; sane && d < segment->dims; d++) {
		sane = segment->trip[d] >= 0 &&
		        !__builtin_mul_overflow(elements, segment->trip[d], &elements) &&
		        elements <= BYTES_MOST;
		int64_t span = segment->stride[d] * (segment->trip[d] - 1);
		*(span < 0 ? &low : &high) += span;
	}
	if (!sane)
		return false;
	if (segment->run &&
	        (elements % segment->run || spreads_beyond(segment, elements / segment->run)))
		return false;
	if (segment->offset > image_elements ||
	        segment_span(segment) > image_elements - segment->offset)
		return false;
	bool inside = !elements || (low >= 0 && high < host_elements);
	return inside ||
	        (segment->conditions && segment->dims && rows_within(segment, host_elements));
}

static int tensor_of(const struct design *design, const char *name, bool result)
{
	for (size_t i = 0; i < design->now->tensors.count; i++)
		if (design->now->tensors.data[i].result == result &&
		        text_same(design->now->tensors.data[i].name, name))
			return (int)i;
	return -1;
}

static bool read_conditions(struct design *design, const struct json *list, struct segment *segment)
{
	int row = segment->dims + 1;
	if (list && (list->kind != JSON_ARRAY || list->count > DIMS_MOST))
		return false;
	int64_t *rows = ARENA_ARRAY(design->arena, int64_t, (list ? list->count : 0) * row + 1);
	for (const struct json *item = list ? list->first : NULL; item; item = item->next) {
		const int64_t *values;
		if (!read_integers(design, item, row, &values))
			return false;
		memcpy(rows + segment->conditions++ * row, values, sizeof *values * (size_t)row);
	}
	segment->condition = rows;
	return true;
}

static bool read_segment(
        struct design *design, const struct json *entry, int buffer, int element_bytes, bool halves)
{
	struct design_segment made = { .buffer = buffer, .tensor = -1 };
	struct segment *segment = &made.segment;
	const struct json *trips = json_get(entry, "trips");
	segment->name = json_text(entry, "name");
	segment->role = json_text(entry, "role");
	segment->image_bytes = element_bytes;
	segment->halves = halves;
	bool fine = segment->name && segment->role &&
	        in_range(json_get(entry, "offset"), 0, BYTES_MOST, &segment->offset) &&
	        in_range(json_get(entry, "base"), -BYTES_MOST, BYTES_MOST, &segment->base) &&
	        read_integers(design, trips, -1, &segment->trip);
	const struct json *run = json_get(entry, "run");
	fine = fine &&
	        (!run ||
	                (in_range(run, 1, BYTES_MOST, &segment->run) &&
	                        in_range(
	                                json_get(entry, "pitch"), 1, BYTES_MOST, &segment->pitch)));
	segment->dims = fine ? trips->count : 0;
	if (!fine ||
	        !read_integers(
	                design, json_get(entry, "strides"), segment->dims, &segment->stride) ||
	        !read_conditions(design, json_get(entry, "conditions"), segment))
		return damaged(design, "has a damaged segment");
	if (text_same(segment->role, "constant"))
		return true;
	made.tensor = tensor_of(design, segment->name, text_same(segment->role, "output"));
	if (made.tensor < 0)
		return damaged(design,
		        text_format(design->arena,
		                "has a segment of '%s', which is no input or output",
		                segment->name));
	const struct design_tensor *tensor = &design->now->tensors.data[made.tensor];
	segment->host_bytes = tensor->element_bytes;
	if (!within(segment, (int64_t)tensor->bytes / tensor->element_bytes,
	            (int64_t)design->program.buffer[buffer].bytes * (halves ? 2 : 1) /
	                    element_bytes))
		return damaged(design,
		        text_format(design->arena,
		                "has a segment of '%s' that reaches beyond the tensor or its "
		                "buffer",
		                segment->name));
	VEC_PUSH(design->arena, &design->now->segments, made);
	return true;
}

static const struct design_file *file_listed(const struct design *design, const char *path)
{
	for (size_t i = 0; i < design->files.count; i++)
		if (!strcmp(design->files.data[i].path, path))
			return &design->files.data[i];
	return NULL;
}

static int buffer_named(const struct design *design, const char *name)
{
	for (int b = 0; b < design->program.buffers; b++)
		if (text_same(design->program.buffer[b].name, name))
			return b;
	return -1;
}

/* The buffer of the entry: a new one, or that of an earlier phase; -1: the entry is invalid. */
static int place_buffer(struct design *design, const struct json *entry, int64_t bytes)
{
	const char *name = json_text(entry, "name");
	const char *same = json_text(entry, "same_as");
	const char *file = text_format(design->arena, "weights/%s.bin", name ? name : "");
	int place = same ? buffer_named(design, same) : design->program.buffers;
	if (!name || place < 0 || (!same && buffer_named(design, name) >= 0))
		return -1;
	struct device_buffer *buffer = &design->program.buffer[place];
	if (same)
		return buffer->bytes >= (size_t)bytes ? place : -1;
	*buffer = (struct device_buffer){ .name = name,
		.bytes = (size_t)bytes,
		.channel = -1,
		.file = file_listed(design, file)
		        ? text_format(design->arena, "%s/%s", design->folder, file)
		        : NULL };
	return design->program.buffers++;
}

static bool read_buffer(struct design *design, const struct json *entry, int *place)
{
	const struct json *segments = json_get(entry, "segments");
	int dtype = dtype_find(json_text(entry, "dtype"));
	int64_t bytes;
	if (dtype < 0 || !in_range(json_get(entry, "bytes"), 1, BYTES_MOST, &bytes) || !segments ||
	        segments->kind != JSON_ARRAY || (*place = place_buffer(design, entry, bytes)) < 0)
		return damaged(design, "has a damaged buffer");
	bool halves = !strcmp(dtypes[dtype].name, "i4"); /* two elements per byte */
	for (const struct json *segment = segments->first; segment; segment = segment->next)
		if (!read_segment(design, segment, *place, dtypes[dtype].bytes, halves))
			return false;
	return true;
}

/* The channel of a buffer is that of its first port; a port reaches a range of channels. */
static bool read_channels(
        struct design *design, const struct json *entry, int64_t argument, int buffer)
{
	struct device_port *reach = &design->program.reach[argument];
	const struct json *range = json_get(entry, "channels");
	struct device_buffer *memory = &design->program.buffer[buffer];
	int64_t channel;
	if (!in_range(json_get(entry, "channel"), 0, CHANNELS_MOST, &channel) || !range ||
	        range->kind != JSON_ARRAY || range->count != 2 ||
	        !in_range(range->first, 0, CHANNELS_MOST, &reach->first) ||
	        !in_range(range->first->next, reach->first, CHANNELS_MOST, &reach->last))
		return damaged(design, "has a port without memory channels");
	reach->name = json_text(entry, "name");
	memory->channel = memory->channel < 0 ? channel : memory->channel;
	return true;
}

/* Reads the buffer of a port, by its name in the phase. */
static bool read_port(struct design *design, const struct json *entry, const struct json *buffers,
        const int *place, int *port)
{
	const char *wanted = json_text(entry, "buffer");
	int64_t argument;
	int b = 0;
	if (!in_range(json_get(entry, "argument"), 0, design->program.ports - 1, &argument) ||
	        port[argument] >= 0 || !json_text(entry, "name"))
		return damaged(design, "has a damaged port");
	for (const struct json *buffer = buffers->first; buffer; buffer = buffer->next, b++)
		if (text_same(json_text(buffer, "name"), wanted))
			port[argument] = place[b];
	return port[argument] >= 0 ? read_channels(design, entry, argument, port[argument])
	                           : damaged(design, "has a port without a buffer");
}

static bool read_memory(struct design *design, const struct json *phase, int *port)
{
	const struct json *buffers = json_get(phase, "buffers");
	const struct json *ports = json_get(phase, "ports");
	int *place = ARENA_ARRAY(design->arena, int, buffers->count + 1);
	int b = 0;
	for (const struct json *entry = buffers->first; entry; entry = entry->next)
		if (!read_buffer(design, entry, &place[b++]))
			return false;
	for (const struct json *entry = ports->first; entry; entry = entry->next)
		if (!read_port(design, entry, buffers, place, port))
			return false;
	return true;
}

static bool count_memory(struct design *design, const struct json *phase, int *buffers, int *ports)
{
	const struct json *list = json_get(phase, "buffers");
	const struct json *all = json_get(phase, "ports");
	if (!list || list->kind != JSON_ARRAY)
		return damaged(design, "lists no buffers");
	if (!all || all->kind != JSON_ARRAY)
		return damaged(design, "lists no ports");
	*buffers += list->count;
	*ports += all->count;
	return true;
}

/* Checks that every port has an argument and every argument a port. */
static bool count_arguments(struct design *design, const struct json *phase, int most)
{
	for (const struct json *entry = json_get(phase, "ports")->first; entry;
	        entry = entry->next) {
		int64_t argument;
		if (!in_range(json_get(entry, "argument"), 0, most - 1, &argument))
			return damaged(design, "has a damaged port");
		design->program.ports = argument >= design->program.ports ? (int)argument + 1
		                                                          : design->program.ports;
	}
	return true;
}

/* An argument that a phase does not use gets the buffer of a phase that does. */
static bool fill_ports(struct design *design)
{
	struct device_program *program = &design->program;
	for (int a = 0; a < program->ports; a++) {
		int any = -1;
		for (int p = 0; p < program->phases; p++)
			any = program->port[p][a] >= 0 ? program->port[p][a] : any;
		for (int p = 0; p < program->phases; p++)
			program->port[p][a] = program->port[p][a] < 0 ? any : program->port[p][a];
		if (any < 0)
			return damaged(design, "has a port without a buffer");
	}
	return true;
}

/* Item `axis` of an input by its position in the list; 0 if it has none. */
static int axis_of(const struct json *inputs, int place, int rank)
{
	const struct json *entry = inputs->first;
	int64_t axis;
	while (place--)
		entry = entry->next;
	return in_range(json_get(entry, "axis"), 0, rank - 1, &axis) ? (int)axis : 0;
}

/* The item `dtype` of the buffer of this name in the phase; NULL: there is none. */
static const struct json *buffer_dtype(const struct json *phase, const char *name)
{
	const struct json *dtype = NULL;
	for (const struct json *buffer = json_get(phase, "buffers")->first; buffer;
	        buffer = buffer->next)
		if (text_same(json_text(buffer, "name"), name))
			dtype = json_get(buffer, "dtype");
	return dtype;
}

/* Reads the text of a feedback: a segment of its own, the input's elements token by token. */
static bool read_text(struct design *design, const struct json *entry, const struct json *dtype)
{
	struct design_feedback *feedback = &design->now->feedback;
	const struct design_tensor *input = &design->now->tensors.data[feedback->input];
	int64_t elements = (int64_t)feedback->bytes / input->element_bytes;
	int64_t rows = (feedback->most - 1) * feedback->chunk_tokens + 2;
	int64_t *trip = ARENA_ARRAY(design->arena, int64_t, 2);
	trip[0] = rows * elements;
	trip[1] = 1;
	feedback->text = (struct segment){ .name = input->name,
		.role = "input",
		.dims = 1,
		.trip = trip,
		.stride = trip + 1,
		.host_bytes = input->element_bytes,
		.image_bytes = dtypes[dtype_find(dtype->text)].bytes };
	size_t bytes = design->program.buffer[feedback->buffer].bytes;
	if (!in_range(json_get(entry, "offset"), 0, BYTES_MOST, &feedback->text.offset) ||
	        !within(&feedback->text, trip[0], (int64_t)bytes / feedback->text.image_bytes))
		return damaged(
		        design, "has a token buffer too small for a launch of several tokens");
	feedback->host = arena_alloc(design->arena, (size_t)trip[0] * (size_t)input->element_bytes);
	return design->program.counts = true;
}

/* Reads the feedback of an output to an input between the steps of a launch. */
static bool read_feedback(struct design *design, const struct json *phase)
{
	const struct json *entry = json_get(phase, "feedback");
	struct design_feedback *feedback = &design->now->feedback;
	feedback->rows = -1;
	feedback->chunk_tokens = 1;
	if (!entry)
		return true;
	const char *rows = json_text(entry, "token_count");
	const char *buffer = json_text(entry, "buffer");
	const struct json *dtype = buffer_dtype(phase, buffer);
	feedback->input = tensor_of(design, json_text(entry, "input"), false);
	feedback->output = tensor_of(design, json_text(entry, "output"), true);
	feedback->buffer = buffer_named(design, buffer);
	feedback->rows = rows ? tensor_of(design, rows, false) : -1;
	if (feedback->input < 0 || feedback->output < 0 || feedback->buffer < 0 ||
	        (rows && feedback->rows < 0) || !dtype ||
	        !in_range(json_get(entry, "most"), 1, TOKENS_MOST, &feedback->most))
		return damaged(design, "lacks the token feedback of a launch of several tokens");
	const struct design_tensor *input = &design->now->tensors.data[feedback->input];
	const struct design_tensor *output = &design->now->tensors.data[feedback->output];
	int64_t elements = (int64_t)output->bytes / output->element_bytes;
	feedback->bytes = (size_t)(elements * input->element_bytes);
	if (elements < 1 || elements > TOKENS_MOST ||
	        (rows ? input->bytes % feedback->bytes != 0 : input->bytes != feedback->bytes))
		return damaged(design, "has a token buffer whose tokens have another size");
	feedback->axis = axis_of(json_get(phase, "inputs"), feedback->input, input->rank);
	feedback->chunk_tokens = (int64_t)(input->bytes / feedback->bytes);
	if (feedback->chunk_tokens < 1 || feedback->most > TOKENS_MOST / feedback->chunk_tokens ||
	        (rows && input->rank && input->shape[feedback->axis] != feedback->chunk_tokens))
		return damaged(design, "has a token buffer whose steps have another size");
	return read_text(design, entry, dtype);
}

static bool read_phase(struct design *design, const struct json *entry, int number)
{
	struct device_program *program = &design->program;
	design->now = &design->phase[number];
	program->port[number] = ARENA_ARRAY(design->arena, int, program->ports + 1);
	for (int a = 0; a < program->ports; a++)
		program->port[number][a] = -1;
	const struct json *inputs = json_get(entry, "inputs");
	const struct json *outputs = json_get(entry, "outputs");
	if (!read_tensors(design, inputs, false) || !read_tensors(design, outputs, true))
		return false;
	extents_read(design, inputs, outputs);
	return read_memory(design, entry, program->port[number]) && read_feedback(design, entry);
}

/* A design with one phase describes it at the top level of the manifest. */
static bool read_phases(struct design *design, const struct json *manifest)
{
	const struct json *list = json_get(manifest, "phases");
	const struct json *first = list ? list->first : manifest;
	struct device_program *program = &design->program;
	int buffers = 0;
	int ports = 0;
	int number = 0;
	if (list && (list->kind != JSON_ARRAY || !list->count))
		return damaged(design, "lists no phases");
	program->phases = list ? list->count : 1;
	for (const struct json *entry = first; entry; entry = list ? entry->next : NULL)
		if (!count_memory(design, entry, &buffers, &ports))
			return false;
	for (const struct json *entry = first; entry; entry = list ? entry->next : NULL)
		if (!count_arguments(design, entry, ports))
			return false;
	design->phase = ARENA_ARRAY(design->arena, struct design_phase, program->phases);
	program->buffer = ARENA_ARRAY(design->arena, struct device_buffer, buffers + 1);
	program->port = ARENA_ARRAY(design->arena, int *, program->phases);
	program->reach = ARENA_ARRAY(design->arena, struct device_port, program->ports + 1);
	for (const struct json *entry = first; entry; entry = list ? entry->next : NULL) {
		design->phase[number].name = list ? json_text(entry, "name") : NULL;
		if (list && !design->phase[number].name)
			return damaged(design, "has a phase without a name");
		if (!read_phase(design, entry, number++))
			return false;
	}
	return fill_ports(design) && design_choose(design, NULL);
}

static bool read_files(struct design *design, const struct json *list)
{
	if (!list || list->kind != JSON_OBJECT)
		return damaged(design, "lists no files");
	for (const struct json *entry = list->first; entry; entry = entry->next) {
		bool plain = entry->text && strlen(entry->text) == 64 && entry->name[0] != '/' &&
		        !strstr(entry->name, "..");
		if (!plain)
			return damaged(design, "has a damaged list of files");
		struct design_file file = { entry->name, entry->text };
		VEC_PUSH(design->arena, &design->files, file);
	}
	return true;
}

static bool is_identifier(const char *text)
{
	static const char letters[] =
	        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	return text && *text && !text[strspn(text, letters)] && !strchr("0123456789", *text);
}

static bool read_version(struct design *design, const struct json *manifest)
{
	int64_t schema;
	int64_t version;
	if (!in_range(json_get(manifest, "schema"), 1, 1, &schema) ||
	        !json_integer(json_get(manifest, "design"), &version))
		return damaged(design, "is not the manifest of a design");
	if (version == DESIGN_READS)
		return true;
	const char *tool = json_text(manifest, "tool");
	const char *path = text_format(design->arena, "%s/manifest.json", design->folder);
	diag_error(design->diag, (struct location){ .file = path },
	        "the design has version %lld, written by stc %s", (long long)version,
	        tool ? tool : "unknown");
	return diag_note(design->diag,
	        "this one runs designs of version %d: compile the model again", DESIGN_READS);
}

/* A number that was changed by hand would give wrong results without a word. */
static bool check_hash(struct design *design, const char *text, size_t size)
{
	static const char begin[] = ",\n\"hash\":\"";
	char hash[65];
	size_t tail = sizeof begin - 1 + 64 + strlen("\"}\n");
	const char *end = size > tail ? text + size - tail : NULL;
	if (end && !strncmp(end, begin, sizeof begin - 1)) {
		blake2_hex(text, (size_t)(end - text), hash);
		if (!strncmp(end + sizeof begin - 1, hash, 64))
			return true;
	}
	return damaged(design, "was changed after it was written: its hash differs");
}

/* The program that is built is one of the files with a hash. */
static bool lists_program(struct design *design)
{
	const char *path = text_format(design->arena, "hls/%s.cpp", design->program.top);
	for (size_t i = 0; i < design->files.count; i++)
		if (text_same(design->files.data[i].path, path))
			return true;
	return damaged(design, text_format(design->arena, "does not list %s", path));
}

bool manifest_read(struct design *design)
{
	const char *path = text_format(design->arena, "%s/manifest.json", design->folder);
	const char *reason;
	size_t size;
	size_t offset;
	const char *text = file_read_regular(design->arena, path, &size, &reason);
	if (!text) {
		diag_error(design->diag, (struct location){ .file = design->folder },
		        "is no design: manifest.json cannot be read: %s", reason);
		return diag_note(design->diag, "a folder that `stc compile` wrote");
	}
	const struct json *manifest = json_parse(design->arena, text, size, &offset);
	const struct json *packed = json_get(manifest, "packed");
	if (!manifest)
		return damaged(design, text_format(design->arena, "is no JSON (byte %zu)", offset));
	if (!read_version(design, manifest))
		return false;
	design->name = json_text(manifest, "name");
	design->packed = packed && packed->kind == JSON_BOOL && packed->number > 0;
	design->program.folder = design->folder;
	design->program.top = json_text(manifest, "top");
	design->program.memory = json_text(manifest, "memory");
	if (!is_identifier(design->program.top))
		return damaged(design, "names no top function");
	const struct json *clock = json_get(manifest, "clock_mhz");
	design->program.mhz = clock && clock->kind == JSON_NUMBER ? clock->number : 0;
	if (!design->program.memory || design->program.mhz <= 0)
		return damaged(design, "names no memory or no clock");
	return check_hash(design, text, size) && read_files(design, json_get(manifest, "files")) &&
	        lists_program(design) && read_phases(design, manifest);
}
