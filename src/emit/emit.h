/* Writes a hardware-level module as the files of a design: HLS C++, link configuration, Makefile,
 * host program and manifest.  All decisions are in the module; emitting only spells them. */
#ifndef STC_EMIT_H
#define STC_EMIT_H
#include "ir/ir.h"

#define DESIGN_VERSION 4 /* of the files in a design folder */

struct platform;

/* The name as an identifier that no language of the design reserves. */
const char *emit_identifier(struct arena *arena, const char *name);
/* The name of the top function and of the kernel.  Its prefix is that of no name of a header or of
 * a library, whatever the design is called. */
const char *emit_top_name(struct arena *arena, const char *design);

struct phase {            /* of a design: one of the modules that a launch may run */
	const char *name; /* NULL: there is only one */
	struct module *module;
};

struct phases {
	int count;
	/* [count]; ports of phases with the same number (emit_argument) are one port of the
	 * kernel */
	const struct phase *phase;
};

/* Each of these functions appends one file to `out`. */
/* hls/TOP.cpp; false: a diagnostic names an operation that C++ cannot express. */
bool emit_hls(
        struct module *module, const struct platform *platform, const char *top, struct text *out);
struct placed_cell {
	const char *name; /* in the vendor's netlist */
	int64_t die;
};
struct placed_cells {
	VEC(struct placed_cell) cells;
};
/* The same for several phases: the kernel's last arguments say which phase runs.  placement: gets
 * the die of every process and channel, and of the registers between dies */
bool emit_hls_phases(const struct phases *phases, const struct platform *platform, const char *top,
        struct text *out, struct placed_cells *placement);
/* hls/floorplan.tcl */
void emit_floorplan(
        const struct placed_cells *placement, int dies, const char *top, struct text *out);
/* The die of all processes; -1: they are on several dies. */
int64_t emit_only_die(const struct phases *phases);
/* hls/link.cfg: memory channels, dies */
void emit_link(const struct phases *phases, const struct platform *platform, const char *top,
        struct text *out);
/* hls/Makefile: csim, csynth, xclbin, host */
void emit_makefile(const struct platform *platform, const char *top, struct text *out);
/* host/main.c */
void emit_host(const struct phases *phases, const char *top, struct text *out);
#define MANIFEST_BEGIN "{\"schema\":1,\"tool\":\"" /* first characters of every manifest.json */
/* manifest.json up to its list of files: names, shapes, and the layout of host tensors in the
 * buffers of the ports. */
void emit_manifest(const struct phases *phases, const struct platform *platform, const char *design,
        bool packed, struct text *out);

/* Ports of main, as the attributes of its arguments name them. */
struct memory_port {
	const char *name, *buffer;
	const char *bundle; /* the AXI adapter, shared by all ports with this name */
	const struct type *word;
	int64_t channel;
	bool write;
};
struct memory_port emit_port(const struct op *function, int argument);
int emit_ports(const struct module *module);
/* The number of the port among the kernel's arguments: stream.argument, else `argument`. */
int emit_argument(const struct op *function, int argument);
struct kernel_port {
	struct memory_port port;  /* of the first phase that has it */
	int64_t words, bytes;     /* of its largest buffer */
	bool both;                /* read and written between steps, to feed tokens back */
	int64_t rows;             /* consecutive rows written between steps; 0: at most one */
	bool single;              /* words travel one by one, not in bursts */
	int outstanding;          /* requests of its own; 0: the adapter's default */
	const struct op *process; /* the call that uses it; NULL with several phases */
	/* index of the first port of its adapter; and its load or store unit in the adapter, from
	 * 0 (-1: it is the only port), which ports of one process share */
	int adapter, unit;
	/* Of the adapter: ports with different options would have none of them (UG1448, 200-466).
	 * Bytes of all buffers; words of the largest; bits of the widest port; sum of outstanding;
	 * largest `rows` */
	int64_t adapter_bytes, adapter_words, adapter_bits, adapter_outstanding, adapter_rows;
	/* do all words travel one by one; are there ports that read, that write, of both */
	bool adapter_single, adapter_reads, adapter_writes, adapter_both;
};
/* Lists the ports of the kernel in the order of its arguments; returns their number. */
int emit_kernel_ports(
        struct arena *arena, const struct phases *phases, const struct kernel_port **port);
int emit_adapters(struct arena *arena, const struct phases *phases);
struct channel_range {
	int64_t first, last;
};
/* The memory channels of a port's adapter: those of its buffers, and further ones where a channel
 * cannot hold them.  All ports of an adapter need the same range, since they are one port of the
 * linker. */
struct channel_range emit_channels(const struct kernel_port *kernel, int ports,
        const struct kernel_port *port, const struct platform *platform);
/* Bytes of a tensor on the host or of a word in memory.  An i1 takes a byte; an i4 too, except in
 * words of several, where two share a byte. */
int64_t emit_bytes(const struct type *type);

#endif
