/* Reads safetensors files: 8 bytes little endian, the size of the header; the header, JSON: name ->
 * {dtype, shape, data_offsets}; then the data without gaps. */
#define _DEFAULT_SOURCE
#include "import/weights.h"
#include "base/data.h"
#include "base/json.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MOST (100u << 20)
#define RANK_MOST 8

struct mapping {
	const char *path;
	const char *data;
	size_t size;
};

struct weights {
	struct arena *arena;
	struct diag *diag;
	const char *path;
	VEC(struct mapping) mappings;
	struct map tensors; /* name -> struct weight */
};

static const struct {
	const char *name;
	int bytes;
	enum type_kind kind;
	int width;
} dtypes[] = {
	{ "F64", 8, TYPE_FLOAT, 64 },
	{ "F32", 4, TYPE_FLOAT, 32 },
	{ "F16", 2, TYPE_FLOAT, 16 },
	{ "BF16", 2, TYPE_BFLOAT, 16 },
	{ "I64", 8, TYPE_INTEGER, 64 },
	{ "I32", 4, TYPE_INTEGER, 32 },
	{ "I16", 2, TYPE_INTEGER, 16 },
	{ "I8", 1, TYPE_INTEGER, 8 },
	{ "U64", 8, TYPE_NONE, 0 },
	{ "U32", 4, TYPE_NONE, 0 },
	{ "U16", 2, TYPE_NONE, 0 },
	{ "U8", 1, TYPE_NONE, 0 },
	{ "F8_E4M3", 1, TYPE_NONE, 0 },
	{ "F8_E5M2", 1, TYPE_NONE, 0 },
	{ "BOOL", 1, TYPE_INTEGER, 1 },
};
#define DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

static int dtype_find(const char *name)
{
	for (int i = 0; name && i < DTYPES; i++)
		if (!strcmp(dtypes[i].name, name))
			return i;
	return -1;
}

__attribute__((format(printf, 3, 4))) static bool weights_error(
        struct weights *weights, const char *file, const char *format, ...)
{
	struct text text = text_new(weights->arena);
	va_list arguments;
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	return diag_error(weights->diag, (struct location){ .file = file }, "%s", text.data);
}

/* ---- one file */

static bool map_file(struct weights *weights, const char *path, struct mapping *mapping)
{
	struct stat status;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	*mapping = (struct mapping){ .path = path };
	if (file < 0 || fstat(file, &status)) {
		weights_error(weights, path, "cannot be read: %s", strerror(errno));
		if (file >= 0)
			close(file);
		return false;
	}
	bool regular = S_ISREG(status.st_mode);
	void *data = regular && status.st_size >= 8
	        ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0)
	        : NULL;
	int reason = errno;
	close(file);
	if (!regular)
		return weights_error(weights, path, "is no file");
	if (!data)
		return weights_error(weights, path,
		        "has %lld bytes: a safetensors file has at least the 8 of its header's "
		        "size",
		        (long long)status.st_size);
	if (data == MAP_FAILED)
		return weights_error(weights, path, "cannot be mapped: %s", strerror(reason));
	*mapping = (struct mapping){ .path = path, .data = data, .size = (size_t)status.st_size };
	VEC_PUSH(weights->arena, &weights->mappings, *mapping);
	return true;
}

static bool read_shape(
        struct weights *weights, const struct json *entry, struct weight *weight, int64_t *elements)
{
	const struct json *shape = json_get(entry, "shape");
	*elements = 1;
	if (!shape || shape->kind != JSON_ARRAY || shape->count > RANK_MOST)
		return weights_error(weights, weight->file,
		        "tensor \"%s\" has no shape of at most %d extents", weight->name,
		        RANK_MOST);
	int64_t *extents = ARENA_ARRAY(weights->arena, int64_t, shape->count + 1);
	for (const struct json *item = shape->first; item; item = item->next) {
		int64_t *extent = &extents[weight->rank++];
		if (!json_integer(item, extent) || *extent < 0 ||
		        __builtin_mul_overflow(*elements, *extent, elements))
			return weights_error(weights, weight->file,
			        "tensor \"%s\" has an impossible shape", weight->name);
	}
	weight->shape = extents;
	return true;
}

static bool read_tensor(struct weights *weights, const struct mapping *mapping, size_t data_at,
        const struct json *entry, struct weight *weight)
{
	const struct json *offsets = json_get(entry, "data_offsets");
	int64_t elements;
	int64_t begin;
	int64_t end;
	int64_t bytes;
	int64_t room = (int64_t)(mapping->size - data_at);
	*weight = (struct weight){
		.name = entry->name, .file = mapping->path, .dtype = json_text(entry, "dtype")
	};
	int dtype = dtype_find(weight->dtype);
	if (dtype < 0) {
		weights_error(weights, mapping->path, "tensor \"%s\" has the unknown dtype %s",
		        entry->name, weight->dtype ? weight->dtype : "(none)");
		return diag_note(weights->diag,
		        "F64, F32, F16, BF16, I64, I32, I16, I8 and BOOL can be read");
	}
	if (!read_shape(weights, entry, weight, &elements))
		return false;
	if (!offsets || offsets->count != 2 || !json_integer(offsets->first, &begin) ||
	        !json_integer(offsets->first->next, &end) || begin < 0 || end < begin)
		return weights_error(weights, mapping->path,
		        "tensor \"%s\" has no data_offsets [begin, end]", entry->name);
	if (end > room)
		return weights_error(weights, mapping->path,
		        "is truncated: tensor \"%s\" ends at byte %lld of the data, which has %lld",
		        entry->name, (long long)end, (long long)room);
	if (__builtin_mul_overflow(elements, dtypes[dtype].bytes, &bytes) || end - begin != bytes)
		return weights_error(weights, mapping->path,
		        "tensor \"%s\" takes %lld bytes, not %lld", entry->name, (long long)bytes,
		        (long long)(end - begin));
	weight->data = mapping->data + data_at + begin;
	weight->bytes = (size_t)bytes;
	return true;
}

static int by_place(const void *left, const void *right)
{
	const struct weight *a = *(const struct weight *const *)left;
	const struct weight *b = *(const struct weight *const *)right;
	if (a->data != b->data)
		return (const char *)a->data < (const char *)b->data ? -1 : 1;
	return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static bool check_places(struct weights *weights, const struct mapping *mapping, size_t data_at,
        struct weight **tensor, size_t count)
{
	const char *at = mapping->data + data_at;
	if (count)
		qsort(tensor, count, sizeof *tensor, by_place);
	for (size_t i = 0; i < count; i++) {
		const char *begin = tensor[i]->data;
		if (begin < at)
			return weights_error(weights, mapping->path,
			        "tensors \"%s\" and \"%s\" overlap", tensor[i - 1]->name,
			        tensor[i]->name);
		if (begin > at)
			return weights_error(weights, mapping->path,
			        "%lld bytes before tensor \"%s\" belong to no tensor",
			        (long long)(begin - at), tensor[i]->name);
		at = begin + tensor[i]->bytes;
	}
	size_t rest = mapping->size - (size_t)(at - mapping->data);
	return !rest ||
	        weights_error(
	                weights, mapping->path, "the last %zu bytes belong to no tensor", rest);
}

static bool read_file(struct weights *weights, const char *path)
{
	struct mapping mapping;
	uint64_t header = 0;
	if (!map_file(weights, path, &mapping))
		return false;
	for (int i = 7; i >= 0; i--)
		header = header << 8 | (uint8_t)mapping.data[i];
	if (header > mapping.size - 8 || header > HEADER_MOST) {
		weights_error(weights, path,
		        "its header should have %llu bytes, but the file has %zu",
		        (unsigned long long)header, mapping.size);
		return diag_note(weights->diag,
		        "a whole safetensors file; is this one truncated, or of another format?");
	}
	size_t offset;
	size_t data_at = 8 + (size_t)header;
	size_t count = 0;
	const struct json *json =
	        json_parse(weights->arena, mapping.data + 8, (size_t)header, &offset);
	if (!json || json->kind != JSON_OBJECT)
		return weights_error(
		        weights, path, "its header is no JSON object (byte %zu)", offset);
	struct weight **tensor = ARENA_ARRAY(weights->arena, struct weight *, json->count + 1);
	for (const struct json *entry = json->first; entry; entry = entry->next) {
		if (!strcmp(entry->name, "__metadata__"))
			continue;
		struct weight *weight = tensor[count++] = ARENA_NEW(weights->arena, struct weight);
		if (map_get(&weights->tensors, entry->name))
			return weights_error(
			        weights, path, "there are two tensors \"%s\"", entry->name);
		if (!read_tensor(weights, &mapping, data_at, entry, weight))
			return false;
		map_set(&weights->tensors, entry->name, weight);
	}
	return check_places(weights, &mapping, data_at, tensor, count);
}

/* ---- several files */

static bool ends_in(const char *text, const char *end)
{
	size_t size = strlen(text);
	size_t tail = strlen(end);
	return size >= tail && !strcmp(text + size - tail, end);
}

static bool check_index(struct weights *weights, const char *path, const struct json *list)
{
	for (const struct json *item = list->first; item; item = item->next) {
		const struct weight *weight = map_get(&weights->tensors, item->name);
		if (!weight || !ends_in(weight->file, item->text))
			return weights_error(weights, path, "tensor \"%s\" is not in %s",
			        item->name, item->text);
	}
	return true;
}

static bool read_index(struct weights *weights, const char *path)
{
	size_t size;
	size_t offset;
	const char *reason;
	const char *text = file_read(weights->arena, path, &size, &reason);
	const char *slash = strrchr(path, '/');
	if (!text)
		return weights_error(weights, path, "cannot be read: %s", reason);
	const struct json *list =
	        json_get(json_parse(weights->arena, text, size, &offset), "weight_map");
	if (!list || list->kind != JSON_OBJECT)
		return weights_error(weights, path, "is no index: it has no object \"weight_map\"");
	struct map files = map_new(weights->arena);
	for (const struct json *item = list->first; item; item = item->next) {
		if (!item->text || !*item->text || strchr(item->text, '/'))
			return weights_error(weights, path,
			        "tensor \"%s\" is in no file beside the index", item->name);
		if (map_get(&files, item->text))
			continue;
		map_set(&files, item->text, weights);
		if (!read_file(weights,
		            text_format(weights->arena, "%.*s%s",
		                    slash ? (int)(slash - path) + 1 : 0, path, item->text)))
			return false;
	}
	return check_index(weights, path, list);
}

static bool read_folder(struct weights *weights, const char *path)
{
	const char *one = text_format(weights->arena, "%s/model.safetensors", path);
	const char *index = text_format(weights->arena, "%s/model.safetensors.index.json", path);
	if (!access(one, F_OK))
		return read_file(weights, one);
	if (!access(index, F_OK))
		return read_index(weights, index);
	return weights_error(
	        weights, path, "has neither model.safetensors nor model.safetensors.index.json");
}

static bool read_path(struct weights *weights, const char *path)
{
	struct stat status;
	if (!stat(path, &status) && S_ISDIR(status.st_mode))
		return read_folder(weights, path);
	return ends_in(path, ".json") ? read_index(weights, path) : read_file(weights, path);
}

struct weights *weights_open(struct arena *arena, struct diag *diag, const char *path)
{
	struct weights *weights = ARENA_NEW(arena, struct weights);
	*weights = (struct weights){
		.arena = arena, .diag = diag, .path = path, .tensors = map_new(arena)
	};
	if (read_path(weights, path))
		return weights;
	weights_close(weights);
	return NULL;
}

void weights_release(const void *data, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t before = (uintptr_t)data % page;
	if (before + bytes >= page)
		madvise((void *)((uintptr_t)data - before), (before + bytes) / page * page,
		        MADV_DONTNEED);
}

void weights_close(struct weights *weights)
{
	if (!weights)
		return;
	for (size_t i = 0; i < weights->mappings.count; i++)
		munmap((void *)(uintptr_t)weights->mappings.data[i].data,
		        weights->mappings.data[i].size);
	weights->mappings.count = 0;
}

bool weights_has(const struct weights *weights, const char *name)
{
	return map_get(&weights->tensors, name) != NULL;
}

int weights_count(const struct weights *weights)
{
	return (int)weights->tensors.entries.count;
}

static const char *shape_text(struct arena *arena, int rank, const int64_t *shape)
{
	struct text text = text_new(arena);
	text_add(&text, "[");
	for (int d = 0; d < rank; d++)
		text_add(&text, "%s%lld", d ? ", " : "", (long long)shape[d]);
	text_add(&text, "]");
	return text.data;
}

const struct weight *weights_find(
        struct weights *weights, const char *name, const struct type *type)
{
	const struct weight *weight = map_get(&weights->tensors, name);
	const struct type *scalar = type_scalar(type);
	if (!weight) {
		weights_error(weights, weights->path, "has no tensor \"%s\"", name);
		diag_note(weights->diag, "the model's argument of this name needs one of type %s",
		        type->text);
		return NULL;
	}
	int dtype = dtype_find(weight->dtype);
	if (dtypes[dtype].kind != scalar->kind || dtypes[dtype].width != scalar->width) {
		weights_error(
		        weights, weight->file, "tensor \"%s\" has dtype %s", name, weight->dtype);
		diag_note(weights->diag, "the model's argument is %s", type->text);
		return NULL;
	}
	bool same = weight->rank == type->rank;
	for (int d = 0; same && d < type->rank; d++)
		same = weight->shape[d] == type->shape[d];
	if (!same) {
		weights_error(weights, weight->file, "tensor \"%s\" has shape %s", name,
		        shape_text(weights->arena, weight->rank, weight->shape));
		diag_note(weights->diag, "the model's argument has shape %s",
		        shape_text(weights->arena, type->rank, type->shape));
		return NULL;
	}
	return weight;
}
