/* Emitting: a hardware-level module as files.  Spelling only: every decision is in the module. */
#ifndef STC_EMIT_H
#define STC_EMIT_H
#include "ir/ir.h"

/* The name of the top function, which is also the kernel's: an identifier made of the design's name. */
const char *emit_top_name(struct arena *arena, const char *design);

/* Each adds one file to `out`. */
bool emit_hls(struct module *module, const char *top, struct text *out);       /* hls/TOP.cpp; false: an operation that has no spelling, diagnostics say which */
void emit_link(struct module *module, const char *top, struct text *out);      /* hls/link.cfg: memory channels, dies */
void emit_makefile(const char *top, const char *xpfm, double clock_mhz, struct text *out);   /* Makefile: csim, xclbin, host */
void emit_host(const char *top, struct text *out);                             /* host/main.c: reads .npy files, launches, writes .npy files */

/* Ports of main, as the attributes of its arguments name them. */
struct port {
	const char *name, *buffer;
	const struct type *word;
	int64_t channel;
	bool write;
};
struct port emit_port(const struct op *function, int argument);
int emit_ports(const struct module *module);

#endif
