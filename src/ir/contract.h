/* stream.contract: a matrix product of quantized operands, one job of the matmul engine, for each
 * of `tokens` tokens t (one if the attribute is absent):
 *
 *     y[t, n] = Σ_g (float)(Σ_k x[t, g, k] * (w[n, g, k] - z[n, g])) * (s[t, g] * s'[n, g])
 *
 * with sums over k in i32 and over groups g in f32, in index order, from 0.
 *
 * Operands: x, its scales s, then at stream level inside a rolled layer loop the layer counter,
 * then the weights w, as many scale tensors s' and maybe as many tensors of zero points z, in the
 * weights' type (one of each per layer, else one). Weight (n, g, k) lies at
 * (g * outputs + n) * size + k, its scale and zero point at g * outputs + n. Without z all are 0.
 *
 * Attributes (src/ir/attrs.def):
 * - token_count: name of an integer input; only that many tokens are computed (ir/launch_tokens.h).
 * - tokens_per_cycle, pes_per_port: see struct contract; the same for all jobs of an engine.
 * - lanes: upper limit of the results in a word, else engine_result_lanes. A PE gives at most one
 *   row of a word, so few PEs need narrow words.
 * - same_input: x and s are those of the contraction before this one in the block; the engine does
 *   a tile of both before the next tile.
 * - second_pass: with same_input, but this job reads x in a second pass, after that contraction is
 *   done with all tiles. A consumer that waits for all its results then waits for one tile of
 *   these.
 * - single_block: each group of x is used for all rows as soon as it arrives. This suits the result
 *   of attention, which arrives head by head, and leaves the least work after its last group.
 *
 * Order: tokens fall into tiles, and a weight word that is read serves all tokens of a tile. x and
 * s arrive tile by tile, in each tile group by group, each group for all tokens. Results leave tile
 * by tile, in each tile the words of a row in order, each word for all tokens. */
#ifndef STC_CONTRACT_H
#define STC_CONTRACT_H
#include "ir/launch_tokens.h"

#define ACTIVATION_BITS 8    /* bits of an activation x */
#define ENGINE_WORD_BITS 512 /* bits of a group of weights: one word of a memory port */
/* maximum rows in a block of a PE, whose sums it forms in parallel, unless all its rows need one
 * block */
#define ENGINE_BLOCK_MOST 64
/* with at most this many tiles jobs are not interleaved: the order would be the same */
#define WAVEFRONT_TILES_LEAST 2
/* maximum tiles for which attention runs tile by tile and the engine interleaves jobs */
#define WAVEFRONT_TILES_MOST 8

struct contract {
	int64_t tokens, groups, size, outputs; /* extents of t, g, k and n */
	int layers; /* weight tensors, one per layer; 0: no layer counter, one tensor */
	/* tokens that a PE processes per cycle; PEs that share a memory port by interleaving its
	 * words */
	int tokens_per_cycle, pes_per_port;
	int64_t lanes; /* results in a word */
	/* x and s are those of the previous contraction, read in a second pass */
	bool same_input, second_pass;
	bool single_block;        /* all rows of a PE form one block */
	const char *token_symbol; /* NULL: the token count is fixed */
	struct value *layer;      /* layer counter; NULL where layers is 0 */
	/* [layers or 1] tensors; zero NULL: all zero points are 0 */
	struct value *const *weight, *const *scale, *const *zero;
};

#define PES_PER_PORT_MOST 2 /* maximum PEs that share a port */
/* From this many uses of a weight word per cycle a result word has four times as many lanes as
 * this, below it twice as many. */
#define ENGINE_BASE_LANES 4
/* Results in a word of an engine with the maximum number of PEs. uses: tokens_per_cycle *
 * pes_per_port. */
int64_t engine_result_lanes(int64_t uses);
/* results in a word of this op: its `lanes` attribute, at most engine_result_lanes */
int64_t contract_lanes(const struct op *op);
/* Reads the op's operands and attributes. false: types or counts do not match. */
bool contract_of(const struct op *op, struct contract *contract);
#endif
