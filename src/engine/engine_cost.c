/* Estimates what the PEs of the matmul engine take of the board, and how many of them fit. */
#include "ir/narrow_product.h"
#include "platform/dot_cost.h"
#include "ir/workload.h"
#include "engine/engine_cost.h"

#define HOME_TENTHS 8 /* tenths of the memory die's DSPs that PEs may take */
#define PE_LUT 7700   /* LUTs of a PE and its loader, with one token per cycle */
/* percent of the LUTs that PEs and their loaders may take: with more tokens per cycle the kernels
 * around the engine would be too slow for it */
#define PES_LUT 37
#define PES_DSP 56      /* percent of the DSPs, likewise */
#define BLOCK_ONCE 1024 /* the most rows of a PE that may be one block, */
/* if the buffer for all groups would be deeper than this: a LUTRAM of so many words is half as
 * large as a deeper one */
#define BUFFERED_WORDS 32

struct dot engine_dot(const struct pass_context *context, int bits, int tokens_per_cycle)
{
	int products = (int)choice_count(&context->choices, CHOICE_PRODUCTS_PER_DSP);
	struct dot dot = { .words = products > 1 ? 2 : 1,
		.x_per_dsp = products > 2 && tokens_per_cycle % 2 == 0 ? 2 : 1,
		.lanes = ENGINE_WORD_BITS / bits,
		.x_bits = ACTIVATION_BITS,
		.w_bits = bits };
	while (!dot_plan(&dot) && dot.words * dot.x_per_dsp > 1)
		*(dot.x_per_dsp > 1 ? &dot.x_per_dsp : &dot.words) = 1;
	return dot;
}

bool engine_single_block(double rows, int64_t groups, double token_steps)
{
	return rows <= BLOCK_ONCE && (double)(groups + 1) * token_steps > BUFFERED_WORDS;
}

/* the number of ports is a multiple of it, if results are whole words */
int64_t engine_port_multiple(int64_t uses)
{
	return uses > ENGINE_BASE_LANES ? 4 * ENGINE_BASE_LANES : 2 * ENGINE_BASE_LANES;
}

/* operator that multiplies a sum with its scale */
static struct operator_cost product_of(
        const struct platform *platform, const struct dot *dot, const struct type *real)
{
	return narrow_dot(dot) ? platform_narrow(platform)
	                       : platform_operator(platform, OP_MULF, real);
}

int64_t pe_dsp(const struct pass_context *context, struct module *module, struct port_pes pes)
{
	const struct platform *platform = context->platform;
	const struct type *real = type_float(module, 32);
	struct dot dot = engine_dot(context, pes.bits, pes.uses);
	/* with one token, what narrower products save is left free (parallelism.h) */
	int64_t products = pes.uses > 1
	        ? platform_narrow(platform).dsp + product_of(platform, &dot, real).dsp
	        : 2 * platform_operator(platform, OP_MULF, real).dsp;
	int64_t scaled = products + platform_operator(platform, OP_ADDF, real).dsp +
	        platform_operator(platform, OP_SITOFP, real).dsp;
	int shared = dot.words * dot.x_per_dsp;
	return pes.uses * ((dot_cost(platform, &dot).dsp + shared - 1) / shared + scaled);
}

int64_t pe_lut(const struct pass_context *context, struct module *module, struct port_pes pes)
{
	const struct platform *platform = context->platform;
	const struct type *real = type_float(module, 32);
	struct dot dot = engine_dot(context, pes.bits, pes.uses);
	struct operator_cost converted = narrow_dot(&dot)
	        ? platform_narrow_integer(platform)
	        : platform_operator(platform, OP_SITOFP, real);
	int64_t scaled = platform_narrow(platform).lut + product_of(platform, &dot, real).lut +
	        platform_operator(platform, OP_ADDF, real).lut + converted.lut;
	return PE_LUT +
	        (pes.uses - 1) *
	        (dot_cost(platform, &dot).lut / (dot.words * dot.x_per_dsp) + scaled);
}

bool pes_fit(const struct pass_context *context, struct module *module, struct port_pes pes,
        int64_t ports)
{
	const struct resources all = platform_total(context->platform);
	return ports * pe_lut(context, module, pes) <= all.lut * PES_LUT / 100 &&
	        ports * pe_dsp(context, module, pes) <= all.dsp * PES_DSP / 100;
}

int engine_port_step(int uses, bool counted)
{
	return uses > ENGINE_BASE_LANES || (uses > 1 && !counted) ? (int)engine_port_multiple(uses)
	                                                          : ENGINE_PE_STEP;
}

int engine_port_limit(const struct pass_context *context, struct module *module,
        struct port_pes pes, bool counted, int ports)
{
	const struct platform *platform = context->platform;
	int64_t each = pe_dsp(context, module, pes);
	int64_t home =
	        platform->die[platform->memory_die].dsp * HOME_TENTHS / 10 / (each > 0 ? each : 1);
	int64_t beyond = platform->dies > 1 ? platform->crossing_wires / 2 / ENGINE_WORD_BITS : 0;
	int64_t most = choice_count(&context->choices, CHOICE_ENGINE_PES);
	int64_t room = platform_total(platform).lut * PES_LUT / 100 / pe_lut(context, module, pes);
	most = most < home + beyond ? most : home + beyond;
	most = most < room ? most : room;
	int64_t step = engine_port_step(pes.uses, counted);
	most = (most < ports ? most : ports) / step * step;
	return (int)(most < step ? step : most);
}
