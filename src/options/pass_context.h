/* The context that every pass receives. A pass is one file with one public function of its name,
 * bool NAME(struct pass_context *, struct module *), declared in the header of its room. It returns
 * false after diagnostics about the input (module->diag); broken invariants leave through
 * module->guard. The table of passes is pipeline/passes.c. */
#ifndef STC_PASS_CONTEXT_H
#define STC_PASS_CONTEXT_H
#include "ir/ir.h"
#include "ir/kernel.h"
#include "platform/platform.h"
#include "ir/dot.h"
#include "options/choices.h"

/* Bits of the weights of layers whose names match a shell pattern. */
struct layer_bits {
	const char *pattern;
	int bits;
};

/* The scheme of --quant; bits 0: stays in floating point. */
struct quant_scheme {
	const char *text;               /* text of the option */
	const struct layer_bits *layer; /* layers with bits of their own; the first match counts */
	int layers;
	bool weights; /* some matmul has a quantized weight */
	/* bits of matmul weights; of those of the last matmul (the output head) */
	int weight, head;
	int embedding;  /* bits of gathered rows */
	int64_t group;  /* weights along a reduction that share a scale; 0: all */
	bool per_token; /* activations: one scale per token instead of one per group */
	bool zeros;     /* weights that share a scale share a zero point as well */
	int state;      /* bits of the KV cache; 16: bf16 */
	/* rows before the past rows of a KV cache of bytes; 0: as many as a launch adds */
	int64_t lead;
	bool bf16; /* matrices and tables are stored as bf16 */
};

struct pass_context {
	const struct platform *platform;
	struct choices choices; /* point of the design space */
	struct resources limit; /* if `limited`: resources that the design may use */
	bool limited;
	/* out, of spill_to_budget: the smallest budget (--on-chip-memory) that it could meet; 0: it
	 * met the one that it was given */
	int64_t least_budget;
	/* out, of spill_to_budget: bytes of the buffers on chip, and those that would be left with
	 * every converter spilled that can be */
	int64_t on_chip_bytes, least_on_chip_bytes;
	/* out, of bind_storage: resources of the design, even if more than available */
	struct resources taken;
	/* out, of choose_register_tiles: kernels that have one */
	int register_tiles;
	/* out: memory ports that the platform lacks */
	int excess_ports;
	/* out: ports left for PEs, where result words have more lanes than there are PEs; 0: they
	 * do not */
	int engine_ports_left;
	const struct quant_scheme *quant; /* NULL: no quantization */
	int64_t images; /* of a launch, for which a module of one is compiled; 0: as it is */
	/* maximum iterations simulated to size FIFOs; 0: the default */
	int64_t fifo_events;
	/* name of a weight → struct fixed_parallelism * of the kernel that reads it through ports
	 * of its own: from another phase if `follows`, else to be filled in; NULL: neither */
	struct map *parallelism_table;
	bool follows;
	/* results of searches for parallelism and loop orders (search_cache.h), shared by all
	 * designs that are tried; NULL: no cache */
	struct map *search_cache;
	struct text *lp; /* receives the linear program of FIFO depths; NULL: nowhere */
	/* the module was read as a dump with streams, which may have been edited */
	bool dumped;
};

/* May contractions share one matmul engine: --matmul asks for it, and the platform has ports for
 * it? Whether a module has one says its workload (ir/workload.h). */
bool engine_allowed(const struct pass_context *context);
/* Bytes of a tensor that may wait on chip, for a reduction of it: tensors in memory that are larger
 * are read again instead. */
int64_t passing_bytes_most(const struct pass_context *context);
#endif
