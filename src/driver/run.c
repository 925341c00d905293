/* `stc run`: launches a design once, for one step or several, with inputs and results in .npy
 * files.  Results are written whole or not at all. */
#define _POSIX_C_SOURCE 200809L
#include "driver/command_line.h"
#include "base/npy.h"
#include "pipeline/output.h"
#include "pipeline/session.h"
#include "import/weights.h"
#include "../runtime/src/design.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct result_file {
	const char *path, *temporary; /* NULL: nothing to rename; whole is written to the path */
	struct text whole;
};

struct run_input {
	struct design_tensor *tensor;
	const void *data;
	size_t bytes;
};

struct run {
	struct session *session;
	struct arena *arena;
	struct diag *diag;
	struct design design;
	struct weights *weights;
	bool *supplied; /* [design.now->tensors] */
	/* --tokens: the first step's input, then a row for every further token up to the one after
	 * the last step; NULL: without --tokens */
	char *text;
	int64_t tokens, begun; /* steps of the launch; tokens in the input file */
	size_t text_bytes;
	VEC(struct run_input) inputs;
	VEC(struct result_file) files;
};

/* ---- names */

/* Splits NAME=FILE.  NULL after a diagnostic. */
static const char *split(struct run *run, const char *option, const char *value, const char **file)
{
	const char *equals = strchr(value, '=');
	if (!equals || equals == value || !equals[1]) {
		diag_error(run->diag, NOWHERE, "--%s is '%s'", option, value);
		diag_note(run->diag, "--%s NAME=FILE", option);
		return NULL;
	}
	*file = equals + 1;
	return text_copy(run->arena, value, (size_t)(equals - value));
}

/* The N of argN or resultN; -1: something else. */
static long number_of(const char *name, const char *prefix)
{
	size_t size = strlen(prefix);
	char *end;
	if (strncmp(name, prefix, size) != 0 || name[size] < '0' || name[size] > '9')
		return -1;
	long number = strtol(name + size, &end, 10);
	return *end ? -1 : number;
}

static struct design_tensor *numbered(struct design *design, long number, bool result)
{
	for (size_t i = 0; number >= 0 && i < design->now->tensors.count; i++)
		if (design->now->tensors.data[i].result == result && !number--)
			return &design->now->tensors.data[i];
	return NULL;
}

static void note_tensors(struct run *run, bool result)
{
	struct text text = text_new(run->arena);
	for (size_t i = 0; i < run->design.now->tensors.count; i++) {
		const struct design_tensor *tensor = &run->design.now->tensors.data[i];
		if (tensor->result != result ||
		        (text_same(tensor->role, "weight") && run->design.packed))
			continue;
		text_add(&text, "%s%s %s ", text.size ? ", " : "", tensor->name, tensor->dtype);
		npy_shape_text(&text, tensor->rank, tensor->shape);
	}
	const char *kind = result ? "results" : "inputs";
	diag_note(run->diag, "%s: %s", kind, text.size ? text.data : "none");
}

/* Is it the input to which tokens are fed back?  With --tokens its file holds a text: the tokens of
 * all steps along a further leading dim. */
static bool is_text(const struct run *run, const struct design_tensor *tensor)
{
	return run->tokens &&
	        tensor == &run->design.now->tensors.data[run->design.now->feedback.input];
}

static struct design_tensor *find_tensor(struct run *run, const char *name, bool result)
{
	struct design_tensor *fed = design_argument(&run->design, name);
	if (result && fed && is_text(run, fed))
		return fed;
	struct design_tensor *tensor =
	        result ? design_result(&run->design, name) : design_argument(&run->design, name);
	if (!tensor)
		tensor = numbered(&run->design, number_of(name, result ? "result" : "arg"), result);
	if (tensor)
		return result ? design_result(&run->design, tensor->name) : tensor;
	diag_error(
	        run->diag, NOWHERE, "the design has no %s '%s'", result ? "result" : "input", name);
	note_tensors(run, result);
	return NULL;
}

/* ---- inputs */

static bool same_shape(const struct design_tensor *tensor, const struct npy *npy)
{
	return tensor->rank == npy->rank &&
	        (!npy->rank ||
	                !memcmp(tensor->shape, npy->shape, sizeof *npy->shape * (size_t)npy->rank));
}

static bool check_input(struct run *run, const struct design_tensor *tensor, const char *path,
        const struct npy *npy)
{
	bool type = text_same(tensor->npy, npy->dtype) ||
	        (text_same(tensor->npy, "i1") && text_same(npy->dtype, "u1"));
	if (type && same_shape(tensor, npy))
		return true;
	struct text found = text_new(run->arena);
	struct text wanted = text_new(run->arena);
	npy_shape_text(&found, npy->rank, npy->shape);
	npy_shape_text(&wanted, tensor->rank, tensor->shape);
	diag_error(run->diag, (struct location){ .file = path }, "holds %s %s", npy->dtype,
	        found.data);
	return diag_note(run->diag, "input '%s' is %s %s", tensor->name,
	        tensor->npy ? tensor->npy : tensor->dtype, wanted.data);
}

/* Copies a text whose file has all rows along the input's own axis: the first step's input as a
 * whole, then the further rows one by one. */
static void copy_rows(struct run *run, const struct design_tensor *tensor, const struct npy *npy)
{
	const struct design_feedback *feedback = &run->design.now->feedback;
	int64_t all = npy->shape[feedback->axis];
	int64_t most = feedback->chunk_tokens;
	int64_t before = 1;
	for (int d = 0; d < feedback->axis; d++)
		before *= tensor->shape[d];
	size_t pitch = feedback->bytes / (size_t)before;
	for (int64_t i = 0; i < before * all; i++) {
		int64_t outer = i / all;
		int64_t row = i % all;
		size_t at =
		        row < most ? (size_t)(outer * most + row) : (size_t)(row * before + outer);
		memcpy(run->text + at * pitch, (const char *)npy->data + (size_t)i * pitch, pitch);
	}
}

/* Number of tokens in the file, the first step's counting as one; *one becomes the file with the
 * shape of the first step's input. */
static int64_t supplied_tokens(const struct run *run, const struct design_tensor *tensor,
        const struct npy *npy, struct npy *one)
{
	const struct design_feedback *feedback = &run->design.now->feedback;
	*one = *npy;
	if (feedback->rows >= 0 && npy->rank == tensor->rank &&
	        npy->shape[feedback->axis] > feedback->chunk_tokens) {
		one->shape[feedback->axis] = feedback->chunk_tokens;
		return 1 + npy->shape[feedback->axis] - feedback->chunk_tokens;
	}
	if (npy->rank != tensor->rank + 1 || feedback->bytes != tensor->bytes)
		return 1;
	one->rank--;
	memmove(one->shape, one->shape + 1, sizeof *one->shape * (size_t)one->rank);
	return npy->shape[0];
}

static bool load_text(struct run *run, const struct design_tensor *tensor, const char *path,
        const struct npy *npy)
{
	const struct design_feedback *feedback = &run->design.now->feedback;
	struct npy one;
	int64_t supplied = supplied_tokens(run, tensor, npy, &one);
	if (!check_input(run, tensor, path, &one) ||
	        !design_takes(&run->design, run->tokens, supplied))
		return false;
	run->begun = supplied;
	run->text_bytes = tensor->bytes +
	        (size_t)design_text(&run->design, run->tokens, supplied) * feedback->bytes;
	run->text = arena_alloc(run->arena, run->text_bytes);
	if (feedback->rows >= 0)
		copy_rows(run, tensor, npy);
	else
		memcpy(run->text, npy->data, (size_t)supplied * tensor->bytes);
	return true;
}

static bool load_input(struct run *run, const char *option)
{
	const char *path;
	const char *name = split(run, "in", option, &path);
	struct design_tensor *tensor = name ? find_tensor(run, name, false) : NULL;
	struct npy npy;
	if (!tensor)
		return false;
	bool *supplied = &run->supplied[tensor - run->design.now->tensors.data];
	if (*supplied)
		return diag_error(run->diag, NOWHERE, "input '%s' is given twice", tensor->name);
	*supplied = true;
	if (!npy_read(run->arena, run->diag, path, &npy))
		return false;
	if (is_text(run, tensor))
		return load_text(run, tensor, path, &npy);
	if (!check_input(run, tensor, path, &npy))
		return false;
	struct run_input input = { tensor, npy.data, npy.bytes };
	extents_note(tensor, npy.data);
	VEC_PUSH(run->arena, &run->inputs, input);
	return true;
}

static enum type_kind kind_of(const char *dtype)
{
	if (*dtype == 'f')
		return TYPE_FLOAT;
	return *dtype == 'b' ? TYPE_BFLOAT : TYPE_INTEGER;
}

/* Takes a weight from the weights file, by its name, if the command line does not set it. */
static bool load_weight(struct run *run, struct design_tensor *tensor)
{
	const char *digits = tensor->dtype + strcspn(tensor->dtype, "0123456789");
	struct type element = {
		.kind = kind_of(tensor->dtype), .width = atoi(digits), .text = tensor->dtype
	};
	struct text text = text_new(run->arena);
	text_add(&text, "%s ", tensor->dtype);
	npy_shape_text(&text, tensor->rank, tensor->shape);
	struct type type = { .kind = TYPE_TENSOR,
		.rank = tensor->rank,
		.shape = tensor->shape,
		.element = &element,
		.text = text.data };
	const struct weight *weight = weights_find(run->weights, tensor->name, &type);
	if (!weight)
		return false;
	struct run_input input = { tensor, weight->data, weight->bytes };
	VEC_PUSH(run->arena, &run->inputs, input);
	return run->supplied[tensor - run->design.now->tensors.data] = true;
}

static bool load_weights(struct run *run)
{
	const char *path = run->session->options.weights;
	if (!path)
		return true;
	if (run->design.packed) {
		diag_error(
		        run->diag, NOWHERE, "--weights is given, but the design has its weights");
		return diag_note(run->diag, "designs compiled without --weights take them here");
	}
	run->weights = weights_open(run->arena, run->diag, path);
	for (size_t i = 0; run->weights && i < run->design.now->tensors.count; i++) {
		struct design_tensor *tensor = &run->design.now->tensors.data[i];
		if (text_same(tensor->role, "weight") && !run->supplied[i] &&
		        !load_weight(run, tensor))
			return false;
	}
	return run->weights != NULL;
}

/* Reads and checks all inputs; set_inputs passes them to the design once it has a device. */
static bool load_inputs(struct run *run)
{
	const struct option_list *in = &run->session->options.in;
	struct text missing = text_new(run->arena);
	for (size_t i = 0; i < in->count; i++)
		if (!load_input(run, in->data[i]))
			return false;
	if (!load_weights(run))
		return false;
	for (size_t i = 0; i < run->design.now->tensors.count; i++)
		if (!run->design.now->tensors.data[i].result &&
		        !run->design.now->tensors.data[i].set && !run->supplied[i])
			text_add(&missing, "%s%s", missing.size ? ", " : "",
			        run->design.now->tensors.data[i].name);
	if (!missing.size)
		return extents_allow(&run->design,
		        run->tokens ? design_text(&run->design, run->tokens, run->begun) - 1 : 0);
	diag_error(run->diag, NOWHERE, "no value is given for %s", missing.data);
	note_tensors(run, false);
	return false;
}

static bool set_inputs(struct run *run)
{
	for (size_t i = 0; i < run->inputs.count; i++)
		if (!design_set(&run->design, run->inputs.data[i].tensor, run->inputs.data[i].data,
		            run->inputs.data[i].bytes))
			return false;
	return true;
}

/* ---- results */

static bool cannot_write(struct run *run, const char *path)
{
	return diag_error(run->diag, (struct location){ .file = path }, "cannot be written: %s",
	        strerror(errno));
}

/* What a device or a pipe gets at the end. */
static bool keep_whole(struct run *run, const char *path, const struct text *header,
        const void *data, size_t bytes)
{
	struct result_file kept = { path, NULL, text_new(run->arena) };
	text_add_bytes(&kept.whole, header->data, header->size);
	text_add_bytes(&kept.whole, data, bytes);
	VEC_PUSH(run->arena, &run->files, kept);
	return true;
}

static bool write_temporary(struct run *run, const char *path, const struct text *header,
        const void *data, size_t bytes)
{
	if (file_is_special(path))
		return keep_whole(run, path, header, data, bytes);
	path = file_resolved(run->arena, path);
	char *temporary = text_format(run->arena, "%s.XXXXXX", path);
	int file = mkstemp(temporary);
	mode_t mask = umask(0);
	umask(mask);
	if (file < 0)
		return cannot_write(run, path);
	struct result_file made = { .path = path, .temporary = temporary };
	VEC_PUSH(run->arena, &run->files, made);
	FILE *stream = fchmod(file, 0666 & ~mask) ? NULL : fdopen(file, "wb");
	if (!stream) {
		close(file);
		return cannot_write(run, path);
	}
	bool written = fwrite(header->data, 1, header->size, stream) == header->size &&
	        fwrite(data, 1, bytes, stream) == bytes;
	return (fclose(stream) == 0 && written) || cannot_write(run, path);
}

/* The text: the input of every step and the one after the last; with a token count, a row for every
 * token after the first step. */
static bool save_text(struct run *run, const struct design_tensor *tensor, const char *path)
{
	const struct design_feedback *feedback = &run->design.now->feedback;
	const struct design_tensor *step =
	        feedback->rows < 0 ? tensor : &run->design.now->tensors.data[feedback->output];
	size_t skipped = feedback->rows < 0 ? 0 : tensor->bytes;
	struct text header = text_new(run->arena);
	int64_t *shape = ARENA_ARRAY(run->arena, int64_t, step->rank + 1);
	shape[0] = design_text(&run->design, run->tokens, run->begun) + (feedback->rows < 0);
	for (int d = 0; d < step->rank; d++)
		shape[d + 1] = step->shape[d];
	npy_header(&header, tensor->npy, step->rank + 1, shape);
	return write_temporary(run, path, &header, run->text + skipped, run->text_bytes - skipped);
}

static bool save_result(struct run *run, const char *option)
{
	const char *path;
	const char *name = split(run, "out", option, &path);
	const struct design_tensor *tensor = name ? find_tensor(run, name, true) : NULL;
	if (!tensor)
		return false;
	struct text header = text_new(run->arena);
	if (is_text(run, tensor))
		return save_text(run, tensor, path);
	char *data = arena_alloc(run->arena, tensor->bytes + 1);
	npy_header(&header, tensor->npy, tensor->rank, tensor->shape);
	return design_get(&run->design, tensor, data, tensor->bytes) &&
	        write_temporary(run, path, &header, data, tensor->bytes);
}

static bool save_results(struct run *run)
{
	const struct option_list *out = &run->session->options.out;
	for (size_t i = 0; i < out->count; i++)
		if (!save_result(run, out->data[i]))
			return false;
	for (size_t i = 0; i < run->files.count; i++) {
		const struct result_file *file = &run->files.data[i];
		if (!file->temporary &&
		        !file_write_whole(run->arena, run->diag, file->path, file->whole.data,
		                file->whole.size))
			return false;
	}
	for (size_t i = 0; i < run->files.count; i++) {
		struct result_file *file = &run->files.data[i];
		if (file->temporary && rename(file->temporary, file->path))
			return cannot_write(run, file->path);
		file->temporary = NULL;
	}
	return true;
}

/* Checked before the design is compiled and run, which takes long. */
static bool check_results(struct run *run)
{
	const struct option_list *out = &run->session->options.out;
	if (!out->count) {
		diag_error(run->diag, NOWHERE, "no --out: the results would be lost");
		note_tensors(run, true);
		return false;
	}
	for (size_t i = 0; i < out->count; i++) {
		const char *path;
		const char *name = split(run, "out", out->data[i], &path);
		const struct design_tensor *tensor = name ? find_tensor(run, name, true) : NULL;
		if (!tensor)
			return false;
		if (!tensor->npy)
			return diag_error(run->diag, NOWHERE,
			        "result '%s' is %s, which .npy files cannot hold", tensor->name,
			        tensor->dtype);
	}
	return true;
}

static void remove_temporaries(struct run *run)
{
	for (size_t i = 0; i < run->files.count; i++)
		if (run->files.data[i].temporary)
			unlink(run->files.data[i].temporary);
}

/* ---- the command */

static bool launch(struct run *run)
{
	if (!run->tokens)
		return design_launch(&run->design);
	return design_tokens(&run->design, run->tokens, run->begun, run->text, run->text_bytes);
}

static bool execute(struct run *run)
{
	struct session *session = run->session;
	const char *device = session->options.device ? session->options.device : "cpu";
	if (!session_stage(session, "open") ||
	        !design_open(&run->design, session->options.file, NULL) ||
	        !design_choose(&run->design, session->options.phase))
		return false;
	run->tokens = session->options.tokens;
	if (run->tokens && !design_takes(&run->design, run->tokens, 1))
		return false;
	run->supplied = ARENA_ARRAY(run->arena, bool, run->design.now->tensors.count + 1);
	if (!check_results(run) || !load_inputs(run) || !session_stage(session, "start") ||
	        !design_start(&run->design, device) || !design_prepare(&run->design) ||
	        !set_inputs(run))
		return false;
	if (!session_stage(session, "launch") || !launch(run) || !session_stage(session, "save") ||
	        !save_results(run))
		return false;
	text_add(&session->out, "%s: launch %.6f s on %s", run->design.name,
	        run->design.device_seconds, device);
	if (run->design.device.mhz > 0)
		text_add(&session->out, " at %.0f MHz (compiled for %.0f)", run->design.device.mhz,
		        run->design.program.mhz);
	text_add(&session->out, ", host %.6f s\n", run->design.host_seconds + run->design.pending);
	return true;
}

bool command_run(struct session *session)
{
	struct run *run = ARENA_NEW(session->arena, struct run);
	*run = (struct run){ .session = session, .arena = session->arena, .diag = &session->diag };
	run->design.arena = session->arena;
	run->design.diag = &session->diag;
	run->design.program.stop = &session->stop;
	bool done = execute(run);
	remove_temporaries(run);
	weights_close(run->weights);
	design_close(&run->design);
	return done;
}
