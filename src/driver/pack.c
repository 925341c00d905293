/* Packs weights and constants into the images of the memory buffers.  Each weight is read and
 * quantized once and written in chunks to all images that hold a part of it, so that memory use
 * does not grow with the model.  Two threads pack different weights; then the images are hashed. */
#define _POSIX_C_SOURCE 200809L
#include "driver/pack.h"
#include "driver/quantized_weight.h"
#include "base/blake2.h"
#include "base/parallel.h"
#include "base/map.h"
#include "emit/emit.h"
#include "image/segment.h"
#include "evaluate/eval_level.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)4 << 20)
#define WORKERS 2

enum { VALUES, SCALES, ZEROS, PARTS };

struct image_file {
	const char *path, *place;
	size_t bytes;
	int reason; /* errno */
	char hash[65];
};

struct packed_segment { /* a part of an argument in an image */
	struct segment segment;
	size_t file;
};

/* The data of an argument, the integers and scales of a weight, computed in one pass, or its zero
 * points. */
struct parcel {
	const void *data;                             /* NULL: `weight` */
	const struct quantized_weight *weight[PARTS]; /* NULL: no argument holds it */
	VEC(struct packed_segment) segments[PARTS];
	int64_t elements, number;
	int reason; /* errno of writing to `file` */
	size_t file;
	bool unfit; /* holds a number that is infinite or not a number */
};

struct packing {
	struct output *output;
	struct module *module;
	struct weights *weights;
	struct arena *arena;
	size_t most[PARTS]; /* bytes of the largest quantized weight, and of the most scales */
	VEC(struct image_file) files;
	VEC(struct parcel *) parcels;
	struct map input;   /* name of an argument -> its entry in stream.inputs */
	struct map rounded; /* name of a quantized argument -> its parcel */
	size_t packed_segments;
	atomic_size_t next; /* next parcel, then next file, for a worker */
	atomic_bool failed;
};

struct pack_worker {
	struct packing *packing;
	char *chunk;
	void *room[PARTS];
};

/* ---- what goes where */

static struct parcel *add_parcel(struct packing *p, const void *data)
{
	struct parcel *parcel = ARENA_NEW(p->arena, struct parcel);
	*parcel = (struct parcel){ .data = data, .number = (int64_t)p->parcels.count };
	VEC_PUSH(p->arena, &p->parcels, parcel);
	return parcel;
}

/* The parcel with the other part (integers or scales) of the same weight, or a new one. */
static struct parcel *paired_parcel(
        struct packing *p, const struct quantized_weight *weight, int part)
{
	for (size_t i = p->parcels.count; i-- > 0 && part != ZEROS;) {
		struct parcel *parcel = p->parcels.data[i];
		if (parcel->weight[1 - part] && !parcel->weight[part] &&
		        quantized_weight_pairs(parcel->weight[1 - part], weight))
			return parcel;
	}
	return add_parcel(p, NULL);
}

/* NULL after a diagnostic. */
static struct parcel *rounded_parcel(
        struct packing *p, const char *name, const struct attr *from, int part)
{
	struct parcel *parcel = map_get(&p->rounded, name);
	const struct quantized_weight *weight =
	        parcel ? NULL : quantized_weight_find(p->arena, p->module->diag, p->weights, from);
	if (!weight)
		return parcel;
	size_t bytes = quantized_weight_bytes(weight);
	p->most[part] = bytes > p->most[part] ? bytes : p->most[part];
	parcel = paired_parcel(p, weight, part);
	parcel->weight[part] = weight;
	map_set(&p->rounded, name, parcel);
	return parcel;
}

/* NULL without a diagnostic: the host fills the segment, not the compiler. */
static struct parcel *plain_parcel(
        struct packing *p, const struct attr *segment, const struct attr *input)
{
	const struct type *type = attr_item(input, KEY_TYPE)->type;
	const char *name = attr_item(segment, KEY_NAME)->text;
	const char *role = attr_item(segment, KEY_ROLE)->text;
	if (!type_elements(type))
		return NULL;
	if (text_same(role, "constant")) {
		struct evaluation e = { .module = p->module, .arena = p->arena };
		const struct tensor *tensor = eval_constant_tensor(
		        &e, type, attr_item(input, KEY_VALUE), module_main(p->module)->location);
		return tensor ? add_parcel(p, tensor->data) : NULL;
	}
	if (!text_same(role, "weight") || !p->weights)
		return NULL;
	const struct weight *weight = weights_find(p->weights, name, type);
	return weight ? add_parcel(p, weight->data) : NULL;
}

static int part_of(const struct attr *from)
{
	const char *part = attr_item_text(from, KEY_PART);
	if (text_same(part, "zero"))
		return ZEROS;
	return text_same(part, "scale") ? SCALES : VALUES;
}

/* false after a diagnostic. */
static bool add_segment(
        struct packing *p, const struct attr *segment, int element_bytes, bool halves)
{
	const struct attr *input = map_get(&p->input, attr_item(segment, KEY_NAME)->text);
	const struct attr *from = attr_item(input, KEY_DERIVED_FROM);
	int errors = p->module->diag->count;
	int part = part_of(from);
	bool rounded = from && p->weights;
	if (!input || (from && !rounded))
		return true;
	struct parcel *parcel = rounded
	        ? rounded_parcel(p, attr_item(segment, KEY_NAME)->text, from, part)
	        : plain_parcel(p, segment, input);
	if (p->module->diag->count > errors || !parcel)
		return p->module->diag->count == errors;
	struct packed_segment packed = { .file = p->files.count };
	const struct type *host = attr_item(input, KEY_TYPE)->type;
	const char *wrong = segment_read(p->arena, segment, &packed.segment);
	INVARIANT(p->module->guard, !wrong && !(halves && packed.segment.offset % 2), "%s \"%s\"",
	        wrong ? wrong : "half a byte is in front of", packed.segment.name);
	packed.segment.host_bytes = (int)(emit_bytes(host) / type_elements(host));
	packed.segment.image_bytes = element_bytes;
	packed.segment.halves = halves;
	parcel->elements += segment_elements(&packed.segment);
	VEC_PUSH(p->arena, &parcel->segments[part], packed);
	p->packed_segments++;
	return true;
}

static bool plan_file(struct packing *p, const struct attr *buffer)
{
	const struct attr *segments = attr_item(buffer, KEY_SEGMENTS);
	const struct type *word = attr_item(buffer, KEY_WORD)->type;
	bool halves = emit_bytes(word) < type_elements(word);
	int element_bytes = halves ? 1 : (int)(emit_bytes(word) / type_elements(word));
	size_t before = p->packed_segments;
	for (int i = 0; i < segments->count; i++)
		if (!add_segment(p, segments->items[i].value, element_bytes, halves))
			return false;
	if (p->packed_segments == before)
		return true;
	struct image_file file = { .path = text_format(p->arena, "weights/%s.bin",
		                           attr_item(buffer, KEY_NAME)->text),
		.bytes = (size_t)(attr_item(buffer, KEY_WORDS)->integer * emit_bytes(word)) };
	file.place = output_place(p->output, file.path);
	VEC_PUSH(p->arena, &p->files, file);
	return file.place != NULL;
}

/* The largest first, so that the workers end at about the same time. */
static int by_size(const void *left, const void *right)
{
	const struct parcel *a = *(struct parcel *const *)left;
	const struct parcel *b = *(struct parcel *const *)right;
	int64_t difference =
	        b->elements != a->elements ? b->elements - a->elements : a->number - b->number;
	return difference < 0 ? -1 : difference > 0;
}

/* ---- writing */

static int make_file(const struct image_file *file)
{
	int to = open(file->place, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int reason = to < 0 || ftruncate(to, (off_t)file->bytes) ? errno : 0;
	return to >= 0 && close(to) && !reason ? errno : reason;
}

static int put(int to, const char *data, size_t size, off_t at)
{
	while (size) {
		ssize_t done = pwrite(to, data, size, at);
		if (done < 0 && errno != EINTR)
			return errno;
		data += done > 0 ? done : 0;
		at += done > 0 ? done : 0;
		size -= done > 0 ? (size_t)done : 0;
	}
	return 0;
}

static int write_segment(struct pack_worker *worker, const struct segment *segment,
        const void *data, const char *place)
{
	int64_t most = (int64_t)CHUNK_BYTES / segment->image_bytes;
	int64_t elements = segment_elements(segment);
	int64_t count;
	int to = open(place, O_WRONLY | O_CLOEXEC);
	int reason = to < 0 ? errno : 0;
	for (int64_t first = 0; first < elements && !reason; first += count) {
		int64_t consecutive =
		        segment->run ? segment->run - first % segment->run : elements - first;
		int64_t at = segment_place(segment, first);
		count = consecutive < most ? consecutive : most;
		size_t bytes = (size_t)segment_bytes(segment, count);
		memset(worker->chunk, 0, bytes);
		segment_pack(segment, data, worker->chunk, at, first, count);
		reason = output_stopped(worker->packing->output)
		        ? EINTR
		        : put(to, worker->chunk, bytes, (off_t)segment_bytes(segment, at));
	}
	return to >= 0 && close(to) && !reason ? errno : reason;
}

/* A quantized weight of the parcel. */
static const struct quantized_weight *weight_of(const struct parcel *parcel)
{
	int part = 0;
	while (!parcel->weight[part])
		part++;
	return parcel->weight[part];
}

static bool fill_room(struct pack_worker *worker, const struct parcel *parcel)
{
	const struct quantized_weight *values = parcel->weight[VALUES];
	const struct quantized_weight *scales = parcel->weight[SCALES];
	const volatile sig_atomic_t *stop = worker->packing->output->stop;
	const struct quantized_weight *zeros = parcel->weight[ZEROS];
	if (zeros)
		return quantized_weight_fill(zeros, worker->room[ZEROS], NULL, stop);
	if (!values)
		return quantized_weight_fill(scales, worker->room[SCALES], NULL, stop);
	return quantized_weight_fill(
	        values, worker->room[VALUES], scales ? worker->room[SCALES] : NULL, stop);
}

/* false: packing has failed, so other workers may stop. */
static bool fill_parcel(struct pack_worker *worker, struct parcel *parcel)
{
	struct packing *p = worker->packing;
	parcel->unfit = !parcel->data && !fill_room(worker, parcel);
	for (int part = 0; part < PARTS && !parcel->unfit; part++)
		for (size_t i = 0; i < parcel->segments[part].count; i++) {
			const struct packed_segment *packed = &parcel->segments[part].data[i];
			parcel->reason = write_segment(worker, &packed->segment,
			        parcel->data ? parcel->data : worker->room[part],
			        p->files.data[packed->file].place);
			parcel->file = packed->file;
			if (parcel->reason)
				return false;
		}
	if (!parcel->data)
		quantized_weight_release(weight_of(parcel));
	return !parcel->unfit;
}

static void fill_parcels(void *argument, struct arena *scratch)
{
	(void)scratch;
	struct pack_worker *worker = argument;
	struct packing *p = worker->packing;
	for (size_t i; !p->failed && (i = atomic_fetch_add(&p->next, 1)) < p->parcels.count;)
		if (!fill_parcel(worker, p->parcels.data[i]))
			p->failed = true;
}

static int hash_file(struct pack_worker *worker, struct image_file *file)
{
	struct blake2 hash;
	int from = open(file->place, O_RDONLY | O_CLOEXEC);
	int reason = from < 0 ? errno : 0;
	size_t left = file->bytes;
	blake2_start(&hash);
	while (left && !reason) {
		ssize_t got = read(from, worker->chunk, left < CHUNK_BYTES ? left : CHUNK_BYTES);
		if (got < 0 && errno != EINTR)
			reason = errno;
		else if (got == 0)
			reason = EIO;
		else if (got > 0 && output_stopped(worker->packing->output))
			reason = EINTR;
		if (got > 0)
			blake2_add(&hash, worker->chunk, (size_t)got);
		left -= got > 0 ? (size_t)got : 0;
	}
	blake2_end(&hash, file->hash);
	if (from >= 0)
		close(from);
	return reason;
}

static void hash_files(void *argument, struct arena *scratch)
{
	(void)scratch;
	struct pack_worker *worker = argument;
	struct packing *p = worker->packing;
	for (size_t i; !p->failed && (i = atomic_fetch_add(&p->next, 1)) < p->files.count;) {
		p->files.data[i].reason = hash_file(worker, &p->files.data[i]);
		if (p->files.data[i].reason)
			p->failed = true;
	}
}

static void run_workers(struct packing *p, struct pack_worker *worker,
        void (*work)(void *worker, struct arena *scratch))
{
	struct task task[WORKERS];
	for (int i = 0; i < WORKERS; i++)
		task[i] = (struct task){ work, &worker[i] };
	p->next = 0;
	tasks_run(p->module->guard, WORKERS, task);
}

static void pack_files(struct packing *p)
{
	struct pack_worker worker[WORKERS];
	for (size_t i = 0; i < p->files.count && !p->failed; i++) {
		p->files.data[i].reason = make_file(&p->files.data[i]);
		p->failed = p->files.data[i].reason != 0;
	}
	for (int i = 0; i < WORKERS; i++) {
		worker[i] = (struct pack_worker){ .packing = p,
			.chunk = arena_alloc(p->arena, CHUNK_BYTES) };
		for (int part = 0; part < PARTS; part++)
			worker[i].room[part] = arena_alloc(p->arena, p->most[part]);
	}
	run_workers(p, worker, fill_parcels);
	run_workers(p, worker, hash_files);
}

/* false after a diagnostic. */
static bool check_parcels(const struct packing *p)
{
	for (size_t i = 0; i < p->parcels.count; i++) {
		const struct parcel *parcel = p->parcels.data[i];
		if (parcel->unfit) {
			const struct quantized_weight *weight = weight_of(parcel);
			diag_error(p->output->diag, NOWHERE,
			        "the weight \"%s\" holds a number that is infinite or not a number",
			        weight->from->source);
			return diag_note(p->output->diag,
			        "finite numbers are needed: the largest absolute value gives the "
			        "scale of its group");
		}
		if (parcel->reason)
			return output_error(
			        p->output, p->files.data[parcel->file].path, parcel->reason);
	}
	return true;
}

static struct map inputs_of(struct module *module)
{
	const struct attr *inputs = attr_get(module_main(module), KEY_STREAM_INPUTS);
	struct map input = map_new(module->arena);
	for (int i = 0; inputs && i < inputs->count; i++)
		map_set(&input, attr_item(inputs->items[i].value, KEY_NAME)->text,
		        (void *)(uintptr_t)inputs->items[i].value);
	return input;
}

bool pack_weights(
        struct output *output, struct module *module, struct weights *weights, int64_t *bytes)
{
	const struct attr *buffers = attr_get(module_main(module), KEY_STREAM_BUFFERS);
	struct packing p = { .output = output,
		.module = module,
		.weights = weights,
		.arena = module->arena,
		.input = inputs_of(module),
		.rounded = map_new(module->arena) };
	for (int b = 0; b < buffers->count; b++)
		if (!attr_item(buffers->items[b].value, KEY_SAME_AS) &&
		        !plan_file(&p, buffers->items[b].value))
			return false;
	if (p.parcels.count) {
		qsort(p.parcels.data, p.parcels.count, sizeof *p.parcels.data, by_size);
		pack_files(&p);
	}
	if (output_stopped(output))
		return diag_error(output->diag, NOWHERE, "stopped");
	if (!check_parcels(&p))
		return false;
	for (size_t i = 0; i < p.files.count; i++) {
		const struct image_file *file = &p.files.data[i];
		if (file->reason)
			return output_error(output, file->path, file->reason);
		output_record(output, file->path, file->hash);
		if (bytes)
			*bytes += (int64_t)file->bytes;
	}
	return true;
}
