/* Implements the C API (stc_runtime.h) on designs: each call catches exhausted memory, and stores
 * its messages as one text. */
#include "base/guard.h"
#include "design.h"
#include "stc_runtime.h"
#include <stdio.h>
#include <string.h>

#define ERROR_BYTES 4096

struct stc_design {
	struct arena *own; /* contains this struct */
	struct guard guard;
	struct diag diag;
	struct design design;
	char error[ERROR_BYTES];
};

static void keep_messages(const struct diag *diag, char *error, size_t size)
{
	size_t used = 0;
	for (int i = 0; i < diag->count && used < size; i++) {
		const struct diag_entry *entry = &diag->entry[i];
		const char *file = entry->location.file ? entry->location.file : "";
		const char *note = entry->note ? entry->note : "";
		const char *colon = *file ? ": " : "";
		const char *label = *note ? "\nnote: " : "";
		int more = snprintf(error + used, size - used, "%s%s%s%s%s%s", i ? "\n" : "", file,
		        colon, entry->message, label, note);
		used += more > 0 ? (size_t)more : 0;
	}
}

static int finish(struct stc_design *design, bool fine)
{
	if (!fine)
		keep_messages(&design->diag, design->error, sizeof design->error);
	return fine ? 0 : 1;
}

static int out_of_memory(struct stc_design *design)
{
	snprintf(design->error, sizeof design->error, "%s", design->guard.message);
	return 1;
}

static void begin(struct stc_design *design)
{
	design->diag.count = design->diag.dropped = 0;
	design->error[0] = 0;
}

static struct stc_design *make(void)
{
	struct arena *own = arena_new(NULL);
	struct stc_design *design = own ? ARENA_NEW(own, struct stc_design) : NULL;
	if (!design)
		return NULL;
	design->own = own;
	if (setjmp(design->guard.leave)) {
		arena_free(own);
		return NULL;
	}
	design->design.arena = design->diag.arena = arena_new(&design->guard);
	design->design.diag = &design->diag;
	return design;
}

static int try_open(
        struct stc_design *design, const char *dir, const char *device, const char *cache)
{
	if (setjmp(design->guard.leave))
		return out_of_memory(design);
	return finish(design,
	        design_open(&design->design, dir, cache) && design_start(&design->design, device));
}

int stc_design_open(const char *dir, const char *device, const char *cache_dir, stc_design **out,
        char *error, size_t error_size)
{
	struct stc_design *design = make();
	int status = design ? try_open(design, dir, device, cache_dir) : 1;
	*out = status ? NULL : design;
	if (status && error && error_size)
		snprintf(error, error_size, "%s", design ? design->error : "out of memory");
	if (status)
		stc_design_close(design);
	return status;
}

int stc_design_prepare(stc_design *design)
{
	begin(design);
	if (setjmp(design->guard.leave))
		return out_of_memory(design);
	return finish(design, design_prepare(&design->design));
}

static bool unknown(struct stc_design *design, const char *name, bool result)
{
	struct text known = text_new(design->design.arena);
	for (size_t i = 0; i < design->design.now->tensors.count; i++) {
		const struct design_tensor *tensor = &design->design.now->tensors.data[i];
		bool shown = result ? design_result(&design->design, tensor->name) == tensor
		                    : !tensor->result && !text_same(tensor->role, "weight");
		if (shown)
			text_add(&known, "%s%s", known.size ? ", " : "", tensor->name);
	}
	diag_error(&design->diag, NOWHERE, "the design has no %s '%s'",
	        result ? "result or state" : "input", name);
	return diag_note(&design->diag, "%s", known.size ? known.data : "it has none");
}

int stc_design_phase(stc_design *design, const char *name)
{
	begin(design);
	if (setjmp(design->guard.leave))
		return out_of_memory(design);
	return finish(design, design_choose(&design->design, name));
}

int stc_design_input(stc_design *design, const char *name, const void *data, size_t bytes)
{
	begin(design);
	if (setjmp(design->guard.leave))
		return out_of_memory(design);
	struct design_tensor *tensor = design_argument(&design->design, name);
	return finish(design,
	        tensor ? design_set(&design->design, tensor, data, bytes)
	               : unknown(design, name, false));
}

int stc_design_output(stc_design *design, const char *name, void *data, size_t bytes)
{
	begin(design);
	if (setjmp(design->guard.leave))
		return out_of_memory(design);
	const struct design_tensor *tensor = design_result(&design->design, name);
	return finish(design,
	        tensor ? design_get(&design->design, tensor, data, bytes)
	               : unknown(design, name, true));
}

int stc_design_launch(stc_design *design)
{
	begin(design);
	if (setjmp(design->guard.leave))
		return out_of_memory(design);
	return finish(design, design_launch(&design->design));
}

int stc_design_tokens(
        stc_design *design, long long tokens, long long prompt_tokens, void *text, size_t bytes)
{
	begin(design);
	if (setjmp(design->guard.leave))
		return out_of_memory(design);
	return finish(design, design_tokens(&design->design, tokens, prompt_tokens, text, bytes));
}

long long stc_design_tokens_most(const stc_design *design)
{
	return design->design.now->feedback.most ? design->design.now->feedback.most : 1;
}

int stc_design_reset(stc_design *design)
{
	begin(design);
	if (setjmp(design->guard.leave))
		return out_of_memory(design);
	return finish(design, design_reset(&design->design));
}

const char *stc_design_error(const stc_design *design)
{
	return design->error;
}

int stc_design_times(const stc_design *design, double *host_seconds, double *device_seconds)
{
	*host_seconds = design->design.host_seconds;
	*device_seconds = design->design.device_seconds;
	return 0;
}

int stc_design_clock(const stc_design *design, double *device_mhz, double *design_mhz)
{
	*device_mhz = design->design.device.mhz;
	*design_mhz = design->design.program.mhz;
	return 0;
}

void stc_design_close(stc_design *design)
{
	if (!design)
		return;
	design_close(&design->design);
	arena_free(design->design.arena);
	arena_free(design->own);
}

int stc_design_tensor(const stc_design *design, int index, struct stc_tensor *out)
{
	if (index < 0 || (size_t)index >= design->design.now->tensors.count)
		return 1;
	const struct design_tensor *tensor = &design->design.now->tensors.data[index];
	_Static_assert(
	        sizeof(long long) == sizeof *tensor->shape, "shapes are handed out as they are");
	*out = (struct stc_tensor){ tensor->name, tensor->role,
		tensor->npy ? tensor->npy : tensor->dtype, tensor->rank,
		(const long long *)tensor->shape, tensor->result, tensor->bytes };
	return 0;
}
