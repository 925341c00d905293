/* Workload of a launch as the matmul engine (stream.contract) sees it: tokens, tiles, and how
 * weights and small operands reach the engine. */
#ifndef STC_WORKLOAD_H
#define STC_WORKLOAD_H
#include "ir/contract.h"

#define FEW_TOKENS 8 /* up to this many tokens a design has the form of a decode design */

/* How the engine uses a word of weights from a memory port: tokens per cycle of one PE, and PEs
 * that share the port by interleaving. */
struct engine_shape {
	int tokens_per_cycle, pes_per_port;
};

/* The shape of the contraction that uses a word most often; {1, 1} by default. */
struct engine_shape engine_shape(const struct block *body);
/* uses of a word per cycle by all PEs of its port */
int engine_word_uses(struct engine_shape shape);
/* Is there a contraction? Does one have more than one token? */
bool has_contraction(const struct block *block);
bool engine_has_many_tokens(const struct block *block);
/* Is the op in a design whose engine processes one token? Kernel words may then have WORD_BITS,
 * else half of that. */
bool engine_is_single_token(const struct op *op);
/* Do small operands and results share the AXI bundle of a weight port, in words as wide as the
 * port? So they do in decode designs, which leaves ports for more PEs, if they are small compared
 * with the weights. */
bool operands_share_weight_port(const struct op *main);
/* Are small operands read in full-width words? So they are if they share a weight port, and also
 * with many tokens counted at run time, which leaves one more PE. */
bool operands_use_full_words(const struct op *main);
/* many tokens, in tiles, with a run-time count */
bool engine_has_run_time_tiles(const struct block *body);
/* more than FEW_TOKENS tokens, processed in tiles */
bool engine_has_tiles(const struct block *block);
/* There are contractions, and none has more than FEW_TOKENS tokens: then several memory ports read
 * a KV cache in parallel. */
bool engine_takes_few_tokens(const struct block *block);
/* Maximum tokens of a contraction; 0: there is none. token_symbol: unless NULL, set to the name of
 * the input that holds the token count, if one does. */
int64_t engine_tokens(const struct block *block, const char **token_symbol);
/* fewest tokens of an argument whose tokens are counted at run time; 0: there is none */
int64_t run_time_tokens_least(const struct op *main);
/* At tensor level: is the token count a run-time value of at most FEW_TOKENS? The driver then tries
 * several tokens per cycle, an attribute of contractions. */
bool counts_few_tokens(const struct op *main);
/* sets the attributes of the shape on all contractions */
void mark_engine_shape(struct module *module, struct block *block, struct engine_shape shape);
/* sets the lanes of result words, where the engine has at most `pes` PEs */
void mark_result_lanes(struct module *module, struct block *block, int64_t pes);
#endif
