/* A .npy file: "\x93NUMPY", two bytes of version, the header's size (2 bytes little endian in
 * version 1, else 4), the header, then the data. The header is a Python dictionary: {'descr':
 * '<f4', 'fortran_order': False, 'shape': (2, 3), }. */
#include "base/npy.h"
#include "base/data.h"
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define ALIGNMENT 64

static const char *const dtypes[] = { "f4", "f8", "f2", "i8", "i4", "i2", "i1", "u1", "b1" };

struct npy_reader {
	struct diag *diag;
	const char *path;
	const char *at, *end; /* the rest of the header */
	struct npy *npy;
	unsigned seen; /* a bit for each key */
};

static const char *dtype_named(const char *name, size_t size)
{
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
		if (size == 2 && !memcmp(dtypes[i], name, 2))
			return dtypes[i];
	return NULL;
}

int npy_element_bytes(const char *dtype)
{
	return dtype && dtype_named(dtype, strlen(dtype)) ? dtype[1] - '0' : 0;
}

static bool npy_error(struct diag *diag, const char *path, const char *what)
{
	diag_error(diag, (struct location){ .file = path }, "%s", what);
	return diag_note(diag,
	        ".npy files of version 1 to 3, in C order, of f4 f8 f2 i8 i4 i2 i1 "
	        "u1 or b1");
}

static void skip_space(struct npy_reader *reader)
{
	while (reader->at < reader->end &&
	        (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\t'))
		reader->at++;
}

static bool accept(struct npy_reader *reader, const char *word)
{
	size_t size = strlen(word);
	skip_space(reader);
	if ((size_t)(reader->end - reader->at) < size || memcmp(reader->at, word, size) != 0)
		return false;
	reader->at += size;
	return true;
}

/* A string in quotes, without escapes.  NULL: there is none. */
static const char *read_string(struct npy_reader *reader, size_t *size)
{
	skip_space(reader);
	if (reader->at == reader->end || (*reader->at != '\'' && *reader->at != '"'))
		return NULL;
	const char *start = reader->at + 1;
	const char *close = memchr(start, *reader->at, (size_t)(reader->end - start));
	if (!close)
		return NULL;
	reader->at = close + 1;
	*size = (size_t)(close - start);
	return start;
}

static bool read_descr(struct npy_reader *reader)
{
	size_t size = 0;
	const char *text = read_string(reader, &size);
	bool order = text && size == 3 &&
	        (*text == '<' || *text == '>' ||
	                (text[2] == '1' && (*text == '|' || *text == '=')));
	reader->npy->big_endian = order && *text == '>' && text[2] != '1';
	reader->npy->dtype = order ? dtype_named(text + 1, 2) : NULL;
	return reader->npy->dtype != NULL;
}

static bool read_order(struct npy_reader *reader)
{
	return accept(reader, "False");
}

static bool read_extent(struct npy_reader *reader, int64_t *extent)
{
	const char *start = reader->at;
	*extent = 0;
	for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++)
		if (__builtin_mul_overflow(*extent, 10, extent) ||
		        __builtin_add_overflow(*extent, *reader->at - '0', extent))
			return false;
	return reader->at > start;
}

static bool read_shape(struct npy_reader *reader)
{
	struct npy *npy = reader->npy;
	if (!accept(reader, "("))
		return false;
	while (!accept(reader, ")")) {
		if (npy->rank == NPY_RANK_MOST || !read_extent(reader, &npy->shape[npy->rank++]))
			return false;
		if (!accept(reader, ",") &&
		        (skip_space(reader), reader->at == reader->end || *reader->at != ')'))
			return false;
	}
	return true;
}

static const struct {
	const char *name;
	bool (*read)(struct npy_reader *reader);
	const char *refusal;
} keys[] = {
	{ "descr", read_descr, "holds elements of a type that is not taken" },
	{ "fortran_order", read_order, "is in Fortran order" },
	{ "shape", read_shape, "has a damaged shape" },
};
#define KEYS ((unsigned)(sizeof keys / sizeof *keys))

static bool read_entry(struct npy_reader *reader)
{
	size_t size = 0;
	const char *name = read_string(reader, &size);
	unsigned key = 0;
	while (key < KEYS &&
	        !(name && strlen(keys[key].name) == size && !memcmp(keys[key].name, name, size)))
		key++;
	if (key == KEYS || reader->seen & 1u << key || !accept(reader, ":"))
		return npy_error(reader->diag, reader->path, "has a damaged header");
	reader->seen |= 1u << key;
	return keys[key].read(reader) || npy_error(reader->diag, reader->path, keys[key].refusal);
}

static bool read_header(struct npy_reader *reader)
{
	bool open = accept(reader, "{");
	while (open && !accept(reader, "}")) {
		if (!read_entry(reader))
			return false;
		if (!accept(reader, ",") &&
		        (skip_space(reader), reader->at == reader->end || *reader->at != '}'))
			open = false;
	}
	skip_space(reader);
	return (open && reader->at == reader->end && reader->seen == (1u << KEYS) - 1) ||
	        npy_error(reader->diag, reader->path, "has a damaged header");
}

static bool size_of(const struct npy *npy, size_t *bytes)
{
	bool empty = false;
	*bytes = (size_t)npy_element_bytes(npy->dtype);
	for (int d = 0; d < npy->rank; d++)
		empty = empty || !npy->shape[d];
	for (int d = 0; d < npy->rank && !empty; d++)
		if (__builtin_mul_overflow(*bytes, (size_t)npy->shape[d], bytes))
			return false;
	*bytes = empty ? 0 : *bytes;
	return true;
}

bool npy_parse(struct diag *diag, const char *path, const char *file, size_t size, struct npy *npy)
{
	const unsigned char *bytes = (const unsigned char *)file;
	*npy = (struct npy){ 0 };
	if (size < MAGIC_BYTES + 4 || memcmp(file, MAGIC, MAGIC_BYTES) != 0)
		return npy_error(diag, path, "is no .npy file");
	int version = bytes[MAGIC_BYTES];
	if (version < 1 || version > 3)
		return npy_error(diag, path, "has an unknown version");
	size_t start = version == 1 ? MAGIC_BYTES + 4 : MAGIC_BYTES + 6;
	size_t length = bytes[8] | (size_t)bytes[9] << 8;
	if (version > 1 && size >= start)
		length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
	if (size < start || length > size - start)
		return npy_error(diag, path, "is truncated: its header is longer than the file");
	struct npy_reader reader = { .diag = diag,
		.path = path,
		.at = file + start,
		.end = file + start + length,
		.npy = npy };
	if (!read_header(&reader))
		return false;
	size_t room = size - start - length;
	if (!size_of(npy, &npy->bytes) || npy->bytes > room) {
		diag_error(diag, (struct location){ .file = path },
		        "is truncated: %zu bytes of data are too few for its shape", room);
		return diag_note(diag, "as many as the shape and the type need");
	}
	if (npy->bytes < room)
		return npy_error(diag, path, "has bytes after its data");
	npy->data = file + start + length;
	return true;
}

static void reverse_elements(char *data, size_t bytes, size_t each)
{
	for (char *element = data; element < data + bytes; element += each)
		for (size_t i = 0; i < each / 2; i++) {
			char byte = element[i];
			element[i] = element[each - 1 - i];
			element[each - 1 - i] = byte;
		}
}

bool npy_read(struct arena *arena, struct diag *diag, const char *path, struct npy *npy)
{
	size_t size;
	const char *reason;
	char *file = file_read(arena, path, &size, &reason);
	if (!file)
		return diag_error(
		        diag, (struct location){ .file = path }, "cannot be read: %s", reason);
	if (!npy_parse(diag, path, file, size, npy))
		return false;
	if (npy->big_endian)
		reverse_elements(file + size - npy->bytes, npy->bytes,
		        (size_t)npy_element_bytes(npy->dtype));
	npy->big_endian = false;
	return true;
}

void npy_shape_text(struct text *out, int rank, const int64_t *shape)
{
	text_add(out, "(");
	for (int d = 0; d < rank; d++)
		text_add(out, "%s%lld", d ? ", " : "", (long long)shape[d]);
	text_add(out, rank == 1 ? ",)" : ")");
}

void npy_header(struct text *out, const char *dtype, int rank, const int64_t *shape)
{
	struct text header = text_new(out->arena);
	text_add(&header,
	        "{'descr': '%c%s', 'fortran_order': False, 'shape': ", dtype[1] == '1' ? '|' : '<',
	        dtype);
	npy_shape_text(&header, rank, shape);
	text_add(&header, ", }");
	size_t whole = MAGIC_BYTES + 4 + header.size + 1;
	text_add(&header, "%*s\n", (int)((ALIGNMENT - whole % ALIGNMENT) % ALIGNMENT), "");
	const char size[] = { 1, 0, (char)(header.size & 0xff), (char)(header.size >> 8) };
	text_add_bytes(out, MAGIC, MAGIC_BYTES);
	text_add_bytes(out, size, sizeof size);
	text_add_bytes(out, header.data, header.size);
}
