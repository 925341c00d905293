/* The budgets of kernels: memory ports beside those of other operands and results, and what the
 * matmul engine's memory ports, DSPs and LUTs leave. */
#include "ir/workload.h"
#include "engine/engine_cost.h"
#include "ir/launch_tokens.h"
#include "ir/kernel_edit.h"
#include "schedule/parallelism.h"
#include "schedule/schedule_passes.h"

/* percent of the board's DSPs for the engine's PEs and the kernels together; if that crowds a die,
 * fit_crowded_die.c tries less */
#define ENGINE_DSP_SHARE 79
#define ENGINE_LUT_SHARE 64 /* percent of the LUTs */
/* percent of the DSPs with several tokens a cycle, where the kernels are busy as long as the PEs */
#define TOKENS_SHARE 76
/* the same with two to four token tiles, whose layers do not overlap (engine_job_order.c), so that
 * the engine waits for the kernels */
#define TILES_SHARE 79
/* percent of the LUTs with several tokens a cycle, since converters need LUTs too */
#define TOKENS_LUT_SHARE 52
/* the same with a run-time number of tiles: its converters are part of the count already */
#define COUNTED_LUT_SHARE 55
/* percent of the DSPs with several tokens one by one: each waits for the kernels between two
 * jobs */
#define FEW_SHARE 72
#define FEW_LUT_SHARE 52 /* percent of the LUTs then */
/* memory ports that are neither PEs' nor share an AXI bundle with theirs, about
 * (assign_axi_bundles.c) */
#define UNSHARED_PORTS 3
/* the same where all small operands share the engine's bundles */
#define UNSHARED_PORTS_PIGGYBACK 1
/* results, or arguments, that share adapters with the ports of a larger argument */
#define SMALL_RESULTS 4
/* they have at most one in so many of its elements */
#define SMALL_SHARE 64

static int engine_weight_bits(const struct block *block);

static int op_weight_bits(const struct op *op)
{
	if (op->code == OP_FOR)
		return engine_weight_bits(op->region[0]);
	return op->code == OP_CONTRACT ? type_scalar(op->operand[2]->type)->width : 0;
}

/* Bits of an element of the engine's weights; 0: there is no engine. */
static int engine_weight_bits(const struct block *block)
{
	int bits = 0;
	for (const struct op *op = block->first; op && !bits; op = op->next)
		bits = op_weight_bits(op);
	return bits;
}

/* Are results and other operands so small that they share the adapters of the largest argument's
 * ports? Results are written when nearly all is read (lower_stores.c). */
static bool mostly_reads(const struct module *module)
{
	const struct op *main = module_main(module);
	const struct block *body = main->region[0];
	const struct op *end = body->last;
	int64_t most = 0;
	int64_t results = 0;
	if (workload_of(main) != WORKLOAD_NONE || end->code != OP_RETURN ||
	        end->operands > SMALL_RESULTS || body->arguments > SMALL_RESULTS)
		return false;
	for (int i = 0; i < body->arguments; i++) {
		int64_t elements = type_elements(body->argument[i]->type);
		most = elements > most ? elements : most;
	}
	for (int i = 0; i < end->operands; i++)
		results += type_elements(end->operand[i]->type);
	for (const struct op *op = body->first; op; op = op->next)
		if (op->code == OP_FOR)
			return false;
	return results <= most / SMALL_SHARE;
}

void parallelism_ports(struct parallelism_table *w)
{
	const struct platform *platform = w->context->platform;
	int64_t reserved = choice_count(&w->context->choices, CHOICE_RESERVED_PORTS);
	w->read_bits = WORD_BITS;
	if (mostly_reads(w->module)) {
		reserved += module_main(w->module)->region[0]->arguments - 1 -
		        choice_info[CHOICE_RESERVED_PORTS].default_value;
		w->read_bits = (int64_t)platform->ports * PORT_BITS;
	}
	w->ports = platform->ports - (int)(reserved > 0 ? reserved : 0);
}

int64_t parallelism_dsp(const struct pass_context *context, const struct block *body)
{
	int64_t dsp = choice_resolve(&context->choices, context->platform, CHOICE_DSP);
	for (const struct op *op = body->first; op; op = op->next)
		if (op->code == OP_SEQUENTIAL)
			dsp -= attr_integer_or(op, KEY_STREAM_DSP, 0);
	return dsp < 0 ? 0 : dsp;
}

static int dsp_share(const struct block *block, int tokens_per_cycle, bool counted)
{
	if (tokens_per_cycle == 1)
		return workload_has_many_tokens(workload_of(block->parent)) ? FEW_SHARE
		                                                            : ENGINE_DSP_SHARE;
	return layers_drain_between(engine_tokens(block, NULL)) && !counted ? TILES_SHARE
	                                                                    : TOKENS_SHARE;
}

static int lut_share(const struct block *block, int tokens_per_cycle)
{
	enum workload workload = workload_of(block->parent);
	if (tokens_per_cycle == 1)
		return workload_has_many_tokens(workload) ? FEW_LUT_SHARE : ENGINE_LUT_SHARE;
	return workload == WORKLOAD_TILED_COUNTED_TOKENS ? COUNTED_LUT_SHARE : TOKENS_LUT_SHARE;
}

void parallelism_reserve_engine(struct parallelism_table *w, const struct block *block)
{
	const struct pass_context *context = w->context;
	const char *rows = NULL;
	int bits = engine_weight_bits(block);
	int readers = 0;
	int other_ports = operands_share_weight_port(module_main(w->module))
	        ? UNSHARED_PORTS_PIGGYBACK
	        : UNSHARED_PORTS;
	if (!bits)
		return;
	for (int i = 0; i < w->count; i++)
		readers += w->candidate[i].operand >= 0;
	struct engine_shape shape = engine_shape(block);
	const int uses = engine_word_uses(shape);
	const struct port_pes pes = { bits, uses };
	engine_tokens(block, &rows);
	int ports = engine_port_limit(context, w->module, pes, rows != NULL,
	        context->platform->ports - other_ports - readers - 1);
	w->tokens_per_cycle = shape.tokens_per_cycle;
	w->pes = ports * shape.pes_per_port;
	int64_t left =
	        platform_total(context->platform).dsp * dsp_share(block, uses, rows != NULL) / 100 -
	        ports * pe_dsp(context, w->module, pes);
	w->ports = w->ports > ports + 1 ? w->ports - ports - 1 : 0;
	w->dsp = w->dsp < left ? w->dsp : left;
	left = platform_total(context->platform).lut * lut_share(block, uses) / 100 -
	        ports * pe_lut(context, w->module, pes);
	w->lut = w->lut < left ? w->lut : left;
}
