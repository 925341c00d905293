/* Streamed: an image is made and written in chunks, so that memory does not grow with the model.  Packing and hashing of several images run side by side. */
#define _POSIX_C_SOURCE 200809L
#include "driver/pack.h"
#include "driver/quantised_weight.h"
#include "base/blake2.h"
#include "emit/emit.h"
#include "model/segment.h"
#include "sim/eval_level.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)4 << 20)
#define WORKERS 2

struct source {               /* a segment and what it is packed from */
	struct segment segment;
	const void *data;         /* NULL: `weight`, rounded */
	const struct quantised_weight *weight;
};

struct image_file {
	const char *path, *place;
	int64_t elements;
	int element_bytes;
	bool halves;              /* two elements a byte */
	VEC(struct source) sources;
	int reason;               /* errno */
	const char *weight;       /* the one that cannot be packed, if reason is EDOM */
	char hash[65];
};

struct packing {
	struct output *output;
	struct module *module;
	struct weights *weights;
	struct arena *arena;
	size_t most;              /* bytes of the largest weight that is rounded */
	VEC(struct image_file) files;
	atomic_size_t next;       /* file that a worker takes next */
	atomic_bool failed;
};

struct worker {
	struct packing *packing;
	char *chunk;
	const struct quantised_weight *rounded;   /* the weight that was rounded last, and */
	void *data;               /* room for the largest */
};

/* ---- what goes where */

/* NULL without a diagnostic: the segment is not for the compiler to fill. */
static const void *segment_data(struct packing *p, const struct attr *segment, const struct attr *input)
{
	const struct type *type = attr_item(input, "type")->type;
	const char *name = attr_item(segment, "name")->text, *role = attr_item(segment, "role")->text;
	if (text_same(role, "constant")) {
		struct evaluation e = {.module = p->module, .arena = p->arena};
		const struct tensor *tensor = eval_constant_tensor(&e, type, attr_item(input, "value"), module_main(p->module)->location);
		return tensor ? tensor->data : NULL;
	}
	if (!text_same(role, "weight") || !p->weights)
		return NULL;
	const struct weight *weight = weights_find(p->weights, name, type);
	return weight ? weight->data : NULL;
}

static bool add_source(struct packing *p, struct image_file *file, const struct attr *segment)
{
	const struct attr *input = attr_entry(attr_get(module_main(p->module), "stream.inputs"), attr_item(segment, "name")->text), *from = attr_item(input, "from");
	struct source source = {.data = NULL};
	int errors = p->module->diag->count;
	if (from && p->weights && !(source.weight = quantised_weight_find(p->arena, p->module->diag, p->weights, from)))
		return false;
	if (input && !from && type_elements(attr_item(input, "type")->type))
		source.data = segment_data(p, segment, input);
	if (p->module->diag->count > errors)
		return false;
	if (!source.weight && !source.data)
		return true;
	size_t bytes = source.weight ? quantised_weight_bytes(source.weight) : 0;
	p->most = bytes > p->most ? bytes : p->most;
	const struct type *host = attr_item(input, "type")->type;
	const char *wrong = segment_read(p->arena, segment, &source.segment);
	INVARIANT(p->module->guard, !wrong, "%s \"%s\"", wrong, source.segment.name);
	source.segment.host_bytes = (int)(emit_bytes(host) / type_elements(host));
	source.segment.image_bytes = file->element_bytes;
	source.segment.halves = file->halves;
	VEC_PUSH(p->arena, &file->sources, source);
	return true;
}

static bool plan_file(struct packing *p, const struct attr *buffer)
{
	const struct attr *segments = attr_item(buffer, "segments"), *word = attr_item(buffer, "word");
	struct image_file file = {.halves = emit_bytes(word->type) < type_elements(word->type)};
	file.element_bytes = file.halves ? 1 : (int)(emit_bytes(word->type) / type_elements(word->type));
	file.elements = attr_item(buffer, "words")->integer * type_elements(word->type);
	for (int i = 0; i < segments->count; i++)
		if (!add_source(p, &file, segments->items[i].value))
			return false;
	if (!file.sources.count)
		return true;
	file.path = text_format(p->arena, "weights/%s.bin", attr_item(buffer, "name")->text);
	file.place = output_place(p->output, file.path);
	VEC_PUSH(p->arena, &p->files, file);
	return file.place != NULL;
}

/* ---- writing */

static int64_t bytes_of(const struct image_file *file, int64_t elements)
{
	return file->halves ? elements / 2 : elements * file->element_bytes;
}

/* Segments of one weight follow one another: it is rounded once for each file. */
static const void *source_data(struct worker *worker, const struct source *source)
{
	if (!source->weight)
		return source->data;
	if (worker->rounded != source->weight && !quantised_weight_fill(source->weight, worker->data))
		return NULL;
	worker->rounded = source->weight;
	return worker->data;
}

/* NULL, or the weight that cannot be packed. */
static const char *fill_chunk(struct worker *worker, const struct image_file *file, int64_t first, int64_t count)
{
	char *chunk = worker->chunk;
	memset(chunk, 0, (size_t)bytes_of(file, count));
	for (size_t s = 0; s < file->sources.count; s++) {
		const struct segment *segment = &file->sources.data[s].segment;
		int64_t begin = segment->offset, end = begin + segment_elements(segment);
		begin = begin > first ? begin : first;
		end = end < first + count ? end : first + count;
		if (begin >= end)
			continue;
		const void *data = source_data(worker, &file->sources.data[s]);
		if (!data)
			return file->sources.data[s].weight->from->source;
		segment_pack(segment, data, chunk, first, begin - segment->offset, end - begin);
	}
	return NULL;
}

static int put(int to, const char *data, size_t size)
{
	while (size) {
		ssize_t done = write(to, data, size);
		if (done < 0 && errno != EINTR)
			return errno;
		data += done > 0 ? done : 0;
		size -= done > 0 ? (size_t)done : 0;
	}
	return 0;
}

static int write_image(struct worker *worker, struct image_file *file)
{
	struct blake2 hash;
	int to = open(file->place, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), reason = to < 0 ? errno : 0;
	int64_t step = (int64_t)CHUNK_BYTES / file->element_bytes;
	blake2_start(&hash);
	for (int64_t first = 0; first < file->elements && !reason; first += step) {
		int64_t count = file->elements - first < step ? file->elements - first : step;
		size_t bytes = (size_t)bytes_of(file, count);
		file->weight = fill_chunk(worker, file, first, count);
		reason = file->weight ? EDOM : 0;
		blake2_add(&hash, worker->chunk, bytes);
		if (!reason)
			reason = output_stopped(worker->packing->output) ? EINTR : put(to, worker->chunk, bytes);
	}
	blake2_end(&hash, file->hash);
	return to >= 0 && close(to) && !reason ? errno : reason;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct packing *p = worker->packing;
	for (size_t i; !p->failed && (i = atomic_fetch_add(&p->next, 1)) < p->files.count;) {
		p->files.data[i].reason = write_image(worker, &p->files.data[i]);
		if (p->files.data[i].reason)
			p->failed = true;
	}
	return NULL;
}

/* The largest first, so that the workers end at about the same time. */
static int by_size(const void *left, const void *right)
{
	const struct image_file *a = left, *b = right;
	int64_t difference = bytes_of(b, b->elements) - bytes_of(a, a->elements);
	return difference ? difference < 0 ? -1 : 1 : strcmp(a->path, b->path);
}

static void run_workers(struct packing *p)
{
	struct worker worker[WORKERS];
	pthread_t thread[WORKERS];
	bool started[WORKERS] = {0};
	for (int i = 0; i < WORKERS; i++)
		worker[i] = (struct worker){.packing = p, .chunk = arena_alloc(p->arena, CHUNK_BYTES), .data = arena_alloc(p->arena, p->most)};
	for (int i = 1; i < WORKERS; i++)
		started[i] = !pthread_create(&thread[i], NULL, work, &worker[i]);
	work(&worker[0]);
	for (int i = 1; i < WORKERS; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
}

bool pack_weights(struct output *output, struct module *module, struct weights *weights, int64_t *bytes)
{
	const struct attr *buffers = attr_get(module_main(module), "stream.buffers");
	struct packing p = {.output = output, .module = module, .weights = weights, .arena = module->arena};
	int64_t total = 0;
	for (int b = 0; b < buffers->count; b++)
		if (!attr_item(buffers->items[b].value, "same") && !plan_file(&p, buffers->items[b].value))
			return false;
	if (p.files.count)
		qsort(p.files.data, p.files.count, sizeof *p.files.data, by_size);
	run_workers(&p);
	for (size_t i = 0; i < p.files.count; i++) {
		const struct image_file *file = &p.files.data[i];
		if (file->reason && output_stopped(output))
			return diag_error(output->diag, NOWHERE, "stopped");
		if (file->weight) {
			diag_error(output->diag, NOWHERE, "the weight \"%s\" holds a number that is infinite or not a number", file->weight);
			return diag_note(output->diag, "numbers that have a largest one, which becomes the scale of their group");
		}
		if (file->reason)
			return output_error(output, file->path, file->reason);
		output_record(output, file->path, file->hash);
		total += bytes_of(file, file->elements);
	}
	if (bytes)
		*bytes += total;
	return true;
}
