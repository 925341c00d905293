/* The CPU as device: the emitted C++ as a shared library with its buffers in this process. Weights
 * are memory-mapped, so that they are only read when used. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "design.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct cpu {
	void *library;
	/* NULL, or an error message */
	const char *(*launch)(void *const *port, int phase, int tokens, int prompt_tokens);
	void ***port;    /* [phases][ports] */
	char source[65]; /* hash of the design's C++ when it was opened */
};

static bool no_memory(struct device *device, const struct device_buffer *buffer)
{
	return diag_error(device->diag, NOWHERE, "buffer %s of %zu bytes cannot be mapped: %s",
	        buffer->name, buffer->bytes, strerror(errno));
}

/* Maps the file over the first pages; the rest of its last page is zero. */
static bool map_file(struct device *device, struct device_buffer *buffer)
{
	struct stat status;
	int file = open(buffer->file, O_RDONLY | O_CLOEXEC);
	bool there = file >= 0 && !fstat(file, &status);
	size_t size = there ? (size_t)status.st_size : 0;
	bool fits = there && size == buffer->bytes;
	void *map = fits && size
	        ? mmap(buffer->map, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0)
	        : buffer->map;
	int reason = errno;
	if (file >= 0)
		close(file);
	if (!there || map == MAP_FAILED)
		return diag_error(device->diag, (struct location){ .file = buffer->file },
		        "cannot be read: %s", strerror(reason));
	return fits ||
	        diag_error(device->diag, (struct location){ .file = buffer->file },
	                "has %zu bytes, its buffer %zu", size, buffer->bytes);
}

static bool make_buffer(struct device *device, struct device_buffer *buffer)
{
	void *map = mmap(NULL, buffer->bytes, PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return no_memory(device, buffer);
	buffer->map = map;
	return !buffer->file || map_file(device, buffer);
}

/* Compiles and loads the C++, the first time. */
static bool cpu_prepare(struct device *device)
{
	struct cpu *cpu = device->state;
	if (cpu->launch)
		return true;
	const char *path = compile_design(device, cpu->source);
	if (!path)
		return false;
	cpu->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *symbol = cpu->library ? dlsym(cpu->library, "stc_launch") : NULL;
	if (!symbol) {
		diag_error(device->diag, (struct location){ .file = path }, "cannot be loaded: %s",
		        dlerror());
		if (cpu->library)
			dlclose(cpu->library);
		cpu->library = NULL;
		return diag_note(device->diag, "remove this file; it is made anew");
	}
	memcpy(&cpu->launch, &symbol, sizeof symbol);
	return true;
}

static bool cpu_open(struct device *device)
{
	const struct device_program *program = device->program;
	struct cpu *cpu = device->state = ARENA_NEW(device->arena, struct cpu);
	for (int b = 0; b < program->buffers; b++)
		if (!make_buffer(device, &program->buffer[b]))
			return false;
	cpu->port = ARENA_ARRAY(device->arena, void **, program->phases);
	for (int p = 0; p < program->phases; p++) {
		cpu->port[p] = ARENA_ARRAY(device->arena, void *, program->ports + 1);
		for (int a = 0; a < program->ports; a++)
			cpu->port[p][a] = program->buffer[program->port[p][a]].map;
	}
	return hash_source(device, cpu->source);
}

/* The host's view is the memory itself: nothing to copy. */
static bool cpu_transfer(struct device *device, int buffer, size_t from, size_t bytes)
{
	(void)device, (void)buffer, (void)from, (void)bytes;
	return true;
}

static bool cpu_launch(struct device *device)
{
	struct cpu *cpu = device->state;
	int phase = device->program->phase;
	const char *error = cpu->launch(
	        cpu->port[phase], phase, device->program->tokens, device->program->prompt_tokens);
	return !error ||
	        diag_error(device->diag, NOWHERE, "the design does not run to its end: %s", error);
}

static void cpu_close(struct device *device)
{
	struct cpu *cpu = device->state;
	for (int b = 0; b < device->program->buffers; b++) {
		struct device_buffer *buffer = &device->program->buffer[b];
		if (buffer->map)
			munmap(buffer->map, buffer->bytes);
		buffer->map = NULL;
	}
	if (cpu && cpu->library)
		dlclose(cpu->library);
	device->state = NULL;
}

const struct device_class device_cpu = { "cpu", cpu_open, cpu_transfer, cpu_transfer, cpu_launch,
	cpu_prepare, cpu_close };
const struct device_class device_cpu_once = { "cpu-once", cpu_open, cpu_transfer, cpu_transfer,
	cpu_launch, cpu_prepare, cpu_close };
