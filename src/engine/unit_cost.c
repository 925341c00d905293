/* What slices of a contraction unit take of the platform, and how many of them it has room for. */
#include "ir/narrow.h"
#include "platform/dot_cost.h"
#include "ir/workload.h"
#include "engine/unit_cost.h"

#define HOME_TENTHS 8         /* of the memory die's DSPs that slices may take */
#define SLICE_LUT 7700        /* of a slice and its loader, where it takes one token */
#define SLICES_LUT 37         /* hundredths of the LUTs that slices and their loaders may take: of one more token abreast, what stands around them would be too slow for it */
#define SLICES_DSP 56         /* of the DSPs the same */
#define BLOCK_ONCE 1024       /* rows of a slice that may be one block, */
#define KEPT_WORDS 32         /* where keeping all groups for the next one would take more LUTs: so many words are half as dear as one more */

struct dot unit_dot(const struct pass_context *context, int bits, int abreast)
{
	struct dot dot;
	int products = (int)choice_count(&context->choices, CHOICE_PRODUCTS), commons = products > 2 && abreast % 2 == 0 ? 2 : 1, words = products > 1 ? 2 : 1;
	while (!dot_plan(&dot, words, commons, UNIT_WORD_BITS / bits, UNIT_NUMBER_BITS, bits) && words * commons > 1)
		*(commons > 1 ? &commons : &words) = 1;
	return dot;
}

bool unit_block_once(double rows, int64_t groups, double words)
{
	return rows <= BLOCK_ONCE && (double)(groups + 1) * words > KEPT_WORDS;
}

/* Ports are a multiple of it, where slices' results are a whole number of words. */
int64_t whole_words(int64_t uses)
{
	return uses > UNIT_LANES ? 4 * UNIT_LANES : 2 * UNIT_LANES;
}

/* What a sum is multiplied with its scale by. */
static struct operator_cost product_of(const struct platform *platform, const struct dot *dot, const struct type *real)
{
	return narrow_dot(dot) ? platform_narrow(platform) : platform_operator(platform, OP_MULF, real);
}

int64_t slice_dsp(const struct pass_context *context, struct module *module, int bits, int uses)
{
	const struct platform *platform = context->platform;
	const struct type *real = type_float(module, 32);
	struct dot dot = unit_dot(context, bits, uses);
	int64_t products = uses > 1 ? platform_narrow(platform).dsp + product_of(platform, &dot, real).dsp : 2 * platform_operator(platform, OP_MULF, real).dsp;      /* of one token what is saved is left free (widths.h) */
	int64_t scaled = products + platform_operator(platform, OP_ADDF, real).dsp + platform_operator(platform, OP_SITOFP, real).dsp;
	int shared = dot.words * dot.commons;
	return uses * ((dot_cost(platform, &dot).dsp + shared - 1) / shared + scaled);
}

int64_t slice_lut(const struct pass_context *context, struct module *module, int bits, int uses)
{
	const struct platform *platform = context->platform;
	const struct type *real = type_float(module, 32);
	struct dot dot = unit_dot(context, bits, uses);
	struct operator_cost converted = narrow_dot(&dot) ? platform_narrow_integer(platform) : platform_operator(platform, OP_SITOFP, real);
	int64_t scaled = platform_narrow(platform).lut + product_of(platform, &dot, real).lut + platform_operator(platform, OP_ADDF, real).lut + converted.lut;
	return SLICE_LUT + (uses - 1) * (dot_cost(platform, &dot).lut / (dot.words * dot.commons) + scaled);
}

bool slices_fit(const struct pass_context *context, struct module *module, int bits, int uses, int64_t ports)
{
	const struct resources all = platform_total(context->platform);
	return ports * slice_lut(context, module, bits, uses) <= all.lut * SLICES_LUT / 100 && ports * slice_dsp(context, module, bits, uses) <= all.dsp * SLICES_DSP / 100;
}

int unit_step(int uses, bool counted)
{
	return uses > UNIT_LANES || (uses > 1 && !counted) ? (int)whole_words(uses) : UNIT_STEP;
}

int ports_within(const struct pass_context *context, struct module *module, int bits, int uses, bool counted, int ports)
{
	const struct platform *platform = context->platform;
	int64_t each = slice_dsp(context, module, bits, uses), home = platform->die[platform->memory_die].dsp * HOME_TENTHS / 10 / (each > 0 ? each : 1);
	int64_t beyond = platform->dies > 1 ? platform->crossing_wires / 2 / UNIT_WORD_BITS : 0, most = choice_count(&context->choices, CHOICE_SLICES);
	int64_t room = platform_total(platform).lut * SLICES_LUT / 100 / slice_lut(context, module, bits, uses);
	most = most < home + beyond ? most : home + beyond;
	most = most < room ? most : room;
	int64_t step = unit_step(uses, counted);
	most = (most < ports ? most : ports) / step * step;
	return (int)(most < step ? step : most);
}
