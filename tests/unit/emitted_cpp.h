/* Shared by the tests that run emitted C++: it is compiled as a design's Makefile would, loaded,
 * started on packed buffers, and compared with results bit for bit. */
#ifndef EMITTED_CPP_H
#define EMITTED_CPP_H
#include "emit/emit.h"
#include "image/image.h"
#include "evaluate/eval.h"
#include "evaluate/scalar.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORTS_MOST 32 /* of a function that is called by its name */

/* A module of hardware level, its inputs, and the results that are expected. */
struct emitted {
	struct arena *arena;
	struct module *module;
	int inputs, results;
	const struct tensor *input, *result;
};

static inline bool emitted_write(const char *path, const struct text *text)
{
	FILE *file = fopen(path, "w");
	bool written = file && fwrite(text->data, 1, text->size, file) == text->size;
	return file && !fclose(file) && written;
}

/* NULL: not accepted; g++ has said why.  A library is not unloaded where it has unique symbols:
 * each wants a name of its own. */
static inline void *emitted_load(struct arena *arena, const char *folder, const char *name,
        const struct text *source, const char *flags)
{
	const char *path = text_format(arena, "%s/%s.cpp", folder, name),
	           *library = text_format(arena, "%s/%s.so", folder, name);
	const char *command = text_format(arena,
	        "g++ -std=c++17 %s -Wall -Wextra -Werror -Wno-unknown-pragmas -ffp-contract=off "
	        "-shared -fPIC -I" STC_SOURCE_DIR "/runtime/include -o %s %s",
	        flags, library, path);
	if (getenv("STC_KEEP"))
		emitted_write(getenv("STC_KEEP"), source);
	return emitted_write(path, source) && !system(command)
	        ? dlopen(library, RTLD_NOW | RTLD_LOCAL)
	        : NULL;
}

/* ---- buffers, as the module describes them */

static inline struct segment emitted_segment(struct arena *arena, const struct attr *attr,
        const struct type *host, const struct type *word)
{
	const struct attr *conditions = attr_item(attr, KEY_CONDITIONS);
	int dims = attr_item(attr, KEY_TRIPS)->count;
	int64_t *rows = ARENA_ARRAY(arena, int64_t, conditions->count *(dims + 1) + 1);
	for (int i = 0; i < conditions->count; i++)
		memcpy(rows + i * (dims + 1), conditions->items[i].value->integers,
		        sizeof *rows * (size_t)(dims + 1));
	return (struct segment){
		.offset = attr_item(attr, KEY_OFFSET)->integer,
		.base = attr_item(attr, KEY_BASE)->integer,
		.dims = dims,
		.trip = attr_item(attr, KEY_TRIPS)->integers,
		.stride = attr_item(attr, KEY_STRIDES)->integers,
		.conditions = conditions->count,
		.condition = rows,
		.host_bytes = scalar_storage_bytes(type_scalar(host)),
		.image_bytes = scalar_storage_bytes(type_scalar(word)),
		.halves = emit_bytes(word) < type_elements(word),
	};
}

/* The tensor of that name into the buffer's image, or back. */
static inline void emitted_move(struct arena *arena, const struct attr *buffer, void *image,
        const char *name, const struct tensor *tensor, bool pack)
{
	const struct attr *segments = attr_item(buffer, KEY_SEGMENTS);
	for (int s = 0; s < segments->count; s++) {
		const struct attr *attr = segments->items[s].value;
		if (!text_same(attr_item(attr, KEY_NAME)->text, name))
			continue;
		struct segment segment = emitted_segment(
		        arena, attr, tensor->type, attr_item(buffer, KEY_WORD)->type);
		if (pack)
			segment_pack(
			        &segment, tensor->data, image, 0, 0, segment_elements(&segment));
		else
			segment_unpack(&segment, image, tensor->data);
	}
}

static inline void emitted_call(void *function, void **p)
{
	typedef void top(void *, void *, void *, void *, void *, void *, void *, void *, void *,
	        void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
	        void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
	        void *, void *, void *);
	top *entry; /* takes the first of these */
	memcpy(&entry, &function, sizeof entry);
	entry(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12],
	        p[13], p[14], p[15], p[16], p[17], p[18], p[19], p[20], p[21], p[22], p[23], p[24],
	        p[25], p[26], p[27], p[28], p[29], p[30], p[31]);
}

static inline int emitted_input(const struct emitted *e, const char *name)
{
	const struct attr *inputs = attr_get(module_main(e->module), KEY_STREAM_INPUTS);
	for (int i = 0; i < e->inputs; i++)
		if (text_same(attr_item(inputs->items[i].value, KEY_NAME)->text, name))
			return i;
	return -1;
}

/* Constants stand behind the inputs and have their numbers in the module. */
static inline struct tensor emitted_constant(const struct emitted *e, const struct attr *value)
{
	struct tensor tensor = { value->type, arena_alloc(e->arena, tensor_bytes(value->type)) };
	for (size_t at = 0; at < tensor_bytes(value->type); at += value->bytes)
		memcpy((char *)tensor.data + at, value->data, value->bytes);
	return tensor;
}

static inline int64_t emitted_integer(const struct emitted *e, const char *name)
{
	int64_t value = 0;
	memcpy(&value, e->input[emitted_input(e, name)].data, sizeof value);
	return value;
}

/* What tensor an output's name stands for: the result, or the whole state with the result as
 * rows of it, of which a launch may have fewer. */
static inline struct tensor emitted_expected(const struct emitted *e, int r)
{
	const struct attr *entry =
	        attr_get(module_main(e->module), KEY_STREAM_OUTPUTS)->items[r].value;
	if (!text_same(attr_item(entry, KEY_ROLE)->text, "state"))
		return e->result[r];
	const struct tensor *before = &e->input[emitted_input(e, attr_item(entry, KEY_NAME)->text)],
	                    *row = &e->result[r];
	const struct attr *count = attr_item(entry, KEY_TOKEN_COUNT);
	struct tensor whole = { before->type,
		arena_copy(e->arena, before->data, tensor_bytes(before->type)) };
	int64_t axis = attr_item(entry, KEY_AXIS)->integer, outer = 1,
	        inner = scalar_storage_bytes(type_scalar(whole.type));
	int64_t at = emitted_integer(e, attr_item(entry, KEY_POSITION)->text) +
	        attr_item_integer(entry, KEY_LEAD, 0),
	        extent = row->type->shape[axis];
	for (int d = 0; d < whole.type->rank; d++) {
		outer *= d < axis ? whole.type->shape[d] : 1;
		inner *= d > axis ? whole.type->shape[d] : 1;
	}
	size_t bytes = (size_t)((count ? emitted_integer(e, count->text) : extent) * inner);
	for (int64_t o = 0; o < outer; o++)
		memcpy((char *)whole.data + (o * whole.type->shape[axis] + at) * inner,
		        (char *)row->data + o * extent * inner, bytes);
	return whole;
}

/* name: of a function of so many pointers, or NULL for `call_ports`, which takes an array of
 * them. */
static inline bool emitted_start(
        const struct emitted *e, void *library, const char *name, void **port)
{
	void *function = dlsym(library, name ? name : "call_ports");
	if (!function || (name && emit_ports(e->module) > PORTS_MOST))
		return false;
	if (name) {
		emitted_call(function, port);
		return true;
	}
	void (*call)(void **);
	memcpy(&call, &function, sizeof call);
	call(port);
	return true;
}

/* NULL: the function of the library gives the expected results.  Else what is wrong. */
static inline const char *emitted_run(const struct emitted *e, void *library, const char *name)
{
	const struct op *main = module_main(e->module);
	const struct attr *buffers = attr_get(main, KEY_STREAM_BUFFERS),
	                  *inputs = attr_get(main, KEY_STREAM_INPUTS),
	                  *outputs = attr_get(main, KEY_STREAM_OUTPUTS);
	void **port = ARENA_ARRAY(e->arena, void *, emit_ports(e->module) + PORTS_MOST),
	     **image = ARENA_ARRAY(e->arena, void *, buffers->count + 1);
	for (int b = 0; b < buffers->count; b++) {
		const struct attr *buffer = buffers->items[b].value;
		image[b] = arena_alloc(e->arena,
		        (size_t)(attr_item(buffer, KEY_WORDS)->integer *
		                emit_bytes(attr_item(buffer, KEY_WORD)->type)) +
		                64);
		image[b] = (char *)image[b] + (-(uintptr_t)image[b] & 63);
		for (int i = 0; i < inputs->count; i++) {
			struct tensor tensor = i < e->inputs
			        ? e->input[i]
			        : emitted_constant(e, attr_item(inputs->items[i].value, KEY_VALUE));
			emitted_move(e->arena, buffer, image[b],
			        attr_item(inputs->items[i].value, KEY_NAME)->text, &tensor, true);
		}
		for (int p = 0; p < emit_ports(e->module); p++)
			if (text_same(emit_port(main, p).buffer, attr_item(buffer, KEY_NAME)->text))
				port[p] = image[b];
	}
	if (!emitted_start(e, library, name, port))
		return "there is no such function, or it has too many ports";
	const char *(*region_error)(void);
	void *symbol = dlsym(library, "st_region_error");
	memcpy(&region_error, &symbol, sizeof region_error);
	if (region_error())
		return text_format(e->arena, "%s", region_error());
	for (int r = 0; r < e->results; r++) {
		struct tensor expected = emitted_expected(e, r);
		size_t bytes = tensor_bytes(expected.type);
		struct tensor got = { .type = expected.type, .data = arena_alloc(e->arena, bytes) };
		for (int b = 0; b < buffers->count; b++)
			emitted_move(e->arena, buffers->items[b].value, image[b],
			        attr_item(outputs->items[r].value, KEY_NAME)->text, &got, false);
		if (memcmp(got.data, expected.data, bytes))
			return text_format(e->arena, "result %d differs", r);
	}
	return NULL;
}

#endif
