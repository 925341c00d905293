/* The whole pipeline, in order.  Each pass is a function of its name, in a file of its name in one
 * of the rooms included below. */
#include "pipeline/passes.h"
#include "tensor/tensor_passes.h"
#include "fusion/fusion_passes.h"
#include "layers/layers_passes.h"
#include "quantize/quantize_passes.h"
#include "engine/engine_passes.h"
#include "attention/attention_passes.h"
#include "schedule/schedule_passes.h"
#include "folding/folding_passes.h"
#include "streams/streams_passes.h"
#include "lowering/lowering_passes.h"
#include "ports/ports_passes.h"
#include "fifo/fifo_passes.h"
#include "floorplan/floorplan_passes.h"

#define T LEVEL_TENSOR
#define D LEVEL_DEMAND
#define S LEVEL_STREAM
#define H LEVEL_HARDWARE
#define EXACT NUMERIC_EXACT
#define ORDER NUMERIC_REASSOCIATING
#define APPROXIMATE NUMERIC_APPROXIMATING
#define QUANTIZE NUMERIC_QUANTIZING

const struct pass passes[] = {
/* name, level needed → produced, what it does to numbers, needs, guarantees */
#define PASS(name, from, to, numeric, needs, guarantees)                                           \
	{ #name, name, from, to, numeric, needs, guarantees }
	PASS(name_arguments, T, T, EXACT, "a module as imported",
	        "every argument and result of main has a name and a role"),
	PASS(fold_views, T, T, ORDER, "linalg and views of static shape",
	        "kernels over root tensors, no views"),
	PASS(batch_images, T, T, EXACT, "kernels",
	        "with --images: kernels compute several images a launch; networks over images "
	        "know how many they take"),
	PASS(count_unfused, T, T, EXACT, "kernels",
	        "the module records the bytes of its intermediates before elementwise fusion"),
	PASS(demote_f64, T, T, APPROXIMATE, "kernels", "no f64 inside, except in functions of C"),
	PASS(merge_common, T, T, EXACT, "kernels", "no two kernels compute the same"),
	PASS(split_by_consumer, T, T, EXACT, "kernels",
	        "a result that is read in disjoint slices is computed slice by slice"),
	PASS(fuse_elementwise, T, T, EXACT, "kernels",
	        "elementwise kernels are fused with a consumer or producer; only copies, counters "
	        "and single cheap operations are computed several times"),
	PASS(rewrite_gelu_silu, T, T, APPROXIMATE, "fused kernels",
	        "GELU and SiLU use one exponential and one division"),
	PASS(fuse_rounding, T, T, EXACT, "fused kernels",
	        "rounding to a limited integer of few bits is one operation"),
	PASS(fuse_argmax, T, T, EXACT, "fused kernels", "argmax is one reduction"),
	PASS(scan_prefixes, T, T, ORDER, "fused kernels",
	        "prefix sums are scans, of blocks side by side, and not masked sums"),
	PASS(bind_extents, T, T, EXACT, "kernels",
	        "loops over dimensions named by stream.dims have run-time trip counts"),
	PASS(quantize_bf16, T, T, QUANTIZE, "fused kernels",
	        "with --quant bf16: matrices and tables are bf16"),
	PASS(quantize_kv_cache, T, T, QUANTIZE, "fused kernels",
	        "with --quant kv=…: the KV cache has bytes with scales, or bf16"),
	PASS(fold_norm_biases, T, T, QUANTIZE, "fused kernels",
	        "with --quant: a norm's bias is added by the contractions that read the norm"),
	PASS(defer_norm_factors, T, T, ORDER, "fused kernels",
	        "with --quant: a norm's factor 1/sqrt(…) multiplies the contractions' sums instead "
	        "of their inputs"),
	PASS(quantize_embeddings, T, T, QUANTIZE, "fused kernels",
	        "with --quant embedding=…: gathered rows are integers with scales"),
	PASS(quantize_contractions, T, T, QUANTIZE, "fused kernels",
	        "with --quant: low-bit weights, integer sums per group, scales"),
	PASS(roll_layers, T, T, EXACT, "fused kernels",
	        "identical layers are one scf.for; what a layer passes to the next is its "
	        "loop-carried value"),
	PASS(count_fused, T, T, EXACT, "rolled layers",
	        "the module records the bytes of its intermediates after elementwise fusion"),
	PASS(defer_softmax_division, T, T, ORDER, "fused kernels",
	        "softmax division is deferred past the product with the values"),
	PASS(online_softmax, T, T, ORDER, "fused kernels",
	        "long softmax rows use the online algorithm: a running maximum, sums rescaled when "
	        "it rises"),
	PASS(split_gathers, T, T, EXACT, "kernels", "every gather is a separate kernel"),
	PASS(split_epilogues, T, T, EXACT, "fused kernels",
	        "wide reductions have no costly epilogue in the same kernel"),
	PASS(map_contractions, T, T, EXACT, "fused kernels",
	        "contractions with quantized weights are jobs of one matmul engine, unless "
	        "--matmul spatial"),
	PASS(bind_token_count, T, T, EXACT, "fused kernels",
	        "with an engine: padding tokens beyond the run-time token count are not computed"),
	PASS(tile_tokens, T, T, EXACT, "fused kernels",
	        "with an engine: attention processes one tile of tokens for all heads before the "
	        "next tile"),
	PASS(skip_causal_tiles, T, T, EXACT, "fused kernels",
	        "attention does not wait for keys and values of later token tiles that the causal "
	        "mask removes"),
	PASS(sink_layer_select, T, T, EXACT, "rolled layers",
	        "per-layer selection moves from large kernel results to the kernels' inputs"),
	PASS(order_scales_by_group, T, T, EXACT, "fused kernels",
	        "with an engine: kernels between two of its jobs process a token tile scale group "
	        "by scale group where possible"),
	PASS(partition_kv_heads, T, T, EXACT, "fused kernels",
	        "with an engine: the KV cache is processed in partitions, each by separate "
	        "kernels"),
	PASS(interleave_qkv_heads, T, T, EXACT, "fused kernels",
	        "the rows of a fused QKV product are ordered as the KV partitions consume them"),
	PASS(tile_steps, T, T, EXACT, "loops over rows",
	        "kernels that make the rows of a loop process tiles of steps one by one"),
	PASS(fold_convolutions, T, T, ORDER, "kernels",
	        "convolutions of integers are a pipeline that passes images on pixel by pixel, of "
	        "matched rates"),
	PASS(order_windows, T, T, ORDER, "fused kernels",
	        "pooling without overlap along the rows takes several windows of a word at once"),
	PASS(choose_register_tiles, T, T, EXACT, "kernels",
	        "contractions form several sums side by side, in blocks whose "
	        "operands are held on chip"),
	PASS(split_shared_epilogues, T, T, EXACT, "fused kernels",
	        "where operators are to be shared, epilogues that have many are kernels of their "
	        "own"),
	PASS(choose_parallelism, T, T, EXACT, "kernels",
	        "every kernel knows its most lanes and the memory ports of its largest operand"),
	PASS(choose_loop_orders, T, T, EXACT, "parallelism",
	        "every kernel has a schedule (order and splits of its loops, lanes) of the fewest "
	        "bytes on chip"),
	PASS(fit_loop_orders, T, T, EXACT, "schedules",
	        "where these bytes exceed the budget: schedules of the fewest bytes that cannot be "
	        "spilled"),
	PASS(form_streams, T, D, ORDER, "schedules",
	        "loops in schedule order; itensor streams, demands where they are used; loads and "
	        "stores"),
	PASS(share_operators, D, D, EXACT, "loops in schedule order",
	        "kernels wait between iterations, so that operations share operators, if asked to"),
	PASS(insert_converters, D, D, EXACT, "demands",
	        "every demand is a cast, a chunk or a converter, or nothing where the types agree"),
	PASS(recompute_kernels, D, D, EXACT, "converters",
	        "elementwise kernels are computed several times where that needs less memory than "
	        "a converter"),
	PASS(share_buffers, D, S, EXACT, "converters",
	        "streams have one reader each: one buffer for readers that follow each other, "
	        "else forks"),
	PASS(fold_converters, S, S, EXACT, "streams",
	        "the form of each converter and shared buffer: in its producer, in its consumer, "
	        "replay, or a process of its own"),
	PASS(schedule_reductions, S, S, EXACT, "forms of converters",
	        "how each kernel adds up its results and sends them"),
	PASS(spill_to_budget, S, S, EXACT, "streams",
	        "on-chip buffers fit the budget; converters that do not fit are spilled to "
	        "external memory"),
	PASS(mark_last_chunk_only, S, S, EXACT, "streams",
	        "work that only the final results need is marked: launches that are continued skip "
	        "it"),
	PASS(plan_engine, S, S, EXACT, "streams",
	        "with an engine: its memory ports, and so its PEs, and how loaders share them"),
	PASS(make_processes, S, H, EXACT, "streams",
	        "processes for kernels, converters, forks and DMA, one or several each (none for a "
	        "converter folded into a neighbour); channels, memory ports and images"),
	PASS(assign_axi_bundles, H, H, EXACT, "processes",
	        "ports share AXI adapters and memory channels, no more than the platform has"),
	PASS(check_multipliers, H, H, EXACT, "processes",
	        "the platform has the multipliers of all processes"),
	PASS(size_fifos, H, H, EXACT, "processes",
	        "depths for which no circular wait, and so no deadlock, is possible"),
	PASS(bind_storage, H, H, EXACT, "sized channels",
	        "every array and channel is bound to LUTRAM, BRAM or URAM"),
	PASS(floorplan, H, H, EXACT, "storage",
	        "every process is on a die; no die uses more than its LUTs, FFs, DSPs and "
	        "memories, "
	        "no boundary between dies more than the platform's crossing_wires"),
#undef PASS
};
const int pass_count = sizeof passes / sizeof *passes;
const char *const numeric_name[] = { "exact", "reassociating", "approximating", "quantizing" };

int pass_choosing(void)
{
	return pass_find("fold_convolutions");
}

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
