/* Emitting: a hardware-level module as files.  Spelling only: every decision is in the module. */
#ifndef STC_EMIT_H
#define STC_EMIT_H
#include "ir/ir.h"

#define DESIGN_VERSION 2 /* of the files in a design folder */

struct platform;

/* The name of the top function, which is also the kernel's: an identifier made of the design's
 * name. */
const char *emit_top_name(struct arena *arena, const char *design);

struct phase {            /* of a design: one of the modules that a launch may run */
	const char *name; /* NULL: there is only one */
	struct module *module;
};

struct phases {
	int count;
	/* [count]; of their ports, those with one number (emit_argument) are one port of the
	 * kernel */
	const struct phase *phase;
};

/* Each adds one file to `out`. */
/* hls/TOP.cpp; false: an operation that has no spelling, diagnostics say which */
bool emit_hls(
        struct module *module, const struct platform *platform, const char *top, struct text *out);
/* the same; which phase runs is the last argument */
bool emit_hls_phases(const struct phases *phases, const struct platform *platform, const char *top,
        struct text *out);
/* hls/link.cfg: memory channels, dies */
void emit_link(const struct phases *phases, const struct platform *platform, const char *top,
        struct text *out);
/* hls/Makefile: csim, xclbin, host */
void emit_makefile(const struct platform *platform, const char *top, struct text *out);
/* host/main.c */
void emit_host(const struct phases *phases, const char *top, struct text *out);
#define MANIFEST_BEGIN "{\"schema\":1,\"tool\":\"" /* what each manifest.json of ours begins with */
/* manifest.json up to its list of files: names, shapes, and how host tensors lie in the buffers
 * of the ports. */
void emit_manifest(const struct phases *phases, const char *design, const char *top, bool packed,
        struct text *out);

/* Ports of main, as the attributes of its arguments name them. */
struct memory_port {
	const char *name, *buffer;
	const char *bundle; /* the adapter that serves all ports with this name */
	const struct type *word;
	int64_t channel;
	bool write;
};
struct memory_port emit_port(const struct op *function, int argument);
int emit_ports(const struct module *module);
/* its number among the kernel's: stream.argument, or the same */
int emit_argument(const struct op *function, int argument);
struct kernel_port {
	struct memory_port port; /* as the first phase that has it says */
	int64_t words, bytes;    /* of the largest buffer that it is for */
	bool both;               /* between steps it is read and written, */
	int64_t rows;            /* so many rows one behind the other; 0: of one, or none */
	bool single;             /* words travel one by one */
	/* requests under way that it has for itself; 0: those of its adapter by default */
	int outstanding;
	const struct op *process; /* the call whose it is; NULL where phases differ in that */
	/* the first port of its adapter; which load or store unit of it this has, from 0, and -1
	 * where it is the only port: ports of one process share one */
	int adapter, unit;
	/* of the adapter's buffers together; of its widest port; of its ports together */
	int64_t adapter_bytes, adapter_bits, adapter_outstanding;
};
/* all of them, in order; returns how many */
int emit_kernel_ports(
        struct arena *arena, const struct phases *phases, const struct kernel_port **port);
int emit_adapters(struct arena *arena, const struct phases *phases);
/* of a tensor on the host, or a word in memory; i1 takes one byte, i4 too but in words of
 * several */
int64_t emit_bytes(const struct type *type);

#endif
