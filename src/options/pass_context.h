/* What every pass is given.  A pass is one file with one public function of its name, bool
 * NAME(struct pass_context *, struct module *), declared in the header of its room; it returns
 * false after diagnostics about the input (module->diag), and broken invariants leave by
 * module->guard.  The table of passes is pipeline/passes.c. */
#ifndef STC_PASS_CONTEXT_H
#define STC_PASS_CONTEXT_H
#include "ir/ir.h"
#include "ir/kernel.h"
#include "platform/platform.h"
#include "ir/dot.h"
#include "options/choices.h"

/* What --quant asks for; bits 0: left in floating point. */
struct quant_scheme {
	const char *text; /* as given */
	int weight, head; /* bits of contractions' weights; of the last one's */
	int embedding;    /* bits of gathered rows */
	int64_t group;    /* numbers of a reduction that share a weight's scale; 0: all */
	bool per_token;   /* activations: one scale for each token rather than each group */
	int state;        /* bits of keys and values; 16: bf16 */
	/* rows in front of the past ones in a state of bytes; 0: as many as a launch makes */
	int64_t lead;
	bool bf16; /* matrices and tables are kept as bf16 */
};

struct pass_context {
	const struct platform *platform;
	struct choices choices; /* the point of the design space */
	struct resources limit; /* where limited: what the design may take */
	bool limited;
	/* out: the least budget with which fusion would succeed; 0: it did */
	int64_t least_on_chip;
	/* out: bytes that fusion counts against the budget, and what they would be with every
	 * edge cut that can be */
	int64_t on_chip_bytes, least_on_chip_bytes;
	/* out, of bind_storage: what the design takes, even if it is more than there is */
	struct resources taken;
	/* out: memory ports that the design needs and the platform lacks */
	int excess_ports;
	/* out: slices' ports that are left, where words of a unit's results have more numbers
	 * than there are slices; 0: they have not */
	int engine_ports_left;
	const struct quant_scheme *quant; /* NULL: none */
	/* iterations that may be simulated to size FIFOs; 0: the default */
	int64_t fifo_events;
	/* weight's name → struct fixed_parallelism * of the kernel that reads it through ports
	 * of its own: another phase's where `follows`, else to be filled in; NULL: neither */
	struct map *parallelism_table;
	bool follows;
	/* of searches over widths and loop orders (search_cache.h), kept from one design to the
	 * next that is tried; NULL: they are not */
	struct map *search_cache;
	struct text *lp; /* where the text of their linear program goes; NULL: nowhere */
	/* the module was read with streams in it: somebody may have changed what passes had made */
	bool dumped;
};

/* Does the point ask for a contraction unit, and has the platform enough ports for one? */
bool has_engine(const struct pass_context *context);
#endif
