/* An accelerator card, through the C functions of XRT, which are loaded on first use. A test
 * compares the prototypes here with the headers of XRT 2.13. */
#define _GNU_SOURCE
#include "device.h"
#include "xclbin.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libxrt_coreutil.so.2"
#define TO_DEVICE 0 /* enum xclBOSyncDirection */
#define FROM_DEVICE 1
#define COMPLETED 4 /* ERT_CMD_STATE_COMPLETED */

typedef void *handle;

#define FUNCTIONS(X)                                                                               \
	X(xrtDeviceOpen, handle, (unsigned index))                                                 \
	X(xrtDeviceClose, int, (handle device))                                                    \
	X(xrtDeviceLoadXclbinFile, int, (handle device, const char *path))                         \
	X(xrtDeviceGetXclbinUUID, int, (handle device, unsigned char *uuid))                       \
	X(xrtPLKernelOpen, handle, (handle device, const unsigned char *uuid, const char *name))   \
	X(xrtKernelClose, int, (handle kernel))                                                    \
	X(xrtKernelArgGroupId, int, (handle kernel, int argument))                                 \
	X(xrtBOAlloc, handle, (handle device, size_t bytes, uint64_t flags, uint32_t group))       \
	X(xrtBOFree, int, (handle buffer))                                                         \
	X(xrtBOMap, void *, (handle buffer))                                                       \
	X(xrtBOSync, int, (handle buffer, int direction, size_t bytes, size_t offset))             \
	X(xrtRunOpen, handle, (handle kernel))                                                     \
	X(xrtRunSetArg, int, (handle run, int index, ...))                                         \
	X(xrtRunStart, int, (handle run))                                                          \
	X(xrtRunWait, int, (handle run))                                                           \
	X(xrtRunClose, int, (handle run))

#define FIELD(name, result, arguments) result(*name) arguments;
struct xrt {
	void *library;
	FUNCTIONS(FIELD)
	handle card, kernel;
	handle *run;    /* [phases] */
	handle *buffer; /* [buffers] */
	struct xclbin xclbin;
};
#undef FIELD

static bool load_functions(struct device *device, struct xrt *xrt)
{
	if (!getenv("XILINX_XRT")) { /* XRT 2.13 aborts the program without it */
		diag_error(device->diag, NOWHERE, "XRT is not set up: XILINX_XRT is not set");
		return diag_note(device->diag, "source the setup.sh of XRT, or take device cpu");
	}
	xrt->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!xrt->library)
		return diag_error(device->diag, NOWHERE, "XRT is not installed: %s", dlerror());
#define LOAD(name, result, arguments) { #name, &xrt->name },
	const struct {
		const char *name;
		void *function;
	} wanted[] = { FUNCTIONS(LOAD) };
#undef LOAD
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		void *symbol = dlsym(xrt->library, wanted[i].name);
		if (!symbol)
			return diag_error(
			        device->diag, NOWHERE, "%s has no %s", LIBRARY, wanted[i].name);
		memcpy(wanted[i].function, &symbol, sizeof symbol);
	}
	return true;
}

static const char *bitstream(struct device *device)
{
	const char *emulation = getenv("XCL_EMULATION_MODE");
	return text_format(device->arena, "%s/hls/%s.%s.xclbin", device->program->folder,
	        device->program->top, emulation && *emulation ? emulation : "hw");
}

static bool open_kernel(struct device *device, struct xrt *xrt)
{
	const struct device_program *program = device->program;
	unsigned char uuid[16];
	const char *path = bitstream(device);
	struct location place = { .file = path };
	if (access(path, R_OK)) {
		diag_error(device->diag, place, "cannot be read: %s", strerror(errno));
		return diag_note(device->diag,
		        "make -C %s/hls xclbin builds it with the vendor's tools", program->folder);
	}
	const char *reason = xclbin_read(device->arena, path, &xrt->xclbin);
	if (reason)
		return diag_error(device->diag, place, "%s", reason);
	device->mhz = xrt->xclbin.mhz;
	xrt->card = xrt->xrtDeviceOpen((unsigned)program->index);
	if (!xrt->card)
		return diag_error(
		        device->diag, NOWHERE, "card %d cannot be opened", program->index);
	if (xrt->xrtDeviceLoadXclbinFile(xrt->card, path) ||
	        xrt->xrtDeviceGetXclbinUUID(xrt->card, uuid))
		return diag_error(device->diag, place,
		        "cannot be loaded: does card %d have the platform that it was built for?",
		        program->index);
	xrt->kernel = xrt->xrtPLKernelOpen(xrt->card, uuid,
	        text_format(device->arena, "%s:{%s_1}", program->top, program->top));
	bool opened = xrt->kernel != NULL;
	for (int p = 0; opened && p < program->phases; p++)
		opened = (xrt->run[p] = xrt->xrtRunOpen(xrt->kernel)) != NULL;
	return opened || diag_error(device->diag, place, "has no kernel %s", program->top);
}

static bool transfer(struct device *device, int buffer, int direction, size_t from, size_t bytes)
{
	struct xrt *xrt = device->state;
	if (!xrt->xrtBOSync(xrt->buffer[buffer], direction, bytes, from))
		return true;
	return diag_error(device->diag, NOWHERE, "buffer %s was not transferred",
	        device->program->buffer[buffer].name);
}

static bool xrt_write(struct device *device, int buffer, size_t from, size_t bytes)
{
	return transfer(device, buffer, TO_DEVICE, from, bytes);
}

static bool xrt_read(struct device *device, int buffer, size_t from, size_t bytes)
{
	return transfer(device, buffer, FROM_DEVICE, from, bytes);
}

static bool fill_buffer(struct device *device, int index)
{
	const struct device_buffer *buffer = &device->program->buffer[index];
	FILE *file = buffer->file ? fopen(buffer->file, "rb") : NULL;
	struct location place = { .file = buffer->file };
	if (!buffer->file)
		memset(buffer->map, 0, buffer->bytes);
	size_t got = file ? fread(buffer->map, 1, buffer->bytes, file) : 0;
	bool failed = buffer->file && (!file || ferror(file));
	bool longer = file && fgetc(file) != EOF;
	if (file)
		fclose(file);
	if (failed)
		return diag_error(device->diag, place, "cannot be read: %s", strerror(errno));
	if (file && (got < buffer->bytes || longer))
		return diag_error(device->diag, place, "has %s bytes than its buffer's %zu",
		        longer ? "more" : "fewer", buffer->bytes);
	return xrt_write(device, index, 0, buffer->bytes);
}

/* The argument with the buffer that reaches the fewest channels: memory for it is memory for the
 * others, too. */
static int port_of(const struct device_program *program, int buffer)
{
	int found = -1;
	int64_t fewest = 0;
	for (int p = 0; p < program->phases; p++)
		for (int a = 0; a < program->ports; a++) {
			int64_t channels = program->reach[a].last - program->reach[a].first;
			if (program->port[p][a] != buffer || (found >= 0 && channels >= fewest))
				continue;
			found = a;
			fewest = channels;
		}
	return found;
}

/* The memory with the buffer's channel, by its place in the xclbin; -1: none is large enough. */
static int bank_of(struct device *device, const struct xrt *xrt, const struct device_buffer *buffer)
{
	const char *tag = text_format(
	        device->arena, "%s[%lld]", device->program->memory, (long long)buffer->channel);
	for (int m = 0; m < xrt->xclbin.memories; m++)
		if (!strcmp(xrt->xclbin.memory[m].tag, tag) &&
		        xrt->xclbin.memory[m].bytes >= (int64_t)buffer->bytes)
			return m;
	return -1;
}

static bool make_buffer(struct device *device, struct xrt *xrt, int index)
{
	const struct device_program *program = device->program;
	struct device_buffer *buffer = &device->program->buffer[index];
	int port = port_of(program, index);
	if (port < 0) /* no argument reads or writes it */
		return diag_error(device->diag, NOWHERE, "no argument has buffer %s", buffer->name);
	int bank = bank_of(device, xrt, buffer);
	int group = bank >= 0 ? bank : xrt->xrtKernelArgGroupId(xrt->kernel, port);
	if (group < 0)
		return diag_error(device->diag, (struct location){ .file = bitstream(device) },
		        "argument %s of kernel %s is connected to no memory",
		        program->reach[port].name, program->top);
	xrt->buffer[index] = xrt->xrtBOAlloc(xrt->card, buffer->bytes, 0, (uint32_t)group);
	buffer->map = xrt->buffer[index] ? xrt->xrtBOMap(xrt->buffer[index]) : NULL;
	if (!buffer->map)
		return diag_error(device->diag, NOWHERE,
		        "the card has no memory for buffer %s of %zu bytes of argument %s in "
		        "%s[%lld]",
		        buffer->name, buffer->bytes, program->reach[port].name, program->memory,
		        (long long)buffer->channel);
	return fill_buffer(device, index);
}

static bool set_arguments(struct device *device, struct xrt *xrt, int phase)
{
	const struct device_program *program = device->program;
	for (int a = 0; a < program->ports; a++)
		if (xrt->xrtRunSetArg(xrt->run[phase], a, xrt->buffer[program->port[phase][a]]))
			return diag_error(device->diag, NOWHERE,
			        "argument %s of kernel %s cannot be set to buffer %s: is it "
			        "connected to its memory?",
			        program->reach[a].name, program->top,
			        program->buffer[program->port[phase][a]].name);
	if (program->phases > 1 && xrt->xrtRunSetArg(xrt->run[phase], program->ports, phase))
		return diag_error(
		        device->diag, NOWHERE, "kernel %s does not take a phase", program->top);
	return true;
}

static bool xrt_open(struct device *device)
{
	const struct device_program *program = device->program;
	struct xrt *xrt = device->state = ARENA_NEW(device->arena, struct xrt);
	xrt->buffer = ARENA_ARRAY(device->arena, handle, program->buffers + 1);
	xrt->run = ARENA_ARRAY(device->arena, handle, program->phases + 1);
	if (!load_functions(device, xrt) || !open_kernel(device, xrt))
		return false;
	for (int b = 0; b < program->buffers; b++)
		if (!make_buffer(device, xrt, b))
			return false;
	for (int p = 0; p < program->phases; p++)
		if (!set_arguments(device, xrt, p))
			return false;
	return true;
}

/* The other arguments stay as they were set when the design was opened. */
static bool set_counts(struct device *device, struct xrt *xrt)
{
	const struct device_program *program = device->program;
	handle run = xrt->run[program->phase];
	int first = program->ports + (program->phases > 1);
	if (!program->counts ||
	        (!xrt->xrtRunSetArg(run, first, program->tokens) &&
	                !xrt->xrtRunSetArg(run, first + 1, program->prompt_tokens)))
		return true;
	return diag_error(
	        device->diag, NOWHERE, "kernel %s does not take a number of tokens", program->top);
}

static bool xrt_launch(struct device *device)
{
	struct xrt *xrt = device->state;
	handle run = xrt->run[device->program->phase];
	if (!set_counts(device, xrt))
		return false;
	if (xrt->xrtRunStart(run))
		return diag_error(device->diag, NOWHERE, "the card refused the launch");
	int state = xrt->xrtRunWait(run);
	return state == COMPLETED ||
	        diag_error(device->diag, NOWHERE,
	                "the launch ended in state %d of XRT, not completed", state);
}

static void xrt_close(struct device *device)
{
	struct xrt *xrt = device->state;
	if (!xrt)
		return;
	for (int p = 0; xrt->run && p < device->program->phases; p++)
		if (xrt->run[p])
			xrt->xrtRunClose(xrt->run[p]);
	for (int b = 0; b < device->program->buffers; b++)
		if (xrt->buffer[b])
			xrt->xrtBOFree(xrt->buffer[b]);
	if (xrt->kernel)
		xrt->xrtKernelClose(xrt->kernel);
	if (xrt->card)
		xrt->xrtDeviceClose(xrt->card);
	if (xrt->library)
		dlclose(xrt->library);
	device->state = NULL;
}

const struct device_class device_xrt = { "xrt", xrt_open, xrt_write, xrt_read, xrt_launch, NULL,
	xrt_close };
