/* stream.contract: one phase of a contraction unit, for the tokens t that its attribute `tokens`
 * counts (one where it is missing).
 *     y[t, n] = Σ_g (float)(Σ_k x[t, g, k] * w[n, g, k]) * (s[t, g] * s'[n, g])        sums over k in i32, over g in f32 in index order, from 0
 * Operands: x, s, then at stream level in a rolled layer the layer's counter, then the weights
 * and as many scales (one of each a layer, else one). The weight's number (n, g, k) lies at (g *
 * outputs + n) * size + k, its scale at g * outputs + n.
 * With the attribute `rows`, the name of an input of one integer, so many of the tokens are
 * there in a launch, as ir/launch_tokens.h says; of the others nothing is computed. The
 * attribute `abreast` says how many tokens a slice of the unit takes a cycle (one where it is
 * missing), `dealt` how many slices the words of a memory port are dealt to in turn (one), the
 * same of all phases. Its results are words of engine_result_lanes(abreast * dealt) numbers, or
 * of as few as the attribute `lanes` says: a slice gives one row of a word at most, so where
 * there are few slices words are narrow. Tokens fall into tiles: what the unit reads of the
 * weights it uses for a tile.  Its sums come a tile after the other, in each the words of a
 * token's row in order, each for all tokens. With the unit attribute `same` x and s are those of
 * the contraction before it in the block: of both a tile is done before the next one. With
 * `apart` as well it takes them again, when that contraction is done with all tiles: what waits
 * for all of its results waits for one tile of these. With `once` every group is worked on for
 * all rows when it comes, as what comes out of attention, head by head, is wanted: it leaves the
 * least to do behind the last one. At stream level x and s come a tile after the other as well,
 * in each group after group, each of all tokens. */
#ifndef STC_CONTRACT_H
#define STC_CONTRACT_H
#include "ir/launch_tokens.h"

#define ACTIVATION_BITS 8    /* of a number that is multiplied with the weights */
#define ENGINE_WORD_BITS 512 /* in it, a group of weights is a word of a memory port */
/* rows of a slice that are summed side by side at most, if there are no more in one block */
#define ENGINE_BLOCK_MOST 64
/* of so few tiles phases take no turns: the order would be the same */
#define WAVEFRONT_TILES_LEAST 2
/* most tiles of a launch that attention goes through one after the other, and that phases take
 * turns with: of more nothing is known yet */
#define WAVEFRONT_TILES_MOST 8

struct contract {
	int64_t tokens, groups, size, outputs; /* extents of t, g, k and n */
	int layers;                            /* weights to choose from; 0: one, for all */
	/* tokens that a slice takes a cycle; slices that a memory port's words are dealt to */
	int tokens_per_cycle, pes_per_port;
	int64_t lanes; /* most results in a word */
	/* x and s are those of the contraction before it; of one that is done with all tiles */
	bool same_input, second_pass;
	bool single_block;                          /* a slice's rows are one block */
	const char *token_symbol;                   /* NULL: all tokens are there */
	struct value *layer;                        /* NULL where layers is 0 */
	struct value *const *weight, *const *scale; /* [layers or 1] tensors */
};

#define PES_PER_PORT_MOST 2 /* slices that a port's words are dealt to */
/* uses of a port's word a cycle from which a unit gives words of four times as many results, of
 * fewer twice as many */
#define ENGINE_BASE_LANES 4
/* Of as many slices as there may be: 30 with rows of seven groups make more than four results a
 * cycle, and of four tokens and more a cycle more than eight. */
int64_t engine_result_lanes(int64_t uses);
int64_t contract_lanes(const struct op *op);
/* false: the operands do not fit together. */
bool contract_of(const struct op *op, struct contract *contract);
#endif
