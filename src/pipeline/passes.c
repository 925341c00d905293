/* The whole pipeline, in order.  Each pass is one file in src/pass with one public function of its name. */
#include "pipeline/passes.h"
#include "tensor/tensor_passes.h"
#include "fusion/fusion_passes.h"
#include "layers/layers_passes.h"
#include "quantize/quantize_passes.h"
#include "engine/engine_passes.h"
#include "attention/attention_passes.h"
#include "streams/streams_passes.h"
#include "lowering/lowering_passes.h"
#include "fifo/fifo_passes.h"
#include "floorplan/floorplan_passes.h"

#define T LEVEL_TENSOR
#define S LEVEL_STREAM
#define H LEVEL_HARDWARE
#define EXACT NUMERIC_EXACT
#define ORDER NUMERIC_REASSOCIATING
#define APPROXIMATE NUMERIC_APPROXIMATING

const struct pass passes[] = {
	/* name, level needed → produced, what it does to numbers, needs, guarantees */
#define PASS(name, from, to, numeric, needs, guarantees) {#name, name, from, to, numeric, needs, guarantees}
	PASS(name_arguments, T, T, EXACT, "a module as imported", "every argument and result of main has a name and a role"),
	PASS(fold_views, T, T, ORDER, "linalg and views of static shape", "kernels over root tensors, no views"),
	PASS(count_unfused, T, T, EXACT, "kernels", "the module says what its intermediates take before elementwise fusion"),
	PASS(demote_f64, T, T, APPROXIMATE, "kernels", "no f64 inside"),
	PASS(merge_common, T, T, EXACT, "kernels", "no two kernels compute the same"),
	PASS(split_by_consumer, T, T, EXACT, "kernels", "a result that is read in disjoint slices is made in slices"),
	PASS(fuse_elementwise, T, T, EXACT, "kernels", "elementwise kernels stand inside their readers or makers; no work is done twice"),
	PASS(rewrite_gelu_silu, T, T, APPROXIMATE, "fused kernels", "1 + tanh is a quotient with one exponential, and a factor of such a quotient is its dividend"),
	PASS(fuse_argmax, T, T, EXACT, "fused kernels", "the index of the largest of many numbers is found in one pass over them"),
	PASS(bind_extents, T, T, EXACT, "kernels", "loops over dims named by stream.dims run to the extent of run time"),
	PASS(quantize, T, T, APPROXIMATE, "fused kernels", "with --quant: weights of few bits, integer sums for each group and scales; else nothing"),
	PASS(roll_layers, T, T, EXACT, "fused kernels", "identical layers are one scf.for that feeds the hidden state back"),
	PASS(count_fused, T, T, EXACT, "rolled layers", "the module says what its intermediates take after elementwise fusion"),
	PASS(defer_softmax_division, T, T, ORDER, "fused kernels", "softmax divides sums, not exponentials, where only a product reads them"),
	PASS(online_softmax, T, T, ORDER, "fused kernels", "where many scores would wait for their maximum, softmax has a running one and scales its sums"),
	PASS(split_gathers, T, T, EXACT, "kernels", "every gather is a kernel of its own"),
	PASS(split_epilogues, T, T, EXACT, "fused kernels", "wide reductions have no costly operation after the sum"),
	PASS(map_contractions, T, T, EXACT, "fused kernels", "contractions with weights of few bits are phases of one unit, unless --contractions spatial"),
	PASS(bind_token_count, T, T, EXACT, "fused kernels", "beside a unit, work on rows of the launch that a count of run time leaves out is not done"),
	PASS(tile_tokens, T, T, EXACT, "fused kernels", "beside a unit, attention works on a tile of tokens for all heads before the next tile"),
	PASS(skip_causal_tiles, T, T, EXACT, "fused kernels", "where masks hide the keys and values of later tiles of tokens, attention does not wait for them"),
	PASS(sink_layer_select, T, T, EXACT, "rolled layers", "layers do not pick among large results of equal kernels: one such kernel in them picks among what these read"),
	PASS(order_scales_by_group, T, T, EXACT, "fused kernels", "beside a unit, what stands between two of its phases takes a tile of tokens group by group where it needs no more at once"),
	PASS(partition_kv_heads, T, T, EXACT, "fused kernels", "beside a unit, what is read of a state is worked on in parts, each with kernels of its own"),
	PASS(interleave_qkv_heads, T, T, EXACT, "fused kernels", "queries, keys and values that one product makes come in the order in which parts of attention want them"),
	PASS(make_streams, T, S, ORDER, "kernels", "schedules; itensor ports with one reader each; loads, stores, converters, forks"),
	PASS(spill_to_budget, S, S, EXACT, "streams", "what is held fits the on-chip budget; converters that do not are cut: they go through external memory"),
	PASS(mark_last_chunk_only, S, S, EXACT, "streams", "what only results without rows need is known: a launch that others follow leaves it out"),
	PASS(make_processes, S, H, EXACT, "streams", "one process for every kernel, DMA, converter and fork; channels, memory ports and images"),
	PASS(size_fifos, H, H, EXACT, "processes", "depths at which no cycle of waits can arise"),
	PASS(bind_storage, H, H, EXACT, "sized channels", "every array and channel has its storage"),
	PASS(floorplan, H, H, EXACT, "storage", "every process on a die; no die and no boundary holds more than it can"),
#undef PASS
};
const int pass_count = sizeof passes / sizeof *passes;
const char *const numeric_name[] = {"exact", "reassociating", "approximating"};

static const struct {
	const char *name;
	enum level level;
} levels[] = {{"tensor", T}, {"stream", S}, {"hardware", H}};

int pass_find(const char *name)
{
	for (int i = 0; i < pass_count; i++)
		if (text_same(passes[i].name, name))
			return i;
	return -1;
}

int pass_first(enum level level)
{
	int i = 0;
	while (i < pass_count && passes[i].needed < level)
		i++;
	return i;
}

int pass_last(enum level level)
{
	int i = pass_count - 1;
	while (i >= 0 && passes[i].produced > level)
		i--;
	return i;
}

const char *level_name(enum level level)
{
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		if (levels[i].level == level)
			return levels[i].name;
	return "none";
}

bool level_find(const char *name, enum level *level)
{
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		if (text_same(levels[i].name, name)) {
			*level = levels[i].level;
			return true;
		}
	return false;
}
