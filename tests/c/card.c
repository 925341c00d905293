/* A card for tests: the functions of XRT that device_xrt.c loads, on memory of this process.  A
 * launch runs the design that was compiled for the CPU (CARD_PROGRAM).  CARD_LOG gets a line for
 * each buffer and each argument; arguments named in CARD_REFUSES (by number) cannot be set, or are
 * connected to no memory (as -number). */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS 4096

struct buffer {
	char *host, *card; /* what the host sees, what the kernel sees */
	uint32_t group;
	size_t bytes;
};

struct run {
	struct buffer *buffer[ARGUMENTS];
	void *port[ARGUMENTS];
};

static int one;
void *xrtDeviceOpen(unsigned index)
{
	return index ? NULL : &one;
}
int xrtDeviceClose(void *device)
{
	return device != &one;
}
int xrtDeviceLoadXclbinFile(void *device, const char *path)
{
	return !device || !path;
}
int xrtDeviceGetXclbinUUID(void *device, unsigned char *uuid)
{
	return !memset(uuid, 0, 16) || !device;
}
void *xrtPLKernelOpen(void *device, const unsigned char *uuid, const char *name)
{
	return device && uuid && strstr(name, ":{") ? &one : NULL;
}
int xrtKernelClose(void *kernel)
{
	return kernel != &one;
}

static int refuses(int argument)
{
	const char *text = getenv("CARD_REFUSES");
	return text && atoi(text) == argument;
}

int xrtKernelArgGroupId(void *kernel, int argument)
{
	return !kernel || refuses(-argument) ? -1 : 100 + argument;
}

static void note(const char *what, unsigned first, unsigned second)
{
	FILE *file = fopen(getenv("CARD_LOG"), "a");
	fprintf(file, "%s %u %u\n", what, first, second);
	fclose(file);
}

void *xrtBOAlloc(void *device, size_t bytes, uint64_t flags, uint32_t group)
{
	struct buffer *buffer = malloc(sizeof *buffer);
	*buffer = (struct buffer){ malloc(bytes), malloc(bytes), group, bytes };
	memset(buffer->host, 0xA5, bytes);
	memset(buffer->card, 0x5A, bytes);
	note("buffer", group, (unsigned)bytes);
	return device && !flags ? buffer : NULL;
}

int xrtBOFree(void *buffer)
{
	free(((struct buffer *)buffer)->host);
	free(((struct buffer *)buffer)->card);
	free(buffer);
	return 0;
}

void *xrtBOMap(void *buffer)
{
	return ((struct buffer *)buffer)->host;
}

int xrtBOSync(void *handle, int direction, size_t bytes, size_t offset)
{
	struct buffer *buffer = handle;
	if (offset + bytes > buffer->bytes)
		return 1;
	if (direction == 0)
		memcpy(buffer->card + offset, buffer->host + offset, bytes);
	else
		memcpy(buffer->host + offset, buffer->card + offset, bytes);
	return 0;
}

void *xrtRunOpen(void *kernel)
{
	return kernel ? calloc(1, sizeof(struct run)) : NULL;
}
int xrtRunClose(void *run)
{
	return free(run), 0;
}

int xrtRunSetArg(void *run, int index, ...)
{
	va_list list;
	va_start(list, index);
	struct buffer *buffer = va_arg(list, struct buffer *);
	va_end(list);
	if (index && refuses(index))
		return 1;
	((struct run *)run)->buffer[index] = buffer;
	note("argument", (unsigned)index, buffer->group);
	return 0;
}

int xrtRunStart(void *handle)
{
	struct run *run = handle;
	void *library = dlopen(getenv("CARD_PROGRAM"), RTLD_NOW);
	const char *(*launch)(void *const *, int, int, int) = NULL;
	if (library)
		*(void **)&launch = dlsym(library, "stc_launch");
	for (int i = 0; i < ARGUMENTS && run->buffer[i]; i++)
		run->port[i] = run->buffer[i]->card;
	return !launch || launch(run->port, 0, 0, 0) != NULL;
}

int xrtRunWait(void *run)
{
	return run ? 4 : 0;
}
